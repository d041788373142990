"""Elements, slices and other views of arrays. Python counts negative subscripts from the end, and clips slices
at the ends of an array.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import Any

from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.python.arithmetic import Arithmetic
from roofdsl.frontends.python.context import Context
from roofdsl.frontends.python.values import ONE, ZERO, At, Axis, Constant, Items, Value, View
from roofdsl.lang.record import Record, replace

_GATHER = "write a .roof kernel with an index array (docs/sparse.md), or take the elements in the order of their use"


class Slice(Record):
    """`start:stop:step` with the nodes of its parts."""

    start: Any
    stop: Any
    step: Any
    node: ast.Slice


class Part(Record):
    """The part of an axis that a subscript selects: `start + step * index` along a new axis, or `start` alone."""

    start: Poly
    extent: Poly | None = None
    step: Poly = ONE


class Indexing:
    """Makes views."""

    def __init__(self, context: Context, arithmetic: Arithmetic) -> None:
        self.context, self.arithmetic = context, arithmetic

    def subscript(self, base: Value, index: Any, node: ast.Subscript) -> Value:
        """`base[index]`. Raises Refused for anything that is not a view."""
        items = list(index.values) if isinstance(index, Items) and isinstance(node.slice, ast.Tuple) else [index]
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if base.is_scalar:
            self.context.refuse("py-shape", "a number has no elements", node)
        used = sum(1 for i in items if not (isinstance(i, Constant) and i.value in (None, ...)))
        rank = len(base.shape)
        if used > rank:
            message = f"this array has {rank} dimension{'s' * (rank > 1)}, and takes no more subscripts"
            self.context.refuse("py-shape", message, node)
        parts: list[Part | None] = []
        axis = 0
        for item, own in zip(items, nodes, strict=True):
            if isinstance(item, Constant) and item.value is None:
                parts.append(None)
            elif isinstance(item, Constant) and item.value is ...:
                parts += [Part(ZERO, e) for e in base.shape[axis : axis + rank - used]]
                axis += rank - used
            else:
                parts.append(self._part(item, base.shape[axis], own))
                axis += 1
        parts += [Part(ZERO, e) for e in base.shape[axis:]]
        return self.taken(base, parts, node)

    def taken(self, base: Value, parts: Sequence[Part | None], node: ast.AST) -> Value:
        """The parts of a value, one for each of its axes in order; None is a new axis."""
        extents = [ONE if p is None else p.extent for p in parts]
        shape = tuple(e for e in extents if e is not None)
        places: list[tuple[Part, int | None]] = []
        new = 0
        for p in parts:
            if p is not None:
                places.append((p, new if p.extent is not None else None))
            new += p is None or p.extent is not None
        if base.view is None:

            def at(indices: Sequence[Poly]) -> Any:
                return base.at([p.start if k is None else p.start + p.step * indices[k] for p, k in places])

            return _like(base, shape, at, _strides_of_parts(_strides(base), parts))
        axes: list[Axis] = []
        for a in base.view.axes:
            if a.axis is None:
                axes.append(a)
                continue
            p, k = places[a.axis]
            axes.append(Axis(a.start + a.step * p.start, k, a.step * p.step if k is not None else ONE))
        return self.context.read(View(base.view.buffer, tuple(axes), shape), node)

    # ---- one subscript ----

    def _part(self, item: Any, extent: Poly, node: ast.expr) -> Part:
        context = self.context
        if isinstance(item, Slice):
            return self._slice(item, extent)
        if isinstance(item, Constant) and isinstance(item.value, bool):
            context.refuse("py-index", "a truth value is no subscript", node)
        if isinstance(item, Items) or (isinstance(item, Value) and not item.is_scalar):
            mask = isinstance(item, Value) and item.type == "bool"
            message = "this subscript is an array, so data choose which elements are read"
            if mask:
                message = "which elements a mask chooses depends on data"
            context.refuse("py-index", message, node, "use `np.where(mask, a, b)`" if mask else _GATHER)
        if isinstance(item, Value) and not item.origins:
            context.refuse("py-index", "this subscript depends on data", node, _GATHER)
        index = self.arithmetic.integer(item, node, "a subscript")
        if not index.is_affine_in(r.var for r in context.facts.ranges):
            message = "this subscript multiplies loop variables or sizes, and is not affine"
            context.refuse("py-index", message, node, "give the array more dimensions, and write `a[i, j]`")
        index = self.position(index, extent, node, "this subscript")
        context.expect(extent - index - 1, node, f"this is beyond the end: there are {extent} elements")
        return Part(index)

    def position(self, index: Poly, extent: Poly, node: ast.AST, what: str) -> Poly:
        """A subscript, counted from the beginning of the array."""
        context = self.context
        if context.proven(-index - 1):
            index += extent
        help = "Python counts negative subscripts from the end; begin the loop later, or write the subscript as `n - k`"
        context.need(index, node, f"{what} may be negative", help)
        return index

    def _slice(self, item: Slice, extent: Poly) -> Part:
        context, node = self.context, item.node
        step = self._integer(item.step, node.step) if item.step is not None else ONE
        if step.value is None or step.value == 0:
            context.refuse("py-index", "the step of a slice is a number other than 0", node.step or node)
        back = step.value < 0
        start = extent - 1 if back else ZERO
        if item.start is not None and node.lower is not None:
            start = self.position(self._integer(item.start, node.lower), extent, node.lower, "this start")
            if back:
                self._within(start + 1, extent, node.lower)
        if item.stop is None or node.upper is None:
            count = start + 1 if back else extent - start
        else:
            stop = self._stop(self._integer(item.stop, node.upper), extent, node.upper, back)
            count = start - stop if back else stop - start
        size = abs(step.value)
        return Part(start, count if size == 1 else quotient("//", count + size - 1, size), step)

    def _stop(self, stop: Poly, extent: Poly, node: ast.AST, back: bool) -> Poly:
        context = self.context
        if context.proven(-stop - 1):
            return stop + extent  # if it is still negative, the slice is empty
        help = "Python counts a negative stop from the end; write the stop so that it is never negative"
        context.need(stop, node, "this stop may be negative", help)
        if not back:
            self._within(stop, extent, node)
        return stop

    def _within(self, stop: Poly, extent: Poly, node: ast.AST) -> None:
        message = f"this may be beyond the end, where Python cuts the slice off: there are {extent} elements"
        self.context.need(extent - stop, node, message, "let the slice end within the array")

    def _integer(self, found: Any, node: ast.AST | None) -> Poly:
        assert node is not None
        return self.arithmetic.integer(found, node, "a bound of a slice")

    # ---- other views ----

    def permuted(self, base: Value, order: Sequence[int], node: ast.AST) -> Value:
        """The value with its axes in another order: axis k of the result is axis `order[k]`."""
        shape = tuple(base.shape[a] for a in order)
        back = {a: k for k, a in enumerate(order)}
        if base.view is None:
            at = lambda indices: base.at([indices[back[a]] for a in range(len(order))])  # noqa: E731
            old = _strides(base)
            return _like(base, shape, at, None if old is None else tuple(old[a] for a in order))
        axes = tuple(a if a.axis is None else Axis(a.start, back[a.axis], a.step) for a in base.view.axes)
        return self.context.read(View(base.view.buffer, axes, shape), node)

    def flipped(self, base: Value, axes: Sequence[int], node: ast.AST) -> Value:
        """The value with some axes reversed."""
        minus = Poly.number(-1)
        parts = [Part(e - 1, e, minus) if k in axes else Part(ZERO, e) for k, e in enumerate(base.shape)]
        return self.taken(base, parts, node)

    def diagonal(self, base: Value, node: ast.AST) -> Value:
        """The main diagonal of a matrix."""
        if len(base.shape) != 2 or not self.context.same(*base.shape):
            self.context.refuse("py-shape", "a diagonal is read only of a square matrix", node)
        if base.view is None:
            at = lambda indices: base.at([indices[0], indices[0]])  # noqa: E731
            old = [] if (known := _strides(base)) is None else [stride for stride in known if stride is not None]
            return _like(base, base.shape[:1], at, (old[0] + old[1],) if len(old) == len(base.shape) else None)
        axes = tuple(a if a.axis is None else Axis(a.start, 0, a.step) for a in base.view.axes)
        return self.context.read(View(base.view.buffer, axes, base.shape[:1]), node)

    def reshaped(self, base: Value, shape: Sequence[Poly], node: ast.AST) -> Value:
        """The value with other dimensions: axes of 1 come and go, and others are split or joined by numbers."""
        groups = _groups(list(base.shape), list(shape))
        if groups is None:
            message = f"from {_listed(base.shape)} to {_listed(shape)} elements, subscripts are not affine"
            help = "keep the dimensions, or make the inner ones numbers"
            self.context.refuse("py-shape", message, node, help)

        def at(indices: Sequence[Poly]) -> Any:
            old: list[Poly] = []
            for before, after, first in groups:
                linear = ZERO
                for k, extent in enumerate(after):
                    linear = linear * extent + indices[first + k]
                found: list[Poly] = []
                for extent in reversed(before[1:]):
                    assert extent.value is not None
                    found.insert(0, quotient("%", linear, extent.value))
                    linear = quotient("//", linear, extent.value)
                old += [linear, *found] if before else []
            return base.at(old)

        joined = itertools.accumulate((len(before) for before, _, _ in groups), initial=0)
        runs = [range(first, first + len(before)) for first, (before, _, _) in zip(joined, groups, strict=False)]
        if not all(self.adjacent(base, run) for run in runs):
            return replace(_like(base, tuple(shape), at), simple=False)
        old = _strides(base)
        strides = None if old is None else _reshaped_strides(base.shape, old, groups, runs)
        return _like(base, tuple(shape), at, strides)

    def adjacent(self, base: Value, axes: Sequence[int], *, innermost: bool = False) -> bool:
        """Whether elements along these axes, taken as one, are equally far apart in memory: otherwise numpy copies them
        to join the axes, as in `x.T.reshape(12)`. innermost: whether they are side by side, too.
        """
        strides = _strides(base)
        if strides is None:
            return True
        wide = [(step, base.shape[k]) for k in axes if base.shape[k] != ONE and (step := strides[k]) is not None]
        if innermost and wide and wide[-1][0] != ONE:
            return False
        return all(a == extent * b for (a, _), (b, extent) in itertools.pairwise(wide))


Strides = tuple[Poly | None, ...]
"""The distances of elements along each axis, in elements; None for an axis along which a value is repeated."""


def _strides(value: Value) -> Strides | None:
    """None for what is not part of an array."""
    if value.view is None:
        return value.strides
    found: dict[int, Poly] = {}
    below = ONE
    for place, extent in zip(value.view.axes[::-1], value.view.buffer.dims[::-1], strict=True):
        if place.axis is not None:
            found[place.axis] = place.step * below
        below *= extent
    return tuple(found.get(k) for k in range(len(value.shape)))


def _strides_of_parts(strides: Strides | None, parts: Sequence[Part | None]) -> Strides | None:
    """Those of the parts of a value, one for each of its axes in order; None is a new axis."""
    if strides is None:
        return None
    left = iter(strides)
    found: list[Poly | None] = []
    for p in parts:
        old = None if p is None else next(left)
        if p is None or p.extent is not None:
            found.append(None if old is None or p is None else old * p.step)
    return tuple(found)


def _reshaped_strides(
    shape: Sequence[Poly],
    strides: Strides,
    groups: Sequence[tuple[list[Poly], list[Poly], int]],
    runs: Sequence[Sequence[int]],
) -> Strides:
    """The strides of a view in another shape: those of each group continue its innermost one."""
    found: dict[int, Poly] = {}
    for (_, after, first), run in zip(groups, runs, strict=True):
        step = next((strides[k] for k in reversed(run) if shape[k] != ONE), None)
        for k in range(first + len(after) - 1, first - 1, -1):
            if step is None:
                break
            found[k] = step
            step = step * after[k - first]
    return tuple(found.get(k) for k in range(sum(len(after) for _, after, _ in groups)))


def _groups(old: list[Poly], new: list[Poly]) -> list[tuple[list[Poly], list[Poly], int]] | None:
    """Groups of axes before, of axes after, and the first of the latter, with equal products; None if there is no
    such grouping.
    """
    groups: list[tuple[list[Poly], list[Poly], int]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        # From (6, n) to (2, 3, n): 6 is split into 2 and 3, and n is a group of its own.
        before, after, first = old[i : i + 1], new[j : j + 1], j
        if before == [ONE] != after:
            after = []
        elif after == [ONE] != before:
            before = []
        i, j = i + len(before), j + len(after)
        while before and after and _product(before) != _product(after):
            grow = _product(after) if _smaller(_product(after), _product(before)) else _product(before)
            if grow == _product(after) and j < len(new):
                after, j = [*after, new[j]], j + 1
            elif i < len(old):
                before, i = [*before, old[i]], i + 1
            else:
                return None
        joined = (*before[1:], *after[1:])
        if any(e.value is None for e in joined) or (not (before and after) and _product([*before, *after]) != ONE):
            return None
        groups.append((before, after, first))
    return groups


def _product(extents: Sequence[Poly]) -> Poly:
    found = ONE
    for e in extents:
        found *= e
    return found


def _smaller(a: Poly, b: Poly) -> bool:
    """A guess whether the first product lacks factors that the second one has."""
    if a.value is not None and b.value is not None:
        return a.value < b.value
    return max(map(len, a.terms), default=0) < max(map(len, b.terms), default=0) or len(str(a)) < len(str(b))


def _like(base: Value, shape: tuple[Poly, ...], at: At, strides: Strides | None = None) -> Value:
    """The elements of a value in another arrangement."""
    # A number taken from an array is a value of its own: it stays when the array changes.
    simple = base.simple and bool(shape)
    return replace(base, shape=shape, at=at, view=None, strides=strides, simple=simple, number=None)


def _listed(extents: Sequence[Poly]) -> str:
    return " x ".join(map(str, extents))
