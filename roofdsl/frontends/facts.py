"""What holds of integers at a place in a nest of loops, and what follows: proofs that something is not negative."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.frontends.poly import Poly, Quotient
from roofdsl.lang.record import Record

_MOST_STEPS = 2000


class Range(Record):
    """`var` is at least each of `lowers` and at most each of `uppers`, which know outer variables and parameters."""

    var: str
    lowers: tuple[Poly, ...]
    uppers: tuple[Poly, ...]


class Facts:
    """The ranges of the loops around a place, outermost first. Every other name is a parameter, and so at least 1."""

    def __init__(self, ranges: Sequence[Range] = ()) -> None:
        self.ranges = tuple(ranges)

    def inside(self, new: Range) -> Facts:
        """What holds inside one more loop."""
        return Facts((*self.ranges, new))

    def given(self, difference: Poly) -> Facts:
        """What holds where `difference` >= 0 too, as far as that bounds the innermost of its loop variables."""
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
            return Facts((*self.ranges[:k], Range(old.var, lowers, uppers), *self.ranges[k + 1 :]))
        return self

    def not_negative(self, value: Poly) -> bool:
        """Whether `value` >= 0 is proven at every iteration, for all positive parameters."""
        return _Proof(self.ranges).not_negative(value, len(self.ranges))

    def greatest(self, value: Poly) -> Poly | None:
        """A polynomial in the parameters that `value` never exceeds; None where none is found."""
        for r in reversed(self.ranges):
            if r.var not in value.names:
                continue
            parts = value.split(r.var)
            if parts is None:
                value = _monotone(value)
                parts = value.split(r.var) if value is not None else None
                if parts is None:
                    return None
            a, b = parts
            if self.not_negative(a) and r.uppers:
                value = a * r.uppers[0] + b
            elif self.not_negative(-a) and r.lowers:
                value = a * r.lowers[0] + b
            else:
                return None
        return value


def _monotone(value: Poly) -> Poly:
    """The value with remainders by their greatest, so that variables stand in sums only where that is possible."""
    terms: dict[tuple[object, ...], int] = {}
    for m, c in value.terms.items():
        if len(m) == 1 and isinstance(m[0], Quotient) and m[0].op == "%" and c > 0:
            terms[()] = terms.get((), 0) + c * (m[0].by - 1)
        else:
            terms[m] = terms.get(m, 0) + c
    return Poly(terms)  # type: ignore[arg-type]


class _Proof:
    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.ranges, self.steps = ranges, 0

    def not_negative(self, value: Poly, depth: int) -> bool:
        """Puts for each variable, from the innermost of `depth` on, a bound that makes the value smaller."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return False
        while depth and self.ranges[depth - 1].var not in value.names:
            depth -= 1
        if not depth:
            return _positive(value)
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


def _positive(value: Poly) -> bool:
    """Whether a polynomial in parameters is not negative for all of them at least 1: each is 1 + something."""
    shifted = value.put({name: Poly.name(name) + 1 for name in value.names if name in _plain(value)})
    for m, c in shifted.terms.items():
        if c >= 0 and all(_is_positive_atom(atom) for atom in m):
            continue
        if len(m) == 1 and isinstance(m[0], Quotient) and m[0].op == "%" and c < 0:
            constant = shifted.terms.get((), 0) + c * (m[0].by - 1)
            rest = Poly({k: v for k, v in shifted.terms.items() if k != m} | {(): constant})
            return _positive_shifted(rest)
        return False
    return True


def _positive_shifted(value: Poly) -> bool:
    return all(c >= 0 and all(_is_positive_atom(atom) for atom in m) for m, c in value.terms.items())


def _is_positive_atom(atom: object) -> bool:
    return isinstance(atom, str) or (isinstance(atom, Quotient) and (atom.op == "%" or _positive_shifted(atom.of)))


def _plain(value: Poly) -> set[str]:
    """Names that stand outside quotients only."""
    outside = {a for m in value.terms for a in m if isinstance(a, str)}
    inside = {n for m in value.terms for a in m if isinstance(a, Quotient) for n in a.of.names}
    return outside - inside
