"""What a core is measured by: units found from pairs, loops by the model's clock, and lines of machine files."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from collections.abc import Callable
from fractions import Fraction

import pytest

from roofdsl.incore.rates import rates_of
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Machine
from roofdsl.measure import call_rates, instruction_bench
from roofdsl.measure.adders import adder_share
from roofdsl.measure.assembled import is_known
from roofdsl.measure.branch_memory import LENGTHS, remembered_of
from roofdsl.measure.call_rates import AFTER, OWN, Launches
from roofdsl.measure.core_facts import CoreFacts
from roofdsl.measure.general_register_cycles import general_loops, general_registers
from roofdsl.measure.instruction_bench import EVERY, MANTISSAS, PASSES, Bench, rounded
from roofdsl.measure.instruction_lines import core_lines
from roofdsl.measure.instruction_texts import templates
from roofdsl.measure.load_store_cycles import _gather_loops, _share_of_store, _shares, gather_slots, share_of, waits_for
from roofdsl.measure.out_of_order_core import simulated
from roofdsl.measure.port_sets import find_sets, matched, together
from roofdsl.measure.stopwatch import CHAIN, Reading, Stopwatch
from tests.incore.machines import CORE, INSTRUCTIONS, rates

GOLDEN_COVE = {
    "fma_f64_256": {0, 1}, "mul_f64_256": {0, 1}, "add_f64_256": {1, 2}, "shuffle_f64_256": {1, 2},
    "permute_f64_256": {2}, "logic_f64_256": {0, 1, 2}, "shift_i32_256": {0, 1}, "compare_f64_256": {2},
}  # fmt: skip
"""The units of Intel's Golden Cove (optimization manual): 0, 1 and 5, the last of which is 2 here."""

ZEN_4 = {
    "fma_f64_256": {0, 1}, "mul_f64_256": {0, 1}, "add_f64_256": {2, 3}, "shuffle_f64_256": {1, 2},
    "logic_f64_256": {0, 1, 2, 3}, "convert_f64_256": {2, 3}, "compare_f64_256": {0, 1},
}  # fmt: skip


@pytest.mark.parametrize(("known", "units"), [(GOLDEN_COVE, 3), (ZEN_4, 4)], ids=["Golden Cove", "Zen 4"])
def test_units_are_found_from_pairs(known: dict[str, set[int]], units: int) -> None:
    """From times that are off by two per cent: sets of the same sizes that give all pairs the right times."""
    sets = {name: frozenset(own) for name, own in known.items()}
    alone = {name: 1 / len(own) for name, own in sets.items()}
    pairs = {
        (a, b): together(sets[a], sets[b], alone[a], alone[b]) * (1.02 if k % 2 else 0.99)
        for k, (a, b) in enumerate(itertools.permutations(sets, 2))
    }
    found = find_sets(alone, pairs, units)
    for a, b in pairs:
        here, there = (together(of[a], of[b], alone[a], alone[b]) for of in (found, sets))
        assert here == pytest.approx(there), (a, b)
    assert {name: len(own) for name, own in found.items()} == {name: len(own) for name, own in sets.items()}


ZEN_5 = {
    "fma_f64_512": {0, 1}, "mul_f64_512": {0, 1}, "permute_f64_512": {1, 2}, "add_f64_512": {2, 3},
    "shuffle_f64_512": {0, 1, 2, 3}, "logic_f64_512": {0, 1, 2, 3}, "shift_i32_512": {2, 3},
}  # fmt: skip
"""AMD's software optimization guide for Zen 5."""


def test_one_of_each_tells_units_apart_that_two_and_one_do_not() -> None:
    """Two additions and a product take as long on three units as on four; an addition and a product do not."""
    sets = {name: frozenset(own) for name, own in ZEN_5.items()}
    alone = {name: 1 / len(own) for name, own in sets.items()}
    pairs = {(a, b): together(sets[a], sets[b], alone[a], alone[b]) for a, b in itertools.permutations(sets, 2)}
    both = {(a, b): together(sets[a], sets[b], alone[a], alone[b], 1) for a, b in itertools.combinations(sets, 2)}
    # As measured: fused multiply-adds hold up additions a little, even though they run on other units.
    for a, b in (("fma_f64_512", "add_f64_512"), ("add_f64_512", "fma_f64_512")):
        pairs[a, b] *= 1.07
    found = find_sets(alone, pairs, 4, both)
    assert {name: set(own) for name, own in found.items() if name != "permute_f64_512"} == {
        name: own for name, own in ZEN_5.items() if name != "permute_f64_512"
    }
    assert len(found["permute_f64_512"] & {0, 1}) == len(found["permute_f64_512"] & {2, 3}) == 1


def test_wide_vectors_get_the_numbers_of_narrower_ones() -> None:
    """512 bits on Golden Cove: its units 0 and 1 are one, and shuffles run on 5 alone."""
    narrow = {name: frozenset(own) for name, own in GOLDEN_COVE.items()}
    wide = {
        "fma_f64_512": frozenset({0, 1}), "add_f64_512": frozenset({0, 1}), "permute_f64_512": frozenset({1}),
        "compare_f64_512": frozenset({1}), "shift_i32_512": frozenset({0}),
    }  # fmt: skip
    found = matched(wide, narrow)
    assert found["permute_f64_512"] == found["compare_f64_512"] == frozenset({2})
    assert found["shift_i32_512"] <= frozenset({0, 1})


def test_loads_and_stores_of_general_registers() -> None:
    """Zen 5: four loads a cycle, of which a store takes the place of one; a sum in memory takes a cycle a step."""
    bench = Bench(1)
    general_loops(bench)
    cycles = {"general_load": 8.0, "general_load_split": 16.0, "general_store": 16.0, "general_forward": 9.6}
    cycles |= {f"general_mixed_{n}": 16 * max(n * 0.25, 0.5, n * 0.25 + 0.25) for n in (1, 2, 3)}
    cycles |= {f"general_beside_{v}_{g}": 16 * (0.5 * v + 0.2 * g + 0.2) for v, g in ((1, 1), (2, 2), (1, 3), (2, 4))}
    cycles |= {"general_load_among": 14 * (5 * 0.25 + 0.2), "general_store_among": 14 * 5 * 0.25}
    assert {*bench.texts} <= {*cycles}
    vectors = [
        Instruction("load", "", 64, Fraction(5), Fraction(1, 2), apart=Fraction(1, 2), mixed=Fraction(1, 2)),
        Instruction(
            "store", "", 64, None, Fraction(1, 2), apart=Fraction(1), mixed=Fraction(1, 5), forward=Fraction(9)
        ),
    ]
    vectors += [
        Instruction("load", "", 32, Fraction(4), Fraction(1, 2)),
        Instruction("add", "i64", 64, Fraction(1), Fraction(1, 4)),
    ]
    load, store = general_registers(cycles, vectors)
    assert (load.type, load.latency, load.throughput, load.split) == ("i64", 4, Fraction(1, 4), Fraction(1, 2))
    assert load.apart is None and load.mixed == pytest.approx(0.2)
    assert load.adder == pytest.approx(0.2) and store.adder is None  # five additions take as long with a store
    assert (store.throughput, store.apart) == (Fraction(1, 2), 1)
    assert store.mixed == pytest.approx(0.25, abs=0.02) and store.forward == pytest.approx(0.2)
    for v, g in ((1, 1), (2, 2), (1, 3), (2, 4)):  # four accesses a cycle explain these alone
        cycles[f"general_beside_{v}_{g}"] = 16 * max(0.5 * v + 0.2, 0.25 * (v + g) + 0.25)
    assert (general_registers(cycles, vectors)[0].mixed or 0) <= Fraction(1, 20)


def test_a_load_waits_for_a_store_whose_data_are_not_handed_over() -> None:
    assert waits_for(13.9, 1.2) == 14
    assert waits_for(1.25, 1.2) is None


def test_no_store_has_the_last_address_bits_of_a_load() -> None:
    """It would delay the load on many cores, and the loop would show that instead."""
    bench = Bench(1)
    general_loops(bench)
    for name, text in bench.texts.items():
        if "mixed" in name or "beside" in name:
            places = [(int(re.search(r"(\d+)\(%rdi\)", line)[1]) % 4096, line.endswith("(%rdi)")) for line in text]
            assert not {at for at, stores in places if stores} & {at for at, stores in places if not stores}


@pytest.mark.parametrize(("slots", "known"), [(44, 6500), (1, 700)])
def test_slots_of_gathers_and_remembered_branches(slots: int, known: int) -> None:
    bench = Bench(1)
    bench.has = frozenset({"avx512f", "avx512vl"})
    _gather_loops(bench)
    among = bench.texts["gather_slots_f64_512"]
    others = bench.texts[bench.compared["gather_slots_f64_512"]]
    each = len(others) / 4
    assert others == ["nop"] * len(others) and sum("gather" in line for line in among) == 4
    # a gather, what sets its mask, and the others, of which as many are dispatched in every cycle
    assert gather_slots((each + 1 + slots) / each) == slots
    # half of n branches are mispredicted, and of these, `known` are remembered
    each_branch = {n: 2 + 10 * (1 - min(1.0, known / (n / 2))) for n in LENGTHS}
    assert remembered_of(each_branch, 2.0) == pytest.approx(known, rel=0.1)
    assert remembered_of(dict.fromkeys(LENGTHS, 2.0), 2.0) is None
    assert remembered_of(dict.fromkeys(LENGTHS, 12.0), 2.0) == 1  # a machine file cannot state 0


def test_how_many_calls_the_window_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core of 400 places, four instructions a cycle. A call has 20 instructions and a latency of 30 cycles, the
    sixteen products one of 48, and a place is filled again after 12: so ten calls run in 90 cycles.
    """
    core = replace(CORE, dispatch=4, window=400, refill=Fraction(12))
    times = iter([5.0, 48.0 + 5, 30.0 + 5, 90 / (400 / (20 + AFTER + OWN))])
    monkeypatch.setattr(call_rates, "_cycles", lambda *given: next(times))
    monkeypatch.setattr(call_rates, "_compiled", lambda text: text)
    chains = call_rates._chain_cycles(float, 0.25)
    assert call_rates._latency_and_slots("exp", float, core, chains, 0.25) == (30.0, 20)


def test_one_call_for_the_sine_and_the_cosine_of_an_angle() -> None:
    """What compilers make of both: its rate is measured and stated under a name of its own."""
    text = "machine m:\n    peak f64 10 GFLOP/s\n    memory DRAM 1 GiB, 10 GB/s\n"
    text += "    core dispatch 4, window 64, waiting 32\n"
    text += "    instruction load 64 bits, throughput 0.5 cycles\n    instruction store 64 bits, throughput 1 cycle\n"
    text += "    instruction sincos f64 64 bits, latency 50 cycles, throughput 36 cycles, slots 90\n"
    known = rates_of(machine_of(load_file(Source("m.roof", text)), None))
    assert known.call("sincos") == (36.0, 50.0) and known.call_slots("sincos") == 90
    assert known.call("sin") is None and known.call("sincosf") is None
    assert call_rates._called(call_rates.SINCOS, "x") == "(math.sin(x) + math.cos(x))"


def test_what_loads_and_stores_share() -> None:
    """Loads every half cycle, stores every cycle; a shared unit serves one of either in 0.4 and 0.8 cycles."""
    mixed = {n: max(n * 0.5, 1.0, n * 0.4 + 0.8) for n in (1, 2, 3, 4)}
    x, y = _shares(0.5, 1.0, mixed)
    assert all(max(n * 0.5, 1.0, n * x + y) == pytest.approx(t, rel=0.03) for n, t in mixed.items())
    assert _shares(0.5, 1.0, {n: max(n * 0.5, 1.0) for n in (1, 2, 3, 4)}) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [(3.98, "4"), (0.497, "0.5"), (0.336, "0.333"), (1.07, "1.07"), (0.3, "0.3"), (20.4, "20.5")],
)
def test_cycles_are_rounded_to_what_cores_have(cycles: float, expected: str) -> None:
    assert rounded(cycles) == Fraction(expected)


def test_a_loop_by_the_models_clock() -> None:
    """Chains of ten multiplications of 4 cycles, each from a constant: side by side only in a large window."""
    chain = ["vmovapd %xmm15, %xmm0", *["vmulsd %xmm15, %xmm0, %xmm0"] * 10]
    assert simulated([*chain, *["nop"] * 8], rates(window=9, waiting=9)) > 35
    assert simulated([*chain, *["nop"] * 8], rates(window=190, waiting=190)) < 12


def test_a_machine_file_holds_what_was_measured() -> None:
    facts = CoreFacts(INSTRUCTIONS, replace(CORE, indexed=2, closes=True), Launches(5e-8, 6e-8, 0.0), 3.05e9)
    lines = "".join(f"    {line}\n" for line in core_lines(facts))
    text = f"machine here:\n    peak f64 fma 96 GFLOP/s\n    memory DRAM 1 GiB, 10 GB/s\n{lines}"
    found: Machine = machine_of(load_file(Source("here.roof", text)), None)
    assert (found.instructions, found.core) == (facts.instructions, facts.core)
    assert (found.launch_array_s, found.launch_number_s) == (Fraction(5, 10**8), None)
    assert found.clock_hz == Fraction(3050) * 10**6


@pytest.mark.skipif(not is_known(), reason="the loops are for x86-64 with AVX2")
def test_the_loops_assemble_and_measure() -> None:
    """A few numbers that no processor is far from: chains of additions take 1 to 6 cycles."""
    from roofdsl.measure.instruction_bench import Bench
    from roofdsl.measure.load_store_cycles import memory_loops
    from roofdsl.measure.out_of_order_core import core_loops, core_of

    bench = Bench(3)
    core_loops(bench)
    memory_loops(bench)
    cycles = bench.measure(lambda part, what: None)
    assert cycles["chain_int_add"] == pytest.approx(32, rel=0.4)  # where others share the core, its clock may change
    found = core_of(cycles)
    assert 2 <= found.dispatch <= 16 and 32 <= found.window <= 2000 and found.mispredict is not None


def test_what_slows_two_loops_alike_does_not_change_how_they_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, draw, slow = Stopwatch.__new__(Stopwatch), random.Random(3), [1.0]
    watch.call_ns, watch.loops = 50.0, {"one": lambda address, rounds: None, "other": lambda address, rounds: None}

    def timed(loop: Callable[[int, int], None], rounds: int) -> float:
        slow[0] = max(1.0, slow[0] * draw.uniform(0.97, 1.032))
        taken_away = 400.0 if draw.random() < 0.1 else 0.0
        return watch.call_ns + slow[0] * rounds * (2.6 if loop is watch.loops["one"] else 2.0) + taken_away

    monkeypatch.setattr(watch, "_timed", timed)
    assert watch.times_as_long(("one", 100), ("other", 130), pairs_s=60) == pytest.approx(1.3, rel=0.02)
    assert slow[0] > 1.1, "both loops have become slower"


def test_the_share_of_an_operation_is_what_explains_its_mixtures() -> None:
    load = Instruction("load", "", 256, throughput=Fraction(1, 3), mixed=Fraction(24, 100))
    store = Instruction("store", "", 256, throughput=Fraction(1, 2), mixed=Fraction(3, 10))
    mul = Instruction("mul", "f64", 256, throughput=Fraction(1, 2))
    without = {1: 0.24 + 0.3, 2: 2 * 0.24 + 0.3}
    assert share_of(load, store, mul, {n: 1 + 0.16 / t for n, t in without.items()}) == pytest.approx(0.16)
    assert share_of(load, store, mul, {1: 1.02, 2: 1.01}) == 0, "loads and stores explain these"
    assert share_of(load, store, mul, {1: 4.0, 2: 3.0}) == pytest.approx(0.5), "no more than its own units take"
    alone = Instruction("load", "", 128, throughput=Fraction(1, 3))
    assert share_of(alone, store, mul, {1: 1.5, 2: 1.2}) == 0, "nothing is shared there"


def test_the_share_of_a_masked_store_is_what_explains_its_mixtures() -> None:
    """A store of 6 cycles alone, which takes 4.5 cycles of what it shares with loads of 1 cycle each."""
    load = Instruction("load", "", 256, throughput=Fraction(1), mixed=Fraction(1))
    times = {n: max(6.0, n + 4.5) for n in (1, 2, 3, 4)}
    assert _share_of_store(load, 6.0, times) == pytest.approx(4.5, abs=0.03)
    assert _share_of_store(load, 6.0, {n: n + 9.0 for n in (1, 2, 3, 4)}) == pytest.approx(9.0, abs=0.03)


def test_the_share_of_an_adder_is_what_explains_its_mixtures() -> None:
    """The times of Zen 1, and those of a core whose units are independent or common."""
    assert adder_share(1.0, 1.0, True, {(1, 1): 1.55, (1, 2): 2.77, (2, 2): 3.16}) == pytest.approx(0.6, abs=0.05)
    assert adder_share(1.0, 1.0, True, {(1, 1): 1.02, (1, 2): 2.04, (2, 2): 2.01}) == 0
    assert adder_share(0.5, 0.5, False, {(1, 1): 1.0, (1, 2): 1.5, (2, 2): 2.0}) == 0, "the units already say so"


def test_division_is_measured_with_numbers_that_have_many_digits() -> None:
    """The chains stay where they are: a / (a / x) is x, and the digits that a root loses are added again."""
    doubles = struct.unpack("<2d", struct.pack("<2Q", *MANTISSAS["f64"]))
    singles = struct.unpack("<4f", struct.pack("<2Q", *MANTISSAS["f32"]))
    for number in (*doubles, *singles):
        assert 1 < number < 2
    for pattern in MANTISSAS["f64"]:
        assert (pattern & (1 << 52) - 1).bit_count() >= 16 and pattern & 0xFF
    root = math.sqrt(doubles[1])
    again = struct.unpack("<Q", struct.pack("<d", root))[0] | MANTISSAS["f64"][1]
    assert 1 < struct.unpack("<d", struct.pack("<Q", again))[0] < 2
    chains = {t.key: t.chain for t in templates()}
    assert chains["div_f64_256"] == ("vdivpd {c}, {a}, {c}",)
    assert chains["sqrt_f32_32"] == ("vsqrtss {c}, {c}, {c}", "vorpd {b}, {c}, {c}")


def test_a_chain_that_a_neighbour_delays_does_not_tell_the_time() -> None:
    """Beside a neighbour, additions take 1.4 cycles, roots hardly more; at half the clock, both take twice as long."""
    watch = Stopwatch.__new__(Stopwatch)
    watch.call_ns, cycle_ns = 100.0, 0.25
    watch.chain_ns = 100 + cycle_ns * watch.ROUNDS * CHAIN
    watch.steady_ns = 100 + cycle_ns * 6500
    assert watch.in_cycles(Reading(3 * cycle_ns, 100 + cycle_ns * 6500)) == pytest.approx(3)
    assert watch.in_cycles(Reading(3 * cycle_ns, 100 + cycle_ns * 6500 * 1.02)) == pytest.approx(3, rel=0.025)
    assert watch.in_cycles(Reading(6 * cycle_ns, 100 + cycle_ns * 6500 * 2)) == pytest.approx(3)
    divided = Reading(3 * cycle_ns, 100 + cycle_ns * 6500 * 2, watch.chain_ns)
    assert watch.in_cycles(divided) == pytest.approx(3), "somebody else's divisions delay the roots alone"
    watch.steadies = [watch.call_ns + (watch.steady_ns - watch.call_ns) * slower for slower in (1, 1.04, 1.05, 1.06, 3)]
    assert watch.usual_hertz() == pytest.approx(watch.hertz() / 1.05), "the median of all runs"


def test_loops_that_were_not_alone_are_timed_again_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The neighbour is there whenever the first loop is tried; the least of its times counts then."""
    taken: list[str] = []

    class Watch:
        def __init__(self, *_: object) -> None: ...

        def read(self, name: str, _: float) -> Reading:
            taken.append(name)
            return Reading({"a": 8.0, "b": 4.0, "c": 2.0}[name] + (len(taken) == 1), 1.0)

        def in_cycles(self, reading: Reading) -> float:
            return reading.round_ns

        def hertz(self) -> float:
            return 1e9

        def usual_hertz(self) -> float:
            return 9e8

    def tries(measure: Callable[[], Reading], until: float) -> tuple[list[Reading], bool]:
        found = [measure()]
        return found, taken[-1] == "c" or (taken[-1] == "b" and len(taken) > 3)

    monkeypatch.setattr(instruction_bench, "Stopwatch", Watch)
    monkeypatch.setattr(instruction_bench, "loops", lambda texts, before: {})
    monkeypatch.setattr(instruction_bench, "tries", tries)
    monkeypatch.setattr(instruction_bench, "epoch", lambda: 0)
    bench = Bench(1)
    for name in "abc":
        bench.add(name, ["nop"], 1)
    assert bench.measure(lambda part, what: None) == {"a": 8.0, "b": 4.0, "c": 2.0}
    assert taken == [*"abc" * EVERY, *"a" * (PASSES - EVERY)] and bench.shared == 1
    assert (bench.hertz, bench.usual_hertz) == (1e9, 9e8)
