"""Sums of terms as lines of text, as blocks and as JSON: each term with its condition, then the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm
from typing import Any

from roofdsl.counts.derived import Quantity
from roofdsl.counts.growth import smallest
from roofdsl.counts.narrow_cases import apart
from roofdsl.counts.readable_forms import condition_latex, condition_text
from roofdsl.formulas.quotients import Alternatives, Quotient, Shorthand
from roofdsl.formulas.writing import latex, latex_name, neat_latex, neat_text, sympy_condition, text
from roofdsl.sets.cases import Constraint
from roofdsl.sets.facts import CACHE
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Definition, Rest, Root, Span, Term, Terms
from roofdsl.tell.blocks import Block, Heading, Math, Paragraph, Sentence, Table
from roofdsl.tell.equations import assumptions
from roofdsl.tell.floors import with_names
from roofdsl.tell.line_breaks import LONG
from roofdsl.tell.maths import math, name
from roofdsl.tell.words import exact_number, narrow_cases_text


def terms_lines(form: Terms, unit: str = "B") -> Iterator[str]:
    """The terms, beginning with those that always hold, and the definitions of their names."""
    form, names = with_names(form)
    rows = [(f"{math(t.value).text} {unit}{_span(t.over)}", _if(t.where)) for t in form.terms]
    if not rows:
        yield f"0 {unit}"
        return
    signs = ["-" if term.startswith("-") else "+" for term, _ in rows]
    signs[0] = signs[0].replace("+", " ")
    short = max((len(term) for term, where in rows if len(term) <= LONG and where), default=0)
    for sign, (term, where) in zip(signs, rows, strict=True):
        yield f"{sign} {term.removeprefix('-').ljust(short)}  {where}".rstrip()
    if names or form.definitions:
        yield "with"
        yield from (f"  {short.name} = {short.meaning}" for short in names)
        yield from (f"  {_meaning(d).text}" for d in form.definitions)


def _span(over: Span | None) -> str:
    return "" if over is None else f" summed over {over.name} = {text(over.low)} .. {text(over.high)}"


def _if(where: Alternatives) -> str:
    return f"if {condition(where).text}" if where else ""


MOST_ROWS = 60
"""Terms and meanings that blocks write out; text and JSON have all."""


def traffic_blocks(heading: Heading, q: Quantity, order: Growth) -> Iterator[Block]:
    """A traffic that is a sum of terms, or given case by case from the smallest cache up, as blocks."""
    yield heading
    if q.terms is not None:
        if q.terms.assumes:
            yield Paragraph(assumptions(q.terms.assumes))
        yield from terms_blocks(q.terms)
    elif q.form is not None:
        if q.form.assumes:
            yield Paragraph(assumptions(q.form.assumes))
        shown, narrow = apart(q.form.cases, q.form.assumes, order)
        cases = sorted(shown, key=lambda case: smallest(case, CACHE, order))
        head: tuple[Sentence, ...] = ((Math("Q", "Q"), " (B)"), ("if",))
        yield Table(head, tuple(((math(c.value),), _sentence(c.alternatives)) for c in cases))
        if narrow:
            yield Paragraph((f"{narrow_cases_text(len(narrow))}; the text (with --all-cases) and JSON have them.",))
    else:
        yield Paragraph((f"no closed form: {q.note}",))
    if q.value is not None:
        yield Paragraph((f"in all {exact_number(q.value)} B",))


def terms_blocks(form: Terms) -> Iterator[Block]:
    """The terms as a table, then the definitions of their names."""
    form, names = with_names(form)
    head: tuple[Sentence, ...] = (("the sum of (B)",), ("if",))
    yield Table(head, tuple(((_shown(t),), _sentence(t.where)) for t in form.terms[:MOST_ROWS]))
    yield from (Paragraph((_called(short),)) for short in names)
    yield from (Paragraph((_meaning(d),)) for d in form.definitions[:MOST_ROWS])
    if len(form.terms) > MOST_ROWS or len(form.definitions) > MOST_ROWS:
        yield Paragraph(
            (f"All {len(form.terms)} terms and {len(form.definitions)} names are in the text and in JSON.",)
        )


def _sentence(where: Alternatives) -> Sentence:
    return (condition(where),) if where else ()


def terms_entry(form: Terms) -> dict[str, Any]:
    """JSON: {"sum": [{"expr", "if", "over"}], "where": [definitions]}; sympy can read every expression.

    "if" is null if a term always counts; "over" is present if the term is summed over a variable.
    """
    return {"sum": [_term_entry(t) for t in form.terms], "where": [_definition_entry(d) for d in form.definitions]}


def _term_entry(t: Term) -> dict[str, Any]:
    out: dict[str, Any] = {"expr": text(t.value), "if": sympy_condition(t.where) if t.where else None}
    if t.over is not None:
        out["over"] = {"name": t.over.name, "from": text(t.over.low), "to": text(t.over.high)}
    return out


def _definition_entry(d: Definition) -> dict[str, Any]:
    if isinstance(d, Rest):
        return {"name": d.name, "is": "bounded", "of": text(d.of), "from": text(d.low - 1), "to": text(d.high)}
    kind = "greatest" if d.rises else "least"
    ends = {"from": text(d.low), "to": text(d.high)}
    return {"name": d.name, "is": kind, "of": text(d.of), "at_most": text(d.limit), **ends}


# ---- terms and conditions ----


def _shown(t: Term) -> Math:
    value = math(t.value)
    if t.over is None:
        return value
    low, high = t.over.low, t.over.high
    return Math(
        f"sum of {value.text} over {t.over.name} = {text(low)} .. {text(high)}",
        f"\\sum_{{{latex_name(t.over.name)}={latex(low)}}}^{{{latex(high)}}} \\left({value.latex}\\right)",
    )


def condition(where: Alternatives) -> Math:
    """A condition: bounds of the cache as `Z < 16*n + 8`, other parts as everywhere."""
    each = [_conjunction(constraints) for constraints in where]
    return Math(" or ".join(m.text for m in each), "\\ \\text{or}\\ ".join(m.latex for m in each))


def _conjunction(constraints: tuple[Constraint, ...]) -> Math:
    bounds = [(value, _above(value)) for value, zero in constraints if not zero]
    cache = [bound for _, bound in bounds if bound is not None]
    rest = tuple(c for c in constraints if c[1] or _above(c[0]) is None)
    parts = [Math(f"{CACHE} < {neat_text(b)}", f"{CACHE} < {neat_latex(b)}") for b in cache]
    if rest:
        parts.append(Math(condition_text((rest,)), condition_latex((rest,))))
    return Math(" and ".join(p.text for p in parts), ",\\ ".join(p.latex for p in parts))


def _above(value: Quasi) -> Quasi | None:
    """b, if `value` >= 0 means Z < b; None if it means anything else."""
    if dict(value.terms).get(((CACHE, 1),)) != -1:
        return None
    bound = value + Quasi.symbol(CACHE) + 1
    return None if CACHE in bound.names() else bound


# ---- what names mean ----


def _called(short: Shorthand) -> Math:
    own, meaning = name(short.name), math(Quasi.symbol(short.floor))
    return Math(f"{own.text} = {meaning.text}", f"{own.latex} = {meaning.latex}")


def _meaning(d: Definition) -> Math:
    if isinstance(d, Rest):
        return _bounded(d.name, _rounded(d.of, "floor"), d.low - 1, d.high)
    linear = d.linear
    ends = (d.low - 1, d.high) if d.rises else (d.low, d.high + 1)
    if linear is not None:
        constant, slope = linear
        value = _divided(d.limit - constant, slope) if d.rises else _divided(constant - d.limit, -slope)
        return _bounded(d.name, _rounded(value, "floor" if d.rises else "ceiling"), *ends)
    return _by_search(d, ends[0] if d.rises else ends[1])


def _by_search(d: Root, otherwise: Quasi) -> Math:
    of, limit, low, high, none = (math(v) for v in (d.of, d.limit, d.low, d.high, otherwise))
    which = "greatest" if d.rises else "least"
    own = name(d.name)
    return Math(
        f"{own.text} = the {which} of {low.text} .. {high.text} with {of.text} <= {limit.text}, {none.text} if none is",
        f"{own.latex} = \\text{{the {which} of }} {low.latex} \\ldots {high.latex} \\text{{ with }} {of.latex} \\leq "
        f"{limit.latex},\\ {none.latex} \\text{{ if none is}}",
    )


def _bounded(named: str, value: Math, low: Quasi, high: Quasi) -> Math:
    least, most, own = math(low), math(high), name(named)
    return Math(
        f"{own.text} = {value.text}, at least {least.text}, at most {most.text}",
        f"{own.latex} = {value.latex},\\ \\text{{at least }} {least.latex},\\ \\text{{at most }} {most.latex}",
    )


def _divided(top: Quasi, bottom: Quasi) -> Quotient:
    """top / bottom without their common numeric factor."""
    scale = lcm(*(c.denominator for part in (top, bottom) for _, c in part))
    common = gcd(*(int(c * scale) for part in (top, bottom) for _, c in part)) or 1
    factor = Quasi.constant(scale) * Quasi.constant(common) ** -1
    return Quotient(top * factor, bottom * factor)


def _rounded(value: Quasi | Quotient, how: str) -> Math:
    if isinstance(value, Quasi):
        value = _divided(value, Quasi.constant(1))
    if value.bottom.is_constant() and value.bottom.constant_value() == 1:
        return math(value.top)
    shown = Math(neat_text(value), neat_latex(value))
    sign = "floor" if how == "floor" else "ceil"
    return Math(f"{how}({shown.text})", f"\\left\\l{sign} {shown.latex} \\right\\r{sign}")
