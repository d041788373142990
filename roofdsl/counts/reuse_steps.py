"""Which reuse has which distance, which loop carries it, and from which plateau of Q(Z) on the cache holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.computed_once import NoClosedForm, form_within
from roofdsl.counts.derived import Plateau, PlateauStep, Quantity, ReuseStep
from roofdsl.counts.plateau_forms import Plateaus
from roofdsl.counts.quantity_of import quantity
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import statements
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.sets.access_sets import AccessSets, Reference
from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.cases import Case, Cases, constant
from roofdsl.sets.held_at_once import most_held
from roofdsl.sets.plateau_counter import PlateauCounter, PlateauLines
from roofdsl.sets.plateaus import Growth, Step, piece_range
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.residues import Class
from roofdsl.sets.reuse import ArrayReuse

BEST, MOST_OPERATIONS = "the room that the best replacement needs", 1_000_000
"""What it is called, and how many operations of the integer-set library it may take: a second or so."""


def element_text(r: Reference) -> str:
    """`A[i, k + 1]`."""
    return f"{r.array.name}[{', '.join(map(str, r.element.subscripts))}]"


class ReuseFacts:
    """The reuse of a kernel for large sizes. Raises NoClosedForm if its distances have no bounds or sizes decide which
    statements are executed.
    """

    def __init__(self, closed: ClosedForms, convention: Traffic, values: Mapping[str, int]) -> None:
        """For the residue class of the first plateaus under this convention, for sizes such as `values`."""
        self.closed, self.values = closed, values
        self.access_sets: AccessSets = closed.large_size_sets
        self.found: tuple[ArrayReuse, ...] = closed.pieces
        self.order: Growth = closed.order
        self.rows: Plateaus = self._guarded(lambda: closed.plateaus(convention))
        self.residues: Class = self._guarded(lambda: self.rows.example(values))
        self.steps: list[Step] = self._guarded(lambda: self.rows.steps(self.residues))
        self.loops = _loop_names(closed.kernel)
        self._hits: list[frozenset[int]] = []

    def _guarded(self, compute: Callable[[], Any]) -> Any:
        return self.closed.guard(compute, "the steps")

    def reuses(self) -> tuple[ReuseStep, ...]:
        """Every reuse for large sizes, one for each step of Q(Z), array, and loop that carries it."""
        return self._guarded(self._reuses)  # type: ignore[no-any-return]

    def matters(self, reuse: ReuseStep, moved: Iterable[Quantity]) -> bool:
        """Whether what `reuse` saves is of at least the order of what each array still moves on its plateau."""
        saved = _leading_weight(self.order, reuse.times)
        return all(saved >= _leading_weight(self.order, q) for q in moved)

    def _reuses(self) -> tuple[ReuseStep, ...]:
        rows = []
        for k, step in enumerate(self.steps):
            for reuse in self.found:
                groups: dict[tuple[str | None, bool], list[tuple[str, Any, Quasi]]] = {}
                for domain, distance in reuse.distances:
                    if id(domain) in step.pieces:
                        for reference, loop, within, part in self._carried(reuse, domain):
                            groups.setdefault((loop, within), []).append((reference, part, distance))
                for (loop, within), members in groups.items():
                    row = self._row(reuse.name, loop, within, members, k)
                    if row is not None:
                        rows.append(row)
        return tuple(sorted(rows, key=lambda row: (row.step, self._key(row.low), self._key(row.high))))

    def _key(self, q: Quantity) -> Any:
        return self.order.key(q.form.single or Quasi.constant(0)) if q.form is not None else ()

    def _row(
        self, array: str, loop: str | None, within: bool, members: list[tuple[str, Any, Quasi]], step: int
    ) -> ReuseStep | None:
        counts: dict[str, Any] = {}
        for name, part, _ in members:
            count = cardinality(part)
            counts[name] = count.add(counts[name]) if name in counts else count
        each = {name: self._far(count) for name, count in counts.items()}
        top = max(self.order.leading_weight(c) for c in each.values())
        most = {name: c for name, c in each.items() if c and self.order.leading_weight(c) == top}
        bounds = [b for b in (self._bounds(part, d) for name, part, d in members if name in most) if b is not None]
        if not bounds:
            return None  # it does not occur for large sizes
        total = sum(most.values(), Quasi.constant(0))
        low = min((b[0] for b in bounds), key=self.order.key)
        high = max((b[1] for b in bounds), key=self.order.key)
        return ReuseStep(array, tuple(most), loop, within, self._lead(low), self._lead(high), self._lead(total), step)

    def _bounds(self, part: Any, distance: Quasi) -> tuple[Quasi, Quasi] | None:
        """The leading terms of the least and the greatest distance; None if there is none for large sizes."""
        found = piece_range((part, distance), self.access_sets.sizes, self.order, self.residues)
        return None if found is None else (found.low, found.high)

    def _carried(self, reuse: ArrayReuse, domain: Any) -> list[tuple[str, str | None, bool, Any]]:
        """(reference, loop, within, part of `domain`), by the first place at which the time differs from that of the
        previous access.
        """
        import islpy as isl

        found = []
        for r in self.access_sets.references:
            if r.array.name != reuse.name:
                continue
            part = domain.intersect(r.domain)
            if part.is_empty():
                continue
            previous = reuse.previous.intersect_domain(part)
            around: str | None = None
            for k in range(r.domain.dim(isl.dim_type.set)):
                if previous.is_empty():
                    break
                name = r.domain.get_dim_name(isl.dim_type.set, k)
                loop = self.loops.get(name.split("_")[0]) if name else None
                same = isl.Map.universe(previous.get_space()).equate(isl.dim_type.in_, k, isl.dim_type.out, k)
                differing = previous.subtract(same)
                if not differing.is_empty():
                    found.append((element_text(r), loop or around, loop is None, differing.domain()))
                    previous = previous.intersect(same)
                around = loop or around
        return found

    def _far(self, count: Any) -> Quasi:
        """The leading terms of a count for large sizes."""
        return self.rows.leading(count, self.residues)

    def _lead(self, value: Quasi) -> Quantity:
        return quantity(lambda: constant_form(self.order.leading(value)), self.values)

    def plateaus(
        self, convention: Traffic, plateaus: tuple[Plateau, ...], reuses: tuple[ReuseStep, ...]
    ) -> tuple[PlateauStep, ...]:
        """For each plateau that holds for the same sizes as the first, the reuse that it newly holds and the traffic of
        its arrays.
        """
        return self._guarded(lambda: self._plateaus(convention, plateaus, reuses))  # type: ignore[no-any-return]

    def _plateaus(
        self, convention: Traffic, plateaus: tuple[Plateau, ...], reuses: tuple[ReuseStep, ...]
    ) -> tuple[PlateauStep, ...]:
        counters = [PlateauCounter(r) for r in self.found]
        rows = []
        told = -1
        plateaus = tuple(p for p in plateaus if p.where == plateaus[0].where)
        for plateau in plateaus:
            start = plateau.from_bytes.form
            edge = start.single if start is not None else None
            reached = [k for k, s in enumerate(self.steps) if edge and self.order.key(s.high) <= self.order.key(edge)]
            last = plateau is plateaus[-1]
            up_to = len(self.steps) - 1 if last else max(reached, default=-1)
            hits = frozenset(i for k in range(up_to + 1) for i in self.steps[k].pieces)
            moved = [(c.reuse.name, self._lead(self._moved(c.lines(hits), convention))) for c in counters]
            held = tuple(r for r in reuses if told < r.step <= up_to and self.matters(r, [q for _, q in moved]))
            told = max(told, up_to)
            rows.append(PlateauStep(plateau, held, tuple(moved)))
            self._hits.append(hits)
        return tuple(rows)

    def with_best(self, rows: tuple[PlateauStep, ...]) -> tuple[PlateauStep, ...]:
        """The rows of `plateaus`, and from where on the best replacement holds as much, if that is earlier.

        What does not grow with the problem is left out, and so is what takes long: this is an extra.
        """
        return tuple(self._with_best(row, hits) for row, hits in zip(rows, self._hits, strict=True))

    def _with_best(self, row: PlateauStep, hits: frozenset[int]) -> PlateauStep:
        form = row.plateau.from_bytes.form
        edge = form.single if form is not None else None
        if edge is None or not row.held or self.order.leading_weight(edge) == (0, 0):
            return row
        try:
            most = form_within(
                lambda: most_held(self.found, hits, self.access_sets, self.order, self.residues), BEST, MOST_OPERATIONS
            )
        except NoClosedForm:
            return row
        less = most is not None and self.order.key(most) < self.order.key(edge)
        return replace(row, best_from_bytes=self._lead(most)) if most is not None and less else row

    def _moved(self, lines: PlateauLines, convention: Traffic) -> Quasi:
        parts = [lines.begun_by_read if convention == "load_store" else lines.begun]
        parts += [] if convention == "once" else [lines.stored]
        total: Any = None
        for part in parts:
            if part is not None:
                total = part if total is None else total.add(part)
        return Quasi.constant(0) if total is None else self._far(total.scale_val(lines.bytes))


def _leading_weight(order: Growth, q: Quantity) -> tuple[int, int]:
    single = None if q.form is None else q.form.single
    return order.leading_weight(single) if single is not None else (0, 0)


def constant_form(value: Quasi) -> Cases:
    return Cases((Case((), value),)) if value else constant(0)


def _loop_names(kernel: Kernel) -> dict[str, str]:
    """The loop variable of each dimension t0, t1, ... of the time space T: loops in order of the text."""
    names: dict[tuple[int, ...], str] = {}
    for placed in statements(kernel.body):
        for depth, loop in enumerate(placed.loops):
            names.setdefault(placed.position[: depth + 1], loop.var)
    return {f"t{k}": var for k, var in enumerate(names.values())}
