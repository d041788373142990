"""Ranges as people write them: `n=1..4096:*2,b=8..128:+8`, `n=64,100,1000`, `32KiB..1MiB:*2`.

`a..b:*f` is a, a*f, a*f**2, ... up to b; `a..b:+s` is a, a + s, ... up to b; `a..b` takes every integer. Values may be
listed, and all values belong to the name before them, until the next name.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.units import UnitError, parse_count, parse_size

MOST_VALUES = 10_000_000
"""The maximum number of values of one range with a constant step."""

MOST_POINTS = 50_000_000
"""The maximum number of points of a sweep."""

LARGEST = 2**62

FEW_VALUES = 10_000
"""The maximum number of values that are listed as Python integers."""

PRECISION = 256
"""The bits after the binary point in the bounds on a power: so close that they seldom contain an integer."""

MOST_OF_FACTOR = 20
"""The maximum number of characters of a factor."""

_TOO_MANY = f"a geometric range has more than {FEW_VALUES:,} values"


def parse_ranges(text: str) -> dict[str, Sequence[int]]:
    """The values of each name, in the order written, each once. A single range with a constant step stays a range:
    millions of values take no memory.

    Raises CommandError.
    """
    found: dict[str, list[Sequence[int]]] = {}
    name = ""
    for part in text.split(","):
        before, equals, after = (s.strip() for s in part.partition("="))
        if equals:
            if not before.isidentifier():
                raise CommandError(f"`{part.strip()}` is not of the form n=1..4096:*2")
            name = before
            if name in found:
                raise CommandError(f"`{name}` is given twice in `{text}`", f"list its values: {name}=1,2,4")
            found[name] = []
        elif not name:
            raise CommandError(f"`{part.strip()}` is not of the form n=1..4096:*2")
        found[name].append(_values(after if equals else before, f"`{name}`", _integer))
    require_few(prod(sum(map(len, parts)) for parts in found.values()))
    return {n: _each_once(parts) for n, parts in found.items()}


def _each_once(parts: Sequence[Sequence[int]]) -> Sequence[int]:
    """The values of all parts in order: a single range as it is, up to FEW_VALUES as a tuple, more as an array with 8
    bytes per value.
    """
    if len(parts) == 1 and isinstance(parts[0], range):
        return parts[0]
    listed: set[int] = set()
    before: list[range] = []
    values = array("q")
    for part in parts:
        if isinstance(part, range):
            values.extend(v for v in part if v not in listed and not any(v in r for r in before))
            before.append(part)
            continue
        for v in part:
            if v not in listed and not any(v in r for r in before):
                listed.add(v)
                values.append(v)
    return tuple(values) if len(values) <= FEW_VALUES else values


def require_few(points: int) -> None:
    """Raise CommandError for more points than a sweep supports."""
    if points > MOST_POINTS:
        raise CommandError(f"the sweep has {points:,} points, and the limit is {MOST_POINTS:,}", "use larger steps")


def parse_sizes(text: str) -> tuple[int, ...]:
    """`32KiB..1MiB:*2,8MiB` in bytes, in the order written. Raises CommandError."""
    return tuple(dict.fromkeys(v for part in text.split(",") for v in _values(part.strip(), "a cache", _size)))


def _integer(text: str, what: str) -> int:
    """`what` names the number in messages, as in "`n`" or "the step of `n`"."""
    try:
        value = parse_count(text)
    except UnitError:
        raise CommandError(
            f"`{text[:40]}` for {what} is not an integer", "write n=64, n=1..4096:*2 or n=8..64:+8"
        ) from None
    if not 0 < value <= LARGEST:
        allowed = "at most 2**62" if value > 0 else "a positive integer"
        raise CommandError(f"{what} is {allowed}, and {text[:40]} is given")
    return value


def _size(text: str, what: str) -> int:
    try:
        size = parse_size(text)
    except UnitError as error:
        raise CommandError(str(error)) from None
    if size > LARGEST:  # the column of cache sizes has 64-bit integers
        raise CommandError(f"{what} has at most 2**62 B, and {text[:40]} is given")
    return size


def _values(text: str, what: str, number: Callable[[str, str], int]) -> Sequence[int]:
    """The values of one range or number."""
    low_text, dots, rest = text.partition("..")
    if not dots:
        return [number(text, what)]
    high_text, _, step_text = (s.strip() for s in rest.partition(":"))
    low, high = number(low_text.strip(), what), number(high_text, what)
    if high < low:
        raise CommandError(f"the range `{text}` of {what} ends before it begins")
    if step_text.startswith("*"):
        return _geometric(low, high, _factor(step_text[1:], text))
    step = 1
    if step_text:
        if not step_text.startswith("+"):
            raise CommandError(f"`:{step_text}` in `{text}` is not a step", "write `:*2` to double, `:+8` to add 8")
        step = number(step_text[1:].strip(), f"the step of {what}")
    if (high - low) // step >= MOST_VALUES:
        raise CommandError(f"the range `{text}` of {what} has more than {MOST_VALUES:,} values", "use a larger step")
    return range(low, high + 1, step)


def _factor(text: str, whole: str) -> Fraction:
    try:
        factor = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise CommandError(f"`*{text}` in `{whole}` is not a factor", "write `:*2`, or `:*1.5`") from None
    if len(text) > MOST_OF_FACTOR:
        message = f"the factor of `{whole}` has more than {MOST_OF_FACTOR} characters"
        raise CommandError(message, "write a shorter one, such as `:*1.05` or `:*21/20`")
    if factor <= 1:
        raise CommandError(f"the factor of `{whole}` is {text.strip()[:20]}, but a factor must be greater than 1")
    return factor


def _geometric(low: int, high: int, factor: Fraction) -> list[int]:
    """low * factor**k, rounded down, each integer once; exact, although only bounds on each power are kept."""
    top, bottom = factor.numerator, factor.denominator
    every = bottom // (top - bottom)  # values up to here grow by steps of at most 1, which meet every integer
    if min(high, every + 1) - low > FEW_VALUES:
        raise CommandError(_TOO_MANY, "use a larger factor")
    if low < high <= every:  # no power is `high` itself: that needs a step of 1 at least
        return list(range(low, high))
    found: list[int] = []
    below = above = low << PRECISION
    k = 0
    while True:
        whole = below >> PRECISION
        if above >> PRECISION > whole:
            whole = low * top**k // bottom**k
        if whole > high or (whole == high and low * top**k > high * bottom**k):
            return found
        if not found or found[-1] != whole:
            found.append(whole)
        if len(found) > FEW_VALUES:
            raise CommandError(_TOO_MANY, "use a larger factor")
        below, above, k = below * top // bottom, -(-above * top // bottom), k + 1


def points_of(ranges: Mapping[str, Sequence[int]]) -> int:
    """The number of points in the product of the ranges."""
    total = 1
    for values in ranges.values():
        total *= len(values)
    return total
