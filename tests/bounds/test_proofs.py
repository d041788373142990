"""The inequalities of docs/proofs.md against enumeration: small sets, random sets, the largest sets that are known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest

from roofdsl.bounds.bound import bound
from roofdsl.bounds.staggered import Staggered, most_executions
from tests.bounds.belady import Task, tasks
from tests.bounds.test_shapes import values_needed
from tests.bounds.test_sound import POLYBENCH, bound_of, shipped
from tests.oracle.loading import kernel_of

Pair = tuple[int, int]
Triple = tuple[int, int, int]

NUSSINOV = next(p for p in POLYBENCH if p.stem == "nussinov")
FDTD = next(p for p in POLYBENCH if p.stem == "fdtd_2d")


# ---- interval products ----


def triples(points: int, role: dict[Pair, str]) -> list[Triple]:
    """All triples whose pairs may have their role: F an operand, R a result, B both."""
    every = combinations(range(points), 3)
    return [(i, k, j) for i, k, j in every if role[i, k] in "FB" and role[k, j] in "FB" and role[i, j] in "RB"]


def objects(found: list[Triple]) -> tuple[int, int, int]:
    """(|F|, |R|, x) of the theorem."""
    left, right = {(i, k) for i, k, _ in found}, {(k, j) for _, k, j in found}
    results = {(i, j) for i, _, j in found}
    return len(left | right), len(results), len(left & results)


def holds(found: list[Triple]) -> bool:
    f, r, x = objects(found)
    if x == 0 and 4 * len(found) ** 2 > f**2 * r:
        return False
    return 27 * len(found) ** 2 <= (f + r + 5 * x) ** 3


def test_all_sets_of_few_points() -> None:
    pairs = list(combinations(range(4), 2))
    for roles in product("FRB-", repeat=len(pairs)):
        assert holds(triples(4, dict(zip(pairs, roles, strict=True))))


@pytest.mark.parametrize("kinds", ["FR", "FRB", "B", "FFR", "FRR", "FR-"])
def test_random_sets(kinds: str) -> None:
    rng = random.Random(kinds)
    for points in [5, 6, 7, 8, 9, 12, 16] * 10:
        role = {p: rng.choice(kinds) for p in combinations(range(points), 2)}
        found = triples(points, role)
        assert holds(found)
        assert holds(rng.sample(found, len(found) // 2))


@pytest.mark.parametrize("groups", [3, 4, 5, 8])
def test_chains_of_groups(groups: int) -> None:
    """Operands from each group to the next, so that all but the ends serve on both sides; three attain the bound."""
    size = 6

    def role(a: int, b: int) -> str:
        return {1: "F", 2: "R"}.get(b // size - a // size, "-")

    found = triples(groups * size, {(a, b): role(a, b) for a, b in combinations(range(groups * size), 2)})
    f, r, x = objects(found)
    assert (f, r, x, len(found)) == ((groups - 1) * size**2, (groups - 2) * size**2, 0, (groups - 2) * size**3)
    assert holds(found)
    assert (27 * len(found) ** 2 == (f + r) ** 3) == (groups == 3)


def test_an_order_is_needed() -> None:
    """Without it, as in a circle, there are more triples for as many pairs: the proof must use i < k < j."""
    operands, results = {(a, (a + 1) % 3) for a in range(3)}, {(a, (a + 2) % 3) for a in range(3)}
    found = [(i, k, j) for i, k, j in product(range(3), repeat=3) if {(i, k), (k, j)} <= operands and (i, j) in results]
    assert 27 * len(found) ** 2 > (len(operands) + len(results)) ** 3


def test_pairs_of_both_kinds_count() -> None:
    """Operands up to 0.7 n apart, results from 0.25 n on: more than disjoint sets allow. So 5 x is needed."""
    n = 160
    apart = np.subtract.outer(np.arange(n), np.arange(n)).T
    operand, result = (apart > 0) & (apart <= 0.7 * n), apart >= 0.25 * n
    found = int(((operand.astype(int) @ operand.astype(int)) * result).sum())
    f, r, x = int(operand.sum()), int(result.sum()), int((operand & result).sum())
    assert 27 * found**2 > 1.1 * (f + r) ** 3
    assert 4 * found**2 > 1.1 * f**2 * r
    assert 27 * found**2 < (f + r + 5 * x) ** 3


def test_segments_of_nussinov() -> None:
    """What a segment of the written order does, against the objects that it reads, final or under way."""
    n = 24
    written = [t for t in tasks(shipped(NUSSINOV), {"n": n}) if "k" in t.at[1]]
    for size in (40, 200, 800):
        for start in range(0, len(written), size):
            part = [t.at[1] for t in written[start : start + size]]
            assert holds([(n - 1 - at["r"], at["k"] + 1, at["j"] + 1) for at in part])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "by_length",
            """kernel chain(n):
    in p: f64[n + 1]
    inout m: f64[n, n]
    for w in range(1, n), i in range(n - w), k in range(i, i + w):
        m[i, i + w] = min(m[i, i + w], m[i, k] + m[k + 1, i + w])
""",
        ),
        (
            "transposed",
            """kernel chain(n):
    inout m: f64[n, n]
    for j in range(n), r in range(n - j, n), k in range(n - 1 - r, j):
        m[j, n - 1 - r] = min(m[j, n - 1 - r], m[k, n - 1 - r] + m[j, k + 1])
""",
        ),
    ],
)
def test_other_ways_to_write_it(name: str, text: str) -> None:
    """The order of the loops and of the subscripts does not matter."""
    found = bound(kernel_of(text))
    assert found.partition is not None
    (part,) = found.partition.parts
    assert part.piece.finished is not None
    assert str(found.partition.leading) in ("n**3/(3*sqrt(S))", "sqrt(3)*n**3/(3*sqrt(3)*sqrt(S))"), name


def test_no_interval_product() -> None:
    """Operands that are results of another stage are matrices of a product, however they are named."""
    text = """kernel step(n):
    inout m: f64[n, n]
    for k in range(n), i in range(n), j in range(n):
        m[i, j] = min(m[i, j], m[i, k] + m[k, j])
"""
    found = bound(kernel_of(text))
    assert found.partition is not None
    assert all(p.piece.finished is None for p in found.partition.parts)


WIDEST = "for w in range(1, n), i in range(w), k in range(i + 1, n - w + i):\n        "
NARROWEST = "for w in range(2, n), i in range(n - w):\n        "


@pytest.mark.parametrize(
    "body",
    [
        WIDEST + "m[i, i + n - w] += m[i, k] * m[k, i + n - w]",
        NARROWEST + "for k in range(i + 1, i + w):\n            m[i, i + w] += m[i, k] * m[k, i + w]\n"
        "        m[i, i + w] = v[i, i + w]",
        "for w in range(2, n), i in range(n - w):\n        m[i, i + w] = v[i, i + w]\n"
        "    " + WIDEST + "m[i, i + n - w] += m[i, k] * m[k, i + n - w]",
    ],
    ids=["values from before", "overwritten", "initialised"],
)
def test_operands_that_are_not_final(body: str) -> None:
    """An operand that does not wait for its element's updates may be used, and its element be updated, ever again.

    The theorem's x has no limit then: the long ones first, of values from before, do more than it would allow.
    """
    kernel = kernel_of(f"kernel product(n):\n    in v: f64[n, n]\n    inout m: f64[n, n]\n    {body}\n")
    found = bound(kernel)
    assert found.partition is not None
    assert all(p.piece.finished is None for p in found.partition.parts)


def test_values_from_before_allow_more() -> None:
    """Why the last test must hold: these executions need too few values for an interval product."""
    n = 40
    kernel = kernel_of(
        f"kernel product(n):\n    inout m: f64[n, n]\n    {WIDEST}m[i, i + n - w] += m[i, k] * m[k, i + n - w]\n"
    )
    chosen = []
    for task in tasks(kernel, {"n": n}):
        i, k, j = task.at[1]["i"], task.at[1]["k"], task.at[1]["i"] + n - task.at[1]["w"]
        if j - i >= 0.3 * n and max(k - i, j - k) <= 0.7 * n and k != i + 1:
            chosen.append(task)
    assert 27 * len(chosen) ** 2 > values_needed(chosen) ** 3


# ---- staggered grids ----

Vertex = tuple[int, int]
Edge = tuple[Vertex, Vertex]
Sets = tuple[list[set[Vertex]], list[set[Edge]]]
"""The vertices made at times 0, 1, ..., and the edges."""


def beside(q: Vertex) -> list[Vertex]:
    return [(q[0] + i, q[1] + j) for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))]


def edges_at(vertices: set[Vertex]) -> set[Edge]:
    """All that touch one of them."""
    return {(min(q, p), max(q, p)) for q in vertices for p in beside(q)}


def within(vertices: set[Vertex]) -> set[Edge]:
    return {e for e in edges_at(vertices) if set(e) <= vertices}


def around(vertices: set[Vertex]) -> set[Vertex]:
    return vertices | {p for q in vertices for p in beside(q)}


def items(sets: Sets) -> int:
    """Values that they need and do not make, by the scheme itself."""
    vertices, edges = sets
    none_v: set[Vertex] = set()
    none_e: set[Edge] = set()
    total = 0
    for t in range(len(vertices) + 1):
        now, before = (vertices[t] if t < len(vertices) else none_v), (vertices[t - 1] if t else none_v)
        mine, after = (edges[t] if t < len(edges) else none_e), (edges[t + 1] if t + 1 < len(edges) else none_e)
        total += len((now | {q for e in mine for q in e}) - before) + len((after | edges_at(now)) - mine)
    return total + len(edges[0])  # edges of the first time read themselves


def executions(sets: Sets) -> int:
    return sum(map(len, sets[0])) + sum(map(len, sets[1]))


def prism(start: set[Vertex], grow: int, stay: int, shrink: int) -> Sets:
    """A set that grows as fast as its edges reach, stays, and shrinks to what it can do without anything new."""
    vertices, edges = [start], [within(start)]
    for _ in range(grow):
        edges.append(edges_at(vertices[-1]))
        vertices.append(around(vertices[-1]))
    for _ in range(stay):
        edges.append(edges_at(vertices[-1]))
        vertices.append(vertices[-1])
    for _ in range(shrink):
        edges.append(within(vertices[-1]))
        vertices.append({q for q in vertices[-1] if edges_at({q}) <= edges[-1]})
    return vertices, edges


def square(side: int) -> set[Vertex]:
    return set(product(range(side), repeat=2))


def some_sets() -> Iterator[Sets]:
    for start in (square(1), square(3), square(12), {(2 * i, 2 * j) for i, j in square(5)}):
        for grow, stay, shrink in product((0, 3, 9), (0, 4, 12), (0, 4)):
            yield prism(start, grow, stay, shrink)
    rng = random.Random(5)
    for share in (0.1, 0.5, 0.9, 1.0):
        for _ in range(4):
            vertices = [{q for q in square(6) if rng.random() < share} for _ in range(8)]
            yield vertices, [{e for e in edges_at(square(6)) if rng.random() < share} for _ in range(8)]
            yield vertices, [edges_at(v) if rng.random() < share else within(v) for v in vertices]


@pytest.mark.thorough
def test_no_set_does_more() -> None:
    """The theorem, and the inequality that it follows from."""
    for sets in some_sets():
        needed, done = items(sets), executions(sets)
        assert done <= float(most_executions(needed))
        most = max(map(len, sets[0]))
        if most:
            made = sum(map(len, sets[0]))
            assert needed >= sqrt(8) * made / sqrt(most) + 1.5 * most - 2 * sqrt(8 * most)


@pytest.mark.thorough
def test_the_largest_sets_come_near() -> None:
    """A diamond that grows, stays and shrinks for R steps: X^(3/2) / sqrt(10) for large R, the theorem says / 3."""
    ratios = []
    for r in (6, 12, 24):
        sets = prism({(0, 0)}, r, r, r)
        ratios.append(executions(sets) / items(sets) ** 1.5)
    assert ratios == sorted(ratios)
    assert 0.93 / sqrt(10) < ratios[-1] < 1 / sqrt(10)


@pytest.mark.thorough
def test_the_sets_are_those_of_fdtd() -> None:
    """The same executions of the shipped kernel need the same number of values, by its own reads."""
    kernel = shipped(FDTD)
    n, middle = 19, 9
    written = tasks(kernel, {"tmax": 9, "nx": n, "ny": n})
    lines = {line: k for k, line in enumerate(sorted({t.at[0] for t in written}))}
    names = ("boundary", "ey", "ex", "hz")
    by_place: dict[tuple[str, int, int, int], Task] = {}
    for t in written:
        at = t.at[1]
        by_place[names[lines[t.at[0]]], at["t"], at.get("i", 0), at["j"]] = t
    vertices, edges = prism({(0, 0)}, 3, 2, 3)
    chosen = []
    for t, (made, crossed) in enumerate(zip(vertices, edges, strict=True)):
        chosen += [by_place["hz", t, i + middle, j + middle] for i, j in made]
        for (i, _), (k, m) in crossed:  # ey[k, m] lies before hz[k, m] in the first direction, ex in the second
            chosen.append(by_place["ey" if k > i else "ex", t, k + middle, m + middle])
    assert len(chosen) == executions((vertices, edges))
    assert values_needed(chosen) == items((vertices, edges))


def test_fdtd_is_a_staggered_grid() -> None:
    found = bound_of(FDTD).stencil
    assert isinstance(found, Staggered)
    assert str(found.leading) == "2*sqrt(3)*nx*ny*tmax/sqrt(S)"


@pytest.mark.parametrize("first", ["H", "E"])
def test_other_grids(first: str) -> None:
    """Either field first, other directions, a shift: the same grid."""
    magnetic = "        H[x, y] = H[x, y] + U[x, y] - U[x + 1, y - 1] + V[x, y + 3] - V[x, y + 2]\n"
    electric = (
        "        U[x, y] = U[x, y] + H[x, y] - H[x - 1, y + 1]\n        V[x, y] = V[x, y] + H[x, y - 3] - H[x, y - 2]\n"
    )
    loops = "    for x in range(4, n - 4), y in range(4, n - 4):\n"
    bodies = [loops + magnetic, *(loops + line + "\n" for line in electric.splitlines())]
    ordered = bodies if first == "H" else bodies[1:] + bodies[:1]
    inner = "".join("    " + line + "\n" for body in ordered for line in body.splitlines())
    kernel = kernel_of(
        f"kernel grid(steps, n):\n    assume n >= 9\n    inout H, U, V: f64[n, n]\n    for t in range(steps):\n{inner}"
    )
    found = bound(kernel)
    assert isinstance(found.stencil, Staggered)
    assert str(found.stencil.leading) == "2*sqrt(3)*n**2*steps/sqrt(S)"


@pytest.mark.parametrize("late", ["H", "U", "both"])
def test_fields_that_begin_at_different_steps(late: str) -> None:
    """What is there before is one value for a place, however many steps find it: the others count as free."""
    bodies = {
        "U": "        for x in range(1, n), y in range(n):\n{}            U[x, y] = U[x, y] + H[x, y] - H[x - 1, y]\n",
        "V": "        for x in range(n), y in range(1, n):\n{}            V[x, y] = V[x, y] + H[x, y] - H[x, y - 1]\n",
        "H": "        for x in range(n - 1), y in range(n - 1):\n{}"
        "            H[x, y] = H[x, y] + U[x, y] - U[x + 1, y] + V[x, y] - V[x, y + 1]\n",
    }
    guarded = {"H": "H", "U": "U", "both": "UV"}[late]
    text = "".join(b.format("            if t >= 2:\n    " if f in guarded else "") for f, b in bodies.items())
    kernel = kernel_of(
        f"kernel grid(steps, n):\n    assume n >= 4\n    inout H, U, V: f64[n, n]\n    for t in range(steps):\n{text}"
    )
    found = bound(kernel).stencil
    assert isinstance(found, Staggered)
    params = {"steps": 4, "n": 5}
    free = int(found.free.subs({s: params[s.name] for s in found.free.free_symbols}))
    written = tasks(kernel, params)
    line = dict(zip(sorted({t.at[0] for t in written}), "UVH", strict=True))
    by_place = {(line[t.at[0]], t.at[1]["t"], t.at[1]["x"], t.at[1]["y"]): t for t in written}
    first = min(t for _, t, _, _ in by_place)
    reads = [(task, source) for task in by_place for source in _sources(task)]
    assert free == sum(source not in by_place and source[1] != first - 1 for _, source in reads)


def _sources(place: tuple[str, int, int, int]) -> list[tuple[str, int, int, int]]:
    """What an execution would read if every place had a value at every step."""
    field, t, x, y = place
    if field == "H":
        return [(field, t - 1, x, y), ("U", t, x, y), ("U", t, x + 1, y), ("V", t, x, y), ("V", t, x, y + 1)]
    return [(field, t - 1, x, y), ("H", t - 1, x, y), ("H", t - 1, x - (field == "U"), y - (field == "V"))]


def test_fields_on_one_line_are_no_grid_of_the_plane() -> None:
    """Both electric fields along the same direction: a line's grid, which the theorem says nothing about."""
    text = """kernel grid(steps, n):
    inout H, U, V: f64[n, n]
    for t in range(steps):
        for x in range(n), y in range(1, n):
            U[x, y] = U[x, y] + H[x, y] - H[x, y - 1]
        for x in range(n), y in range(1, n):
            V[x, y] = V[x, y] + H[x, y] - H[x, y - 1]
        for x in range(n), y in range(1, n - 1):
            H[x, y] = H[x, y] + U[x, y] - U[x, y + 1] + V[x, y] - V[x, y + 1]
"""
    assert not isinstance(bound(kernel_of(text)).stencil, Staggered)
