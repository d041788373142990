"""Facts about the integers at a place in a loop nest, and proofs from them that an expression is not negative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roofdsl.frontends.poly import Atom, Entry, Poly, Quotient, quotient
from roofdsl.lang.record import Record

_MOST_STEPS = 2000
_MOST_BOUNDS = 16


class Range(Record):
    """`var` is at least each of `lowers` and at most each of `uppers`; these contain outer variables and parameters.

    steps: (length, step) of a loop with steps of more than 1, from whose start to its stop it is that far. end: the
    last value before the stop, if it is known that the loop ends earlier.
    """

    var: str
    lowers: tuple[Poly, ...]
    uppers: tuple[Poly, ...]
    steps: tuple[Poly, Poly] | None = None
    end: Poly | None = None

    def in_whole_steps(self) -> Range:
        """The same if the length is a multiple of the step: the last value is a step before the stop."""
        if self.steps is None:
            return self
        length, step = self.steps
        return Range(self.var, self.lowers, (self.lowers[0] + length - step,), None, self.lowers[0] + length - 1)


class Facts:
    """The ranges of the loops around a place, outermost first.

    Every other name is a parameter, and so at least 1; nothing is known about names that begin with `@`. `known`:
    polynomials in parameters that are assumed to be nonnegative.
    """

    def __init__(self, ranges: Sequence[Range] = (), known: Sequence[Poly] = ()) -> None:
        self.ranges, self.known = tuple(ranges), tuple(known)

    def inside(self, new: Range) -> Facts:
        """The facts inside one more loop."""
        return Facts((*self.ranges, new), self.known)

    def given(self, difference: Poly) -> Facts:
        """The facts if also `difference` >= 0, as far as that bounds the innermost of its loop variables."""
        for k in range(len(self.ranges) - 1, -1, -1):
            old = self.ranges[k]
            if old.var not in difference.names:
                continue
            parts = difference.split(old.var)
            if parts is None or parts[0].value not in (1, -1):
                return self
            bound = -parts[1] if parts[0].value == 1 else parts[1]
            lowers = (*old.lowers, bound) if parts[0].value == 1 else old.lowers
            uppers = (*old.uppers, bound) if parts[0].value == -1 else old.uppers
            return Facts((*self.ranges[:k], Range(old.var, lowers, uppers), *self.ranges[k + 1 :]), self.known)
        return self

    def given_all(self, differences: Iterable[Poly]) -> Facts:
        """The facts if also each of `differences` >= 0, as far as `given` can say so."""
        facts = self
        for difference in differences:
            facts = facts.given(difference)
        return facts

    def not_negative(self, value: Poly) -> bool:
        """Whether `value` >= 0 is proven at every iteration, for all positive parameters."""
        depth = len(self.ranges)
        value = value.without_factor()
        return any(_Proof(self.ranges).not_negative(value - least, depth) for least in (Poly({}), *self.known))

    def smallest_of(self, values: Sequence[Poly]) -> tuple[Poly, ...]:
        """The values of which one is the least, without those that another one is proven never to exceed: `n` after
        `i + b` in a loop over blocks whose steps divide n.
        """
        kept = list(dict.fromkeys(values))
        for value in values:
            if any(other is not value and self.not_negative(value - other) for other in kept):
                kept = [other for other in kept if other is not value]
        return tuple(kept)

    def greatest(self, value: Poly) -> Poly | None:
        """A polynomial in the parameters that `value` never exceeds; None if none is found. Of several, it is one that
        no other is proven to be smaller than, or the simplest that is no greater wherever an iteration is: `n - 1`, of
        that and `2 * n - 3`, in a loop that runs only if n >= 2.
        """
        known = self._without_quotients(value)
        found = [] if known is None else [known]
        for r in (*reversed(self.ranges), None):
            found = [b for known in found if (b := self._without_entries(known, r)) is not None]
            bounds = found if r is None else [b for known in found for b in self._bounds(known, r)]
            if not bounds:
                return None
            found = list(dict.fromkeys(bounds))[:_MOST_BOUNDS]
        always, here = Facts((), self.known), Facts((), (*self.known, *self.lengths()))
        least = found[0] if found else None
        for p in found[1:]:
            assert least is not None
            # Where there is no iteration, `m` may be far greater than the `n - 1` that it replaces.
            is_simpler = _size_of_length(p) < _size_of_length(least)
            if always.not_negative(least - p) or (is_simpler and here.not_negative(least - p)):
                least = p
        return least

    def lengths(self) -> list[Poly]:
        """Differences of sizes that are >= 0 wherever an iteration is: of the last and the first one."""
        variables = {r.var for r in self.ranges}
        pairs = [upper - lower for r in self.ranges for lower in r.lowers for upper in r.uppers]
        return [p for p in pairs if p.names and not p.names & variables and not p.entries]

    def _bounds(self, value: Poly, r: Range) -> list[Poly]:
        """What `value` never exceeds, with the bounds of one loop in place of its variable."""
        if r.var not in value.names:
            return [value]
        parts = value.split(r.var)
        if parts is None:
            return []
        a, b = parts
        ends = r.uppers if self.not_negative(a) else ()
        if not ends and self.not_negative(-a):
            ends = r.lowers
        bounds = [self._without_quotients(a * end + b) for end in ends]
        return [bound for bound in bounds if bound is not None]

    def _without_entries(self, value: Poly, r: Range | None) -> Poly | None:
        """An upper bound of `value` without elements of index arrays that depend on the variable of a loop, or without
        any of them. None if no bound is found.
        """
        while (entry := _entry_of(value, r)) is not None:
            parts = _factor(value, entry)
            if parts is None:
                return None
            a, b = parts
            if self.not_negative(a):
                value = a * entry.most + b
            elif self.not_negative(-a):
                value = b
            else:
                return None
        return value

    def _without_quotients(self, value: Poly) -> Poly | None:
        """An upper bound of `value`: quotients and remainders of loop variables take their greatest values, and their
        least where they are subtracted, which is 0 if the dividend is never negative. None if no bound is found.
        """
        variables = {r.var for r in self.ranges}
        total = Poly({})
        for m, c in value.terms.items():
            term = Poly({m: c})
            atom = m[0] if len(m) == 1 else None
            if not isinstance(atom, Quotient) or not atom.of.names & variables:
                total += term
            elif c > 0 and atom.op == "%":
                total += c * (atom.by - 1)
            elif c > 0:
                top = self.greatest(atom.of)
                if top is None:
                    return None
                total += quotient("//", top, atom.by) * c
            elif atom.op == "//" and not self.not_negative(atom.of):
                bottom = self.greatest(-atom.of)
                if bottom is None:
                    return None
                total += quotient("//", -bottom, atom.by) * c
        return total


class _Proof:
    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.ranges, self.steps = ranges, 0

    def not_negative(self, value: Poly, depth: int) -> bool:
        """Proves it by replacing each of the first `depth` variables, the innermost first, by a bound that makes the
        value smaller.
        """
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return False
        simpler = self._lower_bounds(value, depth)
        if simpler:
            return any(self.not_negative(each, depth) for each in simpler)
        while depth and self.ranges[depth - 1].var not in value.names:
            depth -= 1
        entry = _entry_of(value, self.ranges[depth - 1] if depth else None)
        if entry is not None:
            return self._with_bound(value, entry, depth)
        if not depth:
            return _nonnegative(value)
        r = self.ranges[depth - 1]
        parts = value.split(r.var)
        if parts is None:
            return False
        a, b = parts
        if self.not_negative(a, depth - 1):
            return any(self.not_negative(a * bound + b, depth - 1) for bound in r.lowers)
        if self.not_negative(-a, depth - 1):
            return any(self.not_negative(a * bound + b, depth - 1) for bound in r.uppers)
        return False

    def _with_bound(self, value: Poly, entry: Entry, depth: int) -> bool:
        """Proves it with 0 or the greatest value in place of an element of an index array."""
        parts = _factor(value, entry)
        if parts is None:
            return False
        a, b = parts
        if self.not_negative(a, depth):
            return self.not_negative(b, depth)
        return self.not_negative(-a, depth) and self.not_negative(a * entry.most + b, depth)

    def _lower_bounds(self, value: Poly, depth: int) -> list[Poly]:
        """Values that are not negative only if `value` is not, without one of its quotients or remainders of the first
        `depth` variables; nothing if it has none.
        """
        variables = {r.var for r in self.ranges[:depth]}
        for m, c in value.terms.items():
            atom = m[0] if len(m) == 1 else None
            if not isinstance(atom, Quotient) or not atom.of.names & variables:
                continue
            rest = Poly({k: d for k, d in value.terms.items() if k != m})
            if atom.op == "%":
                return [rest if c > 0 else rest + c * (atom.by - 1)]
            if c < 0:
                return [rest * atom.by + atom.of * c]
            less = rest * atom.by + (atom.of - (atom.by - 1)) * c
            return [rest, less] if self.not_negative(atom.of, depth) else [less]
        return []


def _entry_of(value: Poly, r: Range | None) -> Entry | None:
    """An element of an index array that depends on the variable of a loop; of any one, if no loop is given. The last
    one, so that those in its subscripts come after it.
    """
    found = [e for e in value.entries if r is None or r.var in Poly.name(e).names]
    return found[-1] if found else None


def _factor(value: Poly, entry: Entry) -> tuple[Poly, Poly] | None:
    """`(a, b)` with value = a * entry + b and `entry` in neither; None if there are no such a and b."""
    a = {tuple(x for x in m if x != entry): c for m, c in value.terms.items() if m.count(entry) == 1}
    b = Poly({m: c for m, c in value.terms.items() if entry not in m})
    whole = len(a) + len(b.terms) == len(value.terms)
    return (Poly(a), b) if a and whole and entry not in (*Poly(a).entries, *b.entries) else None


def _nonnegative(value: Poly) -> bool:
    """Whether a polynomial in parameters is proven to be nonnegative for all parameters of at least 1."""
    for m, c in value.terms.items():
        atom = m[0] if len(m) == 1 else None
        if c < 0 and isinstance(atom, Quotient):
            rest = Poly({k: d for k, d in value.terms.items() if k != m})
            if atom.op == "%":  # at most by - 1, and at most `of`
                least = [rest + c * (atom.by - 1), *([rest + atom.of * c] if _nonnegative(atom.of) else [])]
                return any(map(_nonnegative, least))
            return _nonnegative(rest * atom.by + atom.of * c)  # by * (of // by) is at most of
    shifted = value.put({name: Poly.name(name) + 1 for name in _plain(value)})  # each is 1 plus a nonnegative number
    return all(c >= 0 and all(map(_is_nonnegative_atom, m)) for m, c in shifted.terms.items())


def _is_nonnegative_atom(atom: Atom) -> bool:
    if isinstance(atom, str):
        return not atom.startswith("@")
    return isinstance(atom, Entry) or atom.op == "%" or _nonnegative(atom.of)


def _plain(value: Poly) -> set[str]:
    """The parameters that occur only outside quotients."""
    outside = {a for m in value.terms for a in m if isinstance(a, str) and not a.startswith("@")}
    inside = {n for m in value.terms for a in m if isinstance(a, Quotient) for n in a.of.names}
    return outside - inside


def _size_of_length(last: Poly) -> int:
    """How complicated the length of an array is whose last element is `last`."""
    return sum(abs(factor) for factor in (last + 1).terms.values())
