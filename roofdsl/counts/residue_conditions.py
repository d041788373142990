"""Residue classes of sizes as conditions of the language: `n % 3 == 1`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

from roofdsl.loops.integers import And, Compare, Condition, Const, FloorDiv, IntExpr, Mod, Or, Sym, add, all_of
from roofdsl.sets.residues import Class
from roofdsl.sets.sizes import Sizes


def condition_of(members: Sequence[Class], possible: Sequence[Class] | None, sizes: Sizes) -> Condition:
    """The condition that holds for the sizes of `members` (classes of the same parameters) and no other class.

    possible: the classes that can occur (None: any). Classes outside `possible` may or may not satisfy the condition.
    """
    if possible is None:
        (only,) = members
        return all_of([_is(r.name, r.period, r.rest, sizes) for r in only]) or And(())
    names = [(r.name, r.period) for r in members[0]]
    chosen = {tuple(r.rest for r in c) for c in members}
    every = {tuple(r.rest for r in c) for c in possible}
    # If the members are all that agree with one condition on each parameter, as in "n odd and m a multiple of 3", these
    # conditions say the same in fewer words than a list of the members.
    chosen_of = [sorted({rests[k] for rests in chosen}) for k in range(len(names))]
    if every & set(product(*chosen_of)) == chosen:
        possible_of = [sorted({rests[k] for rests in every}) for k in range(len(names))]
        # Parameters of which the members take every possible remainder say nothing. At least one does say something:
        # otherwise, the members would be all classes.
        parts = [
            _of_one(name, period, rests, possible_rests, sizes)
            for (name, period), rests, possible_rests in zip(names, chosen_of, possible_of, strict=True)
        ]
        said = all_of([part for part in parts if part is not None])
        assert said is not None
        return said

    def is_member(rests: Sequence[int]) -> Condition:
        return And(tuple(_is(name, period, r, sizes) for (name, period), r in zip(names, rests, strict=True)))

    return Or(tuple(is_member(rests) for rests in sorted(chosen)))


def _of_one(
    name: str, period: int, rests: Collection[int], possible: Collection[int], sizes: Sizes
) -> Condition | None:
    """The remainders of one parameter, modulo its least period that distinguishes them; None if all possible ones
    occur.
    """
    for least in (q for q in range(1, period + 1) if period % q == 0):
        inside = sorted({r % least for r in rests})
        outside = sorted({r % least for r in possible if r not in rests})
        if set(inside) & set(outside):
            continue
        if not outside:
            return None
        if len(inside) == 1:
            return _is(name, least, inside[0], sizes)
        if len(outside) == 1:
            return _is(name, least, outside[0], sizes, "!=")
        return Or(tuple(_is(name, least, r, sizes) for r in inside))
    raise AssertionError("the period itself tells all remainders apart")


def _is(name: str, period: int, rest: int, sizes: Sizes, relation: str = "==") -> Condition:
    value, factor = _meaning(name, sizes)
    return Compare(relation, Mod(value, Const(factor * period)), Const(factor * rest))


def _meaning(name: str, sizes: Sizes) -> tuple[IntExpr, int]:
    """(value, c): what c times an isl parameter is in the kernel's parameters, such as n and c for n = c*Q, or n//b and
    1 for a number of tiles.
    """
    for n in sizes.symbols:
        if sizes.symbol_text(n) == name:
            return (_multiple(n, sizes), sizes.divided[n]) if n in sizes.divided else (Sym(n), 1)
    n, b = next((n, b) for q, n, b in sizes.quotients() if q == name)
    return FloorDiv(_multiple(n, sizes), Sym(b)), 1


def _multiple(name: str, sizes: Sizes) -> IntExpr:
    return add(Sym(name), Const(-sizes.beyond.get(name, 0)))
