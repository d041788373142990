"""Launches fused block by block: what then moves, counted by hand, and dependences that forbid it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl import budget
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_at_sizes import program_at
from roofdsl.machine.find import load_machine
from roofdsl.sol.program import ProgramLight, program_light
from tests.oracle.enumerate import walk

PAIR = """\
kernel scale(n):
    in a: f64[n]
    out b: f64[n]
    for i in range(1, n):
        b[i] = 2 * a[i]

kernel shift(n):
    in b, w: f64[n]
    out c: f64[n]
    for i in range(1, n):
        c[i] = b[i] + w[i]

kernel keep(n):
    in b: f64[n]
    out d: f64[n]
    for i in range(1, n):
        d[i] = b[i]

program pair(n):
    run scale(n)
    run shift(n)

program three(n):
    run scale(n)
    run shift(n)
    repeat 1:
        run keep(n)
"""
N = 40_000_001
"""An array does not fit in any cache."""


def light(text: str, name: str = "pair", n: int = N) -> ProgramLight:
    return program_light(program_at(load_file(Source("<test>", text)), name, {"n": n}), load_machine("a100_80"))


def memory_bytes(found: ProgramLight) -> Fraction:
    (group,) = found.together
    return dict(group.terms)["HBM"] * load_machine("a100_80").main_memory.bandwidth_bytes_per_s


def test_what_a_block_passes_on_does_not_reach_the_memory() -> None:
    """a, w and c move; b does not. Blocks begin within lines, and the last one counts as a whole one."""
    found = light(PAIR)
    (group,) = found.together
    assert group.places == (0, 1) and group.arrays == ("b",) and group.loops == ("i",)
    assert 3 * 8 * (N - 1) <= memory_bytes(found) <= (3 * 8 * N + 4 * 128) * Fraction(group.blocks + 1, group.blocks)
    alone = [p.answer.best for p in found.parts]
    assert found.best_s is not None and all(one is not None for one in alone)
    assert found.fused.floor.time_s <= found.best_s < sum((one.time_s for one in alone if one is not None), Fraction(0))


def test_what_a_later_launch_reads_is_stored() -> None:
    """b is read once more, outside of the fused launches."""
    found = light(PAIR, "three")
    (group,) = found.together
    assert 4 * 8 * (N - 1) <= memory_bytes(found) <= (4 * 8 * N + 4 * 128) * Fraction(group.blocks + 1, group.blocks)


def test_what_the_next_repetition_reads_is_stored() -> None:
    """b is read by the first of the fused launches, too, before it is written: in the next repetition, from memory."""
    head, _, tail = PAIR.partition("kernel shift")
    update = head.replace("    in a: f64[n]\n    out b", "    inout b").replace("2 * a[i]", "2 * b[i]")
    again = "program again(n):\n    repeat 10:\n        run scale(n)\n        run shift(n)\n"
    found = light(f"{update}kernel shift{tail}\n{again}", "again")
    (group,) = found.together
    assert (group.times, group.arrays) == (10, ("b",))
    assert 4 * 8 * (N - 1) <= memory_bytes(found) <= (4 * 8 * N + 4 * 128) * Fraction(group.blocks + 1, group.blocks)


ROWS = """\
kernel first(n, m):
    in a: f64[n, m]
    out b: f64[n, m]
    for i in range(n), j in range(m):
        b[i, j] = 2 * a[i, j]

kernel second(n, m):
    in a, b: f64[n, m]
    inout c: f64[n]
    for i in range(n), j in range(m):
        c[i] += a[i, j] + b[i, j]

kernel other_half(n, m):
    in a: f64[n, m]
    out b: f64[n, m // 2]
    for i in range(n), j in range(m // 2):
        b[i, j] = 2 * a[i, j]

kernel halves(n, m):
    in a: f64[n, m]
    in b: f64[n, m // 2]
    inout c: f64[n]
    for i in range(n), j in range(m // 2):
        c[i] += a[i, j + m // 2] + b[i, j]

kernel few(n, m):
    in b: f64[n, m]
    out c: f64[n]
    for i in range(n):
        c[i] = b[i, 0]

program both(n, m):
    run first(n, m)
    run second(n, m)

program begin(n, m):
    run first(n, m)
    run few(n, m)

program parts(n, m):
    run other_half(n, m)
    run halves(n, m)
"""


@pytest.mark.parametrize(
    ("name", "megabytes", "loops"),
    [
        ("both", 20, [("i",)]),  # a row of a and one of b, which both launches touch: 40 MB
        ("both", 24, [("i", "j")]),  # elements of them; the rows have 48 MB
        ("begin", 20, [("i",)]),
        ("begin", 24, []),  # the first launch touches all of b's row, the second one element
        ("parts", 24, [("i",)]),  # two halves of a row of a, and one of b: 36 MB
        ("parts", 32, [("i", "j")]),  # 48 MB, of which no launch touches more than 32 MB
    ],
)
def test_the_cache_holds_all_that_a_block_touches(name: str, megabytes: int, loops: list[tuple[str, ...]]) -> None:
    """The last cache of an A100 has 40 MiB, 41.9 MB; a row of a has this many megabytes."""
    sizes = {"n": 50, "m": megabytes * 125_000}
    with budget.beginning(600.0, budget.DEFAULT_BYTES, whole=False):  # also on a busy computer
        found = program_light(program_at(load_file(Source("<test>", ROWS)), name, sizes), load_machine("a100_80"))
    assert [group.loops for group in found.together] == loops


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b[i] + w[i]", "b[i - 1] + w[i]"),  # of an earlier iteration
        ("in b, w", "in x, w"),  # and what is called x may be b
        ("in b, w: f64[n]\n    out c: f64[n]\n", "in b, w: f64[n]\n    inout c: f64[n]\n"),
    ],
)
def test_values_of_other_iterations_forbid_it(old: str, new: str) -> None:
    text = PAIR.replace(old, new)
    if new.startswith("in x"):
        text = text.replace("b[i] + w[i]", "x[i - 1] + w[i]")
    if "inout c" in new:
        text = text.replace("c[i] = b[i] + w[i]", "c[i] = c[n - i] + w[i]")
    assert not light(text).together


@pytest.mark.parametrize("other", ["range(1, n, 2)", "range(n - 1)"])
def test_other_iterations_forbid_it(other: str) -> None:
    head, _, tail = PAIR.partition("kernel shift")
    tail = tail.replace("range(1, n)", other, 1)
    assert not light(f"{head}kernel shift{tail}").together


@pytest.mark.thorough
def test_blocks_of_attention_read_what_they_wrote() -> None:
    """Each iteration of the fused loops in brute force: what it reads of S and P, it wrote itself."""
    from roofdsl.checks.execution_order import uses
    from roofdsl.loops.model import Count
    from roofdsl.machine.find import find_model

    target = find_model("attention_naive")
    assert target.name is not None
    sizes = {"batch": 2, "new": 3, "context": 4, "kv": 2, "group": 2, "dh": 2}
    at = program_at(load_file(target.path), target.name, sizes)
    found = program_light(at, load_machine("a100_80"))
    (group,) = found.together
    assert group.places == (0, 1, 2) and group.arrays == ("S", "P")
    blocks: dict[tuple[str, tuple[int, ...]], tuple[int, ...]] = {}
    reads = 0
    for part in at.launched:
        for statement, env in walk(part.kernel.body, dict(part.arguments)):
            if isinstance(statement, Count):
                continue
            here = tuple(env[name] for name in group.loops)
            for use in uses(statement):
                if use.array.name in group.arrays:
                    place = use.array.name, tuple(use.index(env))
                    reads += not use.is_write
                    assert blocks.setdefault(place, here) == here
    assert reads > 100
