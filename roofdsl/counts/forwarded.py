"""Loads of an innermost loop that also stores to their array: which of them nvcc drops, and which it makes early.

In `x[i + 1, j] = 0.5 * x[i, j]` with i innermost, an iteration loads what the one before stored. nvcc unrolls the loop
by four, and three of four iterations then have the value in a register. The fourth loads it again. In
`x[j, i] += x[j, i + 1]`, the addresses of four iterations are at distances that nvcc knows, so it loads for all four of
them before it stores. In columns, as in `x[i, j] += x[i + 1, j]`, it does not know how long a row is, and whether two
elements are the same. If the loop also stores to another array, loads from rows stay where they are.

This was read from the PTX of nvcc 13.0 and NVRTC 13.5, and from the machine code for compute capability 8.0
(`tests/codegen/test_unrolled.py`). NVRTC 13.5 drops more loads from rows. A single loop in a single thread drops all of
them. These are counted, so that the time is rather too long.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.registers import Kept
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, IntExpr, Sym, add, sub


def is_forwarded(kept: Kept, every: Sequence[Kept]) -> bool:
    """Whether the iteration before stored the element, and nothing later that may be the same element.

    every: all registers of the kernel. Only the last store to the array counts.
    """
    stores = stores_beside(kept, every)
    own = [store for store in stores if store.element.array.name == kept.element.array.name]
    if len(own) != 1 or (len(own) < len(stores) and _advance(kept)):
        return False
    first_load, first_store = (min(place.position for place in of.places) for of in (kept, own[0]))
    loop = kept.places[0].loops[-1]
    next_ones = {loop.var: add(Sym(loop.var), loop.step)}
    pairs = zip(kept.element.subscripts, own[0].element.subscripts, strict=True)
    return first_load <= first_store and all(_apart(mine.substitute(next_ones), other) == 0 for mine, other in pairs)


def is_early(kept: Kept, every: Sequence[Kept], unrolled: int) -> bool:
    """Whether so many iterations can load the element before any of them stores: all addresses are at known distances
    from each other, and no iteration loads what one of the others stores before.
    """
    stores, advance = stores_beside(kept, every), _advance(kept)
    if not stores or not advance:
        return False
    for store in stores:
        if store.element.array.name != kept.element.array.name:
            return False
        pairs = zip(kept.element.subscripts, store.element.subscripts, strict=True)
        apart = [_apart(other, mine) for mine, other in pairs]
        within = apart.pop(0 if kept.element.array.column_major else -1)
        if within is None or any(rows != 0 for rows in apart):
            return False
        if within in {advance * k for k in range(1, unrolled)}:
            return False
    return True


def stores_beside(kept: Kept, every: Sequence[Kept]) -> tuple[Kept, ...]:
    """What the body of the element's innermost loop stores; nothing if the loop is not innermost, has conditions, or
    steps by a number that nvcc does not know.
    """
    depth, first = kept.depth, kept.places[0]
    if not 0 < depth == len(first.loops) or not isinstance(first.loops[-1].step, Const):
        return ()
    body = first.position[:depth]
    inside = [(other, place) for other in every for place in other.places if place.position[:depth] == body]
    if any(len(place.loops) > depth or any(at == depth for at, _ in place.guards) for _, place in inside):
        return ()
    return tuple({id(other): other for other, _ in inside if other.stored}.values())


def _advance(kept: Kept) -> int:
    """By how many neighbors an iteration of the innermost loop moves along a row; 0 if it moves to other rows, or by
    numbers that differ.
    """
    loop, subscripts = kept.places[0].loops[-1], kept.element.subscripts
    fastest = 0 if kept.element.array.column_major else len(subscripts) - 1
    form = affine(subscripts[fastest])
    others = (s for k, s in enumerate(subscripts) if k != fastest)
    if loop.var in form.hidden() or any(loop.var in s.symbols() for s in others) or not isinstance(loop.step, Const):
        return 0
    return form.coefficients().get(loop.var, 0) * loop.step.value


def _apart(left: IntExpr, right: IntExpr) -> int | None:
    """The difference, if it is a number."""
    form = affine(sub(left, right))
    return None if form.terms else form.constant
