"""Sums of terms (`sets.terms`) as JavaScript: exact functions over BigInt, including integer roots and sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm

from roofdsl.page.forms_in_javascript import Floors, any_of, fraction, name, parameters
from roofdsl.sets.quasi import Atom, Floor, Quasi
from roofdsl.sets.terms import Definition, Root, Span, Term, Terms
from roofdsl.sweep.sums import common_denominator, inner_variables

MOST_SUMMED = 128
"""At one set of sizes, a page adds terms for at most this many values of a summation variable, to stay quick."""


class _Inline(dict[str, str]):
    """Floors written in place. As constants, they could not refer to the variables of functions and loops."""

    def setdefault(self, key: str, default: str = "", /) -> str:
        """The floor itself."""
        return key


_FLOORS: Floors = _Inline()


def sum_function(terms: Terms) -> str:
    """The sum as a function of an object of BigInts by parameter; it returns null if adding would take too long."""
    spans = tuple(dict.fromkeys(t.over for t in terms.terms if t.over is not None))
    inside = inner_variables(terms)
    below = common_denominator([t.value for t in terms.terms])
    lines = ["let sum = 0n"]
    lines += [_definition(d) for d in terms.definitions if not inside[d.name]]
    lines += [_added(t, below) for t in terms.terms if t.over is None]
    for span in spans:
        lines += _summed(span, terms, below, [d for d in terms.definitions if inside[d.name] == {span.name}])
    names = frozenset[str]().union(*_names(terms), below.names()) - inside.keys() - {s.name for s in spans}
    return f"{parameters(names)} => {{ {'; '.join(lines)}; return [sum, {fraction(below, _FLOORS)[0]}]; }}"


def _summed(span: Span, terms: Terms, below: Quasi, definitions: Sequence[Definition]) -> Iterator[str]:
    """Statements that add the terms of `terms` summed over `span`; `definitions` depend on its variable."""
    low, high, v = _whole(span.low), _whole(span.high), name(span.name)
    made = {d.name for d in definitions}
    left = []
    for t in (t for t in terms.terms if t.over == span):
        uses = t.value.names().union(*(value.names() for a in t.where for value, _ in a))
        ranged = None if uses & made else _ranged(t, below, low, high)
        if ranged is None:
            left.append(t)
        else:
            yield ranged
    if not left:
        return
    period = _period(span, left, definitions)
    own = [_definition(d) for d in definitions]
    own += [_added(t, below, repeated=period is not None) for t in left]
    if period is None:
        yield f"if ({high} - {low} + 1n > {MOST_SUMMED}n) return null"
        yield f"for (let {v} = {low}; {v} <= {high}; {v} += 1n) {{ {'; '.join(own)}; }}"
    else:
        times = f"const times = ({high} - {v}) / {period}n + 1n"
        last = f"least({high}, {low} + {period - 1}n)"
        yield f"for (let {v} = {low}; {v} <= {last}; {v} += 1n) {{ {times}; {'; '.join(own)}; }}"


def _period(span: Span, own: Sequence[Term], definitions: Sequence[Definition]) -> int | None:
    """The period of the terms summed over `span` in its variable, including the names in `definitions`; None if they do
    not repeat, or not within MOST_SUMMED values. With a period, the page adds one value of each residue, multiplied by
    how often it occurs.
    """
    values = [v for t in own for v in (t.value, *(v for a in t.where for v, _ in a))]
    values += [v for d in definitions for v in _parts(d)]
    period = lcm(*(c.denominator for v in values for floor in _floors(v) for _, c in floor.of))
    if period > MOST_SUMMED:
        return None
    later = {span.name: Quasi.symbol(span.name) + period}
    return period if all(v.substitute(later) == v for v in values) else None


def _parts(d: Definition) -> tuple[Quasi, ...]:
    """The values in the definition of a name."""
    return (d.of, d.low, d.high, d.limit) if isinstance(d, Root) else (d.of, d.low, d.high)


def _ranged(t: Term, below: Quasi, low: str, high: str) -> str | None:
    """The sum of a term over a variable that its value does not contain: the value times the number of integers for
    which its conditions hold; None for any other term.

    The conditions must be a single conjunction. As the variable grows, each of them must either only begin or only
    cease to hold.
    """
    assert t.over is not None
    v = t.over.name
    if v in t.value.names() or len(t.where) != 1:
        return None
    ends, fixed = [], []
    for value, zero in t.where[0]:
        sign = _direction(value, v)
        if sign is None or (sign and zero):
            return None
        if sign == 0:
            fixed.append((value, zero))
            continue
        inner = f"root(({name(v)}) => {fraction(-value, _FLOORS)[0]}, low, high, {str(sign < 0).lower()})"
        ends.append(f"if (low <= high) {'high' if sign < 0 else 'low'} = {inner}")
    lines = [f"let low = {low}, high = {high}", *ends]
    each = fraction(t.value * below, _FLOORS)[0]
    lines.append(f"if (low <= high) sum += (high - low + 1n) * ({each})")
    guarded = f"if {any_of((tuple(fixed),), _FLOORS)} " if fixed else ""
    return f"{guarded}{{ {'; '.join(lines)}; }}"


def _direction(value: Quasi, variable: str) -> int | None:
    """1 if the value never falls as the variable grows, -1 if it never rises, 0 if the variable does not occur in it;
    None if none of this is obvious.
    """
    signs = set()
    for monomial, c in value:
        inside = [atom for atom, _ in monomial if variable in _atom_names(atom)]
        if not inside:
            continue
        if len(monomial) != 1 or monomial[0][1] != 1:
            return None
        atom = inside[0]
        rises = 1 if isinstance(atom, str) else _direction(atom.of, variable)
        if rises is None:
            return None
        signs.add(rises if c > 0 else -rises)
    if not signs:
        return 0
    return signs.pop() if len(signs) == 1 else None


def _atom_names(atom: Atom) -> frozenset[str]:
    return frozenset((atom,)) if isinstance(atom, str) else atom.of.names()


def _floors(value: Quasi) -> Iterator[Floor]:
    """The floors in a value, including nested ones."""
    for atom in value.atoms():
        if isinstance(atom, Floor):
            yield atom
            yield from _floors(atom.of)


def _definition(d: Definition) -> str:
    low, high = _whole(d.low), _whole(d.high)
    if isinstance(d, Root):
        beyond = fraction(d.of - d.limit, _FLOORS)[0]
        return f"const {name(d.name)} = root(({name(d.name)}) => {beyond}, {low}, {high}, {str(d.rises).lower()})"
    return f"const {name(d.name)} = greatest({low} - 1n, least({high}, {_whole(d.of)}))"


def _added(t: Term, below: Quasi, *, repeated: bool = False) -> str:
    """The statement that adds the term, times `below`, to the sum. repeated: it is added `times` times."""
    value = fraction(t.value * below, _FLOORS)[0]
    added = f"sum += times * ({value})" if repeated else f"sum += {value}"
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
