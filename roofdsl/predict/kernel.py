"""The prediction of one launch of a kernel on a machine: counts from the analyses, time from the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.numbers import numbers
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import has_streams, ordinary, within_caches
from roofdsl.machine.model import Machine
from roofdsl.predict.access_orders import Orders, in_loop_order, orders_of
from roofdsl.predict.associative import WithSets, conflict_warnings, refuse_sets, with_sets
from roofdsl.predict.assumed_state import assumed_state, too_large
from roofdsl.predict.boundary import Boundary, memory_boundary
from roofdsl.predict.compute import check_unit, parts_of
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.energy import with_energy
from roofdsl.predict.expected_on_cores import timed_on_all_cores
from roofdsl.predict.expected_rates import streams_of
from roofdsl.predict.gathered import gathered_of
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.hardware_traffic import WRITTEN, Moved, Moving, lost_by_sharing
from roofdsl.predict.idempotent_kernels import changes_nothing_again
from roofdsl.predict.in_core_time import Code, with_expected, without_in_core
from roofdsl.predict.index_array_checks import check_available, values_given
from roofdsl.predict.kernel_launches import MANY_LAUNCHES, SEVERAL, launches_of_kernel, why_so_many
from roofdsl.predict.level_traffic import (
    Hierarchy,
    allocated_bytes,
    crossing_at,
    link_level_time,
    memory_level_time,
    nearer_levels,
    with_streamed,
)
from roofdsl.predict.occupancy import Block, LatencyCeiling, Occupancy, latency_ceilings, occupancy
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.predict.some_cores import states_one_core
from roofdsl.predict.strided import walks_of
from roofdsl.predict.told_apart import told_apart
from roofdsl.predict.variants import in_its_order

if TYPE_CHECKING:
    from roofdsl.counts.data_traffic import DataTraffic
    from roofdsl.counts.traffic_at import TrafficAt

Accesses = Literal["written", "compiled"]


class Options(Record):
    """The options of a prediction, besides kernel and machine.

    - traffic: the convention; overrides file and machine (rule 11).
    - unit: "tensor" or "tensor_sparse" (rule 14); overrides the kernel's.
    - ceilings: names of the machine's ceilings that limit the code.
    - levels: "all", or "memory" for only the memory.
    - data: the further memory that holds all data at first.
    - warm: the launch directly follows another one like it, whose data are still in the caches as far as they fit.
    - block: the thread block, for the occupancy and for the order of accesses by blocks.
    - in_flight_bytes: the bytes that each thread has in flight, which cap the bandwidth of levels with a stated
      latency.
    - accesses: those to the first cache as "written" in the kernel (rule 10), or as "compiled": values that inner loops
      do not change stay in a register.
    - sets: count bytes by simulating each cache with its sets, if the machine states its ways.
    - conflicts: without `sets`, warn if sets matter, which takes a few hundredths of a second.
    - step_s: the latency of each step of a program's collectives.
    - code: the code whose expected time is wanted; None for the bound alone.
    - energy: whether the energy is wanted (`predict.energy`).
    """

    traffic: Traffic | None = None
    unit: str | None = None
    ceilings: tuple[str, ...] = ()
    levels: Literal["all", "memory"] = "all"
    data: str | None = None
    warm: bool = False
    block: Block | None = None
    in_flight_bytes: int | None = None
    accesses: Accesses = "written"
    step_s: Fraction = Fraction(0)
    sets: bool = False
    conflicts: bool = False
    code: Code | None = None
    energy: bool = False


DEFAULTS = Options()


class _Case(Record):
    """What is predicted. `written` is the kernel whose code is made; `kernel` has the accesses of this code in their
    order. counted: the traffic of a kernel with index arrays whose data are given.
    """

    written: Kernel
    kernel: Kernel
    values: Mapping[str, int]
    machine: Machine
    options: Options
    counted: DataTraffic | None


def predict(kernel: Kernel, parameters: Mapping[str, int], machine: Machine, options: Options = DEFAULTS) -> Prediction:
    """One launch of `kernel` at `parameters` (defaults of the file filled in) on `machine`.

    Bytes are counted across every boundary of the machine's hierarchy. Q is the traffic of the memory: behind the
    machine's last cache, or compulsory if it has none.

    Raises InputError for a kernel that leaves its arrays, violates its intents or has an illegal directive,
    CommandError for a missing parameter or a type or ceiling that the machine lacks, and what the analyses raise.
    """
    if machine.multiprocessor is not None and has_streams(kernel):
        found = predict(ordinary(kernel), parameters, machine, options)
        note = "stores that bypass the caches are made as usual: on a GPU, no store loads its line"
        return replace(found, assumptions=(*found.assumptions, note))
    case = _checked(kernel, parameters, machine, options)
    found = _bound(case)
    if options.code is not None:
        found = _with_expected(case, found, options.code)
    return with_energy(found, machine) if options.energy else found


def _with_expected(case: _Case, found: Prediction, code: Code) -> Prediction:
    """The prediction with its expected time, or with the reason why there is none."""
    kernel, machine, options = case.written, case.machine, case.options
    compiled, moved = options.accesses == "compiled", partial(_moving, case, found)
    if is_timed_by_core(machine, options):
        by_one = partial(predict, kernel, case.values, options=for_one_core(options))
        return timed_on_all_cores(found, kernel, case.values, machine, as_compiled=compiled, predicted=by_one)
    return with_expected(found, kernel, case.values, machine, code, as_compiled=compiled, moving=moved)


def for_one_core(options: Options) -> Options:
    """The options of a prediction of which only the expected time is used."""
    return replace(options, energy=False, conflicts=False)


def is_timed_by_core(machine: Machine, options: Options) -> bool:
    """Whether the expected time of all cores is made from that of one core, as for some of them (`on_cores`): the
    machine states what one core gets, and no ceiling of the whole machine is given.
    """
    return states_one_core(machine) and not options.ceilings and without_in_core(machine) == ""


def moving(
    kernel: Kernel, parameters: Mapping[str, int], machine: Machine, options: Options, found: Prediction
) -> Moving:
    """What the hardware moves in one launch, beside the prediction of its bound. Raises as `predict` does."""
    return _moving(_checked(kernel, parameters, machine, options), found)


def _checked(kernel: Kernel, parameters: Mapping[str, int], machine: Machine, options: Options) -> _Case:
    """The case to predict. Raises InputError or CommandError if the kernel, a parameter or an option is not allowed."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.predict.data_pass import data_traffic

    check_available(kernel, sets=options.sets, compiled=options.accesses == "compiled")
    require_legal(kernel)
    if (unit := options.unit or kernel.unit) is not None:
        check_unit(unit, is_contraction(kernel), kernel.name)
    values, own = numbers(kernel, parameters), in_its_order(kernel, options.code)
    return _Case(kernel, own, values, machine, options, data_traffic(own, values, machine, warm=options.warm))


def _bound(case: _Case) -> Prediction:
    """The bound on the time, with what it rests on."""
    from roofdsl.counts.counters import counters_at, has_counters
    from roofdsl.counts.traffic_at import footprint_at
    from roofdsl.counts.work_at import work_at

    kernel, values, machine, options = case.kernel, case.values, case.machine, case.options
    resident, latency = _occupancy(machine, options)
    unit, costs = options.unit or kernel.unit, {name: Fraction(value) for name, value in kernel.costs}
    work = work_at(kernel, values)
    parts_of(work, machine, unit=unit, costs=costs)  # raises for a type without a rate before bytes are counted
    launches = launches_of_kernel(kernel, values, machine)
    crossing = _crossing(case, kernel, machine, options, memory_boundary(kernel, machine, options.traffic))
    prediction = predict_counts(
        kernel.name,
        {**dict(kernel.constants), **values},
        work,
        crossing.memory,
        machine,
        unit=unit,
        costs=costs,
        ceilings=options.ceilings,
        launches=launches.count,
        nearer=crossing.nearer,
        beyond=crossing.beyond,
        latency=latency,
    )
    counters = counters_at(kernel, values) if has_counters(kernel.body) else {}
    footprint = footprint_at(kernel, values) if case.counted is None else case.counted.footprint_bytes
    warnings = prediction.warnings + crossing.warnings + _warnings(kernel, machine, options, footprint, latency)
    if launches.count >= MANY_LAUNCHES and prediction.bounds[0] == "launch":
        warnings += (why_so_many(kernel, values, launches.count),)
    assumed = prediction.assumptions + crossing.assumptions + assumed_state(prediction, machine, warm=options.warm)
    return replace(
        prediction,
        executions=None if launches.count == 1 else 1,
        traffic=crossing.boundary.convention,
        cache_bytes=crossing.boundary.cache_bytes,
        line_bytes=crossing.boundary.line_bytes,
        footprint_bytes=footprint,
        counters=tuple(counters.items()),
        occupancy=resident,
        assumptions=(*dict.fromkeys(assumed + crossing.in_sets), *values_given(kernel)),
        warnings=warnings,
    )


def _moving(case: _Case, found: Prediction) -> Moving:
    """What the hardware moves, by the machine's own policy, whatever convention the kernel states."""
    from roofdsl.counts.traffic_at import footprint_at
    from roofdsl.predict.data_pass import scattered_of

    kernel, values, machine, options = case.kernel, case.values, case.machine, case.options
    more, levels, own = list[Moved](), found.levels, kernel
    if options.traffic is None and kernel.traffic is not None and options.levels == "all" and not options.sets:
        own = replace(kernel, traffic=None)
        rates = {level.name: level.bandwidth_bytes_per_s for level in found.levels}  # under ceilings
        with suppress(CommandError):  # if counting takes too long, the bound's count is used
            crossing = _crossing(case, own, machine, options, memory_boundary(own, machine))
            every = (*crossing.nearer, crossing.memory)
            levels = tuple(level.at_bandwidth(rates[level.name]) for level in every if level.name in rates)
            more.append(Moved(WRITTEN[kernel.traffic], "", levels))

    def memory_behind(other: Machine) -> LevelTime:
        boundary = memory_boundary(own, other, options.traffic)
        memory = _crossing(case, own, other, replace(options, levels="memory"), boundary).memory
        return memory.at_bandwidth(levels[-1].bandwidth_bytes_per_s)

    if options.data is None and not options.sets and machine.multiprocessor is None:
        with suppress(CommandError):
            footprint = footprint_at(within_caches(own), values) if has_streams(own) else found.footprint_bytes or 0
            if lost := lost_by_sharing(levels, footprint, machine, memory_behind):
                more.append(lost)
    levels = more[-1].levels if more else levels
    if is_indirect(kernel):
        return Moving(tuple(more), scattered=scattered_of(case.counted, kernel, machine, levels))
    walks, streams = walks_of(kernel, values, machine, levels, warm=options.warm), streams_of(own, values, machine)
    convention = memory_boundary(own, machine, options.traffic).convention
    gathered = gathered_of(kernel, values, machine, levels, convention)
    return Moving(
        tuple(more), walks, gathered=gathered, unchanged=options.warm and changes_nothing_again(kernel), streams=streams
    )


def _occupancy(machine: Machine, options: Options) -> tuple[Occupancy | None, tuple[LatencyCeiling, ...]]:
    """The occupancy, and the ceilings that the bytes in flight put on levels; each only if the options request it."""
    if options.block is None:
        return None, ()
    resident = occupancy(machine, options.block)
    if options.in_flight_bytes is None:
        return resident, ()
    return resident, latency_ceilings(machine, resident, options.in_flight_bytes)


def _warnings(
    kernel: Kernel, machine: Machine, options: Options, footprint: int, latency: tuple[LatencyCeiling, ...]
) -> tuple[str, ...]:
    """Warnings about options without effect, and about a footprint (in bytes) beyond the machine's memory."""
    found: tuple[str, ...] = ()
    if options.in_flight_bytes is not None and not latency:
        found += (f"{machine.name} defines no latencies, so --in-flight has no effect",)
    if footprint > machine.main_memory.size_bytes and options.data is None:
        found += (too_large(kernel, machine, footprint),)
    return found


class _Crossing(Record):
    """The levels of a hierarchy: those nearer than the memory, the memory, and the further memory that holds the data,
    if there is one.

    in_sets: the assumptions about sets or about the number of launches, which are listed last.
    """

    nearer: tuple[LevelTime, ...]
    memory: LevelTime
    beyond: tuple[LevelTime, ...]
    boundary: Boundary
    assumptions: tuple[str, ...]
    in_sets: tuple[str, ...]
    warnings: tuple[str, ...]


def _crossing(case: _Case, kernel: Kernel, machine: Machine, options: Options, boundary: Boundary) -> _Crossing:
    """Count the bytes across every boundary, of all launches that the kernel becomes, each with cold caches.

    kernel, machine, options: those of the case, or what stands for them.
    """
    values = case.values
    launches = launches_of_kernel(kernel, values, machine)
    beyond: tuple[LevelTime, ...] = ()
    if options.data is not None:
        far = link_level_time(kernel, values, machine, options.data, boundary.convention, warm=options.warm)
        beyond = (far,)
    first = launches.each[0]
    is_whole = first.kernel is kernel
    if options.warm or options.sets or launches.why or is_whole:
        if options.warm:
            orders = Orders(kernel, how=first.threads if is_whole else None)
        else:
            orders = orders_of(kernel, values, machine, options.block, first.how if is_whole else SEVERAL)
        orders = replace(orders, counted=case.counted)
        return replace(_one_crossing(orders, values, machine, options, boundary), beyond=beyond)
    parts = []
    for launch in launches.each:
        if launch.kernel is not None:
            own = orders_of(launch.kernel, values, machine, options.block, launch.how)
            parts.append((launch.function, _one_crossing(own, values, machine, options, boundary), launch.times))
    note = f"{launches.count:,} launches of the generated code, each with cold caches"
    notes = (note, *filter(None, [launches.sampled])) if launches.count > 1 else ()
    return replace(_added(parts), beyond=beyond, in_sets=notes)


def _added(parts: Sequence[tuple[str, _Crossing, int]]) -> _Crossing:
    """The sum over several launches, each with its function and its number of executions. A level that one of them
    lacks is left out.
    """
    kept = set.intersection(*({level.name for level in part.nearer} for _, part, _ in parts))
    each = [
        (tuple(level * times for level in part.nearer if level.name in kept), part.memory * times)
        for _, part, times in parts
    ]
    nearer, memory = each[0]
    for others, its_memory in each[1:]:
        nearer = tuple(a + b for a, b in zip(nearer, others, strict=True))
        memory = memory + its_memory
    assumed = told_apart([(function, part.assumptions) for function, part, _ in parts])
    warnings = tuple(dict.fromkeys(text for _, part, _ in parts for text in part.warnings))
    return _Crossing(nearer, memory, (), parts[0][1].boundary, assumed, (), warnings)


def _one_crossing(
    orders: Orders, values: Mapping[str, int], machine: Machine, options: Options, boundary: Boundary
) -> _Crossing:
    """Count the bytes across every boundary, with caches that are cold at the start of the launch, or warm.

    A warm launch is counted in the order of the loops. Its traffic is that of two launches in a row minus that of one.
    Counting by thread blocks leaves no state of the caches from which a second launch could start.
    """
    from roofdsl.counts.streamed import streamed_at

    kernel = orders.kernel
    if options.warm:
        moved = crossing_at(orders, values, boundary, boundary.convention, warm=True)
    else:
        moved, boundary, orders = _at_memory(orders, values, machine, boundary)
    nearer = Hierarchy(())
    if options.levels == "all":
        nearer = nearer_levels(orders, values, machine, options.traffic, options.warm, accesses=options.accesses)
    memory = memory_level_time(machine, moved, boundary)
    memory, past = with_streamed(memory, streamed_at(sized(kernel, values)), machine)
    if boundary.allocated is not None and orders.launch is None:
        own = allocated_bytes(orders, values, boundary, moved, warm=options.warm)
        memory = replace(memory, allocated_bytes=own)
    levels = (*nearer.levels, memory)
    sets = WithSets(())
    if options.sets:
        refuse_sets(warm=options.warm, machine=machine)
        sets = with_sets(kernel, values, machine, levels, options.traffic)
        levels = sets.levels
    elif options.conflicts and not options.warm and not is_indirect(kernel):
        near = machine if options.levels == "all" else replace(machine, caches=machine.caches[-1:])
        sets = WithSets((), warnings=conflict_warnings(kernel, values, near))
    assumed = nearer.assumptions + boundary.assumptions + orders.assumptions + past
    warnings = nearer.warnings + sets.warnings
    return _Crossing(levels[:-1], levels[-1], (), boundary, assumed, sets.assumptions, warnings)


def _at_memory(
    orders: Orders, values: Mapping[str, int], machine: Machine, boundary: Boundary
) -> tuple[TrafficAt, Boundary, Orders]:
    """The traffic across the memory's boundary, that boundary, and the orders in which all boundaries are counted.

    If the traffic by thread blocks cannot be found, mostly because that takes too long, all levels are counted in the
    order of the loops.
    """
    from roofdsl.counts.traffic_at import OutOfReach
    from roofdsl.predict.thread_block_traffic import launch_transfers

    cache = machine.last_cache
    if orders.launch is not None and cache is not None:
        try:
            moved, at = launch_transfers(orders, cache, values, boundary)
        except CommandError as error:
            why = "counting by thread blocks takes too long" if isinstance(error, OutOfReach) else error.message
            orders = in_loop_order(orders.kernel, why, orders.how)
        else:
            return moved, at, orders
    return crossing_at(orders, values, boundary, boundary.convention, warm=False), boundary, orders
