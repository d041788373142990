"""Affine forms of integer expressions, and what they are at most and at least over loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from roofdsl.lang.record import Record
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Max, Min, Mod, Product, Sum, Sym, add, mul

_MANY = 64


class Affine(Record):
    """constant + sum of coefficient * term; a term is a symbol, or another expression (such as a `//`, `%`, `min` or
    product) left as it is.
    """

    constant: int
    terms: tuple[tuple[IntExpr, int], ...]

    def coefficients(self) -> dict[str, int]:
        """The coefficients of the symbols."""
        return {t.name: c for t, c in self.terms if isinstance(t, Sym)}

    def hidden(self) -> frozenset[str]:
        """The symbols inside terms that are not symbols themselves."""
        return frozenset().union(*(t.symbols() for t, _ in self.terms if not isinstance(t, Sym)))

    def expression(self) -> IntExpr:
        """The form as an expression again."""
        return add(*(mul(Const(c), t) for t, c in self.terms), Const(self.constant))


def affine(expression: IntExpr) -> Affine:
    """The affine form, like terms collected, `//` and `%` of numbers computed. `min` and `max` count as terms."""
    totals: dict[IntExpr, int] = {}
    constant = 0
    pending: list[tuple[IntExpr, int]] = [(expression, 1)]
    while pending:
        part, factor = pending.pop()
        match part:
            case Const(value):
                constant += factor * value
            case Sum(terms):
                pending += [(t, factor) for t in reversed(terms)]
            case Product(terms) if sum(not isinstance(t, Const) for t in terms) <= 1:
                other: IntExpr = Const(1)
                for t in terms:
                    if isinstance(t, Const):
                        factor *= t.value
                    else:
                        other = t
                pending.append((other, factor))
            case FloorDiv(numerator, Const(divisor)) if divisor and not (known := affine(numerator)).terms:
                constant += factor * (known.constant // divisor)
            case Mod(numerator, Const(divisor)) if divisor and not (known := affine(numerator)).terms:
                constant += factor * (known.constant % divisor)
            case _:
                totals[part] = totals.get(part, 0) + factor
    return Affine(constant, tuple((t, c) for t, c in totals.items() if c))


def minimum(*terms: IntExpr) -> IntExpr:
    """min of the terms, flattened, constants folded."""
    return _extremum(Min, terms)


def maximum(*terms: IntExpr) -> IntExpr:
    """max of the terms, flattened, constants folded."""
    return _extremum(Max, terms)


def _extremum(kind: type[Min] | type[Max], terms: tuple[IntExpr, ...]) -> IntExpr:
    flat = [affine(u).expression() for t in terms for u in (t.terms if isinstance(t, kind) else (t,))]
    numbers = [t.value for t in flat if isinstance(t, Const)]
    others = list(dict.fromkeys(t for t in flat if not isinstance(t, Const)))
    if numbers:
        others.append(Const(min(numbers) if kind is Min else max(numbers)))
    return others[0] if len(others) == 1 else kind(tuple(others))


def is_positive(expression: IntExpr, least: Mapping[str, int]) -> bool:
    """Whether an expression is certainly positive: a sum in which no parameter counts less than nothing, and that is
    positive at the `least` values of the parameters.
    """
    form = affine(expression)
    known = all(c > 0 and isinstance(t, Sym) and t.name in least for t, c in form.terms)
    return known and form.constant + sum(c * least[t.name] for t, c in form.terms if isinstance(t, Sym)) > 0


class Range(Record):
    """The values of a loop variable: from `start` (possibly a max) to just below `stop` (possibly a min)."""

    start: IntExpr
    stop: IntExpr


class NotAffineError(Exception):
    """A bound hides a loop variable inside a term that is not a symbol, such as a `//` or `%`."""


def at_most(stop: IntExpr, ranges: dict[str, Range]) -> IntExpr:
    """A bound that `stop` never exceeds for any values of the variables of `ranges`, and in which these do not occur.

    Raises NotAffineError if one of them stands inside a term that is not a symbol, such as a `//` or `%`.
    """
    return _bound(stop, ranges, upper=True)


def at_least(start: IntExpr, ranges: dict[str, Range]) -> IntExpr:
    """A bound that `start` is never below; otherwise as `at_most`."""
    return _bound(start, ranges, upper=False)


def _bound(expression: IntExpr, ranges: dict[str, Range], upper: bool) -> IntExpr:
    """The min of upper bounds of the terms of a min (or the max of lower bounds of a max's), variable by variable."""
    kind: type[Min] | type[Max] = Min if upper else Max
    pending = deque(expression.terms if isinstance(expression, kind) else (expression,))
    done: list[IntExpr] = []
    while pending:
        form = affine(pending.popleft())
        if form.hidden() & ranges.keys():
            raise NotAffineError
        # the innermost variable first: its range may speak of the outer ones
        var = next((v for v in reversed(ranges) if v in form.coefficients()), None)
        if var is None:
            done.append(form.expression())
            continue
        coefficient = form.coefficients()[var]
        by_stop = (coefficient > 0) == upper
        limit = ranges[var].stop if by_stop else ranges[var].start
        options = limit.terms if isinstance(limit, Min | Max) else (limit,)
        if len(pending) > _MANY:
            options = options[:1]  # one of them is a bound as well, if a wider one
        rest = Affine(form.constant, tuple((t, c) for t, c in form.terms if t != Sym(var))).expression()
        last = Const(-coefficient if by_stop else 0)
        pending += [add(rest, mul(Const(coefficient), option), last) for option in options]
    return minimum(*done) if upper else maximum(*done)
