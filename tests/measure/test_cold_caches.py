"""What empties the caches: every core that may hold data writes more than its caches do."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from roofdsl.measure import cold_caches
from roofdsl.measure.cold_caches import CacheFlusher
from tests.measure.made_up import CPU

NEAR, LAST = 1056 << 10, 32 << 20
"""The bytes of L1 and L2, which each core has of its own, and of L3."""


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_every_core_writes_more_than_its_caches_hold(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores, which share the copies of the last cache."""
    on: list[tuple[int, bool]] = []

    def pin(cores: list[int]) -> bool:
        on.append((cores[0], threading.current_thread() is threading.main_thread()))
        return True

    monkeypatch.setattr(cold_caches, "pin", pin)
    first, second, last = (replace(cache, copies=4) for cache in CPU.caches)
    cpu = replace(CPU, cores=4, caches=(first, second, replace(last, copies=copies)))
    flush = CacheFlusher(cpu, (2, 3, 5, 7))
    flush()
    flush()
    assert sorted(on) == [(core, False) for core in (2, 2, 3, 3, 5, 5, 7, 7)]
    assert all((block == 3.0).all() for block in flush.blocks.values())
    assert all(block.nbytes >= 2 * (NEAR + LAST * copies // 4) for block in flush.blocks.values())


def test_a_single_core_writes_in_the_thread_that_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    flush = CacheFlusher(CPU, (0,))
    flush()
    (block,) = flush.blocks.values()
    assert (block == 2.0).all() and block.nbytes >= 2 * (NEAR + LAST)


def test_caches_of_unknown_size_are_taken_to_be_large() -> None:
    flush = CacheFlusher(replace(CPU, caches=()), (0, 1))
    assert [block.nbytes for block in flush.blocks.values()] == [128 << 20] * 2
