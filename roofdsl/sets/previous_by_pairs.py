"""The previous access, from pairs of references, if these move along with each other, as those of a stencil do.

x[i + 1, j] touches what x[i - 1, j + 2] touches two iterations of i later and two of j earlier, wherever both do. So,
for each pair of references, the latest earlier access that one of them makes to the line of the other is a fixed number
of iterations back, or there is none. The latest access of all references is then found without a search: the pairs of a
reference are taken from the nearest to the farthest, and each decides the accesses that no nearer one has decided.
Nothing is left to a library's maximum over hundreds of sets, which takes long to find and longer to certify.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import islpy as isl

from roofdsl.sets.previous import certify_previous

Offset = tuple[int, ...]

MANY_PAIRS = 6
"""Pairs are looked at for at least this many references to one array: the maximum for fewer is certified in no time."""


def previous_by_pairs(references: Sequence[Any]) -> Any | None:
    """isl.Map from each access to the previous one on its line; None if there is none, or if distances vary.

    references: for each reference to one array, the isl.Map from its accesses to their lines. No two have an access in
    common. Raises NotCertified if the library's answer for a single pair is wrong.
    """
    if any(map(_rounds, references)):
        return None
    found: Any = None
    for own in references:
        pairs: list[tuple[Offset, Any]] = []
        for other in references:
            latest = _latest(own, other)
            if latest is None:
                return None
            pairs += latest
        # Of the earlier accesses to the line, the one fewest iterations back is the latest. Where it is made, it is the
        # previous access. Near the edges of the loops it is not made, and the next one decides.
        pairs.sort(key=lambda pair: pair[0], reverse=True)
        left = own.domain()
        for _, relation in pairs:
            here = relation.intersect_domain(left)
            if here.is_empty():
                continue
            found = here if found is None else found.union(here)
            left = left.subtract(here.domain()).coalesce()
            if left.is_empty():
                break
    return found


def _rounds(location: Any) -> bool:
    """Whether lines are found by rounding, as with several elements in each, or only some remainders are executed: then
    distances vary, or what they lead to is too hard to count.
    """
    places = range(location.dim(isl.dim_type.out))
    for basic in location.get_basic_maps():
        equal = [c for c in basic.get_constraints() if c.is_equality()]
        told = all(any(c.involves_dims(isl.dim_type.out, k, 1) for c in equal) for k in places)
        if basic.dim(isl.dim_type.div) or not told:
            return True
    return False


def _latest(own: Any, other: Any) -> list[tuple[Offset, Any]] | None:
    """(how far back, isl.Map from accesses to the latest earlier access of `other` to the same line), for each
    distance; None if one basic map has several distances. Raises NotCertified.
    """
    same = own.apply_range(other.reverse())
    if same.is_empty():
        return []
    back = _constant(same)
    if back is not None:  # a single distance: there is nothing to choose from
        return [(back, same)] if back < (0,) * len(back) else []
    earlier = same.intersect(isl.Map.lex_gt(same.get_space().domain()))
    if earlier.is_empty():
        return []
    latest = earlier.lexmax()
    certify_previous(latest, earlier)
    parts = []
    for basic in latest.coalesce().get_basic_maps():
        part = isl.Map.from_basic_map(basic)
        back = _constant(part)
        if back is None:
            return None
        parts.append((back, part))
    return parts


def _constant(relation: Any) -> Offset | None:
    """What is added to each point to get its image, in numbers; None if that differs, or is not seen at once."""
    deltas = relation.deltas()
    found = [deltas.plain_get_val_if_fixed(isl.dim_type.set, k) for k in range(deltas.dim(isl.dim_type.set))]
    return tuple(int(v.to_python()) for v in found) if all(v.is_int() for v in found) else None
