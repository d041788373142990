"""The plateaus of Q(Z) as closed forms: for all sizes, or by residue class if these differ.

Which accesses touch one element, and so how far apart they are, may depend on the remainders of the sizes. If `A[n - 1
- j]` is read for every second j, elements are read twice if n is odd and once if n is even. Each class then has its own
steps of Q(Z). Classes with the same plateaus are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import islpy as isl

from roofdsl.counts.kernel_sets import KernelSets
from roofdsl.counts.plateau_row import Hits, Row, union, with_consistent_end
from roofdsl.counts.residue_conditions import condition_of
from roofdsl.counts.streamed import streamed
from roofdsl.counts.traffic_form_records import PlateauBytes
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Traffic
from roofdsl.sets.cardinality import cardinality, count_ahead
from roofdsl.sets.cases import Cases, closed_form_of
from roofdsl.sets.count import count_symbolic
from roofdsl.sets.facts import CACHE, Compared
from roofdsl.sets.library import pieces
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.plateau_counter import PlateauCounter, PlateauLines
from roofdsl.sets.plateaus import (
    NO_LARGE_SIZES,
    Range,
    Step,
    Weight,
    check_executed,
    check_large,
    far_sizes,
    piece_ranges,
    point,
    steps,
)
from roofdsl.sets.quasi import Quasi, floors_of
from roofdsl.sets.residues import (
    Class,
    Residue,
    agrees,
    classes,
    classes_set,
    how_many,
    joined,
    only,
    periods,
    periods_of_sets,
    resolved,
)

MOST_CLASSES = 128
"""The maximum number of residue classes that are compared; if there are more, only one is reported."""

Piece = tuple[Any, Quasi]


class Plateaus:
    """The plateaus of one kernel under one convention. Methods raise CannotCount, and what counting raises."""

    def __init__(self, sets: KernelSets, convention: Traffic) -> None:
        self.sets, self.convention = sets, convention
        self.access_sets, self.order = sets.large_size_sets, sets.order
        check_large(self.access_sets, self.order)
        self.found = sets.pieces
        self.pieces: list[Piece] = [p for r in self.found for p in (*r.distances, *(r.end_distances or ()))]
        self.counters = [PlateauCounter(r) for r in self.found]
        self._own = [self._periods_of(p) for p in self.pieces]
        self._ranges: dict[tuple[int, Class], Range | None] = {}
        self._counts: dict[int, tuple[list[Piece], dict[str, int]]] = {}
        self._weights: dict[tuple[int, tuple[int, ...]], Weight] = {}
        self._inside: dict[Class, list[Range]] = {}
        self._totals: dict[Hits, list[Piece]] = {}
        self._rows_of: dict[Class, list[Row]] = {}
        self._steps: dict[Class, list[Step]] = {}
        self._every: dict[Class, list[Row]] | None = None
        self._groups: dict[tuple[Class, ...], list[PlateauBytes]] = {}
        self._forms: dict[tuple[Hits, tuple[Class, ...] | None, bool], Cases] = {}
        self._hidden: dict[Class, bool] = {}
        self._leads: dict[tuple[Hits, Class], Quasi] = {}
        self._points: dict[Class, tuple[dict[str, int], Any]] = {}

    # ---- results ----

    def plateau_forms(self, given: Mapping[str, int]) -> tuple[PlateauBytes, ...]:
        """The plateaus from the smallest cache to an unbounded one, one group of classes after the other.

        If sizes are `given`, only the groups with classes that agree with them.
        """
        rows, every = self._by_class(given)
        groups: dict[object, list[Class]] = {}
        for residues, each in rows.items():
            groups.setdefault(tuple(r.told for r in each), []).append(residues)
        at = self.access_sets.sizes.known(given)
        found: list[PlateauBytes] = []
        for members in groups.values():
            if any(agrees(c, at) for c in members):
                if tuple(members) not in self._groups or not every:
                    self._groups[tuple(members)] = self._told(members, rows, list(rows) if every else None)
                found += self._groups[tuple(members)]
        return tuple(found)

    def example(self, given: Mapping[str, int]) -> Class:
        """A class of the first group of `plateau_forms`; the explanation uses this class."""
        rows, _ = self._by_class(given)
        at = self.access_sets.sizes.known(given)
        return next(c for c in rows if agrees(c, at))

    def _told(
        self, members: list[Class], rows: Mapping[Class, list[Row]], possible: Sequence[Class] | None
    ) -> list[PlateauBytes]:
        """The plateaus that `members` have in common; possible: all classes, None if only one was examined."""
        everywhere = possible is not None and len(members) == len(possible)
        where = None if everywhere else condition_of(members, possible, self.access_sets.sizes)
        told = []
        for k in range(count := len(rows[members[0]])):
            each = {c: rows[c][k] for c in members}
            # Members share starts, leading terms and ends (Row.told); their terms of lower order may differ.
            row = each[members[0]]
            blurred = any(r.blurred for r in each.values()) or any(map(self._hides, members))
            apart = None if everywhere else members
            whole = None if blurred else self._form(each, apart)
            # Only where everything hits does a form hold up to any cache. Floors beside `where` would say it twice.
            single = whole.single if row.hits is None and whole is not None else None
            if single is not None and where is not None and floors_of(single):
                single = None
            lower = [r.lower_until for r in each.values() if r.lower_until is not None]
            following = rows[members[0]][k + 1].start if k + 1 < count else None
            ends = [end for end in (*lower, row.until, following) if end is not None]
            end = min(ends, key=self.order.key, default=None)
            if whole is not None and lower:
                below = Compared(Quasi.symbol(CACHE), "<", min(lower, key=self.order.key))
                whole = Cases(whole.cases, (*whole.assumes, below))
            moved = row.leading if single is None else single
            told.append(PlateauBytes(row.start, moved, single is not None, whole, row.until, where, end))
        return told

    def _form(self, each: Mapping[Class, Row], members: Sequence[Class] | None) -> Cases:
        """The complete traffic on a plateau that `members` have in common (None: for all sizes)."""
        hits = {c: row.hits for c, row in each.items()}
        # A piece without points in a class may count as hits there or not. So one form serves all members, unless it
        # counts existing pieces as hits that miss.
        together = union(hits.values())
        if together is None or all(together & self._present(c) == h for c, h in hits.items()):
            return self._cases(together, members)
        parts = [self._cases(h, [c], conditional=True) for c, h in hits.items()]
        return Cases(tuple(case for p in parts for case in p.cases), parts[0].assumes)

    # ---- residue classes ----

    def _by_class(self, given: Mapping[str, int]) -> tuple[dict[Class, list[Row]], bool]:
        """The plateaus of each class, and whether these are all classes. If there are too many, only the class of the
        given sizes; unknown sizes are taken as multiples of their periods.
        """
        if self._every is not None:
            return self._every, True
        parameters = frozenset(self.access_sets.sizes.parameter_names())
        period = periods_of_sets(d.executions for d in self.access_sets.domains)
        at = self.access_sets.sizes.known(given)
        # Which remainders matter shows only while counting: a count may have a floor that no bound of a loop has. The
        # classes are refined until counting finds no new period.
        while True:
            for own in self._own:
                period = joined(period, own)
            every = how_many(period, {}) <= MOST_CLASSES
            chosen = {} if every else {n: at.get(n, 0) for n in period}
            rows = {c: self._rows(c) for c in classes(period, chosen) if self._possible(c)}
            if not rows:
                raise CannotCount(NO_LARGE_SIZES)
            counted = [p for h in {r.hits for each in rows.values() for r in each} for p in self._total(h)]
            more = joined(periods_of_sets(d for d, _ in counted), only(parameters, periods(v for _, v in counted)))
            if not self._reopened() and joined(period, more) == period:
                self._every = rows if every else None
                return rows, every
            period = joined(period, more)

    def _reopened(self) -> bool:
        """Whether the bounds of pieces turned out to depend on more remainders, so that there are more classes."""
        opened = False
        place = {id(domain): k for k, (domain, _) in enumerate(self.pieces)}
        for (domain, _), found in self._ranges.items():
            if found is not None and found.period:
                k = place[domain]
                own = joined(self._own[k], found.period)
                opened = opened or own != self._own[k]
                self._own[k] = own
        if opened:
            self._inside.clear()
            self._steps.clear()
            self._rows_of.clear()
        return opened

    def _periods_of(self, piece: Piece) -> dict[str, int]:
        parameters = frozenset(self.access_sets.sizes.parameter_names())
        return joined(periods_of_sets([piece[0]]), only(parameters, periods([piece[1]])))

    def _possible(self, residues: Class) -> bool:
        return not self.access_sets.context.is_disjoint(self._point(residues)[1])

    def _point(self, residues: Class) -> tuple[dict[str, int], Any]:
        """Large sizes of a class, also as an isl parameter set."""
        if residues not in self._points:
            sizes = far_sizes(self.access_sets.sizes, self.order, residues)
            self._points[residues] = sizes, point(sizes)
        return self._points[residues]

    # ---- the plateaus of one class ----

    def _rows(self, residues: Class) -> list[Row]:
        if residues not in self._rows_of:
            self._rows_of[residues] = self._found(residues)
        return self._rows_of[residues]

    def _found(self, residues: Class) -> list[Row]:
        check_executed(self.access_sets, self.order, residues)
        key = self.order.key
        lines = [self.access_sets.line_bytes[r.name] for r in self.found]
        smallest = start = Quasi.constant(max(lines, default=0))
        hits = frozenset[int]()
        low: Quasi | None = None
        everything = self.steps(residues)
        chosen: list[tuple[Quasi, Hits, Step | None, Quasi | None]] = []
        # Before the first step nothing hits; each step adds the pieces whose distances now fit. Steps that end where a
        # later one does, to leading order, are one.
        for k, step in enumerate([None, *everything]):
            if step is not None:
                hits |= step.pieces
                low = step.low if low is None and step.pieces else low
                start = step.high if key(step.high) > key(smallest) else start
            if k < len(everything) and key(everything[k].high) <= key(start):
                continue
            chosen.append((start, None if k == len(everything) else hits, step, low))
            low = None
        unknown = [of for _, of, _, _ in chosen if of is not None and of not in self._totals]
        count_ahead(each for of in unknown for c in self.counters for each in c.counted(of))
        rows: list[Row] = []
        for start, moved, step, low in chosen:
            self._append_or_extend(rows, self._row(start, moved, step, residues), low, residues)
        ends = [end for row in rows for end in (row.start, row.until, row.lower_until) if end is not None]
        if any(not end.is_constant() and key(end)[1] <= 0 for end in ends):
            raise CannotCount("where a plateau begins depends on which of its sizes is larger")
        return [with_consistent_end(row, self.order) for row in rows]

    def _row(self, start: Quasi, hits: Hits, step: Step | None, residues: Class) -> Row:
        if (hits, residues) not in self._leads:
            self._leads[hits, residues] = self._leading(self._total(hits), residues)
        leading = self._leads[hits, residues]
        # Pieces that straddle this plateau begin to hit somewhere on it. They are of lower order: others form a step.
        lows = [r.low for r in self._in_class(residues) if step is not None and r.piece in step.across]
        begun = min(lows, key=self.order.key, default=None)
        blurred = begun is not None and self.order.key(begun) <= self.order.key(start)
        return Row(start, leading, hits, None, None if blurred else begun, blurred)

    def _append_or_extend(self, rows: list[Row], row: Row, low: Quasi | None, residues: Class) -> None:
        """Appends a plateau, which ends the last one of `rows`, or extends it if both move the same leading terms."""
        key, last = self.order.key, rows[-1] if rows else None

        def moved(hits: Hits) -> object:
            return self._cases(hits, [residues]).cases

        # A step that changes no leading term begins no plateau: it ends, or blurs, the lower orders of the one before.
        if last is None or last.leading != row.leading:
            if last is not None and low is not None and key(low) < key(row.start):
                rows[-1] = replace(last, until=low)
            rows.append(row)
        elif last.lower_until is None and not last.blurred and moved(last.hits) == moved(row.hits):
            rows[-1] = replace(row, start=last.start)
        elif last.lower_until is None and not last.blurred:
            changed = row.start if low is None else low
            blurred = key(changed) <= key(last.start)
            rows[-1] = replace(last, lower_until=None if blurred else changed, blurred=blurred)

    def steps(self, residues: Class) -> list[Step]:
        """The steps of Q(Z) for the sizes of a class."""
        if residues not in self._steps:

            def few(across: list[Range], missing: list[Range]) -> bool:
                most = max(self._weight(r.domain, residues) for r in across)
                others = [*(r.domain for r in missing), *(r.cold for r in self.found)]
                return any(self._weight(d, residues) > most for d in others)

            self._steps[residues] = steps(self._in_class(residues), self.order, few)
        return self._steps[residues]

    def _in_class(self, residues: Class) -> list[Range]:
        """The ranges of the pieces that exist for the sizes of a class."""
        if residues in self._inside:
            return self._inside[residues]
        keys, unknown = list[tuple[int, Class]](), dict[tuple[int, Class], Piece]()
        for piece, own in zip(self.pieces, self._own, strict=True):
            narrow = tuple(Residue(r.name, own[r.name], r.rest % own[r.name]) for r in residues if r.name in own)
            keys.append((id(piece[0]), narrow))
            if keys[-1] not in self._ranges:
                unknown[keys[-1]] = piece
        asked = [(piece, narrow) for (_, narrow), piece in unknown.items()]
        self._ranges |= zip(unknown, piece_ranges(asked, self.access_sets.sizes, self.order), strict=True)
        found = [self._ranges[key] for key in keys]
        self._inside[residues] = [r for r in found if r is not None]
        return self._inside[residues]

    def _hides(self, residues: Class) -> bool:
        """Whether other large sizes of the class, with another size as the largest, have pieces that the sizes of the
        plateaus lack. The plateaus do not show when the accesses of these pieces hit.
        """
        if residues not in self._hidden:
            sizes = " and ".join(f"{name} >= {value // 2}" for name, value in self._point(residues)[0].items())
            large = isl.Set(f"[{', '.join(self._point(residues)[0])}] -> {{ : {sizes or 'true'} }}")
            large = large.intersect(classes_set([residues])).intersect(self.access_sets.context)
            present = self._present(residues)
            absent = [domain for domain, _ in self.pieces if id(domain) not in present]
            self._hidden[residues] = any(not d.params().is_disjoint(large) for d in absent)
        return self._hidden[residues]

    def _present(self, residues: Class) -> frozenset[int]:
        return frozenset(r.piece for r in self._in_class(residues))

    # ---- counting ----

    def _weight(self, domain: Any, residues: Class) -> Weight:
        """The growth of the number of points of a set."""
        if id(domain) not in self._counts:
            counted = _in_parameters(cardinality(domain))
            own = joined(periods_of_sets(d for d, _ in counted), periods(v for _, v in counted))
            self._counts[id(domain)] = counted, own
        counted, own = self._counts[id(domain)]
        # There are many classes, and most counts are the same in all: only remainders they depend on matter.
        far = self._point(residues)[0]
        key = id(domain), tuple(far[n] % period for n, period in own.items() if n in far)
        if key not in self._weights:
            self._weights[key] = self.order.leading_weight(self._leading(counted, residues))
        return self._weights[key]

    def leading(self, counted: Any, residues: Class) -> Quasi:
        """The leading terms of a count (isl.PwQPolynomial) for large sizes of a class, in the kernel's parameters."""
        return self._leading(_in_parameters(counted), residues)

    def _leading(self, counted: list[Piece], residues: Class) -> Quasi:
        sizes, at = self._point(residues)
        total = Quasi.constant(0)
        for domain, value in counted:
            if not domain.is_disjoint(at):
                total = total + resolved(value, sizes)
        return self.order.leading(total.substitute(self.access_sets.sizes.meaning()))

    def _total(self, hits: Hits) -> list[Piece]:
        """The total bytes if `hits` hit: each value on an isl parameter set."""
        if hits not in self._totals:
            if hits is None:
                lines = [self._compulsory(r) for r in self.sets.residencies]
            else:
                lines = [c.lines(hits) for c in self.counters]
            self._totals[hits] = _in_parameters(self._moved(lines, hits))
        return self._totals[hits]

    def _compulsory(self, r: Any) -> PlateauLines:
        by_read = count_symbolic([r.begun_by_read]) if self.convention == "load_store" else None
        stored = None if self.convention == "once" else count_symbolic(r.stored)
        return PlateauLines(r.array, r.bytes, count_symbolic([r.begun]), by_read, stored)

    def _moved(self, lines: Iterable[PlateauLines], hits: Hits) -> Any:
        constant = sum(scalar_bytes(self.sets.kernel)[1 if self.convention == "once" else 0 :])
        access_sets = self.sets.line_sets_of(large=hits is not None)
        total = isl.PwQPolynomial(f"{{ {constant} }}").intersect_params(access_sets.context.params())
        for count, size in streamed(access_sets):
            total = total.add(count.scale_val(size))
        for r in lines:
            counts = [r.begun_by_read if self.convention == "load_store" else r.begun]
            counts += [] if self.convention == "once" else [r.stored]
            for count in counts:
                total = total if count is None else total.add(count.scale_val(r.bytes))
        return total

    def _cases(self, hits: Hits, members: Sequence[Class] | None, *, conditional: bool = False) -> Cases:
        """The traffic as cases, for the sizes of `members`. conditional: the cases contain the classes' conditions."""
        key = hits, None if members is None else tuple(members), conditional
        if key not in self._forms:
            self._forms[key] = self._counted_cases(hits, members, conditional)
        return self._forms[key]

    def _counted_cases(self, hits: Hits, members: Sequence[Class] | None, conditional: bool) -> Cases:
        access_sets, parts = self.sets.line_sets_of(large=hits is not None), self._total(hits)
        assumes = self.sets.facts(access_sets, 1 if hits is None else self.sets.least)
        context = access_sets.context
        if members is not None:
            inside = classes_set(members)
            at = self._point(members[0])[0]
            parts = [(d.intersect(inside), resolved(v, at) if len(members) == 1 else v) for d, v in parts]
            context = context if conditional else context.intersect(inside)
        return closed_form_of(parts, context, access_sets.sizes.meaning(), assumes)


def _in_parameters(counted: Any) -> list[Piece]:
    """The pieces of an isl.PwQPolynomial of parameters, on parameter sets."""
    return [(domain.params(), value) for domain, value in pieces(counted)]
