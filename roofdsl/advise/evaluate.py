"""The predicted time of a kernel, as written or changed (exact if quick, else an upper bound), and its legality."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from roofdsl.advise.traffic_upper_bound import NoBound, traffic_at_most
from roofdsl.counts.sector_traffic import Transfers
from roofdsl.counts.streamed import streamed_at
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import ordinary, within_caches
from roofdsl.machine.model import BandwidthCeiling, Machine, Memory
from roofdsl.predict.access_orders import Orders, orders_of
from roofdsl.predict.boundary import boundary_behind
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import KernelLaunches, launches_of_kernel
from roofdsl.predict.level_traffic import is_first_level, nearer_levels
from roofdsl.predict.levels_in_turn import in_turn
from roofdsl.predict.loops_as_launched import AsLaunched
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.predict.time_model import capped_bandwidth, larger_direction

LEGALITY_OPERATIONS = 20_000_000
"""The budget of integer-set operations (a second or so) for the dependences of one change."""


class Case(Record):
    """The setting of a prediction: parameter sizes, machine and options."""

    values: Mapping[str, int]
    machine: Machine
    options: Options


class Estimate(Record):
    """A prediction. `at_most`: the levels whose bytes are only an upper bound.

    The time is exact unless the largest term is one of those levels, or that of the levels that take turns, whose sum
    then is an upper bound, too.
    """

    prediction: Prediction
    at_most: tuple[str, ...] = ()

    @property
    def time_s(self) -> Fraction:
        return self.prediction.bound_s

    @property
    def sure(self) -> tuple[str, Fraction]:
        """The largest of the exact terms, with its name: a lower bound on the time."""
        together = {self.prediction.in_turn_term[0]} if self.at_most and len(self.prediction.in_turn) > 1 else set()
        unsure = together.union(self.at_most)
        return max(((n, t) for n, t in self.prediction.terms if n not in unsure), key=lambda term: term[1])

    @property
    def exact(self) -> bool:
        """Whether the time rests on exact numbers alone."""
        return self.sure[1] == self.time_s


class Illegal(Exception):
    """Raised for a change that dependences forbid, or whose legality is undecided; the message says why."""


def require_legal_change(kernel: Kernel) -> None:
    """Raise Illegal unless the kernel's directives, parallel loops and stores past the caches are proven legal for all
    sizes.

    The reason contains no line numbers, since nobody has seen the text of the changed kernel.
    """
    from roofdsl.checks.legality import check_directives, check_parallel
    from roofdsl.checks.streams import check_streams
    from roofdsl.sets.library import LibraryFailure, TooHard, limited

    try:
        with limited(f"the dependences of kernel {kernel.name}", LEGALITY_OPERATIONS):
            found = check_directives(kernel, lines=False) + check_parallel(kernel, lines=False)
            found += check_streams(kernel)
    except InputError as error:
        raise Illegal(error.diagnostics[0].message) from None
    except (TooHard, LibraryFailure, RecursionError):
        raise Illegal("it is not known to be legal: the dependences take too long to check") from None
    if found:
        raise Illegal(found[0].message)


def estimate_exactly(kernel: Kernel, case: Case) -> Estimate:
    """Estimate by `predict`; levels that it leaves out get their upper bound. Raises what `predict` raises."""
    found = predict(kernel, case.values, case.machine, case.options)
    try:
        return completed(found, kernel, case)
    except NoBound:
        return Estimate(found)  # the prediction itself warns about omitted levels


def completed(found: Prediction, kernel: Kernel, case: Case) -> Estimate:
    """A prediction; levels behind a cache that it leaves out get their upper bound. Raises NoBound."""
    shown = {level.name for level in found.levels}
    missing = [name for name in _behind_caches(case) if name not in shown]
    if not missing:
        return Estimate(found)
    most = _levels_at_most(kernel, case)
    more = _no_more_than(found.levels[0], [most[name] for name in missing], kernel, case)
    levels = (*more, *found.levels)
    turns = _turns(levels, kernel, case)
    return Estimate(
        replace(
            found,
            levels=levels,
            bound_s=max(found.bound_s, *(level.time_s for level in more), _sum(turns)),
            no_overlap_s=found.no_overlap_s + sum(level.time_s for level in more),
            in_turn=turns,
        ),
        tuple(missing),
    )


def estimate_at_most(kernel: Kernel, case: Case) -> Estimate | None:
    """An estimate within milliseconds: work and register traffic are exact, traffic behind a cache is an upper bound.

    None if the bound does not apply, or if the accesses themselves take too long to count. Raises CommandError for a
    type or unit that the machine lacks.
    """
    machine, options = case.machine, case.options
    kernel = ordinary(kernel) if machine.multiprocessor is not None else kernel
    if not machine.caches or options.warm or options.data is not None:
        return None
    try:
        behind = _levels_at_most(kernel, case)
    except NoBound:
        return None
    launches = launches_of_kernel(kernel, case.values, machine)
    nearer = _first_level(launches, case)
    if nearer is None:
        return None
    if nearer:
        behind = {level.name: level for level in _no_more_than(nearer[0], list(behind.values()), kernel, case)}
    memory = behind.pop(machine.main_memory.name)
    every = options.levels == "all"
    found = predict_counts(
        kernel.name,
        dict(case.values),
        work_at(kernel, case.values),
        memory,
        machine,
        unit=options.unit or kernel.unit,
        costs={name: Fraction(value) for name, value in kernel.costs},
        ceilings=options.ceilings,
        launches=launches.count,
        nearer=(*nearer, *behind.values()) if every else (),
    )
    turns = _turns(found.levels, kernel, case)
    found = replace(found, in_turn=turns, bound_s=max(found.bound_s, _sum(turns)))
    return Estimate(found, (*behind, memory.name) if every else (memory.name,))


def _no_more_than(first: LevelTime, levels: Sequence[LevelTime], kernel: Kernel, case: Case) -> tuple[LevelTime, ...]:
    """Upper bounds, none above what the L1 of a GPU serves, `first`: all that moves behind it was missed there.

    Warps access sectors, which are what the levels behind move. Cores access elements and move whole lines. If stores
    load what they miss, each sector that L1 takes in may also be loaded.
    """
    traffic, caches = case.options.traffic, range(len(case.machine.caches))
    allocates = any(boundary_behind(kernel, case.machine, k, traffic).convention == "write_allocate" for k in caches)
    served = (first.loads_bytes or 0) + ((first.stores_bytes or 0) if allocates else 0)

    def least(level: LevelTime) -> LevelTime:
        if first.nearer != "registers" or first.moved_bytes is None or first.moved_bytes != level.moved_bytes:
            return level
        if level.loads_bytes is None or level.stores_bytes is None:
            return replace(level, bytes=min(level.bytes, first.bytes))
        loads = min(level.loads_bytes, served)
        stores = min(level.stores_bytes, first.stores_bytes or 0)
        both_ways = larger_direction(level.duplex_bytes is not None, loads, stores)
        return replace(level, bytes=loads + stores, loads_bytes=loads, stores_bytes=stores, duplex_bytes=both_ways)

    return tuple(map(least, levels)) if case.machine.multiprocessor is not None else tuple(levels)


def _turns(levels: Sequence[LevelTime], kernel: Kernel, case: Case) -> tuple[tuple[str, Fraction], ...]:
    """The levels that take turns, with upper bounds on their times, if the bytes of some are upper bounds."""
    if not any(cache.takes_turns for cache in case.machine.caches):
        return ()
    stays = any(a.intent == "temp" for a in kernel.arrays)  # such data need not reach the memory
    certain = 0 if stays else footprint_at(within_caches(kernel), case.values)  # what bypasses the caches passes none
    return in_turn(levels, case.machine, at_least=certain)


def _sum(turns: Iterable[tuple[str, Fraction]]) -> Fraction:
    return sum((time for _, time in turns), Fraction(0))


def _first_level(launches: KernelLaunches, case: Case) -> tuple[LevelTime, ...] | None:
    """The exact traffic of all launches between the registers and the first cache, if that is an L1; None if it takes
    too long to count.
    """
    if not is_first_level(case.machine.caches[0]):
        return ()
    first = replace(case.machine, caches=case.machine.caches[:1])
    total: LevelTime | None = None
    for launch in launches.each:
        if launch.kernel is None:
            continue
        orders = Orders(launch.kernel, how=launch.threads)
        found = nearer_levels(orders, case.values, first, case.options.traffic, accesses=case.options.accesses).levels
        if not found:
            return None
        own = found[0] * launch.times
        total = own if total is None else total + own
    return () if total is None else (total,)


def levels_cost(kernel: Kernel, case: Case) -> tuple[Fraction, Fraction] | None:
    """(the longest, the sum) of upper bounds on the times of all levels behind a cache; None if no bound is found."""
    try:
        times = [level.time_s for level in _levels_at_most(kernel, case).values()]
    except NoBound:
        return None
    return max(times, default=Fraction(0)), sum(times, Fraction(0))


def _behind_caches(case: Case) -> list[str]:
    """The levels behind a cache that a prediction includes, main memory among them."""
    machine = case.machine
    caches = [c.name for c in machine.caches[1:]] if case.options.levels == "all" else []
    return [*caches, machine.main_memory.name]


def _levels_at_most(kernel: Kernel, case: Case) -> dict[str, LevelTime]:
    """Every level behind a cache, with an upper bound on the traffic of all launches across its boundary.

    Raises NoBound.
    """
    total: dict[str, LevelTime] = {}
    machine, values = case.machine, numbers(kernel, case.values)
    past = 0 if machine.multiprocessor is not None else streamed_at(sized(kernel, values))
    # a GPU makes such stores as usual
    launches = launches_of_kernel(within_caches(kernel) if past else ordinary(kernel), values, machine)
    if launches.sampled:
        raise NoBound(launches.sampled)
    for launch in launches.each:
        if launch.kernel is None:
            continue
        for name, level in _launch_at_most(launch.kernel, launch.how, case).items():
            own = level * launch.times
            total[name] = total[name] + own if name in total else own
    if past:
        main = machine.main_memory
        total[main.name] = _with_streamed(total[main.name], past, main)
    return total


def _with_streamed(memory: LevelTime, streamed: int, at: Memory) -> LevelTime:
    """The level of the memory with the bytes of stores that bypass the caches, which move each time."""
    stores, rate = memory.stores_bytes, at.streamed_bytes_per_s
    stores = None if stores is None else stores + streamed
    slower = memory.bandwidth_bytes_per_s / at.bandwidth_bytes_per_s  # under a ceiling
    return replace(
        memory,
        bytes=memory.bytes + streamed,
        stores_bytes=stores,
        duplex_bytes=larger_direction(at.duplex, memory.loads_bytes, stores),
        streamed_bytes=streamed,
        streamed_bytes_per_s=None if rate is None else rate * slower,
    )


def _launch_at_most(kernel: Kernel, how: AsLaunched | str, case: Case) -> dict[str, LevelTime]:
    """Like `_levels_at_most`, for one launch."""
    machine, traffic = case.machine, case.options.traffic
    values = numbers(kernel, case.values)
    orders = orders_of(kernel, values, machine, case.options.block, how)
    caps = [c for c in machine.ceilings if c.name in case.options.ceilings and isinstance(c, BandwidthCeiling)]
    found: dict[str, LevelTime] = {}
    for place, cache in enumerate(machine.caches):
        last = place == len(machine.caches) - 1
        level = machine.main_memory if last else machine.caches[place + 1]
        ordered, at = orders.behind(cache, boundary_behind(kernel, machine, place, traffic))
        where = Transfers(at.cache_bytes, at.line_bytes, at.moved_bytes)
        moved = traffic_at_most(ordered, values, where, at.convention)
        found[level.name] = LevelTime(
            level.name,
            moved.bytes,
            capped_bandwidth(level.name, level.bandwidth_bytes_per_s, caps),
            kind="memory" if last else "cache",
            nearer=cache.name,
            loads_bytes=moved.loads_bytes,
            stores_bytes=moved.stores_bytes,
            moved_bytes=at.moved_bytes,
            duplex_bytes=larger_direction(level.duplex, moved.loads_bytes, moved.stores_bytes),
        )
    return found
