"""Exponents of the discrete Brascamp-Lieb (Loomis-Whitney, Hoelder) inequality for projections of a lattice.

For linear maps phi_j on Z^n and exponents s_j in [0, 1], every finite set E satisfies |E| <= prod_j |phi_j(E)|^(s_j) if
and only if dim H <= sum_j s_j dim phi_j(H) for all subspaces H (Christ, Demmel, Knight, Scanlon, Yelick 2013, Theorem
3.2; Bennett, Carbery, Christ, Tao 2010). It suffices to require this for the lattice of subspaces that the null
spaces of the phi_j generate by sum and intersection (Valdimarsson 2010). Loomis and Whitney 1949 is the case of the n
projections along one coordinate each, all s_j = 1 / (n - 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations

Row = tuple[Fraction, ...]
Space = tuple[Row, ...]
"""A subspace by the rows of its reduced echelon form: equal spaces have equal rows."""

MOST_SPACES = 60
"""With more subspaces in the lattice, no exponents are sought."""


def echelon(rows: Sequence[Sequence[Fraction | int]]) -> Space:
    """The reduced echelon form of the span of the rows."""
    left = [[Fraction(x) for x in row] for row in rows]
    done: list[list[Fraction]] = []
    for column in range(len(left[0]) if left else 0):
        pivot = next((r for r in left if r[column]), None)
        if pivot is None:
            continue
        head = pivot[column]
        unit = [x / head for x in pivot]
        left = [_without(r, unit, column) for r in left if r is not pivot]
        # The rows above lose the column, too: only then does a space have one form, by which spaces are compared.
        done = [_without(r, unit, column) for r in done]
        done.append(unit)
    return tuple(tuple(r) for r in done)


def _without(row: list[Fraction], unit: list[Fraction], column: int) -> list[Fraction]:
    factor = row[column]
    return [x - factor * u for x, u in zip(row, unit, strict=True)] if factor else row


def null_space(rows: Sequence[Sequence[Fraction | int]], dimensions: int) -> Space:
    """The vectors that all rows map to 0."""
    form = echelon(rows)
    pivots = [next(c for c, x in enumerate(r) if x) for r in form]
    vectors = []
    for free in (c for c in range(dimensions) if c not in pivots):
        vector = [Fraction(int(c == free)) for c in range(dimensions)]
        for r, p in zip(form, pivots, strict=True):
            vector[p] = -r[free]
        vectors.append(vector)
    return echelon(vectors)


def exponents(null_spaces: Sequence[Space], dimensions: int) -> list[tuple[Fraction, ...]]:
    """The optimal vertices of the linear program min sum(s): one exponent for each null space of a projection.

    `null_spaces` are distinct. Empty if no exponents bound the number of points (a direction is in every null space),
    or if there are too many subspaces.
    """
    return list(_exponents(tuple(null_spaces), dimensions))


@lru_cache(maxsize=64)
def _exponents(null_spaces: tuple[Space, ...], dimensions: int) -> tuple[tuple[Fraction, ...], ...]:
    """`exponents`, once for all statements with the same projections."""
    spaces = _generated(null_spaces, dimensions)
    if spaces is None:
        return ()
    rows: set[tuple[tuple[int, ...], int]] = set()
    for space in spaces:
        # The dimension of a subspace's projection: its own dimension less that of its part in the null space.
        kept = tuple(len(space) - _common(space, k, dimensions) for k in null_spaces)
        rows.add((kept, len(space)))
    needed = [r for r in rows if not any(_implies(other, r) for other in rows if other != r)]
    return tuple(_vertices(needed, len(null_spaces)))


def _implies(a: tuple[tuple[int, ...], int], b: tuple[tuple[int, ...], int]) -> bool:
    """Whether a, (a_j, c), obviously implies b, (b_j, d): sum a_j s_j >= c implies sum b_j s_j >= d for all s >= 0."""
    return b[1] <= a[1] and all(x <= y for x, y in zip(a[0], b[0], strict=True))


def _common(a: Space, b: Space, dimensions: int) -> int:
    """The dimension of the intersection."""
    return len(a) + len(b) - len(echelon([*a, *b])) if a and b else 0


def _generated(null_spaces: Sequence[Space], dimensions: int) -> set[Space] | None:
    """The lattice of the null spaces, with the whole space and without the zero space; None beyond MOST_SPACES."""
    whole = echelon([[int(r == c) for c in range(dimensions)] for r in range(dimensions)])
    found = {whole, *(k for k in null_spaces if k)}
    pending = list(found)

    @cache
    def normal(space: Space) -> Space:
        return null_space(space, dimensions)

    while pending:
        space = pending.pop()
        for other in list(found):
            both = null_space([*normal(space), *normal(other)], dimensions)
            for new in (echelon([*space, *other]), both):
                if new and new not in found:
                    found.add(new)
                    pending.append(new)
        if len(found) > MOST_SPACES:
            return None
    return found


def _vertices(rows: list[tuple[tuple[int, ...], int]], count: int) -> list[tuple[Fraction, ...]]:
    """The vertices of least sum of {0 <= s <= 1, sum_j row_j s_j >= bound for all rows}."""
    halves = [(tuple(map(Fraction, row)), Fraction(bound)) for row, bound in rows]
    for j in range(count):
        unit = tuple(Fraction(int(i == j)) for i in range(count))
        halves += [(unit, Fraction(0)), (tuple(-u for u in unit), Fraction(-1))]
    best: dict[tuple[Fraction, ...], Fraction] = {}
    # There are few exponents: a vertex is a point where as many constraints as unknowns hold with equality, and all
    # groups of that many constraints are tried.
    for chosen in combinations(halves, count):
        point = _solution([[*row, bound] for row, bound in chosen], count)
        if point is not None and all(
            sum((a * s for a, s in zip(row, point, strict=True)), Fraction(0)) >= bound for row, bound in halves
        ):
            best[point] = sum(point, Fraction(0))
    least = min(best.values(), default=Fraction(0))
    return sorted(p for p, total in best.items() if total == least)


def _solution(rows: list[list[Fraction]], count: int) -> tuple[Fraction, ...] | None:
    form = echelon(rows)
    if len(form) != count or any(not form[i][i] for i in range(count)):
        return None
    return tuple(form[i][count] for i in range(count))


def averages(points: Sequence[tuple[Fraction, ...]], most: int = 5) -> Iterator[tuple[Fraction, ...]]:
    """The averages of all groups among the first `most` points, single ones included: all are just as optimal."""
    some = points[:most]
    for size in range(1, len(some) + 1):
        for group in combinations(some, size):
            yield tuple(sum(column, Fraction(0)) / size for column in zip(*group, strict=True))
