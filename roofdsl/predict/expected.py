"""The expected time of code, and the causes that put it above the bound.

It combines the time inside the core and the transfers of all levels by the machine's own overlap rule, as in the
Execution-Cache-Memory model (`expected_level_times`). Causes are added one after the other, starting from the
roofline's bound. The shares of the causes are the differences, so they add up to the expected time minus the bound.

The words of a cause are those of the step that it belongs to: `incore` has those of the core (`steps_from_peak`,
`assumed_compiler`), `hardware_traffic` and `expected_rates` those of traffic and rates, and this module the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from roofdsl.incore.result import InCore
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.expected_level_times import (
    both_directions_s,
    combined,
    is_nearest,
    measured_turns_s,
    nearest_first,
    past_caches_s,
    transfer_s,
    turns_s,
)
from roofdsl.predict.expected_rates import at_expected_rates, with_typical_rates
from roofdsl.predict.hardware_traffic import AS_COUNTED, NEARER, Delay, Moved, Moving, delays, restarts_s
from roofdsl.predict.idempotent_kernels import CAUSE, without_stores
from roofdsl.predict.level_time import LevelTime


class Cause(Record):
    """A reason why the code takes longer than the bound: its seconds for one or several launches, and the remedy.

    share_s is negative for work that the bound counts and the code does not do.
    """

    cause: str
    share_s: Fraction
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"cause": self.cause, "share_s": float(self.share_s), "remedy": self.remedy}


class Rung(Record):
    """One step from the bound to the expected time: the time of one launch with this cause and those before it."""

    cause: str
    remedy: str
    reached_s: Fraction


class Expected(Record):
    """The expected time of one launch, or of several (they can be added and multiplied), and its parts.

    causes: they add up to expected_s minus the bound. core_s, loads_s: T_OL and T_nOL. transfers: seconds of each level
    behind the nearest cache, nearest first. data_s: loads and transfers combined by the machine's rule. launch_s: the
    time that launches add. overlap: how much of the possible overlap happens, from 0 to 1; None if the machine does not
    say. core: for one launch, its in-core time. relaxed_s: the expected time with relaxed math, if that is a remedy.
    ladder: for one launch, the causes in the order in which they were added, the launch last. past_caches_s: for one
    launch, the part of the transfers that are stores past the caches. nests: for one launch, its loop nests, which
    follow each other, if there are several: the times above are then their sums. is_of_threads: whether it is the time
    of a GPU's threads, which has no in-core time: core_s is then that of the operations or instructions, whichever is
    longer, loads_s that of the accesses to the first cache, and data_s that of everything together.
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
    past_caches_s: Fraction = Fraction(0)
    nests: tuple[NestTime, ...] = ()
    is_of_threads: bool = False

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
            is_of_threads=self.is_of_threads,
        )

    def __mul__(self, times: int) -> Expected:
        """The same launch, `times` times."""
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
            is_of_threads=self.is_of_threads,
        )

    def remedies(self) -> list[dict[str, Any]]:
        """The remedies, each with the expected time if it is applied, for JSON."""
        if self.relaxed_s is None or not self.relaxed_s:
            return []
        speedup = float(self.expected_s / self.relaxed_s)
        if round(speedup, 2) == 1:
            return []
        return [{"remedy": "--math relaxed", "expected_s": float(self.relaxed_s), "speedup": speedup}]


class NestTime(Record):
    """One of several loop nests of a launch, with its expected time, without the launch. kernel: its statements alone.
    bound_s, levels: its share of the terms of the bound.
    """

    kernel: Kernel
    bound_s: Fraction
    levels: tuple[LevelTime, ...]
    expected: Expected


def _relaxed(one: Expected, other: Expected) -> Fraction | None:
    """The relaxed time of both together: a part that relaxed math does not help keeps its time."""
    if one.relaxed_s is None and other.relaxed_s is None:
        return None
    return sum((p.expected_s if p.relaxed_s is None else p.relaxed_s for p in (one, other)), Fraction(0))


def joined(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Equal causes merged, the largest share first; causes without a share are left out."""
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
    moving: Moving = AS_COUNTED,
) -> Expected:
    """The expected time of one launch with this bound, these levels, this launch time and this in-core time.

    as_compiled: the bound counts the accesses of compiled code, so nothing is faster than the bound. Otherwise, it may
    count accesses to the nearest cache that compiled code does not make. moving: additional traffic of the hardware.
    """
    levels = nearest_first(levels, machine)
    unchanged = moving.unchanged and core.masked
    if unchanged:
        levels = [without_stores(level) for level in levels]
        moving = replace(moving, more=tuple(_without_stores(more) for more in moving.more))
    counted = nearest_first(moving.more[-1].levels, machine) if moving.more else levels
    moving = replace(moving, more=(*moving.more, *at_expected_rates(counted, moving.streams, machine)))
    counted, usual = list(moving.more[-1].levels) if moving.more else counted, with_typical_rates(machine)
    moved = [level.with_allocated() for level in counted]
    farther = [level for level in moved if not is_nearest(level)]
    called = launch_s if core.launch_s is None else Fraction(core.launch_s)
    last = core.steps[-1]
    core_s, loads_s = Fraction(last.overlapping_s), Fraction(last.loads_s)
    transfers = tuple((level.name, transfer_s(level, usual)) for level in farther)
    slower = delays(moving, farther, transfers, core, usual)
    data_s = combined([loads_s, *(time for _, time in transfers)], machine.transfer_overlap)
    data_s = max([data_s, measured_turns_s(moved, usual), *(delay.seconds_s for delay in slower)])
    lost_s, lost_at = restarts_s(farther, machine)
    lost_s = min(data_s, lost_s) * min(Fraction(1), core_s / data_s) if data_s else data_s
    # a launch precedes the work, and does not overlap with it
    work_s = max(core_s, data_s, bound_s if as_compiled and bound_s > launch_s else Fraction(0)) + lost_s

    # what the steps inside the core cannot go below: the launch, levels behind the nearest cache, levels in turn
    apart_s = max(bound_s if as_compiled else Fraction(0), launch_s)
    least = max(apart_s, _behind_s(levels, machine))
    ladder = _core_rungs(core, bound_s, least)
    if unchanged:
        ladder = [Rung(CAUSE, "", max(least, ladder[0].reached_s)), *ladder]
    ladder += _moving_rungs(moving, levels, ladder[-1].reached_s, max(apart_s, core_s, loads_s), machine)
    behind, reached_s = [level for level in counted if not is_nearest(level)], ladder[-1].reached_s
    ladder += _transfer_rungs(behind, farther, transfers, slower, data_s, reached_s=reached_s, machine=usual)
    if lost_s:
        ladder.append(Rung(_LOST.format(lost_at), NEARER, max(ladder[-1].reached_s, core_s, data_s) + lost_s))
    ladder.append(launch_rung(ladder[-1].reached_s, work_s + called))
    notes = () if machine.transfer_overlap is not None else (f"{machine.name}: transfers of all levels overlap",)
    return Expected(
        work_s + called, core.model, causes_of(bound_s, ladder), core_s, loads_s, transfers, data_s, called,
        machine.transfer_overlap, core.assumptions + notes, core, ladder=tuple(ladder),
        past_caches_s=sum((past_caches_s(level, usual) for level in farther), Fraction(0)),
    )  # fmt: skip


_LOST = "{} is not prefetched across pages while the core computes"
PASSING = "stores that bypass the caches (non-temporal)"


def _core_rungs(core: InCore, bound_s: Fraction, least: Fraction) -> list[Rung]:
    """The steps inside the core, while transfers still overlap with everything, as in the bound; none is below `least`.

    The first step may be below the bound, which may count accesses that the code does not make.
    """
    ladder, before = [], bound_s
    for step in core.steps:
        now = max(least, Fraction(step.overlapping_s), Fraction(step.loads_s))
        ladder.append(Rung(step.cause or _unnamed(now, before), step.remedy, now))
        before = now
    return ladder


def _without_stores(more: Moved) -> Moved:
    return replace(more, levels=tuple(without_stores(level) for level in more.levels))


def _moving_rungs(
    moving: Moving, levels: Sequence[LevelTime], reached_s: Fraction, apart_s: Fraction, machine: Machine
) -> list[Rung]:
    """The steps of traffic that the bound does not count, and of lower rates; each level still takes its bytes over its
    bandwidth.

    levels: as the bound counts them. The hardware may move less than that, and a step then lowers the time, but not
    below `apart_s`, which does not depend on traffic.
    """
    ladder, before_s = [], _behind_s(levels, machine)
    for more in moving.more:
        behind_s = _behind_s(more.levels, machine)
        reached_s = max(apart_s, behind_s) if behind_s < before_s else max(reached_s, behind_s)
        ladder.append(Rung(more.cause, more.remedy, reached_s))
        before_s = behind_s
    return ladder


def _behind_s(levels: Sequence[LevelTime], machine: Machine) -> Fraction:
    """The longest time of a level behind the nearest cache, or of those that take turns; 0 if there are none."""
    longest = max((level.time_s for level in levels if not is_nearest(level)), default=Fraction(0))
    return max(longest, turns_s(levels, machine))


def _transfer_rungs(
    behind: Sequence[LevelTime],
    moved: Sequence[LevelTime],
    transfers: Sequence[tuple[str, Fraction]],
    delayed: Sequence[Delay],
    data_s: Fraction,
    *,
    reached_s: Fraction,
    machine: Machine,
) -> list[Rung]:
    """The steps of transfers: loads before stores, slower stores, delays, and then the machine's rule for overlap.

    moved: the levels `behind` the nearest cache, with the lines that stores load first; transfers: the time of each.
    """
    ladder = []
    loading = [level.name for level, own in zip(behind, moved, strict=True) if own.time_s > level.time_s]
    if loading:
        reached_s = max(reached_s, *(own.time_s for own in moved))
        ladder.append(Rung(f"stores load part of their lines from {' and '.join(loading)} first", PASSING, reached_s))
    plain = [both_directions_s(level, machine) for level in moved]
    slower = [level.name for level, time in zip(moved, plain, strict=True) if time > level.time_s]
    if slower:
        reached_s = max(reached_s, *plain)
        past = any(level.streamed_bytes for level in moved)
        why = "past the caches take their own time" if past else f"to {' and '.join(slower)} are slower than loads"
        ladder.append(Rung(f"stores {why}", "", reached_s))
    written = [name for (name, time), before in zip(transfers, plain, strict=True) if time > before]
    if written:
        reached_s = max(reached_s, *(time for _, time in transfers))
        ladder.append(Rung(f"lines of {' and '.join(written)} that stores change", PASSING, reached_s))
    for delay in delayed:
        reached_s = max(reached_s, delay.seconds_s)
        ladder.append(Rung(delay.cause, delay.remedy, reached_s))
    # An earlier cause may hide the time of the transfers. This one then adds nothing, rather than a negative share.
    reached_s = max(reached_s, data_s)
    ladder.append(Rung(_taking_turns(behind, machine), NEARER, reached_s))
    return ladder


def launch_rung(reached_s: Fraction, expected_s: Fraction) -> Rung:
    """The last step, from the time of the work to the expected time."""
    shorter = expected_s < reached_s
    cause = "launches with these arguments are shorter" if shorter else "the launch does not overlap with the work"
    return Rung(cause, "", expected_s)


def causes_of(bound_s: Fraction, ladder: Sequence[Rung]) -> tuple[Cause, ...]:
    """The differences between successive rungs, the first from the bound; together they reach the last rung."""
    below = (bound_s, *(rung.reached_s for rung in ladder))
    steps = zip(ladder, below, strict=False)
    return joined([Cause(rung.cause, rung.reached_s - before, rung.remedy) for rung, before in steps])


def _unnamed(now: Fraction, before: Fraction) -> str:
    """The cause of the first step: the code's own instructions take longer than the peaks of the bound allow, or it
    makes fewer accesses.
    """
    if now < before:
        return "values stay in registers, whose accesses the bound counts (`--accesses written`)"
    return "instructions at their own rates, below the stated peaks"


def _taking_turns(behind: Sequence[LevelTime], machine: Machine) -> str:
    names = [level.name for level in reversed(behind) if level.bytes]
    if machine.transfer_overlap is None or machine.transfer_overlap == 1:
        return f"{' and '.join(names) or 'levels'} wait for each other"
    how = "take turns" if machine.transfer_overlap == 0 else "overlap only in part"
    return f"transfers of {', '.join(names)} and the core's loads and stores {how}" if names else f"transfers {how}"
