"""The two bounds between which the traffic of an array lies if it depends on data: alpha, as a `Share`."""

from __future__ import annotations

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.derived import Quantity, Ratio, Share, combined
from roofdsl.counts.indirect_groups import Counted, Group, PlacedAccesses, all_written, have_same_form, places, smallest
from roofdsl.loops.accesses import Access
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Array, Element, HasAlpha, Read, Takes, Traffic
from roofdsl.loops.summed import Nest
from roofdsl.sets.quasi import Quasi

ALPHA = "alpha_"
"""Alpha's symbol is this and the name of the array."""


def share_of(counted: Counted, group: Group, convention: Traffic, cache_bytes: int | None) -> Share | None:
    """What decides the traffic of an array through a cache (None: one that holds everything) besides the sizes.

    None if nothing else does. Raises NoClosedForm for arrays whose traffic no single share describes.
    """
    array = group.array
    if cache_bytes is None and is_settled(counted, group):
        return None
    accesses = counted.accesses(group.every)
    could = counted.times(accesses, array.type.bytes)
    least: tuple[Quantity, ...]
    most: tuple[Quantity, ...]
    if group.chosen and group.known:
        if not is_settled(counted, group):
            raise NoClosedForm(f"the loops reach some elements of {array.name}, and the data choose others")
        least = most = (counted.touched(array, group.known),)
    elif group.chosen:
        least, most = _chosen(counted, group, accesses)
    else:
        least = most = (counted.touched(array, group.known),)
        if counted.line_bytes is None and have_same_form(least[0], could):
            return None  # each element is accessed once
    if cache_bytes is not None:
        most = _misses(counted, group, accesses, cache_bytes)
    _require_one_share(group, convention, cache_bytes)
    stated = {f.array: f.alpha for f in counted.kernel.facts if isinstance(f, HasAlpha)}
    references = dict.fromkeys(_text(a.element) for _, some in group.every for a in some)
    return Share(
        ALPHA + array.name,
        array.name,
        tuple(references),
        array.type.bytes,
        accesses,
        tuple(Ratio(q, could) for q in least),
        tuple(Ratio(q, could) for q in most),
        group.is_read and array.intent in ("in", "inout"),
        group.is_written and array.intent != "temp",
        stated.get(array.name) if cache_bytes is not None else None,
    )


def _require_one_share(group: Group, convention: Traffic, cache_bytes: int | None) -> None:
    """Raises NoClosedForm where the loads of an array and its stores are different shares of its accesses."""
    name = group.array.name
    if group.is_written and not group.is_always_written:
        raise NoClosedForm(f"how much of {name} is written before it leaves a cache depends on the data")
    if cache_bytes is not None and group.is_written and group.array.intent == "temp":
        raise NoClosedForm(f"how much of {name}, which is `temp`, leaves a cache depends on the data")
    loads_vary = group.is_read and not group.is_always_read and convention == "load_store"
    if loads_vary and (cache_bytes is not None or group.array.intent == "inout"):
        raise NoClosedForm(f"how much of {name} is read before it is written depends on the data")


def is_settled(counted: Counted, group: Group) -> bool:
    """Whether the data change nothing of the compulsory traffic: the loops alone reach the whole array, or all of it
    that is accessed.
    """
    if not group.chosen:
        return True
    if not counted.reaches_all(group.array, group.known):
        return False
    written_first = group.array.intent in ("out", "temp") and all_written(group.known)
    return not group.is_written or written_first or group.is_always_written


def _text(element: Element) -> str:
    return f"{element.array.name}[{', '.join(map(str, element.subscripts))}]"


# ---- a cache that holds everything ----


def _chosen(counted: Counted, group: Group, accesses: Quantity) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """The fewest and the most bytes of different lines at places that the data choose.

    Where the data choose one row of a matrix, say, and the loops go along it, the fewest are the elements of one row,
    packed into as few lines as hold them: where a row begins in its line depends on which one it is.
    """
    array = group.array
    fixed: PlacedAccesses = tuple(
        (n, tuple(Access(n.place_without_data(a.element), a.is_write) for a in s)) for n, s in group.chosen
    )
    elements = counted.touched_elements(array, fixed)  # at one value of the index array
    taken = _values_taken(counted, group)
    single = have_same_form(elements, counted.number(array.type.bytes))
    if taken is not None:
        elements = counted.times(elements, taken)
    most = [counted.whole(array), counted.times(accesses, _line(counted, array))]
    if taken is not None and (counted.line_bytes is None or single):
        most.append(counted.times(counted.number(_line(counted, array)), taken) if single else elements)
    if have_same_form(elements, counted.whole_elements(array)):
        return (counted.whole(array),), (counted.whole(array),)
    if counted.line_bytes is None and taken is not None:
        return (elements,), (elements,)
    return (counted.in_lines(elements),), smallest(most)


def _values_taken(counted: Counted, group: Group) -> Quasi | None:
    """How many places the data choose in one dimension, if the kernel states it: `assume col takes m values`.

    None otherwise, and unless the whole index array is read, and the other subscripts take all of their values with
    each of its elements.
    """
    from roofdsl.counts.readable_forms import quasi_of

    nest = group.chosen[0][0]
    every = frozenset().union(*(places(some) for _, some in group.chosen))
    takes = {f.array: f.number for f in counted.kernel.facts if isinstance(f, Takes)}
    loops = {loop.var for loop in nest.loops}
    apart = not nest.conditions and not any((o.start.symbols() | o.stop.symbols()) & loops for o in nest.loops)
    if len(every) != 1 or len(group.chosen) != 1 or not apart:
        return None
    (subscripts,) = every
    reads = [s for s in subscripts if isinstance(s, Read)]
    chosen = [s for s in subscripts if nest.is_hidden(Element(group.array, (s,), group.array.span))]
    if len(reads) != 1 or chosen != reads or reads[0].element.array.name not in takes:
        return None
    index = next(g for g in counted.groups if g.array.name == reads[0].element.array.name)
    # A[col[k], j] takes m rows at each of the n values of j: m*n elements. In A[col[k], k], each row comes with one k.
    others = frozenset[str]().union(*(s.symbols() for s in subscripts if s is not reads[0]))
    shared = others & reads[0].symbols() & loops
    if index.chosen or shared or not counted.reaches_all(index.array, index.known):
        return None
    try:
        return quasi_of(takes[index.array.name])
    except ValueError:
        return None


def _line(counted: Counted, array: Array) -> int:
    return counted.line_bytes or array.type.bytes


# ---- a cache of some size ----


def _misses(counted: Counted, group: Group, accesses: Quantity, cache_bytes: int) -> tuple[Quantity, ...]:
    """The most bytes that a cache loads or stores of an array: a line for each access, fewer for streams.

    A stream accesses each element once, and in the innermost loop one after the other. If the lines of one iteration
    fit, each line of the stream is loaded once, and again only where that loop begins inside it.
    """
    array = group.array
    every = counted.times(accesses, _line(counted, array))
    if counted.line_bytes is None or group.chosen or len(group.known) != 1:
        return (every,)
    ((nest, some),) = group.known
    once = have_same_form(counted.touched_elements(array, group.known), counted.times(accesses, array.type.bytes))
    if len(places(some)) != 1 or not once or not _streams(counted, nest, some[0].element, cache_bytes):
        return (every,)
    again = counted.times(counted.begins(nest), counted.line_bytes)
    return (combined(counted.touched(array, group.known), again, 1), every)


def _streams(counted: Counted, nest: Nest, element: Element, cache_bytes: int) -> bool:
    """Whether an innermost loop moves from element to element, and the lines of one iteration fit."""
    if not nest.loops:
        return False
    inner = nest.loops[-1].var
    forms = [affine(s) for s in element.subscripts]
    last = 0 if element.array.column_major else len(forms) - 1
    steps = [f.coefficients().get(inner, 0) for f in forms]
    moves = [k for k, step in enumerate(steps) if step] == [last] and steps[last] == 1
    if not moves or any(inner in f.hidden() for f in forms) or nest.loops[-1].step != Const(1):
        return False
    # A line stays until the loop has moved over it only if all that the loop touches meanwhile fits.
    together = [n for n in counted.nests if inner in {loop.var for loop in n.loops} or inner in n.hidden]
    touched = sum(len(n.accesses()) for n in together)
    return all(n.loops[-1].var == inner for n in together) and touched * (counted.line_bytes or 0) <= cache_bytes
