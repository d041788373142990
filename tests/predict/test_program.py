"""Programs: docs/rules.md, rule 18."""

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_model import program
from roofdsl.machine.find import load_machine
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches, predict_program
from tests.predict.machines import kernel_of, machine

KERNELS = """
kernel add(n):
    in B, C: f64[n]
    out A: f64[n]
    for i in range(n):
        A[i] = B[i] + C[i]

kernel square(n):
    inout C: f64[n, n]
    in A: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * A[k, j]
"""
PROGRAM = """
program steps(n = 8, t):
    run add(n * n)
    repeat t:
        run square(n)
        repeat 2:
            run add(n)
"""
FILE = load_file(Source("p.roof", KERNELS + PROGRAM))
M = machine("peak f64 fma 1 TFLOP/s", "launch 2 us")


def test_a_program_is_the_sum_of_its_launches() -> None:
    p = predict_program(FILE, "steps", {"t": 5}, M)
    add, square = (kernel_of(KERNELS, name) for name in ("add", "square"))
    parts = [(predict(add, {"n": 64}, M), 1), (predict(square, {"n": 8}, M), 5), (predict(add, {"n": 8}, M), 10)]
    assert p.launches == 16
    assert p.work == sum(q.work * times for q, times in parts) == 64 + 5 * 2 * 8**3 + 10 * 8
    assert p.memory.bytes == sum(q.memory.bytes * times for q, times in parts)
    assert p.bound_s == sum(q.bound_s * times for q, times in parts)
    assert p.no_overlap_s == sum(q.no_overlap_s * times for q, times in parts)
    assert p.launch_s == Fraction(32, 10**6)
    assert (p.kernel, p.parameters, p.bound) == ("steps", (("n", 8), ("t", 5)), "launch")


def test_assumptions_of_some_kernels_say_of_which() -> None:
    """A rate that only `add` needs is assumed for it alone; what all kernels share has no name before it."""
    rate = "f64: unfused operations at half the fused rate (500 GFLOP/s)"
    assert predict(kernel_of(KERNELS, "add"), {"n": 8}, M).assumptions == (rate,)
    assert predict_program(FILE, "steps", {"t": 5}, M).assumptions == (f"add: {rate}",)
    alone = load_file(Source("p.roof", KERNELS + "\nprogram adds(n):\n    run add(n)\n    run add(2 * n)\n"))
    assert predict_program(alone, "adds", {"n": 5}, M).assumptions == (rate,)


def test_parameters_of_programs() -> None:
    with pytest.raises(CommandError, match="program steps needs a number for t"):
        predict_program(FILE, "steps", {}, M)
    with pytest.raises(CommandError, match="program steps has no parameter `m`") as error:
        predict_program(FILE, "steps", {"t": 1, "m": 2}, M)
    assert error.value.help == "its parameters are n, t"


# ---- programs in programs ----

NESTED = """
program inner(m, k = 2):
    run add(m * m)
    repeat k:
        run square(m)

program outer(n = 4, t):
    run inner(2 * n)
    repeat t:
        run inner(n // 2, t + 1)
        run add(n)
"""


def test_a_program_in_a_program_is_its_launches_with_the_arguments_in_place() -> None:
    nested = load_file(Source("p.roof", KERNELS + NESTED))
    flat = """
program flat(n = 4, t):
    run add(4 * n * n)
    repeat 2:
        run square(2 * n)
    repeat t:
        run add((n // 2) * (n // 2))
        repeat t + 1:
            run square(n // 2)
        run add(n)
"""
    for n, t in ((4, 1), (7, 3), (10, 2)):
        got = predict_program(nested, "outer", {"n": n, "t": t}, M)
        expected = predict_program(load_file(Source("p.roof", KERNELS + flat)), "flat", {"n": n, "t": t}, M)
        for name in ("work", "launches", "bound_s", "no_overlap_s", "compute_s", "launch_s", "levels"):
            assert getattr(got, name) == getattr(expected, name)


def test_const_parameters_get_their_numbers_through_programs() -> None:
    text = """
kernel every(n, const s = 1):
    in A: f64[n * s]
    out B: f64[n]
    for i in range(n):
        B[i] = A[s * i] + 1

program inner(n, const s):
    run every(n, s + 1)

program outer(n, s = 2):
    run inner(n, 2 * s)
"""
    checked = load_file(Source("p.roof", text))
    (launch,) = program(checked, "outer", {"s": 3}).launches
    assert launch.kernel.constants == (("s", 7),)
    (launch,) = program(checked, "outer").launches
    assert launch.kernel.constants == (("s", 5),)
    with pytest.raises(CommandError, match="needs a number for its `const` parameter `s`"):
        program(checked, "inner")


@pytest.mark.thorough
def test_too_many_launches() -> None:
    doubling = "".join(f"program p{i}(n):\n    run p{i + 1}(n)\n    run p{i + 1}(n)\n" for i in range(14))
    checked = load_file(Source("p.roof", KERNELS + doubling + "program p14(n):\n    run add(n)\n"))
    assert len(program(checked, "p2").launches) == 2**12
    with pytest.raises(CommandError, match="more than 10,000 `run` and `collective` lines"):
        program(checked, "p0")


@pytest.mark.parametrize(("programs", "allowed"), [(16, True), (17, False)])
def test_a_chain_of_programs_has_a_limit(programs: int, allowed: bool) -> None:
    chain = "".join(f"program p{i}(n):\n    run p{i + 1}(n)\n" for i in range(1, programs))
    source = Source("p.roof", KERNELS + chain + f"program p{programs}(n):\n    run add(n)\n")
    if allowed:
        assert len(program(load_file(source), "p1").launches) == 1
    else:
        with pytest.raises(InputError, match="deeper than the limit of 16"):
            load_file(source)


# ---- by kernel, by bound, by unit ----


def test_kernels_sorted_by_time() -> None:
    m = machine("peak f64 fma 1 GFLOP/s", "launch 2 us")  # the large square is bound by compute
    found = predict_launches(load_file(Source("p.roof", KERNELS + NESTED)), "outer", {"n": 16, "t": 2}, m)
    rows = found.by_kernel
    assert [r.total.kernel for r in rows] == ["square", "add"]
    assert sum(r.share for r in rows) == 1
    assert sum(r.total.launches for r in rows) == found.total.launches == 1 + 2 + 2 * (1 + 3 + 1)
    assert sum(r.total.bound_s for r in rows) == found.total.bound_s
    assert rows[0].bounds == ("compute", "launch")  # the square of 32 and those of 8
    big, small = (predict(kernel_of(KERNELS, "square"), {"n": n}, m) for n in (32, 8))
    assert rows[0].total.bound_s == 2 * big.bound_s + 6 * small.bound_s
    assert dict(found.time_by_bound)["compute"] == 2 * big.bound_s
    assert sum(time for _, time in found.time_by_bound) == found.total.bound_s
    document = found.to_json()
    assert document["schema"] == "roofdsl.predict/1"
    assert [row["kernel"] for row in document["by_kernel"]] == ["square", "add"]
    assert sum(row["work_flops"] for row in document["by_kernel"]) == document["work_flops"]
    assert sum(document["time_by_bound_s"].values()) == pytest.approx(document["time_s"])


def test_expected_times_of_the_kernels_of_a_program() -> None:
    checked, known = load_file(Source("p.roof", KERNELS + NESTED)), load_machine("v100_pcie")
    timed = Options(code=Code())
    found = predict_launches(checked, "outer", {"n": 16, "t": 2}, known, timed)
    square, add = found.by_kernel
    big, small = (predict(kernel_of(KERNELS, "square"), {"n": n}, known, timed).expected for n in (32, 8))
    assert (
        square.total.expected is not None and add.total.expected is not None and big is not None and small is not None
    )
    assert square.total.expected.expected_s == 2 * big.expected_s + 6 * small.expected_s
    assert found.total.expected is not None
    assert found.total.expected.expected_s == square.total.expected.expected_s + add.total.expected.expected_s
    rows = found.to_json()["by_kernel"]
    assert [row["expected_s"] for row in rows] == [float(p.expected.expected_s) for p in (square.total, add.total)]
    plain = predict_launches(checked, "outer", {"n": 16, "t": 2}, known)
    assert {row["expected_s"] for row in plain.to_json()["by_kernel"]} == {None}


UNITS = """
kernel product(n):
    in A, B: f16[n, n]
    out C: f16[n, n]
    for i in range(n), j in range(n):
        C[i, j] = 0
        for k in range(n):
            C[i, j] += A[i, k] * B[k, j]

kernel wide(n):
    in A, B: f32[n, n]
    inout C: f32[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]

kernel relu(n):
    inout C: f16[n, n]
    for i in range(n), j in range(n):
        C[i, j] = max(C[i, j], 0)

program mixed(n):
    run product(n)
    run wide(n)
    run relu(n)

program without(n):
    run wide(n)
    run relu(n)
"""


def test_matrix_units_take_the_launches_they_can() -> None:
    m = machine("peak f16 fma 2 TFLOP/s", "peak f16 tensor 16 TFLOP/s", "peak f32 fma 1 TFLOP/s", "launch 2 us")
    checked = load_file(Source("p.roof", UNITS))
    found = predict_launches(checked, "mixed", {"n": 64}, m, Options(unit="tensor"))
    assert {p.kernel: p.unit for p in found.parts} == {"product": "tensor", "wide": None, "relu": None}
    alone = predict(kernel_of(UNITS, "product"), {"n": 64}, m, Options(unit="tensor"))
    assert replace(found.parts[0], executions=None) == alone
    others = [predict(kernel_of(UNITS, n), {"n": 64}, m) for n in ("wide", "relu")]
    assert found.total.bound_s == alone.bound_s + sum(p.bound_s for p in others)
    assert found.total.compute_s == alone.compute_s + sum(p.compute_s for p in others)
    assert "not on tensor units: wide (m has no tensor rate for f32)" in found.total.assumptions
    assert "not on tensor units: relu (no contraction)" in found.total.assumptions
    own = UNITS.replace("kernel product(n):\n", "kernel product(n):\n    unit tensor\n")
    sparse = predict_launches(load_file(Source("p.roof", own)), "mixed", {"n": 64}, m, Options(unit="tensor_sparse"))
    assert sparse.parts[0].unit == "tensor"
    why = "m has no tensor_sparse rate for f16; `unit tensor` of the kernel applies"
    assert f"not on tensor_sparse units: product ({why})" in sparse.total.assumptions
    none = predict_program(checked, "without", {"n": 64}, m, Options(unit="tensor"))
    assert none.warnings == ("no launch of without runs on tensor units",)
    assert none.bound_s == predict_program(checked, "without", {"n": 64}, m).bound_s


MIXED = """
kernel add(n):
    in B, C: f64[n]
    out A: f64[n]
    for i in range(n):
        A[i] = B[i] + C[i]

kernel each_once(n):
    traffic once
    inout A: f64[n]
    for i in range(n):
        A[i] = 2 * A[i]

kernel filled(n):
    out A: f64[n]
    for i in range(n):
        stream A[i] = 1

program mixed(n):
    run add(n)
    repeat 3:
        run each_once(n)

program past(n):
    run add(n)
    repeat 2:
        run filled(n)
"""


@pytest.mark.parametrize(
    ("name", "times"), [("mixed", (("add", 1), ("each_once", 3))), ("past", (("add", 1), ("filled", 2)))]
)
def test_the_time_of_a_duplex_level_is_the_sum_over_the_launches(name: str, times: tuple[tuple[str, int], ...]) -> None:
    """Also where one convention does not distinguish loads and stores, or where other launches load than store."""
    on = machine("peak f64 fma 1 TFLOP/s", "memory DRAM 1 GiB, 10 GB/s, duplex, streamed 20 GB/s")
    checked = load_file(Source("p.roof", MIXED))
    total = predict_launches(checked, name, {"n": 1000}, on, Options()).total
    launches = [(predict(kernel_of(MIXED, k), {"n": 1000}, on), count) for k, count in times]
    assert total.memory.time_s == sum(p.memory.time_s * count for p, count in launches)
    assert total.no_overlap_s == sum(time for _, time in total.terms)
    assert total.memory.rate_bytes_per_s == total.memory.bytes / total.memory.time_s
    assert (total * 2).memory.time_s == 2 * total.memory.time_s
    assert total.memory.at_bandwidth(Fraction(5 * 10**9)).time_s == 2 * total.memory.time_s
