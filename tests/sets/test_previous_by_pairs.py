"""The previous access from pairs of references: against the library's maximum, and against accesses one by one."""

from __future__ import annotations

import random
from itertools import product

import islpy as isl
import pytest

from roofdsl.sets.previous import NotCertified, previous_access
from roofdsl.sets.previous_by_pairs import previous_by_pairs

SIZES = (1, 2, 5)


def references(seed: int) -> list[isl.Map]:
    """References to one array in one or two nests of two loops, in a loop over time around them that no subscript has,
    or not; some are made in a part of the iterations only.
    """
    draw = random.Random(seed)
    loop = "0 <= t < 3" if draw.random() < 0.5 else "t = 0"
    swapped = draw.random() < 0.2
    found = []
    for place in range(draw.randrange(2, 8)):
        a, b = draw.randrange(-2, 3), draw.randrange(-2, 3)
        nest = draw.randrange(2)
        low, high = draw.choice(["0", "1"]), draw.choice(["n", "n - 1", "m"])
        where = f"{low} <= i < {high} and 0 <= j < m" + draw.choice(["", "", " and j <= i"])
        element = f"j + {a}, i + {b}" if swapped and nest else f"i + {a}, j + {b}"
        found.append(isl.Map(f"[n, m] -> {{ T[t, {nest}, i, j, {place}] -> A[{element}] : {loop} and {where} }}"))
    return found


def enumerated(located: list[isl.Map], n: int, m: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Access -> the previous one to its line, by going through all accesses in order."""
    at = isl.Set(f"[n, m] -> {{ : n = {n} and m = {m} }}")
    accesses: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for location in located:
        points: list[isl.Point] = []
        location.intersect_params(at).wrap().foreach_point(points.append)
        for point in points:
            values = [point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(7)]
            accesses.append((tuple(values[:5]), tuple(values[5:])))
    last: dict[tuple[int, ...], tuple[int, ...]] = {}
    found = {}
    for access, line in sorted(accesses):
        if line in last:
            found[access] = last[line]
        last[line] = access
    return found


@pytest.mark.spread(3)
@pytest.mark.parametrize("seed", range(16))
def test_pairs_find_what_was_accessed_before(seed: int) -> None:
    located = references(seed)
    found = previous_by_pairs(located)
    if found is None:  # accesses in other orders are at many distances; how many kernels are left so is tested below
        return
    union = located[0]
    for location in located[1:]:
        union = union.union(location)
    assert found.is_equal(previous_access(union.coalesce()))
    for n, m in product(SIZES, SIZES):
        at = isl.Set(f"[n, m] -> {{ : n = {n} and m = {m} }}")
        points: list[isl.Point] = []
        found.intersect_params(at).wrap().foreach_point(points.append)
        rows = [[p.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(10)] for p in points]
        assert {tuple(r[:5]): tuple(r[5:]) for r in rows} == enumerated(located, n, m)
        assert len(rows) == len({tuple(r[:5]) for r in rows})


def test_most_stencils_are_found_by_pairs() -> None:
    assert sum(previous_by_pairs(references(seed)) is not None for seed in range(16)) >= 8


def test_lines_of_several_elements_are_left_to_the_library() -> None:
    located = [isl.Map(f"[n] -> {{ T[i, {p}] -> A[floor((i + {p})/8)] : 0 <= i < n }}") for p in range(3)]
    assert previous_by_pairs(located) is None


def test_a_wrong_maximum_of_a_pair_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a line is touched in every iteration of a loop, the latest one is the library's answer: certified."""
    located = [isl.Map(f"[n] -> {{ T[t, i, {p}] -> A[i + {p}] : 0 <= t < 3 and 0 <= i < n }}") for p in range(2)]
    monkeypatch.setattr(isl.Map, "lexmax", isl.Map.lexmin)
    with pytest.raises(NotCertified):
        previous_by_pairs(located)
