"""Integer expressions in normal form: sums of products of names, quotients and remainders by numbers, and elements of
index arrays.

Front ends compute with these, put values in for names, and turn them into expressions of the language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span


class Quotient(Record):
    """`of // by` or `of % by` (`op` tells which), rounded down; `by` is positive."""

    op: str
    of: Poly
    by: int


class Entry(Record):
    """`array[subscripts]`, an element of an index array: an integer from 0 to `most`, which has parameters only."""

    array: str
    subscripts: tuple[Poly, ...]
    most: Poly


Atom = str | Quotient | Entry
Monomial = tuple[Atom, ...]


class Poly:
    """A polynomial with integer coefficients; immutable. Equality does not depend on the order in which terms were
    written.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {m: c for m, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))

    @staticmethod
    def number(value: int) -> Poly:
        return Poly({(): value})

    @staticmethod
    def name(name: Atom) -> Poly:
        return Poly({(name,): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        from roofdsl.lang.format_text import expression

        return expression(self.tree(Span(1, 1, 1, 1)))

    def __add__(self, other: Poly | int) -> Poly:
        terms = dict(self.terms)
        for m, c in as_poly(other).terms.items():
            terms[m] = terms.get(m, 0) + c
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -as_poly(other)

    def __mul__(self, other: Poly | int) -> Poly:
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in as_poly(other).terms.items():
                product = tuple(sorted((*m, *n), key=str))
                terms[product] = terms.get(product, 0) + c * d
        return Poly(terms)

    def without_factor(self) -> Poly:
        """The polynomial over the greatest positive number that divides all of its coefficients; it has its sign."""
        factor = gcd(*self.terms.values())
        return self if factor <= 1 else Poly({m: c // factor for m, c in self.terms.items()})

    @property
    def value(self) -> int | None:
        """The value of a constant; None if it contains names."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """Every name in it, also those in the subscripts of its entries."""
        found: set[str] = set()
        for m in self.terms:
            for atom in m:
                found |= {atom} if isinstance(atom, str) else set[str]().union(*(p.names for p in _parts(atom)))
        return frozenset(found)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The elements of index arrays in it, those in subscripts before what they are subscripts of."""
        found: dict[Entry, None] = {}
        for m in self.terms:
            for atom in m:
                if not isinstance(atom, str):
                    found.update(dict.fromkeys(e for part in _parts(atom) for e in part.entries))
                if isinstance(atom, Entry):
                    found[atom] = None
        return tuple(found)

    def is_affine_in(self, names: Iterable[str]) -> bool:
        """Whether the names, and quotients that contain them, are multiplied only by numbers."""
        wanted = frozenset(names)
        return all(len(m) == 1 or not (Poly({m: 1}).names & wanted) for m in self.terms if m)

    def split(self, name: str) -> tuple[Poly, Poly] | None:
        """`(a, b)` with self = a * name + b and `name` in neither; None if there are no such a and b."""
        a: dict[Monomial, int] = {}
        b: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            if name not in Poly({m: 1}).names:
                b[m] = c
                continue
            if m.count(name) != 1:
                return None
            rest = tuple(atom for atom in m if atom != name)
            if name in Poly({rest: 1}).names:
                return None
            a[rest] = c
        return Poly(a), Poly(b)

    def put(self, values: Mapping[str, Poly]) -> Poly:
        """The polynomial with polynomials in place of names."""
        if not values.keys() & self.names:
            return self
        total = Poly({})
        for m, c in self.terms.items():
            product = Poly.number(c)
            for atom in m:
                match atom:
                    case str():
                        product *= values.get(atom, Poly.name(atom))
                    case Quotient(op, of, by):
                        product *= quotient(op, of.put(values), by)
                    case Entry(array, subscripts, most):
                        product *= Poly.name(Entry(array, tuple(s.put(values) for s in subscripts), most))
            total += product
        return total

    def tree(self, span: Span) -> tree.Expr:
        """The polynomial as an expression of the language, with every part at `span`: a positive term first if there is
        one, and otherwise numbers last.
        """
        order = sorted(self.terms.items(), key=lambda item: (item[0] == (), 0))
        first = next((k for k, (m, c) in enumerate(order) if c > 0), 0)
        order = [order[first], *order[:first], *order[first + 1 :]] if order else []
        written: tree.Expr | None = None
        for m, c in order:
            negated = written is None and c < 0  # `-n // 3` is `(-n) // 3`, so a quotient needs parentheses then
            part = _product(m, abs(c), span, grouped=negated)
            if written is None:
                written = tree.Unary("-", part, span) if negated else part
            else:
                written = tree.Binary("+" if c > 0 else "-", written, part, span)
        return written or tree.Number("0", 0, span)


def as_poly(value: Poly | int) -> Poly:
    """The polynomial itself, or that of a number."""
    return value if isinstance(value, Poly) else Poly.number(value)


def quotient_of(of: Poly, by: Poly) -> Poly | None:
    """The quotient if it is exact, and `by` is one term or the same polynomial; otherwise None."""
    if len(by.terms) != 1:
        return Poly.number(1) if of == by and by.terms else None
    ((names, factor),) = by.terms.items()
    found = {}
    for m, c in of.terms.items():
        rest = list(m)
        if c % factor or any(rest.count(name) < names.count(name) for name in names):
            return None
        for name in names:
            rest.remove(name)
        found[tuple(rest)] = c // factor
    return Poly(found)


def quotient(op: str, of: Poly, by: int) -> Poly:
    """`of // by` or `of % by`, rounded down; a plain polynomial if the remainder is a number: (2*n + 1) // 2 is n."""
    if all(c % by == 0 for m, c in of.terms.items() if m):
        rest = of.terms.get((), 0)
        return Poly({m: c // by for m, c in of.terms.items()}) if op == "//" else Poly.number(rest % by)
    return Poly.name(Quotient(op, of, by))


def _parts(atom: Quotient | Entry) -> tuple[Poly, ...]:
    return (atom.of,) if isinstance(atom, Quotient) else atom.subscripts


def _product(monomial: Monomial, factor: int, span: Span, *, grouped: bool = False) -> tree.Expr:
    """A term without its sign; `grouped`: also a quotient at its beginning has parentheses."""
    parts: list[tree.Expr] = []
    if factor != 1 or not monomial:
        parts.append(tree.Number(str(factor), factor, span))
    for atom in monomial:
        if isinstance(atom, str):
            parts.append(tree.Ref(atom, span))
            continue
        if isinstance(atom, Entry):
            parts.append(tree.Index(tree.Name(atom.array, span), tuple(s.tree(span) for s in atom.subscripts), span))
            continue
        of = atom.of.tree(span)
        left = of if isinstance(of, tree.Ref | tree.Number | tree.Index) else tree.Group(of, span)
        inner = tree.Binary(atom.op, left, tree.Number(str(atom.by), atom.by, span), span)
        parts.append(tree.Group(inner, span) if parts or grouped else inner)
    written = parts[0]
    for part in parts[1:]:
        written = tree.Binary("*", written, part, span)
    return written
