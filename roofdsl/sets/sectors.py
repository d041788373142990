"""Lines that are transferred sector by sector: the traffic of one array if a missing sector costs one sector.

The line is the unit of residency: it comes and goes as a whole, by the reuse distances of lines. A sector is loaded
when it is first touched in a residency of its line. So an access costs a sector exactly if the line misses at some
access after the previous access to the sector, up to and including this one. Stores follow in the same way from writes.
"""

from __future__ import annotations

from typing import Any

import islpy as isl

from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.misses import CannotCount, Curved, Part, Residencies, Rule, missing
from roofdsl.sets.polynomial_bounds import bounds
from roofdsl.sets.previous import previous_access
from roofdsl.sets.reuse import ArrayReuse, by_array, reuse, touches


def sector_residencies(lines: AccessSets, sectors: AccessSets, rule: Rule) -> tuple[Residencies, ...]:
    """The residencies of all arrays, counted in the lines of `sectors`; `lines` has the same accesses in whole lines.

    Raises CannotCount if line misses are not affine sets, and NotCertified and TooHard as `reuse` does.
    """
    small = {name: touches(refs) for name, refs in by_array(sectors).items()}
    return tuple(_of_array(r, small[r.name], sectors.line_bytes[r.name], rule) for r in reuse(lines))


def _of_array(line: ArrayReuse, small: Any, sector_bytes: int, rule: Rule) -> Residencies:
    misses = _flat(missing(line.cold, line.distances, rule), line.name)
    before = previous_access(small)
    cold = line.all.subtract(before.domain())
    begun = cold.union(_with_a_miss(line, before, misses)).coalesce()
    reading = begun.intersect(line.reading).coalesce()
    stored = () if line.writes.is_empty() else _stored(line, small, rule, misses)
    return Residencies(line.name, sector_bytes, Part(begun), Part(reading), stored)


def _flat(part: Part, array: str) -> Any:
    """The points of a part. Raises CannotCount unless bounds decide its nonlinear conditions for whole basic sets."""
    total = part.flat
    for curved in part.curved:
        for piece in curved.domain.make_disjoint().get_basic_sets():
            domain = isl.Set.from_basic_set(piece)
            if _is_positive(domain, curved, array):
                total = total.union(domain)
    return total.coalesce()


def _is_positive(domain: Any, curved: Curved, array: str) -> bool:
    if domain.is_empty():
        return False
    found = bounds(domain, curved.excess)
    if found is not None and all(b.is_constant() for b in found):
        if found[0].constant_value() > 0:
            return True
        if found[1].constant_value() <= 0:
            return False
    raise CannotCount(f"which lines of {array} miss depends on distances that are not affine")


def _with_a_miss(line: ArrayReuse, before: Any, misses: Any) -> Any:
    """The accesses whose line misses at an access after the one that `before` maps them to, up to themselves."""
    space = line.touch.get_space().domain()
    missed = line.touch.intersect_domain(misses).reverse()
    up_to = line.touch.intersect_domain(before.domain()).apply_range(missed).intersect(isl.Map.lex_ge(space))
    return up_to.intersect(before.apply_range(isl.Map.lex_lt(space))).domain().coalesce()


def _stored(line: ArrayReuse, small: Any, rule: Rule, misses: Any) -> tuple[Part, ...]:
    """The stores of sectors: at each write, the previous write is stored if the line left in between. The rest is
    stored at the end, or, for a `temp` array, only if its line is evicted before.
    """
    written = small.intersect_domain(line.writes)
    left_between = Part(_with_a_miss(line, previous_access(written), misses))
    sectors = written.range().coalesce()
    if line.end_distances is None:
        return left_between, Part(sectors)
    last = written.reverse().lexmax()
    later = last.apply_range(isl.Map.lex_lt(line.touch.get_space().domain()))
    own_line = last.apply_range(line.touch)
    evicted = later.intersect(own_line.apply_range(line.touch.reverse())).intersect_range(misses).domain()
    at_end = _flat(missing(isl.Set.empty(line.touch.get_space().range()), line.end_distances, rule), line.name)
    return left_between, Part(evicted.union(own_line.intersect_range(at_end).domain()).coalesce())
