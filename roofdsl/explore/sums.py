"""Sums of terms (`polyhedral.terms`) as JavaScript: exact functions over BigInt, integer roots and sums included."""

from __future__ import annotations

from collections.abc import Iterator

from roofdsl.explore.javascript import Floors, any_of, fraction, name, parameters
from roofdsl.polyhedral.quasi import Quasi
from roofdsl.polyhedral.terms import Definition, Root, Term, Terms
from roofdsl.sweep.sums import common_denominator, inner_variables

MOST_SUMMED = 128
"""Values of variables that terms are summed over, at one point, up to which a page adds them: it has to be quick."""


class _Inline(dict[str, str]):
    """Floors where they stand, and not as constants, which would not see the variables of functions and loops."""

    def setdefault(self, key: str, default: str = "", /) -> str:
        """The floor itself."""
        return key


_FLOORS: Floors = _Inline()


def sum_function(terms: Terms) -> str:
    """The sum as a function of an object of BigInts by parameter; null where it would take long."""
    spans = tuple(dict.fromkeys(t.over for t in terms.terms if t.over is not None))
    inside = inner_variables(terms)
    below = common_denominator([t.value for t in terms.terms])
    lines = ["let sum = 0n"]
    lines += [_definition(d) for d in terms.definitions if not inside[d.name]]
    lines += [_added(t, below) for t in terms.terms if t.over is None]
    ends = [(_whole(s.low), _whole(s.high)) for s in spans]
    if spans:
        steps = " + ".join(f"greatest(0n, {high} - {low} + 1n)" for low, high in ends)
        lines.append(f"if ({steps} > {MOST_SUMMED}n) return null")
    for span, (low, high) in zip(spans, ends, strict=True):
        own = [_definition(d) for d in terms.definitions if inside[d.name] == {span.name}]
        own += [_added(t, below) for t in terms.terms if t.over == span]
        v = name(span.name)
        lines.append(f"for (let {v} = {low}; {v} <= {high}; {v} += 1n) {{ {'; '.join(own)}; }}")
    names = frozenset[str]().union(*_names(terms), below.names()) - inside.keys() - {s.name for s in spans}
    return f"{parameters(names)} => {{ {'; '.join(lines)}; return [sum, {fraction(below, _FLOORS)[0]}]; }}"


def _definition(d: Definition) -> str:
    low, high = _whole(d.low), _whole(d.high)
    if isinstance(d, Root):
        beyond = fraction(d.of - d.limit, _FLOORS)[0]
        return f"const {name(d.name)} = root(({name(d.name)}) => {beyond}, {low}, {high}, {str(d.rises).lower()})"
    return f"const {name(d.name)} = greatest({low} - 1n, least({high}, {_whole(d.of)}))"


def _added(t: Term, below: Quasi) -> str:
    """The term, times `below`, added to the sum."""
    added = f"sum += {fraction(t.value * below, _FLOORS)[0]}"
    return f"if {any_of(t.where, _FLOORS)} {added}" if t.where else added


def _whole(value: Quasi) -> str:
    top, bottom = fraction(value, _FLOORS)
    return f"({top})" if bottom == "1n" else f"floorDiv({top}, {bottom})"


def _names(terms: Terms) -> Iterator[frozenset[str]]:
    for t in terms.terms:
        yield t.value.names()
        yield from (v.names() for alternative in t.where for v, _ in alternative)
        if t.over is not None:
            yield t.over.low.names() | t.over.high.names()
    yield from map(_uses, terms.definitions)


def _uses(d: Definition) -> frozenset[str]:
    found = d.of.names() | d.low.names() | d.high.names()
    return found | d.limit.names() if isinstance(d, Root) else found
