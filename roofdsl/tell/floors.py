"""Names for floors that occur often in a sum of terms, such as u = ceiling(n/8), to make its terms readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from roofdsl.formulas.quotients import Alternatives, Shorthand, shortened
from roofdsl.formulas.writing import neat_text, remainder
from roofdsl.sets.quasi import Floor, Quasi
from roofdsl.sets.terms import Definition, Rest, Root, Span, Term, Terms

OFTEN = 4
"""A floor that occurs at least this often gets a name."""

LETTERS = ("u", "v", "w", "p", "q", *(f"u{k}" for k in range(1, 1000)))


def with_names(form: Terms) -> tuple[Terms, list[Shorthand]]:
    """The same sum with its frequent floors written by names, and the definitions of the names."""
    values = list(_values(form))
    found = Counter(a for value in values for m, _ in value for a, _ in m if isinstance(a, Floor))
    often = [a for a, times in found.items() if times >= OFTEN]
    taken = {name for value in values for name in value.names()} | {d.name for d in form.definitions}
    fresh = (name for name in LETTERS if name not in taken)
    names = {a: Shorthand(next(fresh), neat_text(Quasi.symbol(a)), a, Quasi.constant(0)) for a in often}
    return (_mapped(form, lambda value: shortened(value, names)) if names else form), list(names.values())


def _values(form: Terms) -> Iterator[Quasi]:
    for term in form.terms:
        yield term.value
        yield from (value for each in term.where for value, zero in each if remainder(value, zero) is None)
        yield from (term.over.low, term.over.high) if term.over is not None else ()
    for d in form.definitions:
        yield from (d.of, d.low, d.high)
        yield from (d.limit,) if isinstance(d, Root) else ()


def _mapped(form: Terms, put: Callable[[Quasi], Quasi]) -> Terms:
    def where(of: Alternatives) -> Alternatives:
        return tuple(tuple((put(v) if remainder(v, zero) is None else v, zero) for v, zero in each) for each in of)

    def term(t: Term) -> Term:
        over = None if t.over is None else Span(t.over.name, put(t.over.low), put(t.over.high))
        return Term(put(t.value), where(t.where), over)

    def definition(d: Definition) -> Definition:
        if isinstance(d, Rest):
            return Rest(d.name, put(d.of), put(d.low), put(d.high))
        return Root(d.name, put(d.of), put(d.limit), put(d.low), put(d.high), d.rises)

    return Terms(tuple(map(term, form.terms)), tuple(map(definition, form.definitions)), form.assumes)
