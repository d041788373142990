"""Expected time on several cores: work is shared, until a level that all of them share is saturated.

This is the ECM model on a chip (Stengel, Treibig, Hager, Wellein, ICS 2015, section 2): n cores are n times as fast as
one until the transfers of a shared level alone take as long as each core's share of the work, at n_s = ceil(T_1 /
T_shared) cores. Work that the code does not divide evenly takes as long as on the core with the most of it
(`divided_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.divided_loops import UNEVEN, Division, division, in_words, undivided
from roofdsl.predict.expected import Expected, Rung, causes_of
from roofdsl.predict.expected_level_times import measured_turns_s
from roofdsl.predict.prediction import Cores, LevelTime, Prediction
from roofdsl.predict.some_cores import bandwidths, one_core_among, shared_levels, some_cores


def timed_on_cores(
    bound: Prediction,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    *,
    cores: int,
    predicted: Callable[[Machine], Prediction],
) -> Prediction:
    """The prediction of the bound on this number of the machine's cores, with the expected time or why there is none.

    predicted: the prediction of the same launch, with its expected time, on a machine of one core. Raises CommandError
    if the machine does not state what one core gets from the memory, and what `predicted` raises.
    """
    divided = division_if_counted(kernel, values)
    if cores > 1 and divided is None:
        return replace(bound, no_expected=f"{undivided(kernel)}: `--cores 1` predicts that")
    single = predicted(one_core_among(machine, cores))
    if single.expected is None:
        return replace(bound, no_expected=single.no_expected)
    found = on_several(single, single.expected, machine, cores, divided or Division())
    shared = longest_shared(single, single.expected, machine)
    n_s = saturation(single.expected, shared, divided)
    return replace(
        bound,
        expected=replace(found, causes=causes_of(bound.bound_s, found.ladder)),
        assumptions=tuple(dict.fromkeys((*bound.assumptions, *in_words(divided, cores), *found.assumptions))),
        cores=Cores(cores, n_s, None if n_s is None else shared),
    )


def timed_on_all_cores(
    bound: Prediction,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    predicted: Callable[[Machine], Prediction],
) -> Prediction:
    """As `timed_on_cores`, for all cores. Nobody asked for a number of cores, so the prediction does not state it."""
    timed = timed_on_cores(bound, kernel, values, machine, cores=machine.units or 1, predicted=predicted)
    return replace(timed, cores=None)


def division_if_counted(kernel: Kernel, values: Mapping[str, int]) -> Division | None:
    """The division of the kernel's work among cores, which counts as even if its accesses take too long to count; None
    if it has no loop whose iterations are known to be independent.
    """
    try:
        return division(kernel, values)
    except CommandError:
        return Division()


def longest_shared(single: Prediction, found: Expected, machine: Machine) -> tuple[str, Fraction]:
    """The shared level that takes longest, with the seconds of its transfers at the rate of all cores."""
    all_cores = bandwidths(machine)
    own = {cache.name for cache in machine.caches} - set(shared_levels(machine))
    rates = {level.name: level.bandwidth_bytes_per_s for level in single.levels}  # of one core
    times = {
        name: time * rates[name] / all_cores.get(name, rates[name]) for name, time in found.transfers if name not in own
    }
    memory = next((level for level in single.levels if level.name == machine.main_memory.name), None)
    if memory is not None and memory.streamed_bytes:  # these stores have another rate of one core
        times[memory.name] = max(times[memory.name], _level_of(memory, machine).time_s)
    return max(times.items(), key=lambda item: item[1])


def saturation(found: Expected, shared: tuple[str, Fraction], divided: Division | None) -> int | None:
    """n_s, the number of cores whose work takes as long as the shared level's transfers, if iterations can be divided
    as finely as needed; None without transfers, and if the work that one core does alone takes longer.
    """
    one_s = found.expected_s - found.launch_s
    alone_s = one_s * (1 if divided is None else divided.alone)
    return max(1, ceil((one_s - alone_s) / (shared[1] - alone_s))) if shared[1] > alone_s else None


def on_several(single: Prediction, found: Expected, machine: Machine, cores: int, divided: Division) -> Expected:
    """The expected time on this number of cores, with its causes (`Expected.ladder`) counted from their bound."""
    part = divided.busiest(cores)
    several = some_cores(machine, cores)
    levels = [_level_of(level, several) for level in single.levels]
    shared, shared_s = longest_shared(single, found, machine)
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
    found = level.at_bandwidth(bandwidths(machine).get(level.name, level.bandwidth_bytes_per_s))
    if not level.streamed_bytes:
        return found
    return replace(found, streamed_bytes_per_s=machine.main_memory.streamed_bytes_per_s)
