"""How many bytes a cache holds at once if it keeps lines only from one use to the next, and only for certain uses.

A cache with that much room, and a line more, hits at least as often under the best replacement: the one that keeps
these lines, and drops all others at once, fits into it. LRU needs room for everything that is touched in between, used
again or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from typing import Any

import islpy as isl

from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.cardinality import added, cardinality
from roofdsl.sets.library import pieces
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.plateaus import Growth, piece_range
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.residues import Class
from roofdsl.sets.reuse import ArrayReuse

MOST_PARTS = 20
"""The maximum number of basic maps of what is held of an array at once: more take seconds to count."""


def most_held(
    found: Iterable[ArrayReuse], hits: Collection[int], access_sets: AccessSets, order: Growth, residues: Class
) -> Quasi | None:
    """The leading terms of the most bytes that are held at once, for large sizes; None if nothing is held.

    hits: id() of the domain of each piece of the reuse distances whose accesses find their line. Raises TooHard,
    CannotCount.
    """
    # One instant of an innermost iteration is enough: within it, what is held changes by a few lines only.
    last = {d.placed.position[:-1]: d.executions for d in access_sets.domains}
    instants = reduce(lambda a, b: a.union(b), last.values()).coalesce()
    counts = []
    for reuse in found:
        kept = [domain for domain, _ in reuse.distances if id(domain) in hits]
        if kept:
            own = reuse.previous.intersect_domain(reduce(lambda a, b: a.union(b), kept)).coalesce()
            held = _waiting(own, instants).apply_range(reuse.touch).coalesce()
            if len(held.get_basic_maps()) > MOST_PARTS:
                raise CannotCount("what is held at a time has too many parts")
            if not held.is_empty():
                counts.append(cardinality(held).scale_val(isl.Val(reuse.bytes)))
    if not counts:
        return None
    ranges = (piece_range(piece, access_sets.sizes, order, residues) for piece in pieces(added(counts)))
    most = [each.high for each in ranges if each is not None]
    return max(most, key=order.key, default=None)


def _waiting(previous: Any, instants: Any) -> Any:
    """isl.Map from an instant to the accesses after it whose previous access is not after it: one to each line held."""
    space = previous.get_space().range()
    since = previous.apply_range(isl.Map.lex_le(space)).intersect(isl.Map.lex_gt(space))
    return since.intersect_range(instants).reverse().coalesce()
