"""Lowers computed values; integer arithmetic inside them becomes one IntValue (rule 2: it costs nothing)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.source import Span
from roofdsl.lang.types import TYPES, ElementType, joined
from roofdsl.loops.integers import Const, IntExpr, mul
from roofdsl.loops.lower_integers import Integers
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
    ScalarRef,
    Select,
    Unary,
)


class Values:
    """Lowers the expressions of one kernel. `lets` holds the types of the `let`s in scope; the caller keeps it."""

    def __init__(self, integers: Integers, arrays: Mapping[str, Array]) -> None:
        self.integers = integers
        self.arrays = arrays
        self.lets: dict[str, ElementType] = {}

    def lower(self, expression: tree.Expr) -> Expr:
        """The value with names resolved and constants substituted. Raises InputError as `Integers.lower` does."""
        span = expression.span
        match expression:
            case tree.Number(_, value):
                return Number(value, span)
            case tree.Ref(name):
                return self._ref(name, expression)
            case tree.Index():
                return self.element(expression)
            case tree.Group(inner):
                return self.lower(inner)
            case tree.Unary("-", operand):
                return self._negative(self.lower(operand), span)
            case tree.Unary(_, operand):
                return self.lower(operand)
            case tree.Binary("//" | "%"):
                return _integer(self.integers.lower(expression), span)
            case tree.Binary(op, left, right):
                return self._binary(op, self.lower(left), self.lower(right), span)
            case tree.Call(name, args) if name.text == "select":
                return self._select(args, span)
            case tree.Call(name, args):
                return Call(name.text, tuple(self.lower(a) for a in args), span)
            case _:
                raise TypeError(f"no value: {expression}")

    def element(self, index: tree.Index) -> Element:
        """`A[i, j]`."""
        subscripts = tuple(self.integers.lower(s) for s in index.subscripts)
        return Element(self.arrays[index.name.text], subscripts, index.span)

    def _ref(self, name: str, ref: tree.Ref) -> Expr:
        if name in self.lets:
            return LetRef(name, self.lets[name], ref.span)
        if name in self.arrays:
            return ScalarRef(self.arrays[name], ref.span)
        return _integer(self.integers.lower(ref), ref.span)

    def _negative(self, operand: Expr, span: Span) -> Expr:
        if isinstance(operand, Number):
            return Number(-operand.value, span)
        if isinstance(operand, IntValue):
            return IntValue(mul(Const(-1), operand.value), span)
        return Unary("-", operand, span)

    def _binary(self, op: str, left: Expr, right: Expr, span: Span) -> Expr:
        a, b = _as_integer(left), _as_integer(right)
        if a is not None and b is not None and op != "/":
            return _integer(self.integers.binary(op, a, b, span), span)
        return Binary(op, left, right, span)

    def _select(self, args: Sequence[tree.Expr], span: Span) -> Select:
        condition = args[0]
        while isinstance(condition, tree.Group):
            condition = condition.inner
        if not isinstance(condition, tree.Compare):
            raise TypeError("the checker lets only a comparison through")
        op, right = condition.rest[0]
        compared = DataCompare(op, self.lower(condition.first), self.lower(right), condition.span)
        return Select(compared, self.lower(args[1]), self.lower(args[2]), span)


def _as_integer(value: Expr) -> IntExpr | None:
    if isinstance(value, IntValue):
        return value.value
    return Const(value.value) if isinstance(value, Number) and isinstance(value.value, int) else None


def _integer(value: IntExpr, span: Span) -> Expr:
    return Number(value.value, span) if isinstance(value, Const) else IntValue(value, span)


def type_of(value: Expr) -> ElementType | None:
    """The type of a value by rules 6 and 7; None if it consists of numbers, parameters and loop variables alone."""
    match value:
        case Element(array) | ScalarRef(array):
            return array.type
        case LetRef(_, type_):
            return type_
        case Unary(_, operand):
            return type_of(operand)
        case Binary("**", left, _):
            return type_of(left)
        case Binary(_, left, right):
            return _joined((left, right))
        case Call(function, args):
            result, gives = _joined(args), FUNCTIONS[function].gives
            if result and gives == "component":
                return result.component
            return TYPES["f64"] if result and result.kind == "int" and gives == "fraction" else result
        case Select(_, if_true, if_false):
            return _joined((if_true, if_false))
        case _:
            return None


def _joined(operands: Sequence[Expr]) -> ElementType | None:
    """The type of an operation on these operands."""
    types = [type_of(e) for e in operands]
    return joined([(t, t is None and _has_fraction(e)) for e, t in zip(operands, types, strict=True)])


def _has_fraction(value: Expr) -> bool:
    """Whether a value of numbers, parameters and loop variables alone may have a fraction."""
    match value:
        case Number(number):
            return not isinstance(number, int)
        case Unary(_, operand):
            return _has_fraction(operand)
        case Binary(op, left, right):
            return op == "/" or _has_fraction(left) or (op != "**" and _has_fraction(right))
        case Call(function, args):
            return FUNCTIONS[function].gives == "fraction" or any(_has_fraction(a) for a in args)
        case Select(_, if_true, if_false):
            return _has_fraction(if_true) or _has_fraction(if_false)
        case _:
            return False
