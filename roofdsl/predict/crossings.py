"""The bytes that one launch moves across every boundary of a machine's hierarchy, with what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel, Node
from roofdsl.loops.sized import sized
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.predict.access_orders import Orders, in_loop_order, orders_of
from roofdsl.predict.associative import WithSets, conflict_warnings, refuse_sets, with_sets
from roofdsl.predict.boundary import Boundary
from roofdsl.predict.kernel_launches import SEVERAL, KernelLaunches, launches_of_kernel
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.level_traffic import (
    Hierarchy,
    allocated_bytes,
    crossing_at,
    link_level_time,
    memory_level_time,
    nearer_levels,
    with_streamed,
)
from roofdsl.predict.options import Options
from roofdsl.predict.told_apart import told_apart

if TYPE_CHECKING:
    from roofdsl.counts.data_traffic import DataTraffic
    from roofdsl.counts.traffic_at import TrafficAt


MOVED_ONCE = "bytes behind {}: each sector moves once, as counting by blocks and waves takes too long"


class Case(Record):
    """What is predicted. `written` is the kernel whose code is made; `kernel` has the accesses of this code in their
    order. counted: the traffic of a kernel with index arrays whose data are given.

    after: if the kernel is one loop nest of a launch, the statements that are executed before it and leave their data
    in the caches (with warm caches, also those of a whole launch); None for a whole launch. is_last: whether it is the
    last nest. launched: the kernel of the whole launch.
    """

    written: Kernel
    kernel: Kernel
    values: Mapping[str, int]
    machine: Machine
    options: Options
    counted: DataTraffic | None
    launched: Kernel
    after: tuple[Node, ...] | None = None
    is_last: bool = False


class Crossing(Record):
    """The levels of a hierarchy: those nearer than the memory, the memory, and the further memory that holds the data,
    if there is one.

    in_sets: the assumptions about sets or about the number of launches, which are listed last. launches: the same of
    each launch, where there are several that were counted one by one; None for those that move nothing.
    """

    nearer: tuple[LevelTime, ...]
    memory: LevelTime
    beyond: tuple[LevelTime, ...]
    boundary: Boundary
    assumptions: tuple[str, ...]
    in_sets: tuple[str, ...]
    warnings: tuple[str, ...]
    launches: tuple[Crossing | None, ...] = ()


def crossing(case: Case, kernel: Kernel, machine: Machine, options: Options, boundary: Boundary) -> Crossing:
    """Count the bytes across every boundary, of all launches that the kernel becomes.

    Each of several launches finds empty caches, unless the last cache holds the data of all of them. kernel, machine,
    options: those of the case, or what stands for them.
    """
    if case.after is not None:
        return _crossing_after(case, kernel, machine, options, boundary)
    values = case.values
    launches = launches_of_kernel(kernel, values, machine)
    beyond: tuple[LevelTime, ...] = ()
    if options.data is not None:
        far = link_level_time(kernel, values, machine, options.data, boundary.convention, warm=options.warm)
        beyond = (far,)
    first = launches.each[0]
    is_whole = first.kernel is kernel
    if options.sets or launches.why or is_whole:
        orders = orders_of(kernel, values, machine, options.block, first.how if is_whole else SEVERAL)
        orders = replace(orders, counted=case.counted)
        return replace(_one_crossing(orders, values, machine, options, boundary), beyond=beyond)
    parts, every = [], list[Crossing | None]()
    alone = options if launches.count == 1 else replace(options, warm=False)
    for launch in launches.each:
        every.append(None)
        if launch.kernel is not None:
            own = orders_of(launch.kernel, values, machine, options.block, launch.how)
            every[-1] = moved = _one_crossing(own, values, machine, alone, boundary)
            parts.append((launch.function, moved, launch.times))
    whole, state = _added(parts), "each with cold caches"
    moved_by_all = _held_throughout(launches, kernel, values, boundary, warm=options.warm)
    if moved_by_all is not None:
        memory = memory_level_time(machine, moved_by_all, boundary)
        every = [None if one is None else _with_share(one, memory, whole.memory) for one in every]
        whole, state = replace(whole, memory=memory), f"whose data all fit in {memory.nearer}"
    note = f"{launches.count:,} launches of the generated code, {state}"
    notes = (note, *filter(None, [launches.sampled])) if launches.count > 1 else ()
    return replace(whole, beyond=beyond, in_sets=notes, launches=tuple(every))


def _held_throughout(
    launches: KernelLaunches, kernel: Kernel, values: Mapping[str, int], boundary: Boundary, *, warm: bool
) -> TrafficAt | None:
    """What the memory exchanges with a last cache that holds the data of several launches of a kernel: each sector
    once, and nothing if it is warm. None if the cache does not hold them, if threads have copies, or if it cannot be
    found at once.
    """
    from roofdsl.counts.streamed import streamed_at
    from roofdsl.counts.traffic_at import touched_bytes_at_once

    at = sized(kernel, values)
    if launches.count < 2 or boundary.cache_bytes is None or is_indirect(kernel) or streamed_at(at):
        return None
    declared = {(array.name, len(array.dims)) for array in kernel.arrays}
    used = (array for launch in launches.each if launch.kernel is not None for array in launch.kernel.arrays)
    if any((array.name, len(array.dims)) not in declared for array in used):
        return None  # a copy for each thread has a dimension more
    touched = touched_bytes_at_once(at, boundary.line_bytes)
    if touched is None or touched > boundary.cache_bytes:
        return None
    return crossing_at(Orders(kernel), values, boundary, boundary.convention, warm=warm)


def _with_share(launch: Crossing, held: LevelTime, apart: LevelTime) -> Crossing:
    """One of several launches, with a share of what the memory exchanges for all of them, which is in proportion to
    what the launch would move on its own.
    """
    if not apart.bytes:
        return launch
    return replace(launch, memory=held.share(Fraction(launch.memory.bytes, apart.bytes)))


def _crossing_after(case: Case, kernel: Kernel, machine: Machine, options: Options, boundary: Boundary) -> Crossing:
    """What `kernel` moves if the statements `case.after` were executed before it: the bytes of both minus those of the
    latter, from empty caches. The last nest moves what is left of the launch's bytes, so the nests add up to these.

    A line that stays in a cache counts as stored by the nest that changes it first. Raises CommandError if the same
    levels cannot be counted for all.
    """
    after, launched, cold = case.after or (), case.launched, replace(options, warm=False)

    def counted(body: tuple[Node, ...]) -> Crossing:
        return crossing(replace(case, after=None), replace(kernel, body=body), machine, cold, boundary)

    if case.is_last:
        # the same question as for the launch, whose answer is remembered
        own = replace(kernel, body=launched.body, directives=launched.directives)
        both = crossing(replace(case, after=None), own, machine, options, boundary)
        if options.warm:
            again = counted(apply(launched).body)
            links = tuple(a + b for a, b in zip(both.beyond, again.beyond, strict=True))  # their times, too
            both = replace(_changed(both, again, LevelTime.bytes_of_both), beyond=links)
    else:
        both = counted((*after, *kernel.body))
    return _changed(both, counted(after), LevelTime.beyond) if after else both


def _changed(one: Crossing, other: Crossing, change: Callable[[LevelTime, LevelTime], LevelTime]) -> Crossing:
    """Each level of `one` changed by the same level of `other`. Raises CommandError if they have different levels."""
    if [level.name for level in one.nearer] != [level.name for level in other.nearer]:
        raise CommandError("not all levels could be counted")
    nearer = tuple(change(a, b) for a, b in zip(one.nearer, other.nearer, strict=True))
    beyond = tuple(change(a, b) for a, b in zip(one.beyond, other.beyond, strict=True))
    return replace(one, nearer=nearer, memory=change(one.memory, other.memory), beyond=beyond)


def _added(parts: Sequence[tuple[str, Crossing, int]]) -> Crossing:
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
    return Crossing(nearer, memory, (), parts[0][1].boundary, assumed, (), warnings)


def _one_crossing(
    orders: Orders, values: Mapping[str, int], machine: Machine, options: Options, boundary: Boundary
) -> Crossing:
    """Count the bytes across every boundary, with caches that are cold at the start of the launch, or warm: then they
    are those of two launches in a row minus those of one.
    """
    from roofdsl.counts.streamed import streamed_at

    kernel = orders.kernel
    moved, boundary, orders = _at_memory(orders, values, machine, boundary, warm=options.warm)
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
    return Crossing(levels[:-1], levels[-1], (), boundary, assumed, sets.assumptions, warnings)


def _at_memory(
    orders: Orders, values: Mapping[str, int], machine: Machine, boundary: Boundary, *, warm: bool
) -> tuple[TrafficAt, Boundary, Orders]:
    """The traffic across the memory's boundary, that boundary, and the orders in which all boundaries are counted.

    If counting by thread blocks takes too long, each sector moves once, also in a warm launch. The order of the loops
    would not do: a launch moves far less, so the time would be no bound. If the kernel has no blocks, all levels are
    counted in that order.
    """
    from roofdsl.counts.traffic_at import OutOfReach
    from roofdsl.predict.thread_block_traffic import launch_transfers

    cache = machine.last_cache
    if orders.launch is not None and cache is not None:
        try:
            moved, at = launch_transfers(orders, cache, values, boundary, warm=warm)
        except OutOfReach:
            moved = crossing_at(orders, values, replace(boundary, cache_bytes=None), boundary.convention, warm=False)
            notes = (*boundary.assumptions, MOVED_ONCE.format(cache.name))
            return moved, replace(boundary, assumptions=notes), orders
        except CommandError as error:
            orders = in_loop_order(orders.kernel, error.message, orders.how)
        else:
            return moved, at, orders
    return crossing_at(orders, values, boundary, boundary.convention, warm=warm), boundary, orders
