"""Equations of derived quantities: the parts of a sum, its closed form, its number."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Ratio
from roofdsl.counts.growth import growth_of
from roofdsl.counts.readable_forms import condition_latex, condition_text, gives, limit_of, names_of_derivation
from roofdsl.counts.readable_forms import of_quantity as form_of
from roofdsl.counts.readable_forms import of_ratio as ratio_form
from roofdsl.formulas.fact_text import fact_latex, fact_text
from roofdsl.formulas.quotients import Alternatives
from roofdsl.lang.record import replace
from roofdsl.machine.quantities import show_number
from roofdsl.sets.facts import Fact
from roofdsl.tell.blocks import Equation, Inline, Math, Sentence
from roofdsl.tell.maths import math, total
from roofdsl.tell.maths import ratio as fraction
from roofdsl.tell.words import exact_number, missing, operation_name


class Writer:
    """Writes the quantities of one derivation with named floors; of several cases, the one at the given (or large)
    sizes.
    """

    def __init__(self, d: Derivation) -> None:
        self.d = d
        self.order = growth_of(d.kernel)
        self.names = names_of_derivation(d)
        self.operation = operation_name(d.work)

    def main(self, q: Quantity) -> Math:
        """The case shown."""
        form = form_of(q, self.order, self.names, self.d.values)
        return Math("?", "?") if form is None else math(form.main.expr)

    def where(self, q: Quantity) -> Sentence:
        """The condition of the case shown."""
        form = form_of(q, self.order, self.names, self.d.values)
        if form is None or not form.main.where:
            return ()
        return (" if ", Math(condition_text(form.main.where), condition_latex(form.main.where)))

    def end(self, p: Plateau) -> Sentence:
        """The Z at which Q(Z) begins to fall, if that is before the next plateau."""
        if p.until_bytes is None:
            return ()
        end = self.main(p.until_bytes)
        if end == self.main(p.from_bytes):
            return ("falls from there on",)
        return ("until ", Math("Z", "Z"), " = ", end, ", then falls")

    def number(self, q: Quantity, shown: Math | None) -> str:
        """The number of a quantity, if it says more than its form."""
        text = "" if q.value is None else exact_number(q.value)
        return text if shown is None or text.replace(",", "") != shown.text else ""

    def equation(self, left: Math, parts: Sequence[Math], q: Quantity, unit: str, remark: Sentence = ()) -> Equation:
        """left = the sum of `parts` = the closed form = the number."""
        sides = [total(parts)] if parts else []
        form = form_of(q, self.order, self.names, self.d.values)
        if form is not None:
            sides.append(math(form.main.expr))
        shown = self.number(q, sides[-1] if sides else None)
        here: Sentence = ()
        if shown:
            number = Math(shown, shown.replace(",", "{,}"))
            if gives(q, self.d.values):
                sides.append(number)
            else:
                sides, here = [number], (" for other sizes ", *sides)
        return Equation(left, tuple(sides), unit, (*remark, *self.where(q), *here))

    def ratio(self, left: Math, of: Math, r: Ratio, unit: str, remark: Sentence = ()) -> Equation:
        """left = `of` (what it is a ratio of) = the forms divided = lowest terms = the number, and its limit."""
        sides = [of]
        form = ratio_form(r, self.order, self.names, self.d.values)
        where: Sentence = ()
        is_elsewhere = False
        if form is not None:
            if r.of_work and self._is_of(r, form.main.where):
                sides.append(fraction(self.main(r.numerator), self.main(r.denominator)))
            sides.append(math(form.main.expr))
            if form.main.where:
                where = (" if ", Math(condition_text(form.main.where), condition_latex(form.main.where)))
        if r.value is not None and (form is None or show_number(r.value) != sides[-1].text):
            number = Math(show_number(r.value), show_number(r.value))
            is_elsewhere = form is not None and not gives(r, self.d.values)
            if is_elsewhere:
                sides, where = [of, number], ("for other sizes ", sides[-1], *where)
            else:
                sides.append(number)
        limit = limit_of(r, self.order, self.d.values)
        tends: Sentence = ()
        if form is not None and limit is not None and limit != form.main.expr:
            shown = math(limit)
            tends = (Math(f"-> {shown.text}", f"\\to {shown.latex}"), " for large sizes")
        words = [w for w in ((where, tends, remark) if is_elsewhere else (tends, where, remark)) if w]
        joined: list[Inline] = []
        for k, w in enumerate(words):
            joined += ["  "] * bool(k) + list(w)
        return Equation(left, tuple(sides), unit, tuple(joined))

    def _is_of(self, r: Ratio, where: Alternatives) -> bool:
        """Whether the cases shown of both parts hold wherever `where` does, the condition of the case shown of r."""
        parts = (form_of(q, self.order, self.names, self.d.values) for q in (r.numerator, r.denominator))
        return all(part is not None and part.main.where in ((), where) for part in parts)


def word(label: str) -> Math:
    """Words in a formula."""
    return Math(label, f"\\text{{{label.replace('_', chr(92) + '_')}}}")


def note_of(q: Quantity | Ratio, has_form: bool) -> Sentence:
    """Why a quantity has neither form nor value, or no value at the given sizes."""
    if q.value is not None or (has_form and not q.note):
        return ()
    return (f"{missing(has_form)}: {q.note}" if q.note else missing(has_form),)


def noted_with(q: Quantity, whole: Quantity) -> Quantity:
    """A part of `whole` without its note if it is the same, which is told once."""
    return replace(q, note="") if q.note == whole.note else q


def assumptions(facts: Sequence[Fact]) -> Sentence:
    """`for n >= 4, b >= 2`: the conditions under which a form holds, in addition to the kernel's own."""
    out: list[Inline] = []
    for fact in facts:
        words, formula = fact_text(fact), fact_latex(fact)
        out += [", " if out else "for ", words if formula is None else Math(words, formula)]
    return tuple(out)


def joined(sentences: Sequence[Sentence]) -> Sentence:
    """Sentences, with commas between them."""
    out: list[Inline] = []
    for k, sentence in enumerate(sentences):
        out += [", "] * bool(k) + list(sentence)
    return tuple(out)
