"""The values of integer expressions while loop variables run over intervals: prepared once, asked for many intervals.

`LoopIntervals` keeps what it finds for the expressions and loops of one kernel. They are told apart by their identity,
since comparing them takes longer than what is looked up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import gcd
from typing import NamedTuple

from roofdsl.counts.distinct_units import Interval
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.loops.accesses import Access, accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import IntExpr, Sym
from roofdsl.loops.model import Assign, Element, For, Let, Node

MOST_BOXES = 256
"""At most this many boxes for an access whose elements have gaps between them."""

Values = tuple[int, int, int]
"""First value, last value, step."""

Env = Mapping[str, Values]
"""The values of the loop variables."""


class Form(NamedTuple):
    """An affine form. terms: each with its symbols, its name if it is a single symbol, and its factor; steps: the
    factor of each symbol that is a term.
    """

    expression: IntExpr
    constant: int
    terms: tuple[tuple[IntExpr, tuple[str, ...], str | None, int], ...]
    steps: tuple[tuple[str, int], ...]
    symbols: tuple[str, ...]

    @staticmethod
    def of(expression: IntExpr) -> Form:
        found = affine(expression)
        constant, terms = found.constant, []
        for term, factor in found.terms:
            symbols = tuple(sorted(term.symbols()))
            if symbols:
                terms.append((term, symbols, term.name if isinstance(term, Sym) else None, factor))
            else:
                constant += factor * term.evaluate({})
        steps = tuple(found.coefficients().items())
        return Form(expression, constant, tuple(terms), steps, tuple(sorted(expression.symbols())))

    def interval(self, env: Env) -> Interval:
        """The least and the greatest value. Raises NoAnswer if the form is not affine in the loops that move it."""
        low = high = self.constant
        for term, symbols, name, factor in self.terms:
            if name is not None and name in env:
                first, last, _ = env[name]
            elif all(s in env and env[s][0] == env[s][1] for s in symbols):
                first = last = term.evaluate({s: env[s][0] for s in symbols})
            else:
                raise NoAnswer(f"{self.expression} is not affine in the loops")
            if factor < 0:
                first, last = last, first
            low, high = low + factor * first, high + factor * last
        return low, high

    def intervals(self, env: Env, gap: int) -> list[Interval]:
        """Intervals that contain all values; inside them, neighboring values differ by at most `gap`. Raises NoAnswer
        if there are too many.
        """
        low, high = self.interval(env)
        if low == high:
            return [(low, low)]
        steps = []
        for name, factor in self.steps:
            first, last, step = env[name]
            if first != last:
                steps.append((abs(factor) * step, (last - first) // step))
        found = [(low, low)]
        for step, times in sorted(steps):
            width = found[0][1] - found[0][0]
            if len(found) == 1 and step <= width + gap:
                found = [(low, low + width + step * times)]
            elif len(found) * (times + 1) <= MOST_BOXES:
                found = [(a + k * step, b + k * step) for k in range(times + 1) for a, b in found]
            else:
                raise NoAnswer(f"{self.expression} leaves gaps from {low} to {high}")
        return found


class Bounds(NamedTuple):
    """The bounds of a loop. needed: the variables in them."""

    loop: For
    starts: tuple[Form, ...]
    stops: tuple[Form, ...]
    step: int
    needed: tuple[str, ...]

    def ends(self, env: Env) -> Interval:
        """The least first value, and the greatest value before which the loop ends, over all values of outer loops."""
        start = max(form.interval(env)[0] for form in self.starts)
        return start, min(form.interval(env)[1] for form in self.stops)


class LoopIntervals:
    """The loops and expressions of one kernel, prepared."""

    def __init__(self, subscripted: set[str]) -> None:
        """subscripted: the variables that occur in subscripts."""
        self.subscripted = subscripted
        self._forms: dict[int, Form] = {}
        self._bounds: dict[int, Bounds] = {}
        self._accesses: dict[int, tuple[Assign | Let, tuple[Access, ...]]] = {}
        self._free: dict[int, tuple[Node, tuple[str, ...]]] = {}
        self._moving: dict[int, tuple[Element, tuple[str, ...]]] = {}

    def form(self, expression: IntExpr) -> Form:
        """The affine form of an expression."""
        found = self._forms.get(id(expression))
        if found is None:
            found = self._forms[id(expression)] = Form.of(expression)
        return found

    def bounds(self, loop: For) -> Bounds:
        """The bounds of a loop, prepared."""
        found = self._bounds.get(id(loop))
        if found is None:
            starts, stops = tuple(map(self.form, loop.starts)), tuple(map(self.form, loop.stops))
            needed = tuple(sorted(loop.start.symbols() | loop.stop.symbols()))
            found = self._bounds[id(loop)] = Bounds(loop, starts, stops, loop.step.evaluate({}), needed)
        return found

    def accesses(self, statement: Assign | Let) -> tuple[Access, ...]:
        """The accesses of a statement."""
        found = self._accesses.get(id(statement))
        if found is None:
            found = self._accesses[id(statement)] = statement, accesses(statement)
        return found[1]

    def values(self, loop: For, env: Env) -> range:
        """The values of the variable of a loop, from the least start to the greatest stop."""
        bounds = self.bounds(loop)
        return range(*bounds.ends(env), bounds.step)

    def hull(self, loop: For, env: Env) -> Values | None:
        """All values of the variable; for a loop over a chunk that an outer loop moves, the values in all chunks.

        None if there are none. Raises NoAnswer if variables that move the bounds also occur in subscripts.
        """
        bounds = self.bounds(loop)
        moving = [name for name in bounds.needed if env[name][0] != env[name][1]]
        if any(name in self.subscripted for name in moving):
            raise NoAnswer(f"the bounds of the loop over {loop.var} depend on other loops")
        step = bounds.step
        start, stop = bounds.ends(env)
        if stop <= start:
            return None
        if step != 1 and moving:
            step = gcd(step, *(env[name][2] for name in bounds.needed))
        return start, start + (stop - 1 - start) // step * step, step

    def free(self, node: Node) -> tuple[str, ...]:
        """The variables of surrounding loops that decide what a node touches."""
        found = self._free.get(id(node))
        if found is None:
            found = self._free[id(node)] = node, tuple(sorted(self._free_in(node)))
        return found[1]

    def _free_in(self, node: Node) -> set[str]:
        if isinstance(node, For):
            inside = {name for child in node.body for name in self.free(child)}
            return (inside - {node.var}) | set(self.bounds(node).needed)
        if isinstance(node, Assign | Let):
            return {s for access in self.accesses(node) for x in access.element.subscripts for s in x.symbols()}
        return set()

    def key(self, node: Node, env: Env) -> Hashable:
        """What decides which elements a node touches: itself, and the values of the variables that it depends on."""
        return id(node), *(env.get(name) for name in self.free(node))

    def key_of_element(self, element: Element, env: Env) -> Hashable:
        """What decides which elements of its array an element stands for."""
        found = self._moving.get(id(element))
        if found is None:
            names = tuple(sorted({s for x in element.subscripts for s in x.symbols()}))
            found = self._moving[id(element)] = element, names
        return id(element), *(env.get(name) for name in found[1])
