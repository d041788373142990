"""Levels that take turns: the sum by hand, and nothing new where a machine does not say so."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.levels_in_turn import in_turn
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.sweep.time_terms import Plan
from tests.predict.machines import kernel_of, machine


def three(l2: str = "", l3: str = "", more: str = "launch 1 us") -> Machine:
    return machine(
        "peak f64 fma 100 TFLOP/s",
        "cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate",
        f"cache L2 4 KiB, 100 GB/s, line 64 B, write_allocate{l2}",
        f"cache L3 64 KiB, 80 GB/s, line 64 B, write_allocate{l3}",
        "memory DRAM 16 GiB, 20 GB/s, line 64 B",
        'ceiling "slow" L2 50 GB/s',
        more,
    )


def levels(given: Machine, **loads: int) -> list[LevelTime]:
    rates = {c.name: c.bandwidth_bytes_per_s for c in given.caches} | {"DRAM": given.main_memory.bandwidth_bytes_per_s}
    return [LevelTime(name, moved, rates[name]) for name, moved in loads.items()]


def seconds(**shares: float) -> tuple[tuple[str, Fraction], ...]:
    return tuple((name, Fraction(ns) / 10**9) for name, ns in shares.items())


OWN = ", beside 100 GB/s"


def test_what_a_cache_delivers_of_its_own_is_added() -> None:
    given = three(OWN, ", beside 160 GB/s")
    # 4000 B of memory; beyond them 2000 of L3; beyond those 1000 of L2
    found = in_turn(levels(given, L1=9000, L2=7000, L3=6000, DRAM=4000), given)
    assert found == seconds(DRAM=200, L3=12.5, L2=10)
    assert in_turn(levels(given, L2=4000, L3=4000, DRAM=4000), given) == seconds(DRAM=200)  # a stream
    assert in_turn(levels(given, L2=3000, L3=4000, DRAM=4000), given) == seconds(DRAM=200)


def test_hits_beside_lines_from_farther_levels_may_take_longer() -> None:
    """Of the 4000 B that come through L2 from L3, 1000 come from memory, and so a quarter of L2's 2000 B of hits."""
    given = three(", beside 200 GB/s, beside_far 100 GB/s")
    moved = levels(given, L2=6000, L3=4000, DRAM=1000)
    assert in_turn(moved, given) == seconds(DRAM=50, L2=1500 / 200 + 500 / 100)
    only_far = three(", beside_far 125 GB/s")
    assert in_turn(moved, only_far) == seconds(L2=60)  # 50 + 500 / 125 is shorter than its whole time
    assert in_turn(levels(only_far, L2=6000, L3=4000, DRAM=0), only_far) == seconds(L2=60)
    assert in_turn(levels(only_far, L2=6000, L3=4000, DRAM=4000), only_far) == seconds(DRAM=200, L2=16)
    slow = three(", beside 200 GB/s, beside_far 50 GB/s")  # below the bandwidth, which the bound takes
    assert in_turn(levels(slow, L2=6000, L3=4000, DRAM=4000), slow) == seconds(DRAM=200, L2=20)
    measured = in_turn(levels(slow, L2=6000, L3=4000, DRAM=4000), slow, as_measured=True)
    assert measured == seconds(DRAM=200, L2=40)


def test_a_level_that_is_longer_than_all_behind_it_counts_alone() -> None:
    given = three(OWN, ", beside 160 GB/s")
    assert in_turn(levels(given, L2=10_000, L3=10_000, DRAM=100), given) == seconds(L3=125)
    assert in_turn(levels(given, L1=100_000, L2=100, L3=100, DRAM=100), given) == seconds(L1=250)


def test_a_cache_whose_data_all_fit_takes_turns_with_nothing() -> None:
    """Launched again, with no line from farther away, it delivers at its whole rate: 160 kB at 100 GB/s."""
    given = three(OWN, ", beside 160 GB/s")
    assert in_turn(levels(given, L2=7000, L3=0, DRAM=0), given) == seconds(L2=70)
    given = machine(
        "peak f64 fma 100 TFLOP/s",
        "cache L1 32 KiB, 400 GB/s, line 64 B, write_allocate",
        "cache L2 1 MiB, 100 GB/s, beside 20 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 20 GB/s, line 64 B",
        "launch 1 us",
    )
    text = "kernel total(n):\n    in x: f64[n]\n    out s: f64\n    s = 0\n    for i in range(n):\n        s += x[i]\n"
    found = predict(kernel_of(text), {"n": 20_000}, given, Options(warm=True))
    assert float(found.bound_s) == pytest.approx(1.6e-6, rel=0.01)
    assert found.bound_s <= sum(t for _, t in found.terms)


def test_only_what_is_stated_takes_turns() -> None:
    plain = three()
    assert in_turn(levels(plain, L2=7000, L3=6000, DRAM=4000), plain) == ()
    given = three(OWN)  # L3 runs beside the memory
    assert in_turn(levels(given, L2=7000, L3=6000, DRAM=4000), given) == seconds(DRAM=200, L2=10)
    assert in_turn(levels(given, DRAM=4000), given) == ()  # the memory alone


GEMV = kernel_of(
    "kernel g(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n    for i in range(n), j in range(n):\n"
    "        y[i] += A[i, j] * x[j]\n"
)
SIZES = {"n": 192}  # x in 1.5 KiB: behind L1, within L2; A in 288 KiB: memory


def time_of(p: Prediction, name: str) -> Fraction:
    return next(level.time_s for level in p.levels if level.name == name)


def test_a_prediction_is_longer_by_what_comes_from_the_nearer_cache() -> None:
    before, after = (predict(GEMV, SIZES, m) for m in (three(), three(OWN)))
    assert before.levels == after.levels and before.no_overlap_s == after.no_overlap_s
    by_name = {level.name: level.bytes for level in after.levels}
    added = Fraction(by_name["L2"] - by_name["L3"], 100 * 10**9)
    assert 8 * 192**2 * 0.99 < by_name["L2"] - by_name["L3"] < 8 * 192**2 * 1.01  # x anew for every row
    assert before.bound_s == time_of(before, "DRAM")
    assert after.bound_s == before.bound_s + added
    assert (before.bound, after.bound) == ("DRAM", "DRAM and L2")
    assert after.terms[-2] == ("DRAM + L2", after.bound_s)
    assert sum(share["time_s"] for share in after.to_json()["in_turn"]) == pytest.approx(float(after.bound_s))
    assert before.to_json()["in_turn"] == []


def test_a_ceiling_slows_it_by_the_same_part() -> None:
    found = predict(GEMV, SIZES, three(OWN), Options(ceilings=("slow",)))
    plain = predict(GEMV, SIZES, three(OWN))
    assert dict(found.in_turn)["L2"] == 2 * dict(plain.in_turn)["L2"]


def test_several_launches_add_up() -> None:
    one, two = (predict(GEMV, {"n": n}, three(OWN)) for n in (192, 160))
    both = one + two * 3
    assert both.bound_s == one.bound_s + 3 * two.bound_s
    assert both.in_turn == tuple((n, t + 3 * dict(two.in_turn)[n]) for n, t in one.in_turn)
    assert both.bound == "DRAM and L2"


def test_a_sweep_leaves_such_machines_to_predictions() -> None:
    from roofdsl.sweep.exact_forms import KernelForms

    forms = KernelForms(GEMV, {})
    assert Plan(forms, three(), Options()).may_be_known(try_cache=True)
    assert not Plan(forms, three(OWN), Options()).may_be_known(try_cache=True)
    assert not Plan(forms, three(), Options(accesses="compiled")).may_be_known(try_cache=True)
    assert Plan(forms, three(OWN), Options(levels="memory")).may_be_known(try_cache=True)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (", beside", "`beside` needs a number"),
        (", beside 3 KiB", "a bandwidth is expected"),
        (", beside 3 GB/s, beside 4 GB/s", "is given twice"),
    ],
)
def test_bad_options(option: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        three(option)
    assert message in caught.value.diagnostics[0].message


def test_where_it_stands_it_is_read() -> None:
    given = three(OWN)
    assert [c.beside_bytes_per_s for c in given.caches] == [None, 100 * 10**9, None]
    assert replace(given.caches[1], beside_bytes_per_s=None) == three().caches[1]


def test_of_a_launch_without_its_nearer_levels_the_memory_counts() -> None:
    """Their sum has no L2, and its levels in turn take no less than its memory."""
    given = three(OWN)
    whole = predict(GEMV, SIZES, given)
    alone = predict(GEMV, SIZES, given, Options(levels="memory"))
    assert len(whole.in_turn) > 1 and not alone.in_turn
    for both in (whole + alone, alone + whole):
        name, together = both.in_turn_term
        assert name == whole.in_turn_term[0]
        assert together == whole.in_turn_term[1] + time_of(alone, "DRAM") > time_of(both, "DRAM")
        assert both.bound_s == whole.bound_s + alone.bound_s >= together
    assert (alone + alone).in_turn == ()


def test_levels_in_turn_are_listed_from_the_farthest_on() -> None:
    given = three(OWN)
    near = predict(GEMV, {"n": 16}, given, Options(warm=True))
    far = predict(GEMV, SIZES, given)
    assert [name for name, _ in near.in_turn] != [name for name, _ in far.in_turn]
    assert [name for name, _ in (near + far).in_turn] == [name for name, _ in (far + near).in_turn]
