"""The residencies of an unbounded cache: one for every touched line, from its first access to the end."""

from __future__ import annotations

from typing import Any

import islpy as isl

from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.misses import Part, Residencies
from roofdsl.sets.native_calls import first_images
from roofdsl.sets.previous import NotCertified
from roofdsl.sets.reuse import by_array, touches


def compulsory(access_sets: AccessSets) -> tuple[Residencies, ...]:
    """One `Residencies` per array, in points of its lines. Raises TooHard and NotCertified."""
    found = []
    for name, refs in by_array(access_sets).items():
        touch = touches(refs)
        lines = touch.range().coalesce()
        reading = lines
        if not all(r.reads_first for r in refs):
            reading = isl.Set.empty(lines.get_space())
            if readers := [r for r in refs if r.reads_first]:
                reading = first_access(touch).intersect_range(touches(readers).domain()).domain()
        stored: tuple[Part, ...] = ()
        writers = [r for r in refs if r.writes]
        if writers and refs[0].array.intent != "temp":
            stored = (Part(touches(writers).range().coalesce()),)
        found.append(Residencies(name, access_sets.line_bytes[name], Part(lines), Part(reading.coalesce()), stored))
    return tuple(found)


def touched_lines(access_sets: AccessSets) -> dict[str, Part]:
    """The lines of each array that are touched at all."""
    return {name: Part(touches(refs).range().coalesce()) for name, refs in by_array(access_sets).items()}


def first_access(touch: Any) -> Any:
    """The certified map from each line to its first access. Raises TooHard and NotCertified."""
    accesses = touch.reverse()
    for candidates in (accesses, accesses.coalesce(), isl.Map(str(accesses.coalesce()))):
        first = first_images(candidates)
        earlier = first.apply_range(isl.Map.lex_gt(touch.get_space().domain()))
        if (
            first.is_single_valued()
            and first.is_subset(accesses)
            and accesses.domain().is_subset(first.domain())
            and earlier.is_disjoint(accesses)
        ):
            return first
    raise NotCertified("the first access to a line")
