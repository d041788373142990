"""The expected time: causes that add up, rules of transfers by hand, and a reason where there is no such time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import replace
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict import in_core_time
from roofdsl.predict.expected import Cause, joined
from roofdsl.predict.hardware_traffic import Moved, Moving
from roofdsl.predict.in_core_time import Code, composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_launches
from roofdsl.predict.some_cores import some_cores
from tests.predict.machines import kernel_of, machine
from tests.predict.test_program import FILE

COPY = kernel_of("kernel copy(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = x[i]\n")
N = 1 << 20


def made(*more: str) -> Machine:
    """16 MiB from memory (with the loads before stores 24 MiB) at 10 GB/s, L2 at 40, L1 at 200."""
    return machine(
        "peak f64 fma 10 GFLOP/s",
        "cache L1 32 KiB, 200 GB/s, line 64 B, write_allocate",
        "cache L2 1 MiB, 40 GB/s, line 64 B, write_allocate",
        *(more if any(line.startswith("memory") for line in more) else ("memory DRAM 16 GiB, 10 GB/s", *more)),
    )


def core(*steps: tuple[str, float, float], launch_s: float | None = None) -> InCore:
    return InCore("by hand", tuple(Step(cause, "", ol, loads) for cause, ol, loads in steps), launch_s)


def of(given: Machine, in_core: InCore, options: Options | None = None) -> Prediction:
    found = composed(predict(COPY, {"n": N}, given, options or Options()), in_core, given)
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found


MOVED = 24 * 2**20
DRAM_S, L2_S = Fraction(MOVED, 10**10), Fraction(MOVED, 4 * 10**10)


def test_serial_transfers_add_to_the_loads() -> None:
    found = of(made("transfers serial"), core(("", 1e-4, 5e-4)))
    assert found.expected is not None
    assert float(found.expected.expected_s) == pytest.approx(float(DRAM_S + L2_S) + 5e-4)
    assert found.bound_s == DRAM_S
    (cause,) = found.expected.causes
    assert cause.cause == "transfers of DRAM, L2 and the core's loads and stores take turns"


@pytest.mark.parametrize(
    ("rule", "data_s"),
    [
        ("transfers overlap", float(DRAM_S)),
        ("transfers overlap 0.25", float(DRAM_S) + 0.75 * (float(L2_S) + 5e-4)),
        ("clock 1 GHz", float(DRAM_S)),
    ],
)
def test_transfers_that_overlap(rule: str, data_s: float) -> None:
    found = of(made(rule), core(("", 1e-4, 5e-4)))
    assert found.expected is not None
    assert float(found.expected.expected_s) == pytest.approx(data_s)
    assert any("overlap" in a for a in found.assumptions) == (rule == "clock 1 GHz")


def test_less_traffic_than_the_bound_counts_lowers_the_time_by_its_own_cause() -> None:
    """The bound counts 24 MiB; a machine that loads no line before it is stored moves 16, in two thirds of the time."""
    given = made("transfers overlap")
    bound = predict(COPY, {"n": N}, given, Options())
    plain = replace(given, caches=tuple(replace(cache, write_allocate=False) for cache in given.caches))
    moved = Moved("fewer lines come in", "", predict(COPY, {"n": N}, plain, Options()).levels)
    found = composed(bound, core(("", 1e-4, 1e-4)), plain, moving=Moving((moved,))).expected
    assert found is not None and bound.bound_s == DRAM_S
    assert [(c.cause, c.share_s) for c in found.causes] == [("fewer lines come in", -DRAM_S / 3)]


def test_every_step_adds_its_own_share() -> None:
    steps = (("", 1e-4, 1e-4), ("no SIMD: a sum", 3e-3, 1e-4), ("chain of adds", 7e-3, 1e-4))
    found = of(made("transfers overlap", "launch 1 us"), core(*steps))
    assert found.expected is not None
    shares = {c.cause: float(c.share_s) for c in found.expected.causes}
    bound = float(found.bound_s)
    assert shares["no SIMD: a sum"] == pytest.approx(3e-3 - bound)
    assert shares["chain of adds"] == pytest.approx(4e-3)
    assert shares["the launch does not overlap with the work"] == pytest.approx(1e-6)
    assert found.expected.causes[0].cause == "chain of adds"  # the largest first


def test_arithmetic_hides_transfers() -> None:
    found = of(made("transfers serial"), core(("", 1e-4, 5e-4), ("chain of adds", 1.0, 5e-4)))
    assert found.expected is not None and float(found.expected.expected_s) == 1.0


def test_stores_at_their_own_rate() -> None:
    given = made("transfers overlap", "memory DRAM 16 GiB, 10 GB/s, stores 5 GB/s")
    found = of(given, core(("", 0.0, 0.0)))
    assert found.expected is not None
    assert found.bound_s == DRAM_S  # the bound does not know
    assert found.expected.expected_s == Fraction(16 * 2**20, 10**10) + Fraction(8 * 2**20, 5 * 10**9)
    assert [c.cause for c in found.expected.causes] == ["stores to DRAM are slower than loads"]


def test_stored_lines_have_a_rate_of_their_own() -> None:
    """8 MiB of stored lines at 4 GB/s take longer than the transfers of their level; at 40 GB/s they do not."""
    given = made("transfers overlap", "memory DRAM 16 GiB, 100 GB/s")

    def written(rate: int) -> Prediction:
        cache = replace(given.caches[1], written_bytes_per_s=Fraction(rate * 10**9))
        return of(replace(given, caches=(given.caches[0], cache)), core(("", 0.0, 0.0)))

    plain, fast, slow = of(given, core(("", 0.0, 0.0))), written(40), written(4)
    stored = next(level.stores_bytes for level in slow.levels if level.name == "L2")
    assert slow.expected is not None and plain.expected is not None and stored
    assert slow.expected.expected_s == Fraction(stored, 4 * 10**9) > plain.expected.expected_s
    assert slow.expected.causes[0].cause == "lines of L2 that stores change"
    assert fast.expected == plain.expected


def test_a_cache_slower_beside_memory_than_alone_is_not_in_the_bound() -> None:
    text = "kernel both(m, n):\n    in A: f64[m, n], b: f64[n]\n    out s: f64\n    s = 0\n"
    text += "    for i in range(m), j in range(n):\n        s += A[i, j] + b[j]\n"
    given = made("transfers overlap", "memory DRAM 16 GiB, 10 GB/s")
    given = replace(given, caches=(given.caches[0], replace(given.caches[1], beside_bytes_per_s=Fraction(20 * 10**9))))
    kernel, sizes = kernel_of(text), {"m": 512, "n": 2**14}
    rows = 8 * 512 * 2**14
    found = composed(predict(kernel, sizes, given), core(("", 0.0, 0.0)), given)
    assert found.expected is not None
    assert float(found.bound_s) == pytest.approx(rows / 10e9 + rows / 40e9, rel=0.01)
    assert float(found.expected.expected_s) == pytest.approx(rows / 10e9 + rows / 20e9, rel=0.01)


def test_nothing_is_faster_than_a_bound_of_compiled_accesses() -> None:
    given = made("transfers overlap")
    p = predict(COPY, {"n": 512}, given, Options(warm=True, accesses="compiled"))
    quick = core(("", 0.0, 0.0), launch_s=0.0)
    faster, as_bound = composed(p, quick, given), composed(p, quick, given, as_compiled=True)
    assert faster.expected is not None and as_bound.expected is not None
    assert faster.expected.expected_s == 0 < p.bound_s == as_bound.expected.expected_s
    assert [c.share_s for c in faster.expected.causes] == [-p.bound_s]


def test_programs_add_their_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_core_time, "_core", lambda *_: core(("", 1e-6, 2e-6), ("chain", 5e-6, 2e-6)))
    given = made("launch 1 us")
    for warm in (False, True):
        found = predict_launches(FILE, "steps", {"t": 3}, given, Options(code=Code("stated"), warm=warm))
        total = found.total
        assert total.expected is not None
        assert total.expected.expected_s == sum(p.expected.expected_s for p in found.parts if p.expected)
        assert sum(c.share_s for c in total.expected.causes) == total.expected.expected_s - total.bound_s
        assert total.to_json()["expected_s"] == pytest.approx(float(total.expected.expected_s))
    assert total.launches == 10 and float(total.expected.expected_s) > 10 * 6e-6 * 0.99


def test_equal_causes_are_one() -> None:
    repeated = [Cause("a", Fraction(1), "r"), Cause("b", Fraction(3)), Cause("a", Fraction(4), "r")]
    found = joined([*repeated, Cause("c", Fraction(0))])
    assert found == (Cause("a", Fraction(5), "r"), Cause("b", Fraction(3)))


# ---- where there is none ----


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        (
            "opteron_2356",
            Options(code=Code()),
            "expected times need the `instruction` lines of a CPU or the `multiprocessor` of a GPU; opteron_2356 has",
        ),
        ("skylake_gold_6148", Options(code=Code("none")), "not asked for"),
    ],
)
def test_the_bound_still_comes_with_a_reason(name: str, options: Options, why: str) -> None:
    found = predict(COPY, {"n": 1000}, load_machine(name), options)
    assert found.bound_s > 0 and found.expected is None and found.no_expected.startswith(why)
    document = found.to_json()
    assert document["expected_s"] is document["causes"] is document["expected_model"] is None
    assert document["expected_missing"] == found.no_expected


def test_code_that_cannot_be_read_leaves_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofdsl.incore import compiled

    def unread(*given: object) -> InCore:
        raise NoInCore("the innermost loop calls `mystery`")

    monkeypatch.setattr(compiled, "in_core", unread)
    found = predict(COPY, {"n": 1000}, load_machine("haswell_e5_2695v3"), Options(code=Code("compiled")))
    assert found.no_expected == "the innermost loop calls `mystery`" and found.bound_s > 0


def test_rules_that_no_machine_has() -> None:
    for line in ("transfers sideways", "transfers serial 0.5", "transfers overlap 1.5"):
        with pytest.raises(InputError, match="transfers are `serial`"):
            made(line)
    assert made("transfers overlap 0.4").transfer_overlap == Fraction(2, 5)
    assert made("transfers serial").transfer_overlap == 0


def test_what_relaxed_math_gains() -> None:
    """Ten additions of four cycles one after the other, or many at a time: by two predictions."""
    text = "kernel total(n):\n    in x: f64[n]\n    out s: f64\n    s = 0\n    for i in range(n):\n        s += x[i]\n"
    kernel, given = kernel_of(text), some_cores(load_machine("skylake_gold_6148"), 1)
    strict, relaxed = (
        predict(kernel, {"n": 4000}, given, Options(code=Code("stated", math=math), warm=True))
        for math in ("strict", "relaxed")
    )
    assert strict.expected is not None and relaxed.expected is not None
    (remedy,) = strict.to_json()["remedies"]
    assert remedy["expected_s"] == float(relaxed.expected.expected_s) and remedy["remedy"] == "--math relaxed"
    assert remedy["speedup"] == pytest.approx(float(strict.expected.expected_s / relaxed.expected.expected_s))
    assert remedy["speedup"] > 3 and relaxed.to_json()["remedies"] == []
    both = strict + strict * 2
    assert both.expected is not None and both.expected.relaxed_s == 3 * relaxed.expected.expected_s


@pytest.mark.parametrize("variant", ["loops", "grouped"])
def test_relaxed_math_is_compared_for_the_same_variant(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*arguments: Any) -> InCore:
        *_, math, variant = arguments
        seconds = {"loops": 1.0, "grouped": 0.5}[variant] * {"strict": 4, "relaxed": 1}[math]
        chain = (Step("the sum may not be reordered", in_core_time.RELAXED, seconds, 0.0),) * (math == "strict")
        return InCore("by hand", (Step("", "", 1e-3, 0.0), *chain, Step("more", "", seconds, 0.0)), 0.0)

    monkeypatch.setattr("roofdsl.incore.compiled.in_core", compiled)
    kernel = kernel_of(
        "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
        "    for i in range(n), j in range(n), p in range(n):\n        C[i, j] += A[i, p] * B[p, j]\n"
    )
    strict, relaxed = (
        predict(
            kernel, {"n": 8}, load_machine("skylake_gold_6148"), Options(code=Code("compiled", "cc", math, variant))
        )  # type: ignore[arg-type]
        for math in ("strict", "relaxed")
    )
    assert strict.expected is not None and relaxed.expected is not None
    assert strict.expected.relaxed_s == relaxed.expected.expected_s < strict.expected.expected_s
