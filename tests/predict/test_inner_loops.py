"""Inner loops that follow each other: their bytes by an LRU cache of its own, and their times between all at once and
one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from roofdsl.counts.executions import statement_executions
from roofdsl.incore import assumed_compiler
from roofdsl.incore.result import InCore, NoInCore
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.successive_loops import successive_loops
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict import in_core_time
from roofdsl.predict.expected import Expected
from roofdsl.predict.expected_of_inner_loops import IN_TURN, InnerLoops, share_in_window, shared_levels
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.inner_loops import inner_loops
from roofdsl.predict.kernel import _checked, _levels_of, predict
from roofdsl.predict.on_cores import on_cores
from roofdsl.predict.options import Options
from tests.oracle.lru_parts import Accesses, parts_behind
from tests.predict.machines import kernel_of, machine, of_lines

HASWELL = load_machine("haswell_e5_2695v3")
STATED = Options(code=Code("stated"), accesses="compiled")


# ---- bytes ----

N = 24


def stencil(i: int) -> Accesses:
    for j in range(N):
        yield "A", i * N + j, False
        yield "A", (i + 2) * N + j, False
        yield "B", i * N + j, True


def row(i: int) -> Accesses:
    for j in range(N):
        yield "B", i * N + j, False
        yield "x", j, False
        yield "x", j, True


def triangle(i: int) -> Accesses:
    for j in range(i, N):
        yield "A", i * N + j, False
        yield "C", i * N + j, True


LOOPS: dict[str, tuple[str, Callable[[int], Accesses]]] = {
    "stencil": ("        for j in range(n):\n            B[i, j] = A[i, j] + A[i + 2, j]\n", stencil),
    "row": ("        for j in range(n):\n            x[j] += B[i, j]\n", row),
    "triangle": ("        for j in range(i, n):\n            C[i, j] = A[i, j]\n", triangle),
}


def lru(lines: int, order: list[str], at: int) -> list[tuple[int, int]]:
    """(loaded, stored) bytes of each loop in iteration `at`."""
    return parts_behind(lines, (LOOPS[name][1](i) for i in range(at + 1) for name in order))[-len(order) :]


@pytest.mark.parametrize("lines", [17, 40, 100, 400])
@pytest.mark.parametrize("order", [["stencil", "row"], ["row", "stencil"], ["triangle", "stencil", "row"]])
def test_each_inner_loop_moves_what_its_own_accesses_miss(order: list[str], lines: int) -> None:
    body = "".join(LOOPS[name][0] for name in order)
    arrays = "    in A: f64[n + 2, n]\n    inout B, C: f64[n, n], x: f64[n]\n"
    kernel = kernel_of(f"kernel k(n):\n{arrays}    for i in range(n):\n{body}")
    found = inner_loops(_checked(kernel, {"n": N}, of_lines(lines), Options()), _levels_of)
    assert found is not None and found.passes == N
    moved = found.moved()
    for name, room in (("L2", 16), ("DRAM", lines)):
        each = [next(v for v in own if v.name == name) for own in moved]
        assert [(v.loads_bytes, v.stores_bytes) for v in each] == lru(room, order, (N - 1) // 2)


def test_the_middle_of_several_loops_around() -> None:
    """The statements of the passes at i = 4 and j = 4, 6: the last of them is in the middle of 4 to 9."""
    text = """kernel k(n):
    in A: f64[n, n]
    inout x: f64[n, n], y: f64[n]
    for i in range(n):
        y[i] = 0
        for j in range(i, n, 2):
            x[i, j] = 1
            for k in range(j):
                y[i] += A[j, k]
            for k in range(i):
                y[i] += A[i, k]
        y[i] = 2 * y[i]
"""
    kernel = kernel_of(text)
    found = successive_loops(apply(kernel).body)
    assert found is not None and len(found.around) == 2 and len(found.parts) == 2
    counts = [[executed(replace(kernel, body=own), 9) for own in parts] for parts in found.passes({"n": 9}, 5)]
    assert counts == [[1 + 4, 4], [1 + 6, 4]]
    assert found.passes({"n": 0}, 5) == []


def executed(kernel: Kernel, n: int) -> int:
    return sum(statement_executions(kernel, {"n": n}))


def test_a_loop_that_strides_from_line_to_line_is_not_told_apart() -> None:
    text = "kernel k(n):\n    in A: f64[n, n]\n    inout x: f64[n]\n    for i in range(n):\n"
    for body in ("x[j] += A[i, j]", "x[j] += A[j, i]"):
        text += f"        for j in range(n):\n            {body}\n"
        if body == "x[j] += A[i, j]":
            even = text + text.partition("(n):\n")[2].partition("range(n):\n")[2]
    assert inner_loops(_checked(kernel_of(even), {"n": N}, of_lines(40), Options()), _levels_of) is not None
    assert inner_loops(_checked(kernel_of(text), {"n": N}, of_lines(40), Options()), _levels_of) is None


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(n):\n        for j in range(n):\n            x[i] += A[i, j]\n",
        "    for i in range(n):\n        x[i] = 0\n    for i in range(n):\n        x[i] = 1\n",
        "    x[0] = 1\n",
    ],
)
def test_no_inner_loops_that_follow_each_other(body: str) -> None:
    kernel = kernel_of(f"kernel k(n):\n    in A: f64[n, n]\n    inout x: f64[n]\n{body}")
    assert successive_loops(kernel.body) is None


def test_bytes_are_shared_out_without_rest() -> None:
    levels = predict(kernel_of(ROWS), {"rows": 10, "m": 64}, HASWELL).levels
    third = [tuple(replace(v, bytes=7, loads_bytes=k, stores_bytes=7 - k) for v in levels) for k in (1, 2, 4)]
    found = shared_levels(levels, third)
    for k, level in enumerate(levels):
        assert sum(own[k].bytes for own in found) == level.bytes
        assert sum(own[k].loads_bytes or 0 for own in found) == level.loads_bytes
        if level.loads_bytes:
            assert [own[k].loads_bytes for own in found] == pytest.approx(
                [level.loads_bytes * s / 7 for s in (1, 2, 4)], abs=1
            )


# ---- times ----

POLYNOMIAL = "            w[j] = w[j] * (w[j] * (w[j] * (w[j] * (w[j] + 1) + 1) + 1) + 1) + 1\n"
COPY = "            y[r, j] = 2 * z[r, j]\n"
HEAD = "    in z: f64[rows, m]\n    out y: f64[rows, m]\n    inout w: f64[m]\n"


def rows_of(*bodies: str, several: bool = True) -> str:
    """One loop for each body in a loop over rows, or one nest for each."""
    text = f"kernel k(rows, m):\n{HEAD if COPY in bodies else '    inout w: f64[m]' + chr(10)}"
    inner = [f"        for j in range(m):\n{body}" for body in bodies]
    outer = "    for r in range(rows):\n"
    return text + (outer + "".join(inner) if several else "".join(outer + one for one in inner))


ROWS = rows_of(POLYNOMIAL, COPY)


def expected_of(text: str, m: int, given: Machine = HASWELL, options: Options = STATED) -> Expected:
    found = predict(kernel_of(text), {"rows": 2**20 // m, "m": m}, given, options)
    assert found.expected is not None, found.no_expected
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected


def with_window(size: int, given: Machine = HASWELL) -> Machine:
    assert given.core is not None
    return replace(given, core=replace(given.core, window=size))


def together_and_apart(m: int) -> tuple[Fraction, Fraction]:
    """The times of a window that holds everything, and of the loops as nests that follow each other."""
    return expected_of(ROWS, m, with_window(10**9)).expected_s, expected_of(
        rows_of(POLYNOMIAL, COPY, several=False), m
    ).expected_s


@pytest.mark.parametrize("m", [128, 1024])
def test_the_window_decides_between_together_and_one_by_one(m: int) -> None:
    """Half of what overlap can save is saved if the window holds half of the instructions of both loops."""
    together, apart = together_and_apart(m)
    assert apart > Fraction(11, 10) * together
    core = assumed_compiler.in_core(kernel_of(ROWS), {"rows": 2**20 // m, "m": m}, HASWELL, relaxed=True)
    row = round(core.instructions * m / 2**20)
    for part in (16, 4, 2, 1):
        found = expected_of(ROWS, m, with_window(row // part)).expected_s
        assert float(found) == pytest.approx(float(apart - (apart - together) / part), rel=0.02)
    assert expected_of(ROWS, m, with_window(2 * row)).expected_s == together


def test_instructions_of_the_assumed_code() -> None:
    """A vector of 4: five fused pairs are 10 operations, and each loop has a store and half an instruction of its own
    in an iteration. Loads are operands.
    """
    core = assumed_compiler.in_core(kernel_of(ROWS), {"rows": 3, "m": 64}, HASWELL, relaxed=True)
    fused, scaled = 5, 1
    assert core.instructions == pytest.approx(3 * 64 / 4 * (fused + 1 + 0.5 + scaled + 1 + 0.5))


@pytest.mark.parametrize("math", ["strict", "relaxed"])
def test_with_relaxed_math_as_if_it_had_been_asked_for(math: Any) -> None:
    text = rows_of(COPY, "            w[0] += w[j] * w[j]\n")
    found = expected_of(text, 4096, HASWELL, replace(STATED, code=Code("stated", math=math)))
    relaxed = expected_of(text, 4096, HASWELL, replace(STATED, code=Code("stated")))
    assert IN_TURN in [c.cause for c in found.causes]
    assert found.relaxed_s in (None, relaxed.expected_s)


def test_loops_that_wait_for_the_same_do_not_change() -> None:
    """Two copies take as long one by one as together, since neither computes."""
    text = rows_of(COPY, "            y[r, j] = y[r, j] + z[r, j]\n")
    assert expected_of(text, 4096).expected_s == expected_of(text, 4096, with_window(10**9)).expected_s


@pytest.mark.parametrize("cores", [2, 4])
def test_cores_share_the_rows(cores: int) -> None:
    """Each core goes through its rows as one core does, as long as no level is saturated."""
    given = machine(
        "peak f64 fma 294.4 GFLOP/s",
        "transfers serial",
        "cache L1 32 KiB, 1766.4 GB/s, line 64 B, copies 8, write_allocate",
        "cache L2 64 MiB, 588.8 GB/s, line 64 B, copies 8, write_allocate",
        "memory DRAM 64 GB, 32.35 GB/s",
        'ceiling "one core, DRAM" DRAM 15 GB/s',
        "clock 2.3 GHz",
        "units 8",
        "core dispatch 4, window 192, waiting 60, mispredict 15 cycles",
        "instruction mul f64 256 bits, latency 5 cycles, throughput 0.5 cycles",
        "instruction add f64 256 bits, latency 3 cycles, throughput 1 cycle",
        "instruction fma f64 256 bits, latency 5 cycles, throughput 0.5 cycles",
        "instruction load 256 bits, latency 7 cycles, throughput 0.5 cycles",
        "instruction store 256 bits, throughput 1 cycle",
    )
    deep = "z[r, j]"
    for _ in range(12):
        deep = f"({deep} * z[r, j] + 1)"
    text = "kernel k(rows, m):\n    in z: f64[rows, m]\n    out x, y: f64[rows, m]\n    for r in range(rows):\n"
    text += f"        for j in range(m):\n            x[r, j] = {deep}\n        for j in range(m):\n{COPY}"
    kernel, sizes = kernel_of(text), {"rows": 512, "m": 1024}
    options = replace(STATED, warm=True)
    one, several = (on_cores(kernel, sizes, given, n, options).expected for n in (1, cores))
    assert one is not None and several is not None
    assert IN_TURN in [c.cause for c in several.causes]
    assert several.expected_s == one.expected_s / cores


# ---- where it is not known ----


def test_what_cannot_be_told_apart_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, kernel = in_core_time._divided_evenly, kernel_of(ROWS)

    def only_whole(prediction: Any, own: Kernel, *rest: Any) -> InCore:
        if own != kernel:
            raise NoInCore("the code is not understood")
        return plain(prediction, own, *rest)

    monkeypatch.setattr(in_core_time, "_divided_evenly", only_whole)
    found = predict(kernel, {"rows": 256, "m": 4096}, HASWELL, STATED)
    assert found.expected is not None
    assert "inner loops count as if they overlapped: the code is not understood" in found.assumptions
    assert found.expected.expected_s == expected_of(ROWS, 4096, with_window(10**9)).expected_s


def test_without_a_number_of_instructions_all_loops_overlap() -> None:
    core = InCore("another tool", (in_core_time.Step("", "", 1.0, 1.0),), None)
    inner = InnerLoops((kernel_of(ROWS),) * 2, 10, list)
    assert share_in_window(core, HASWELL, inner) == 1
    assert share_in_window(replace(core, instructions=1e6), replace(HASWELL, core=None), inner) == 1
    assert share_in_window(replace(core, instructions=1920.0), HASWELL, inner) == 1  # two loops: 192 a pass
    assert share_in_window(replace(core, instructions=3840.0), HASWELL, inner) == Fraction(1, 2)


def test_statements_beside_the_loops_may_go_down_a_column() -> None:
    text = ROWS.replace("    for r in range(rows):\n", "    for r in range(rows):\n        y[r, 0] = z[r, 0]\n")
    assert text != ROWS
    assert IN_TURN in [c.cause for c in expected_of(text, 4096).causes]


def test_a_level_that_was_not_counted() -> None:
    levels = predict(kernel_of(ROWS), {"rows": 10, "m": 64}, HASWELL).levels
    with pytest.raises(CommandError, match="not all levels could be counted"):
        shared_levels(levels, [levels, levels[1:]])


def test_a_local_value_belongs_to_each_loop_after_it() -> None:
    text = """kernel k(rows, m):
    in z: f64[rows, m]
    out y: f64[rows, m]
    inout w: f64[m], x: f64[m], s: f64[rows]
    for r in range(rows):
        for j in range(m):
            s[r] += z[r, j]
        let a = 2 * s[r]
        for j in range(m):
            w[j] = w[j] * (w[j] * (w[j] * (w[j] * (w[j] + a) + 1) + 1) + 1) + 1
        for j in range(m):
            y[r, j] = a * z[r, j]
"""
    found = successive_loops(kernel_of(text).body)
    assert found is not None
    assert [[type(node).__name__ for node in nodes] for nodes in found.parts] == [
        ["For"],
        ["Let", "For"],
        ["Let", "For"],
    ]
    assert IN_TURN in [c.cause for c in expected_of(text, 4096).causes]
