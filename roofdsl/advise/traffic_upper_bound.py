"""A guaranteed upper bound on the traffic of an LRU cache, computed by arithmetic alone.

It serves kernels whose exact traffic takes too long to count: changed ones that `advise` tries, and, in `sol`, kernels
as written. `evaluate` puts it into predictions.

If a stretch of the execution touches no more lines than the cache holds, it misses each of them at most once, because
only these lines are touched between two uses of any of them. So if a stretch of a loop's iterations fits into the
cache, the misses of the loop are at most the lines of one stretch times the number of stretches. If two consecutive
stretches fit together, an array with the same lines in both stays in the cache and is counted once for the whole loop.
The lines of a stretch are those of the bounding box of its elements, so every number here may be too large but never
too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any

from roofdsl.counts.sector_traffic import Transfers
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses, scalar_bytes
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Const, IntExpr, Max, Min, Sym, add, sub
from roofdsl.loops.model import Array, Assign, Count, Element, For, If, Kernel, Let, Node, Traffic
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.transform import apply


class NoBound(Exception):
    """Raised where the arithmetic does not apply: a subscript or bound is not affine, or the cache is unbounded."""


class AtMost(Record):
    """Upper bounds on the bytes across the boundary; loads and stores are None in the convention `once`."""

    loads_bytes: int | None
    stores_bytes: int | None
    bytes: int


Interval = tuple[int, int]
Ranges = Mapping[str, Interval]
"""The interval of each surrounding loop variable."""
Counts = dict[str, int]
"""The number of transfer units of each array."""
_Linear = tuple[int, dict[str, int]]
"""A constant, and the coefficients of the variables."""
Inner = dict[str, tuple[_Linear, int]]
"""For each variable of the body's own loops: where it starts, and how far it runs from there."""


def traffic_at_most(kernel: Kernel, values: Mapping[str, int], where: Transfers, convention: Traffic) -> AtMost:
    """An upper bound on the bytes behind a fully associative LRU cache; `values` has all parameters.

    Raises NoBound, also for an unbounded cache, whose traffic is compulsory.
    """
    if where.cache_bytes is None:
        raise NoBound("an unbounded cache")
    plain = with_numbers(apply(kernel), values)
    search = _Search(plain, where)
    moved = search.bytes(search.of(plain.body, {}), where.moved_bytes)
    read, written = _directions(plain.body)
    scalar_loads, scalar_stores = scalar_bytes(plain)
    if convention == "once":
        return AtMost(None, None, sum(moved.values()) + scalar_stores)
    loads = sum(n for a, n in moved.items() if a in read or convention == "write_allocate") + scalar_loads
    stores = sum(n for a, n in moved.items() if a in written) + scalar_stores
    return AtMost(loads, stores, loads + stores)


def _directions(body: Sequence[Node]) -> tuple[set[str], set[str]]:
    """(arrays that are read, arrays that are written)."""
    read: set[str] = set()
    written: set[str] = set()
    for node in _statements(body):
        for access in accesses(node):
            (written if access.is_write else read).add(access.element.array.name)
    return read, written


def _statements(body: Sequence[Node]) -> list[Assign | Let]:
    found: list[Assign | Let] = []
    for node in body:
        if isinstance(node, For):
            found += _statements(node.body)
        elif isinstance(node, If):
            found += _statements(node.then) + _statements(node.orelse)
        elif not isinstance(node, Count):
            found.append(node)
    return found


def _add(total: Counts, more: Mapping[str, int], times: int = 1) -> None:
    for name, n in more.items():
        total[name] = total.get(name, 0) + n * times


def _each(node: Assign | Let) -> Counts:
    """The misses of a statement whose lines do not fit together: all its accesses."""
    found: Counts = {}
    for access in accesses(node):
        _add(found, {access.element.array.name: 1})
    return found


class _Search:
    """Upper bounds on the misses of a body by array, in transfer units (elements if there are no lines)."""

    def __init__(self, kernel: Kernel, where: Transfers) -> None:
        self.cache, self.line, self.moved = where.cache_bytes or 0, where.line_bytes, where.moved_bytes
        self.arrays = {a.name: a for a in kernel.arrays}
        self.steps: dict[str, int] = {}  # by variable: a number that divides all its values
        self.forms: dict[int, tuple[Element, tuple[_Linear, ...]]] = {}  # by identity; the value keeps the node alive

    def of(self, body: Sequence[Node], ranges: Ranges) -> Counts:
        """Misses of one execution of the body."""
        if self._fits(self._lines(body, ranges, self.line)):
            return self._lines(body, ranges, self.moved)
        found: Counts = {}
        for node in body:
            if isinstance(node, For):
                _add(found, self._loop(node, ranges))
            elif isinstance(node, If):
                _add(found, self.of(node.then, ranges))
                _add(found, self.of(node.orelse, ranges))
            elif not isinstance(node, Count):
                _add(found, _each(node))
        return found

    def _loop(self, loop: For, ranges: Ranges) -> Counts:
        """Misses of one execution of a loop, with the best stretch length among those that fit."""
        trips = _trips(loop, ranges)[1]
        self.steps[loop.var] = _divisor(loop, self.steps)
        each = self.of(loop.body, {**ranges, loop.var: _range(loop, ranges)})
        best = {a: n * trips for a, n in each.items()}
        width = 1
        while width < 2 * trips:
            found = self._by_stretches(loop, width, ranges)
            if found is None:
                break
            if sum(found.values()) < sum(best.values()):
                best = found
            width *= 2
        return best

    def _by_stretches(self, loop: For, width: int, ranges: Ranges) -> Counts | None:
        """Misses of a loop by stretches of `width` iterations; None if two such stretches do not fit."""
        length = Const(width * loop.step.evaluate({}))
        over = replace(loop, var=f"{loop.var}'", step=length)
        within = replace(loop, start=Sym(over.var), stop=add(Sym(over.var), length))
        self.steps[over.var] = _divisor(over, self.steps)
        inside = {**ranges, over.var: _range(over, ranges)}
        lines = self._lines((within,), inside, self.line)
        steady = {a for a in lines if _same((within,), a, {over.var}, inside)}
        if not self._fits({a: n if a in steady else 2 * n for a, n in lines.items()}):
            return None
        times = _trips(over, ranges)[1]
        return {a: n if a in steady else n * times for a, n in self._lines((within,), inside, self.moved).items()}

    def _fits(self, lines: Counts) -> bool:
        return sum(self.bytes(lines, self.line).values()) <= self.cache

    def bytes(self, units: Counts, unit: int | None) -> Counts:
        """The bytes of a number of units of `unit` bytes (None: elements)."""
        return {a: n * (unit or self.arrays[a].type.bytes) for a, n in units.items()}

    def _lines(self, body: Sequence[Node], ranges: Ranges, unit: int | None) -> Counts:
        """An upper bound on the units, by array, that one execution of the body touches."""
        boxes: dict[str, dict[object, list[list[Interval]]]] = {}
        self._boxes(body, {}, ranges, boxes)
        found: Counts = {}
        for name, groups in boxes.items():
            array = self.arrays[name]
            whole = -(-array.element_count({}) * array.type.bytes // (unit or array.type.bytes))
            found[name] = min(whole, sum(self._units(key, group, array, unit) for key, group in groups.items()))
        return found

    def _boxes(
        self,
        body: Sequence[Node],
        inner: Inner,
        ranges: Ranges,
        boxes: dict[str, dict[Any, list[list[Interval]]]],
    ) -> None:
        """Collect the box of each reference, relative to the variables outside; references that move alike form one
        group.
        """
        for node in body:
            if isinstance(node, For):
                self.steps[node.var] = _divisor(node, self.steps)
                more = {**inner, node.var: _span(node, ranges)}
                self._boxes(node.body, more, {**ranges, node.var: _range(node, ranges)}, boxes)
            elif isinstance(node, If):
                self._boxes(node.then, inner, ranges, boxes)
                self._boxes(node.orelse, inner, ranges, boxes)
            elif not isinstance(node, Count):
                for access in accesses(node):
                    parts = [_relative(form, inner) for form in self._subscripts(access.element)]
                    group = boxes.setdefault(access.element.array.name, {}).setdefault(tuple(b for b, _ in parts), [])
                    group.append([extent for _, extent in parts])

    def _subscripts(self, element: Element) -> tuple[_Linear, ...]:
        if id(element) not in self.forms:
            self.forms[id(element)] = element, tuple(map(_linear, element.subscripts))
        return self.forms[id(element)][1]

    def _units(self, moving: Any, group: Sequence[Sequence[Interval]], array: Array, unit: int | None) -> int:
        """The units that the bounding box of a group touches: contiguous runs, each as long as possible."""
        box = [(min(low for low, _ in d), max(high for _, high in d)) for d in zip(*group, strict=True)]
        dims = [d.evaluate({}) for d in array.dims]
        if array.column_major:
            box, dims, moving = box[::-1], dims[::-1], moving[::-1]
        length = [high - low + 1 for low, high in box]
        strides = [prod(dims[k + 1 :]) for k in range(len(dims))]
        last = len(dims) - 1
        while last > 0 and length[last] == dims[last]:  # whole rows follow each other without a gap: one run
            last -= 1
        run = length[last] * strides[last]
        per_unit = max(1, (unit or 0) // array.type.bytes)
        begins = [sum(stride * low for stride, (low, _) in zip(strides, box, strict=True))]
        begins += [strides[k] for k in range(last) if length[k] > 1]
        for stride, terms in zip(strides, moving, strict=True):
            begins += [stride * c * self.steps.get(name, 1) for name, c in terms]
        # A run that does not begin on a line may have a single element in its first one, and the other run - 1 from the
        # next one on.
        aligned = all(b % per_unit == 0 for b in begins)
        most = -(-run // per_unit) if aligned else -(-(run - 1) // per_unit) + 1
        return int(prod(length[:last]) * most)


def _divisor(loop: For, steps: Mapping[str, int]) -> int:
    """A number that divides every value of a loop's variable; 0 if all are 0."""
    found = loop.step.evaluate({})
    for start in _options(loop.start, Max):
        form = affine(start)
        found = gcd(found, form.constant, *(c * steps.get(n, 1) for n, c in form.coefficients().items()))
        if form.hidden():
            return 1
    return found if not isinstance(loop.start, Max) else 1


def _options(bound: IntExpr, kind: type[Min] | type[Max]) -> tuple[IntExpr, ...]:
    return bound.terms if isinstance(bound, kind) else (bound,)


def _interval(form: Affine, ranges: Ranges) -> Interval:
    """The interval of an affine form. Raises NoBound if it is not affine in the variables of `ranges`."""
    low = high = form.constant
    for term, c in form.terms:
        if not isinstance(term, Sym) or term.name not in ranges:
            raise NoBound(f"{term} is not affine in the loops")
        a, b = ranges[term.name]
        low, high = low + min(c * a, c * b), high + max(c * a, c * b)
    return low, high


def _trips(loop: For, ranges: Ranges) -> Interval:
    """Lower bound (0 if the loop may be empty) and upper bound on the iterations of one execution of a loop."""
    step = loop.step.evaluate({})
    spans = [
        _interval(affine(sub(stop, start)), ranges)
        for stop in _options(loop.stop, Min)
        for start in _options(loop.start, Max)
    ]
    least, most = (min(s[side] for s in spans) for side in (0, 1))
    return max(0, -(-least // step)), max(0, -(-most // step))


def _range(loop: For, ranges: Ranges) -> Interval:
    """The interval of a loop's variable; a single value if the loop is empty."""
    low = max(_interval(affine(s), ranges)[0] for s in _options(loop.start, Max))
    high = min(_interval(affine(s), ranges)[1] for s in _options(loop.stop, Min)) - 1
    return low, max(low, high)


def _span(loop: For, ranges: Ranges) -> tuple[_Linear, int]:
    """(the start of a loop, how far it runs from there at most); for a `max`, one of its terms, a lower bound of the
    start.
    """
    starts = _options(loop.start, Max)
    start = next((s for s in starts if not isinstance(s, Const)), starts[0])
    step = loop.step.evaluate({})
    far = min(_interval(affine(sub(stop, start)), ranges)[1] for stop in _options(loop.stop, Min))
    return _linear(start), max(0, -(-far // step) - 1) * step


def _linear(expression: IntExpr) -> _Linear:
    """The linear form of an expression. Raises NoBound if it is not affine."""
    form = affine(expression)
    if form.hidden():
        raise NoBound(f"{expression} is not affine")
    return form.constant, form.coefficients()


def _relative(form: _Linear, inner: Inner) -> tuple[Any, Interval]:
    """(the part of a subscript in the variables outside, the interval of the rest)."""
    low = high = form[0]
    terms = dict(form[1])
    for var in reversed(inner):  # innermost first: a start may depend on the surrounding loops
        c = terms.pop(var, 0)
        if not c:
            continue
        (constant, coefficients), spread = inner[var]
        for name, k in coefficients.items():
            terms[name] = terms.get(name, 0) + c * k
        low, high = low + c * constant + min(0, c * spread), high + c * constant + max(0, c * spread)
    return tuple(sorted((n, c) for n, c in terms.items() if c)), (low, high)


def _same(body: Sequence[Node], array: str, moving: set[str], ranges: Ranges) -> bool:
    """Whether the body certainly touches the same elements of an array, whatever values the variables `moving` have."""
    for node in body:
        if isinstance(node, For):
            changes = bool((node.start.symbols() | node.stop.symbols()) & moving)
            if changes and not _trips(node, ranges)[0] and _touches(node.body, array):
                return False
            inside = {**ranges, node.var: _range(node, ranges)}
            if not _same(node.body, array, moving | ({node.var} if changes else set()), inside):
                return False
        elif isinstance(node, If):
            if _touches((node,), array):
                return False
        elif not isinstance(node, Count):
            for access in accesses(node):
                used = frozenset().union(*(s.symbols() for s in access.element.subscripts))
                if access.element.array.name == array and used & moving:
                    return False
    return True


def _touches(body: Sequence[Node], array: str) -> bool:
    return any(a.element.array.name == array for s in _statements(body) for a in accesses(s))
