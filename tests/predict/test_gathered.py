"""Lines that gathers load: a made-up machine, with the times of its lines by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.incore.compiled import in_core
from roofdsl.incore.result import InCore, Step
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.measure.assembled import features
from roofdsl.predict.expected import Expected
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.incore.machines import MACHINE
from tests.predict.machines import kernel_of, machine, moving_of

CAUSE = "lines of x are gathered, and not prefetched"


def strided(step: int, type: str = "f64", value: str = "x[{step}*i]") -> Kernel:
    return kernel_of(
        f"kernel k(n):\n    in x: {type}[{step}*n]\n    out y: f64[n]\n    for i in range(n):\n"
        f"        y[i] = {value.format(step=step)}\n"
    )


def made(gathered: str = ", gathered 8 GB/s") -> Machine:
    """A line takes 8 ns from memory if eight of its elements are gathered, and 1 ns if one is."""
    return machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B",
        "cache L2 64 KiB, 6400 GB/s, line 64 B, strided 640 GB/s",
        f"memory DRAM 16 GiB, 640 GB/s, strided 64 GB/s{gathered}",
        "clock 1 GHz",
    )


def expected(kernel: Kernel, n: int, loads: float, given: Machine) -> Expected:
    """loads: the elements that gathers load."""
    core = InCore("by hand", (Step("", "", 0.0, 0.0),), 0.0, gathered=loads)
    found = predict(kernel, {"n": n}, given)
    found = composed(found, core, given, moving=moving_of(found, kernel, {"n": n}, given, Options()))
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected


N = 80_000
COLUMN = kernel_of(
    "kernel k(n):\n    in x: c128[n]\n    in z: f64[8*n]\n    out y: f64[n]\n    for i in range(n):\n"
    "        y[i] = real(x[i])*real(x[i]) + imag(x[i])*imag(x[i]) + z[8*i]\n"
)


@pytest.mark.parametrize(("step", "loads_a_line", "line_ns"), [(2, 4, 4.0), (4, 2, 2.0)])
def test_a_line_takes_longer_the_more_of_its_elements_are_gathered(
    step: int, loads_a_line: int, line_ns: float
) -> None:
    """8^(log8 of the loads) ns: 4 ns with four loads, 2 ns with two. What is stored takes its bandwidth besides."""
    found = expected(strided(step), N, N, made())
    lines = N // loads_a_line
    stored_s = 8 * N / 640e9
    assert float(found.expected_s) == pytest.approx(lines * line_ns * 1e-9 + stored_s, rel=1e-6)
    assert CAUSE in {c.cause for c in found.causes}


def test_the_parts_of_complex_numbers_are_gathered() -> None:
    """The real parts of four numbers a line of 64 B; with both parts, a line has eight loads."""
    real = strided(1, "c128", "real(x[i])")
    for loads, line_ns in ((N, 4.0), (2 * N, 8.0), (20 * N, 8.0 * 2)):
        found = expected(real, N, loads, made())
        assert float(found.expected_s) == pytest.approx(N / 4 * line_ns * 1e-9 + 8 * N / 640e9, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "loads", "given"),
    [
        (strided(2), 0, made()),  # the compiler made no gathers
        (strided(1), N, made()),  # neighboring elements are a stream
        (strided(8), N, made()),  # every element is in a line of its own: a strided walk
        (COLUMN, N, made()),  # its gathers may be those of the other array alone
        (strided(2), N, made("")),  # the machine does not say
    ],
)
def test_other_lines_are_not_gathered(kernel: Kernel, loads: float, given: Machine) -> None:
    assert CAUSE not in {c.cause for c in expected(kernel, N, loads, given).causes}


def test_lines_of_a_nearer_level_without_a_rate_take_no_time_of_their_own() -> None:
    """All data lie in L2, which states no rate of gathered lines: the core's own time covers them."""
    small = kernel_of(
        "kernel k(n):\n    in x: f64[2*n]\n    out y: f64[n]\n    for t in range(1000), i in range(n):\n"
        "        y[i] = x[2*i]\n"
    )
    n = 1000
    with_gathers, without = (expected(small, n, loads, made()) for loads in (1000 * n, 0))
    lines = Fraction(n, 4)
    assert with_gathers.expected_s - without.expected_s < lines * 8 / 10**9


@pytest.mark.skipif("avx512vl" not in features(), reason="compilers make gathers for processors with AVX-512")
def test_compiled_code_tells_how_many_elements_it_gathers() -> None:
    found = in_core(strided(2), {"n": 8000}, MACHINE)
    assert found.gathered == pytest.approx(8000, rel=0.05)
    assert in_core(strided(1), {"n": 8000}, MACHINE).gathered == 0
