"""The exact bytes and the time of every level of a machine's hierarchy (docs/model.md, "Every level").

The bandwidth of a cache is the rate at which it delivers to the nearer level. So the first cache's bandwidth limits the
accesses themselves, the second one's limits the misses of the first, and the memory's those of the last cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.streams import arrays_past_caches, has_streams, ordinary, within_caches
from roofdsl.machine.model import Cache, Machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes
from roofdsl.predict.access_orders import Orders
from roofdsl.predict.boundary import Boundary, boundary_behind
from roofdsl.predict.links import stream_rate
from roofdsl.predict.prediction import LevelTime
from roofdsl.predict.thread_block_traffic import NEARER_ACCESSES
from roofdsl.predict.time_model import larger_direction

if TYPE_CHECKING:
    from roofdsl.counts.traffic_at import TrafficAt
    from roofdsl.predict.loops_as_launched import AsLaunched


class Hierarchy(Record):
    """The levels of one launch, nearest first, with assumptions and warnings in words."""

    levels: tuple[LevelTime, ...]
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


NO_L1 = "{0}: the machine defines no L1, so traffic between {0} and the registers is not modeled"


def nearer_levels(
    orders: Orders,
    values: Mapping[str, int],
    machine: Machine,
    traffic: Traffic | None = None,
    warm: bool = False,
    *,
    accesses: Literal["written", "compiled"] = "written",
) -> Hierarchy:
    """The caches of `machine` as levels: the bytes that each delivers to the nearer level in one run of the kernel of
    `orders`.

    warm: right after another launch of it. accesses: whether the first cache serves the accesses as written, or those
    of code that keeps values in registers that inner loops do not change (`counts.registers`). A level whose exact
    traffic cannot be found, mostly because that takes too long, is left out with a warning. Raises CommandError only if
    the lines whose first access is a store cannot be counted.
    """
    from roofdsl.counts.traffic_at import OutOfReach
    from roofdsl.predict.thread_block_traffic import launch_transfers

    launched = orders.kernel
    orders = replace(orders, kernel=within_caches(launched))
    kernel = orders.kernel
    levels: list[LevelTime] = []
    notes: list[str] = []
    warnings: list[str] = []
    for place, cache in enumerate(machine.caches):
        if place == 0:
            if not is_first_level(cache):
                notes.append(NO_L1.format(cache.name))
                continue
            try:
                loads, stores, unit, note = _from_registers(orders.how, launched, values, machine, accesses)
            except CommandError as error:
                warnings.append(f"{cache.name} is left out: {error.message}")
                continue
            levels.append(replace(_cache_level_time(cache, "registers", loads, stores, None), moved_bytes=unit))
            notes += note
            continue
        above = machine.caches[place - 1]
        at = boundary_behind(kernel, machine, place - 1, traffic)
        try:
            if orders.launch is not None:
                moved, at = launch_transfers(orders, above, values, at, warm=warm)
            else:
                moved = crossing_at(orders, values, at, at.convention, warm=warm, longest=NEARER_ACCESSES)
        except OutOfReach:
            warnings.append(f"{cache.name} is left out: its exact traffic at these sizes takes too long to compute")
            continue
        except CommandError as error:
            warnings.append(f"{cache.name} is left out: {error.message}")
            continue
        own = _cache_level_time(cache, above.name, moved.loads_bytes, moved.stores_bytes, at, total=moved.bytes)
        if at.allocated is not None and orders.launch is None:
            own = replace(own, allocated_bytes=allocated_bytes(orders, values, at, moved, warm=warm))
        if cache.written_loads_bytes_per_s is not None and orders.launch is None:
            own = replace(own, begun_bytes=begun_bytes(orders, values, at, moved, warm=warm))
        levels.append(own)
        notes += at.assumptions
    return Hierarchy(tuple(levels), tuple(dict.fromkeys(notes)), tuple(warnings))


def crossing_at(
    orders: Orders,
    values: Mapping[str, int],
    at: Boundary,
    convention: Traffic,
    *,
    warm: bool,
    longest: int | None = None,
) -> TrafficAt:
    """The exact traffic behind a cache in the order of the loops, from the pass that counted it, if there was one.

    longest: executions with more accesses are not simulated. Raises as `transfers_at`.
    """
    from roofdsl.counts.sector_traffic import Transfers, transfers_at, warm_transfers_at
    from roofdsl.counts.traffic_at import LONGEST_SIMULATION

    where = Transfers(at.cache_bytes, at.line_bytes, at.moved_bytes)
    known = None if orders.counted is None else orders.counted.transfers(where, convention, warm=warm)
    if known is not None:
        return known
    find = warm_transfers_at if warm else transfers_at
    return find(orders.kernel, values, where, convention, LONGEST_SIMULATION if longest is None else longest)


def allocated_bytes(orders: Orders, values: Mapping[str, int], at: Boundary, moved: TrafficAt, *, warm: bool) -> int:
    """The bytes that ordinary stores load before they write, in addition to `moved`.

    It is the stated share of all lines whose first access is a store, in whole bytes; 0 if the machine states no share.
    """
    if at.allocated is None:
        return 0
    return round(at.allocated * _begun(orders, values, at, moved, warm=warm))


def begun_bytes(orders: Orders, values: Mapping[str, int], at: Boundary, moved: TrafficAt, *, warm: bool) -> int:
    """The bytes of lines whose first access is a store, if `moved` leaves out that they are loaded first.

    They are 0 in other conventions than `load_store`, and if the machine states a share of them (`allocated_bytes`).
    There are none if all statements update what they store to, as in `y[i] += ...`: each loads its element first.
    """
    from roofdsl.loops.accesses import statements

    if at.convention != "load_store" or at.allocated is not None:
        return 0
    if all(_updates(placed.statement) for placed in statements(orders.kernel.body)):
        return 0
    return _begun(orders, values, at, moved, warm=warm)


def _updates(statement: object) -> bool:
    """Whether a statement loads every element that it stores to."""
    from roofdsl.loops.accesses import accesses

    if not isinstance(statement, (Assign, Let)):
        return True
    every = accesses(statement)
    loaded = [a.element for a in every if not a.is_write]
    return all(a.element in loaded for a in every if a.is_write)


def _begun(orders: Orders, values: Mapping[str, int], at: Boundary, moved: TrafficAt, *, warm: bool) -> int:
    """The bytes of lines whose first access is a store and that `moved` does not count as loaded."""
    if moved.loads_bytes is None:
        return 0
    every = crossing_at(orders, values, at, "write_allocate", warm=warm)
    return 0 if every.loads_bytes is None else every.loads_bytes - moved.loads_bytes


def _from_registers(
    how: AsLaunched | None,
    launched: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    accesses: Literal["written", "compiled"],
) -> tuple[int, int, int | None, tuple[str, ...]]:
    """(loaded bytes, stored bytes, bytes moved at a time, assumptions) of the accesses, counted by warps if the machine
    has them. how: its launch, if it is known. launched: the kernel with its stores past the caches. The loops of a nest
    that only adds up scalars may be spread in any way, and published codes choose the one with contiguous accesses.
    """
    from roofdsl.counts.registers import compiled_bytes_at
    from roofdsl.counts.sector_traffic import register_bytes_at
    from roofdsl.counts.warps import warp_bytes_at

    kernel = within_caches(launched)
    own, sector = machine.multiprocessor, machine.caches[0].sector_bytes or machine.caches[0].line_bytes
    if accesses == "compiled":
        if own is not None:
            raise CommandError("--accesses compiled applies to single-threaded code, not to warps")
        note = f"{machine.caches[0].name}: accesses as compiled; values that inner loops reuse stay in registers"
        return (*compiled_bytes_at(kernel, values), None, (note,))
    if own is None or sector is None:
        return (*register_bytes_at(kernel, values), None, ())
    name, is_one = machine.caches[0].name, how is not None and not how.loops
    note = f"{name}: a warp of {own.warp} iterations moves each touched sector of {sector} B once"
    if is_one:
        note = f"{name}: one thread runs, so each access moves a sector of {sector} B"
    if is_indirect(kernel):
        from roofdsl.predict.warps_of_data import warp_bytes_of_data

        return (*warp_bytes_of_data(kernel, values, own.warp, sector), sector, (note,))
    if how is None or how.most_blocks is not None:
        return (*warp_bytes_at(kernel, values, own.warp, sector), sector, (note,))
    moved = warp_bytes_at(kernel if how.kernel is None else how.kernel, values, own.warp, sector, how.threads())
    return (*moved, sector, (note,))


def is_first_level(cache: Cache) -> bool:
    """Whether a machine's nearest cache is next to the registers: its name begins with L1.

    A machine that defines only an L2 says nothing about the levels between that and the registers.
    """
    return cache.name.upper().startswith("L1")


def _cache_level_time(
    cache: Cache, nearer: str, loads: int | None, stores: int | None, at: Boundary | None, *, total: int | None = None
) -> LevelTime:
    return LevelTime(
        cache.name,
        (loads or 0) + (stores or 0) if total is None else total,
        cache.bandwidth_bytes_per_s,
        kind="cache",
        nearer=nearer,
        loads_bytes=loads,
        stores_bytes=stores,
        moved_bytes=None if at is None else at.moved_bytes,
        duplex_bytes=larger_direction(cache.duplex, loads, stores),
    )


def link_level_time(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, data: str, traffic: Traffic, *, warm: bool
) -> LevelTime:
    """The traffic over the link by which data in memory `data` reach the main memory, which counts as a cache of its
    size. warm: right after another launch, which left its data there as far as they fit. For this cache, stores that
    bypass the others count like ordinary stores, so it sends a changed element back once; but they load nothing first.

    Its bandwidth is that of a stream over the machine's links (rule 19). Links carry loads and stores at the same time,
    one in each direction, while the memories at both ends share their bandwidth. Raises CommandError for a memory that
    the machine does not have, or that no link joins to its main memory in a direction in which data move.
    """
    from roofdsl.counts.sector_traffic import Transfers, transfers_at, warm_transfers_at

    main = machine.main_memory
    if data not in {m.name for m in machine.memories} or data == main.name:
        have = [m.name for m in machine.memories[1:]]
        listed = f"it has {', '.join(have)}" if have else f"it has only {main.name}"
        raise CommandError(f"machine {machine.name} has no further memory named {data}", listed)
    rate = _stream(machine, data, main.name)
    find = warm_transfers_at if warm else transfers_at
    moved = find(ordinary(kernel), values, Transfers(main.size_bytes, None), traffic)
    not_loaded = _begun_past_caches(kernel, values, main.size_bytes, warm=warm) if traffic == "write_allocate" else 0
    loads, stores = None if moved.loads_bytes is None else moved.loads_bytes - not_loaded, moved.stores_bytes
    level = LevelTime(
        data, moved.bytes - not_loaded, rate, kind="link", nearer=main.name, loads_bytes=loads, stores_bytes=stores
    )
    if loads is None or not stores:
        return level
    ends = min(m.bandwidth_bytes_per_s for m in machine.memories if m.name in (data, main.name))
    return replace(level, summed_s=max(loads / rate, stores / _stream(machine, main.name, data), level.bytes / ends))


def _begun_past_caches(kernel: Kernel, values: Mapping[str, int], cache_bytes: int, *, warm: bool) -> int:
    """The bytes of elements that come into a cache by stores that bypass the others."""
    if not has_streams(kernel):
        return 0
    from roofdsl.counts.traffic_at import lines_at
    from roofdsl.loops.transform import repeated

    usual, past = ordinary(kernel), arrays_past_caches(kernel)

    def begun(of: Kernel) -> int:
        return sum(a.begun * a.line_bytes for a in lines_at(of, values, cache_bytes, None) if a.name in past)

    return begun(repeated(usual, 2)) - begun(usual) if warm else begun(usual)


def _stream(machine: Machine, start: str, end: str) -> Fraction:
    """The rate of a stream between two memories, in bytes per second. Raises CommandError if no link leads there."""
    rate = stream_rate(machine, [start], [end]).bytes_per_s
    if not rate:
        raise CommandError(f"no link of machine {machine.name} leads from {start} to {end}")
    return rate


def with_streamed(memory: LevelTime, streamed: int, machine: Machine) -> tuple[LevelTime, tuple[str, ...]]:
    """The memory with the bytes of stores that bypass the caches, and the assumption about their rate."""
    if not streamed:
        return memory, ()
    rate = machine.main_memory.streamed_bytes_per_s
    known = "as fast as other stores" if rate is None else f"at {show_bandwidth(rate)}"
    note = f"{show_bytes(streamed)} of stores go past the caches to {memory.name}, {known}"
    return replace(memory, streamed_bytes=streamed, streamed_bytes_per_s=rate), (note,)


def memory_level_time(machine: Machine, moved: TrafficAt, boundary: Boundary) -> LevelTime:
    """The traffic across the memory's boundary, at the memory's bandwidth."""
    memory = machine.main_memory
    return LevelTime(
        memory.name,
        moved.bytes,
        memory.bandwidth_bytes_per_s,
        nearer=machine.caches[-1].name if machine.caches else "registers",
        loads_bytes=moved.loads_bytes,
        stores_bytes=moved.stores_bytes,
        moved_bytes=boundary.moved_bytes,
        duplex_bytes=larger_direction(memory.duplex, moved.loads_bytes, moved.stores_bytes),
    )
