"""Lowers integer expressions and conditions of the syntax tree; `const` parameters become their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from roofdsl.lang import tree
from roofdsl.lang.build import MAX_INTEGER
from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.source import Source, Span
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
    Sym,
    add,
    mul,
    sub,
)
from roofdsl.loops.model import Array, Element, Read

MAX_FACTORS = 1000


class Integers:
    """Lowers integer expressions that the checker accepted.

    Raises InputError for errors that only the values of `const` parameters reveal.
    """

    def __init__(self, source: Source, constants: Mapping[str, int]) -> None:
        self.source = source
        self.constants = constants
        self.arrays: Mapping[str, Array] = {}  # those declared so far, whose elements subscripts and bounds may read

    def fail(self, code: str, message: str, span: Span, help: str = "") -> InputError:
        """The error for a fault that the constants reveal; it names them."""
        given = ", ".join(f"{name} = {value}" for name, value in self.constants.items())
        shown = f"{message} (with {given})" if given else message
        return InputError(self.source, [Diagnostic(code, shown, span, help)])

    def lower(self, expression: tree.Expr) -> IntExpr:
        """The integer expression. Raises InputError for a divisor below 1, an overflow or too many factors."""
        match expression:
            case tree.Number(_, value):
                return Const(int(value))
            case tree.Ref(name):
                return Const(self.constants[name]) if name in self.constants else Sym(name)
            case tree.Group(inner):
                return self.lower(inner)
            case tree.Unary(op, operand):
                lowered = self.lower(operand)
                return mul(Const(-1), lowered) if op == "-" else lowered
            case tree.Binary(op, left, right):
                return self.binary(op, self.lower(left), self.lower(right), expression.span)
            case tree.Index(name, subscripts):
                read = tuple(self.lower(s) for s in subscripts)
                return Read(Element(self.arrays[name.text], read, expression.span))
            case tree.Call(name, args):
                return _extremum(name.text, [self.lower(a) for a in args])
            case _:
                raise TypeError(f"no integer expression: {expression}")

    def binary(self, op: str, a: IntExpr, b: IntExpr, span: Span) -> IntExpr:
        """`a op b`, constants folded; for a power, `b` is a Const."""
        if op in ("//", "%"):
            return self._divide(op, a, b, span)
        if op == "**":
            if not isinstance(b, Const):
                raise TypeError("an exponent is a number")
            if not isinstance(a, Const) and _factors(a) * b.value > MAX_FACTORS:
                message = f"an integer is a product of at most {MAX_FACTORS} factors, but this one of more"
                raise self.fail("exponent", message, span)
            result = Const(a.value**b.value) if isinstance(a, Const) else mul(*[a] * b.value)
        elif op == "*":
            result = mul(a, b)
        else:
            result = add(a, b) if op == "+" else sub(a, b)
        if isinstance(result, Const) and abs(result.value) > MAX_INTEGER:
            raise self.fail("number-range", "this integer is larger than 2**63 - 1", span)
        return result

    def _divide(self, op: str, a: IntExpr, b: IntExpr, span: Span) -> IntExpr:
        if isinstance(b, Const):
            if b.value <= 0:
                raise self.fail("divisor", f"`{op}` must divide by a positive integer, but this is {b.value}", span)
            if isinstance(a, Const):
                return Const(a.value // b.value if op == "//" else a.value % b.value)
            if b.value == 1:
                return a if op == "//" else Const(0)
        return FloorDiv(a, b) if op == "//" else Mod(a, b)

    def condition(self, expression: tree.Expr) -> Condition:
        """The condition; chained comparisons become conjunctions."""
        match expression:
            case tree.Group(inner):
                return self.condition(inner)
            case tree.Unary(_, operand):
                return Not(self.condition(operand))
            case tree.Logic(op, left, right):
                # flat: `a and b and c`, which the parser nests, is one conjunction of three
                kind = And if op == "and" else Or
                parts: list[Condition] = []
                for side in (self.condition(left), self.condition(right)):
                    parts += side.parts if isinstance(side, kind) else (side,)
                return kind(tuple(parts))
            case tree.Compare(first, rest):
                operands = [self.lower(first), *(self.lower(e) for _, e in rest)]
                pairs = zip((op for op, _ in rest), operands[:-1], operands[1:], strict=True)
                compared: tuple[Condition, ...] = tuple(Compare(op, a, b) for op, a, b in pairs)
                return compared[0] if len(compared) == 1 else And(compared)
            case _:
                raise TypeError(f"no condition: {expression}")


def _factors(expression: IntExpr) -> int:
    return len(expression.terms) if isinstance(expression, Product) else 1


def _extremum(name: str, terms: list[IntExpr]) -> IntExpr:
    kind: type[Min] | type[Max] = Min if name == "min" else Max
    flat = [u for t in terms for u in (t.terms if isinstance(t, kind) else (t,))]
    numbers = [t.value for t in flat if isinstance(t, Const)]
    others = list(dict.fromkeys(t for t in flat if not isinstance(t, Const)))
    if numbers:
        others.append(Const(reduce(min if name == "min" else max, numbers)))
    return others[0] if len(others) == 1 else kind(tuple(others))
