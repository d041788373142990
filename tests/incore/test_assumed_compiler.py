"""In-core time from the kernel and stated instructions: strides, chains, counts, and published in-core terms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

import pytest

from roofdsl.incore.assumed_code_cycles import Timer
from roofdsl.incore.assumed_compiler import in_core
from roofdsl.incore.chains import overwritten_in, reductions
from roofdsl.incore.innermost_loops import loops_of, varies
from roofdsl.incore.result import InCore, NoInCore
from roofdsl.lang.record import replace
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.strides import stride_of
from roofdsl.machine.find import load_machine
from tests.incore.loops import HEAD, loop_of
from tests.predict.machines import kernel_of
from tests.predict.machines import machine as stating
from tests.predict.test_ecm import FIVE_POINTS, HSW, KAHAN, SNB


def test_relaxed_math_fuses_what_the_machine_can_fuse() -> None:
    """A recurrence on Haswell: 5 + 3 cycles, or 5; on a processor without such an instruction always 8."""
    kernel = kernel_of(
        "kernel k(n):\n    in c: f64, y: f64[n]\n    inout x: f64[n]\n"
        "    for i in range(1, n):\n        x[i] = c * x[i - 1] + y[i]\n"
    )
    machine, n = load_machine(HSW), 100_000
    per_s = float(machine.clock_hz or 0) * (machine.units or 1)
    unfused = replace(machine, peaks=tuple(p for p in machine.peaks if (p.type, p.cls) != ("f64", "fma")))
    for on, relaxed, cycles in ((machine, False, 8), (machine, True, 5), (unfused, True, 8)):
        found = in_core(kernel, {"n": n}, on, relaxed=relaxed)
        assert found.steps[-1].overlapping_s * per_s / n == pytest.approx(cycles, rel=0.01)
    (remedy,) = {s.remedy for s in in_core(kernel, {"n": n}, machine).steps if s.cause.startswith("chain of 8 cycles")}
    assert "--math relaxed" in remedy and "fused" in remedy
    assert not any(s.remedy for s in in_core(kernel, {"n": n}, unfused).steps if s.cause.startswith("chain of"))


@pytest.mark.parametrize(
    ("type_name", "value", "cycles"),
    [
        ("f64", "x[i - 1] + c", 5), ("f64", "c / x[i - 1]", 14), ("f64", "exp(x[i - 1])", 40),
        ("f32", "x[i - 1] + c", 3), ("f32", "c / x[i - 1]", 11), ("f32", "exp(x[i - 1])", 25),
        ("i64", "x[i - 1] + c", 1), ("i64", "max(x[i - 1], c)", 1),
    ],
)  # fmt: skip
def test_the_latencies_of_a_chain_are_those_of_its_type(type_name: str, value: str, cycles: int) -> None:
    kernel = kernel_of(
        f"kernel k(n):\n    in c: {type_name}\n    inout x: {type_name}[n]\n"
        f"    for i in range(1, n):\n        x[i] = {value}\n"
    )
    stated = {
        "f64 64": {"add": 5, "div": 14, "exp": 40}, "f32 32": {"add": 3, "div": 11, "exp": 25}, "i64 64": {"add": 1},
    }  # fmt: skip
    given = stating(
        "peak f64 fma 1 TFLOP/s",
        "peak f32 fma 1 TFLOP/s",
        "peak i64 1 TOP/s",
        "memory DRAM 1 GiB, 1 GB/s",
        "clock 1 GHz",
        "core dispatch 4, window 100, waiting 50",
        "instruction load 64 bits, latency 4 cycles, throughput 0.5 cycles",
        "instruction store 64 bits, throughput 1 cycle",
        *(
            f"instruction {cls} {of} bits, latency {latency} cycles, throughput 1 cycle"
            for of, latencies in stated.items()
            for cls, latency in latencies.items()
        ),
    )
    n = 10_000
    found = in_core(kernel, {"n": n}, given)
    assert found.steps[-1].overlapping_s * 1e9 / n == pytest.approx(cycles, rel=0.01)


def test_sums_that_could_be_reordered() -> None:
    for body, many in (("s += x[i]", 1), ("s += x[i] * s", 0), ("s += x[i]\n    t += s", 1), ("x[i] += c", 0)):
        loop = loop_of(f"for i in range(n):\n    {body}")
        assert loop.loop is not None
        assert len(reductions(loop.statements, loop.loop)) == many


@pytest.mark.parametrize(
    ("nest", "reread"),
    [
        ("for i in range(n), j in range(n):\n    A[i, j] += A[i, 3] * B[i, j]", "A"),
        ("for i in range(3), j in range(4, n):\n    A[i, j] += A[i, 3] * B[i, j]", ""),
        ("for i in range(n), j in range(i + 1, n):\n    A[i, j] += A[i, i] * B[i, j]", ""),
        ("for i in range(n), j in range(i, n):\n    A[i, j] += A[i, i] * B[i, j]", "A"),
        ("for i in range(n), j in range(i):\n    A[i, j] += A[i, i] * B[i, j]", ""),
        ("for i in range(n), j in range(n):\n    A[i, j] += B[i, 3]", ""),
        ("for i in range(n), j in range(n):\n    A[i, n - 1 - j] += A[i, 3] * B[i, j]", "A"),  # at j = n - 4
        ("for i in range(n), j in range(n - 4):\n    A[i, n - 1 - j] += A[i, 3] * B[i, j]", ""),
        ("for i in range(n), j in range(4, n // 2):\n    A[i, 2*j] += A[i, 8] * B[i, j]", "A"),
        ("for i in range(n), j in range(5, n // 2):\n    A[i, 2*j] += A[i, 8] * B[i, j]", ""),
        ("for i in range(n), j in range(n):\n    A[i, j // 2] += A[i, 8] * B[i, j]", "A"),
    ],
)
def test_elements_that_the_loop_may_overwrite(nest: str, reread: str) -> None:
    loop = loop_of(nest)
    assert loop.loop is not None
    assert overwritten_in(loop.statements, loop.loop) == reread


Runs = Callable[[int], list[tuple[int, int]]]


@pytest.mark.parametrize(
    ("nest", "runs"),
    [
        ("for i in range(n), j in range(n):\n    A[i, j] = c", lambda n: [(i, j) for i in range(n) for j in range(n)]),
        ("for i in range(n), j in range(i):\n    A[i, j] = c", lambda n: [(i, j) for i in range(n) for j in range(i)]),
        (
            "for i in range(1, n, 3), j in range(i, n, 2):\n    A[i, j] = c",
            lambda n: [(i, j) for i in range(1, n, 3) for j in range(i, n, 2)],
        ),
        (
            "for i in range(n):\n    if i >= 5:\n        for j in range(n - i):\n            A[i, j] = c",
            lambda n: [(i, j) for i in range(n) if i >= 5 for j in range(n - i)],
        ),
    ],
)
def test_iterations_and_entries_are_counted(nest: str, runs: Runs) -> None:
    loop, done = loop_of(nest, n=17), runs(17)
    assert loop.iterations == len(done)
    entered = len({i for i, _ in done})
    assert loop.entries in (entered, entered + 1)  # the triangle's first row is entered for no iteration


@pytest.mark.parametrize(
    ("nest", "lengths"),
    [
        ("for i in range(n), j in range(i):\n    A[i, j] = c", lambda n: list(range(n))),
        ("for i in range(n), j in range(i, i + 8):\n    y[j] += A[i, 3]", lambda n: [8] * n),
        ("for i in range(n), j in range(0, i, 2):\n    A[i, j] = c", lambda n: [(i + 1) // 2 for i in range(n)]),
        (
            "for i in range(0, n, 4), j in range(i, min(i + 4, n)):\n    x[j] = c",
            lambda n: [min(4, n - i) for i in range(0, n, 4)],
        ),
        ("for i in range(n), j in range(n):\n    if j > i:\n        A[i, j] = c", lambda n: [n] * n),
        (
            "for i in range(n):\n    if i >= 3:\n        for j in range(max(i, 3), n):\n            A[i, j] = c",
            lambda n: [n - i for i in range(3, n)],
        ),
    ],
)
@pytest.mark.parametrize("n", [16, 17])
def test_whether_the_number_of_iterations_varies(nest: str, lengths: Callable[[int], list[int]], n: int) -> None:
    """Against all lengths; that their mean is a whole number, as in a triangle of 17 rows, says nothing."""
    loop = loop_of(nest, n=n)
    at = sized(kernel_of(HEAD + "".join(f"    {line}\n" for line in nest.splitlines())), {"n": n})
    at = Sized(with_numbers(at.kernel, at.values), at.values)
    assert varies(loop, at) == (len(set(lengths(n))) > 1)


def test_the_ends_and_remainders_of_a_triangle_are_those_of_its_neighbors() -> None:
    """Rows of 0 to n - 1 elements: a mean of 8 elements for 17 rows is no reason to end as predicted."""
    text = "kernel k(n):\n    in c: f64\n    out A: f64[n, n]\n"
    text += "    for i in range(n), j in range(i):\n        A[i, j] = c\n"
    given = load_machine("skylake_gold_6148")
    per_s = float(given.clock_hz or 0) * (given.units or 1)
    each = [in_core(kernel_of(text), {"n": n}, given).steps[-1].overlapping_s * per_s / n for n in (16, 17, 18)]
    assert each[0] < each[1] < each[2]
    assert each[1] > 16.5  # the cycles that a mispredicted end loses
    assert each[1] == pytest.approx((each[0] + each[2]) / 2, rel=0.02)


def test_strides() -> None:
    value = "A[j, i] + B[i, 2 * j] + x[j] + y[i] + u[i * 2 + j % 3]"
    loop = loop_of(f"for i in range(1, 10), j in range(1, 10):\n    A[i, j] = {value}")
    found = {m.element.array.name: stride_of(m.element, loop.loop) for m in loop.moved if m.element.array.name != "A"}
    assert found == {"B": ("strided", 2), "x": ("unit", 1), "u": ("irregular", 0)}
    assert {stride_of(m.element, loop.loop) for m in loop.moved if m.element.array.name == "A"} == {
        ("unit", 1),
        ("strided", 0),
    }
    assert loop.outside == 1  # y[i] is loaded once for each entry


@pytest.mark.parametrize(("shift", "row", "bits"), list(product((-1, 0, 1, 3), (40, 41), (128, 256, 512))))
def test_vectors_across_lines(shift: int, row: int, bits: int) -> None:
    """Against the addresses of all vectors of 8 rows, in arrays that begin on lines."""
    subscript = f"j + {shift}" if shift >= 0 else f"j - {-shift}"
    text = f"kernel k(n):\n    in A: f64[n, {row}]\n    out x: f64[n, {row}]\n"
    text += "    for i in range(n), j in range(8, 32):\n"
    given = sized(kernel_of(f"{text}        x[i, j] = A[i, {subscript}]\n"), {"n": 8})
    (loop,) = (one for one in loops_of(Sized(with_numbers(given.kernel, given.values), given.values)) if one.loop)
    (moved,) = (m for m in loop.moved if m.element.array.name == "A")
    lanes = bits // 64
    first = [i * row + j + shift for i in range(8) for j in range(8, 32, lanes)]
    across = sum(a // 8 != (a + lanes - 1) // 8 for a in first) / len(first)
    assert Timer._crossing(moved, bits // 8) == pytest.approx(across)


# ---- the in-core terms of the ECM papers, in cycles for a cache line of work ----


def per_line(found: InCore, iterations: int, clock_hz: float) -> tuple[float, float]:
    last, scale = found.steps[-1], clock_hz / (iterations / 8)
    return last.overlapping_s * scale, last.loads_s * scale


@pytest.mark.parametrize(("machine", "clock_hz"), [(SNB, 2.7e9), (HSW, 2.3e9)])
def test_the_kahan_sum_is_four_adds_an_iteration(machine: str, clock_hz: float) -> None:
    """Hammer et al., PMBS 2015, table 5: T_OL = 96 cycles on both, from Intel's IACA."""
    n = 1 << 16
    core, _ = per_line(in_core(KAHAN, {"n": n}, load_machine(machine)), n, clock_hz)
    assert core == pytest.approx(96, rel=0.01)


def test_loads_of_the_five_point_stencil() -> None:
    """The same table: T_nOL = 8 cycles on Sandy Bridge, four loads of 32 B for two vectors, 16 B a port and cycle."""
    found = in_core(FIVE_POINTS, {"m": 600, "n": 602}, load_machine(SNB))
    core, loads = per_line(found, 598 * 600, 2.7e9)
    assert loads == pytest.approx(8, rel=0.02)
    assert core < 9.5  # so it is hidden, as in the paper


# ---- causes ----


DOT = kernel_of(
    "kernel dot(n):\n    in x, y: f64[n]\n    out s: f64\n    s = 0\n    for i in range(n):\n        s += x[i] * y[i]\n"
)


def causes(found: InCore) -> set[str]:
    """The causes that make arithmetic or loads slower."""
    return {
        after.cause
        for before, after in pairwise(found.steps)
        if (after.overlapping_s, after.loads_s) != (before.overlapping_s, before.loads_s)
    }


def test_a_sum_waits_for_itself_unless_it_may_be_reordered() -> None:
    machine = load_machine("skylake_gold_6148")
    n, per_s = 100_000, 2.4e9 * 20
    strict = in_core(DOT, {"n": n}, machine)
    relaxed = in_core(DOT, {"n": n}, machine, relaxed=True)
    assert strict.steps[-1].overlapping_s == pytest.approx(4 * n / per_s, rel=0.01)  # an addition takes 4 cycles
    assert relaxed.steps[-1].loads_s == pytest.approx(2 * n / 8 * 0.5 / per_s, rel=0.01)  # two vectors a cycle
    assert {"chain of 4-cycle adds", "no SIMD: the sum may not be reordered"} <= causes(strict)
    remedies = {s.cause: s.remedy for s in strict.steps}
    assert "--math relaxed" in remedies["chain of 4-cycle adds"]
    assert not any("chain" in cause or "SIMD" in cause for cause in causes(relaxed))


def test_steps_never_get_faster() -> None:
    for kernel in (DOT, FIVE_POINTS, KAHAN):
        sizes = {p.name: 64 for p in kernel.parameters}
        for before, after in pairwise(in_core(kernel, sizes, load_machine(HSW)).steps):
            assert after.overlapping_s >= before.overlapping_s and after.loads_s >= before.loads_s


@pytest.mark.parametrize(
    ("type_name", "value", "why"),
    [
        ("f16", "x[i] + x[i]", "conversions of f16"),
        ("c128", "x[i]", "complex"),
        ("f64", "exp(x[i])", "no rate of exp"),
        ("f64", "sqrt(x[i])", "sqrt"),
    ],
)
def test_what_is_not_stated_is_a_reason(type_name: str, value: str, why: str) -> None:
    text = f"kernel k(n):\n    in x: {type_name}[n]\n    out y: {type_name}[n]\n    for i in range(n):\n"
    with pytest.raises(NoInCore, match=why):
        in_core(kernel_of(f"{text}        y[i] = {value}\n"), {"n": 100}, load_machine("zen2_epyc_7452"))
