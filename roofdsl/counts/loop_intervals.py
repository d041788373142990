"""The values of integer expressions while loop variables run over intervals: prepared once, asked for many intervals.

`LoopIntervals` keeps what it finds for the expressions and loops of one kernel. They are told apart by their identity,
since comparing them takes longer than what is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from math import gcd, inf
from typing import NamedTuple

from roofdsl.counts.distinct_units import Interval
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.loops.accesses import Access, accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import IntExpr, Sym, sub
from roofdsl.loops.model import Assign, Element, For, Let, Node
from roofdsl.loops.transform import loops_in

MOST_BOXES, MOST_CHUNKS = 256, 4096
"""At most this many boxes for an access whose elements have gaps between them; more where they lie in the chunks that
threads take in one turn.
"""


class Values(NamedTuple):
    """The values of a loop variable, from the first to the last in steps; at each step, `run` values in a row, of which
    the last ones may be missing.

    movers: variables in subscripts that move the bounds of the loop, as `i` does in `for j in range(i)`. The values are
    then those at the middle of the movers' values, and `ends` those for all of them together.
    """

    first: int
    last: int
    step: int = 1
    run: int = 1
    movers: frozenset[str] = frozenset()
    ends: Interval = (0, 0)

    @property
    def is_one(self) -> bool:
        return self.first == self.last

    def for_access(self, names: Iterable[str]) -> Values:
        """The values for an access that these variables move: for one that no mover moves, as `x[j]`, all of them."""
        return self if not self.movers or self.movers & set(names) else self.all_together

    @property
    def all_together(self) -> Values:
        """The values for all values of the movers."""
        return Values(*self.ends, self.step, self.run) if self.movers else self

    @property
    def middle(self) -> Values:
        """The value in the middle, alone."""
        at = self.first + (self.last - self.first) // self.step // 2 * self.step
        return Values(at, at)

    def in_parts(self, most: int) -> Iterator[Values]:
        """The values in up to `most` parts, one after another; chunks stay together."""
        count = 1 if self.run > 1 else (self.last - self.first) // self.step + 1
        parts = min(most, count)
        if parts == 1:
            yield self
            return
        for k in range(parts):
            first, end = (self.first + count * at // parts * self.step for at in (k, k + 1))
            yield Values(first, end - self.step, self.step if end - self.step > first else 1)

    @property
    def is_cut(self) -> bool:
        """Whether the last run is shorter than the others."""
        return (self.last - self.first) % self.step + 1 < self.run

    def parts(self) -> Iterator[tuple[int, int]]:
        """(step, how often it is taken) of the values in a run, and of the runs."""
        yield 1, self.run - 1
        yield self.step, (self.last - self.first) // self.step


Env = Mapping[str, Values]
"""The values of the loop variables."""


def upright(env: Mapping[str, Values], contiguous: Collection[str]) -> Env:
    """The values for an access of which a narrow band moves along memory: many rows of few elements, not few long rows,
    which would touch fewer sectors. contiguous: the variables in the subscript that is contiguous in memory.
    """
    found = dict(env)
    for name, own in env.items():
        for mover in own.movers & set(contiguous) & env.keys():  # not `i` of `i - i`
            by = found[mover]
            width, length = own.last - own.first, by.last - by.first
            if width < length and own.step == by.step == 1 and by.run == 1:
                low, high = own.ends
                start = max(low, own.first - (length - width) // 2)
                found[name] = Values(start, min(high, start + length))
                found[mover] = Values(by.middle.first - width // 2, by.middle.first - width // 2 + width)
    return found


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
        moving = {name for _, names, _, _ in terms for name in names}  # without `i` in `i - i`
        return Form(expression, constant, tuple(terms), steps, tuple(sorted(moving)))

    def interval(self, env: Env) -> Interval:
        """The least and the greatest value. Raises NoAnswer if the form is not affine in the loops that move it."""
        low = high = self.constant
        for term, symbols, name, factor in self.terms:
            if name is not None and name in env:
                first, last = env[name].first, env[name].last
            elif all(s in env and env[s].is_one for s in symbols):
                first = last = term.evaluate({s: env[s].first for s in symbols})
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
            steps += [(abs(factor) * step, times) for step, times in env[name].parts() if times]
        cut = [factor for name, factor in self.steps if env[name].is_cut]
        if cut and (min(cut) < 0 or sum(env[name].run > 1 for name, _ in self.steps) > 1):
            raise NoAnswer(f"the last chunk of {self.expression} is shorter than the others")
        found = [(low, low)]
        for step, times in sorted(steps):
            width = found[0][1] - found[0][0]
            if len(found) == 1 and step <= width + gap:
                found = [(low, low + width + step * times)]
            elif len(found) * (times + 1) <= most_boxes(env, self.symbols):
                found = [(a + k * step, b + k * step) for k in range(times + 1) for a, b in found]
            else:
                raise NoAnswer(f"{self.expression} leaves gaps from {low} to {high}")
        return [(a, min(b, high)) for a, b in found] if cut else found


def most_boxes(env: Env, names: Iterable[str]) -> int:
    """The most boxes of an access that is moved by these variables."""
    return MOST_CHUNKS if any(env[name].run > 1 for name in names) else MOST_BOXES


class Bounds(NamedTuple):
    """The bounds of a loop. needed: the variables in them. length: how far the loop goes on from its start, as far as
    they say so by a number; otherwise infinity.
    """

    loop: For
    starts: tuple[Form, ...]
    stops: tuple[Form, ...]
    step: int
    needed: tuple[str, ...]
    length: float

    @staticmethod
    def of(loop: For, form: Callable[[IntExpr], Form]) -> Bounds:
        starts, stops = tuple(map(form, loop.starts)), tuple(map(form, loop.stops))
        needed = tuple(sorted(loop.start.symbols() | loop.stop.symbols()))
        each = [affine(sub(stop, start)) for start in loop.starts for stop in loop.stops]
        length = min((found.constant for found in each if not found.terms), default=inf)
        return Bounds(loop, starts, stops, loop.step.evaluate({}), needed, length)

    def ends(self, env: Env) -> Interval:
        """The least first value, and the greatest value before which the loop ends, over all values of outer loops."""
        start = max(form.interval(env)[0] for form in self.starts)
        return start, min(form.interval(env)[1] for form in self.stops)

    def in_chunks(self, over: str) -> bool:
        """Whether a loop over `over` moves this one from chunk to chunk. A fixed end may cut the last one short."""
        by = [dict(form.steps).get(over) for form in self.starts]
        ends = [dict(form.steps).get(over) for form in self.stops if over in form.symbols]
        return self.step == 1 and bool(ends) and {*by, *ends} == {1}


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
        self._decides: dict[int, bool] = {}

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
            found = self._bounds[id(loop)] = Bounds.of(loop, self.form)
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

        None if there are none. If variables that move the bounds also occur in subscripts, what the loops touch is no
        box, and the values are those at the middle of these variables' values (`TouchedSets` takes few of them at a
        time). Raises NoAnswer for chunks of chunks.
        """
        needed = self.bounds(loop).needed
        movers = [name for name in needed if name in self.subscripted and not env[name].is_one]
        if not movers:
            return self._between(loop, env)
        own = self._between(loop, {**env, **{name: env[name].middle for name in movers}})
        every = self._between(loop, {**env, **{name: env[name].all_together for name in movers}})
        if own is None or every is None:
            return own
        if own.run > 1 or every.run > 1:
            raise NoAnswer(f"the chunks of the loop over {loop.var} move with other loops")
        outer = (env[name].movers for name in movers)
        return own._replace(movers=frozenset(movers).union(*outer), ends=(every.first, every.last))

    def _between(self, loop: For, env: Env) -> Values | None:
        """The values between the bounds of a loop; None if there are none."""
        bounds = self.bounds(loop)
        moving = [name for name in bounds.needed if not env[name].is_one]
        if any(env[name].run > 1 for name in moving):
            raise NoAnswer(f"the loop over {loop.var} runs over chunks of chunks")
        step = bounds.step
        start, stop = bounds.ends(env)
        if stop <= start:
            return None
        chunks = self._chunks(bounds, env, moving) if moving else None
        if chunks is not None:
            return chunks
        if step != 1 and moving:
            step = gcd(step, *(env[name].step for name in bounds.needed))
        return Values(start, start + (stop - 1 - start) // step * step, step)

    def _chunks(self, bounds: Bounds, env: Env, moving: list[str]) -> Values | None:
        """The values of a loop over chunks that an outer loop moves, with gaps between them; None if there are no gaps,
        or if the bounds do not say so.

        `for i in range(ii + turn, min(n, ii + 64, ii + turn + 8))` has gaps of 56 in one turn, of 48 in two.
        """
        over = max(moving, key=lambda name: env[name].step)
        first, last, step = env[over][:3]
        if not bounds.in_chunks(over) or any(env[name].step > bounds.length for name in moving if name != over):
            return None
        at_zero = {**env, over: Values(0, 0)}
        start = max(form.interval(at_zero)[0] for form in bounds.starts)
        length = min(form.interval(at_zero)[1] for form in bounds.stops if over in form.symbols) - start
        if length >= step:
            return None
        ends = [form.interval(env)[1] for form in bounds.stops if over not in form.symbols]
        begun = [first + (end - 1 - start - first) // step * step for end in ends]
        stop = min([last, *begun]) + start + length
        return Values(first + start, min([stop, *ends]) - 1, step, length)

    def decides(self, loop: For) -> bool:
        """Whether the variable of a loop occurs in subscripts, and in the bounds of a loop inside."""
        found = self._decides.get(id(loop))
        if found is None:
            inside = any(loop.var in self.bounds(inner).needed for inner in loops_in(loop.body))
            found = self._decides[id(loop)] = loop.var in self.subscripted and inside
        return found

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
