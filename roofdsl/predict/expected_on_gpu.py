"""The expected time of a GPU's launches: the accesses of compiled code, whole waves of blocks, threads that wait.

The bound counts every access as written, spreads the work over the whole machine, and lets nothing wait. The generated
code keeps sums in registers, its blocks may be too few or end in a wave that is not full, the memory sustains less than
its bandwidth, and threads wait for what they load, unless enough of them are resident. `launch_time` has the law by
which these combine. What is left out: dependent operations, instructions that compute addresses outside of inner
loops, and threads of a block with more work than others.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

from roofdsl.counts.compiled_warps import FirstCache, WarpAccesses, warp_accesses_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.indirect import is_indirect
from roofdsl.machine.model import Cache, Machine
from roofdsl.machine.quantities import show_bandwidth, show_time
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.expected import Cause, Expected, Rung, causes_of, launch_rung
from roofdsl.predict.kernel_launches import Launched
from roofdsl.predict.launch_time import Asked, Stream, Waves, round_s, spread_s, stream_of, waiting_s
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
WAITING = "threads wait for what they load: too little is in flight to hide it"
SMALLER = "larger sizes, or smaller blocks"
MORE = "more threads, or more loads in each"


class NoTime(Exception):
    """Why a launch has no expected time; the message is one clause."""


class Launch(Record):
    """A launch with all that its time depends on. bound: its own terms. accesses: those that are compiled."""

    bound: Prediction
    waves: Waves
    threads: int
    accesses: WarpAccesses
    stream: Stream


def launch_of(
    launched: Launched, values: Mapping[str, int], machine: Machine, block: Block | None, bound: Prediction
) -> Launch:
    """The launch of `launched`, whose terms of the bound are those of `bound`. block: the needs of its thread blocks,
    if they are given. Raises NoTime.
    """
    kernel, own = launched.kernel, machine.multiprocessor
    assert kernel is not None and own is not None
    if bound.unit is not None:
        raise NoTime("the generated loops do not use matrix units")
    if is_indirect(kernel):
        raise NoTime("data choose the accesses")
    if not machine.caches or not is_first_level(machine.caches[0]):
        raise NoTime(f"{machine.name} states no L1, and what its threads load is not modeled without one")
    if len(bound.levels) != len(machine.caches) + 1:
        raise NoTime("the bytes of some levels are not counted")
    memory = bound.memory
    stream = stream_of(machine, memory.loads_bytes or 0, memory.stores_bytes or 0)
    if stream is None:
        raise NoTime(f"{machine.name} states no `sustained` bandwidth of {memory.name}")
    if isinstance(launched.how, str):
        raise NoTime(launched.how)
    how, code = launched.how, launched.how.kernel or kernel
    orders = orders_of(kernel, values, machine, block, launched.how)
    threads, waves = 1, Waves(1, 1, machine.units or 1)
    if how.loops:
        if orders.launch is None or how.covered is None:
            raise NoTime("bounds of the loops over threads depend on other loops")
        blocks = prod(orders.launch.grid)
        waves = Waves(blocks, orders.resident, orders.units)
        threads = min(blocks * orders.launch.threads_of_block, prod(len(covered) for covered in how.covered))
    try:
        accesses = warp_accesses_at(code, values, own.warp, _first_cache(machine), how.threads())
    except CommandError as error:
        raise NoTime(error.message) from None
    return Launch(bound, waves, threads, accesses, stream)


def expected_of_launch(launch: Launch, machine: Machine, launch_s: Fraction) -> Expected:
    """The expected time of one launch, the launch itself included, with its causes."""
    bound, own = launch.bound, _asked(launch, machine)
    apart_s = max(bound.launch_s, Fraction(0))
    others = max(float(bound.compute_s), *(float(level.time_s) for level in bound.levels if not _is_first(level)))
    ladder = [Rung(REGISTERS, "", max(apart_s, Fraction(others)))]
    name, even_s = own.longest
    ladder.append(Rung(_slower(name, launch, machine), "", max(ladder[-1].reached_s, Fraction(even_s))))
    spread, why = Fraction(spread_s(own, launch.waves)), FEW if launch.waves.blocks < launch.waves.units else UNEVEN
    ladder.append(Rung(why, SMALLER, max(ladder[-1].reached_s, spread)))
    work_s = Fraction(waiting_s(own, launch.waves))
    ladder.append(Rung(WAITING, MORE, max(ladder[-1].reached_s, work_s)))
    ladder.append(launch_rung(ladder[-1].reached_s, work_s + launch_s))
    inside = {name: Fraction(time_s) for name, time_s in own.inside}
    shared = tuple((name, Fraction(time_s)) for name, time_s in own.shared)
    return Expected(
        work_s + launch_s, MODEL, causes_of(bound.bound_s, ladder), inside["instructions"], inside["accesses"], shared,
        work_s, launch_s, None, _assumed(launch, machine), ladder=tuple(ladder), is_of_threads=True,
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
    bound, first = launch.bound, machine.caches[0]
    issued_s = _instructions(launch) / _instructions_per_s(machine)
    inside = {"instructions": max(float(bound.compute_s), issued_s)}
    if is_first_level(first):
        cycles = launch.accesses.cycles * _first_cache(machine).cycle_bytes
        inside["accesses"] = float(cycles / first.bandwidth_bytes_per_s)
    shared = {level.name: float(level.time_s) for level in bound.levels if not _is_first(level)}
    memory = bound.memory
    rate = min(float(memory.bandwidth_bytes_per_s), launch.stream.bandwidth_bytes_per_s)
    shared[memory.name] = memory.bytes / rate
    thread_s = _thread_s(launch, machine, inside.get("accesses", 0.0))
    return Asked(tuple(inside.items()), tuple(shared.items()), thread_s, launch.stream.exponent)


def _first_cache(machine: Machine) -> FirstCache:
    """The first cache of a multiprocessor. Without a clock, it answers a line of bytes in a cycle."""
    first, own = machine.caches[0], machine.multiprocessor
    line = first.line_bytes or UNIT_BYTES
    cycle_bytes = Fraction(line)
    if machine.clock_hz is not None:
        cycle_bytes = first.bandwidth_bytes_per_s / (first.copies * machine.clock_hz)
    units = None if own is None else own.load_units
    return FirstCache(line, cycle_bytes, cycle_bytes / UNIT_BYTES if units is None else Fraction(units))


def _thread_s(launch: Launch, machine: Machine, accesses_s: float) -> float:
    """Seconds of one thread that has the machine to itself: it starts, makes its first round, and then the others.

    A cache that answers in order makes a thread also wait for the accesses of all others that are resident.
    """
    rounds = max(1.0, float(launch.accesses.rounds / launch.threads))
    latency_s = launch.stream.latency_s
    found = latency_s + (rounds - 1) * round_s(machine, _missed(launch, machine), latency_s)
    first = machine.caches[0]
    return found + (accesses_s / launch.waves.count if isinstance(first, Cache) and first.in_order else 0.0)


def _missed(launch: Launch, machine: Machine) -> dict[str, float]:
    """For each level behind the first cache, the share of a warp's rounds that load at least one of its sectors."""
    own = machine.multiprocessor
    assert own is not None
    in_warps = float(launch.accesses.rounds) / min(own.warp, launch.threads)
    found = {}
    for level in launch.bound.levels:
        if not _is_first(level) and in_warps:
            sectors = (level.bytes if level.loads_bytes is None else level.loads_bytes) / (
                level.moved_bytes or UNIT_BYTES
            )
            found[level.name] = min(1.0, sectors / in_warps)
    return found


def _instructions(launch: Launch) -> float:
    """The instructions of all threads: one for each access, and for each operation or fused pair of two, and those that
    innermost loops need for addresses and to count.
    """
    computing = sum(part.operations / (2 if part.cls == "fma" else 1) for part in launch.bound.parts)
    return computing + launch.accesses.loads + launch.accesses.stores + float(launch.accesses.addressing)


def _instructions_per_s(machine: Machine) -> float:
    """Instructions of single threads: each scheduler starts one of a warp per cycle. Infinite without a clock."""
    own = machine.multiprocessor
    assert own is not None
    if machine.clock_hz is None:
        return float("inf")
    return float((machine.units or 1) * own.schedulers * own.warp * machine.clock_hz)


def _is_first(level: LevelTime) -> bool:
    return level.nearer == "registers"


def _slower(name: str, launch: Launch, machine: Machine) -> str:
    """Why what takes longest is slower than the bound says."""
    if name == launch.bound.memory.name:
        return f"{name} sustains {show_bandwidth(Fraction(launch.stream.bandwidth_bytes_per_s))}"
    if name == "accesses":
        return f"accesses take {machine.caches[0].name} a cycle for each line that a warp touches, or more"
    return "the schedulers start one instruction of a warp per cycle"


def _assumed(launch: Launch, machine: Machine) -> tuple[str, ...]:
    rounds = max(1, round(launch.accesses.rounds / launch.threads))
    waves = launch.waves.count
    return (
        f"expected time: {waves:,} wave{'' if waves == 1 else 's'} of blocks; a thread waits for its loads "
        f"{'once' if rounds == 1 else f'{rounds:,} times'}, {_wait_words(launch, machine)}",
    )


def _wait_words(launch: Launch, machine: Machine) -> str:
    latency_s = launch.stream.latency_s
    if launch.accesses.rounds <= launch.threads:
        return f"for {show_time(Fraction(latency_s))}"
    each = round_s(machine, _missed(launch, machine), latency_s)
    return f"the first time for {show_time(Fraction(latency_s))}, then for {show_time(Fraction(each))} each"
