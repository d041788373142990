"""The number of points of a part whose coordinates depend on each other: sums of polynomials, loop by loop."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.parts import explore
from roofdsl.counts.lines.symbolic import Growing, Undecided


def points(cell: Cell) -> Any:
    """The number of points of a part: a number, or a polynomial of the sizes. Raises Undecided."""
    found = _total(cell.with_forms((1,)))
    return int(found) if isinstance(found, Fraction) else found


def _total(cell: Cell) -> Any:
    """The sum of the part's only form, a polynomial, over its points."""
    if not cell.constraints:
        value = cell.forms[0]
        for u, (low, high) in cell.bounds.items():
            value = sum((c * _powers(p, low, high) for p, c in enumerate(_coefficients(value, u))), 0)
        return value
    u = _separable(cell)
    factors = _coefficients(cell.forms[0], u)
    x = cell.sizes.symbol(u)
    low, high = cell.bounds[u]
    lows: list[Any] = [low]
    highs: list[Any] = [high]
    others = []
    # u + rest >= 0 means u >= -rest = x - constraint; rest - u >= 0 means u <= rest.
    for constraint in cell.constraints:
        factor = constraint.terms.get((u,), 0)
        if not factor:
            others.append(constraint)
        elif factor > 0:
            lows.append(x - constraint)
        else:
            highs.append(constraint + x)
    bounds = {v: ends for v, ends in cell.bounds.items() if v != u}
    rest = Cell(cell.sizes, cell.step, bounds, (*lows, *highs, *factors), tuple(others))
    end = len(lows) + len(highs)

    def ends(c: Cell) -> tuple[Any, Any] | None:
        least, most = c.forms[0], c.forms[len(lows)]
        for other in c.forms[1 : len(lows)]:
            least = other if c.negative(least - other) else least
        for other in c.forms[len(lows) + 1 : end]:
            most = other if c.negative(other - most) else most
        return None if c.negative(most - least) else (least, most)

    total: Any = 0
    for piece, found in explore(rest, ends):
        if found is not None:
            value = sum((c * _powers(p, *found) for p, c in enumerate(piece.forms[end:])), 0)
            total = total + _total(piece.with_forms((value,)))
    return total


def _separable(cell: Cell) -> int:
    """A coordinate for which all constraints that contain it can be solved. Raises Undecided if there is none."""
    count = cell.sizes.count
    tied = {u for c in cell.constraints for m in c.terms for u in m if u >= count}
    unit = [u for u in tied if all(abs(c.terms.get((u,), 1)) == 1 for c in cell.constraints)]
    if not unit:
        raise Undecided("coordinates that are tied by multiples")
    return min(unit, key=lambda u: sum((u,) in c.terms for c in cell.constraints))


def _coefficients(value: Any, u: int) -> list[Any]:
    """The coefficients of a polynomial by the powers of a coordinate: 0, 1, and so on."""
    if not isinstance(value, Growing):
        return [value]
    found: dict[int, Any] = {0: value.constant}
    for monomial, factor in value.terms.items():
        power = monomial.count(u)
        rest = tuple(v for v in monomial if v != u)
        found[power] = found.get(power, 0) + (Growing(value.sizes, {rest: factor}, 0) if rest else factor)
    return [found.get(p, 0) for p in range(max(found) + 1)]


def _powers(power: int, low: Any, high: Any) -> Any:
    """The sum of the p-th powers of low, ..., high; 0 if high is low - 1."""
    if power == 0:
        return high - low + 1
    return _up_to(power, high) - _up_to(power, low - 1)


def _up_to(power: int, value: Any) -> Any:
    """The sum of the p-th powers of 0, ..., value as Faulhaber's polynomial."""
    total: Any = 0
    term: Any = 1
    factors = _faulhaber(power)
    for factor in factors:
        total = total + term * factor
        term = term * value
    return total


def _faulhaber(power: int) -> list[Fraction]:
    """Coefficients of x**0, x**1, ... in the sum of k**power for k = 0 to x."""
    numbers: list[Fraction] = []  # Bernoulli's, with +1/2
    for m in range(power + 1):
        numbers.append(Fraction(1) - sum((comb(m, k) * numbers[k] / (m - k + 1) for k in range(m)), Fraction(0)))
    found = [Fraction(0)] * (power + 2)
    for k, number in enumerate(numbers):
        found[power + 1 - k] = comb(power + 1, k) * number / (power + 1)
    return found
