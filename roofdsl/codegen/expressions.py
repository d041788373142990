"""The expressions of a kernel in any target language: integers, conditions, values, array elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from roofdsl.codegen.computed_types import (
    Computed,
    compared_in,
    component,
    computed,
    is_complex,
    join,
    kind_of,
    settled,
)
from roofdsl.codegen.syntax import AND, ATOM, COMPARE, OR, PRODUCT, SUM, UNARY, Syntax, Text
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.loops.integers import (
    And,
    Compare,
    Condition,
    Const,
    FloorDiv,
    IntExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Product,
    Sum,
    Sym,
    Tree,
    fold,
)
from roofdsl.loops.model import (
    Array,
    Binary,
    Call,
    DataCompare,
    Element,
    Expr,
    IntValue,
    LetRef,
    Number,
    Read,
    ScalarRef,
    Select,
    Unary,
)


class Expressions:
    """Writes expressions.

    names: kernel names that are written differently. staged: elements (by identity) that are read from a copy instead
    of their array. extents: dimensions of arrays that have a name.
    """

    def __init__(self, syntax: Syntax, names: Mapping[str, str]) -> None:
        self.syntax = syntax
        self.names = names
        self.staged: dict[int, Text] = {}
        self.extents: dict[IntExpr, str] = {}
        self.lets: dict[str, str] = {}

    def name(self, name: str) -> str:
        return self.names.get(name, name)

    # ---- integers and conditions ----

    def integer(self, e: IntExpr) -> Text:
        """Integer arithmetic; `//` rounds down and `%` is never negative, whatever the target's operators do."""
        return fold(e, self._rows)

    def truth(self, c: Condition) -> Text:
        """A condition on integers."""
        return fold(c, self._rows)

    @cached_property
    def _rows(self) -> dict[type[Tree], Callable[..., Text]]:
        syntax = self.syntax
        both, either = f" {syntax.logic['and']} ", f" {syntax.logic['or']} "
        return {
            Const: lambda e: Text(str(e.value), ATOM if e.value >= 0 else UNARY),
            Sym: lambda e: Text(self.name(e.name)),
            Sum: lambda _, *terms: _sum(terms),
            Product: lambda _, *factors: _product(factors),
            Min: lambda _, *terms: syntax.extremum("min", terms),
            Max: lambda _, *terms: syntax.extremum("max", terms),
            FloorDiv: lambda _, numerator, divisor: syntax.floor_div(numerator, divisor),
            Mod: lambda _, numerator, divisor: syntax.mod(numerator, divisor),
            Compare: lambda c, left, right: Text(f"{left.at(SUM)} {c.op} {right.at(SUM)}", COMPARE),
            And: lambda _, *parts: Text(both.join(p.at(COMPARE) for p in parts), AND),
            Or: lambda _, *parts: Text(either.join(p.at(COMPARE) for p in parts), OR),
            Not: lambda _, part: syntax.negation(part),
            Read: lambda e, *_: self.syntax.convert(self.read(e.element), computed(e.element.array.type), "i64"),
        }

    # ---- values ----

    def value(self, e: Expr, to: Computed) -> Text:
        """A value, converted to `to`."""
        kind = kind_of(e)
        if kind in ("whole", "plain"):
            real = component(to)
            if isinstance(e, Number):
                text = self.syntax.literal(e.value, real)
            elif isinstance(e, IntValue):
                text = self.syntax.from_index(self.integer(e.value), real)
            else:
                text = self.syntax.convert(self._compute(e, "f64"), "f64", real)
            return self.syntax.convert(text, real, to)
        own = settled(kind)
        return self.syntax.convert(self._compute(e, own), own, to)

    def operand(self, e: Expr, kind: Computed) -> Text:
        """An operand of an operation of type `kind`; a real one of a complex operation stays real."""
        return self.value(e, self.kept(e, kind))

    def kept(self, e: Expr, kind: Computed) -> Computed:
        """The type of an operand of an operation of type `kind`."""
        return component(kind) if is_complex(kind) and not is_complex(kind_of(e)) else kind

    def _compute(self, e: Expr, kind: Computed) -> Text:
        match e:
            case Element():
                return self.read(e)
            case ScalarRef(array):
                return Text(self.name(array.name))
            case LetRef(name):
                return Text(self.lets.get(name) or self.name(name))
            case Number() | IntValue():
                return self.value(e, kind)
            case Unary(_, operand):
                return Text(f"-{self.operand(operand, kind).at(ATOM)}", UNARY)
            case Binary("**", left, Number(exponent)):
                return self._power(left, int(exponent), kind)
            case Binary(op, left, right):
                return self._binary(op, left, right, kind)
            case Call(function, args):
                return self._call(function, args, kind)
            case Select(condition, if_true, if_false):
                a, b = self.value(if_true, kind), self.value(if_false, kind)
                return self.syntax.choice(self._compare(condition), a, b)
        raise TypeError(e)

    def _binary(self, op: str, left: Expr, right: Expr, kind: Computed) -> Text:
        a, b = self.operand(left, kind), self.operand(right, kind)
        if op == "/":
            return self.syntax.division(a, b, kind, self.kept(right, kind))
        level = SUM if op in "+-" else PRODUCT
        return Text(f"{a.at(level)} {op} {b.at(level + 1)}", level)

    def _power(self, base: Expr, exponent: int, kind: Computed) -> Text:
        if exponent == 0:
            return self.syntax.convert(self.syntax.literal(1, component(kind)), component(kind), kind)
        value = self.value(base, kind)
        return value if exponent == 1 else Text(f"{self.syntax.helper(f'power{exponent}_{kind}')}({value.text})")

    def _call(self, function: str, args: Sequence[Expr], kind: Computed) -> Text:
        given = settled(join(kind_of(a) for a in args))
        if is_complex(given):  # the result may be real, but the function called takes complex values
            return self.syntax.call(function, [self.value(a, given) for a in args], given)
        match FUNCTIONS[function].of_real:
            case "argument":
                return self.value(args[0], kind)
            case "zero":
                return self.syntax.literal(0, kind)
        return self.syntax.call(function, [self.value(a, kind) for a in args], kind)

    def _compare(self, condition: DataCompare) -> Text:
        kind = compared_in(condition)
        a, b = self.value(condition.left, kind), self.value(condition.right, kind)
        return Text(f"{a.at(SUM)} {condition.op} {b.at(SUM)}", COMPARE)

    def read(self, e: Element) -> Text:
        """An element as a value of its computed type."""
        staged = self.staged.get(id(e))
        if staged is not None:
            return staged
        return self.loaded(self.place(e), e.array)

    def loaded(self, place: Text, array: Array) -> Text:
        """The contents of a place in memory as a value."""
        return self.syntax.widen(place, array.type) if array.type.name in ("f16", "bf16", "f8") else place

    def place(self, e: Element) -> Text:
        """An element as the target of an assignment."""
        subscripts = [self.integer(s) for s in e.subscripts]
        dims = [self.dimension(d) for d in e.array.dims]
        return self.syntax.element(e.array, self.name(e.array.name), subscripts, dims)

    def dimension(self, e: IntExpr) -> Text:
        """The extent of an array, by name if it has one."""
        return Text(self.extents[e]) if e in self.extents else self.integer(e)


def _sum(terms: Sequence[Text]) -> Text:
    text = terms[0].at(SUM)
    for term in terms[1:]:
        part = term.at(PRODUCT)
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return Text(text, SUM)


def _product(factors: Sequence[Text]) -> Text:
    if factors[0].text == "-1" and len(factors) > 1:
        # `-i // 2` is (-i) // 2 in Python, so the minus needs a factor that it cannot cut apart
        first, rest = f"-{factors[1].at(ATOM)}", factors[2:]
    else:
        first, rest = factors[0].at(PRODUCT), factors[1:]
    return Text(" * ".join([first, *(f.at(UNARY) for f in rest)]), PRODUCT)
