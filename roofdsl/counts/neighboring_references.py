"""References of one array that differ by constants: together they fill gaps, or one reads what another has written.

- `x[2*i]` and `x[2*i + 1]` touch all of x together, while i runs. Alone, each touches elements apart from each other.
  What all of them touch is one box, which is easier to count than many small ones.
- `p[j] = p[j - 1]` reads what it has written in the iteration before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import compress, product
from math import prod

from roofdsl.counts.loop_intervals import LoopIntervals
from roofdsl.loops.accesses import Access, statements
from roofdsl.loops.model import Assign, For, Let, Node

Place = tuple[int, bool]
"""A reference: the identity of its element, and whether it writes."""


def filled_gaps(nodes: Sequence[Node], intervals: LoopIntervals) -> dict[Place, tuple[int, ...]]:
    """For references with others beside them: the numbers of neighboring elements, along each subscript, that these
    references touch together in every iteration.

    Only references of one body count, which read the same array, or write it, and differ by constants alone. The
    elements beside a reference form a box; without such a box, the reference is left out.
    """
    found: dict[Place, tuple[int, ...]] = {}
    for group in _groups(nodes, intervals):
        constants = {_constants(access, intervals) for access in group}
        for access in group:
            runs = [_run(_constants(access, intervals), d, constants) for d in range(len(access.element.subscripts))]
            if prod(map(len, runs)) > 1 and all(place in constants for place in product(*runs)):
                found[id(access.element), access.is_write] = tuple(map(len, runs))
    return found


def recurrences(loop: For, intervals: LoopIntervals) -> set[str]:
    """The arrays that the loop writes and reads with different constants in subscripts that it moves."""
    written: dict[tuple[object, ...], set[tuple[int, ...]]] = {}
    read: dict[tuple[object, ...], set[tuple[int, ...]]] = {}
    for placed in statements(loop.body):
        for access in intervals.accesses(placed.statement) if isinstance(placed.statement, Assign | Let) else ():
            moved = [loop.var in subscript.symbols() for subscript in access.element.subscripts]
            place = tuple(compress(_constants(access, intervals), moved))
            if place:
                sides = written if access.is_write else read
                sides.setdefault(_moving(access, intervals), set()).add(place)
    return {str(key[0]) for key, places in written.items() if key in read and len(places | read[key]) > 1}


def _groups(nodes: Sequence[Node], intervals: LoopIntervals) -> Iterator[list[Access]]:
    """The references of one body that differ by constants alone."""
    groups: dict[Hashable, list[Access]] = {}
    for node in nodes:
        if isinstance(node, For):
            yield from _groups(node.body, intervals)
        elif isinstance(node, Assign | Let):
            for access in intervals.accesses(node):
                groups.setdefault((access.is_write, _moving(access, intervals)), []).append(access)
    yield from (group for group in groups.values() if len(group) > 1)


def _moving(access: Access, intervals: LoopIntervals) -> tuple[object, ...]:
    """The array, and the parts of the subscripts without their constants."""
    forms = map(intervals.form, access.element.subscripts)
    parts = (frozenset((term, factor) for term, _, _, factor in form.terms) for form in forms)
    return access.element.array.name, *parts


def _constants(access: Access, intervals: LoopIntervals) -> tuple[int, ...]:
    return tuple(intervals.form(subscript).constant for subscript in access.element.subscripts)


def _run(at: tuple[int, ...], d: int, constants: set[tuple[int, ...]]) -> range:
    """The constants next to each other along dimension d, with the others as in `at`."""

    def is_there(k: int) -> bool:
        return (*at[:d], k, *at[d + 1 :]) in constants

    low = high = at[d]
    while is_there(low - 1):
        low -= 1
    while is_there(high + 1):
        high += 1
    return range(low, high + 1)
