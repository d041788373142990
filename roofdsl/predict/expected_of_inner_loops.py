"""The expected time of a loop nest whose inner loops follow each other in every iteration of the loops around them.

A core looks ahead as far as its window (the reorder buffer) reaches. If the window holds two successive inner loops as
a whole, the arithmetic of one overlaps with the transfers of the other, and all of them together take the time of the
machine's rule. If it holds a small share of them, they follow each other, and their times add up. In between, the
share that the window holds of what overlap could save is saved:

    T = sum - min(1, R / L) (sum - together)

Here R is the size of the window, and L the number of instructions of two successive inner loops, on average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from roofdsl.incore.result import InCore
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.expected import Expected, Rung, causes_of, expected
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.time_model import larger_direction

IN_TURN = "inner loops follow each other, and overlap only within the core's window"
"""The cause of time above the bound."""

NOTICED = Fraction(1, 100)
"""The parts are looked at if they may add this share of the expected time."""


class InnerLoops(Record):
    """The inner loops of a nest that follow each other. kernels: each of them alone in the loops around it. passes: how
    often all of them are executed. moved: the levels of one pass, for each inner loop.
    """

    kernels: tuple[Kernel, ...]
    passes: int
    moved: Callable[[], Sequence[Sequence[LevelTime]]]


def share_in_window(core: InCore, machine: Machine, inner: InnerLoops) -> Fraction:
    """The share of two successive inner loops that the core's window holds, at most 1; 1 if it is not known."""
    if machine.core is None or not core.instructions:
        return Fraction(1)
    two = 2 * Fraction(core.instructions) / (inner.passes * len(inner.kernels))
    return min(Fraction(1), machine.core.window / two)


def with_inner_loops(  # noqa: PLR0917
    found: Expected,
    bound_s: Fraction,
    levels: Sequence[LevelTime],
    machine: Machine,
    inner: InnerLoops,
    timed: Callable[[Sequence[Kernel]], Sequence[InCore]],
) -> Expected:
    """The expected time of a nest: `found`, which combines all inner loops as one, plus the time that is lost because
    they do not fully overlap. levels: what the nest moves. timed: the in-core times of the inner loops, which add up to
    that of the nest.

    Raises what `inner.moved` and `timed` raise.
    """
    assert found.core is not None
    apart, work_s = 1 - share_in_window(found.core, machine, inner), found.expected_s - found.launch_s
    most_s = found.core_s + found.loads_s + sum((time for _, time in found.transfers), Fraction(0))
    if apart * (most_s - work_s) <= NOTICED * work_s:
        return found
    parts = list(zip(shared_levels(levels, inner.moved()), timed(inner.kernels), strict=True))

    def alone_s(own: Sequence[LevelTime], core: InCore) -> Fraction:
        time = expected(Fraction(0), own, Fraction(0), core, machine)
        return time.expected_s - time.launch_s

    one_by_one = sum((alone_s(own, core) for own, core in parts), Fraction(0))
    added_s = apart * max(Fraction(0), min(one_by_one - alone_s(levels, found.core), most_s - work_s))
    *rungs, launched = found.ladder
    ladder = (
        *rungs,
        Rung(IN_TURN, "", max(rungs[-1].reached_s, work_s) + added_s),
        replace(launched, reached_s=found.expected_s + added_s),
    )
    return replace(found, expected_s=found.expected_s + added_s, ladder=ladder, causes=causes_of(bound_s, ladder))


def shared_levels(levels: Sequence[LevelTime], one_pass: Sequence[Sequence[LevelTime]]) -> list[tuple[LevelTime, ...]]:
    """The bytes of each inner loop, which add up to those of the nest: shared out as in one pass. Raises CommandError
    if a level of the pass could not be counted.
    """
    by_name = [{level.name: level for level in own} for own in one_pass]
    if any(level.name not in names for names in by_name for level in levels):
        raise CommandError("not all levels could be counted")
    found: list[list[LevelTime]] = [[] for _ in one_pass]
    for level in levels:
        own = [names[level.name] for names in by_name]
        parts = {
            name: _shared([getattr(one, name) or 0 for one in own], getattr(level, name))
            for name in ("bytes", "loads_bytes", "stores_bytes", "allocated_bytes", "begun_bytes", "streamed_bytes")
        }
        for k, into in enumerate(found):
            into.append(_part(level, {name: values[k] for name, values in parts.items()}))
    return [tuple(own) for own in found]


def _part(level: LevelTime, bytes_by_name: dict[str, int | None]) -> LevelTime:
    loads, stores = bytes_by_name["loads_bytes"], bytes_by_name["stores_bytes"]
    if loads is not None and stores is not None:
        bytes_by_name["bytes"] = loads + stores
    duplex = larger_direction(level.duplex_bytes is not None, loads, stores)
    return replace(level, **bytes_by_name, duplex_bytes=duplex, summed_s=None)


def _shared(parts: Sequence[int], whole: int | None) -> list[int | None]:
    """The whole in the proportion of the parts; evenly if all of them are 0."""
    if whole is None:
        return [None] * len(parts)
    total, until, before = sum(parts), 0, 0
    found: list[int | None] = []
    for k, part in enumerate(parts):
        until += part
        reached = whole * until // total if total else whole * (k + 1) // len(parts)
        found.append(reached - before)
        before = reached
    return found
