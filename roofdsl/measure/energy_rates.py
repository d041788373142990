"""The energies of this processor: powers of loops of several intensities in every level, and the law that fits them.

Each loop streams through a working set on all cores and does PAIRS fused multiply-adds with every element. Its bytes
cross the boundaries of all levels up to the one that holds the working set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from roofdsl.measure.energy_counter import EnergyCounter, NoCounter, Rapl, read_energy
from roofdsl.measure.energy_fit import EnergyFit, PowerPoint, fit_power
from roofdsl.measure.level_overlap import Place
from roofdsl.measure.microkernels import polynomial
from roofdsl.measure.multicore_timing import count_for, together
from roofdsl.measure.peaks import DTYPES

Progress = Callable[[float, str], None]

PAIRS = (0, 2, 8, 32)
"""The numbers of fused multiply-adds with each element, in every level. With the last one, a cache idles most of the
time.
"""

_PATTERN = 1 << 16
"""The elements of a block that are repeated in another type."""

clock = time.perf_counter

IDLE_S = 1.0
SAMPLE_S = 0.02


@dataclass(frozen=True)
class MachineEnergy:
    """The result of a processor's measured powers: the law, with types and levels by name, and the idle power, which is
    not P0. counter: what was counted.
    """

    fit: EnergyFit
    idle_w: float
    counter: str


def machine_energy(
    counter: EnergyCounter,
    places: Sequence[Place],
    blocks: Sequence[Any],
    team: Sequence[int],
    *,
    types: Sequence[str],
    tell: Progress,
    sleep: Callable[[float], object] = time.sleep,
) -> MachineEnergy:
    """Measure and fit. places: the levels as seen by one core, nearest first. Raises NoCounter if the counter fails, or
    if its readings do not tell the energies apart.
    """
    start_j, start_s = counter.joules(), clock()
    sleep(IDLE_S)
    idle_w = (counter.joules() - start_j) / (clock() - start_s)
    loops = [(t, k, pairs) for t in types for k in range(len(places)) for pairs in PAIRS]
    points = []
    for number, (type_name, k, pairs) in enumerate(loops):
        tell(number / len(loops), f"energy of {type_name} in {places[k].name}, {pairs} pairs an element")
        points.append(_point(counter, _Loop(type_name, places[: k + 1], pairs), blocks, team))
    try:
        return MachineEnergy(fit_power(points), idle_w, counter.name)
    except ValueError as error:
        raise NoCounter(f"the powers that were read do not tell energies apart: {error}") from None


def energy_or_reason(
    places: Sequence[Place], blocks: Sequence[Any], team: Sequence[int], *, quick: bool, tell: Progress
) -> tuple[MachineEnergy | None, str]:
    """The energies of this processor by RAPL, or why they could not be measured. quick: measures f64 alone."""
    types = ("f64",) if quick else ("f64", "f32")
    try:
        return machine_energy(Rapl(), places, blocks, team, types=types, tell=tell), ""
    except NoCounter as error:
        return None, f"no energies: {error}"


@dataclass(frozen=True)
class _Loop:
    """A loop over a working set in the last of these levels."""

    type: str
    levels: Sequence[Place]
    pairs: int

    def arrays(self, blocks: Sequence[Any], team: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The arguments for each core: its part of a working set that fills half of its share of the level."""
        import numpy as np

        kind = np.dtype(DTYPES[self.type])
        for core in range(len(team)):
            block = blocks[core]
            count = min(self.levels[-1].share_bytes // 2, block.nbytes) // kind.itemsize // 16 * 16
            own = block[:count] if kind == block.dtype else np.resize(block[:_PATTERN].astype(kind), count)
            yield own, kind.type(0.5), kind.type(0.25)


def _point(counter: EnergyCounter, loop: _Loop, blocks: Sequence[Any], team: Sequence[int]) -> PowerPoint:
    """The power of one loop, and its rates."""
    run = polynomial(loop.pairs)
    arguments = list(loop.arrays(blocks, team))
    run(*arguments[0], 1)
    sweeps = count_for(run, arguments[0], team[0], SAMPLE_S)

    def calls(count: int) -> int:
        together(run, arguments, sweeps * count, team)
        return count

    read = read_energy(counter, calls, SAMPLE_S, clock=clock)
    passes = sweeps * read.calls / read.seconds
    elements = sum(a[0].size for a in arguments)
    rates = {loop.type: passes * elements * (2 * loop.pairs + 1)}
    rates |= {level.name: passes * sum(a[0].nbytes for a in arguments) for level in loop.levels}
    return PowerPoint(read.watts, rates)
