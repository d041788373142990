"""The machine as some of its cores see it: their share of the peaks, and of the bandwidths of caches and memory."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.machine.model import ONE_CORE, STREAMED, BandwidthCeiling, Cache, Machine, Memory, Peak


def bandwidths(machine: Machine) -> dict[str, Fraction]:
    """The bandwidths of the caches and of the main memory, by name."""
    memory = machine.main_memory
    return {c.name: c.bandwidth_bytes_per_s for c in machine.caches} | {memory.name: memory.bandwidth_bytes_per_s}


def shared_levels(machine: Machine) -> tuple[str, ...]:
    """The memory, and the caches of which there are fewer than cores."""
    cores = machine.units or 1
    return (*(cache.name for cache in machine.caches if cache.copies < cores), machine.main_memory.name)


def some_cores(machine: Machine, cores: int) -> Machine:
    """The machine with this number of cores, with their share of the peaks and of the caches' bandwidths.

    The memory, and shared caches for which the machine states it, give each core what a single one gets, but never more
    in total than their bandwidth. The rates of lines that are accessed one by one are shared evenly (`ONE_BY_ONE`). A
    machine with one core stands for any number of such cores. Raises CommandError if the machine has several cores and
    does not state what one of them gets from the memory.
    """
    all_cores = machine.units or 1
    if cores == all_cores == 1:
        return machine
    part = Fraction(cores, all_cores)
    return replace(
        machine,
        units=cores,
        peaks=tuple(_slower_peak(peak, part) for peak in machine.peaks),
        caches=tuple(_slower_cache(cache, machine, cores, part) for cache in machine.caches),
        memories=(_slower_memory(machine.main_memory, machine, cores, part), *machine.memories[1:]),
        ceilings=(),
    )


def one_core_among(machine: Machine, cores: int) -> Machine:
    """One of this number of cores that run at the same time.

    If all of the machine's cores run, each gets at least an even share of what they get together, even if one core
    alone was measured to get less. Raises CommandError as `some_cores` does.
    """
    if cores == 1 or cores != machine.units:
        return some_cores(machine, 1)
    together = {ONE_CORE.format(level=name): rate for name, rate in bandwidths(machine).items()}
    if (past := machine.main_memory.streamed_bytes_per_s) is not None:
        together[ONE_CORE.format(level=STREAMED)] = past
    least = {name: rate / cores for name, rate in together.items()}
    raised = [
        replace(c, bandwidth_bytes_per_s=max(c.bandwidth_bytes_per_s, least[c.name]))
        if isinstance(c, BandwidthCeiling) and c.name in least
        else c
        for c in machine.ceilings
    ]
    return some_cores(replace(machine, ceilings=tuple(raised)), 1)


def states_one_core(machine: Machine) -> bool:
    """Whether the machine is a CPU of several cores that states what one of them gets from the memory."""
    several = machine.multiprocessor is None and (machine.units or 1) > 1
    return several and _stated_for_one_core(machine, machine.main_memory.name) is not None


def _one_core_gets(machine: Machine) -> Fraction:
    """The bandwidth of the memory to a single core, in bytes per second. Raises CommandError if it is not stated."""
    if machine.multiprocessor is not None:
        raise CommandError(f"{machine.name} is a GPU; numbers of cores are modeled for CPUs")
    memory = machine.main_memory
    if (machine.units or 1) == 1:
        return memory.bandwidth_bytes_per_s
    rate = _stated_for_one_core(machine, memory.name)
    if rate is not None:
        return rate
    what = f"{machine.name} does not state what a single core gets from {memory.name}"
    name = ONE_CORE.format(level=memory.name)
    raise CommandError(what, f'on a CPU, state it as `ceiling "{name}" {memory.name} 12 GB/s`')


def _stated_for_one_core(machine: Machine, what: str) -> Fraction | None:
    name = ONE_CORE.format(level=what)
    stated = (c for c in machine.ceilings if isinstance(c, BandwidthCeiling) and c.name == name)
    return next((ceiling.bandwidth_bytes_per_s for ceiling in stated), None)


def _slower_peak(peak: Peak, part: Fraction) -> Peak:
    return replace(peak, rate_per_s=peak.rate_per_s * part)


def _slower_cache(cache: Cache, machine: Machine, cores: int, part: Fraction) -> Cache:
    """The copy that serves one core. The cores get their share of its bandwidth; if the machine states what one core
    gets, N cores get N times as much, but never more than the bandwidth.
    """
    one = _stated_for_one_core(machine, cache.name)
    rate = cache.bandwidth_bytes_per_s * part if one is None else _to(cores, one, cache.bandwidth_bytes_per_s, part)
    return replace(_slower(cache, rate, part), copies=1)


def _slower_memory(memory: Memory, machine: Machine, cores: int, part: Fraction) -> Memory:
    """The memory as these cores get it; see `some_cores`. Stores that bypass the caches have a one-core rate of their
    own, if the machine states it.
    """
    rate = _to(cores, _one_core_gets(machine), memory.bandwidth_bytes_per_s, part)
    slower = _slower(memory, rate, part)
    one, past = _stated_for_one_core(machine, STREAMED), memory.streamed_bytes_per_s
    return slower if one is None or past is None else replace(slower, streamed_bytes_per_s=_to(cores, one, past, part))


def _to(cores: int, one: Fraction, all_cores: Fraction, part: Fraction) -> Fraction:
    """What this number of cores gets of a shared level: so many times what one gets, at most what all of them get.

    All cores get that even if one core was measured to get less than its share of it.
    """
    return all_cores if part >= 1 else min(cores * one, all_cores)


ONE_BY_ONE = (
    "fill_bytes_per_s",
    "strided_bytes_per_s",
    "strided_stores_bytes_per_s",
    "strided_odd_bytes_per_s",
    "strided_odd_stores_bytes_per_s",
    "crowded_bytes_per_s",
    "crowded_stores_bytes_per_s",
    "gathered_bytes_per_s",
    "random_bytes_per_s",
    "random_stores_bytes_per_s",
)
"""The rates that the buffers of each core limit. They grow with the number of cores, whatever the bandwidth of a shared
level is; only the bandwidth limits all cores together.
"""

Level = TypeVar("Level", Cache, Memory)


def _slower(level: Level, rate: Fraction, part: Fraction) -> Level:
    """The level at this bandwidth. Its other rates are lower by the same factor, but lines that are accessed one by one
    come at `part` of the rates of all cores.
    """
    factor = rate / level.bandwidth_bytes_per_s
    names = [name for name in level.__match_args__ if name.endswith("_bytes_per_s")]
    rates = {name: stated for name in names if (stated := getattr(level, name)) is not None}
    return replace(level, **{name: of * (part if name in ONE_BY_ONE else factor) for name, of in rates.items()})
