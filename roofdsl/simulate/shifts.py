"""Which loops repeat themselves: how far each reference moves from one iteration to a later one.

An iteration repeats an earlier one, moved, if all bounds and guards inside the loop have the same result (a bound may
move with its loop, so that the trip count is the same), and if each reference moves by a fixed number of whole lines.
This is found from the program's tables: every expression has a constant change from one iteration to the next, or none.
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

    def _whole(self, change: Fraction) -> None:
        """Chooses the period so that this change becomes an integer."""
        self.period = lcm(self.period, change.denominator)

    def _common(self, changes: list[Fraction]) -> Fraction:
        """The common change of several compared numbers; the change of the first if the result may differ later."""
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
        if op in (AND, OR):
            return self._common([Fraction(0), Fraction(1)])
        self._common([a, b])  # both sides of a comparison move together
        return Fraction(0)
