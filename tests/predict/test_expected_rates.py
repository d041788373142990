"""Typical rates of caches, and rates of few streams, in expected times."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.expected import Expected
from roofdsl.predict.expected_rates import streams_of
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of, machine, moving_of
from tests.predict.test_write_allocate_share import NOTHING

GB = 10**9


def streaming(*statements: str, arrays: str = "ab") -> Kernel:
    declared = "".join(f"    inout {name}: f64[n]\n" for name in arrays)
    loops = "".join(f"    for i in range(n):\n        {statement}\n" for statement in statements)
    return kernel_of(f"kernel k(n):\n{declared}{loops}")


def of_memory(*options: str, allocates: str = "write_allocate") -> Machine:
    return machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap", f"cache L1 4096 B, 200 GB/s, line 64 B, {allocates}",
        f"memory DRAM 16 GiB, {', '.join(('10 GB/s', *options))}",
    )  # fmt: skip


FEW = of_memory("one_stream 6 GB/s", "streams 6")


def expected_of(kernel: Kernel, n: int, given: Machine, options: Options | None = None) -> Expected:
    options, sizes = options or Options(), {"n": n}
    bound = predict(kernel, sizes, given, options)
    found = composed(bound, NOTHING, given, moving=moving_of(bound, kernel, sizes, given, options))
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected


@pytest.mark.parametrize(
    ("statement", "streams", "arrays"),
    [
        ("a[i] = 1.5", 2, "a"), ("a[i] += 1", 2, "a"), ("a[i] = b[i]", 3, "ab"), ("a[i] += b[i]", 3, "ab"),
        ("a[i] = b[i] + c[i]", 4, "abc"), ("a[i] = b[i] + c[i] + d[i]", 5, "abcd"),
    ],
)  # fmt: skip
def test_equal_streams_are_counted_one_by_one(statement: str, streams: int, arrays: str) -> None:
    """Also that the rate rises from that of one stream, 6 GB/s, by 0.8 GB/s for each further one."""
    kernel = streaming(statement, arrays=arrays)
    assert streams_of(kernel, {"n": 8000}, FEW) == streams
    found = expected_of(kernel, 8000, FEW)
    assert found.expected_s == Fraction(streams * 64_000, 6 * GB + (streams - 1) * 8 * GB // 10)
    assert [c.cause for c in found.causes] == ["bandwidth of DRAM that few streams get"]


@pytest.mark.parametrize(
    ("n", "rate", "copies"), [(200, 40, 1), (400, 60, 1), (504, 60, 1), (400, 40, 2), (800, 60, 2), (1032, 40, 2)]
)
def test_large_data_may_have_another_typical_rate(n: int, rate: int, copies: int) -> None:
    """L2 has 4 kB, whose data of 3 kB and more come at 60 GB/s. Two copies share the data. Those beyond L2 pass it at
    the usual rate.
    """
    given = machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap",
        f"cache L1 64 B, 200 GB/s, line 64 B, copies {copies}",
        f"cache L2 4096 B, 80 GB/s, line 64 B, copies {copies}, typical 40 GB/s, larger 60 GB/s, larger_from 3000 B",
        "memory DRAM 16 GiB, 1000 GB/s",
    )  # fmt: skip
    found = expected_of(streaming("a[i] += 1", arrays="a"), n, given, Options(warm=True))
    assert found.transfers[0] == ("L2", Fraction(16 * n, rate * GB))


def test_stored_lines_of_large_data_get_another_rate_too() -> None:
    """They take n x 8 / 30 GB/s beside loads at 40 GB/s, both measured with small data; 1.5 times that with large."""
    given = machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap", "cache L1 64 B, 200 GB/s, line 64 B",
        "cache L2 4096 B, 80 GB/s, line 64 B, typical 40 GB/s, larger 60 GB/s, larger_from 3000 B, written 30 GB/s, "
        "written_loads 40 GB/s",
        "memory DRAM 16 GiB, 1000 GB/s",
    )  # fmt: skip
    each = Fraction(8, 30 * GB) + Fraction(8, 40 * GB)
    for n, times in ((200, 1), (400, Fraction(3, 2))):
        found = expected_of(streaming("a[i] += 1", arrays="a"), n, given, Options(warm=True))
        assert found.transfers[0] == ("L2", n * each / times)


def test_a_memory_may_state_what_is_typical() -> None:
    """An update of 8000 numbers loads and stores 64 kB each: at 8 GB/s instead of the bound's 10."""
    kernel, given = streaming("a[i] += 1", arrays="a"), of_memory("typical 8 GB/s")
    found = expected_of(kernel, 8000, given)
    assert found.expected_s == Fraction(128_000, 8 * GB)
    (cause,) = found.causes
    assert (cause.cause, cause.share_s) == ("bandwidth of DRAM that is typical, not the best", Fraction(32, 10**7))


@pytest.mark.parametrize(("read", "streams"), [("a[i]", 1), ("a[i] * b[i]", 2)])
def test_loaded_arrays_alone(read: str, streams: int) -> None:
    declared = "".join(f"    in {name}: f64[n]\n" for name in "ab"[:streams])
    kernel = kernel_of(f"kernel k(n):\n{declared}    inout s: f64\n    for i in range(n):\n        s += {read}\n")
    assert streams_of(kernel, {"n": 8000}, FEW) == streams


def test_six_streams_get_the_bandwidth() -> None:
    found = expected_of(streaming("a[i] += 1\n        b[i] += 1\n        c[i] += 1", arrays="abc"), 8000, FEW)
    assert found.expected_s == Fraction(6 * 64_000, 10 * GB) and not found.causes


def test_a_short_stream_counts_for_little() -> None:
    """The matrix of GEMV is the only long stream."""
    gemv = kernel_of(
        "kernel g(n):\n    in A: f64[n, n]\n    in x: f64[n]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n"
    )
    n, own = 100, [100 * 100, 100, 100, 100]
    assert streams_of(gemv, {"n": n}, FEW) == Fraction(sum(own) ** 2, sum(b * b for b in own)) < 1.1


def test_loops_one_after_the_other_are_averaged_by_their_bytes() -> None:
    kernel = streaming("a[i] = b[i]", "c[i] += 1", arrays="abc")  # three streams, then two
    assert streams_of(kernel, {"n": 8000}, FEW) == Fraction(3 * 3 + 2 * 2, 3 + 2)


def test_what_is_not_allocated_is_not_loaded() -> None:
    given = of_memory("one_stream 6 GB/s", "streams 6", allocates="no_write_allocate")
    assert streams_of(streaming("a[i] = b[i]"), {"n": 8000}, given) == 2


def test_a_machine_without_such_a_rate_asks_for_nothing() -> None:
    assert streams_of(streaming("a[i] = b[i]"), {"n": 8000}, of_memory()) is None
    assert not expected_of(streaming("a[i] = b[i]"), 8000, of_memory()).causes


def test_a_ceiling_lowers_the_rate_of_few_streams_too() -> None:
    given = machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap", "cache L1 4096 B, 200 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 10 GB/s, one_stream 6 GB/s, streams 6", 'ceiling "half" DRAM 5 GB/s',
    )  # fmt: skip
    found = expected_of(streaming("a[i] = b[i]"), 8000, given, Options(ceilings=("half",)))
    assert found.expected_s == Fraction(3 * 64_000 * 10, 76 * GB // 2)


def of_cache(options: str) -> Machine:
    return machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap", "cache L1 4096 B, 200 GB/s, line 64 B, no_write_allocate",
        f"cache L2 1 MiB, 100 GB/s, line 64 B, write_allocate{options}", "memory DRAM 16 GiB, 10 GB/s",
    )  # fmt: skip


WARM = Options(warm=True)


def test_a_cache_delivers_its_typical_rate_and_the_bound_takes_the_best() -> None:
    kernel, given = streaming("a[i] = b[i]"), of_cache(", typical 80 GB/s")
    found = expected_of(kernel, 8000, given, WARM)
    assert found.expected_s == Fraction(2 * 64_000, 80 * GB)
    assert [c.cause for c in found.causes] == ["bandwidth of L2 that is typical, not the best"]
    assert predict(kernel, {"n": 8000}, given, WARM).bound_s == Fraction(2 * 64_000, 100 * GB)


def test_few_streams_get_less_of_the_typical_rate() -> None:
    given = of_cache(", typical 80 GB/s, one_stream 40 GB/s, streams 3")
    found = expected_of(streaming("a[i] += 1", arrays="a"), 8000, given, WARM)  # two streams: in the middle
    assert found.expected_s == Fraction(2 * 64_000, 60 * GB)
    assert {c.cause for c in found.causes} >= {
        "bandwidth of L2 that few streams get", "bandwidth of L2 that is typical, not the best",
    }  # fmt: skip


def test_other_rates_of_a_cache_are_as_stated() -> None:
    """`written` is measured as it typically is, so a typical bandwidth does not lower it again."""
    found = expected_of(streaming("a[i] = b[i]"), 8000, of_cache(", typical 80 GB/s, written 20 GB/s"), WARM)
    assert found.expected_s == Fraction(64_000, 20 * GB)


def test_the_number_of_streams_is_needed() -> None:
    with pytest.raises(InputError, match="add `streams 6`"):
        of_memory("one_stream 6 GB/s")
