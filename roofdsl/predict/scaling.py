"""The expected time on several cores: work is shared evenly, until a level that all of them share is saturated.

This is the ECM model on a chip (Stengel, Treibig, Hager, Wellein, ICS 2015, section 2): n cores are n times as fast as
one until the transfers of a shared level alone take as long, at n_s = ceil(T_1 / T_shared) cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import BandwidthCeiling, Cache, Machine, Peak
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.time import Prediction


class Scaling(Record):
    """The expected time of one launch on 1, 2, ... cores.

    single: the prediction for one core. times_s: for each of `cores`. shared: the level that all cores share and that
    takes longest, with the seconds of its transfers; saturation: the cores from which on it is the limit.
    """

    single: Prediction
    cores: tuple[int, ...]
    times_s: tuple[Fraction, ...]
    shared: tuple[str, Fraction]
    saturation: int


def scaling(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, cores: Sequence[int], options: Options
) -> Scaling:
    """The expected times on these numbers of cores. `options.code` says what code runs.

    Raises CommandError if there is no expected time, and what `predict` raises.
    """
    single = predict(kernel, values, one_core(machine), options)
    found = single.expected
    if found is None:
        raise CommandError(f"{kernel.name} has no expected time on {machine.name}: {single.no_expected}")
    faster = {c.name: c.bandwidth_bytes_per_s for c in machine.caches}
    faster[machine.main_memory.name] = machine.main_memory.bandwidth_bytes_per_s
    slower = {v.name: v.bandwidth_bytes_per_s for v in single.levels}
    shared = {
        name: time * slower[name] / faster[name] for name, time in found.transfers if name in shared_levels(machine)
    }  # of all cores together
    name = max(shared, key=lambda level: shared[level])
    work_s = found.expected_s - found.launch_s
    times = tuple(max(work_s / n, shared[name]) + found.launch_s for n in cores)
    saturation = max(1, ceil(work_s / shared[name])) if shared[name] else max(cores) + 1
    return Scaling(single, tuple(cores), times, (name, shared[name]), saturation)


def shared_levels(machine: Machine) -> tuple[str, ...]:
    """The memory, and the caches of which there are fewer than cores."""
    cores = machine.units or 1
    return (*(cache.name for cache in machine.caches if cache.copies < cores), machine.main_memory.name)


ONE_CORE = "one core, {level}"
"""The name of the ceiling that `characterize` writes for what a single core gets from a level."""


def one_core(machine: Machine) -> Machine:
    """The machine with a single core, which has its part of the peaks and of the caches' bandwidths.

    Raises CommandError if the machine has several cores and does not state what one of them gets from the memory.
    """
    cores, memory = machine.units or 1, machine.main_memory
    if cores == 1:
        return machine
    name = ONE_CORE.format(level=memory.name)
    alone = [c.bandwidth_bytes_per_s for c in machine.ceilings if isinstance(c, BandwidthCeiling) and c.name == name]
    if not alone:
        what = f"{machine.name} does not state what a single core gets from {memory.name}"
        raise CommandError(what, f'state it as `ceiling "{name}" {memory.name} 12 GB/s`, or use a machine of one core')
    return replace(
        machine,
        units=1,
        peaks=tuple(_of_one(peak, cores) for peak in machine.peaks),
        caches=tuple(_of_cache(cache, cores) for cache in machine.caches),
        memories=(replace(memory, bandwidth_bytes_per_s=alone[0]), *machine.memories[1:]),
        ceilings=(),
    )


def _of_one(peak: Peak, cores: int) -> Peak:
    return replace(peak, rate_per_s=peak.rate_per_s / cores)


def _of_cache(cache: Cache, cores: int) -> Cache:
    """The copy that serves one core, with that core's part of the bandwidth."""
    beside = None if cache.beside_bytes_per_s is None else cache.beside_bytes_per_s / cores
    return replace(
        cache, copies=1, bandwidth_bytes_per_s=cache.bandwidth_bytes_per_s / cores, beside_bytes_per_s=beside
    )
