"""Conditions: of loop variables and sizes (an `if` of the language), or of data (a `select`)."""

from __future__ import annotations

from typing import Any, Protocol

from pycparser import c_ast

from roofdsl.frontends.c.c_types import common, is_integer, is_unsigned, joined, same
from roofdsl.frontends.c.context import Context, Known, Value
from roofdsl.frontends.c.float_exact import is_float
from roofdsl.frontends.c.given_values import number_of
from roofdsl.frontends.c.static_types import static_type
from roofdsl.frontends.c.variables import Pointer
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.loops.integers import COMPARISONS

_TURNED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_EXACT = 2**24  # integers below it are exact in float and in double


class Data(Record):
    """A comparison of data."""

    op: str
    left: Value
    right: Value


class Joined(Record):
    """`and`, `or`; or `not`, which has the left part only."""

    op: str
    left: Condition
    right: Condition | None


Condition = Known | Data | Joined


class Places(Protocol):
    """Reads pointers."""

    def is_pointer(self, node: Any) -> bool: ...

    def pointer(self, node: Any) -> Pointer: ...


class Reader(Protocol):
    """Reads values."""

    @property
    def pointers(self) -> Places: ...

    def value(self, node: Any) -> Value: ...

    def exact(self, value: Value, type_: str, node: Any) -> None: ...


class Conditions:
    """Reads conditions."""

    def __init__(self, context: Context, values: Reader) -> None:
        self.context, self.values = context, values

    def read(self, node: Any) -> Condition:
        """The condition of an expression."""
        if isinstance(node, c_ast.BinaryOp) and node.op in ("&&", "||"):
            return self._logic(node)
        if isinstance(node, c_ast.UnaryOp) and node.op == "!":
            inner = self.read(node.expr)
            if isinstance(inner, Known):
                answer = None if inner.value is None else not inner.value
                span = self.context.spans(node)
                return Known(turned(inner.written, span), answer, inner.fails, inner.holds)
            return Joined("not", inner, None)
        if isinstance(node, c_ast.BinaryOp) and node.op in ("==", "!="):
            same = self._same_place(node.left, node.right)
            if same is not None:
                return Known(tree.Number("0", 0, self.context.spans(node)), same == (node.op == "=="))
        if isinstance(node, c_ast.BinaryOp) and node.op in _TURNED:
            return self._compare(node.op, self.values.value(node.left), self.values.value(node.right), node)
        if self.values.pointers.is_pointer(node):
            return Known(tree.Number("0", 0, self.context.spans(node)), True)  # as if it were compared with null
        if isinstance(node, c_ast.Cast) and self._keeps_truth(node):
            return self.read(node.expr)
        value = self.values.value(node)
        return self._compare("!=", value, Value("i32", None, None, Poly.number(0)), node)

    def _same_place(self, left: Any, right: Any) -> bool | None:
        """Whether two pointers are equal: different arrays are assumed to lie apart, and none to be null. None if they
        are no pointers, or if it is not known.
        """
        pointers = self.values.pointers
        null = [is_null(side) for side in (left, right)]
        if not any(map(pointers.is_pointer, (left, right))) or all(null):
            return None
        if any(null):
            return False
        a, b = pointers.pointer(left), pointers.pointer(right)
        if a.array is not b.array:
            return False
        return True if a == b else None

    def _keeps_truth(self, cast: Any) -> bool:
        """Whether the value before a cast is zero where the value after it is: `(int) x` is 0 for x = 0.5."""
        of, to = static_type(cast.expr, self.context), self.context.type_of(cast.to_type.type)
        if of is None or not is_integer(of) or not to.is_plain:
            return False
        if _is_truth(cast.expr):
            return True
        return to.is_integer and int(to.base[1:]) >= int(of[1:])

    def _compare(self, op: str, a: Value, b: Value, node: Any) -> Condition:
        a, b = _whole(a), _whole(b)
        span = self.context.spans(node)
        both = number_of(a), number_of(b)
        if (a.poly is None or b.poly is None) and None not in both:
            return Known(tree.Number("0", 0, span), COMPARISONS[op](*both))
        if a.poly is None or b.poly is None:
            type_ = common(a.type, b.type)
            owns = [t for t in (a.own, b.own) if t is not None]
            own = joined(owns) if owns else None
            # `x[i] < 0.5` of a float is compared in double by C and in float by the language: the result is the same
            # if the number is a float, as 0.5 is and 0.1 is not.
            numbers = [v.expr for v in (a, b) if isinstance(v.expr, tree.Number)]
            exact = bool(numbers) and all(is_float(float(n.value)) for n in numbers)
            if own is not None and not same(own, type_) and not exact:
                message = f"C compares this in another type than its operands have, which are {own}"
                raise Refused("c-type", message, node, "write numbers as `0.5f`, and use one type for all operands")
            for side in (a, b):
                self.values.exact(side, type_, node)
            return Data(op, a, b)
        unsigned = is_unsigned(common(a.type, b.type))
        for side in (a, b):
            assert side.poly is not None
            if unsigned and not self.context.facts.not_negative(side.poly):
                message = "this compares as unsigned, where a negative value wraps around"
                raise Refused("c-integer", message, node, "use signed integers")
        difference = a.poly - b.poly
        assert not difference.entries  # they are read as data here
        holds, fails = differences(op, difference)
        if op in ("==", "!="):  # `i != n` is `i < n` if i <= n
            unequal = [d - 1 for d in (difference, -difference) if self.context.facts.not_negative(d)]
            holds, fails = (holds, tuple(unequal)) if op == "==" else (tuple(unequal), fails)
        if difference.value is not None:
            return Known(tree.Number("0", 0, span), COMPARISONS[op](difference.value, 0), holds, fails)
        if not difference.is_affine_in(r.var for r in self.context.facts.ranges):
            raise Refused("c-condition", "a condition on loop variables must be affine, but this one is not", node,
                          "compare sums of loop variables and sizes")  # fmt: skip
        return Known(tree.Compare(a.poly.tree(span), ((op, b.poly.tree(span)),), span), None, holds, fails)

    def _logic(self, node: Any) -> Condition:
        a = self.read(node.left)
        both = node.op == "&&"
        if isinstance(a, Known) and a.value is not None:
            return self.read(node.right) if a.value == both else a
        b = self.read(node.right)
        if isinstance(b, Known) and b.value is not None:
            return a if b.value == both else b
        op = "and" if both else "or"
        # `i < n && x[i] > 0`: the statement is written once for each answer of `i < n`, inside an `if` of the language,
        # and only the other part is a choice of data.
        for part, known, other in ((node.left, a, b), (node.right, b, a)):
            if isinstance(known, Known) and not isinstance(other, Known):
                answer = self.context.chosen(part, known)
                return other if answer == both else Known(known.written, answer)
        if isinstance(a, Known) and isinstance(b, Known):
            span = self.context.spans(node)
            written = tree.Logic(op, _inside(a.written, op), _inside(b.written, op, right=True), span)
            # Of a false `and` it is not known which part is false, and so no difference either; likewise a true `or`.
            return Known(written, None, (*a.holds, *b.holds) if both else (), () if both else (*a.fails, *b.fails))
        return Joined(op, a, b)

    def select(self, condition: Condition, a: Value, b: Value, node: Any) -> tree.Expr:
        """`select(c, a, b)`; for a condition of several parts, nested `select`s."""
        span = self.context.spans(node)
        match condition:
            case Data(op, left, right):
                compared = tree.Compare(left.written(span), ((op, right.written(span)),), span)
                return tree.Call(tree.Name("select", span), (compared, a.written(span), b.written(span)), span)
            case Joined("not", inner):
                return self.select(inner, b, a, node)
            case Joined(op, first, second) if second is not None:
                twice = b if op == "and" else a
                twice = self.simple(twice, node)
                if op == "and":
                    nested = self.select(second, a, twice, node)
                    return self.select(first, Value(a.type, a.own, nested), twice, node)
                nested = self.select(second, twice, b, node)
                return self.select(first, twice, Value(b.type, b.own, nested), node)
            case _:
                raise TypeError("a known condition is no choice of data")

    def simple(self, value: Value, node: Any) -> Value:
        """The value, named by a `let` unless writing it twice costs nothing."""
        if value.poly is not None or isinstance(value.expr, tree.Number | tree.Ref):
            return value
        return self.context.let("t", value, node)

    def kept(self, condition: Condition, node: Any) -> Condition:
        """The condition with its operands named, so that later assignments do not change it."""
        match condition:
            case Data(op, left, right):
                return Data(op, self._named(left, node), self._named(right, node))
            case Joined(op, first, second):
                return Joined(op, self.kept(first, node), None if second is None else self.kept(second, node))
            case _:
                return condition

    def _named(self, value: Value, node: Any) -> Value:
        if value.poly is not None or isinstance(value.expr, tree.Number):
            return value
        return self.context.let("t", value, node)


def is_null(node: Any) -> bool:
    """Whether an expression is `0` or `(void *) 0`."""
    while isinstance(node, c_ast.Cast):
        node = node.expr
    return isinstance(node, c_ast.Constant) and node.value == "0"


def _is_truth(node: Any) -> bool:
    """Whether an expression is 0 or 1 by its form."""
    while isinstance(node, c_ast.Cast):
        node = node.expr
    return isinstance(node, c_ast.BinaryOp | c_ast.UnaryOp) and node.op in (*_TURNED, "&&", "||", "!")


def _whole(value: Value) -> Value:
    """An integral floating-point number as an integer: comparing with it gives the same result in every type."""
    number = value.expr
    if value.own is not None or not isinstance(number, tree.Number) or abs(number.value) >= _EXACT:
        return value
    if not float(number.value).is_integer():
        return value
    return Value(value.type, None, number, Poly.number(int(number.value)))


def differences(op: str, d: Poly) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
    """The differences that are >= 0 if the comparison with zero holds, and those that are if it fails."""
    table = {
        "<": ((-d - 1,), (d,)), "<=": ((-d,), (d - 1,)), ">": ((d - 1,), (-d,)), ">=": ((d,), (-d - 1,)),
        "==": ((d, -d), ()), "!=": ((), (d, -d)),
    }  # fmt: skip
    return table[op]


def turned(condition: tree.Expr, span: Any) -> tree.Expr:
    """The opposite condition."""
    match condition:
        case tree.Compare(first, ((op, second),)):
            return tree.Compare(first, ((_TURNED[op], second),), span)
        case _:
            return tree.Unary("not", tree.Group(condition, span), span)


def _inside(condition: tree.Expr, op: str, right: bool = False) -> tree.Expr:
    """A part of `and` or `or`, in parentheses if the grammar needs them."""
    needs = isinstance(condition, tree.Logic) and (right or condition.op != op)
    return tree.Group(condition, condition.span) if needs else condition
