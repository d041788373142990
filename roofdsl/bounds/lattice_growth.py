"""How much a finite set A of lattice points grows when a neighbourhood K is added: |A + K| >= |A| + c |A|^((m-1)/m).

There are five arguments, each for every finite A in Z^m; the largest c among them is used.

- Lines: where K holds l_j + 1 points in a row in each of m independent directions, |A + K| - |A| >= l_j |A along j|
  (every line that meets A gains l_j points), and the m shadows multiply to at least |A|^(m-1) (Loomis, Whitney 1949):
  c = (l_1 ... l_m)^(1/m).
- Boxes: where K holds a box of (a_1 + 1) x ... x (a_m + 1) points, unit cubes about the points and the inequality of
  Brunn and Minkowski give c = m (a_1 ... a_m)^(1/m).
- Two rows in the plane: where K holds l + 1 points in a row on one line and k + 1 on a parallel one, l >= k. Let a_z be
  the sizes of A on lines that are such a step apart, and u = a_p the largest. Line z of A + K has at least a_(z+1) + l
  points if a_(z+1) > 0, and at least a_z + k points if a_z > 0. For z < p take the first number: the gains
  a_(z+1) - a_z + l add up to u + l, and another l for each line of A before p. From p on, take the larger number: each
  line of A gains l - (a_z - a_(z+1)), or k if that is more or the line is the last. So a gain of k on any other line
  takes a fall of at least l - k. For a given total gain, |A| is largest if each of these lines gains either l or k, and
  those that gain k come last. If M lines in total gain l and n gain k, |A| <= u (M + n) - (l - k) n (n - 1) / 2. The
  total gain is u + l + l M + k n, and its square is at least 2 (l + k) |A|: c = sqrt(2 (l + k)), attained by large
  trapezoids, as Brunn and Minkowski say.
- The cross in the plane (a point and its four neighbours): |A + K| >= |A| + sqrt(8 |A| - 4) + 2, attained by diamonds
  (Wang, Wang 1977, SIAM J. Appl. Math. 33): c = 2 sqrt(2).
- The cross in space, from the one in the plane: layer z of A + K has at least max(a_z + 2 sqrt(2 a_z), a_(z-1),
  a_(z+1)) points. With weights w(a) = sqrt(a / u), u the largest layer, it gains at least w(a_z) 2 sqrt(2 a_z) =
  2 sqrt(2) a_z / sqrt(u), and 1 - w(a_z) times its distance to a larger neighbour. On each side of the largest layer,
  the second terms add up to at least the integral of 1 - w(a) for a from 0 to u, which is u / 3. The total,
  2 u / 3 + 2 sqrt(2) |A| / sqrt(u), is least for u^(3/2) = 3 |A| / sqrt(2): c = 2 (9/2)^(1/3) = 3.302, attained by
  octahedra.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import sympy

from roofdsl.bounds.exponents import echelon

Point = tuple[int, ...]


def growth(points: frozenset[Point], dimensions: int) -> Any:
    """The constant c as a sympy number; 0 if none of the arguments applies."""
    found = [*_by_lines(points, dimensions), *_by_boxes(points, dimensions), *_by_rows(points), *_by_cross(points)]
    return max([sympy.Integer(0), *found])


def _by_lines(points: frozenset[Point], m: int) -> Iterator[Any]:
    longest: dict[Point, int] = {}
    for step, _, length in _runs(points):
        longest[step] = max(length, longest.get(step, 0))
    for steps in combinations(sorted(longest, key=lambda s: -longest[s])[:8], m):
        if len(echelon(steps)) == m:
            yield sympy.root(sympy.prod([longest[s] for s in steps]), m)


def _runs(points: frozenset[Point]) -> Iterator[tuple[Point, Point, int]]:
    """For each point and direction, (step, first point, number of steps) of the run of points that starts there."""
    for a, b in product(points, points):
        step = tuple(y - x for x, y in zip(a, b, strict=True))
        if any(step) and next(s for s in step if s) > 0:
            length, at = 1, tuple(y + s for y, s in zip(b, step, strict=True))
            while at in points:
                length, at = length + 1, tuple(y + s for y, s in zip(at, step, strict=True))
            yield step, a, length


def _by_rows(points: frozenset[Point]) -> Iterator[Any]:
    if any(len(p) != 2 for p in points):
        return
    runs = list(_runs(points))
    for step, start, length in runs:
        yield from (
            sympy.sqrt(2 * (length + other))
            for same, at, other in (*runs, *((step, p, 0) for p in points))
            if same == step and len(echelon([step, tuple(y - x for x, y in zip(start, at, strict=True))])) == 2
        )


def _by_boxes(points: frozenset[Point], m: int) -> Iterator[Any]:
    most = [max(p[i] for p in points) - min(p[i] for p in points) for i in range(m)]
    for sides in product(*(range(1, side + 1) for side in most)):
        cells = list(product(*(range(side + 1) for side in sides)))
        for corner in points:
            if all(tuple(c + d for c, d in zip(corner, cell, strict=True)) in points for cell in cells):
                yield m * sympy.root(sympy.prod(sides), m)
                break


def _by_cross(points: frozenset[Point]) -> Iterator[Any]:
    known = {2: 2 * sympy.sqrt(2), 3: 2 * sympy.root(sympy.Rational(9, 2), 3)}
    for p in points:
        around = {(*p[:d], p[d] + step, *p[d + 1 :]) for d in range(len(p)) for step in (1, -1)}
        if len(p) in known and around <= points:
            yield known[len(p)]
            return
