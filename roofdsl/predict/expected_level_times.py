"""The expected time of each level's transfers, and how they combine: a machine's Execution-Cache-Memory (ECM) rule.

`level_time` has the bound's time of a level; `expected` has the expected time of all levels and the core together.

T = max(T_OL, T_nOL + the transfers' times) (Stengel, Treibig, Hager, Wellein, "Quantifying performance bottlenecks of
stencil computations using the Execution-Cache-Memory model", ICS 2015). T_OL is the work that overlaps with transfers
(arithmetic, chains); T_nOL is the loads and stores between registers and the nearest cache. On newer processors,
transfers may overlap with these and with each other (Laukemann, Hager, Wellein, "Microarchitectural comparison and
in-core modeling of state-of-the-art CPUs", arXiv:2409.08108: they do on Genoa and Grace, and not on Sapphire Rapids).
The machine says which (`transfers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.levels_in_turn import in_turn


def combined(times: Sequence[Fraction], overlap: Fraction | None) -> Fraction:
    """The time of loads and transfers together: their sum if none overlap (0), the longest if all do (1, None).

    For values in between, the share `overlap` of what could overlap does overlap: max + (1 - overlap) (sum - max).
    """
    longest, together = max(times), sum(times, Fraction(0))
    return longest if overlap is None else longest + (1 - overlap) * (together - longest)


def turns_s(levels: Sequence[LevelTime], machine: Machine, *, as_measured: bool = False) -> Fraction:
    """The time of the levels that take turns according to their `beside` rates; 0 if there are none."""
    turns = in_turn(_without_registers(levels, machine), machine, as_measured=as_measured)
    return sum((time for _, time in turns), Fraction(0))


def measured_turns_s(levels: Sequence[LevelTime], machine: Machine) -> Fraction:
    """As `turns_s`, at the measured rates, which may be below what the bound allows."""
    return turns_s(levels, machine, as_measured=True)


def transfer_s(level: LevelTime, machine: Machine) -> Fraction:
    """The time of a level's transfers, with stores at their own rates if the machine states these.

    A stored line comes in, is changed and goes out again, which takes longer than its bytes alone would. Loads of other
    lines overlap with that in part. So the time is the longer of two: all bytes at the bandwidth, or stored and loaded
    lines, each at their rates.
    """
    cache = next((cache for cache in machine.caches if cache.name == level.name), None)
    least = Fraction(0)
    if cache is not None and cache.written_bytes_per_s is not None and level.stores_bytes:
        capped = level.bandwidth_bytes_per_s / cache.bandwidth_bytes_per_s  # a ceiling lowers all rates
        least = level.stores_bytes / (cache.written_bytes_per_s * capped)
        if cache.written_loads_bytes_per_s is not None and level.loads_bytes is not None:
            loaded = level.loads_bytes + level.begun_bytes
            least += loaded / (cache.written_loads_bytes_per_s * capped)
    return max(least, both_directions_s(level, machine))


def both_directions_s(level: LevelTime, machine: Machine) -> Fraction:
    """The time of a level's loads and stores, which run one after the other or, on a duplex level, at the same time.

    Stores that bypass the caches come after both: they and the loads wait in the same buffers of a core. Their
    bandwidth is the one stated for them, or else that of the other stores.
    """
    stores_per_s = _stores_per_s(level, machine)
    if stores_per_s is None:
        return level.time_s
    loads = (level.loads_bytes or 0) / level.bandwidth_bytes_per_s
    stores = ((level.stores_bytes or 0) - level.streamed_bytes) / stores_per_s
    return (max(loads, stores) if level.duplex_bytes is not None else loads + stores) + past_caches_s(level, machine)


def past_caches_s(level: LevelTime, machine: Machine) -> Fraction:
    """The part of `both_directions_s` that stores past the caches take, in seconds."""
    if not level.streamed_bytes:
        return Fraction(0)
    stores_per_s = _stores_per_s(level, machine)
    if stores_per_s is None:
        return level.streamed_bytes / max(level.bandwidth_bytes_per_s, level.streamed_bytes_per_s or Fraction(0))
    return level.streamed_bytes / (level.streamed_bytes_per_s or stores_per_s)


def _stores_per_s(level: LevelTime, machine: Machine) -> Fraction | None:
    """The bandwidth of ordinary stores in bytes per second; None if the level's own time holds for loads and stores."""
    part = next((part for part in machine.hierarchy if part.name == level.name), None)
    slow = None if part is None else part.stores_bytes_per_s
    if part is None or level.loads_bytes is None or (slow is None and not level.streamed_bytes):
        return None
    # a ceiling lowers all of them
    return (slow or part.bandwidth_bytes_per_s) * level.bandwidth_bytes_per_s / part.bandwidth_bytes_per_s


def nearest_first(levels: Sequence[LevelTime], machine: Machine) -> list[LevelTime]:
    """The levels from the nearest cache to the main memory, and links at the end."""
    order = [part.name for part in machine.hierarchy]
    return sorted(levels, key=lambda level: order.index(level.name) if level.name in order else len(order))


def is_nearest(level: LevelTime) -> bool:
    """Whether the level is the cache next to the registers, whose accesses are part of the in-core time."""
    return level.kind == "cache" and level.nearer == "registers"


def _without_registers(levels: Sequence[LevelTime], machine: Machine) -> list[LevelTime]:
    """The levels that may take turns. The accesses to the nearest cache are part of the in-core time, so it takes turns
    only if the machine says so.
    """
    takes_turns = {cache.name for cache in machine.caches if cache.takes_turns}
    return [level for level in levels if not is_nearest(level) or level.name in takes_turns]
