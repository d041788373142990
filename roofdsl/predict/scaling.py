"""Bound and expected time on several cores: work is shared, until a level that all of them share is saturated.

This is the ECM model on a chip (Stengel, Treibig, Hager, Wellein, ICS 2015, section 2): n cores are n times as fast as
one until the transfers of a shared level alone take as long as each core's share of the work, at n_s = ceil(T_1 /
T_shared) cores. Work that the code does not divide evenly takes as long as on the core with the most of it
(`divided_loops`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import TypeVar

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import ONE_CORE, STREAMED, BandwidthCeiling, Cache, Machine, Memory, Peak
from roofdsl.predict.divided_loops import UNEVEN, Division, division, in_words, undivided
from roofdsl.predict.energy import with_energy
from roofdsl.predict.expected import Expected, Rung, causes_of
from roofdsl.predict.expected_level_times import measured_turns_s
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.prediction import Cores, LevelTime, Prediction


class Scaling(Record):
    """The expected time of one launch on 1, 2, ... cores.

    single: the prediction for one core. times_s: for each of `cores`. shared: the shared level that takes longest, with
    the seconds of its transfers; saturation: the number of cores from which it is the limit; None if nothing is
    transferred, or if the transfers take less time than the work that one core does alone.
    """

    single: Prediction
    cores: tuple[int, ...]
    times_s: tuple[Fraction, ...]
    shared: tuple[str, Fraction]
    saturation: int | None


def scaling(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, cores: Sequence[int], options: Options
) -> Scaling:
    """The expected times on these numbers of cores. `options.code` says what code runs.

    Raises CommandError if there is no expected time, and what `predict` raises.
    """
    single = predict(kernel, values, some_cores(machine, 1), options)
    found = single.expected
    if found is None:
        raise CommandError(f"{kernel.name} has no expected time on {machine.name}: {single.no_expected}")
    divided = division(kernel, values)
    if divided is None and max(cores, default=1) > 1:
        raise CommandError(undivided(kernel), "leave out --cores, or change the loops")
    times = tuple(_on(single, found, machine, n, divided or Division()).expected_s for n in cores)
    shared = _shared(single, found, machine)
    return Scaling(single, tuple(cores), times, shared, _saturation(found, shared, divided))


def on_cores(kernel: Kernel, values: Mapping[str, int], machine: Machine, cores: int, options: Options) -> Prediction:
    """The prediction on this number of the machine's cores: their bound, and the expected time from `scaling`.

    Raises CommandError for a GPU, for ceilings, for more cores than the machine has, for a machine that does not state
    what one core gets from the memory, and what `predict` raises.
    """
    _check(machine, cores, options)
    their = some_cores(machine, cores)
    several = predict(kernel, values, their, replace(options, code=None))
    several = replace(several, cores=Cores(cores))
    if options.code is None:
        return several
    divided = division(kernel, values)
    if cores > 1 and divided is None:
        return replace(several, no_expected=undivided(kernel))
    single = predict(kernel, values, some_cores(machine, 1), options)
    if single.expected is None:
        return replace(several, no_expected=single.no_expected)
    shared = _shared(single, single.expected, machine)
    saturation = _saturation(single.expected, shared, divided)
    found = _on(single, single.expected, machine, cores, divided or Division())
    timed = replace(
        several,
        expected=replace(found, causes=causes_of(several.bound_s, found.ladder)),
        assumptions=tuple(dict.fromkeys((*several.assumptions, *in_words(divided, cores), *found.assumptions))),
        cores=Cores(cores, saturation, None if saturation is None else shared),
    )
    return with_energy(timed, their) if options.energy else timed


def by_one_core(kernel: Kernel, values: Mapping[str, int], machine: Machine, options: Options) -> Prediction:
    """The bound of the whole machine, and the expected time of code that runs on one of its cores.

    Raises what `predict` raises.
    """
    whole = predict(kernel, values, machine, replace(options, code=None))
    try:
        found = predict(kernel, values, some_cores(machine, 1), replace(options, ceilings=()))
    except CommandError as error:
        return replace(whole, no_expected=f"the code runs on one core, and {error.message}")
    if found.expected is None:
        return replace(whole, no_expected=found.no_expected)
    alone = Rung(f"one core of {machine.units} runs the code", f"`--cores {machine.units}`", found.bound_s)
    ladder = (alone, *found.expected.ladder)
    expected = replace(found.expected, ladder=ladder, causes=causes_of(whole.bound_s, ladder))
    assumed = tuple(dict.fromkeys((*whole.assumptions, *found.expected.assumptions)))
    timed = replace(whole, expected=expected, assumptions=assumed)
    return with_energy(timed, machine) if options.energy else timed


def _check(machine: Machine, cores: int, options: Options) -> None:
    if machine.multiprocessor is not None:
        raise CommandError(f"{machine.name} is a GPU; numbers of cores are modeled for CPUs", "leave out `--cores`")
    if options.ceilings:
        raise CommandError("a ceiling holds for the whole machine, not for some of its cores", "leave out `--ceiling`")
    if cores > 1 and machine.units is None:
        raise CommandError(f"{machine.name} does not state how many cores it has", "state it as `units 8`")
    if cores > (machine.units or 1):
        has = "a single core" if machine.units == 1 else f"{machine.units} cores"
        help = "its file describes one core; `plot scaling` draws several like it" if machine.units == 1 else ""
        raise CommandError(f"{machine.name} has {has}, not {cores}", help or f"give at most {machine.units}")


def _shared(single: Prediction, found: Expected, machine: Machine) -> tuple[str, Fraction]:
    """The shared level that takes longest, with the seconds of its transfers at the rate of all cores."""
    all_cores = _rates(machine)
    own = {cache.name for cache in machine.caches} - set(shared_levels(machine))
    rates = {level.name: level.bandwidth_bytes_per_s for level in single.levels}  # of one core
    times = {
        name: time * rates[name] / all_cores.get(name, rates[name]) for name, time in found.transfers if name not in own
    }
    memory = next((level for level in single.levels if level.name == machine.main_memory.name), None)
    if memory is not None and memory.streamed_bytes:  # these stores have another rate of one core
        times[memory.name] = max(times[memory.name], _level_of(memory, machine).time_s)
    return max(times.items(), key=lambda item: item[1])


def _saturation(found: Expected, shared: tuple[str, Fraction], divided: Division | None) -> int | None:
    """n_s, the number of cores whose work takes as long as the shared level's transfers, if iterations can be divided
    as finely as needed; None without transfers, and if the work that one core does alone takes longer.
    """
    one_s = found.expected_s - found.launch_s
    alone_s = one_s * (1 if divided is None else divided.alone)
    return max(1, ceil((one_s - alone_s) / (shared[1] - alone_s))) if shared[1] > alone_s else None


def _on(single: Prediction, found: Expected, machine: Machine, cores: int, divided: Division) -> Expected:
    """The expected time on this number of cores, with its causes (`Expected.ladder`) counted from their bound."""
    part = divided.busiest(cores)
    several = some_cores(machine, cores)
    levels = [_level_of(level, several) for level in single.levels]
    shared, shared_s = _shared(single, found, machine)
    limit_s = max(shared_s, measured_turns_s([level.with_allocated() for level in levels], several))

    def work(one_core_s: Fraction) -> Fraction:
        return max(one_core_s * part, limit_s)

    *rungs, launched = found.ladder
    least = max([single.launch_s, *(level.time_s for level in levels if level.name == shared)])
    ladder = [replace(rung, reached_s=max(rung.reached_s * part, least)) for rung in rungs]
    if part * cores > 1:
        ladder.insert(0, Rung(UNEVEN, divided.remedy, max(single.bound_s * part, least)))
    waiting = Rung(f"all cores share {shared}", "a working set that fits into a nearer cache", Fraction(0))
    ladder.append(replace(waiting, reached_s=max(ladder[-1].reached_s, limit_s)))
    work_s = work(found.expected_s - found.launch_s)
    ladder.append(replace(launched, reached_s=work_s + found.launch_s))
    return replace(
        found,
        expected_s=work_s + found.launch_s,
        core_s=found.core_s * part,
        loads_s=found.loads_s * part,
        transfers=tuple((name, max(t * part, shared_s if name == shared else 0)) for name, t in found.transfers),
        data_s=work(found.data_s),
        relaxed_s=None if found.relaxed_s is None else work(found.relaxed_s - found.launch_s) + found.launch_s,
        ladder=tuple(ladder),
    )


def _level_of(level: LevelTime, machine: Machine) -> LevelTime:
    """The level at the machine's rates; a level that is reached over links stays as it is."""
    found = level.at_bandwidth(_rates(machine).get(level.name, level.bandwidth_bytes_per_s))
    if not level.streamed_bytes:
        return found
    return replace(found, streamed_bytes_per_s=machine.main_memory.streamed_bytes_per_s)


def _rates(machine: Machine) -> dict[str, Fraction]:
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


def _one_core_gets(machine: Machine) -> Fraction:
    """The bandwidth of the memory to a single core, in bytes per second. Raises CommandError if it is not stated."""
    if machine.multiprocessor is not None:
        raise CommandError(f"{machine.name} is a GPU; expected times are modeled for CPUs")
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
