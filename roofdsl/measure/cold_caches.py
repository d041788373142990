"""Emptying the processor's caches before a cold measurement (`--cold`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roofdsl.measure.device import Cpu
from roofdsl.measure.timing import pin


class CacheFlusher:
    """Empties the caches of these cores: each of them writes more than its own caches and its share of the others hold.

    A single core writes from the calling thread.
    """

    def __init__(self, cpu: Cpu, cores: Sequence[int]) -> None:
        team = len(cores)
        held = sum(cache.size_bytes * min(cache.copies, team) for cache in cpu.caches) or (64 << 20) * team
        self.blocks = {core: np.ones(max(2 * held // team, 1 << 20) // 8) for core in cores}

    def __call__(self) -> None:
        if len(self.blocks) == 1:
            _write(*self.blocks.values())
            return
        threads = [threading.Thread(target=_write_on, args=each) for each in self.blocks.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _write_on(core: int, block: NDArray[np.float64]) -> None:
    pin([core])
    _write(block)


def _write(block: NDArray[np.float64]) -> None:
    block += 1.0
