"""Where strided walks go, what is read off them, and how the machine file states it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from roofdsl.machine.model import Machine
from roofdsl.measure.assembled import is_known, loops
from roofdsl.measure.machine_file import machine_text, to_machine
from roofdsl.measure.walk_loops import LINE, PAGE, STRIDE, plan_walks, spans, sweep
from roofdsl.measure.walk_rates import Walked, WalkRates, _levels, _rates, knee, walk_rates
from roofdsl.predict.some_cores import some_cores
from tests.measure.made_up import characterized

CAPACITIES = [("L1", 48 << 10), ("L2", 2 << 20), ("L3", 64 << 20), ("DRAM", 16 << 30)]


def test_the_lines_of_a_walk_lie_in_one_level() -> None:
    """An eighth of the sets: a walk's lines overflow an eighth of the nearer caches, and fit into one of its own."""
    found = {s.level: s for s in spans(CAPACITIES, 512 << 20)}
    sizes = dict(CAPACITIES)
    for nearer, level in (("L1", "L2"), ("L2", "L3")):
        held = found[level].lines * LINE
        assert sizes[nearer] / 8 < held <= sizes[level] / 8
        assert found[level].passes == 1
    assert found["L3"].bytes <= 1024 * PAGE  # no other pages than those of a small table of addresses
    memory = found["DRAM"]
    assert memory.lines * LINE >= 2 * sizes["L3"]
    assert memory.bytes + (memory.passes - 1) * LINE <= 512 << 20  # the last pass ends inside the buffer
    assert {s.bytes % (8 * STRIDE) for s in found.values()} == {0}


def test_memory_is_walked_through_in_part() -> None:
    """Half a gigabyte, twice the last cache where that is more, and nothing that does not fit into an instruction."""
    assert spans(CAPACITIES, 3 << 30)[-1].bytes <= 512 << 20
    large = [*CAPACITIES[:2], ("L3", 400 << 20), CAPACITIES[3]]
    (memory,) = [s for s in spans(large, 3 << 30) if s.level == "DRAM"]
    assert 800 << 20 <= memory.bytes <= 801 << 20
    huge = [*CAPACITIES[:2], ("L3", 1100 << 20), CAPACITIES[3]]
    assert "DRAM" not in {s.level for s in spans(huge, 3 << 30)}


def test_a_level_whose_lines_lie_elsewhere_is_left_out() -> None:
    assert [s.level for s in spans(CAPACITIES, 100 << 20)] == ["L2", "L3"]  # the last cache holds the whole buffer
    tight = [("L1", 48 << 10), ("L2", 64 << 10), ("DRAM", 1 << 30)]
    assert [s.level for s in spans(tight, 1 << 20)] == ["DRAM"]


def test_the_pages_that_a_core_knows_are_those_before_its_walks_get_slow() -> None:
    times = {256: 1.2, 512: 1.2, 1024: 1.3, 1536: 1.3, 2048: 4.0, 3072: 19.0, 4096: 20.4, 8192: 20.26}
    assert knee(times) == (2048, Fraction(203, 10))
    assert knee(dict.fromkeys(times, 2.0)) == (None, None)
    assert knee({}) == (None, None)


WALKS = WalkRates(
    3e11, {"L2": Walked(5e10, 8e10), "L3": Walked(1.5e10, None), "DRAM": Walked(9e9, 2e10, 1.5e-7)}, None, None,
    past_per_s=2.5e10,
)  # fmt: skip


def stated(cores: int) -> Machine:
    found = characterized(cores=cores)
    assert "strided" not in machine_text(found).split("\nmachine ", 1)[1]
    return to_machine(replace(found, walks=WALKS))


def test_the_file_states_what_was_measured() -> None:
    alone = stated(cores=1)
    first, second, third = alone.caches
    assert (first.fill_bytes_per_s, first.strided_bytes_per_s) == (3e11, None)
    assert (second.strided_bytes_per_s, second.strided_stores_bytes_per_s) == (5e10, 8e10)
    assert (third.strided_bytes_per_s, third.strided_stores_bytes_per_s) == (1.5e10, None)
    memory = alone.main_memory
    assert (memory.strided_bytes_per_s, memory.strided_stores_bytes_per_s) == (9e9, 2e10)
    assert (memory.restart_s, third.restart_s) == (Fraction(15, 10**8), None)
    assert memory.streamed_bytes_per_s == 2.5e10


def test_one_of_many_cores_gets_what_was_measured_on_one() -> None:
    """The file states the rate of a core times their number, even above the memory's bandwidth. One core of the machine
    therefore has the measured rate, not its share of what the memory can deliver.
    """
    alone = stated(cores=1)
    for cores in (2, 16):
        machine = stated(cores=cores)
        one = some_cores(machine, 1)
        memory = machine.main_memory
        assert memory.streamed_bytes_per_s == min(cores * 2.5e10, memory.bandwidth_bytes_per_s)
        for level, own in zip(one.hierarchy, alone.hierarchy, strict=True):
            for field in ("strided_bytes_per_s", "strided_stores_bytes_per_s"):
                assert getattr(level, field) == getattr(own, field), (cores, level.name, field)
        assert one.main_memory.streamed_bytes_per_s == 2.5e10


def test_what_a_stream_loses_at_pages_is_more_than_its_lines_cost_the_core() -> None:
    """Made-up cycles per line: 48 additions take 24. A line from L2 costs the core 1 more, and one from L3 as much. The
    memory's stream loses 2 more at each line, which are 128 at each page of 64 lines; at 2 GHz these are 64 ns.
    """
    plan = plan_walks(CAPACITIES, 512 << 20, 4096)
    assert [w.level for w in plan.walks] == ["L2", "L3", "DRAM"]
    cycles = dict.fromkeys(plan.loops(), 4.0) | {"computed_near": 24.0}
    cycles |= {"computed_0": 25.0, "computed_1": 25.2, "computed_2": 27.2}
    found = _levels(plan, cycles, 2e9)
    assert [found[level].restart_s for level in ("L3", "DRAM")] == [None, pytest.approx(64e-9)]
    slower = _levels(plan, cycles | {"streamed_2": 30.0}, 2e9)
    assert slower["DRAM"].restart_s is None, "the stream alone takes longer"


def test_lines_of_one_set_are_found_as_under_random_replacement() -> None:
    """A set of 12 ways. Stores to 48 lines of it all miss, stores to 16 miss in a quarter of the cases: as in a random
    cache of 14 lines, which loses 1 - exp(-16 / 14 u) = u of them.
    """
    plan = plan_walks(CAPACITIES, 512 << 20, 4096)
    assert (plan.ways, plan.few, plan.stored) == (12, 16, 48)
    cycles = dict.fromkeys(plan.loops(), 4.0) | {"store_0": 8.0, "crowded": 34.0, "crowded_stored": 0.5}
    found = [_rates(plan, cycles | {"crowded_few": each}, 2e9, "L2").stored_lines for each in (8.8, 0.4, 34.0)]
    assert found == [14, 16, None], "a quarter is lost, nothing, and everything"
    walks = WalkRates(None, {}, None, None, stored_lines=14)
    first = to_machine(replace(characterized(cores=1), walks=walks)).caches[0]
    assert (first.stored_lines, first.buffers) == (14, 0)


def test_lines_of_one_set_come_slowly_from_farther_levels() -> None:
    """Three times as many lines as the nearer level's sets hold. A rate that is not lower than that of other strided
    loads is not stated.
    """
    plan = plan_walks(CAPACITIES, 512 << 20, 4096)
    assert plan.crowded == [("L3", 1536), ("DRAM", 49152)]
    assert plan_walks(CAPACITIES, 150 << 20, 4096).crowded[-1] == ("DRAM", 38400), "at least twice as many"
    assert [level for level, _ in plan_walks(CAPACITIES, 100 << 20, 4096).crowded] == ["L3"]
    assert plan_walks(
        [("L1", 48 << 10), ("L2", 2 << 20), ("L3", 8 << 20), ("DRAM", 1 << 30)], 1 << 29, 4096
    ).crowded == [("DRAM", 6144)], "a walk would fill all of L3's sets"
    assert not plan_walks(CAPACITIES, 512 << 20, 0).crowded, "the ways are unknown"
    cycles = dict.fromkeys(plan.loops(), 4.0) | {"crowded_load_0": 20.0, "crowded_load_1": 4.2}
    assert _rates(plan, cycles, 2e9, "L2").crowded_loads == {"L3": LINE * 2e9 / 20}
    walks = WalkRates(None, {"L3": Walked(2e10, None)}, None, None, crowded_loads={"L3": 5e9, "DRAM": 1e9})
    for cores in (1, 2):
        machine = to_machine(replace(characterized(cores=cores), walks=walks))
        third, memory = machine.hierarchy[2:]
        assert (third.crowded_bytes_per_s, memory.crowded_bytes_per_s) == (cores * 5e9, None), "the memory has no walk"
        assert some_cores(machine, 1).caches[2].crowded_bytes_per_s == 5e9


def test_gathered_lines_count_where_they_take_longer_than_those_of_the_first_cache() -> None:
    """At 2 GHz, eight gathered elements of a line take 4 cycles from L1 and from L2, 5 from L3, and 20 from memory."""
    plan = plan_walks(CAPACITIES, 512 << 20, 4096)
    cycles = dict.fromkeys(plan.loops(), 4.0) | {"gathered_1": 5.0, "gathered_2": 20.0}
    found = _levels(plan, cycles, 2e9)
    assert {name: walked.gathered_per_s for name, walked in found.items()} == {
        "L2": None, "L3": LINE * 2e9 / 5, "DRAM": LINE * 2e9 / 20
    }  # fmt: skip
    walks = WalkRates(None, {"DRAM": Walked(1e10, None, gathered_per_s=6.4e9)}, None, None)
    for cores in (1, 2):
        memory = to_machine(replace(characterized(cores=cores), walks=walks)).main_memory
        assert memory.gathered_bytes_per_s == cores * 6.4e9


def test_odd_walks_are_stated_apart() -> None:
    walks = WalkRates(None, {"L2": Walked(5e10, None, None, 1e11, 2e11)}, None, None)
    for cores in (1, 2):
        second = to_machine(replace(characterized(cores=cores), walks=walks)).caches[1]
        assert second.strided_odd_bytes_per_s == cores * 1e11
        assert second.strided_odd_stores_bytes_per_s == cores * 2e11


@pytest.mark.skipif(not is_known(), reason="these loops are for x86-64 with AVX2")
def test_a_walk_touches_its_lines_and_nothing_else() -> None:
    """Stores of a marker through the assembled loop: two passes over a span, the second one line further."""
    span, rounds = 16 * STRIDE, 4  # 16 lines a pass, 8 a round
    block = np.zeros(span + 4 * PAGE, np.uint8)
    address = -(-block.ctypes.data // PAGE) * PAGE
    text = sweep(("movq %rdx, {at}(%rdi,%rax)",), STRIDE, span, LINE)
    loop = loops({"walk": text}, {"walk": ("xorl %eax, %eax", "movq $-1, %rdx")})["walk"]
    loop(address, rounds)
    start = address - block.ctypes.data
    touched = {int(k) - start for k in np.flatnonzero(block)}
    lines = {p * LINE + k * STRIDE for p in range(2) for k in range(16)}
    assert touched == {line + byte for line in lines for byte in range(8)}


@pytest.mark.skipif(not is_known(), reason="these loops are for x86-64 with AVX2")
def test_rates_of_this_processor_are_possible() -> None:
    """A small buffer: only order and signs, which hold on a busy machine too."""
    block = np.ones(1 << 20)
    found = walk_rates([("L1", 32 << 10), ("L2", 512 << 10), ("DRAM", 1 << 30)], block.ctypes.data, block.nbytes, True)
    assert found is not None
    assert set(found.levels) == {"L2", "DRAM"}
    for walked in found.levels.values():
        assert 1e8 < walked.loads_per_s < 1e13
        assert walked.gathered_per_s is None or 1e8 < walked.gathered_per_s < 1e12
    assert 1e8 < (found.past_per_s or 0) < 1e13
    assert (block == 0).mean() > 0.9, "stores of zeros past the caches went through the walk in memory"
    assert found.pages is None or found.walk_cycles is not None
