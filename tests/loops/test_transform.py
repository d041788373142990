"""Tiling and reordering: the same iterations, once each, in the order asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Assign, For, If, Kernel, Node
from roofdsl.loops.transform import apply


def lowered(directives: str, loops: str, indent: str = "") -> Kernel:
    text = "kernel k(n, m, b):\n    assume n % b == 0\n    out y: f64[n]\n"
    text += "".join(f"    {line}\n" for line in directives.split("\n") if line)
    text += "".join(f"    {line}\n" for line in loops.split("\n"))
    return kernel(load_file(Source("t", text)), None, {})


def iterations(body: Sequence[Node], env: dict[str, int]) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    for node in body:
        if isinstance(node, For):
            for value in range(node.start.evaluate(env), node.stop.evaluate(env), node.step.evaluate(env)):
                yield from iterations(node.body, {**env, node.var: value})
        elif isinstance(node, If):
            yield from iterations(node.then if node.condition.holds(env) else node.orelse, env)
        else:
            assert isinstance(node, Assign)
            yield node.op, tuple(env.items())


def points(k: Kernel, env: dict[str, int], names: Sequence[str]) -> list[tuple[object, ...]]:
    return [(op, *(dict(values).get(name) for name in names)) for op, values in iterations(k.body, env)]


def loops_of(k: Kernel) -> list[str]:
    found = []
    body: Sequence[Node] = k.body
    while len(body) == 1 and isinstance(body[0], For):
        loop = body[0]
        found.append(f"{loop.var} {loop.start} {loop.stop} {loop.step}")
        body = loop.body
    return found


MATMUL = "for i in range(n), j in range(n), k in range(m):\n    y[i] = j + k"


def test_tiles_where_the_extent_is_a_multiple() -> None:
    assert loops_of(apply(lowered("tile i, j by b", MATMUL))) == [
        "ii 0 n b", "jj 0 n b", "i ii ii + b 1", "j jj jj + b 1", "k 0 m 1",
    ]  # fmt: skip


def test_tiles_where_it_may_not_be() -> None:
    assert loops_of(apply(lowered("tile k, i by 4, b", MATMUL))) == [
        "kk 0 m 4", "ii 0 n b", "i ii ii + b 1", "j 0 n 1", "k kk min(m, kk + 4) 1",
    ]  # fmt: skip
    assert loops_of(apply(lowered("tile i by 4", "for i in range(8): y[i] = 1"))) == ["ii 0 8 4", "i ii ii + 4 1"]
    assert loops_of(apply(lowered("tile i by 4", "for i in range(1, 8): y[i] = 1"))) == [
        "ii 1 8 4", "i ii min(ii + 4, 8) 1",
    ]  # fmt: skip


def test_order() -> None:
    k = apply(lowered("tile i by b\norder k, ii, j, i", MATMUL))
    assert [text.split()[0] for text in loops_of(k)] == ["k", "ii", "j", "i"]
    assert k.directives == ()


def test_names_of_tile_loops_are_free() -> None:
    text = "for ii in range(n):\n    y[ii] = 1\nfor i in range(n):\n    y[i] = 2"
    k = apply(lowered("tile i by 2", text))
    assert isinstance(k.body[1], For) and k.body[1].var == "iii"


def test_only_the_nest_that_is_meant_changes() -> None:
    text = "y[0] = 1\nfor t in range(m):\n    for i in range(n):\n        y[i] += 1\n    if t > 2:\n"
    text += "        for p in range(n), q in range(p):\n            y[p] -= 2"
    k = lowered("tile p, q by 3", text)
    new = apply(k)
    assert new.body[0] == k.body[0]
    env = {"n": 7, "m": 4, "b": 7}
    assert sorted(points(new, env, "tipq"), key=str) == sorted(points(k, env, "tipq"), key=str)


@pytest.mark.parametrize(
    ("directives", "loops"),
    [
        ("tile i, j by 3", "for i in range(n), j in range(i): y[i] = j"),
        ("tile j, i by 3", "for i in range(n), j in range(i, n): y[i] = j"),
        ("tile i, j by 2, 5", "for i in range(n), j in range(max(0, i - 2), min(n, 2 * i + 1)): y[i] = j"),
        ("tile j by 3", "for i in range(n), j in range(n - i): y[i] = j"),
        ("tile i, j, k by 3", "for i in range(n), j in range(i), k in range(i - j, i + j + 1): y[i] = j + k"),
        ("tile k, j by 3", "for i in range(n), j in range(i), k in range(j, 3 * i - 2 * j): y[i] = j + k"),
        ("tile i by 4\ntile i by 3", "for i in range(n), j in range(i): y[i] = j"),
        ("tile i, j by 4\ntile ii, j by 8, 2\norder iii, jj, jjj, j, ii, i", "x"),
        ("tile j by 2", "for i in range(0, n, 3), j in range(i + 1): y[i] = j"),
        ("tile i by m", "for i in range(n, n + m): y[i - n] = 1"),
    ],
)
@pytest.mark.parametrize("env", [{"n": 10, "m": 3, "b": 5}, {"n": 1, "m": 1, "b": 1}, {"n": 13, "m": 20, "b": 13}])
def test_each_iteration_is_done_once(directives: str, loops: str, env: dict[str, int]) -> None:
    if loops == "x":
        directives, loops = "tile i, j by 4\norder jj, ii, j, i", "for i in range(n), j in range(m): y[i] = j"
    k = lowered(directives, loops)
    names = "ijk"
    assert sorted(points(apply(k), env, names), key=str) == sorted(points(k, env, names), key=str)


BOUND = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-3, 6))


@given(
    st.tuples(BOUND, BOUND, BOUND, BOUND), st.permutations("ijk"), st.lists(st.integers(1, 4), min_size=1, max_size=3)
)
def test_tiling_of_any_affine_nest(
    bounds: tuple[tuple[int, int, int], ...], order: list[str], sizes: list[int]
) -> None:
    (a0, _, c0), (a1, _, c1), (a2, b2, c2), (a3, b3, c3) = bounds
    loops = f"for i in range(-2, m), j in range({a0} * i + {c0}, min({a1} * i + {c1}, 6)),"
    loops += f" k in range(max(-4, {a2} * i + {b2} * j + {c2}), {a3} * i + {b3} * j + {c3}): y[0] = i + j * k"
    k = lowered(f"tile {', '.join(order[: len(sizes)])} by {', '.join(map(str, sizes))}", loops)
    env = {"n": 5, "m": 4, "b": 5}
    done, wanted = points(apply(k), env, "ijk"), points(k, env, "ijk")
    assert sorted(done, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize(
    "directives", ["tile i, j by 2, 3\ntile jj, ii by 6", "tile i by 2\ntile ii by 4\ntile iiii by 8", "tile i by m"]
)
@pytest.mark.parametrize("n", [1, 7, 12, 25])
def test_tiles_of_tiles(directives: str, n: int) -> None:
    step = ", 1" if "m" not in directives else ", m"
    k = lowered(directives, f"for i in range(0, n{step}), j in range(5): y[i] = j")
    env = {"n": n, "m": 3}
    assert sorted(points(apply(k), env, "ij"), key=str) == sorted(points(k, env, "ij"), key=str)


def test_tiles_of_tiles_go_tile_by_tile() -> None:
    k = lowered("tile i, j by 1\ntile jj by 2\ntile jjjj by 4", "for i in range(2), j in range(6): y[i] = j")
    assert loops_of(apply(k))[:3] == ["jjjjjjjj 0 6 4", "jjjj jjjjjjjj min(jjjjjjjj + 4, 6) 2", "ii 0 2 1"]
    done = [j for _, j in points(apply(k), {"n": 9}, "j")]
    assert done == [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]
    assert points(apply(k), {"n": 9}, "ij")[1][1:] == (0, 1)


@pytest.mark.parametrize(
    ("directives", "loops", "message"),
    [
        ("tile i by m\ntile ii by 6", "for i in range(n): y[i] = 1", "a multiple of its step, m: 6"),
        (
            "tile j by 4",
            "for i in range(1, n), j in range(i, n, 2): y[i] = 1",
            "its step is 2, and its bounds depend on",
        ),
        ("order j, i", "for i in range(n), j in range(i): y[i] = j", "`j` cannot be moved outside `i`"),
        ("tile i, j by 8", "for i in range(n), j in range(i // 2): y[i] = j", "depend on other loops through"),
        ("tile i by 4\norder i, ii", "for i in range(n): y[i] = 1", "`i` cannot be moved outside `ii`"),
    ],
)
def test_bounds_that_do_not_allow_it(directives: str, loops: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        apply(lowered(directives, loops))
    assert caught.value.diagnostics[0].code == "tile-bounds"
