"""Statements that sum products, such as `C[i, j] += A[i, k] * B[k, j]`, and what each of their loops moves along.

A loop that moves only the left factor counts rows, and one that moves only the right factor counts columns. A loop that
moves both is a step of the sum if the target stays, and otherwise counts batches, as does a loop that moves neither.
Convolutions and the products of attention have this form, too, with several loops for rows, columns and steps.

A temporary array is written again and again, so its subscripts alone do not identify a value: values also depend on the
loops around the statement that first assigns them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from roofdsl.lang.record import Record
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import PlacedStatement, leaves, statements
from roofdsl.loops.model import (
    Assign,
    Binary,
    Element,
    Expr,
    For,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Number,
    ScalarRef,
    Unary,
)

Loops = frozenset[str]
NONE: Loops = frozenset()


class Factor(Record):
    """One factor of a product: the loops that its value depends on, and its array (None: a value held on the chip)."""

    loops: Loops
    array: str | None
    type: ElementType


class SumOfProducts(Record):
    """A statement that sums products: its place in the text, its target and both factors.

    rows, columns, steps, batch: the loops of each group, outermost first. Every loop is in exactly one of them.
    """

    place: int
    target: Factor
    left: Factor
    right: Factor
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    steps: tuple[str, ...]
    batch: tuple[str, ...]

    def extents(self, trips: Mapping[str, int]) -> tuple[int, int, int, int]:
        """Rows, columns, steps and batches for these numbers of iterations of the loops."""
        rows, columns, steps, batch = (
            prod(trips[loop] for loop in own) for own in (self.rows, self.columns, self.steps, self.batch)
        )
        return rows, columns, steps, batch


def sums_of_products(kernel: Kernel) -> tuple[SumOfProducts, ...]:
    """All sums of products of a kernel without directives.

    A product counts only if at least two of its factors vary with the loops.
    """
    placed = tuple(statements(kernel.body))
    values = _Values(placed)
    found = []
    for place, one in enumerate(placed):
        if isinstance(one.statement, Let):
            values.let(one)
        elif isinstance(one.statement, Assign):
            made = _sum(place, one, one.statement, values)
            found += [made] if made is not None else []
    return tuple(found)


def _sum(place: int, placed: PlacedStatement, statement: Assign, values: _Values) -> SumOfProducts | None:
    product = _added(statement, values)
    if product is None:
        return None
    target = values.factor(statement.target, placed)
    factors = [f for e in _factors(product, values) if (f := values.factor(e, placed)).loops]
    if len(factors) < 2:
        return None
    left, right = _two(factors)
    order = [loop.var for loop in placed.loops]
    summed = (left.loops | right.loops) - target.loops
    if not summed:
        return None

    def those(which: Loops) -> tuple[str, ...]:
        return tuple(v for v in order if v in which)

    both = left.loops & right.loops
    # If no summed loop moves both factors, those of one factor are the steps: a matrix times a vector of ones.
    steps = summed & both or summed
    rows, columns = left.loops - right.loops - steps, right.loops - left.loops - steps
    rest = frozenset(order) - rows - columns - steps
    return SumOfProducts(place, target, left, right, those(rows), those(columns), those(steps), those(rest))


def _added(statement: Assign, values: _Values) -> Expr | None:
    """The product that is added to the target (or subtracted); None if there is none."""
    value: Expr | None = None
    if statement.op in ("+=", "-="):
        value = statement.value
    elif statement.op == "=" and isinstance(statement.value, Binary) and statement.value.op in ("+", "-"):
        sides = statement.value.left, statement.value.right
        value = next((b for a, b in (sides, sides[::-1]) if values.resolved(a) == statement.target), None)
    if value is None:
        return None
    value = values.resolved(value)
    while isinstance(value, Unary):
        value = values.resolved(value.operand)
    return value if isinstance(value, Binary) and value.op == "*" else None


def _factors(e: Expr, values: _Values) -> Iterator[Expr]:
    """The factors of a product, except for numbers and integer expressions."""
    e = values.resolved(e)
    if isinstance(e, Binary) and e.op == "*":
        yield from _factors(e.left, values)
        yield from _factors(e.right, values)
    elif isinstance(e, Unary):
        yield from _factors(e.operand, values)
    elif not isinstance(e, Number | IntValue):
        yield e


def _two(factors: list[Factor]) -> tuple[Factor, Factor]:
    """The factors combined into two. One is the factor that depends on the most loops, together with those that depend
    on a part of these loops. The other consists of all the rest.
    """
    first = max(factors, key=lambda f: len(f.loops))
    rest = [f for f in factors if f is not first]
    others = [f for f in rest if not f.loops < first.loops] or rest
    loops = NONE.union(*(f.loops for f in others))
    alone = others[0] if len(others) == 1 else Factor(loops, None, others[0].type)
    return (first, alone) if factors.index(first) < factors.index(others[0]) else (alone, first)


class _Values:
    """The loops that the value of an expression depends on. Statements must be visited in the order of the text."""

    def __init__(self, placed: tuple[PlacedStatement, ...]) -> None:
        self.lets: dict[str, tuple[Expr, Loops]] = {}
        self.begun: dict[str, list[tuple[For, ...]]] = {}
        for one in placed:
            if isinstance(one.statement, Assign) and one.statement.op == "=":
                self.begun.setdefault(one.statement.target.array.name, []).append(one.loops)

    def let(self, placed: PlacedStatement) -> None:
        assert isinstance(placed.statement, Let)
        value = placed.statement.value
        self.lets[placed.statement.name] = value, self.factor(value, placed).loops

    def resolved(self, e: Expr) -> Expr:
        """The product or element that a `let` stands for; any other `let` as it is."""
        while isinstance(e, LetRef) and e.name in self.lets:
            value = self.lets[e.name][0]
            if not isinstance(value, Element | LetRef) and not (isinstance(value, Binary) and value.op == "*"):
                break
            e = value
        return e

    def factor(self, e: Expr, placed: PlacedStatement) -> Factor:
        """An expression as a factor; its type is the widest of its operands' types."""
        loops, types = NONE, []
        for leaf in leaves(e):
            if isinstance(leaf, LetRef):
                loops |= self.lets[leaf.name][1] if leaf.name in self.lets else NONE
                types.append(leaf.type)
            elif isinstance(leaf, Element | ScalarRef):
                loops |= self._moves(leaf, placed)
                types.append(leaf.array.type)
        alone = e.array.name if isinstance(e, Element) and e.array.intent != "temp" else None
        widest = max(types, key=lambda t: t.bytes, default=None)
        assert widest is not None or not loops
        return Factor(loops, alone, widest or _PLAIN)

    def _moves(self, place: Element | ScalarRef, placed: PlacedStatement) -> Loops:
        around = [loop.var for loop in placed.loops]
        found: set[str] = set()
        if isinstance(place, Element):
            for subscript in place.subscripts:
                found |= subscript.symbols()
        if place.array.intent == "temp":
            for loops in self.begun.get(place.array.name, ()):
                common = [a.var for a, b in zip(placed.loops, loops, strict=False) if a is b]
                found |= set(common)
        return frozenset(found) & frozenset(around)


_PLAIN = ElementType("f64", "float", 8, 5)
