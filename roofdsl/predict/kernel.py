"""The prediction of one launch of a kernel on a machine: counts from the analyses, time from the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial

from roofdsl.counts.work_record import WorkAt
from roofdsl.incore.result import InCore
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import has_streams, ordinary, within_caches
from roofdsl.loops.successive_nests import successive_nests
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.predict.assumed_state import assumed_state, too_large
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.compute import parts_of
from roofdsl.predict.contraction import check_unit
from roofdsl.predict.crossings import Case, Crossing, crossing
from roofdsl.predict.energy import with_energy
from roofdsl.predict.expected_of_launches import with_launches
from roofdsl.predict.expected_of_nests import Nest
from roofdsl.predict.expected_on_cores import timed_on_all_cores
from roofdsl.predict.expected_rates import streams_of
from roofdsl.predict.gathered import gathered_of
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.hardware_traffic import WRITTEN, Moved, Moving, lost_by_sharing
from roofdsl.predict.idempotent_kernels import changes_nothing_again
from roofdsl.predict.in_core_time import Code, composed, inner_cores, with_expected, without_in_core
from roofdsl.predict.index_array_checks import check_available, values_given
from roofdsl.predict.inner_loops import inner_loops
from roofdsl.predict.kernel_launches import BY_DATA, MANY_LAUNCHES, launches_of_kernel, why_so_many
from roofdsl.predict.launch_statements import nests_alone
from roofdsl.predict.occupancy import LatencyCeiling, Occupancy, latency_ceilings, occupancy
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.predict.some_cores import states_one_core
from roofdsl.predict.strided import walks_of
from roofdsl.predict.variants import in_its_order


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
    found, moved = _bound(case)
    if options.code is not None:
        found = _with_expected(case, found, moved, options.code)
    return with_energy(found, machine) if options.energy else found


def _with_expected(case: Case, found: Prediction, crossed: Crossing, code: Code) -> Prediction:
    """The prediction with its expected time, or with the reason why there is none. crossed: the bytes of the bound."""
    kernel, machine, options = case.written, case.machine, case.options
    if machine.multiprocessor is not None:
        return with_launches(case, found, code, partial(_bound_of_launch, case, crossed))
    compiled, moved, nests = options.accesses == "compiled", partial(_moving, case, found), partial(_nests, case, found)
    if is_timed_by_core(machine, options):
        by_one = partial(predict, kernel, case.values, options=for_one_core(options))
        return timed_on_all_cores(found, kernel, case.values, machine, as_compiled=compiled, predicted=by_one)
    return with_expected(
        found, kernel, case.values, machine, code,
        as_compiled=compiled, moving=moved, nests=nests, inner=partial(inner_loops, case, _levels_of),
    )  # fmt: skip


def for_one_core(options: Options) -> Options:
    """The options of a prediction of which only the expected time is used."""
    return replace(options, energy=False, conflicts=False)


def is_timed_by_core(machine: Machine, options: Options) -> bool:
    """Whether the expected time of all cores is made from that of one core, as for some of them (`on_cores`): the
    machine states what one core gets, and no ceiling of the whole machine is given.
    """
    return states_one_core(machine) and not options.ceilings and without_in_core(machine) == ""


def composed_again(  # noqa: PLR0917
    found: Prediction,
    kernel: Kernel,
    parameters: Mapping[str, int],
    machine: Machine,
    options: Options,
    mixed: Callable[[Prediction, Prediction], Prediction],
) -> Prediction:
    """A prediction `mixed` of those with cold and with warm caches, with the expected time for its levels.

    found: with the expected time for cold caches. options: for warm caches. Each loop nest is mixed in the same way.
    Raises as `predict` does.
    """
    assert found.expected is not None and found.expected.core is not None
    warm, nests = _checked(kernel, parameters, machine, options), list[tuple[Nest, InCore]]()
    cold = _checked(kernel, parameters, machine, replace(options, warm=False))
    with suppress(CommandError):  # if counting takes too long, the loops count as one
        own = []
        for time, one, other in zip(found.expected.nests, _cases_of_nests(cold), _cases_of_nests(warm), strict=False):
            assert time.expected.core is not None
            bound = replace(mixed(_counted(one, 0)[0], _counted(other, 0)[0]), footprint_bytes=found.footprint_bytes)
            inner = inner_loops(other, _levels_of)
            own.append((Nest(bound, time.kernel, _moving(other, bound), inner), time.expected.core))
        nests = own
    return composed(
        found, found.expected.core, machine,
        as_compiled=options.accesses == "compiled", moving=_moving(warm, found), nests=nests,
        inner=inner_loops(warm, _levels_of),
        timed=partial(inner_cores, found, warm.values, machine, options.code or Code()),
    )  # fmt: skip


def _checked(kernel: Kernel, parameters: Mapping[str, int], machine: Machine, options: Options) -> Case:
    """The case to predict. Raises InputError or CommandError if the kernel, a parameter or an option is not allowed."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.predict.data_pass import data_traffic

    check_available(kernel, sets=options.sets, compiled=options.accesses == "compiled")
    require_legal(kernel)
    check_unit(options.unit or kernel.unit, kernel)
    values, own = numbers(kernel, parameters), in_its_order(kernel, options.code)
    return Case(kernel, own, values, machine, options, data_traffic(own, values, machine, warm=options.warm), own)


def _bound(case: Case) -> tuple[Prediction, Crossing]:
    """The bound on the time, with what it rests on, and the bytes that it is made of."""
    from roofdsl.counts.counters import counters_at, has_counters
    from roofdsl.counts.traffic_at import footprint_at

    kernel, values, machine, options = case.kernel, case.values, case.machine, case.options
    resident, latency = _occupancy(machine, options)
    launches = launches_of_kernel(kernel, values, machine)
    prediction, moved = _counted(case, launches.count, latency)
    counters = counters_at(kernel, values) if has_counters(kernel.body) else {}
    footprint = footprint_at(kernel, values) if case.counted is None else case.counted.footprint_bytes
    warnings = prediction.warnings + moved.warnings + _warnings(kernel, machine, options, footprint, latency)
    if launches.count >= MANY_LAUNCHES and prediction.bounds[0] == "launch":
        warnings += (why_so_many(kernel, values, launches.count),)
    if launches.why == BY_DATA:
        warnings += (BY_DATA,)
    assumed = prediction.assumptions + moved.assumptions + assumed_state(prediction, machine, warm=options.warm)
    found = replace(
        prediction,
        executions=None if launches.count == 1 else 1,
        traffic=moved.boundary.convention,
        cache_bytes=moved.boundary.cache_bytes,
        line_bytes=moved.boundary.line_bytes,
        footprint_bytes=footprint,
        counters=tuple(counters.items()),
        occupancy=resident,
        assumptions=(*dict.fromkeys(assumed + moved.in_sets), *values_given(kernel)),
        warnings=warnings,
    )
    return found, moved


def _bound_of_launch(case: Case, crossed: Crossing, place: int, kernel: Kernel) -> Prediction:
    """The terms of the bound of one of several launches, which executes `kernel`."""
    own, latency = replace(case, kernel=kernel), _occupancy(case.machine, case.options)[1]
    moved = crossed.launches[place] if crossed.launches else None
    return _counted(own, 1, latency)[0] if moved is None else _timed(own, _work(own), moved, 1, latency)


def _counted(case: Case, launches: int, latency: tuple[LatencyCeiling, ...] = ()) -> tuple[Prediction, Crossing]:
    """The terms of the bound for so many launches, and the bytes that they are made of."""

    kernel, machine, options = case.kernel, case.machine, case.options
    work = _work(case)  # raises for a type without a rate before bytes are counted
    moved = crossing(case, kernel, machine, options, memory_boundary(kernel, machine, options.traffic))
    return _timed(case, work, moved, launches, latency), moved


def _timed(case: Case, work: WorkAt, moved: Crossing, launches: int, latency: tuple[LatencyCeiling, ...]) -> Prediction:
    """The terms of the bound for this work and these bytes."""
    kernel, options = case.kernel, case.options
    unit, costs = _prices(case)
    return predict_counts(
        kernel.name,
        {**dict(kernel.constants), **case.values},
        work,
        moved.memory,
        case.machine,
        unit=unit,
        costs=costs,
        ceilings=options.ceilings,
        launches=launches,
        nearer=moved.nearer,
        beyond=moved.beyond,
        latency=latency,
    )


def _work(case: Case) -> WorkAt:
    """The operations. Raises CommandError for a type without a rate."""
    from roofdsl.counts.work_at import work_at

    work, (unit, costs) = work_at(case.kernel, case.values), _prices(case)
    parts_of(work, case.machine, unit=unit, costs=costs)
    return work


def _prices(case: Case) -> tuple[str | None, dict[str, Fraction]]:
    """The unit that executes the operations, and the costs that the kernel states."""
    return case.options.unit or case.kernel.unit, {name: Fraction(value) for name, value in case.kernel.costs}


def _nests(case: Case, found: Prediction) -> Iterator[Nest]:
    """The loop nests of a launch, if there are several.

    found: the bound of the whole launch. Raises CommandError if the bytes of a nest cannot be counted.
    """
    for nest in _cases_of_nests(case):
        bound = replace(_counted(nest, 0)[0], footprint_bytes=found.footprint_bytes)
        yield Nest(bound, nest.written, _moving(nest, bound), inner_loops(nest, _levels_of))


def _levels_of(case: Case) -> Sequence[LevelTime]:
    return _counted(case, 0)[0].levels


def _cases_of_nests(case: Case) -> list[Case]:
    """The loop nests of a launch in the order of execution, without those that have nothing to do. There are none if
    there are not several, if data choose the accesses, or if the code makes them in an order of its own.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.counts.work_at import work_at

    kernel, values = apply(case.kernel), case.values
    if is_indirect(kernel) or kernel.data is not None:
        return []
    parts, compiled = successive_nests(kernel.body), nests_alone(case.written)
    if len(parts) < 2 or len(parts) != len(compiled):
        return []
    nests, after = [], kernel.body if case.options.warm else ()
    for nodes, code in zip(parts, compiled, strict=True):
        own = replace(kernel, body=nodes)
        if access_count(sized(own, values)) or work_at(own, values).total:
            nests.append(replace(case, written=code, kernel=own, after=after))
        after = (*after, *nodes)
    return [*nests[:-1], replace(nests[-1], is_last=True)] if len(nests) > 1 else []


def _moving(case: Case, found: Prediction) -> Moving:
    """What the hardware moves, by the machine's own policy, whatever convention the kernel states."""
    from roofdsl.counts.traffic_at import footprint_at
    from roofdsl.predict.data_pass import scattered_of

    kernel, values, machine, options = case.kernel, case.values, case.machine, case.options
    more, levels, own = list[Moved](), found.levels, kernel
    if options.traffic is None and kernel.traffic is not None and options.levels == "all" and not options.sets:
        own = replace(kernel, traffic=None)
        rates = {level.name: level.bandwidth_bytes_per_s for level in found.levels}  # under ceilings
        with suppress(CommandError):  # if counting takes too long, the bound's count is used
            moved = crossing(case, own, machine, options, memory_boundary(own, machine))
            every = (*moved.nearer, moved.memory)
            levels = tuple(level.at_bandwidth(rates[level.name]) for level in every if level.name in rates)
            more.append(Moved(WRITTEN[kernel.traffic], "", levels))

    def memory_behind(other: Machine) -> LevelTime:
        boundary = memory_boundary(own, other, options.traffic)
        memory = crossing(case, own, other, replace(options, levels="memory"), boundary).memory
        return memory.at_bandwidth(levels[-1].bandwidth_bytes_per_s)

    if options.data is None and not options.sets and machine.multiprocessor is None:
        with suppress(CommandError):
            past, footprint = has_streams(case.launched), found.footprint_bytes or 0
            footprint = footprint_at(within_caches(case.launched), values) if past else footprint
            if lost := lost_by_sharing(levels, footprint, machine, memory_behind):
                more.append(lost)
    levels = more[-1].levels if more else levels
    if is_indirect(kernel):
        return Moving(tuple(more), scattered=scattered_of(case.counted, kernel, machine, levels))
    streams = streams_of(own, values, machine)
    walks = walks_of(kernel, values, machine, levels, warm=options.warm, after=case.after or ())
    convention = memory_boundary(own, machine, options.traffic).convention
    gathered = gathered_of(kernel, values, machine, levels, convention)
    unchanged = options.warm and changes_nothing_again(case.launched)
    return Moving(tuple(more), walks, gathered=gathered, unchanged=unchanged, streams=streams)


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
