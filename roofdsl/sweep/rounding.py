"""Quotients of exact integers in float64, rounded once: the results of `float(Fraction(...))`, for whole arrays.

Products and remainders are kept as sums of two numbers (Dekker 1971, Knuth's two-sum). If the last bit remains open, as
for one point in a million, Python's integers decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from math import gcd, lcm
from typing import Any

from roofdsl.predict.time_model import SAME, Largest, bound_text, bounding
from roofdsl.sweep.numeric import EXACT, Points, combined, full

Term = tuple[str, Any, int]
"""(name, numerator: an array of integers, denominator) of a time in seconds."""


class OverOne:
    """A term of the time prepared for arrays: integer weights over one denominator.

    The common factor of all weights is multiplied last, so that the larger of two arrays can be found first.
    """

    def __init__(self, name: str, of: Largest) -> None:
        weights = [weight for one in of.sums for _, weight in one]
        self.name, self.below = name, lcm(*(weight.denominator for weight in weights))
        self.common = gcd(*(int(weight * self.below) for weight in weights)) or 1
        self.sums = [[(n, int(weight * self.below) // self.common) for n, weight in one] for one in of.sums]

    def at(self, amounts: Mapping[str, Any], points: Points) -> Term:
        """The term at the points; `amounts` are its counts: arrays of integers, or a number that all points share.

        Raises TooLarge.
        """
        import numpy as np

        top = reduce(np.maximum, [_added([(amounts[n], weight) for n, weight in one], points) for one in self.sums])
        if isinstance(top, int):
            return self.name, full(top * self.common, points), self.below
        return self.name, combined([(top, self.common)], points), self.below


def _added(parts: Sequence[tuple[Any, int]], points: Points) -> Any:
    """The sum of numbers times integers. A single array times one is returned itself, and must not be changed."""
    (first, weight), *others = parts or ((0, 1),)
    if not others and (weight == 1 or isinstance(first, int)):
        return first * weight if isinstance(first, int) else first
    return combined([(full(amount, points), w) for amount, w in parts], points)


OPEN = 2.0**-72
"""The error assumed for a correction, relative to the number that it corrects: a millionth of a unit in the last place,
far above the actual error.
"""


def is_exact(array: Any) -> bool:
    """Whether an array holds Python integers."""
    return bool(array.dtype == object)


def quotient(top: Any, below: int) -> Any:
    """top / below."""
    import numpy as np

    if below < EXACT and not is_exact(top):
        return top / below
    return np.array([int(t) / below for t in top], dtype=np.float64)


def ratio(top: Any, factor: int, bottom: Any) -> Any:
    """top * factor / bottom; NaN or infinity if bottom is 0. `factor` is a positive integer."""
    import numpy as np

    def at(k: int) -> float:
        below = int(bottom[k])
        return int(top[k]) * factor / below if below else float("nan")

    if is_exact(top) or is_exact(bottom) or factor >= EXACT:
        return np.array([at(k) for k in range(len(top))], dtype=np.float64)
    with np.errstate(all="ignore"):
        if float(top.max(initial=0)) * factor < EXACT:
            return top * float(factor) / bottom
        high, low = _two_product(top, float(factor))
        # The remainder of the first quotient, divided again, is its error: together they are exact up to far less than
        # a unit in the last place.
        first = high / bottom
        back, rest = _two_product(first, bottom)
        return _rounded(first, ((high - back) - rest + low) / bottom, at)


def total_time(terms: Sequence[Term]) -> Any:
    """The sum of the terms."""
    import numpy as np

    def at(k: int, start: int = 0) -> float:
        return float(sum((Fraction(int(top[start + k]), below) for _, top, below in terms), Fraction(0)))

    count = len(terms[0][1])
    if any(is_exact(top) or below >= EXACT for _, top, below in terms):
        return np.array([at(k) for k in range(count)], dtype=np.float64)
    few = _merged(terms)
    if len(few) == 1:
        return few[0][1] / few[0][2]
    found = np.empty(count)
    for start in range(0, count, BLOCK):
        part = [(name, top[start : start + BLOCK], below) for name, top, below in few]
        found[start : start + BLOCK] = _rounded(*_sum_of(part), partial(at, start=start))
    return found


BLOCK = 4096
"""Points that are added at a time: what is computed on the way stays in the nearest cache."""


def _merged(terms: Sequence[Term]) -> list[Term]:
    """The same sum of fewer terms: terms are merged if nothing is rounded over their common denominator."""
    found: list[Term] = []
    for name, top, below in terms:
        for k, (_, other, under) in enumerate(found):
            common = lcm(below, under)
            weight, more = float(common // under), float(common // below)
            if float(other.max(initial=0)) * weight + float(top.max(initial=0)) * more < EXACT > common:
                found[k] = name, other * weight + top * more, common
                break
        else:
            found.append((name, top, below))
    return found


def _sum_of(terms: Sequence[Term]) -> tuple[Any, Any]:
    """The sum of the terms as a number and a correction to it."""
    import numpy as np

    count = len(terms[0][1])
    high, low = np.zeros(count), np.zeros(count)
    for _, top, below in terms:
        first = top / below
        back, rest = _two_product(first, float(below))
        low = low + ((top - back) - rest) / below
        high, error = _two_sum(high, first)
        low = low + error
    return _two_sum(high, low)


def over_sum(amount: Any, terms: Sequence[Term]) -> Any:
    """amount / the sum of the terms, 0 if that sum is 0."""
    import numpy as np

    def at(k: int) -> float:
        whole = sum((Fraction(int(top[k]), below) for _, top, below in terms), Fraction(0))
        return float(int(amount[k]) / whole) if whole else 0.0

    count = len(amount)
    if is_exact(amount) or any(is_exact(top) or below >= EXACT for _, top, below in terms):
        return np.array([at(k) for k in range(count)], dtype=np.float64)
    with np.errstate(all="ignore"):
        high, low = _sum_of(terms)
        first = amount / high
        back, rest = _two_product(first, high)
        found = _rounded(first, ((amount - back) - rest - first * low) / high, at)
    found[high == 0] = 0.0
    return found


def _rounded(first: Any, correction: Any, at: Callable[[int], float]) -> Any:
    """first + correction; if the rounding is open, the value of `at` for that point (Ziv 1991)."""
    import numpy as np

    with np.errstate(all="ignore"):
        margin = np.abs(first) * OPEN
        found = first + (correction + margin)
        open_ = np.abs(found - (first + (correction - margin))) > 0  # NaN is not open
    if open_.any():
        for k in np.flatnonzero(open_):
            found[k] = at(int(k))
    return found


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b as the rounded sum and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b as the rounded product and its error."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Any) -> tuple[Any, Any]:
    scaled = 134217729.0 * a  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


# ---- which term is the largest ----

ALIKE = 1e-14
"""Times that differ relatively by less than this are compared as fractions."""


def ordered(terms: Sequence[Term], times: Sequence[Any]) -> tuple[Any, Any, Any]:
    """(the largest time, its index, a code of the terms that bound it (`predict.time_model.bounding`)) at every point.

    times: the terms' values in seconds. `words` decodes the codes. Equal terms stay in their order.
    """
    import numpy as np

    most, largest = times[0], np.zeros(len(times[0]), dtype=np.int64)
    for k, time_s in enumerate(times[1:], 1):
        largest[time_s > most] = k
        most = np.maximum(most, time_s)
    codes = np.where(most > 0, largest + 1, 0)
    # What bounds a point are its terms of at least SAME of the largest. Most points have one such term. Floats decide
    # all but those points with two shares, or a share and SAME, so close that rounding may have exchanged them.
    low = most * (float(SAME) - ALIKE)
    several = np.flatnonzero(sum((time_s >= low).view(np.int8) for time_s in times) > 1)
    if not len(several):
        return most, largest, codes
    part = np.array([time_s[several] for time_s in times])
    top = most[several]
    share = part / np.where(top > 0, top, 1.0)
    near = (share >= float(SAME)) & (part > 0)
    by_size = np.argsort(-share, axis=0, kind="stable")
    sorted_shares = np.take_along_axis(share, by_size, axis=0)
    kept = np.take_along_axis(near, by_size, axis=0)
    close = ((sorted_shares[:-1] - sorted_shares[1:] < ALIKE) & kept[:-1] & (sorted_shares[1:] > 0)).any(axis=0)
    close |= (np.abs(share - float(SAME)) < ALIKE).any(axis=0)
    # The digits of a code, base (number of terms + 1), are the terms from the largest on; a digit 0 ends them.
    code = np.zeros(len(several), dtype=np.int64)
    for rank in range(len(terms)):
        code += np.where(kept[rank], (by_size[rank] + 1) * (len(terms) + 1) ** rank, 0)
    codes[several] = code
    for k in several[close]:
        largest[k], codes[k] = _by_fractions(terms, int(k))
    return most, largest, codes


def _by_fractions(terms: Sequence[Term], k: int) -> tuple[int, int]:
    kept = bounding([Fraction(int(top[k]), below) for _, top, below in terms])
    return kept[0] if kept else 0, sum((i + 1) * (len(terms) + 1) ** rank for rank, i in enumerate(kept))


def words(code: int, names: Sequence[str]) -> str:
    """The text for a code of `ordered`, as in `Prediction.bound`."""
    found = []
    while code:
        code, digit = divmod(code, len(names) + 1)
        found.append(names[digit - 1])
    return bound_text(found)
