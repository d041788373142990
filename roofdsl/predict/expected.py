"""The expected time: what the code takes inside the core, and the transfers of all levels, by the machine's own rule.

This is the Execution-Cache-Memory model (Stengel, Treibig, Hager, Wellein, "Quantifying performance bottlenecks of
stencil computations using the Execution-Cache-Memory model", ICS 2015): T = max(T_OL, T_nOL + the transfers' times).
T_OL is what runs beside transfers (arithmetic, chains), T_nOL the loads and stores between registers and the nearest
cache. On newer processors transfers may overlap with these and with each other (Laukemann, Hager, Wellein,
"Microarchitectural comparison and in-core modeling of state-of-the-art CPUs", arXiv:2409.08108: they do on Genoa and
Grace, and not on Sapphire Rapids). The machine says which (`transfers`).

The roofline's bound comes first, and one cause after the other is added. The shares of the causes are the differences,
so they add up to the expected time minus the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from roofdsl.incore.model import InCore
from roofdsl.lang.record import Record
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.level_overlap import in_turn
from roofdsl.predict.level_time import LevelTime


class Cause(Record):
    """Why the code takes longer than the bound: seconds of one or several launches, and what would remove them.

    share_s is negative for what the bound counts and the code does not do.
    """

    cause: str
    share_s: Fraction
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"cause": self.cause, "share_s": float(self.share_s), "remedy": self.remedy}


class Rung(Record):
    """One step from the bound to the expected time: what one launch takes with this cause and those before it."""

    cause: str
    remedy: str
    reached_s: Fraction


class Expected(Record):
    """The expected time of one launch, or of several (they can be added and multiplied), and what it is made of.

    causes: they add up to expected_s minus the bound. core_s, loads_s: T_OL and T_nOL. transfers: seconds of each level
    behind the nearest cache, nearest first. data_s: loads and transfers together, by the machine's rule. launch_s: what
    launches add. overlap: the part of what could overlap that does, None where the machine does not say. core: of one
    launch, what it was made from. relaxed_s: the expected time with relaxed math, where that is a remedy. ladder: of
    one launch, the causes in the order in which they were added, the launch last.
    """

    expected_s: Fraction
    model: str
    causes: tuple[Cause, ...]
    core_s: Fraction
    loads_s: Fraction
    transfers: tuple[tuple[str, Fraction], ...]
    data_s: Fraction
    launch_s: Fraction
    overlap: Fraction | None = None
    assumptions: tuple[str, ...] = ()
    core: InCore | None = None
    relaxed_s: Fraction | None = None
    ladder: tuple[Rung, ...] = ()

    def __add__(self, other: Expected) -> Expected:
        """Both, one after the other."""
        transfers = dict(self.transfers)
        for name, time in other.transfers:
            transfers[name] = transfers.get(name, Fraction(0)) + time
        return Expected(
            self.expected_s + other.expected_s,
            self.model if self.model == other.model else f"{self.model}; {other.model}",
            joined(self.causes + other.causes),
            self.core_s + other.core_s,
            self.loads_s + other.loads_s,
            tuple(transfers.items()),
            self.data_s + other.data_s,
            self.launch_s + other.launch_s,
            self.overlap,
            tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            relaxed_s=_relaxed(self, other),
        )

    def __mul__(self, times: int) -> Expected:
        """The same launch `times` over."""
        return Expected(
            self.expected_s * times,
            self.model,
            tuple(Cause(c.cause, c.share_s * times, c.remedy) for c in self.causes),
            self.core_s * times,
            self.loads_s * times,
            tuple((name, time * times) for name, time in self.transfers),
            self.data_s * times,
            self.launch_s * times,
            self.overlap,
            self.assumptions,
            relaxed_s=None if self.relaxed_s is None else self.relaxed_s * times,
        )

    def remedies(self) -> list[dict[str, Any]]:
        """What helps, with the expected time under it, for JSON."""
        if self.relaxed_s is None or not self.relaxed_s:
            return []
        speedup = float(self.expected_s / self.relaxed_s)
        return [{"remedy": "--math relaxed", "expected_s": float(self.relaxed_s), "speedup": speedup}]


def _relaxed(one: Expected, other: Expected) -> Fraction | None:
    """Of both together: a part that relaxed math does not help takes its time."""
    if one.relaxed_s is None and other.relaxed_s is None:
        return None
    return sum((p.expected_s if p.relaxed_s is None else p.relaxed_s for p in (one, other)), Fraction(0))


def joined(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Equal causes as one, the largest share first; causes without a share are left out."""
    total: dict[tuple[str, str], Fraction] = {}
    for c in causes:
        total[c.cause, c.remedy] = total.get((c.cause, c.remedy), Fraction(0)) + c.share_s
    found = [Cause(cause, share, remedy) for (cause, remedy), share in total.items() if share]
    return tuple(sorted(found, key=lambda c: -c.share_s))


def expected(
    bound_s: Fraction,
    levels: Sequence[LevelTime],
    launch_s: Fraction,
    core: InCore,
    machine: Machine,
    *,
    as_compiled: bool = False,
) -> Expected:
    """The expected time of one launch with this bound, these levels and launch time, and this in-core time.

    as_compiled: the bound counts the accesses of compiled code, so nothing is faster than the bound. Otherwise it may
    count accesses to the nearest cache that compiled code does not make.
    """
    levels = sorted(levels, key=lambda level: _distance(level, machine))
    behind = [level for level in levels if not _is_nearest(level)]
    called = launch_s if core.launch_s is None else Fraction(core.launch_s)
    times = [level.time_s for level in behind]
    # what no rule of this page changes: links, and levels that take turns in the bound already
    turns = in_turn(_without_registers(levels, machine), machine)
    floor = bound_s if as_compiled else Fraction(0)
    least = max([floor, launch_s, *times, sum((t for _, t in turns), Fraction(0))])

    def roof(overlapping_s: float, loads_s: float) -> Fraction:
        """Everything at the same time, as in the bound."""
        return max(least, Fraction(overlapping_s), Fraction(loads_s))

    ladder, before = [], bound_s
    for step in core.steps:
        now = roof(step.overlapping_s, step.loads_s)
        ladder.append(Rung(step.cause or _unnamed(now, before), step.remedy, now))
        before = now
    last = core.steps[-1]
    core_s, loads_s = Fraction(last.overlapping_s), Fraction(last.loads_s)

    transfers = tuple((level.name, _seconds(level, machine)) for level in behind)
    slower = [level.name for level, (_, time) in zip(behind, transfers, strict=True) if time > level.time_s]
    if slower:
        before = max(before, *(time for _, time in transfers))
        ladder.append(Rung(f"stores to {' and '.join(slower)} are slower than loads", "", before))

    data_s = combined([loads_s, *(time for _, time in transfers)], machine.transfer_overlap)
    data_s = max(data_s, measured_turns_s(levels, machine))
    before = max(before, data_s)
    ladder.append(Rung(_taking_turns(behind, machine), "a working set that fits into a nearer cache", before))

    # a launch comes before the work, not beside it
    work_s = max(core_s, data_s, bound_s if as_compiled and bound_s > launch_s else Fraction(0))
    shorter = work_s + called < before
    of_launch = "launches with these arguments are shorter" if shorter else "the launch does not overlap with the work"
    ladder.append(Rung(of_launch, "", work_s + called))
    notes = () if machine.transfer_overlap is not None else (f"{machine.name}: transfers of all levels overlap",)
    return Expected(
        work_s + called,
        core.model,
        causes_of(bound_s, ladder),
        core_s,
        loads_s,
        transfers,
        data_s,
        called,
        machine.transfer_overlap,
        core.assumptions + notes,
        core,
        ladder=tuple(ladder),
    )


def causes_of(bound_s: Fraction, ladder: Sequence[Rung]) -> tuple[Cause, ...]:
    """What each rung adds to the one before, the first to the bound; together they reach the last rung."""
    below = (bound_s, *(rung.reached_s for rung in ladder))
    steps = zip(ladder, below, strict=False)
    return joined([Cause(rung.cause, rung.reached_s - before, rung.remedy) for rung, before in steps])


def measured_turns_s(levels: Sequence[LevelTime], machine: Machine) -> Fraction:
    """The time of the levels that take turns, at the rates that the machine states for it; 0 if there are none."""
    turns = in_turn(_without_registers(levels, machine), machine, as_measured=True)
    return sum((time for _, time in turns), Fraction(0))


def combined(times: Sequence[Fraction], overlap: Fraction | None) -> Fraction:
    """The time of loads and transfers together: their sum where none overlap (0), the longest where all do (1, None).

    In between, that part of what could overlap does: max + (1 - overlap) (sum - max).
    """
    longest, together = max(times), sum(times, Fraction(0))
    return longest if overlap is None else longest + (1 - overlap) * (together - longest)


def _distance(level: LevelTime, machine: Machine) -> int:
    order = [*(cache.name for cache in machine.caches), machine.main_memory.name]
    return order.index(level.name) if level.name in order else len(order)


def _without_registers(levels: Sequence[LevelTime], machine: Machine) -> list[LevelTime]:
    """The levels that may take turns; the accesses to the nearest cache are the in-core time's, unless it states so."""
    takes_turns = {cache.name for cache in machine.caches if cache.beside_bytes_per_s is not None}
    return [level for level in levels if not _is_nearest(level) or level.name in takes_turns]


def _is_nearest(level: LevelTime) -> bool:
    """Whether it is the cache next to the registers, whose accesses are in-core time."""
    return level.kind == "cache" and level.nearer == "registers"


def _seconds(level: LevelTime, machine: Machine) -> Fraction:
    """The time of a level's transfers, with stores at their own rate where the machine states one."""
    parts: list[Cache | Memory] = [*machine.caches, machine.main_memory]
    part = next((part for part in parts if part.name == level.name), None)
    slow = None if part is None else part.stores_bytes_per_s
    if part is None or slow is None or level.loads_bytes is None or level.stores_bytes is None:
        return level.time_s
    capped = level.bandwidth_bytes_per_s / part.bandwidth_bytes_per_s  # a ceiling lowers both
    loads, stores = level.loads_bytes / level.bandwidth_bytes_per_s, level.stores_bytes / (slow * capped)
    return max(loads, stores) if level.duplex_bytes is not None else loads + stores


def _unnamed(now: Fraction, before: Fraction) -> str:
    """The first step is the machine's peak, which differs from the bound where the code has other instructions."""
    if now < before:
        return "values stay in registers, whose accesses the bound counts (`--accesses written`)"
    return "instructions at their own rates, below the stated peaks"


def _taking_turns(behind: Sequence[LevelTime], machine: Machine) -> str:
    names = [level.name for level in reversed(behind) if level.bytes]
    if machine.transfer_overlap is None or machine.transfer_overlap == 1:
        return f"{' and '.join(names) or 'levels'} wait for each other"
    how = "take turns" if machine.transfer_overlap == 0 else "overlap only in part"
    return f"transfers of {', '.join(names)} and the loads into registers {how}" if names else f"transfers {how}"
