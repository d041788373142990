"""Shapes of computations that need few values: what a published proof takes for the most is not (docs/bound.md).

The partition argument says: loads >= T (|V| / H - 1), where T + S values allow H executions. SOAP's constants for
stencils follow with H that are those of boxes. These sets of executions of the shipped kernels need as few values, each
counted, and are larger; ours are not passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from tests.bounds.belady import Task, tasks
from tests.bounds.test_sound import POLYBENCH, bound_of, shipped

Point = tuple[int, ...]


def values_needed(chosen: list[Task]) -> int:
    """How many values the tasks read that none of them makes."""
    read = {v for t in chosen for v in t.reads}
    return len(read - {v for t in chosen for v in t.writes})


def sweeps(name: str, n: int, count: int, dimensions: int) -> Iterator[tuple[Point, Task]]:
    """((sweep from 1, place from the middle), task) of a kernel that sweeps over the inner points of n^dimensions."""
    kernel = shipped(next(p for p in POLYBENCH if p.stem == name))
    each = 1 if name == "seidel_2d" else 2
    found = tasks(kernel, {"n": n, "tsteps": count // each})
    places = product(range(1, count + 1), *[range(1 - n // 2, n - 1 - n // 2)] * dimensions)
    yield from zip(places, found, strict=True)


def cone(r: int) -> Callable[[Point], bool]:
    """Over a diamond, or an octahedron: all that r sweeps make of its values."""
    return lambda p: p[0] + sum(map(abs, p[1:])) <= r


TRAPEZOID = ((0, 0), (-1, 1), (-1, -1), (0, -1))
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))


def seidel(r: int) -> Callable[[Point], bool]:
    """The convex hull of what a point reads, r times as large: sections go from a trapezoid to its mirror image."""

    def inside(p: Point) -> bool:
        s = r - p[0]
        return s >= 0 and all(
            a * p[1] + b * p[2]
            <= (r - s) * max(a * x + b * y for x, y in TRAPEZOID) + s * max(-a * x - b * y for x, y in TRAPEZOID)
            for a, b in SIDES
        )

    return inside


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "dimensions", "shape", "r", "boxes"),
    [
        ("jacobi_2d", 2, cone, 10, lambda s: s**1.5),
        ("seidel_2d", 2, seidel, 6, lambda s: s**1.5 / 2),
        ("heat_3d", 3, cone, 6, lambda s: s ** (4 / 3)),
    ],
    ids=["jacobi_2d", "seidel_2d", "heat_3d"],
)
def test_more_than_a_box(
    name: str, dimensions: int, shape: Callable[[int], Callable[[Point], bool]], r: int, boxes: Callable[[float], float]
) -> None:
    """X = (1 + dimensions) S values allow more executions than SOAP's constant takes for the most."""
    inside = shape(r)
    chosen = [task for point, task in sweeps(name, 2 * r + 5, r, dimensions) if inside(point)]
    needed = values_needed(chosen)
    assert len(chosen) > boxes(needed / (1 + dimensions))
    ours = bound_of(next(p for p in POLYBENCH if p.stem == name)).stencil
    assert ours is not None
    assert len(chosen) <= float(ours.constant * needed**ours.power)
