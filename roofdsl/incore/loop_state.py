"""What a walk remembers of a loop: the state at the start of its iterations, and their pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from roofdsl.incore.extrapolate import Exit, advanced
from roofdsl.incore.state import Registers, State
from roofdsl.incore.window import Clock
from roofdsl.lang.record import replace

ALIKE, MOST_COUNTED = 0.01, 8
"""Two parts of a loop take the same time if they differ by at most this share of it. If none do, this many times the
iterations that fill the core's window are counted.
"""


@dataclass
class Totals:
    """The work of a whole launch: executions of each block, and the accesses of each instruction that cross lines.

    iterations, entries and mispredicted ends by loop; calls by function.
    """

    blocks: Counter[int] = field(default_factory=Counter)
    splits: Counter[int] = field(default_factory=Counter)
    iterations: Counter[int] = field(default_factory=Counter)
    entries: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    mispredicted: Counter[int] = field(default_factory=Counter)

    def parts(self) -> tuple[Counter[int], ...]:
        return (self.blocks, self.splits, self.iterations, self.entries, self.mispredicted, self.calls)  # type: ignore[return-value]


@dataclass
class Boundary:
    """The state at the start of an iteration; exits and path are those of the iteration before it.

    parts: those of registers that are unknown as a whole.
    """

    registers: dict[str, int | None]
    slots: dict[tuple[int, int], int | None]
    retired: float
    instructions: int
    totals: tuple[Counter[int], ...]
    exits: dict[int, Exit]
    path: tuple[object, ...]
    parts: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Pace:
    """The pace of a steady iteration of an outer loop: growth of registers, slots and compared numbers, the time, and
    the work.

    Another entry of the loop that begins in the same way is taken to continue in the same way.
    """

    path: tuple[object, ...]
    registers: dict[str, int]
    slots: dict[tuple[int, int], int]
    exits: dict[int, tuple[int, int]]
    cycles: float
    instructions: int
    totals: tuple[Counter[int], ...]


@dataclass
class Active:
    """A loop that is currently walked through."""

    number: int
    total: int = 0  # iterations, including those skipped
    since: int = 0  # iterations since the registers were last advanced
    boundaries: list[Boundary] = field(default_factory=list)
    exits: dict[int, Exit] = field(default_factory=dict)
    path: list[object] = field(default_factory=list)
    written: set[tuple[int, int]] = field(default_factory=set)
    parts: list[int] = field(default_factory=list)  # lengths of the parts that are still to be sampled
    begun: int = 0  # instructions before the first sample
    sampled: int = 0
    first: tuple[object, ...] = ()  # the path of the first iteration
    looked_up: int = 0  # how often index arrays had been read when the loop was entered
    into: int = 0  # iterations walked in the present part before its sample


def boundary(loop: Active, state: State, clock: Clock, totals: Totals) -> Boundary:
    """The state now, at the start of an iteration; the next exits and path are those of this iteration."""
    slots = {(at, size): state.load(at, size) for at, size in state.written}
    found = Boundary(
        dict(state.registers), slots, clock.retired, clock.instructions, tuple(part.copy() for part in totals.parts()),
        loop.exits, tuple(loop.path), dict(state.registers.parts),
    )  # fmt: skip
    loop.exits, loop.path = {}, []
    return found


def advance(registers: Registers, boundaries: Sequence[Boundary], count: int) -> None:
    """Advances registers by `count` iterations. Parts of unknown registers stay if no iteration has changed them."""
    parts = {n: part for n, part in registers.parts.items() if all(b.parts.get(n) == part for b in boundaries)}
    for name in list(registers):
        registers[name] = advanced([b.registers.get(name) for b in boundaries], count, name[:1] == "v")
    registers.parts.update((name, part) for name, part in parts.items() if registers[name] is None)


def grown(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else (b - a) % (1 << 64)


def earlier_value(value: int | None, step: int | None) -> int | None:
    """A register's value one iteration earlier; unknown if its growth is unknown."""
    return None if value is None or step is None else (value - step) % (1 << 64)


def earlier_exit(now: Exit, step: tuple[int, int], count: int) -> Exit:
    """The values that an exit compared `count` iterations earlier."""
    kind, a, b, bits = now.flags
    mask = (1 << bits) - 1
    return replace(now, flags=(kind, (a - count * step[0]) & mask, (b - count * step[1]) & mask, bits))


def pace_of(before: Boundary, after: Boundary) -> Pace:
    """The pace of the iteration between two boundaries."""
    registers = {n: grown(v, after.registers.get(n)) for n, v in before.registers.items() if n[:1] != "v"}
    slots = {n: grown(v, after.slots.get(n)) for n, v in before.slots.items() if n[1] <= 8}
    exits = {
        b: (e.flags[1] - before.exits[b].flags[1], e.flags[2] - before.exits[b].flags[2])
        for b, e in after.exits.items()
        if b in before.exits
    }
    totals = tuple(new - old for old, new in zip(before.totals, after.totals, strict=True))
    return Pace(
        after.path,
        {n: d for n, d in registers.items() if d is not None},
        {n: d for n, d in slots.items() if d is not None},
        exits,
        after.retired - before.retired,
        after.instructions - before.instructions,
        totals,
    )


def steady_iterations(boundaries: Sequence[Boundary], window: int) -> int:
    """The number of last iterations that show an outer loop's pace; 0 if more have to be walked. window: the number of
    instructions in the core's window.

    Iterations are faster until the window is full of them, so the first that fill it do not count. Later ones may still
    alternate, since the window is full of one part of the loop now and of another then. So the last iterations count
    only with as many before them that took the same time.
    """
    last = boundaries[-1]
    warm = window // (last.instructions - boundaries[-2].instructions) + 1
    same = next((k for k, b in enumerate(reversed(boundaries)) if b.path != last.path), len(boundaries) - 1)
    usable = min(same, len(boundaries) - 1) - warm
    for part in range(warm, usable // 2 + 1, warm):
        late = last.retired - boundaries[-1 - part].retired
        early = boundaries[-1 - part].retired - boundaries[-1 - 2 * part].retired
        if abs(late - early) <= ALIKE * late:
            return 2 * part
    return usable if usable >= MOST_COUNTED * warm else 0
