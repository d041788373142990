"""Bytes between the registers and the nearest cache in compiled code, which keeps reused elements in registers.

The model counts every access as written (rule 10). Compiled code makes fewer accesses. An element that does not depend
on the inner loops is loaded before them and stored after them (invariant code motion, scalar replacement), and an
element that one iteration names several times is loaded once. The number of these loads and stores is a count of
iterations like any other, and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import PlacedStatement, scalar_bytes, statements
from roofdsl.loops.model import Assign, Element, If, Kernel, Let, Node
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.strides import apart_in_a_row


class _Use(Record):
    """One element as a statement names it; reads: whether the statement needs its value from memory.

    touched: isl.Map from the counters of the surrounding loops to the element.
    """

    placed: PlacedStatement
    element: Element
    reads: bool
    writes: bool
    touched: Any


_Meet = Callable[[_Use, _Use, int], bool]
"""Whether two uses may touch the same element in iterations that agree in so many outer loops."""


class Kept(Record):
    """An element that is kept in one register, and how often it is loaded and stored; `places` are the statements that
    share it.

    It is kept inside all but the `depth` outermost of the loops around it. This happens `times` times in all. `loaded`
    and `stored` say whether it is loaded before, and stored after, the loops inside which it is kept.
    """

    places: tuple[PlacedStatement, ...]
    element: Element
    depth: int
    times: int
    loaded: bool
    stored: bool


def compiled_bytes_at(kernel: Kernel, params: Mapping[str, int]) -> tuple[int, int]:
    """(loaded, stored) bytes between the registers and the nearest cache, as compiled.

    An element is loaded once before, and stored once after, the innermost loops that its subscripts do not depend on.
    The load and the store move out of as many loops as possible, until another access touches the element and one of
    the two writes. The element counts once for each iteration of the remaining loops in which it is touched. Statements
    of one body that name the same element share it. Scalars are loaded and stored once per execution (rule 8).

    Raises CommandError for missing or illegal sizes, and TooHard.
    """
    at = sized(kernel, params)
    loaded, stored = scalar_bytes(at.kernel)
    for kept in kept_at(at):
        size = kept.element.array.type.bytes * kept.times
        loaded, stored = loaded + size * kept.loaded, stored + size * kept.stored
    return loaded, stored


def kept_at(at: Sized) -> tuple[Kept, ...]:
    """All registers of a kernel. Raises TooHard."""
    from roofdsl.sets.library import limited

    found = []
    with limited(f"the registers of kernel {at.name}"):
        for together, others in _registers(at, _meet):
            first, writes = together[0], any(u.writes for u in together)
            depth = _depth(first, writes, others, _meet)
            places = tuple(u.placed for u in together)
            found.append(Kept(places, first.element, depth, _times(first, depth), first.reads, writes))
    return tuple(found)


def seen_at(at: Sized, threads: Collection[str] = ()) -> tuple[Kept, ...]:
    """All registers of a kernel for a compiler that compares subscripts, and proves nothing about loops.

    In `A[i, j] -= A[i, k] * A[k, j]` with k innermost, it cannot know that A[i, j] is not one of the elements that are
    loaded. So it stores A[i, j] in each iteration, but it does not load it again, since it has the stored value. The
    load and the store of such an element are two entries. Nothing moves out of the condition around it, nor out of the
    loops over `threads`, each of which has its own registers. Raises TooHard.
    """
    from roofdsl.sets.library import limited

    found = []
    with limited(f"the registers of kernel {at.name}"):
        for together, others in _registers(at, _may_meet):
            first, places = together[0], tuple(u.placed for u in together)
            own = [k + 1 for k, loop in enumerate(first.placed.loops) if loop.var in threads]
            least = max((*own, *(at for at, _ in first.placed.guards)), default=0)
            into, out = (max(least, _depth(first, writes, others, _may_meet)) for writes in (False, True))
            writes = any(u.writes for u in together)
            if first.reads and (into != out or not writes):
                found.append(Kept(places, first.element, into, _times(first, into), True, False))
            if writes:
                found.append(Kept(places, first.element, out, _times(first, out), first.reads and into == out, True))
    return tuple(found)


def alone(kernel: Kernel, placed: PlacedStatement) -> Kernel:
    """The kernel with only this statement; every loop around it is then one dimension of its instances."""
    body: tuple[Node, ...] = (placed.statement,)
    for depth in range(len(placed.loops), -1, -1):
        for at, condition in placed.guards:
            if at == depth:
                body = (If(condition, body, (), kernel.span),)
        if depth:
            body = (replace(placed.loops[depth - 1], body=body),)
    return replace(kernel, body=body)


def _uses(at: Sized) -> Iterator[_Use]:
    """The elements of every statement in textual order, each once."""
    import islpy as isl

    from roofdsl.sets.access_sets import build

    for placed in statements(at.kernel.body):
        if not isinstance(placed.statement, (Assign, Let)):
            continue
        found: dict[Element, _Use] = {}
        for r in build(alone(at.kernel, placed), at.values, None).references:
            depth = len(placed.loops)
            touched = r.location.project_out(isl.dim_type.in_, depth, r.location.dim(isl.dim_type.in_) - depth)
            touched = touched.set_tuple_name(isl.dim_type.in_, "T")
            before = found.get(r.element)
            reads, writes = (r.reads_first, r.writes) if before is None else (before.reads, before.writes or r.writes)
            found[r.element] = _Use(placed, r.element, reads, writes, touched)
        yield from found.values()


def _groups(uses: Sequence[_Use]) -> list[list[_Use]]:
    """The uses of one element in one body, under the same conditions."""

    def where(use: _Use) -> tuple[Any, ...]:
        return use.placed.position[:-1], str(use.placed.guards), use.element.array.name, str(use.element.subscripts)

    return [list(group) for _, group in groupby(sorted(uses, key=where), where)]


def _registers(at: Sized, meet: _Meet) -> Iterator[tuple[list[_Use], list[_Use]]]:
    """For each register: the uses that share it, and the uses of other elements."""
    groups = _groups(list(_uses(at)))
    for group in groups:
        others = [u for g in groups if g is not group for u in g]
        for together in _shared(group, others, meet):
            yield together, others


def _shared(group: list[_Use], others: Sequence[_Use], meet: _Meet) -> list[list[_Use]]:
    """The group as one register, or each use alone if another access in the same iteration may touch the element and
    one of the accesses writes.
    """
    disturbed = _disturbed(group[0], any(u.writes for u in group), others, len(group[0].placed.loops), meet)
    return [[use] for use in group] if len(group) > 1 and disturbed else [group]


def _depth(use: _Use, writes: bool, others: Sequence[_Use], meet: _Meet) -> int:
    """The number of surrounding loops that change the element in the register, or in which it must be reloaded."""
    loops = use.placed.loops
    named = {name for s in use.element.subscripts for name in s.symbols()}
    depth = len(loops)
    while depth and loops[depth - 1].var not in named:
        depth -= 1
    while depth < len(loops) and _disturbed(use, writes, others, depth, meet):
        depth += 1
    return depth


def _times(use: _Use, depth: int) -> int:
    """The number of iterations of the `depth` outer loops in which the element is touched."""
    import islpy as isl

    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number

    inner = len(use.placed.loops) - depth
    return number(cardinality(use.touched.domain().project_out(isl.dim_type.set, depth, inner)))


def _disturbed(use: _Use, writes: bool, others: Sequence[_Use], depth: int, meet: _Meet) -> bool:
    """Whether, within one iteration of the `depth` outer loops, another access may touch the same element and one of
    the two writes.
    """
    body = use.placed.position[: min(depth + 1, len(use.placed.loops))]
    return any(
        other.element.array.name == use.element.array.name
        and (other.writes or writes)
        and other.placed.position[: len(body)] == body
        and meet(use, other, depth)
        for other in others
    )


def _meet(use: _Use, other: _Use, depth: int) -> bool:
    """Whether the two touch the same element in iterations that agree in the `depth` outer loops."""
    import islpy as isl

    counters = isl.dim_type.in_
    both = use.touched.apply_range(other.touched.reverse())
    for k in range(depth):
        both = both.equate(counters, k, isl.dim_type.out, k)
    return not both.is_empty()


def _may_meet(use: _Use, other: _Use, depth: int) -> bool:
    """Whether the subscripts leave it open: they do, unless the addresses always differ by the same number, as those of
    A[i, j] and A[i, j - 1] do.
    """
    return not apart_in_a_row(use.element, other.element)
