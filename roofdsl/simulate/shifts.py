"""Which loops repeat themselves: how far each reference moves from one iteration to a later one.

An iteration repeats an earlier one, moved, if all bounds and guards inside the loop have the same result (a bound may
move with its loop, so that the trip count is the same), and if each reference moves by a fixed number of whole lines.
This is found from the program's tables: an expression has a constant change from one iteration to the next, or the loop
does not repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from roofdsl.simulate.compiled_kernel import (
    ADD,
    AND,
    CONST,
    FLOOR,
    LOOP,
    MADD,
    MAX,
    MIN,
    MOD,
    MUL,
    NEXT,
    NOT,
    OR,
    RUN,
    SWEEP,
    UNLESS,
    Program,
)

MOST_ITERATIONS = 1 << 16
"""A loop must repeat itself after at most this many iterations; otherwise it counts as not repeating."""

MOST_EMPTY = 64
"""How many iterations, at each end of a loop, are searched for one in which an inner loop does something."""


@dataclass(frozen=True)
class Repeating:
    """A loop whose iterations repeat `period` iterations later, moved by whole lines.

    body: the instruction at which an iteration begins. lines: reference -> the lines by which it has then moved.
    """

    variable: int
    step: int
    body: int
    period: int
    lines: dict[int, int]


def repeating_loops(program: Program, growing: bool = False) -> tuple[Repeating, ...]:
    """The loops of a program that repeat themselves, inner ones first.

    growing: also those whose inner loops and guards may end earlier or later with each iteration.
    """
    found = []
    for pc, (op, variable, step, body, _, _) in enumerate(program.code):
        if op == NEXT:
            loop = _Changes(program, variable, step, growing).loop(body, pc)
            if loop is not None:
                found.append(loop)
    return tuple(found)


@dataclass(frozen=True)
class Copied:
    """A loop whose iterations repeat those of an earlier iteration of the loop around it, moved by whole lines.

    outer, step: the variable and the step of the loop around it. inner: the variable of the loop itself; iteration
    after iteration, it repeats what it did `period` iterations of the outer loop earlier, for as long as it ran then.
    around: the variables of the loops around both. lines: reference -> the lines by which it has then moved.
    """

    outer: int
    step: int
    inner: int
    period: int
    around: tuple[int, ...]
    lines: dict[int, int]


def copied_loops(program: Program) -> tuple[Copied, ...]:
    """The loops of a program that begin by repeating what they did before, and may then run for longer. Their
    references are shown to stay inside their arrays, even in iterations that are not simulated.
    """
    found, open_loops = list[Copied](), list[tuple[int, int]]()  # (variable, exit) of the loops around
    for pc, (op, inner, start, _, end, _) in enumerate(program.code):
        open_loops = [(variable, exit) for variable, exit in open_loops if exit > pc]
        if op != LOOP:
            continue
        if open_loops:
            outer, outer_end = open_loops[-1]
            step = program.code[outer_end - 1][2]
            changes = _Changes(program, outer, step, growing=False)
            loop = changes.inside(inner, start, pc + 1, end - 1)
            ranges = _Ranges(program, outer, inner)
            if loop is not None and all(ranges.inside(k) for k in loop.lines):
                around = tuple(variable for variable, _ in open_loops[:-1])
                found.append(Copied(outer, step, inner, loop.period, around, loop.lines))
        open_loops.append((inner, end))
    return tuple(found)


class _Ranges:
    """Ranges of expressions inside a loop: the values that they can have in the whole program, or more."""

    def __init__(self, program: Program, outer: int, inner: int) -> None:
        self.program = program
        self.variables: dict[int, tuple[int, int]] = {}
        for op, variable, start, stop, _, _ in program.code:
            if op not in (LOOP, SWEEP):
                continue
            if variable == inner and outer in self.variables:
                self._narrow(outer, start, stop)
            first, last = self.of(start), self.of(stop)
            if first is not None and last is not None:
                self.variables[variable] = first[0], max(first[0], last[1] - 1)

    def _narrow(self, outer: int, start: int, stop: int) -> None:
        """Leaves out a few iterations of the outer loop, first and last ones, in which the inner one does nothing."""
        low, high = self.variables[outer]
        inside = []
        for values in (range(low, min(high, low + MOST_EMPTY) + 1), range(high, max(low, high - MOST_EMPTY) - 1, -1)):
            inside.append(next((x for x in values if self._runs(outer, x, start, stop)), values[-1]))
        self.variables[outer] = inside[0], max(inside)

    def _runs(self, outer: int, value: int, start: int, stop: int) -> bool:
        self.variables[outer] = value, value
        first, last = self.of(start), self.of(stop)
        return first is None or last is None or first[0] < last[1]

    def inside(self, reference: int) -> bool:
        """Whether a reference is inside its array in every iteration of the loops."""
        flat, array, _, _ = self.program.references[reference]
        own = self.of(flat)
        return own is not None and own[0] >= 0 and own[1] < self.program.layouts[array].elements

    def of(self, expression: int) -> tuple[int, int] | None:
        """(least, largest) of an expression; None if it is not made of sums, minima and maxima."""
        begin, end = self.program.spans[expression]
        stack: list[tuple[int, int]] = []
        for op, a, b in self.program.terms[begin:end]:
            if op == CONST:
                stack.append((a, a))
            elif op == MADD and a in self.variables:
                low, high = stack.pop()
                ends = sorted(b * x for x in self.variables[a])
                stack.append((low + ends[0], high + ends[1]))
            elif op in (ADD, MIN, MAX):
                (low, high), (other_low, other_high) = stack.pop(), stack.pop()
                if op == ADD:
                    stack.append((low + other_low, high + other_high))
                elif op == MIN:
                    stack.append((min(low, other_low), min(high, other_high)))
                else:
                    stack.append((max(low, other_low), max(high, other_high)))
            else:
                return None
        return stack[0]


class _Varies(Exception):
    """Something in a loop does not repeat."""


class _Changes:
    """Changes of expressions from one iteration of a loop to the next, with all variables outside it fixed."""

    def __init__(self, program: Program, variable: int, step: int, growing: bool) -> None:
        self.program, self.variable, self.step, self.growing = program, variable, step, growing
        self.changes = {variable: Fraction(step)}
        self.period = 1

    def loop(self, body: int, end: int) -> Repeating | None:
        elements: dict[int, Fraction] = {}
        try:
            for op, a, b, c, _, e in self.program.code[body:end]:
                if op in (LOOP, SWEEP):
                    self.changes[a] = self._common([self._of(b), self._of(c)])
                elif op == UNLESS:
                    self._of(a)
                if op in (RUN, SWEEP):
                    first, count = self.program.groups[a if op == RUN else e]
                    for k in range(first, first + count):
                        elements[k] = self._of(self.program.references[k][0])
        except _Varies:
            return None
        lines = {}
        for k, change in elements.items():
            lines[k] = change / self.program.layouts[self.program.references[k][1]].per_line
            self._whole(lines[k])
        if self.period > MOST_ITERATIONS:
            return None
        moved = {k: int(change * self.period) for k, change in lines.items()}
        return Repeating(self.variable, self.step, body, self.period, moved)

    def inside(self, inner: int, start: int, body: int, end: int) -> Repeating | None:
        """How an inner loop repeats what it did in an earlier iteration of the loop whose changes these are; None if it
        does not. start: an expression.
        """
        try:
            self.changes[inner] = self._of(start)
        except _Varies:
            return None
        return self.loop(body, end)

    def _whole(self, change: Fraction) -> None:
        """Chooses the period so that this change becomes an integer."""
        self.period = lcm(self.period, change.denominator)

    def _common(self, changes: list[Fraction]) -> Fraction:
        """The common change of several compared numbers. If they differ, so that the result may change later: the first
        change if `growing`, else raises _Varies.
        """
        if len(set(changes)) > 1 and not self.growing:
            raise _Varies
        return changes[0]

    def _of(self, expression: int) -> Fraction:
        """The change of an expression; 0 for a condition that stays the same. Raises _Varies."""
        begin, end = self.program.spans[expression]
        stack: list[tuple[Fraction, int | None]] = []  # (change, value if it is a number)
        for op, a, b in self.program.terms[begin:end]:
            if op == CONST:
                stack.append((Fraction(0), a))
            elif op == MADD:
                change, _ = stack.pop()
                stack.append((change + b * self.changes.get(a, 0), None))
            elif op == NOT:
                stack.append((self._common([stack.pop()[0], Fraction(0)]), None))
            else:
                right = stack.pop()
                stack.append((self._two(op, stack.pop(), right), None))
        return stack[0][0]

    def _two(self, op: int, left: tuple[Fraction, int | None], right: tuple[Fraction, int | None]) -> Fraction:
        (a, m), (b, n) = left, right
        if a == b == 0:
            return a
        if op == ADD:
            return a + b
        if op == MUL:
            if m is None and n is None:
                raise _Varies
            return a * n if n is not None else b * (m or 0)
        if op in (MIN, MAX):
            return self._common([a, b])
        if op in (FLOOR, MOD):
            if not n:
                raise _Varies
            self._whole(a / n)
            return a / n if op == FLOOR else Fraction(0)
        if op in (AND, OR):  # the result may change at any iteration
            return self._common([Fraction(0), Fraction(1)])
        self._common([a, b])  # both sides of a comparison move together
        return Fraction(0)
