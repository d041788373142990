"""Randomly accessed lines: the order of a walk, where it goes, and what the machine file states of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roofdsl.measure.assembled import is_known, loops
from roofdsl.measure.machine_file import machine_text, to_machine
from roofdsl.measure.random_lines import RandomRates, Window, place, random_rates, text_of, windows_of
from roofdsl.measure.walk_loops import LINE, PAGE, STRIDE
from roofdsl.measure.walk_rates import WalkRates
from roofdsl.predict.some_cores import some_cores
from tests.measure.made_up import characterized

CAPACITIES = [("L1", 48 << 10), ("L2", 2 << 20), ("L3", 64 << 20), ("DRAM", 16 << 30)]


@pytest.mark.parametrize("bits", [1, 2, 5, 8, 13])
def test_every_slot_is_taken_once(bits: int) -> None:
    size = 1 << bits
    order = [place(k, bits) for k in range(3 * size)]
    for start in (0, 1, size):
        assert sorted(order[start : start + size]) == list(range(size))


def test_the_order_has_no_pattern() -> None:
    """Steps from slot to slot change all the time, and hardly ever lead to a neighbor."""
    order = np.array([place(k, 13) for k in range(1 << 13)])
    steps = np.diff(order)
    assert np.unique(steps, return_counts=True)[1].max() < 0.05 * len(steps)
    assert np.mean(steps[1:] == steps[:-1]) < 0.02
    assert np.mean(np.abs(steps) < 8) < 0.01


def test_windows_are_larger_than_nearer_caches() -> None:
    found = windows_of(CAPACITIES, 512 << 20)
    assert {n: w.bytes for n, w in found.items() if n != "DRAM"} == {"L2": 128 << 10, "L3": 8 << 20}
    assert all(w.bytes <= 2048 * PAGE for w in found.values())
    memory = found["DRAM"]
    assert memory.slot == STRIDE and memory.lines * LINE >= 2 * (64 << 20)
    assert memory.bytes * memory.windows + memory.passes * LINE <= 512 << 20
    assert list(windows_of([("L1", 48 << 10), ("L2", 64 << 10), ("DRAM", 1 << 30)], 1 << 26)) == ["DRAM"]


@pytest.mark.skipif(not is_known(), reason="these loops are for x86-64 with AVX2")
@pytest.mark.parametrize("window", [Window(LINE, 5), Window(STRIDE, 4, 3, 2)])
def test_a_walk_touches_its_lines_and_nothing_else(window: Window) -> None:
    """As many updates as the windows have lines: each line gets one, in the order of `place`."""
    block = np.zeros(window.bytes * window.windows + 4 * PAGE, np.uint8)
    address = -(-block.ctypes.data // PAGE) * PAGE
    text, before = text_of(window, "incl {at}")
    loops({"walk": text}, {"walk": before})["walk"](address, window.lines // 8)
    start = address - block.ctypes.data
    touched = {int(k) - start: int(block[k]) for k in np.flatnonzero(block)}
    slots = range(window.windows << window.bits)
    assert touched == {k * window.slot + p * LINE: 1 for k in slots for p in range(window.passes)}
    block[:] = 0
    loops({"walk": text}, {"walk": before})["walk"](address, 1)
    assert {int(k) - start for k in np.flatnonzero(block)} == {window.slot * place(k, window.bits) for k in range(8)}


def test_the_file_states_what_was_measured() -> None:
    plain = characterized(cores=1)
    assert "random" not in machine_text(plain).split("\nmachine ", 1)[1]
    walks = WalkRates(None, {}, None, None)
    rates = {"L2": RandomRates(9e10, 8e10), "L3": RandomRates(2e10, None), "DRAM": RandomRates(3e9, None)}
    one = to_machine(replace(plain, walks=walks, random=rates))
    assert [c.random_bytes_per_s for c in one.caches] == [None, 9e10, 2e10]
    assert [c.random_stores_bytes_per_s for c in one.caches] == [None, 8e10, None]
    assert one.main_memory.random_bytes_per_s == 3e9
    two = to_machine(replace(characterized(cores=2), walks=walks, random=rates))
    assert two.caches[1].random_stores_bytes_per_s == 16e10
    assert two.main_memory.random_bytes_per_s == 6e9
    assert some_cores(two, 1).main_memory.random_bytes_per_s == 3e9, (
        "as measured, whatever the bandwidth of one core is"
    )


@pytest.mark.skipif(not is_known(), reason="these loops are for x86-64 with AVX2")
def test_rates_of_this_processor_are_possible() -> None:
    """A small buffer: only order and signs, which hold on a busy machine too."""
    block = np.ones(1 << 21)
    capacities = [("L1", 32 << 10), ("L2", 512 << 10), ("DRAM", 1 << 30)]
    found = random_rates(capacities, block.ctypes.data, block.nbytes, True)
    assert set(found) == {"L2", "DRAM"}
    assert all(1e8 < rates.loads_per_s < 1e13 for rates in found.values())
