"""Reuse: the previous access to the same location, certified, and the reuse distance in bytes.

See docs/rules.md, steps S2 and S3. The reuse distance of an access is the number of bytes of distinct lines touched
from the previous access to its line up to just before it, its own line included: it misses in a cache of Z bytes
exactly when the distance exceeds Z (LRU; lines of several sizes keep this property, see docs/model.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any

import islpy as isl

from roofdsl.lang.record import Record, field
from roofdsl.sets.access_sets import AccessSets, Reference
from roofdsl.sets.by_text import text_of
from roofdsl.sets.cardinality import added, cardinality, disjoint_sum, require_few_floors
from roofdsl.sets.dimensions import dimensions
from roofdsl.sets.images import Asked, Images, restored
from roofdsl.sets.library import pieces
from roofdsl.sets.native_calls import ONE_OF_MANY, on_all_cores
from roofdsl.sets.one_body import one_body
from roofdsl.sets.previous import Claim, claimed_previous, previous_access
from roofdsl.sets.previous_by_pairs import MANY_PAIRS, previous_by_pairs
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.slices import sliced
from roofdsl.sets.whole_iterations import in_few_boxes, in_one_box, without_place


class ArrayReuse(Record):
    """Reuse of one array.

    touch: isl.Map from T to lines. all, writes, reading: isl.Sets of T: all accesses to the array, the writes, and
    those that begin with a read. previous: isl.Map from each access to the previous one on its line. cold: accesses
    without a previous one. distances: (isl.Set of accesses, reuse distance in bytes) for each piece of the domain of
    `previous`. end_distances: for `temp` arrays, (isl.Set of lines, bytes of distinct lines touched from the last
    access of the line to the end); None for others.
    """

    name: str
    bytes: int
    touch: Any = field(compare=False)
    all: Any = field(compare=False)
    writes: Any = field(compare=False)
    reading: Any = field(compare=False)
    previous: Any = field(compare=False)
    cold: Any = field(compare=False)
    distances: tuple[tuple[Any, Quasi], ...] = field(compare=False)
    end_distances: tuple[tuple[Any, Quasi], ...] | None = field(compare=False)

    @cached_property
    def write_windows(self) -> Any:
        """Write -> the accesses to its line after the previous write, up to itself; writes without a previous one are
        left out.
        """
        # If every access writes, no access lies between two writes: each window is the write itself.
        if self.writes.is_equal(self.all):
            return isl.Map.identity(self.previous.get_space()).intersect_domain(self.previous.domain())
        written = self.touch.intersect_domain(self.writes)
        space = self.touch.get_space().domain()
        previous_write = previous_access(written)
        # The accesses to the line of a write, up to the write and after the previous write.
        same_line = written.apply_range(self.touch.reverse()).intersect(isl.Map.lex_ge(space))
        after = previous_write.apply_range(isl.Map.lex_lt(space))
        return same_line.intersect(after).coalesce()

    @cached_property
    def shared_windows(self) -> Any:
        """The write windows that contain more than the write itself."""
        alone = isl.Map.identity(self.previous.get_space()).intersect_domain(self.writes)
        several = self.write_windows.subtract(alone).domain()
        return self.write_windows.intersect_domain(several).coalesce()

    @cached_property
    def lone_writes(self) -> Any:
        """The writes whose window contains only the write itself."""
        return self.write_windows.domain().subtract(self.shared_windows.domain()).coalesce()

    @cached_property
    def after_last_write(self) -> Any:
        """Line -> the accesses to it after the last write to it."""
        last = self.touch.intersect_domain(self.writes).reverse().lexmax()
        return self.touch.reverse().intersect(last.apply_range(isl.Map.lex_lt(self.all.get_space())))


def touches(references: Sequence[Reference]) -> Any:
    """The union of the references' location maps as one isl.Map."""
    return union(references).coalesce()


def union(references: Sequence[Reference]) -> Any:
    """The union of the references' location maps, kept as separate parts: merged parts would not be boxes any more."""
    total = references[0].location
    for r in references[1:]:
        total = total.union(r.location)
    return total


def by_array(access_sets: AccessSets) -> dict[str, list[Reference]]:
    """References grouped by array, in textual order."""
    groups: dict[str, list[Reference]] = {}
    for r in access_sets.references:
        groups.setdefault(r.array.name, []).append(r)
    return groups


def alike(groups: Mapping[str, Sequence[Reference]]) -> dict[str, str]:
    """Each array -> the first array whose elements are touched in the same iterations.

    Windows with the same references to both touch the same number of elements of each, which are counted once.
    """
    first: dict[tuple[str, ...], str] = {}
    found = {}
    for name, references in groups.items():
        places = (r.location.set_tuple_name(isl.dim_type.out, "A") for r in references)
        touched = tuple(sorted({str(without_place(location)) for location in places}))
        found[name] = first.setdefault(touched, name)
    return found


MANY_REFERENCES = 16
"""If a kernel has at least this many references, the touched sets are cut before they are counted."""


class Touched:
    """The bytes of the distinct lines that windows of instances touch, by array.

    If the accesses of every whole iteration of the innermost loops form one box, or few if there are many references,
    whole iterations are counted as boxes, and only the partial iterations at both ends of a window access by access.
    Lines that many references touch are counted by `Images`, once for all windows that touch the same lines. Lines of
    few references are counted directly, which leaves fewer pieces.
    """

    def __init__(self, groups: Mapping[str, Sequence[Reference]], line_bytes: Mapping[str, int]) -> None:
        """groups: array -> the references to it."""
        self.groups, self.line_bytes = groups, line_bytes
        self._many = sum(map(len, groups.values())) >= MANY_REFERENCES
        together = union if self._many else touches
        self.touch = {name: together(refs) for name, refs in groups.items()}
        self._alike = alike(groups) if self._many else {name: name for name in groups}
        firsts = {name: Images(self.touch[name]) for name in dict.fromkeys(self._alike.values())}
        self._images = {name: firsts[first] for name, first in self._alike.items()}
        self._questions: dict[tuple[str, str], Asked | None] = {}
        self._known: dict[str, Any] = {}
        self._boxes = in_one_box(self.touch)
        if self._boxes is None and self._many:
            self._boxes = in_few_boxes(groups, self._images)
        self._body = one_body(groups, self._boxes, self._images, self._alike, line_bytes) if self._many else None

    def since(self, previous: Any, known: Collection[str] = ()) -> dict[str, Any]:
        """array -> isl.Map from an access to what is touched from the previous access (included) to it (excluded).

        previous: an isl.Map of one basic map. known: arrays that may be left out.
        """
        if self.touch.keys() <= set(known):
            return {}
        space = previous.get_space().range()
        windows = previous.apply_range(isl.Map.lex_le(space)).intersect(isl.Map.lex_gt(space)).coalesce()
        if self._boxes is None:
            return {name: windows.apply_range(touch) for name, touch in self.touch.items() if name not in known}
        outer = space.dim(isl.dim_type.set) - 1
        same = isl.Map.from_basic_map(isl.BasicMap.equal(previous.get_space(), outer))
        # The iterations at the two ends of a window are counted in part, access by access; those strictly in between
        # are counted as boxes.
        ends = windows.intersect(previous.apply_range(same).union(same)).coalesce()
        pairs = previous.get_space()
        whole = previous.apply_range(isl.Map.lex_lt_first(pairs, outer)).intersect(isl.Map.lex_gt_first(pairs, outer))
        return {
            name: ends.apply_range(self.touch[name]).union(whole.apply_range(box))
            for name, box in self._boxes.items()
            if name not in known
        }

    def within(self, windows: Any) -> dict[str, Any]:
        """array -> isl.Map from an access, or a line, to what is touched in its window.

        windows: isl.Map from the access or line to the instances of its window.
        """
        return {name: windows.apply_range(location) for name, location in self.touch.items()}

    def bytes_since(self, parts: Sequence[Any]) -> list[Any]:
        """Bytes touched since the previous access: isl.PwQPolynomials that together cover `parts` (see `since`); a part
        may be split.

        None for an empty part. Many parts are counted on all cores. Raises TooHard.
        """
        if not self._many:
            return on_all_cores([partial(self._each, part) for part in parts])
        if self._body is None:
            # If any windows are too hard, those of the parts with the most floors are: they come first.
            most = max(map(_floors, parts), default=0)
            hard = {k: self.since(part) for k, part in enumerate(parts) if 0 < most == _floors(part)}
            self._together(list(hard.values()))
            return self._together([hard[k] if k in hard else self.since(part) for k, part in enumerate(parts)])
        counted = [each for part in parts for each in self._body.counted(part)]
        others = self._together([self.since(p, () if moving is None else self.touch) for p, moving in counted])
        return [_both(p.domain(), moving, other) for (p, moving), other in zip(counted, others, strict=True)]

    def bytes_within(self, windows: Any) -> Any:
        """Bytes touched in `windows` (see `within`): isl.PwQPolynomial, None if they are empty. Raises TooHard."""
        lines = self.within(windows)
        return self._together([lines])[0] if self._many else self._directly(lines)

    def _each(self, part: Any) -> Any:
        return self._directly(self.since(part))

    def _directly(self, lines: Mapping[str, Any]) -> Any:
        counts = []
        for name, own in lines.items():
            merged = own.coalesce()
            if not merged.is_empty():
                counts.append(cardinality(merged, ONE_OF_MANY).coalesce().scale_val(isl.Val(self.line_bytes[name])))
        return added(counts) if counts else None

    def _together(self, windows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """As `bytes_within`, for each of `windows`; windows between different accesses of the same iterations are
        counted once if they touch the same lines.
        """
        wanted: dict[str, Asked] = {}
        rows = []
        for lines in windows:
            row = []
            for name, relation in lines.items():
                # The lines touched between two accesses are often the same for several places in the text of one
                # iteration. The place is removed and put back afterwards, and sets with the same text are counted once.
                # If equal sets have different texts, they are merely counted twice.
                domain = relation.domain().coalesce()
                place = _fixed_place(domain)
                inner = relation if place is None else relation.project_out(isl.dim_type.in_, place, 1)
                inner = inner.set_tuple_name(isl.dim_type.in_, domain.get_tuple_name())
                asked = self._asked(self._alike[name], inner)
                if asked is not None and asked.text not in self._known:
                    wanted[asked.text] = asked
                row.append((name, asked, place, domain))
            rows.append(row)
        # Sets that are too hard usually have the most floors, so these come first.
        wanted = dict(sorted(wanted.items(), key=lambda each: -each[1].floors))
        self._known.update(zip(wanted, on_all_cores([asked.count for asked in wanted.values()]), strict=True))
        return [self._added(row) for row in rows]

    def _asked(self, name: str, relation: Any) -> Asked | None:
        """What is to be counted of the images of `relation`; loops and arrays of the same shape ask the same."""
        relation = relation.set_tuple_name(isl.dim_type.out, self.touch[name].get_tuple_name(isl.dim_type.out))
        key = name, text_of(relation)
        if key not in self._questions:
            self._questions[key] = self._images[name].asked(relation)
        return self._questions[key]

    def _added(self, row: Iterable[tuple[str, Asked | None, int | None, Any]]) -> Any:
        counts = []
        for name, asked, place, domain in row:
            if asked is not None:
                count = restored(asked.answer(self._known[asked.text]), [] if place is None else [place], domain)
                counts.append(count.scale_val(isl.Val(self.line_bytes[name])))
        return added(counts) if counts else None


def _floors(part: Any) -> int:
    """The largest number of floors in a basic map of an isl.Map."""
    return max((basic.dim(isl.dim_type.div) for basic in part.get_basic_maps()), default=0)


def _both(domain: Any, of_iterations: Any, of_accesses: Any) -> Any:
    """The sum of counts on iterations and on accesses, either of which may be None, on the accesses of `domain`."""
    if of_iterations is None:
        return of_accesses
    moved = restored(of_iterations, [domain.dim(isl.dim_type.set) - 1], domain)
    return moved if of_accesses is None else moved.add(of_accesses).coalesce()


def _fixed_place(domain: Any) -> int | None:
    """The last dimension of `domain`, a place in the text, if it has only one value there."""
    last = domain.dim(isl.dim_type.set) - 1
    return last if last >= 0 and domain.plain_get_val_if_fixed(isl.dim_type.set, last).is_int() else None


def reuse_distance(previous: Any, touched: Touched) -> Any:
    """Bytes of distinct lines touched since the previous access: isl.PwQPolynomial, or None for an empty map.

    Works on one basic map of `previous` at a time, which keeps the counted sets small. Raises TooHard.
    """
    parts = [isl.Map.from_basic_map(b) for b in previous.make_disjoint().get_basic_maps()]
    counts = [count for count in touched.bytes_since(parts) if count is not None]
    return disjoint_sum(counts) if counts else None


def reuse(access_sets: AccessSets) -> tuple[ArrayReuse, ...]:
    """The reuse of every array. Raises NotCertified, and TooHard (through the library's limit)."""
    groups = by_array(access_sets)
    touch = {name: touches(refs) for name, refs in groups.items()}
    touched = Touched(groups, access_sets.line_bytes)
    found = []
    # The claims for all arrays come before the first certificate: some have too many floors to be counted.
    claims = {name: _claimed(refs, touch[name]) for name, refs in groups.items()}
    for name, refs in groups.items():
        previous, distance = _with_distance(claims[name], touched)
        everything = touch[name].domain()
        found.append(
            ArrayReuse(
                name,
                access_sets.line_bytes[name],
                touch[name],
                everything,
                _union([r.domain for r in refs if r.writes], everything),
                _union([r.domain for r in refs if r.reads_first], everything),
                previous,
                everything.subtract(previous.domain()),
                _pieces(distance),
                _end_distances(touch[name], touched) if refs[0].array.intent == "temp" else None,
            )
        )
    return tuple(found)


def _with_distance(claim: Any, touched: Touched) -> tuple[Any, Any]:
    """The certified map from each access to the previous one, and the reuse distance. Raises TooHard, NotCertified."""
    if not isinstance(claim, Claim):
        return claim, reuse_distance(claim, touched)
    # Windows with many floors are too hard to count, which is seen in less time than a certificate takes. The distances
    # are used only if the certificate is for the map that they were counted for.
    distance = reuse_distance(claim.merged, touched)
    previous = claim.certified
    if previous is not claim.merged:  # counted anew, with nothing that is remembered of the wrong map
        distance = reuse_distance(previous, Touched(touched.groups, touched.line_bytes))
    return previous, distance


def _claimed(references: Sequence[Reference], touch: Any) -> Any:
    """isl.Map from each access of an array to the previous one on its line, or a Claim of one. Raises TooHard, and
    NotCertified.
    """
    if len(references) >= MANY_PAIRS:
        found = previous_by_pairs([r.location for r in references])
        if found is not None:
            require_few_floors(found)
            return found.coalesce()
    claim = claimed_previous(touch)
    require_few_floors(claim.latest)
    return claim


def _pieces(piecewise: Any) -> tuple[tuple[Any, Quasi], ...]:
    """The pieces of a distance; accesses at the same distance are one piece, whatever their iteration."""
    if piecewise is None:
        return ()
    return _by_value(part for domain, value in _by_value(pieces(piecewise)) for part in sliced(domain, value))


def _by_value(parts: Iterable[tuple[Any, Quasi]]) -> tuple[tuple[Any, Quasi], ...]:
    """`parts` with those merged that have the same value in parameters alone.

    Parts whose value depends on dimensions stay as they are, since their accesses may be spread unevenly over its
    range. So do sets with floors, which do not become simpler.
    """
    together: dict[object, tuple[list[Any], Quasi]] = {}
    for k, (domain, value) in enumerate(parts):
        floors = any(b.dim(isl.dim_type.div) for b in domain.get_basic_sets())
        key = k if floors or value.names() & set(dimensions(domain)) else value
        together.setdefault(key, ([], value))[0].append(domain)
    return tuple((_joined(domains), value) for domains, value in together.values())


def _joined(domains: Sequence[Any]) -> Any:
    if len(domains) == 1:
        return domains[0]
    whole = reduce(isl.Set.union, domains).coalesce()
    if len(whole.get_basic_sets()) == 1:
        return whole
    # The library may cut a box along lines across it, and leave the parts as they are. Their counts have floors.
    hull = isl.Set.from_basic_set(whole.simple_hull())
    return hull if hull.is_subset(whole) else whole


def _end_distances(own: Any, touched: Touched) -> tuple[tuple[Any, Quasi], ...]:
    last = own.reverse().lexmax()
    after = last.apply_range(isl.Map.lex_le(own.get_space().domain()))
    return _pieces(touched.bytes_within(after))


def _union(sets: list[Any], like: Any) -> Any:
    total = isl.Set.empty(like.get_space())
    for s in sets:
        total = total.union(s)
    return total.coalesce()
