"""Expected time on several cores: work is shared, until a level that all of them share is saturated.

This is the ECM model on a chip (Stengel, Treibig, Hager, Wellein, ICS 2015, section 2): n cores are n times as fast as
one until the transfers of a shared level alone take as long as each core's share of the work, at n_s = ceil(T_1 /
T_shared) cores. Work that the code does not divide evenly takes as long as on the core with the most of it
(`divided_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil

from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.divided_loops import (
    UNEVEN,
    Division,
    division_if_counted,
    division_of_nest,
    in_words,
    undivided,
)
from roofdsl.predict.expected import Expected, Rung, causes_of
from roofdsl.predict.expected_level_times import measured_turns_s, turns_s
from roofdsl.predict.expected_of_nests import in_sequence
from roofdsl.predict.expected_rates import for_data_on_cores
from roofdsl.predict.prediction import Cores, LevelTime, Prediction
from roofdsl.predict.some_cores import bandwidths, one_core_among, shared_levels, some_cores


def timed_on_cores(
    bound: Prediction,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    *,
    cores: int,
    as_compiled: bool,
    predicted: Callable[[Machine], Prediction],
) -> Prediction:
    """The prediction of the bound on this number of the machine's cores, with the expected time or why there is none.

    as_compiled: whether the bound counts the accesses of compiled code. predicted: the prediction of the same launch,
    with its expected time, on a machine of one core. Raises CommandError if the machine does not state what one core
    gets from the memory, and what `predicted` raises.
    """
    divided = division_if_counted(kernel, values)
    most = most_cores(divided)
    if cores > 1 and divided is None:
        return replace(bound, no_expected=f"{undivided(kernel)}: `--cores 1` predicts that")
    single = predicted(one_core_with_data(machine, cores, bound.footprint_bytes))
    if single.expected is None:
        return replace(bound, no_expected=single.no_expected)
    divided, nests = divided or Division(), divisions(single.expected, values)
    found = on_several(single, single.expected, machine, cores, divided, nests, as_compiled=as_compiled)
    shared = longest_shared(single, single.expected, machine)
    n_s = saturation(single.expected, shared, most)
    return replace(
        bound,
        expected=replace(found, causes=causes_of(bound.bound_s, found.ladder)),
        assumptions=tuple(dict.fromkeys((*bound.assumptions, *in_words(divided, cores), *found.assumptions))),
        cores=Cores(cores, n_s, shared if shared[1] else None, most),
    )


def timed_on_all_cores(
    bound: Prediction,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    *,
    as_compiled: bool,
    predicted: Callable[[Machine], Prediction],
) -> Prediction:
    """As `timed_on_cores`, for all cores. Nobody asked for a number of cores, so the prediction does not state it."""
    cores = machine.units or 1
    timed = timed_on_cores(bound, kernel, values, machine, cores=cores, as_compiled=as_compiled, predicted=predicted)
    return replace(timed, cores=None)


def one_core_with_data(machine: Machine, cores: int, data_bytes: int | None) -> Machine:
    """One core among this number of cores (`one_core_among`), at the rates that their caches have for `data_bytes` of
    shared data (None: the size of the data is not known). Raises CommandError as `one_core_among` does.
    """
    usual = machine if data_bytes is None else for_data_on_cores(data_bytes, machine, cores)
    return one_core_among(usual, cores)


def divisions(found: Expected, values: Mapping[str, int]) -> tuple[Division, ...]:
    """The division of each loop nest of the launch, if there are several."""
    return tuple(division_of_nest(nest.kernel, values) for nest in found.nests)


def longest_shared(single: Prediction, found: Expected, machine: Machine) -> tuple[str, Fraction]:
    """The shared level that takes longest, with the seconds of its transfers at the rate of all cores."""
    return max(_shared_times(single, found, machine, machine.units or 1).items(), key=lambda item: item[1])


def _shared_times(single: Prediction, found: Expected, machine: Machine, cores: int) -> dict[str, Fraction]:
    """The seconds of the transfers of each shared level, and of each link, at the rate of this number of cores."""
    several, memory = some_cores(machine, cores), machine.main_memory.name
    rates, own = bandwidths(several), {cache.name for cache in machine.caches} - set(shared_levels(machine))
    levels, times = {level.name: level for level in single.levels}, {}
    for name, time in found.transfers:
        if name in own:
            continue
        alone = levels[name]
        slower = alone.bandwidth_bytes_per_s / rates.get(name, alone.bandwidth_bytes_per_s)
        past_s = found.past_caches_s if name == memory else Fraction(0)
        past_slower, rate = slower, several.main_memory.streamed_bytes_per_s
        if rate is not None and alone.streamed_bytes_per_s is not None:
            past_slower = alone.streamed_bytes_per_s / rate
        times[name] = (time - past_s) * slower + past_s * past_slower
    return times


def most_cores(divided: Division | None) -> int | None:
    """The most cores that have work at the same time: one if nothing divides it; None if that is not limited."""
    return 1 if divided is None else divided.most_cores()


def saturation(found: Expected, shared: tuple[str, Fraction], most: int | None) -> int | None:
    """n_s, the number of cores whose work takes as long as the shared level's transfers, if iterations can be divided
    as finely as needed; None without transfers, and if only `most` cores have work and these are fewer.
    """
    if not shared[1]:
        return None
    n_s = max(1, ceil((found.expected_s - found.launch_s) / shared[1]))
    return n_s if most is None or n_s <= most else None


def on_several(  # noqa: PLR0917
    single: Prediction,
    found: Expected,
    machine: Machine,
    cores: int,
    divided: Division,
    nests: Sequence[Division] = (),
    *,
    as_compiled: bool,
) -> Expected:
    """The expected time on this number of cores, with its causes (`Expected.ladder`) counted from their bound.

    divided, nests: the division of the whole launch, and that of each of its loop nests, if there are several. Nests
    follow each other.
    """
    if not found.nests:
        return _nest_on_several(single, found, machine, cores, divided, as_compiled=as_compiled)
    times = []
    for nest, own in zip(found.nests, nests, strict=True):
        alone = replace(single, levels=nest.levels, bound_s=nest.bound_s, launch_s=Fraction(0))
        time = _nest_on_several(alone, nest.expected, machine, cores, own, as_compiled=as_compiled)
        bound_s = max(nest.bound_s / cores, _least_s(alone, machine, cores))
        times.append(replace(nest, bound_s=bound_s, expected=time))
    return in_sequence(found, single.bound_s, single.launch_s, times)


def _nest_on_several(
    single: Prediction, found: Expected, machine: Machine, cores: int, divided: Division, *, as_compiled: bool
) -> Expected:
    """The same for one loop nest, or for loops that are timed together.

    The work that one core does alone and each loop that cores share follow each other, and each takes at least its part
    of the time of the slowest shared level.
    """
    part, phases = divided.busiest(cores), divided.phases(cores)
    several = some_cores(machine, cores)
    levels = [_level_of(level, several) for level in single.levels]
    times = _shared_times(single, found, machine, cores)
    shared_names = shared_levels(machine)
    if as_compiled:  # nothing is faster than the bound
        times |= {v.name: max(times.get(v.name, v.time_s), v.time_s) for v in levels if v.name in shared_names}
    shared, shared_s = max(times.items(), key=lambda item: item[1])
    limit_s = max(shared_s, measured_turns_s([level.with_allocated() for level in levels], several))

    def work(one_core_s: Fraction, least_s: Fraction = limit_s) -> Fraction:
        return sum((max(one_core_s * busiest, least_s * share) for share, busiest in phases), Fraction(0))

    *rungs, launched = found.ladder
    least, ladder = _least_s(single, machine, cores), list[Rung]()
    work_s = work(found.expected_s - found.launch_s)
    if part * cores > 1:
        ladder.append(Rung(UNEVEN, divided.remedy(cores), max(single.bound_s * part, least)))
    for rung in rungs:
        if rung.reached_s < single.bound_s:  # from here on, less is moved than the bound counts
            least = min(least, work_s)
        ladder.append(replace(rung, reached_s=max(rung.reached_s * part, least)))
    waiting = Rung(f"all cores share {shared}", "a working set that fits into a nearer cache", Fraction(0))
    ladder.append(replace(waiting, reached_s=max(ladder[-1].reached_s, work_s)))
    ladder.append(replace(launched, reached_s=work_s + found.launch_s))
    return replace(
        found,
        expected_s=work_s + found.launch_s,
        core_s=found.core_s * part,
        loads_s=found.loads_s * part,
        transfers=tuple((name, work(time, times.get(name, Fraction(0)))) for name, time in found.transfers),
        data_s=work(found.data_s),
        relaxed_s=None if found.relaxed_s is None else work(found.relaxed_s - found.launch_s) + found.launch_s,
        ladder=tuple(ladder),
    )


def _least_s(single: Prediction, machine: Machine, cores: int) -> Fraction:
    """The seconds below which no division of the work brings the launch: those of the launch itself, and of the levels
    that cores share.
    """
    several, shared_names = some_cores(machine, cores), shared_levels(machine)
    levels = [_level_of(level, several) for level in single.levels]
    shared_level_s = (level.time_s for level in levels if level.name in shared_names)
    return max([single.launch_s, turns_s(levels, several), *shared_level_s])


def _level_of(level: LevelTime, machine: Machine) -> LevelTime:
    """The level at the machine's rates; a level that is reached over links stays as it is."""
    found = level.at_bandwidth(bandwidths(machine).get(level.name, level.bandwidth_bytes_per_s))
    if not level.streamed_bytes:
        return found
    return replace(found, streamed_bytes_per_s=machine.main_memory.streamed_bytes_per_s)
