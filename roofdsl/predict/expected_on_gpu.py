"""The expected time of a GPU's launches: the accesses of compiled code, whole waves of blocks, threads that wait.

The bound counts every access as written, spreads the work over the whole machine, and lets nothing wait. The generated
code keeps sums in registers, its blocks may be too few or end in a wave that is not full, the memory sustains less than
its bandwidth, and threads wait for what they load, unless enough of them are resident. `launch_time` has the law by
which these combine, and `block_schedule` when blocks with different amounts of work end. What is left out: dependent
operations, and instructions that compute addresses outside of inner loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

from roofdsl.counts.block_work import BlockWork, block_work
from roofdsl.counts.compiled_warps import FirstCache, WarpAccesses, warp_accesses_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.block_shape import lanes
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.sized import sized
from roofdsl.machine.model import Cache, Machine
from roofdsl.machine.quantities import show_bandwidth, show_time
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.block_schedule import busy_end, waiting_end
from roofdsl.predict.expected import Cause, Expected, Rung, causes_of, launch_rung
from roofdsl.predict.kernel_launches import Launched
from roofdsl.predict.launch_time import (
    Asked,
    Stream,
    Waves,
    instructions_per_s,
    round_s,
    spread_s,
    stream_of,
    waiting_s,
)
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.occupancy import Block
from roofdsl.predict.prediction import Prediction

MODEL = "waves of thread blocks, whose threads wait for what they load"

UNIT_BYTES = 4
"""What a load/store unit answers in a cycle if the machine does not state how many there are."""

REGISTERS = "values stay in registers, whose accesses the bound counts"
FEW = "too few blocks for all multiprocessors"
UNEVEN = "the last wave of blocks does not fill the multiprocessors"
IDLE = "some threads of warps have nothing to do"
ONE_BY_ONE = "a thread starts at most one instruction per cycle, and there are too few threads"
WAITING = "threads wait for what they load: too little is in flight to hide it"
STARTING = "threads start and store: too little is in flight to hide it"
ALONE = "one thread does everything, because no loop has independent iterations"
UNEQUAL = "some threads or blocks have more work than others"
SMALLER = "larger sizes, or smaller blocks"
MORE = "more threads, or more loads in each"


class NoTime(Exception):
    """Why a launch has no expected time; the message is one clause."""


class Launch(Record):
    """A launch with all that its time depends on. bound: its own terms. accesses: those that are compiled. in_use: the
    share of the threads of its warps that have something to do. work: of its blocks, if it differs. is_as_written:
    whether nothing stays in registers.
    """

    bound: Prediction
    waves: Waves
    threads: int
    in_use: Fraction
    accesses: WarpAccesses
    work: BlockWork | None
    is_as_written: bool
    stream: Stream


def launch_of(
    launched: Launched, values: Mapping[str, int], machine: Machine, block: Block | None, bound: Prediction
) -> Launch:
    """The launch of `launched`, whose terms of the bound are those of `bound`. block: the needs of its thread blocks,
    if they are given. Raises NoTime.
    """
    from roofdsl.counts.traffic_at import access_count

    kernel, own = launched.kernel, machine.multiprocessor
    assert kernel is not None and own is not None
    if bound.unit is not None:
        raise NoTime("the generated loops do not use matrix units")
    if is_indirect(kernel):
        raise NoTime("data choose the accesses")
    if not machine.caches or not is_first_level(machine.caches[0]):
        raise NoTime(f"{machine.name} states no L1, and what its threads load is not modeled without one")
    if missing := [cache.name for cache in machine.caches if cache.name not in {level.name for level in bound.levels}]:
        raise NoTime(f"the bytes of {' and '.join(missing)} are not counted")
    memory = bound.memory
    stream = stream_of(machine, memory.loads_bytes or 0, memory.stores_bytes or 0)
    if stream is None:
        raise NoTime(f"{machine.name} states no `sustained` bandwidth of {memory.name}")
    if isinstance(launched.how, str):
        raise NoTime(launched.how)
    how, code = launched.how, launched.how.kernel or kernel
    orders = orders_of(kernel, values, machine, block, launched.how)
    threads, in_use, waves = 1, Fraction(1, own.warp), Waves(1, 1, machine.units or 1, 1.0)
    work: BlockWork | None = None
    if how.loops:
        if orders.launch is None or how.covered is None:
            raise NoTime("bounds of the loops over threads depend on other loops")
        blocks, of_block = prod(orders.launch.grid), orders.launch.threads_of_block
        threads, in_use = blocks * of_block, Fraction(1)
        if not orders.launch.is_tiled:
            trips = [len(covered) for covered in how.covered]
            threads = min(threads, prod(trips))
            of_warps = zip(trips, lanes(how.block, own.warp), strict=False)
            in_use = Fraction(prod(trips), own.warp * prod(-(-n // along) for n, along in of_warps))
            grid, along = orders.launch.grid[::-1], dict(zip(how.loops, orders.launch.along[::-1], strict=False))
            if len(grid) == len(how.loops) and how.kernel is not None:
                work = block_work(how.kernel, values, along, trips, own.warp, grid)
        waves = Waves(blocks, orders.resident, orders.units, min(1.0, of_block / threads))
    try:
        summing = threads if how.most_blocks is not None and len(how.loops) == 1 else None
        accesses = warp_accesses_at(code, values, own.warp, _first_cache(machine), how.threads(), summing)
        is_as_written = accesses.loads + accesses.stores >= access_count(sized(kernel, values))
    except CommandError as error:
        raise NoTime(error.message) from None
    return Launch(bound, waves, threads, in_use, accesses, work, is_as_written, stream)


def expected_of_launch(launch: Launch, machine: Machine, launch_s: Fraction, name: str = "") -> Expected:
    """The expected time of one launch, the launch itself included, with its causes. name: of several, this one's."""
    bound, even = launch.bound, _asked(launch, machine)
    own = _as_blocks_differ(even, launch, machine)
    inside = {part: Fraction(time_s) for part, time_s in even.inside}
    terms = [level.time_s for level in bound.levels if not _is_first(level) or launch.is_as_written]
    if not launch.is_as_written:
        terms += [min(level.time_s, inside["accesses"]) for level in bound.levels if _is_first(level)]
    ladder = [Rung(REGISTERS, "", max(bound.launch_s, bound.compute_s, *terms))]

    longest, even_s = even.longest
    work_s = Fraction(max(even_s, waiting_s(own, launch.waves)))

    def reach(cause: str, remedy: str, time_s: float | Fraction) -> None:
        ladder.append(Rung(cause, remedy, max(ladder[-1].reached_s, min(work_s, Fraction(time_s)))))

    reach(_slower(longest, launch, machine), "", even_s)
    few, smaller, issuing, waiting, more = FEW, SMALLER, ONE_BY_ONE, WAITING, MORE
    if launch.waves.blocks >= launch.waves.units:
        few = UNEVEN
    if not launch.accesses.loads:
        waiting = STARTING
    if launch.threads == 1:  # larger sizes or smaller blocks do not change that
        few, issuing, waiting, smaller, more = ALONE, ALONE, ALONE, "", ""
    reach(few, smaller, spread_s(even, launch.waves))
    reach(issuing, more, even.issue * launch.waves.count)
    reach(waiting, more, waiting_s(even, launch.waves))
    reach(UNEQUAL, "", work_s)
    ladder.append(launch_rung(ladder[-1].reached_s, work_s + launch_s))
    shared = tuple((level, Fraction(time_s)) for level, time_s in even.shared)
    return Expected(
        work_s + launch_s, MODEL, causes_of(bound.bound_s, ladder), inside["instructions"], inside["accesses"], shared,
        work_s, launch_s, None, _assumed(launch, machine, name), ladder=tuple(ladder), is_of_threads=True,
    )  # fmt: skip


def joining(machine: Machine, launch_s: Fraction) -> Expected:
    """The expected time of the launch of one block that adds up the parts of a sum: it waits for the memory once."""
    stream = stream_of(machine, 1, 0)
    waits_s = Fraction(0 if stream is None else stream.latency_s)
    causes = (Cause(WAITING, waits_s, MORE),) if waits_s else ()
    return Expected(
        waits_s + launch_s, MODEL, causes, Fraction(0), Fraction(0), (), waits_s, launch_s, is_of_threads=True
    )


def _asked(launch: Launch, machine: Machine) -> Asked:
    """What a launch asks of the machine."""
    bound, memory = launch.bound, launch.bound.memory
    instructions = _instructions(launch)
    issued_s, in_use = instructions / instructions_per_s(machine), float(launch.in_use)
    cycles = launch.accesses.cycles * _first_cache(machine).cycle_bytes
    (first,) = (level for level in bound.levels if _is_first(level))
    accesses_s = cycles / first.bandwidth_bytes_per_s
    accesses_s = max(accesses_s, first.time_s) if launch.is_as_written else accesses_s
    inside = {"instructions": max(float(bound.compute_s), issued_s) / in_use, "accesses": float(accesses_s)}
    shared = {level.name: float(level.time_s) for level in bound.levels if not _is_first(level)}
    rate = min(float(memory.bandwidth_bytes_per_s), launch.stream.bandwidth_bytes_per_s)
    shared[memory.name] = memory.bytes / rate
    issue = 0.0 if machine.clock_hz is None else instructions / launch.threads / float(machine.clock_hz)
    thread_s = issue + _waits_s(launch, machine)
    return Asked(
        tuple(inside.items()), tuple(shared.items()), thread_s, issue, _in_order(launch, machine),
        launch.stream.exponent,
    )  # fmt: skip


def _as_blocks_differ(even: Asked, launch: Launch, machine: Machine) -> Asked:
    """What a launch asks of the machine, with the work that each of its blocks has (`block_schedule`)."""
    work, waves = launch.work, launch.waves
    if work is None:
        return even
    shares = ((each, sum(each)) for each in (work.warps, work.even))
    own, alike = (busy_end(each, waves.resident, waves.units) / whole for each, whole in shares)
    start_s, _ = _start_and_round_s(launch, machine)
    rest_s = even.thread - start_s
    durations = [start_s + rest_s * longest / work.mean for longest in work.longest]
    end_s = waiting_end(durations, waves.resident * waves.units)
    return even.slower(own / alike, work.in_step, end_s / (even.thread * waves.count))


def _in_order(launch: Launch, machine: Machine) -> float:
    """The share of the accesses to the first cache that a thread also waits for if others make them: in a cache that
    answers in order, those of loads, but not of the first load of each thread, which is part of the latency.
    """
    first, made = machine.caches[0], launch.accesses
    if not (isinstance(first, Cache) and first.in_order) or not made.loads:
        return 0.0
    return max(0, made.loads - launch.threads) / (made.loads + made.stores)


def _first_cache(machine: Machine) -> FirstCache:
    """The first cache of a multiprocessor. Without a clock, it answers a line of bytes in a cycle."""
    first, own = machine.caches[0], machine.multiprocessor
    line = first.line_bytes or UNIT_BYTES
    cycle_bytes = Fraction(line)
    if machine.clock_hz is not None:
        cycle_bytes = first.bandwidth_bytes_per_s / (first.copies * machine.clock_hz)
    units = None if own is None else own.load_units
    return FirstCache(line, cycle_bytes, cycle_bytes / UNIT_BYTES if units is None else Fraction(units))


def _waits_s(launch: Launch, machine: Machine) -> float:
    """Seconds that a thread waits if it has the machine to itself: it starts, and makes its rounds."""
    start_s, each_s = _start_and_round_s(launch, machine)
    return start_s + each_s * max(1.0, float(launch.accesses.rounds / launch.threads))


def _start_and_round_s(launch: Launch, machine: Machine) -> tuple[float, float]:
    """Seconds of the start of a thread, and of one of its rounds. A stream's latency is the time for both, if the round
    waits for the memory.
    """
    latency_s = launch.stream.latency_s
    if not launch.accesses.loads:
        return latency_s, 0.0
    start_s = max(0.0, latency_s - round_s(machine, {}, latency_s))
    return start_s, round_s(machine, _missed(launch, machine), latency_s)


def _missed(launch: Launch, machine: Machine) -> dict[str, float]:
    """For each level behind the first cache, the share of a warp's rounds that load at least one of its sectors."""
    own = machine.multiprocessor
    assert own is not None
    in_warps = float(launch.accesses.rounds) / min(own.warp, launch.threads)
    found = {}
    for level in launch.bound.levels:
        if not _is_first(level) and in_warps:
            loaded = level.bytes if level.loads_bytes is None else level.loads_bytes
            found[level.name] = min(1.0, loaded / (level.moved_bytes or UNIT_BYTES) / in_warps)
    return found


def _instructions(launch: Launch) -> float:
    """The instructions of all threads: one for each access, and for each operation or fused pair of two, and those that
    innermost loops need for addresses and to count.
    """
    computing = sum(part.operations / (2 if part.cls == "fma" else 1) for part in launch.bound.parts)
    return computing + launch.accesses.loads + launch.accesses.stores + float(launch.accesses.addressing)


def _is_first(level: LevelTime) -> bool:
    return level.nearer == "registers"


def _slower(name: str, launch: Launch, machine: Machine) -> str:
    """Why what takes longest is slower than the bound says."""
    if name == launch.bound.memory.name:
        return f"{name} sustains {show_bandwidth(Fraction(launch.stream.bandwidth_bytes_per_s))}"
    if name == "accesses":
        return f"accesses take {machine.caches[0].name} a cycle for each line that a warp touches, or more"
    issued_s = _instructions(launch) / instructions_per_s(machine)
    return IDLE if issued_s <= launch.bound.compute_s else "the schedulers start one instruction of a warp per cycle"


def _assumed(launch: Launch, machine: Machine, name: str) -> tuple[str, ...]:
    of = f" of {name}, which takes longest" if name else ""
    rounds, waves = max(1, round(launch.accesses.rounds / launch.threads)), launch.waves.count
    run = "one thread" if launch.threads == 1 else f"{waves:,} wave{'' if waves == 1 else 's'} of blocks"
    free = () if machine.launch_s is not None else (f"{machine.name} states no `launch` time, so launches take none",)
    if not launch.accesses.loads:
        return (
            *free,
            f"expected time{of}: {run}; a thread takes {show_time(Fraction(launch.stream.latency_s))} to start",
        )
    times = "once" if rounds == 1 else f"{rounds:,} times"
    who = "it" if launch.threads == 1 else "a thread"
    start, each = (show_time(Fraction(time_s), 3) for time_s in _start_and_round_s(launch, machine))
    if launch.work is not None:
        longest = round(rounds * max(launch.work.longest) / launch.work.mean)
        if longest != rounds:
            times = f"{rounds:,} time{'' if rounds == 1 else 's'} on average, and the longest {longest:,} times"
    waits = f"waits for its loads {times}, for {each}{' each' if rounds > 1 else ''}"
    return (*free, f"expected time{of}: {run}; {who} takes {start} to start, and {waits}")
