"""The argument of a derivation, step by step: `derive --steps`. Quotes the facts of `roofdsl.counts.steps`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count

from roofdsl.counts.derived import (
    ArrayStep,
    Derivation,
    PlateauStep,
    Quantity,
    Ratio,
    ReuseStep,
    StatementStep,
    Steps,
    combined,
)
from roofdsl.counts.readable_forms import condition_latex, condition_text, limit_of
from roofdsl.counts.readable_forms import of_quantity as form_of
from roofdsl.counts.readable_forms import of_ratio as ratio_form
from roofdsl.lang.operation_classes import OPERATION_CLASSES
from roofdsl.machine.quantities import show_number, show_size
from roofdsl.tell.best_replacement import less_room
from roofdsl.tell.blocks import Block, Code, Equations, Heading, Inline, Math, Paragraph, Sentence, Table
from roofdsl.tell.equations import Writer, assumptions, word
from roofdsl.tell.loops import range_text, sums
from roofdsl.tell.maths import math, name, times
from roofdsl.tell.terms import terms_blocks, traffic_blocks
from roofdsl.tell.words import (
    CONVENTIONS,
    cache_title,
    class_name,
    fused_share,
    has_work,
    is_zero,
    leading_terms,
    once_differs,
)

MOST_CASES = 3
"""The most further cases that are written out; if there are more, none of them is."""

WHY = {
    "read": "only read: loaded, never stored",
    "read, then written": "read before it is written: loaded at first, {end} at the end",
    "written": "written and never read: not loaded, {end} at the end",
    "written, then read": "written before it is read: not loaded, {end} at the end",
    "mixed": "elements read first are loaded; written elements are {end} at the end",
}
WHY_ALLOCATE = {
    "written": "written and never read, but a write miss loads: loaded at first, {end} at the end",
    "written, then read": "written before it is read, but a write miss loads: loaded at first, {end} at the end",
    "mixed": "every first access loads, even a write; written elements are {end} at the end",
}


def step_blocks(d: Derivation) -> list[Block]:
    """The whole argument. Raises ValueError for a derivation without steps."""
    if d.steps is None:
        raise ValueError("use derive(..., steps=True) for the steps")
    return list(_Argument(d, d.steps).blocks())


class _Argument(Writer):
    def __init__(self, d: Derivation, steps: Steps) -> None:
        super().__init__(d)
        self.steps = steps
        self.numbers = count(1)

    def heading(self, words: str) -> Heading:
        return Heading(f"{next(self.numbers)}. {words}")

    def blocks(self) -> Iterator[Block]:
        yield from self._operations()
        yield from self._compulsory()
        yield from self._reuse()
        yield from self._plateaus()
        yield from self._cache()
        if self.d.any_cache is not None:
            yield from traffic_blocks(self.heading("Q(Z) with Z a symbol"), self.d.any_cache.bytes, self.order)
        yield from self._intensity()

    # ---- 1: W ----

    def _operations(self) -> Iterator[Block]:
        yield self.heading("Operations")
        for short in self.names.values():
            yield Paragraph(("with ", name(short.name), " = ", Code(short.meaning)))
        for s in self.steps.statements:
            yield from self._statement(s)
        work = self.d.work
        if not has_work(self.d):
            yield Paragraph(("Nothing is computed: ", Math("W = 0", "W = 0"), "."))
            return
        parts = [
            times(s.total, self.main(s.executions)) for s in self.steps.statements if s.total and s.executions.form
        ]
        if work.total.form is None and work.total.value is None:
            return
        rows = [self.equation(Math("W", "W"), parts, work.total, self.operation)]
        pairs = [
            times(s.fused_pairs, self.main(s.executions))
            for s in self.steps.statements
            if s.fused_pairs and s.executions.form
        ]
        if not is_zero(work.fused_pairs):
            rows.append(self.equation(Math("F", "F"), pairs, work.fused_pairs, "", ("fused pairs",)))
            others = work.fma_fraction.denominator
            loose = _minus(others, work.fused_pairs)
            if loose is not None:
                rows.append(
                    self.equation(Math("N", "N"), [Math("W - 2*F", "W - 2 F")], loose, "", ("unfused operations",))
                )
            alpha = ratio_form(work.fma_fraction, self.order, self.names)
            if alpha is not None:
                of = Math("F/(F + N)", "\\frac{F}{F + N}")
                rows.append(self.ratio(Math("alpha", "\\alpha"), of, work.fma_fraction, ""))
        yield Equations(tuple(rows))
        yield from self._ceiling()
        for label, q in (("comparisons", work.cmp), ("casts", work.casts), *self.d.counters.items()):
            if not is_zero(q) and q.form is not None:
                yield Equations((self.equation(word(label), [], q, "", ("not in W",)),))

    def _statement(self, s: StatementStep) -> Iterator[Block]:
        yield Paragraph((Code(s.text),))
        where: list[Inline] = []
        if s.loops:
            where += ["for ", Code(", ".join(range_text(loop) for loop in s.loops))]
        if s.guards:
            where += [" where " if where else "where ", Code(" and ".join(s.guards))]
        where += [": "] if where else []
        yield Paragraph((*where, *self._executions(s)), 1)
        costs = dict(s.operations)
        cost = [f"{costs[kind]} {class_name(kind)}" for kind in OPERATION_CLASSES if kind in costs]
        if s.comparisons:
            cost.append(f"{s.comparisons} comparison{'s' if s.comparisons > 1 else ''} (not in W)")
        if s.casts:
            cost.append(f"{s.casts} cast{'s' if s.casts > 1 else ''} (not in W)")
        fused = f", of which {_pairs(s.fused_pairs)}" if s.fused_pairs else ""
        each = f"each time {', '.join(cost)}: {s.total} {self.operation}{fused}" if cost else "no operations"
        yield Paragraph((each,), 1)

    def _executions(self, s: StatementStep) -> Sentence:
        form = form_of(s.executions, self.order, self.names)
        if form is None:
            return (f"no closed form: {s.executions.note}",)
        shown = math(form.main.expr)
        count = Math(shown.text, f"{sums(s.loops)} 1 = {shown.latex}") if s.loops and not s.guards else shown
        once = shown.text == "1"
        value = self.number(s.executions, shown)
        value = f" = {value}" if value else ""
        return (count, value, " time" if once else " times", *self.where(s.executions))

    def _ceiling(self) -> Iterator[Block]:
        work = self.d.work
        if work.total.form is None:
            return
        if is_zero(work.fused_pairs):
            yield Paragraph(("No addition uses a product, so there is no fused pair: at most half the fused peak.",))
            return
        limit = limit_of(work.fma_fraction, self.order, self.d.values)
        alpha = work.fma_fraction.value
        known = fused_share(self.d, self.order)
        if known is not None:
            share = math((1 + known) / 2)
            formula = Math(f"(1 + alpha)/2 = {share.text}", f"\\frac{{1 + \\alpha}}{{2}} = {share.latex}")
            tends = " for large sizes" if alpha is None and limit != _single(work.fma_fraction) else ""
            percent = show_number((1 + known) * 50)
            yield Paragraph(("Ceiling: ", formula, f", {percent} % of the fused peak{tends}."))

    # ---- 2: compulsory traffic ----

    def _compulsory(self) -> Iterator[Block]:
        d = self.d
        yield self.heading("Compulsory traffic: each datum moves as rarely as the convention allows")
        yield Paragraph((f"{d.convention}: {CONVENTIONS[d.convention]}",))
        arrays = self.steps.arrays
        if not arrays and d.compulsory.bytes.note:
            yield Paragraph((f"no closed form: {d.compulsory.bytes.note}",))
        if arrays:
            yield self._arrays(arrays)
        if d.convention != "once":
            reasons = WHY | WHY_ALLOCATE if d.convention == "write_allocate" else WHY
            for a in arrays:
                is_temporary = a.intent == "temp"
                why = reasons[a.first].format(end="dropped" if is_temporary else "stored")
                yield Paragraph((name(a.name), f": {'temporary: ' if is_temporary else ''}{why}"))
        loaded, stored = self.steps.scalars
        for verb, size in (("loaded", loaded), ("stored", stored)):
            if size:
                yield Paragraph((f"scalars, {verb} once per execution: {size} B",))
        past = [] if self.steps.streamed is None else [self.main(self.steps.streamed)]
        for total in past:
            yield Paragraph(("stores that bypass the caches move each stored element to memory at once: ", total, " B"))
        rows = []
        if d.compulsory.bytes.form is not None:
            if d.compulsory.loads is not None and d.compulsory.stores is not None:
                loads = [self.main(a.loaded) for a in arrays if a.loaded is not None and not is_zero(a.loaded)]
                stores = [self.main(a.stored) for a in arrays if a.stored is not None and not is_zero(a.stored)]
                loads += [math(loaded)] if loaded else []
                stores += [math(stored)] if stored else []
                stores += past
                rows.append(self.equation(word("loads"), loads, d.compulsory.loads, "B"))
                rows.append(self.equation(word("stores"), stores, d.compulsory.stores, "B"))
                rows.append(self.equation(Math("Q", "Q"), [], d.compulsory.bytes, "B"))
            else:
                parts = [self.main(a.bytes) for a in arrays if not is_zero(a.bytes)]
                parts += [math(stored)] if stored else []
                parts += past
                rows.append(self.equation(Math("Q", "Q"), parts, d.compulsory.bytes, "B"))
            yield Equations(tuple(rows))

    def _arrays(self, arrays: Sequence[ArrayStep]) -> Table:
        unit = "lines" if any(a.in_lines for a in arrays) else "elements"
        head: tuple[Sentence, ...] = (("array",), ("touched by",), (f"distinct {unit}",), ("bytes each",), ("bytes",))
        loads = any(a.loaded is not None for a in arrays)
        head += (("loaded",), ("stored",)) if loads else ()
        rows = []
        for a in arrays:
            row: list[Sentence] = [
                (name(a.name),),
                (Code(_few(a.references)),),
                (self.main(a.distinct),),
                (str(a.unit_bytes),),
                (self.main(a.bytes),),
            ]
            if loads:
                row += [(self.main(q),) if q is not None else () for q in (a.loaded, a.stored)]
            rows.append(tuple(row))
        return Table(head, tuple(rows))

    # ---- 3 and 4: reuse and plateaus ----

    def _reuse(self) -> Iterator[Block]:
        yield self.heading("Reuse")
        if not self.d.plateaus or self.steps.note:
            yield Paragraph((f"no closed form: {self.steps.note or self.d.plateaus_note}",))
            return
        if not self.steps.reuses:
            yield Paragraph(("No datum is used twice, so the traffic is the same for every cache size.",))
            return
        words = "lines" if self.d.line_bytes is not None else "elements"
        yield Paragraph(
            (
                f"The reuse distance is the number of bytes of distinct {words} touched since the last access, "
                "including the datum itself. A cache of that size still holds the datum. Leading terms:",
            )
        )
        head: tuple[Sentence, ...] = (("datum",), ("last touched in",), ("distance (B)",), ("times",), ())
        cache = self.d.cache_bytes
        if cache is not None:
            head = (*head[:4], (f"at {show_size(cache)}",))
        yield Table(head, tuple(self._reuse_row(r) for r in self.steps.reuses))

    def _reuse_row(self, r: ReuseStep) -> tuple[Sentence, ...]:
        low, high = self.main(r.low), self.main(r.high)
        distance: Sentence = (high,) if low == high else (low, " to ", high)
        verdict: Sentence = ()
        if self.d.cache_bytes is not None:
            verdict = (_held(r, self.d.cache_bytes),)
        return (Code(_few(r.references)),), _last(r), distance, (self.main(r.times),), verdict

    def _plateaus(self) -> Iterator[Block]:
        rows = self.steps.plateaus
        if not rows:
            return
        yield self.heading(f"What a cache of Z bytes moves ({leading_terms(self.d, self.order)})")
        names = [n for n, _ in rows[0].by_array]
        head: list[Sentence] = [("from Z (B)",), (), ("now held",)]
        head += [(name(n), " (B)") for n in names] if len(names) > 1 else []
        head += [("Q (B)",), (), (f"I ({self.operation}/B)",), (), ()]
        yield Table(tuple(head), tuple(self._plateau_row(row, names) for row in rows))
        for row in rows:
            if row.best_from_bytes is not None:
                sizes = row.plateau.from_bytes, row.best_from_bytes
                yield Paragraph(less_room(self.d.kernel, row.held, sizes, self.main, self._now_held(row.held)))

    def _plateau_row(self, row: PlateauStep, names: Sequence[str]) -> tuple[Sentence, ...]:
        p = row.plateau
        intensity = ratio_form(p.intensity, self.order, self.names)
        moved = dict(row.by_array)
        at = p.from_bytes.value
        constant = self.main(p.from_bytes).text.isdigit()
        size: Sentence = (show_size(at),) if at is not None and not constant else ()
        value = p.intensity.value
        number: Sentence = (show_number(value),) if value is not None and size else ()
        cells: list[Sentence] = [(self.main(p.from_bytes),), size, self._now_held(row.held)]
        cells += [(self.main(moved[n]),) for n in names] if len(names) > 1 else []
        cells += [(self.main(p.bytes),), (), (math(intensity.main.expr),) if intensity else (), number]
        cells.append(self.end(p))
        return tuple(cells)

    def _now_held(self, held: Sequence[ReuseStep]) -> Sentence:
        if not held:
            return ("nothing",)
        groups: dict[str, list[str]] = {}
        for r in held:
            where = "within" if r.within else "over"
            what = f"{where} {r.loop}" if r.loop else "between nests"
            arrays = groups.setdefault(what, [])
            shown = ", ".join(r.references) if len(r.references) <= 2 else r.array
            if shown not in arrays:
                arrays.append(shown)
        return ("; ".join(f"{', '.join(arrays)} {what}" for what, arrays in groups.items()),)

    def _cache(self) -> Iterator[Block]:
        d = self.d
        if d.cache_bytes is None:
            return
        yield self.heading(cache_title(d.cache_bytes, d.line_bytes))
        yield Paragraph(("Every access whose distance is larger misses; counted exactly, lower orders included:",))
        t = d.at_cache
        if t.bytes.terms is not None:
            yield from terms_blocks(t.bytes.terms)
        rows = [
            self.equation(left, [], q, "B")
            for left, q in ((word("loads"), t.loads), (word("stores"), t.stores), (Math("Q(Z)", "Q(Z)"), t.bytes))
            if q is not None and (q.form is not None or q.value is not None)
        ]
        if rows:
            yield Equations(tuple(rows))
        form = form_of(t.bytes, self.order, self.names, d.values)
        for other in form.others if form is not None and len(form.others) <= MOST_CASES else ():
            condition = Math(condition_text(other.where), condition_latex(other.where))
            yield Paragraph(("and ", math(other.expr), " B if ", condition))
        if t.bytes.form is None and t.bytes.terms is None:
            yield Paragraph((f"no closed form: {t.bytes.note}",))
        elif t.bytes.assumes:
            yield Paragraph(assumptions(t.bytes.assumes))

    # ---- the end: I ----

    def _intensity(self) -> Iterator[Block]:
        d = self.d
        yield self.heading("Intensity")
        if not has_work(d):
            yield Paragraph(
                (
                    "None: ",
                    Math("W = 0", "W = 0"),
                    ", so that only bytes per second can be compared.",
                )
            )
            return
        unit = f"{self.operation}/B"
        rows = []
        q = Math("Q(Z)", "Q(Z)") if d.cache_bytes is not None else Math("Q", "Q")
        of = Math(f"W/{q.text}", f"\\frac{{W}}{{{q.latex}}}")
        beside = once_differs(d)
        remark: Sentence = (f"({d.convention})",) if beside else ()
        if d.intensity.cases() or d.intensity.value is not None:
            rows.append(self.ratio(Math("I", "I"), of, d.intensity, unit, remark))
        once = Ratio(d.work.total, d.once, of_work=True)
        if beside and (once.cases() or once.value is not None):
            rows.append(self.ratio(Math("I", "I"), Math("W/Q", "\\frac{W}{Q}"), once, unit, ("(once)",)))
        if rows:
            yield Equations(tuple(rows))
        else:
            yield Paragraph((f"no closed form: {d.intensity.note}",))


def _single(r: Ratio) -> object:
    rows = r.cases()
    return rows[0].value if len(rows) == 1 else None


def _minus(a: Quantity, b: Quantity) -> Quantity | None:
    found = combined(a, b, -1)
    return found if found.form is not None else None


def _pairs(count: int) -> str:
    return "1 fused pair" if count == 1 else f"{count} fused pairs"


def _few(references: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(references[:most])
    return shown if len(references) <= most else f"{shown}, ... ({len(references)} in all)"


def _last(r: ReuseStep) -> Sentence:
    if r.loop is None:
        return ("an earlier statement",)
    return ("the same ", name(r.loop)) if r.within else ("the previous ", name(r.loop))


def _held(r: ReuseStep, cache: int) -> str:
    """In words, whether a cache of this size holds the datum; leading terms prove nothing within a fifth of it."""
    low, high = r.low, r.high
    exact = all(q.form is not None and q.form.single is not None and q.form.single.is_constant() for q in (low, high))
    if low.value is None or high.value is None:
        return "missed for large sizes" if low.value is None or low.value > cache else "held in part"
    if high.value * (1 if exact else Fraction(6, 5)) <= cache:
        return "held"
    if low.value * (1 if exact else Fraction(4, 5)) > cache:
        return "missed"
    return "held in part" if low.value < cache < high.value else "near its size"
