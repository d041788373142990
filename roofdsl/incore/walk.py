"""A walk through a compiled function in the order of execution: its integer instructions decide the path.

Loops are not walked to their ends. Once a loop is steady, its remaining iterations are skipped: registers that grow by
the same number each time are advanced, and so is the clock, by the number of skipped iterations. If an outer loop's
iterations differ (triangular loops), some are walked in each part of its range, and stand for the others there. So the
walk finds the code that really runs without guessing: alias and contiguity checks, remainders, the number of vectors in
each row and their positions in lines come out as on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from roofdsl.incore.assembly import Code
from roofdsl.incore.block_plan import Planned, planned
from roofdsl.incore.classes import Work, work_of
from roofdsl.incore.data_branches import ALL, DataBranches, OverData
from roofdsl.incore.extrapolate import Exit, advanced, iterations_left
from roofdsl.incore.flow import Block, Flow, flow_of
from roofdsl.incore.liveness import live_registers
from roofdsl.incore.loop_state import (
    Active,
    Pace,
    Totals,
    advance,
    boundary,
    earlier_exit,
    earlier_value,
    grown,
    pace_of,
    steady_iterations,
)
from roofdsl.incore.rates import LINE, Rates
from roofdsl.incore.result import NoInCore
from roofdsl.incore.state import State, holds
from roofdsl.incore.window import Clock

MOST_INSTRUCTIONS, AIM = 800_000, 400_000
"""A walk is given up after MOST_INSTRUCTIONS; samples of an outermost loop are reduced so that it takes at most about
AIM.
"""

WORTH = 60_000
"""About how many instructions of an outer loop are walked if its iterations differ."""

BLOCKS = ("memset", "memcpy", "memmove")
"""Functions whose time depends on a number of bytes, their third argument."""

LEAST_WARM = 12
"""At least this many iterations of an innermost loop are walked before those that its pace is taken from."""

WINDOWS = 4
"""The rest of an outer loop is walked if it is shorter than this many windows, since the code after it overlaps with
it.
"""

FEW_PARTS, MOST_PARTS = 4, 24
SAMPLE = 4
"""Iterations walked in each part of a loop whose iterations differ: the growth of registers shows only after this many.
"""


@dataclass(frozen=True)
class Walked:
    """The result: cycles of one launch, the executed work, the function, and the number of instructions `walked`.
    guessed_wrong: the branches on data that it would mispredict if the core remembered nothing.
    """

    cycles: float
    totals: Totals
    flow: Flow
    code: Code
    works: dict[int, Work]
    walked: int
    assumptions: tuple[str, ...] = ()
    guessed_wrong: float = 0.0


def walk(code: Code, function: str, state: State, rates: Rates, over_data: OverData = ALL) -> Walked:
    """One launch of a function from the state that its caller sets up. Raises NoInCore if its time cannot be found."""
    return _Walk(code, function, state, rates, over_data).run()


class _Walk:
    def __init__(self, code: Code, function: str, state: State, rates: Rates, over_data: OverData) -> None:
        self.code, self.state, self.rates = code, state, rates
        self.scale, self.branches = over_data.scale, DataBranches(over_data.remembered)
        self.flow = flow_of(code, function)
        self.works: dict[int, Work] = {}
        for block in self.flow.blocks.values():
            for k in range(block.start, block.stop):
                before = code.instructions[k - 1] if k > block.start else None
                self.works[k] = work_of(code.instructions[k], before)
        self.live = live_registers(self.flow, code, self.works)
        self.clock = Clock(rates, list(self.works.values()))
        self.totals = Totals()
        self.plans: dict[int, Planned] = {}
        self.active: list[Active] = []
        self.trips: dict[int, int] = {}
        self.paces: dict[int, Pace] = {}
        self.assumed: dict[str, None] = {}
        self.vectors = [k for name, k in self.clock.numbers.items() if name[0] in "vk" and name[1:].isdigit()]

    def run(self) -> Walked:
        at: int | None = self.flow.entry
        while at is not None:
            self._arrive(at)
            at = self._block(at)
            if self.clock.instructions > MOST_INSTRUCTIONS:
                raise NoInCore("the compiled code has too many different iterations to walk through")
        return Walked(
            max(self.clock.retired, self.clock.dispatched), self.totals, self.flow, self.code, self.works,
            self.clock.instructions, tuple(self.assumed), self.branches.guessed_wrong * self.scale,
        )  # fmt: skip

    # ---- one block ----

    def _block(self, at: int) -> int | None:
        """Runs a block; returns the start of the next one, or None at the end of the function."""
        block = self.flow.blocks[at]
        plan = self.plans.get(at)
        if plan is None:
            plan = self.plans[at] = planned(block, self.flow, self.code, self.works, state=self.state, clock=self.clock)
        self.totals.blocks[at] += 1
        issue, splits = self.clock.issue, self.totals.splits
        for run, step, address, k, call in plan.items:
            if call:
                self._call(call, k)
                continue
            if step is not None:
                where = address() if address is not None else None
                if where is not None and where % LINE + step.bytes > LINE:
                    splits[k] += 1
                issue(step, where)
            run()
        if not block.successors:
            return None
        if len(block.successors) == 1:
            if plan.last.name == "jmp":
                self.clock.jumped()
            return block.successors[0]
        taken = self._decide(block, plan)
        if taken:
            self.clock.jumped()
        return block.successors[0 if taken else 1]

    def _decide(self, block: Block, plan: Planned) -> bool:
        flags = self.state.flags
        taken = holds(plan.condition, flags)
        if taken is None:
            if plan.condition in ("p", "np"):  # after a comparison of floats: whether one of them is NaN
                self.assumed["no result is NaN"] = None
                return plan.condition == "np"
            innermost = self.flow.nests[block.start]
            where = (
                "the innermost loop branches"
                if innermost and self.flow.loops[innermost[-1]].innermost
                else "a branch depends"
            )
            raise NoInCore(
                f"{where} on computed data, so its time depends on them (line {plan.last.line} of the assembly)"
            )
        if flags is not None:
            for number in plan.leaves:
                active = next((a for a in self.active if a.number == number), None)
                if active is not None:
                    active.exits[block.start] = Exit(plan.condition, flags, taken)
        if self.active:
            self.active[-1].path.append(taken)
            if not plan.leaves and self._follows_data(self.active[-1]) and self.branches.branched(block.start, taken):
                self.clock.mispredicted()
        return taken

    def _call(self, target: str, k: int) -> None:
        """A call of an outside function."""
        if target == "*":
            where = self.state.reader(self.code.instructions[k].operands[0], 64)()
            target = self.state.outside.get(where or 0, "")
        found = self.rates.call(target)
        block, size = self.state.registers.get("rdi"), self.state.registers.get("rdx")
        if target in BLOCKS:
            found = self.rates.block(target, size)
        if found is None:
            name = f"`{target[:60]}`" if target else "a function that it computes"
            raise NoInCore(f"the code calls {name}, whose time machine {self.rates.machine} does not state")
        self.totals.calls[target] += 1
        self.state.forget_called()
        argument = -1 if target in BLOCKS else self.clock.numbers.get("v0", -1)
        missed = self.rates.missed(target)
        busy, latency, slots = found[0] - missed, found[1] - missed, self.rates.call_slots(target)
        self.clock.called(busy, latency, slots, argument, self.vectors, missed)
        if target in BLOCKS and block is not None and size is not None:
            self.clock.block_stored(block, size, self.rates.block_waits(target, size))

    # ---- loops ----

    def _arrive(self, at: int) -> None:
        """Records which loops are left, entered, or begin another iteration."""
        nest = self.flow.nests[at]
        while self.active and self.active[-1].number not in nest:
            self._leave(self.active.pop())
        entered = nest[len(self.active) :]
        for number in entered:
            self.totals.entries[number] += 1
            self.active.append(Active(number, written=self.state.written, looked_up=self.state.looked_up))
            self.state.written = set()
            self.active[-1].boundaries.append(boundary(self.active[-1], self.state, self.clock, self.totals))
        if self.active and not entered and self.flow.loops[self.active[-1].number].header == at:
            self._iterated(self.active[-1])

    def _leave(self, loop: Active) -> None:
        total = loop.total + 1  # the last iteration leaves without arriving at the header
        self.totals.iterations[loop.number] += 1
        before = self.trips.get(loop.number)
        limit = self.rates.predicted if before in (None, total) else self.rates.varied
        wrong = int(total > limit)
        if self._follows_data(loop):
            wrong = self.branches.left(loop.number, total, limit)
            self._scaled(loop)
        for _ in range(wrong):
            self.clock.mispredicted()
        if not wrong:
            self.clock.left(total)
        self.totals.mispredicted[loop.number] += wrong
        self.trips[loop.number] = total
        self.state.written |= loop.written
        if self.active:
            # Iterations are alike only if those of the inner loops are; the first and last ones of these stand for all.
            inside = hash((loop.first, loop.boundaries[-1].path, tuple(loop.path)))
            self.active[-1].path.append((loop.number, total, inside))

    def _iterated(self, loop: Active) -> None:
        loop.total += 1
        loop.since += 1
        self.totals.iterations[loop.number] += 1
        loop.boundaries.append(boundary(loop, self.state, self.clock, self.totals))
        if loop.total == 1:
            loop.first = loop.boundaries[-1].path
        innermost = self.flow.loops[loop.number].innermost
        if self._follows_data(loop):
            del loop.boundaries[1:-1]  # every iteration may differ
        elif loop.parts:
            if loop.since >= SAMPLE:
                self._sampled(loop)
        elif innermost:
            self._skip_steady(loop)
        else:
            self._skip_outer(loop)

    def _skip_steady(self, loop: Active) -> None:
        """Skips the rest of an innermost loop once the core's window is full of its iterations."""
        # The pace is taken from as many iterations as fill the window, after as many others have filled it. The last
        # iteration is walked: it leaves by another jump.
        each = max(1, (loop.boundaries[-1].instructions - loop.boundaries[0].instructions) // max(1, loop.since))
        warm = max(LEAST_WARM, self.rates.window // each + 1)
        if loop.since < 2 * warm or loop.since % 8:
            return
        left = self._left(loop)
        if left > warm:
            self._skip(loop, left - 1, warm // 8 * 8 or warm)

    def _skip_outer(self, loop: Active) -> None:
        """Skips the rest of an outer loop, if its iterations are alike; otherwise the parts between samples."""
        pace = self.paces.get(loop.number)
        if loop.since == 1 and pace is not None and loop.total == 1:
            self._skip_at(loop, pace)
            return
        if loop.since < SAMPLE - 1:
            return
        left = self._left(loop)
        b = loop.boundaries
        if left < 2 or left * (b[-1].instructions - b[-2].instructions) < WINDOWS * self.rates.window:
            return
        # Iterations on one path run the same instructions.
        if b[-1].path == b[-2].path == b[-3].path:
            counted = steady_iterations(b, self.rates.window)
            if counted:
                mean = (b[-1].retired - b[-1 - counted].retired) / counted
                self.paces[loop.number] = replace(pace_of(b[-2], b[-1]), cycles=mean)
                self._skip(loop, left, counted)
            return
        if loop.since < SAMPLE:
            return
        # Otherwise they change along the loop, as the rows of a triangle do. The rest is cut into equal parts, and the
        # SAMPLE iterations in the middle of each stand for it. Only the outermost loop gets many parts, since those of
        # nested loops multiply.
        each = (b[-1].instructions - b[-1 - SAMPLE].instructions) / SAMPLE
        outermost = len(self.active) == 1
        parts = int(min(MOST_PARTS, WORTH / (SAMPLE * each))) if outermost else FEW_PARTS
        parts = max(parts, 2 if outermost and left * each > AIM else FEW_PARTS)
        if left <= 2 * parts * SAMPLE or left * each < WORTH / 100:
            return
        whole = left - 2
        bounds = [whole * k // parts for k in range(parts + 1)]
        loop.parts = [b - a for a, b in pairwise(bounds)]
        loop.begun, loop.sampled = self.clock.instructions, 0
        self._jump(loop, 0)

    def _skip_at(self, loop: Active, pace: Pace) -> None:
        """Skips an outer loop after its first iteration, if this was like the iterations of an earlier entry."""
        first, last = loop.boundaries
        if last.path != pace.path or set(last.exits) != set(pace.exits):
            return
        live = self.live[self.flow.loops[loop.number].header]
        known = {n: d for n, d in pace.registers.items() if n in live}
        if any(grown(first.registers.get(n), last.registers.get(n)) != d for n, d in known.items()):
            return
        # The number of remaining iterations follows from three boundaries, and only two are known. The one before them
        # follows from the pace of the earlier entry.
        slots = {n: earlier_value(v, pace.slots.get(n)) for n, v in last.slots.items()}
        before = replace(
            first,
            registers={n: earlier_value(v, pace.registers.get(n)) for n, v in first.registers.items()},
            slots={n: earlier_value(v, pace.slots.get(n)) for n, v in slots.items()},
            exits={b: earlier_exit(e, pace.exits[b], 2) for b, e in last.exits.items()},
        )
        first.exits = {b: earlier_exit(e, pace.exits[b], 1) for b, e in last.exits.items()}
        loop.boundaries = [before, replace(first, slots=slots), last]
        left = self._left(loop)
        if left < 1 or left * pace.instructions < WINDOWS * self.rates.window:
            loop.boundaries = [first, last]
            return
        self.clock.shift(pace.cycles * left)
        for part, added in zip(self.totals.parts(), pace.totals, strict=True):
            for key, value in added.items():
                part[key] += value * left
        loop.total += left
        self._move(loop, left)

    def _sampled(self, loop: Active) -> None:
        """Counts a part of the loop by the iterations walked in it, and goes on to the next part."""
        length = loop.parts.pop(0)
        rest = length - SAMPLE
        self._stand_for(loop, rest, SAMPLE - 1)
        behind = rest - loop.into  # still to be skipped, after `into` skipped and SAMPLE walked ones
        loop.sampled += 1
        each = (self.clock.instructions - loop.begun) / loop.sampled
        while len(self.active) == 1 < len(loop.parts) and each * len(loop.parts) > AIM - self.clock.instructions:
            loop.parts = [sum(loop.parts[k : k + 2]) for k in range(0, len(loop.parts), 2)]
        if loop.parts:
            self._jump(loop, behind)
        else:
            loop.total += rest
            self._move(loop, behind)

    def _jump(self, loop: Active, behind: int) -> None:
        """Moves to the middle of the next part, past the `behind` remaining iterations of this one."""
        if behind:
            loop.total += behind + loop.into
        loop.into = max(0, (loop.parts[0] - SAMPLE) // 2)
        self._move(loop, behind + loop.into)

    def _follows_data(self, loop: Active) -> bool:
        """Whether the loop, or a loop inside it, has read an index array since it was entered."""
        return self.state.looked_up != loop.looked_up

    def _scaled(self, loop: Active) -> None:
        """Lets an outermost loop over pieces of the data stand for all of them."""
        if self.scale != 1 and not self.active and len(loop.boundaries) > 1:
            self._stand_for(loop, (self.scale - 1) * (loop.total + 1) / loop.total, 1)

    def _left(self, loop: Active) -> int:
        """The iterations until the loop ends or a jump out of it changes direction, extrapolated from the last three; 0
        if that is unknown.
        """
        three = [b.exits for b in loop.boundaries[-3:]]
        return iterations_left(three)

    def _skip(self, loop: Active, count: int, steady: int) -> None:
        if count <= 0:
            return
        self._stand_for(loop, count, steady)
        loop.total += count
        self._move(loop, count)

    def _stand_for(self, loop: Active, count: float, steady: int) -> None:
        """Lets the last `steady` iterations stand for `count` others, in time and in work."""
        if count <= 0:
            return
        last, first = loop.boundaries[-1], loop.boundaries[-1 - steady]
        factor = count / steady
        self.clock.shift((last.retired - first.retired) * factor)
        for part, old, new in zip(self.totals.parts(), first.totals, last.totals, strict=True):
            for key, value in new.items():
                if value != old[key]:
                    part[key] += (value - old[key]) * factor  # type: ignore[assignment]

    def _move(self, loop: Active, count: int) -> None:
        """Advances registers and stack slots by `count` iterations."""
        if count > 0:
            state, b = self.state, loop.boundaries[-4:]
            advance(state.registers, b, count)
            for at, size in b[-1].slots:
                # A loop's first boundary has no slots, since those that its iterations write are not known yet.
                values = [old.slots[at, size] for old in b if (at, size) in old.slots]
                state.store(at, size, advanced(values, count, size > 8))
        loop.boundaries = [boundary(loop, self.state, self.clock, self.totals)]
        loop.since = 0
