"""Tile sizes for a machine's caches: a descent over sizes, which compares upper bounds on the traffic
(`traffic_upper_bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, sub
from roofdsl.loops.model import For

Sizes = dict[str, int]
"""The tile size of each loop that is tiled."""

Cost = tuple[Fraction, Fraction]
"""The longest of the levels' times, and their sum as the tie-breaker."""

SQUARES = (16, 32, 64, 128, 256)
"""The sizes of the square tiles from which the descent may start."""

MOST_TRIED = 40
"""The maximum number of combinations of sizes whose cost is found."""

SMALLEST = 4
"""The smallest size of a tile that is tried."""


def extents(nest: Sequence[For], values: Mapping[str, int]) -> Sizes:
    """The trip counts of the loops whose bounds are numbers at `values`."""
    found: Sizes = {}
    numbers = {name: Const(value) for name, value in values.items()}
    for loop in nest:
        length = affine(sub(loop.stop, loop.start).substitute(numbers)).expression()
        if isinstance(length, Const) and loop.step == Const(1) and length.value > 0:
            found[loop.var] = length.value
    return found


def choices(extent: int, multiple_of: int = 1, dividing: bool = False) -> list[int]:
    """Sizes worth trying for a loop of `extent` iterations: powers of two, and divisors that are multiples of 4, below
    the extent.

    `dividing`: divisors only.
    """
    powers = [1 << k for k in range(2, 13)]
    divisors = [n for n in range(8, min(extent, 2048)) if extent % n == 0 and n % 4 == 0]
    found = sorted({n for n in (*powers, *divisors) if SMALLEST <= n < extent and n % multiple_of == 0})
    return [n for n in found if not dividing or extent % n == 0]


def best_tiles(
    by_loop: Mapping[str, Sequence[int]], cost: Callable[[Sizes], Cost | None], most: int = MOST_TRIED
) -> tuple[Sizes, Cost] | None:
    """The cheapest sizes found by descent: start from the best square, then change one size at a time while that helps.

    by_loop: the choices of each loop in ascending order. The result omits loops that stay untiled. At most `most`
    combinations are tried. None if nothing can be tiled or nothing has a cost.
    """
    tried: dict[tuple[tuple[str, int], ...], Cost | None] = {}

    def of(sizes: Sizes) -> Cost | None:
        key = tuple(sizes.items())
        if key not in tried:
            tried[key] = cost(sizes) if len(tried) < most else None
        return tried[key]

    best: tuple[Sizes, Cost] | None = None
    for size in SQUARES:
        square = {v: max((n for n in own if n <= size), default=own[0]) for v, own in by_loop.items() if own}
        found = of(square) if square else None
        if found is not None and (best is None or found < best[1]):
            best = square, found
    if best is None:
        return None
    while True:
        costs = ((sizes, of(sizes)) for sizes in _neighbours(best[0], by_loop))
        better = next(((sizes, found) for sizes, found in costs if found is not None and found < best[1]), None)
        if better is None:
            return best
        best = better


def _neighbours(sizes: Sizes, by_loop: Mapping[str, Sequence[int]]) -> list[Sizes]:
    """The next sizes: one loop's size larger or smaller, or that loop untiled."""
    found: list[Sizes] = []
    for var, own in by_loop.items():
        if var not in sizes:
            continue
        at = own.index(sizes[var])
        for to in (at + 1, at - 1):
            if 0 <= to < len(own):
                found.append({**sizes, var: own[to]})
        if len(sizes) > 1:
            found.append({v: n for v, n in sizes.items() if v != var})
    return found
