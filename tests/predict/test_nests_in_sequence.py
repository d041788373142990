"""Loop nests of one kernel follow each other: their bytes by an LRU cache of its own, and their times by addition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from roofdsl.incore.result import InCore, NoInCore
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_models
from roofdsl.machine.model import Machine
from roofdsl.plot.kinds.ecm import bars_of
from roofdsl.predict import in_core_time
from roofdsl.predict.expected import Expected
from roofdsl.predict.expected_of_nests import IN_SEQUENCE, shared_out
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_launches
from tests.oracle.lru_parts import parts_behind
from tests.predict.machines import kernel_of, machine, of_lines

HASWELL = load_machine("haswell_e5_2695v3")
STATED = Options(code=Code("stated"), accesses="compiled")


def expected_of(kernel: Kernel, sizes: Mapping[str, int], given: Machine, options: Options = STATED) -> Expected:
    """The expected time, whose causes add up to its distance from the bound."""
    found = predict(kernel, sizes, given, options)
    assert found.expected is not None, found.no_expected
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected


MEMORY = HASWELL.main_memory
STRIDED = replace(
    HASWELL,
    caches=(replace(HASWELL.caches[0], ways=8), replace(HASWELL.caches[1], ways=8), *HASWELL.caches[2:]),
    memories=(replace(MEMORY, strided_bytes_per_s=MEMORY.bandwidth_bytes_per_s / 20), *HASWELL.memories[1:]),
)


# ---- bytes ----

N = 24
ACCESSES: dict[str, tuple[str, Callable[[], Iterator[tuple[str, int, bool]]]]] = {}
"""Loop nests over three N x N matrices and a vector: as text, and as the accesses (array, element, is a store)."""


def nest(text: str) -> Callable[[Callable[[], Iterator[tuple[str, int, bool]]]], None]:
    def kept(accesses: Callable[[], Iterator[tuple[str, int, bool]]]) -> None:
        ACCESSES[accesses.__name__] = (text, accesses)

    return kept


@nest("    for i in range(n), j in range(n):\n        B[i, j] = A[i, j]\n")
def copied() -> Iterator[tuple[str, int, bool]]:
    for i in range(N):
        for j in range(N):
            yield "A", i * N + j, False
            yield "B", i * N + j, True


@nest("    for i in range(n), j in range(n):\n        C[i, j] = B[j, i]\n")
def transposed() -> Iterator[tuple[str, int, bool]]:
    for i in range(N):
        for j in range(N):
            yield "B", j * N + i, False
            yield "C", i * N + j, True


@nest("    x[0] = 0\n    for i in range(n), j in range(i, n):\n        x[i] += C[i, j]\n")
def summed() -> Iterator[tuple[str, int, bool]]:
    yield "x", 0, True
    for i in range(N):
        for j in range(i, N):
            yield "x", i, False
            yield "C", i * N + j, False
            yield "x", i, True


def lru(lines: int, order: list[str], warm: bool) -> list[tuple[int, int]]:
    """(loaded, stored) bytes of each nest of a launch; of the second one with warm caches."""
    return parts_behind(lines, (ACCESSES[name][1]() for name in order * (2 if warm else 1)))[-len(order) :]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("lines", [17, 100, 180, 400])
@pytest.mark.parametrize(
    "order", [["copied", "transposed"], *map(list, permutations(["copied", "transposed", "summed"]))]
)
def test_each_nest_moves_what_its_own_accesses_miss(
    order: list[str], lines: int, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nest finds what those before it left, and with warm caches what the launch before left."""
    monkeypatch.setattr(in_core_time, "_divided_evenly", lambda *_: in_core(1.0))
    body = "".join(ACCESSES[name][0] for name in order)
    kernel = kernel_of(f"kernel k(n):\n    in A: f64[n, n]\n    inout B, C: f64[n, n], x: f64[n]\n{body}")
    given = replace(of_lines(lines), instructions=HASWELL.instructions)
    found = predict(kernel, {"n": N}, given, replace(STATED, warm=warm, accesses="written"))
    assert found.expected is not None and len(found.expected.nests) == len(order)
    for level in ("L2", "DRAM"):
        each = [next(v for v in nest.levels if v.name == level) for nest in found.expected.nests]
        counted = lru(16 if level == "L2" else lines, order, warm)
        assert [(v.loads_bytes, v.stores_bytes) for v in each] == counted
        whole = next(v for v in found.levels if v.name == level)
        assert sum(v.bytes for v in each) == whole.bytes
    accesses = [8 * len(list(ACCESSES[name][1]())) for name in order]
    assert [nest.levels[0].bytes for nest in found.expected.nests] == accesses


def in_core(seconds: float) -> InCore:
    return InCore("by hand", (in_core_time.Step("", "", seconds, seconds / 2),), 0.0)


# ---- times ----

CHAIN = "    for i in range(1, m):\n        x[i] = x[i] + 0.5 * x[i - 1]\n"
COPY = "    for i in range(n):\n        y[i] = z[i]\n"
SUM = "    s = 0\n    for i in range(n):\n        s += w[i]\n"
POLYNOMIAL = "    for i in range(m):\n        v[i] = v[i] * (v[i] * (v[i] * (v[i] * (v[i] + 1) + 1) + 1) + 1) + 1\n"
ARRAYS = {
    CHAIN: "    inout x: f64[m]\n",
    COPY: "    in z: f64[n]\n    out y: f64[n]\n",
    SUM: "    in w: f64[n]\n    out s: f64\n",
    POLYNOMIAL: "    inout v: f64[m]\n",
}
SIZES = {"m": 50_000, "n": 200_000}


def of(*bodies: str) -> Kernel:
    return kernel_of(f"kernel k(m, n):\n{''.join(ARRAYS[b] for b in bodies)}{''.join(bodies)}")


@pytest.mark.parametrize("math", ["strict", "relaxed"])
@pytest.mark.parametrize("accesses", ["written", "compiled"])
@pytest.mark.parametrize("bodies", [(CHAIN, COPY), (COPY, CHAIN), (SUM, CHAIN), (POLYNOMIAL, SUM, COPY, CHAIN)])
def test_loops_over_other_data_take_as_long_as_apart(bodies: tuple[str, ...], accesses: Any, math: Any) -> None:
    options = replace(STATED, code=Code("stated", math=math), accesses=accesses)
    together = expected_of(of(*bodies), SIZES, HASWELL, options)
    apart = [expected_of(of(body), SIZES, HASWELL, options) for body in bodies]
    assert float(together.expected_s) == pytest.approx(float(sum(e.expected_s for e in apart)), rel=1e-5)
    assert float(together.core_s) == pytest.approx(float(sum(e.core_s for e in apart)))
    if math == "strict":
        relaxed = expected_of(of(*bodies), SIZES, HASWELL, replace(options, code=Code("stated")))
        if together.relaxed_s is not None:
            assert together.relaxed_s == relaxed.expected_s


def test_a_chain_does_not_hide_the_copy_after_it() -> None:
    sizes = {"m": 150_000, "n": 100_000}
    chain, copy = (expected_of(of(body), sizes, HASWELL) for body in (CHAIN, COPY))
    assert chain.core_s > chain.data_s and copy.data_s > copy.core_s  # so it would, if loops overlapped
    together = expected_of(of(CHAIN, COPY), sizes, HASWELL)
    assert together.expected_s > Fraction(13, 10) * max(
        together.core_s, together.loads_s + sum((time for _, time in together.transfers), Fraction(0))
    )


def test_the_bound_takes_both_terms_at_once() -> None:
    """One loop is bound by arithmetic, the other by memory. Their bounds are the cause of what is above the larger."""
    kernel, sizes = of(POLYNOMIAL, COPY), {"m": 1000, "n": 100_000}
    given = replace(HASWELL, peaks=tuple(replace(p, rate_per_s=p.rate_per_s / 1000) for p in HASWELL.peaks))
    found = predict(kernel, sizes, given, STATED)
    assert found.expected is not None and found.bound == "compute"
    memory_s = next(v.time_s for v in found.expected.nests[1].levels if v.name == "DRAM")
    shares = {c.cause: c.share_s for c in found.expected.causes}
    assert shares[IN_SEQUENCE] == memory_s - (found.bound_s - found.expected.nests[0].bound_s)


POLYBENCH = {
    "atax": {"m": 180, "n": 200},
    "gemver": {"n": 150},
    "mvt": {"n": 150},
    "mm3": dict.fromkeys(("ni", "nj", "nk", "nl", "nm"), 40),
}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", POLYBENCH)
def test_the_sum_lies_between_all_at_once_and_one_by_one(name: str, warm: bool) -> None:
    kernel = pick(load_file(shipped_models()[name].path), name)
    found = predict(kernel, POLYBENCH[name], HASWELL, replace(STATED, warm=warm))
    assert found.expected is not None and len(found.expected.nests) > 1
    own, nests = found.expected, found.expected.nests
    times = [own.loads_s, *(time for _, time in own.transfers)]
    assert float(own.expected_s) >= float(max(own.core_s, sum(times, Fraction(0)))) * (1 - 1e-9)  # transfers take turns
    assert own.expected_s <= own.core_s + own.data_s + own.launch_s
    for place, level in enumerate(found.levels):
        assert sum(nest.levels[place].bytes for nest in nests) == level.bytes
        assert min(nest.levels[place].bytes for nest in nests) >= 0


def test_the_launch_counts_once() -> None:
    late = replace(HASWELL, launch_s=Fraction(1, 1000))
    without, found = expected_of(of(SUM, CHAIN), SIZES, HASWELL), expected_of(of(SUM, CHAIN), SIZES, late)
    assert found.expected_s - found.launch_s == without.expected_s - without.launch_s
    assert found.launch_s == Fraction(1, 1000)


# ---- several cores ----

CORES = machine(
    "peak f64 fma 294.4 GFLOP/s",
    "transfers serial",
    "cache L1 32 KiB, 1766.4 GB/s, line 64 B, copies 8, write_allocate",
    "cache L2 256 KiB, 1177.6 GB/s, line 64 B, copies 8, write_allocate",
    "cache L3 17.5 MiB, 588.8 GB/s, line 64 B, write_allocate",
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


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
def test_one_core_does_the_chain_and_all_share_the_rest(cores: int) -> None:
    def timed(n: int, *bodies: str) -> Fraction:
        found = on_cores(of(*bodies), SIZES, CORES, n, STATED)
        assert found.expected is not None
        assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
        return found.expected.expected_s

    apart = timed(1, CHAIN) + timed(cores, COPY) + timed(cores, POLYNOMIAL)
    assert float(timed(cores, CHAIN, COPY, POLYNOMIAL)) == pytest.approx(float(apart), rel=1e-9)
    everywhere = predict(of(CHAIN, COPY, POLYNOMIAL), SIZES, CORES, STATED).expected
    assert everywhere is not None
    assert cores < 8 or everywhere.expected_s == timed(8, CHAIN, COPY, POLYNOMIAL)


def test_cores_without_a_stated_share_of_memory_follow_the_same_rule() -> None:
    plain = replace(CORES, ceilings=())
    chain = expected_of(of(CHAIN), SIZES, replace(plain, units=1))
    found = predict(of(CHAIN, POLYNOMIAL), SIZES, plain, STATED).expected
    assert found is not None and len(found.nests) == 2
    assert float(found.nests[0].expected.core_s) == pytest.approx(float(chain.core_s))


# ---- where it is known elsewhere, and where it cannot be known ----


def test_a_program_that_is_repeated() -> None:
    """The last cache holds the arrays of a launch until the next one, and the others do not."""
    filler = "kernel filler(k):\n    inout f: f64[k]\n    for i in range(k):\n        f[i] = 2 * f[i]\n"

    def steady(*bodies: str) -> Fraction:
        body = "".join(ARRAYS[b] for b in bodies) + "".join(bodies)
        text = f"kernel two(m, n):\n{body}\n{filler}\nprogram p(m, n, k):\n    run two(m, n)\n    run filler(k)\n"
        checked = load_file(Source("p.roof", text))
        found = predict_launches(
            checked, "p", {"m": 50_000, "n": 50_000, "k": 100_000}, HASWELL, replace(STATED, warm=True)
        )
        part = next(p for p in found.parts if p.kernel == "two")
        assert part.expected is not None and part.memory.bytes == 0
        return part.expected.expected_s

    assert float(steady(CHAIN, COPY)) == pytest.approx(float(steady(CHAIN) + steady(COPY)), rel=1e-9)


def test_bars_of_a_nest_begin_where_the_one_before_ends() -> None:
    found = expected_of(of(CHAIN, COPY), SIZES, HASWELL)
    bars = [bar for bar in bars_of(found, 1e6) if bar.name == "arithmetic"]
    assert [bar.start for bar in bars] == [0.0, pytest.approx(1e6 * float(found.nests[0].expected.expected_s))]
    ends = max(bar.start + bar.length for bar in bars_of(found, 1e6))
    assert ends == pytest.approx(1e6 * float(found.expected_s))


def test_what_cannot_be_told_apart_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, kernel = in_core_time._divided_evenly, of(CHAIN, COPY)

    def only_whole(prediction: Any, own: Kernel, *rest: Any) -> InCore:
        if own != kernel:
            raise NoInCore("the code is not understood")
        return plain(prediction, own, *rest)

    apart = expected_of(kernel, SIZES, HASWELL)
    monkeypatch.setattr(in_core_time, "_divided_evenly", only_whole)
    found = predict(kernel, SIZES, HASWELL, STATED)
    assert found.expected is not None and not found.expected.nests
    assert "loops count as if they overlapped: the code is not understood" in found.assumptions
    assert found.expected.expected_s < apart.expected_s


def test_in_core_times_of_nests_add_up_to_that_of_the_kernel() -> None:
    """Each nest alone enters and leaves a function of its own: 12 s in all, where the kernel takes 10."""

    def taking(core_s: float, loads_s: float) -> InCore:
        steps = (in_core_time.Step("", "", core_s / 2, 0.0), in_core_time.Step("chain", "", core_s, loads_s))
        return InCore("by hand", steps, 1.0)

    first, second = shared_out(taking(10.0, 4.0), [taking(9.0, 1.0), taking(3.0, 3.0)])
    assert [(s.overlapping_s, s.loads_s) for s in first.steps] == [(3.75, 0.0), (7.5, 1.0)]
    assert [(s.overlapping_s, s.loads_s) for s in second.steps] == [(1.25, 0.0), (2.5, 3.0)]
    assert first.launch_s == second.launch_s == 0  # the launch counts once


@pytest.mark.parametrize("head", ["", "    traffic once\n"])
@pytest.mark.parametrize("k", [64, 96])
def test_strided_walks_over_other_data_take_as_long_as_apart(k: int, head: str) -> None:
    """Also where lines fall into few sets, and where the hardware moves more than the kernel's convention counts."""
    one = "    for i in range(k), j in range(k):\n        B[j, i] = A[i, j]\n"
    two = "    for i in range(k), j in range(k):\n        D[i, j] = C[j, i] + C[j, i]\n"

    def of_both(*bodies: str) -> Prediction:
        kernel = kernel_of(f"kernel t(k):\n{head}    in A, C: f64[k, k]\n    out B, D: f64[k, k]\n{''.join(bodies)}")
        found = predict(kernel, {"k": k}, STRIDED, STATED)
        assert found.expected is not None
        return found

    together = of_both(one, two)
    assert together.expected is not None and len(together.expected.nests) == 2
    apart = [of_both(body).expected for body in (one, two)]
    assert float(together.expected.expected_s) == pytest.approx(sum(float(e.expected_s) for e in apart if e), rel=1e-5)
    assert any(c.cause.startswith("stride") for c in together.expected.causes)
