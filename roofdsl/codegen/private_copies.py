"""A nest whose threads each have their own copy of some `temp` arrays, for CUDA.

A copy of few elements is a local array, which the compiler keeps in registers. All threads' other copies together
form one buffer, with a subscript for each loop over threads: along x, the copies of neighboring threads lie side by
side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any

from roofdsl.codegen.emitter import chain_of
from roofdsl.codegen.function_parts import positions
from roofdsl.codegen.identifiers import all_names
from roofdsl.codegen.launch_grids import Step, launches_at_most, trips_at_most
from roofdsl.codegen.threads import Nest, Spread, loops_of_threads, plan_nest
from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.affine import NotAffineError, Range, at_least, at_most
from roofdsl.loops.integers import Compare, Condition, Const, FloorDiv, IntExpr, Sym, add, mul, sub
from roofdsl.loops.model import Array, Assign, Element, For, If, IntValue, Kernel, Let, Node, ScalarRef
from roofdsl.loops.private_loops import PrivateLoop

OWN_BYTES = 512
"""The largest local arrays of a thread, all together: half of the 255 registers that it can have."""

MOST_BYTES = 1 << 30
"""The largest buffers of a launch, all together."""

LAUNCH_ITERATIONS = 256
"""One saved launch is worth this many executions of statements by one thread."""


class Copies(Record):
    """A nest with copies of the arrays and scalars `names`.

    counted: the nest as the caches see it, without what is in registers, its loops over threads marked parallel. own:
    local arrays; scalars: those that are variables of a thread. buffers: arrays of all threads' copies, each with the
    name of the array that is copied; buffer_bytes: of all of them. iterations: executions of statements by one thread,
    at most; None if their number has no form.
    """

    names: tuple[str, ...]
    nest: Nest
    counted: For
    own: tuple[Array, ...]
    scalars: frozenset[str]
    buffers: tuple[tuple[str, Array], ...]
    buffer_bytes: IntExpr
    iterations: IntExpr | None

    def limits(self, otherwise: Sequence[Step]) -> tuple[tuple[Condition, str], ...]:
        """The conditions for one launch with copies instead of the steps `otherwise`, each with the reason against it
        if it does not hold.

        The buffers must fit, and a thread must not run so many iterations that more launches with more threads take
        less time: LAUNCH_ITERATIONS for each.
        """
        found: list[tuple[Condition, str]] = []
        if self.buffers:
            fits = Compare("<=", self.buffer_bytes, Const(MOST_BYTES))
            found.append((fits, f"a copy for each thread would take more than {MOST_BYTES >> 30} GiB"))
        launches = launches_at_most(otherwise)
        if self.iterations is not None and launches not in (None, Const(1)):
            few = Compare("<=", self.iterations, mul(Const(LAUNCH_ITERATIONS), launches))
            found.append((few, "one launch with a copy for each thread would leave a thread too much work"))
        return tuple(found)


def private_copies(
    kernel: Kernel,
    root: For,
    position: LoopId,
    free: Mapping[LoopId, int],
    private: Mapping[LoopId, PrivateLoop],
    *,
    taken: Collection[str] = (),
) -> Copies | None:
    """The nest that begins with `root` (at `position`), its threads with copies; None if no loop over threads needs
    copies, or if the iterations of these loops cannot be numbered for a buffer.

    taken: names that buffers must not have, in addition to the kernel's.
    """
    either = {**free, **{loop: found.outside for loop, found in private.items()}}
    planned = plan_nest(kernel, root, position, either)
    kept = {} if planned is None else _kept(root, position, planned.moved, private)
    if not kept:
        return None
    arrays = {a.name: a for a in kernel.arrays}
    scalars = frozenset(name for name in kept if arrays[name].is_scalar)
    own = _local({name: arrays[name] for name in kept if name not in scalars}, kept)
    counted = _without(root, own.keys() | scalars)
    places = {name: _Place(array, kept[name]) for name, array in own.items()}
    near = list(chain_of(counted))[-1].body
    nest = plan_nest(kernel, _moved(root, places), position, either, near)
    seen = plan_nest(kernel, counted, position, either)
    if nest is None or seen is None:
        return None
    shared = {name: kept[name] for name in kept if name not in own and name not in scalars}
    beside = _buffers(kernel, nest, position, shared, {*taken, *all_names(kernel)})
    if beside is None:
        return None
    nest, seen = _in_place(nest, beside), _in_place(seen, beside)
    counted = loops_of_threads(seen) or seen.root
    buffers = tuple((name, place.array) for name, place in beside.items())
    size = add(*(mul(Const(a.type.bytes), *a.dims) for _, a in buffers))
    return Copies(
        tuple(kept), nest, counted, tuple(own.values()), scalars, buffers, size, _iterations(nest, kernel, position)
    )


def _kept(
    root: For, position: LoopId, moved: Sequence[str], private: Mapping[LoopId, PrivateLoop]
) -> dict[str, tuple[int, ...]]:
    """The arrays and scalars to copy for the loops that become threads, each with the dimensions that a copy needs."""
    found: dict[str, tuple[int, ...]] = {}
    for depth, loop in enumerate(chain_of(root)):
        known = private.get((*position, *(0,) * depth))
        if known is not None and loop.var in moved:
            found |= {copy.name: copy.kept for copy in known.copies}  # of the innermost loop: the fewest
    return found


def _local(arrays: Mapping[str, Array], kept: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """The arrays of which a thread's copy is small enough for registers, as local arrays."""
    found: dict[str, Array] = {}
    left = OWN_BYTES
    for name, array in arrays.items():
        dims = tuple(array.dims[d] for d in kept[name]) or (Const(1),)
        if any(extent.symbols() for extent in dims):
            continue
        size = array.type.bytes * prod(extent.evaluate({}) for extent in dims)
        if size <= left:
            left -= size
            found[name] = replace(array, name=f"own_{name}", dims=dims, column_major=False)
    return found


# ---- buffers ----


class _Place(Record):
    """Where a copy's elements are: in `array`, at those of their subscripts in `kept` and then at `counters`."""

    array: Array
    kept: tuple[int, ...]
    counters: tuple[IntExpr, ...] = ()


def _buffers(
    kernel: Kernel, nest: Nest, position: LoopId, kept: Mapping[str, tuple[int, ...]], taken: set[str]
) -> dict[str, _Place] | None:
    """A place in a buffer for each array; None if the iterations of the loops over threads cannot be numbered."""
    if not kept:
        return {}
    counters, extents = [], []
    ranges = _around(kernel, position) | {loop.var: Range(loop.start, loop.stop) for loop in chain_of(nest.root)}
    for s in sorted(nest.spread, key=lambda s: -s.dimension):  # x last
        step = s.loop.step
        others = {v: r for v, r in ranges.items() if v != s.loop.var}
        try:
            start, stop = at_least(s.loop.start, others), at_most(s.loop.stop, others)
        except NotAffineError:
            return None
        if not isinstance(step, Const) or s.level != "grid":
            return None
        # Iterations count from the least start that the other loops allow, so that threads number them alike.
        place, extent = sub(Sym(s.loop.var), start), sub(stop, start)
        counters.append(place if step == Const(1) else FloorDiv(place, step))
        extents.append(extent if step == Const(1) else FloorDiv(add(extent, step, Const(-1)), step))
    found = {}
    for array in kernel.arrays:
        if array.name in kept:
            names = (f"{array.name}_each{k if k > 1 else ''}" for k in count(1))
            name = next(name for name in names if name not in taken)
            taken.add(name)
            dims = (*(array.dims[d] for d in kept[array.name]), *extents)
            buffer = replace(array, name=name, dims=dims, column_major=False)
            found[array.name] = _Place(buffer, kept[array.name], tuple(counters))
    return found


def _around(kernel: Kernel, position: LoopId) -> dict[str, Range]:
    """The values of the variables of the loops around a position, outermost first."""
    loops = dict(positions(kernel.body))
    outer = [loops[position[:k]] for k in range(1, len(position))]
    return {loop.var: Range(loop.start, loop.stop) for loop in outer}


def _in_place(nest: Nest, places: Mapping[str, _Place]) -> Nest:
    """The nest with the elements of arrays at other places."""
    root = _moved(nest.root, places)
    new = dict(zip(map(id, chain_of(nest.root)), chain_of(root), strict=True))
    return replace(nest, root=root, spread=tuple(Spread(new[id(s.loop)], s.dimension, s.level) for s in nest.spread))


def _moved(part: Any, places: Mapping[str, _Place]) -> Any:
    """Statements with the elements of some arrays at other places."""
    if type(part) is tuple:
        return tuple(_moved(p, places) for p in part)
    if isinstance(part, Element) and part.array.name in places:
        place = places[part.array.name]
        subscripts = (*(part.subscripts[d] for d in place.kept), *place.counters)
        return replace(part, array=place.array, subscripts=subscripts or (Const(0),))
    return _mapped(part, lambda p: _moved(p, places))


def _mapped(part: Any, change: Any) -> Any:
    """A part of a statement with its own parts changed; integers and types have none that matter here."""
    if isinstance(part, Record) and not isinstance(part, Source | ElementType | IntExpr | Condition | Array):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n != "span"}
        return replace(part, **{n: change(value) for n, value in fields.items()})
    return part


# ---- what the caches see ----


def _without(root: For, names: frozenset[str] | set[str]) -> For:
    """The nest without the elements and scalars that each thread has for itself: a store to one becomes a `let`."""
    number = count(1)

    def changed(part: Any) -> Any:
        if type(part) is tuple:
            return tuple(changed(p) for p in part)
        if isinstance(part, Element | ScalarRef) and part.array.name in names:
            return IntValue(Const(0), part.span)
        if isinstance(part, Assign) and part.target.array.name in names:
            return Let(f"own_{next(number)}", part.target.array.type, changed(part.value), part.span)
        return _mapped(part, changed)

    found: For = changed(root)
    return found


# ---- how long a thread takes ----


def _iterations(nest: Nest, kernel: Kernel, position: LoopId) -> IntExpr | None:
    spread = {id(s.loop) for s in nest.spread}

    def executions(nodes: Sequence[Node], ranges: Mapping[str, Range]) -> IntExpr:
        total: list[IntExpr] = []
        for node in nodes:
            if isinstance(node, For):
                inner = executions(node.body, {**ranges, node.var: Range(node.start, node.stop)})
                total.append(inner if id(node) in spread else mul(trips_at_most(node, ranges), inner))
            elif isinstance(node, If):
                total.append(executions((*node.then, *node.orelse), ranges))
            else:
                total.append(Const(1))
        return add(*total)

    try:
        return executions((nest.root,), _around(kernel, position))
    except NotAffineError:
        return None
