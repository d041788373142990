"""A derivation as equations with their cases, for LaTeX and HTML: W, Q, Q(Z), I and the plateaus.

`derive_text` tells the same results for a terminal, in columns, with the case for large sizes first. Both take them
from `counts.readable_forms`.
"""

from __future__ import annotations

from collections.abc import Iterator

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Ratio, Traffics
from roofdsl.counts.readable_forms import (
    Form,
    condition_latex,
    condition_text,
    covers,
    gives,
    limit_of,
    of_quantity,
    of_ratio,
)
from roofdsl.machine.quantities import show_bytes, show_number, show_size
from roofdsl.sets.plateaus import Growth
from roofdsl.tell.blocks import Block, Code, Equation, Equations, Heading, Math, Paragraph, Sentence, Table
from roofdsl.tell.derive_shares import any_cache_title, share_sentence
from roofdsl.tell.equations import Writer, assumptions, joined, note_of, noted_with, word
from roofdsl.tell.maths import math, name
from roofdsl.tell.quantity_rows import WorkPart, work_parts
from roofdsl.tell.terms import traffic_blocks
from roofdsl.tell.words import (
    EXACT,
    NO_PAIR,
    ceiling,
    exact_number,
    fused_share,
    has_work,
    is_zero,
    leading_terms,
    once_differs,
    plateaus_by_sizes,
)

ELSE = "\\text{else}"

MOST_CASES = 4
"""The most cases of one quantity that are written out. Of more, only the one that holds at the given sizes, or for
large ones, is.
"""


def equation_blocks(d: Derivation) -> list[Block]:
    """W, Q, Q(Z) at the cache, I, and the plateaus, without the argument and without a heading for the kernel."""
    return list(_Equations(d).blocks())


class _Equations(Writer):
    def blocks(self) -> Iterator[Block]:
        d = self.d
        for short in self.names.values():
            yield Paragraph(("with ", name(short.name), " = ", Code(short.meaning)))
        yield from (Paragraph((f"note: {note}",)) for note in d.notes)
        yield Equations(tuple(self._equations()))
        for share in dict.fromkeys((*d.shares, *d.cache_shares, *(d.between.shares if d.between else ()))):
            yield Paragraph(share_sentence(share))
        if has_work(d) and is_zero(d.work.fused_pairs) and d.work.total.form is not None:
            yield Paragraph((NO_PAIR,))
        if not has_work(d):
            yield Paragraph(("No intensity: ", Math("W = 0", "W = 0"), "."))
        if d.cache_bytes is not None and d.at_cache.bytes.terms is not None:
            yield from traffic_blocks(Heading(f"Q({show_size(d.cache_bytes)})"), d.at_cache.bytes, self.order)
        if d.any_cache is not None:
            title = "Q(Z) with Z a symbol" if d.between is None else any_cache_title(d.between)
            yield from traffic_blocks(Heading(title), d.any_cache.bytes, self.order)
        yield from self._plateaus()

    def _equations(self) -> Iterator[Equation]:
        d = self.d
        for part in work_parts(d.work):
            yield self._row(part_name(part), part.of, part.unit, (part.remark,) if part.remark else ())
            if part.label == "fused pairs":
                share = ceiling(fused_share(d, self.order))
                remark: Sentence = (f"at most {share} of the fused peak",) if share else ()
                yield self._ratio(Math("alpha", "\\alpha"), d.work.fma_fraction, "", remark)
        for label, q in d.counters.items():
            yield self._row(word(label), q)
        yield from self._traffic(Math("Q", "Q"), d.compulsory, (d.convention,))
        for array, q in d.by_array.items():
            if q.form is not None or q.value is not None:
                yield self._row(word(f"distinct bytes of {array}"), q, "B")
        if d.cache_bytes is not None and d.at_cache.bytes.terms is None:
            at = show_size(d.cache_bytes)
            yield from self._traffic(Math(f"Q({at})", f"Q(\\text{{{at}}})"), d.at_cache, (d.convention,))
        if has_work(d):
            yield self._ratio(Math("I", "I"), d.intensity, f"{self.operation}/B", (d.convention,))
            if once_differs(d):
                once = Ratio(d.work.total, d.once, of_work=True)
                yield self._ratio(Math("I", "I"), once, f"{self.operation}/B", ("once",))
            if d.cache_bytes is not None:
                compulsory = Ratio(d.work.total, d.compulsory.bytes, of_work=True)
                yield self._ratio(Math("I", "I"), compulsory, f"{self.operation}/B", ("compulsory",))

    def _traffic(self, left: Math, t: Traffics, remark: Sentence) -> Iterator[Equation]:
        yield self._row(left, t.bytes, "B", remark)
        if t.loads is not None and t.stores is not None:
            yield self._row(word("loads"), noted_with(t.loads, t.bytes), "B")
            yield self._row(word("stores"), noted_with(t.stores, t.bytes), "B")

    def _row(self, left: Math, q: Quantity, unit: str = "", remark: Sentence = ()) -> Equation:
        form = of_quantity(q, self.order, self.names, self.d.values)
        sides = [] if form is None else [cases_math(form, "0")]
        here: Sentence = ()
        if q.value is not None and (not sides or exact_number(q.value).replace(",", "") != sides[0].text):
            value = exact_number(q.value)
            number = Math(value, value.replace(",", "{,}"))
            if gives(q, self.d.values):
                sides.append(number)
            else:
                sides, here = [number], ("for other sizes ", *sides)
        note = note_of(q, form is not None)
        assumes = assumptions(q.assumes)
        told = [part for part in (remark, here, assumes, note) if part]
        return Equation(left, tuple(sides) or (word("?"),), unit, joined(told))

    def _ratio(self, left: Math, r: Ratio, unit: str, remark: Sentence = ()) -> Equation:
        form = of_ratio(r, self.order, self.names, self.d.values)
        sides = [] if form is None else [cases_math(form, "-")]
        here: Sentence = ()
        if r.value is not None and (not sides or show_number(r.value) != sides[0].text):
            number = Math(show_number(r.value), show_number(r.value))
            if form is None or gives(r, self.d.values):
                sides.append(number)
            else:
                sides, here = [number], ("for other sizes ", *sides)
        limit = None if self.d.shares_at_cache else limit_of(r, self.order, self.d.values)
        tends: Sentence = ()
        if form is not None and limit is not None and limit != form.main.expr:
            shown = math(limit)
            tends = (Math(f"-> {shown.text}", f"\\to {shown.latex}"), " for large sizes")
        assumes = assumptions(r.assumes)
        note: Sentence = () if sides else (f"no closed form: {r.note}",)
        told = [part for part in ((remark, here, tends) if here else (tends, remark)) if part]
        told += [part for part in (assumes, note) if part]
        return Equation(left, tuple(sides) or (word("?"),), unit, joined(told))

    def _plateaus(self) -> Iterator[Block]:
        d = self.d
        if not d.plateaus:
            if d.plateaus_note:
                yield Paragraph((f"Plateaus of Q(Z): no closed form: {d.plateaus_note}",))
            return
        yield Heading(f"Plateaus of Q(Z) ({leading_terms(d, self.order)})")
        head: tuple[Sentence, ...] = (("from ", Math("Z", "Z"), " (B)"), (), (Math("Q", "Q"), " (B)"), ())
        head += ((Math("I", "I"), f" ({self.operation}/B)"), (), ())
        for where, plateaus in plateaus_by_sizes(d):
            if where is not None:
                yield Paragraph(("for ", Code(str(where)), ":"))
            yield Table(head, tuple(self._plateau(p) for p in plateaus))

    def _plateau(self, p: Plateau) -> tuple[Sentence, ...]:
        intensity = of_ratio(p.intensity, self.order, self.names)
        at, moved, ratio = p.from_bytes.value, p.bytes.value, p.intensity.value
        sized = moved is not None and not self.main(p.bytes).text.isdigit()
        row: tuple[Sentence, ...] = ((self.main(p.from_bytes),), (show_size(at),) if sized and at else ())
        row += ((self.main(p.bytes),), (show_bytes(moved),) if sized and moved is not None else ())
        row += ((math(intensity.main.expr),) if intensity else (), (show_number(ratio),) if sized and ratio else ())
        return (*row, (EXACT,) if p.exact else self.end(p))


def part_name(part: WorkPart) -> Math:
    """The left side of the equation of W or of one of its parts."""
    return Math("W", "W") if part.label == "W" else word(part.label)


def closed_form(q: Quantity | Ratio) -> Math | None:
    """A closed form with its cases; None if there is none."""
    order = Growth(frozenset())
    if isinstance(q, Quantity):
        form, otherwise = of_quantity(q, order), "0"
    else:
        form, otherwise = of_ratio(q, order), "-"
    return None if form is None else cases_math(form, otherwise)


def cases_math(form: Form, otherwise: str) -> Math:
    """A closed form with its cases; if there are many, only the main one with its condition."""
    main = math(form.main.expr)
    if not form.main.where and not form.others:
        return main
    branches = [form.main, *form.others]
    if len(branches) > MOST_CASES:
        branches = [form.main]
    text = "; ".join(f"{math(b.expr).text} if {condition_text(b.where)}" if b.where else main.text for b in branches)
    rows = [f"{math(b.expr).latex} & {condition_latex(b.where) or ELSE}" for b in branches]
    if len(branches) == len(form.branches) and not covers(form):
        rows.append(f"{otherwise} & {ELSE}")
    elif len(branches) < len(form.branches):
        rows.append(f"\\ldots & \\text{{{len(form.others)} cases for other sizes}}")
    inside = " \\\\ ".join(rows)
    return Math(text, f"\\begin{{cases}} {inside} \\end{{cases}}")
