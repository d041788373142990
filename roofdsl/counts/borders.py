"""Conditions without borders that do not matter: `n >= m + 1 or m >= n + 1 or n = m` is everywhere.

Integer sets see products of sizes as symbols: that m*n is m**2 at n = m is unknown to them. So a case that holds on
both sides of n = m, and there too, comes in three alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from roofdsl.sets.cases import Constraint
from roofdsl.sets.facts import Compared, Fact
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Alternatives


def without_borders(where: Alternatives, assumes: Sequence[Fact]) -> Alternatives:
    """The condition, with the two sides of a border joined if the condition on the border says the same there."""
    least = _least(assumes)
    for one, other in combinations(where, 2):
        common = [c for c in one if c in other]
        if len(common) != len(one) - 1 or len(common) != len(other) - 1:
            continue
        ((above, _),), ((below, _),) = ([c for c in side if c not in common] for side in (one, other))
        if above + below != Quasi.constant(-2):  # above: n - m - 1 >= 0; below: m - n - 1 >= 0
            continue
        for border in where:
            on = [value for value, zero in border if zero and value in (above + 1, below + 1)]
            rest = [c for c in border if c[0] not in on]
            if on and _same(common, rest, _put(on[0]), least):
                left = tuple(a for a in where if a not in (one, other, border))
                return without_borders((tuple(common), *left), assumes) if common else ()
    return where


def _put(border: Quasi) -> Mapping[str, Quasi]:
    """n -> m for the border n - m = 0, or m - n = 0; empty for any other."""
    for monomial, c in border:
        if len(monomial) == 1 and isinstance(monomial[0][0], str) and monomial[0][1] == 1:
            name = monomial[0][0]
            others = Quasi.symbol(name) - border * (1 / c)
            if name not in others.names():
                return {name: others}
    return {}


def _same(
    a: Sequence[Constraint], b: Sequence[Constraint], put: Mapping[str, Quasi], least: Mapping[str, Quasi]
) -> bool:
    """Whether two conjunctions are shown to mean the same after `put`, each constraint implied by one of the other."""
    if not put or any(zero for _, zero in (*a, *b)):
        return False
    one, other = ([value.substitute(put) for value, _ in side] for side in (a, b))

    def positive(value: Quasi) -> bool:
        known = all(atom in least for atom in value.atoms())
        return known and all(c >= 0 for _, c in value.substitute(least))

    def implied(value: Quasi, by: Sequence[Quasi]) -> bool:
        return any(positive(value - known) for known in (Quasi.constant(0), *by))

    return all(implied(v, other) for v in one) and all(implied(v, one) for v in other)


def _least(assumes: Sequence[Fact]) -> dict[str, Quasi]:
    """Each size with an assumed least value, as that value plus the size: then all sizes are at least 0."""
    found: dict[str, Quasi] = {}
    for fact in assumes:
        if isinstance(fact, Compared) and fact.relation == ">=" and fact.right.is_constant():
            for name in fact.left.names():
                if fact.left == Quasi.symbol(name):
                    found[name] = fact.left + fact.right
    return found
