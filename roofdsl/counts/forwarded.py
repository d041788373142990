"""Loads of an innermost loop that also stores to their array: which of them nvcc drops, and which it makes early.

In `x[i + 1, j] = 0.5 * x[i, j]` with i innermost, an iteration loads what the one before stored. nvcc unrolls the loop
by four, and three of four iterations then have the value in a register. The fourth loads it again. In
`x[j, i] += x[j, i + 1]`, the addresses of four iterations are at distances that nvcc knows, so it loads for all four of
them before it stores. In columns, as in `x[i, j] += x[i + 1, j]`, it does not know how long a row is, and whether two
elements are the same. If the loop also stores to another array, loads from rows stay where they are.

This was read from the PTX of nvcc 13.0 and NVRTC 13.5, and from the machine code for compute capability 8.0
(`tests/codegen/test_unrolled.py`). NVRTC 13.5 drops more loads from rows. A single loop in a single thread drops all of
them. All these are counted here, so the time may be somewhat too long.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.registers import Kept
from roofdsl.lang.record import replace
from roofdsl.loops.integers import Const, Sym, add
from roofdsl.loops.strides import apart_in_a_row, stride_of


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
    later = {loop.var: add(Sym(loop.var), loop.step)}
    next_one = replace(kept.element, subscripts=tuple(s.substitute(later) for s in kept.element.subscripts))
    return first_load <= first_store and apart_in_a_row(next_one, own[0].element) == 0


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
        apart = apart_in_a_row(store.element, kept.element)
        if apart is None or apart in {advance * k for k in range(1, unrolled)}:
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
    return stride_of(kept.element, kept.places[0].loops[-1])[1]
