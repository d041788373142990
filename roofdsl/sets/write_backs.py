"""The longest reuse distance in a window of accesses, which decides whether a written line is stored before the end.

See docs/rules.md, step S5. A write is the last one of its residency exactly if an access to its line after it, up to
and including the next write, misses. In a cache of Z bytes, that is the case if the longest of their distances exceeds
Z.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import islpy as isl

from roofdsl.sets.crossings import Longest
from roofdsl.sets.dimensions import dimensions, where
from roofdsl.sets.isl_text import sign_text
from roofdsl.sets.library import affine_value
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse
from roofdsl.sets.signs import nowhere_negative

Piece = tuple[Any, Longest]
"""(isl.Set, distances in bytes on it, of which the longest counts)."""

Found = tuple[Any, Quasi | None]
"""(isl.Set, a distance on it); None: infinite."""


def stored(reuse: ArrayReuse) -> list[Piece]:
    """One point for every possible store, with the distances of which the longest must exceed the cache size.

    Raises CannotCount if it is not known which access of a window has the longest distance; NotCertified and TooHard.
    """
    if reuse.writes.is_empty():
        return []
    # A first access to a line misses in every cache: its distance is infinite.
    missing: list[Found] = [(reuse.cold, None), *reuse.distances]
    # A write that is alone in its window decides by itself: if it misses, the line that the previous write made dirty
    # has been stored.
    parts: list[Piece] = [(domain.intersect(reuse.lone_writes), _one(distance)) for domain, distance in missing]
    # If the window also contains reads, the line may be evicted before any of them: the longest distance decides.
    if not reuse.shared_windows.is_empty():
        parts += _greatest(_images(reuse.shared_windows, missing))
    written = reuse.touch.intersect_domain(reuse.writes).range()
    # After the last write, the flush stores every line that was written, in every cache. Lines of a `temp` array are
    # dropped instead, and stored only if they are evicted before, by a later access or by what comes after the last
    # access.
    if reuse.end_distances is None:
        parts.append((written, ()))
    else:
        ends = [(domain.intersect(written), distance) for domain, distance in reuse.end_distances]
        parts += _greatest([*_images(reuse.after_last_write, missing), *ends])
    return [(domain, distances) for domain, distances in parts if not domain.is_empty()]


def _one(distance: Quasi | None) -> Longest:
    return () if distance is None else (distance,)


def _images(windows: Any, distances: list[Found]) -> Iterator[Found]:
    """For each piece of `distances`, the windows that meet it, with the longest distance of their accesses in it."""
    for domain, distance in distances:
        here = windows.intersect_range(domain)
        if here.is_empty():
            continue
        # A distance that is the same for all accesses of its piece is the longest of any of them.
        if distance is None or not distance.names() & set(dimensions(domain)):
            yield here.domain().coalesce(), distance
            continue
        for part in here.coalesce().make_disjoint().get_basic_maps():
            yield from _longest_in(isl.Map.from_basic_map(part), distance)


def _longest_in(here: Any, distance: Quasi) -> Iterator[Found]:
    """The greatest value of `distance` over the image of each point of the domain of `here`."""
    names = dimensions(here.range())
    used = sorted(distance.names() & set(names))
    several = [name for name in used if not _of_one(here, names.index(name)).is_single_valued()]
    chosen = here
    # Along each dimension in which a window has several accesses, the distance is monotone, so the longest is at one
    # end. The window is reduced to that end, one dimension after the other.
    for name in several:
        growth = distance.substitute({name: Quasi.symbol(name) + 1}) - distance
        reached = chosen.range().remove_divs()  # everything in between is reached, too
        if not (rises := nowhere_negative(reached, growth)) and not nowhere_negative(reached, -growth):
            raise CannotCount("it is not known which access of a window has the longest reuse distance")
        chosen = _extreme(chosen, names.index(name), greatest=rises)
    work: list[tuple[Any, dict[str, Quasi]]] = [(chosen.domain(), {})]
    for name in used:
        values = _functions(_of_one(chosen, names.index(name)))
        work = [(domain.intersect(part), {**put, name: value}) for domain, put in work for part, value in values]
    for domain, put in work:
        if domain.is_empty():
            continue
        longest = distance.substitute(put)
        # The end of one dimension may leave a smaller range of the next than other accesses have. With several
        # dimensions, the result is proven to be the longest, or given up.
        if len(several) > 1 and not _is_greatest(here.intersect_domain(domain), longest, distance):
            raise CannotCount("it is not known which access of a window has the longest reuse distance")
        yield domain.coalesce(), longest


def _functions(relation: Any) -> list[tuple[Any, Quasi]]:
    """(domain, value in its dimensions) of the pieces of a single-valued isl.Map to one dimension."""
    found = []
    for domain, piece in relation.lexmax_pw_multi_aff().get_pw_aff(0).get_pieces():
        aff = piece
        for i, name in enumerate(dimensions(domain)):
            aff = aff.set_dim_name(isl.dim_type.in_, i, name)
        found.append((domain, affine_value(aff)))
    return found


def _is_greatest(here: Any, longest: Quasi, distance: Quasi) -> bool:
    """Whether `longest`, of points of the domain, is proven to be at least `distance` of all their images."""
    first = here.dim(isl.dim_type.in_)
    of_image = {n: Quasi.symbol(f"d{first + i}") for i, n in enumerate(dimensions(here.range()))}
    return nowhere_negative(here.wrap().flatten(), longest - distance.substitute(of_image))


def _of_one(relation: Any, at: int) -> Any:
    """`relation`, with only dimension `at` of its range."""
    last = relation.dim(isl.dim_type.out)
    found = relation.project_out(isl.dim_type.out, at + 1, last - at - 1)
    return found.project_out(isl.dim_type.out, 0, at)


def _extreme(relation: Any, at: int, *, greatest: bool) -> Any:
    """The pairs of `relation` with the greatest or least value of dimension `at` of the range."""
    one = _of_one(relation, at)
    best = one.lexmax() if greatest else one.lexmin()
    last = relation.dim(isl.dim_type.out)
    wide = best.insert_dims(isl.dim_type.out, 0, at).insert_dims(isl.dim_type.out, at + 1, last - at - 1)
    if relation.has_tuple_name(isl.dim_type.out):
        wide = wide.set_tuple_name(isl.dim_type.out, relation.get_tuple_name(isl.dim_type.out))
    return relation.intersect(wide)


def _greatest(pieces: Iterable[Found]) -> list[Piece]:
    """Disjoint pieces with the longest of the distances given for each point, or several if none is known to be
    longest.
    """
    found: list[Piece] = []
    for domain, distance in pieces:
        # `found` stays disjoint: the intersection of the new piece with each of them goes to the longer distance.
        left, kept = domain, list[Piece]()
        for other, known in found:
            common = left.intersect(other)
            if common.is_empty():
                kept.append((other, known))
                continue
            if not (rest := other.subtract(common)).is_empty():
                kept.append((rest.coalesce(), known))
            for part, longest in _longer(common.coalesce(), distance, known):
                if longest != _one(distance):
                    kept.append((part, longest))
                    left = left.subtract(part)
        found = kept
        if not left.is_empty():
            found.append((left.coalesce(), _one(distance)))
    return found


def _longer(common: Any, distance: Quasi | None, known: Longest) -> list[Piece]:
    """The longest of `distance` and `known`, on parts of `common`."""
    if distance is None or not known:
        return [(common, ())]
    others = []
    for other in known:
        # A distance that is nowhere longer than another is dropped; the others are longer somewhere, or not known to be
        # shorter.
        if nowhere_negative(common, other - distance):
            return [(common, known)]
        if not nowhere_negative(common, distance - other):
            others.append(other)
    # If the difference of two has the sign of an affine form, the piece is cut; otherwise both stay, and the count
    # decides.
    text = sign_text(distance - others[0]) if len(others) == 1 else None
    if text is None:
        return [(common, (*others, distance))]
    longer = common.intersect(where(common, f"{text} > 0"))
    return [(longer, (distance,)), (common.subtract(longer), (others[0],))]
