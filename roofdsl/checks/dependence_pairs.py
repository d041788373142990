"""The pairs of uses that may be dependences, and those that have to be looked at: one of all that have one answer.

A block of 64 results, `C[i + p * (n // 8), j + q * (n // 8)]` for p and q below 8, has 4096 pairs of uses. But only how
far two of them are apart decides whether they touch one element, and there are 225 such distances.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from roofdsl.checks.execution_order import Use, conflicting, reduction
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import PlacedStatement
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Mod, Product

MOST = 1500
"""The maximum number of pairs of uses that are looked at for the directives of a kernel, or for one parallel loop."""


class Pair(Record):
    """Two conflicting uses of one element: `first` is of statement `a`, `second` of statement `b`.

    reduction: both are updates that commute, except for rounding.
    """

    a: int
    b: int
    first: Use
    second: Use
    reduction: bool


def around(placed: PlacedStatement) -> tuple[object, ...]:
    """What surrounds a statement: equal for statements in the same loops under the same guards."""
    return tuple(id(loop) for loop in placed.loops), placed.guards


def pairs_of(placed: Sequence[PlacedStatement], members: list[int], among: Container[str] | None) -> Iterator[Pair]:
    """Pairs, in both orders, of conflicting uses that the statements `members` make of the arrays and scalars `among`
    (None: of all).

    Of equal uses under the same loops and guards, one represents all, since no directive changes the order of
    statements within an iteration.
    """
    surroundings: dict[object, int] = {}
    by_array: dict[str, dict[object, tuple[int, Use, str]]] = {}
    for i in members:
        kind = reduction(placed[i].statement)
        number = surroundings.setdefault(around(placed[i]), len(surroundings))
        for use in conflicting(placed[i].statement):
            if among is None or use.array.name in among:
                key = (number, use.place, use.is_write, kind if use.is_write else "")
                by_array.setdefault(use.array.name, {}).setdefault(key, (i, use, kind))
    for together in by_array.values():
        for a, first, kind_a in together.values():
            for b, second, kind_b in together.values():
                # Two reads never conflict. Two updates of one kind, as by `+=`, are marked: a sum has no order.
                if (first.is_write or second.is_write) and not _in_different_planes(first, second):
                    both = first.is_write and second.is_write
                    yield Pair(a, b, first, second, both and kind_a != "" and kind_a == kind_b)


def _in_different_planes(first: Use, second: Use) -> bool:
    """Whether two uses of an array differ in a constant subscript, so that they never touch the same element.

    The integer-set library decides this as well, but a kernel that stores to 16 planes has hundreds of such pairs.
    """
    return any(
        isinstance(a, Const) and isinstance(b, Const) and a != b
        for a, b in zip(first.subscripts, second.subscripts, strict=True)
    )


def alike(placed: Sequence[PlacedStatement], members: list[int], names: Sequence[str]) -> dict[str, str]:
    """For each of these arrays and scalars, the first one that the statements `members` use alike: in the same loops,
    under the same guards, with the same subscripts. What holds for the conflicts of one holds for those of the other.
    """
    ways: dict[str, set[object]] = {name: set() for name in names}
    for i in members:
        where = around(placed[i])
        for use in conflicting(placed[i].statement):
            if use.array.name in ways:
                ways[use.array.name].add((where, use.subscripts, use.is_write))
    first: dict[object, str] = {}
    return {name: first.setdefault(frozenset(ways[name]), name) for name in names}


def distinct(pairs: Iterator[Pair], *orders: tuple[PlacedStatement, ...], textual: bool = True) -> list[Pair]:
    """One pair for each answer, reductions last. Pairs have the same answer if they are in the same loops and under the
    same guards in all of the `orders`, and their subscripts have the same differences, of whichever array.

    textual: whether the answer depends on which statement comes first in the text. If there are more than MOST, some
    may be missing, but more than MOST are returned.
    """
    surroundings = [tuple(map(around, each)) for each in zip(*orders, strict=True)]
    numbers = {each: i for i, each in enumerate(dict.fromkeys(surroundings))}
    own = [numbers[each] for each in surroundings]
    differences = _Differences(frozenset(loop.var for order in orders for p in order for loop in p.loops))
    plain: dict[object, Pair] = {}
    reductions: dict[object, Pair] = {}
    for pair in pairs:
        found = reductions if pair.reduction else plain
        if len(found) <= MOST:
            a, b = pair.a, pair.b
            text = (a < b, a == b) if textual else ()
            found.setdefault((own[a], own[b], text, differences.of(pair)), pair)
        elif not pair.reduction:
            break
    return list((plain | {key: pair for key, pair in reductions.items() if key not in plain}).values())


class _Part(Record):
    """A subscript in two parts: a number plus multiples of expressions in parameters, and the terms left over."""

    number: int
    fixed: tuple[tuple[IntExpr, int], ...]
    rest: frozenset[tuple[IntExpr, int]]


class _Differences:
    """The differences between the subscripts of two uses, as keys. The uses touch one element if all are zero.

    variables: the loop variables. They have two values in a pair of executions, so only parameters cancel.
    """

    def __init__(self, variables: frozenset[str]) -> None:
        self._variables = variables
        self._numbers: dict[IntExpr, int] = {}
        self._parts: list[_Part] = []
        self._uses: dict[int, tuple[Use, tuple[int, ...]]] = {}  # by identity: hashing takes most of the time
        self._found: dict[tuple[int, int], int] = {}
        self._keys: dict[object, int] = {}

    def of(self, pair: Pair) -> tuple[int, ...]:
        """A key for each dimension."""
        return tuple(map(self._difference, self._subscripts(pair.first), self._subscripts(pair.second)))

    def _subscripts(self, use: Use) -> tuple[int, ...]:
        """The places of a use's subscripts among all."""
        known = self._uses.get(id(use))
        if known is None:
            known = self._uses[id(use)] = use, tuple(map(self._place, use.subscripts))
        return known[1]

    def _place(self, subscript: IntExpr) -> int:
        if subscript not in self._numbers:
            self._numbers[subscript] = len(self._parts)
            form = affine(subscript)
            fixed = tuple((t, c) for t, c in form.terms if self._is_fixed(t))
            self._parts.append(_Part(form.constant, fixed, frozenset(t for t in form.terms if t not in fixed)))
        return self._numbers[subscript]

    def _difference(self, first: int, second: int) -> int:
        found = self._found.get((first, second))
        if found is None:
            a, b = self._parts[first], self._parts[second]
            fixed = dict(a.fixed)
            for term, times in b.fixed:
                fixed[term] = fixed.get(term, 0) - times
            left = frozenset((t, c) for t, c in fixed.items() if c)
            key = a.rest, b.rest, a.number - b.number, left
            found = self._found[first, second] = self._keys.setdefault(key, len(self._keys))
        return found

    def _is_fixed(self, term: IntExpr) -> bool:
        """Whether a term has one value in both executions, and the integer-set library knows it exactly.

        If it did not, one pair of a class could be decided and another one not.
        """
        parts = list(term.walk())
        exact = all(isinstance(p.divisor, Const) for p in parts if isinstance(p, FloorDiv | Mod))
        return exact and not any(isinstance(p, Product) for p in parts) and not term.symbols() & self._variables
