"""`if` on data: both branches are computed, and each scalar or element takes its value by a `select`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.frontends.operators import binary
from roofdsl.frontends.python.context import Context, Frame
from roofdsl.frontends.python.expressions import Expressions
from roofdsl.frontends.python.select import chosen
from roofdsl.frontends.python.values import Unknown, Value, Whole
from roofdsl.lang import tree

_STORE = "an element is stored only where a condition on data holds, which the language cannot express"


class Choices:
    """Writes `if`s on data."""

    def __init__(self, context: Context, expressions: Expressions, block: Callable[[Sequence[ast.stmt]], None]) -> None:
        self.context, self.expressions, self.block = context, expressions, block

    def write(self, condition: Value, node: ast.If) -> None:
        """Writes an `if`. Raises Refused for loops in it, and for elements unless both branches assign the same targets
        in the same order.
        """
        context = self.context
        if not condition.is_scalar:
            context.refuse("py-condition", "the truth value of an array is ambiguous", node.test, "write `np.where`")
        test = condition.at(())
        before = dict(context.frame.env)
        first = self._way(node.body, node)
        after, context.frame.env = context.frame.env, before
        second = self._way(node.orelse, node)
        context.frame.env = merged(context.frame, after, context.frame.env)
        a, b = _assigned(first), _assigned(second)
        same = [x.target for x in a] == [x.target for x in b]
        for store in (*a, *b):
            if isinstance(store.target, tree.Index) and not same:
                help = (
                    f"write `{store.target.name.text}[...] = new if condition else old` if every element may be stored"
                )
                context.refuse("py-condition", _STORE, node.test, help)
        if len(a) + len(b) > (2 if same else 1):
            test = self._kept(test, node.test)
        if same:
            self._paired(test, first, second, node)
            return
        span = context.span(node)
        for items, taken in ((first, True), (second, False)):
            for item in items:
                if isinstance(item, tree.Assign):
                    a_way, other = (_value(item), item.target) if taken else (item.target, _value(item))
                    value = chosen(context, test, a_way, other, span)
                    context.emit(tree.Assign(item.target, "=", value, item.span))
                else:
                    context.emit(item)

    def _kept(self, e: tree.Expr, node: ast.AST) -> tree.Expr:
        """A condition whose operands are named, since later statements may change them."""
        context, span = self.context, self.context.span(node)
        match e:
            case tree.Group(inner, own):
                return tree.Group(self._kept(inner, node), own)
            case tree.Unary("not", inner, own):
                return tree.Unary("not", self._kept(inner, node), own)
            case tree.Logic(op, left, right, own):
                return tree.Logic(op, self._kept(left, node), self._kept(right, node), own)
            case tree.Compare(left, ((op, right),), own):
                return tree.Compare(self._operand(left, span), ((op, self._operand(right, span)),), own)
            case _:
                return context.refuse("py-condition", "this condition is not supported", node)

    def _operand(self, e: tree.Expr, span: tree.Span) -> tree.Expr:
        if isinstance(e, tree.Number) or not _reads(e):
            return e
        name = self.context.inner_name("c")
        self.context.emit(tree.Let(tree.Name(name, span), e, span))
        return tree.Ref(name, span)

    def _way(self, statements: Sequence[ast.stmt], node: ast.If) -> list[tree.Item]:
        self.context.choosing += 1
        with self.context.collected() as items:
            self.block(statements)
        self.context.choosing -= 1
        for item in items:
            if not isinstance(item, tree.Assign | tree.Let):
                message = "whether these statements run depends on data"
                self.context.refuse("py-condition", message, node.test, "take loops and branches out of the `if`")
        return items

    def _paired(self, test: tree.Expr, first: list[tree.Item], second: list[tree.Item], node: ast.AST) -> None:
        """The k-th assignments of both branches have the same target."""
        context, span = self.context, self.context.span(node)
        ways = [list(first), list(second)]
        for _ in _assigned(first):
            pair: list[tree.Assign] = []
            for items in ways:
                while isinstance(items[0], tree.Let):
                    context.emit(items.pop(0))
                store = items.pop(0)
                assert isinstance(store, tree.Assign)
                pair.append(store)
            a, b = map(_value, pair)
            context.emit(tree.Assign(pair[0].target, "=", chosen(context, test, a, b, span), pair[0].span))


def _reads(e: tree.Expr) -> bool:
    """Whether an expression may read values that statements can change."""
    match e:
        case tree.Group(inner) | tree.Unary(_, inner):
            return _reads(inner)
        case tree.Binary(_, left, right):
            return _reads(left) or _reads(right)
        case tree.Number():
            return False
        case _:
            return True


def _assigned(items: list[tree.Item]) -> list[tree.Assign]:
    return [item for item in items if isinstance(item, tree.Assign)]


def _value(item: tree.Assign) -> tree.Expr:
    """The value that an assignment stores: `x + v` for `x += v`."""
    if item.op == "=":
        return item.value
    if item.op in ("min=", "max="):
        return tree.Call(tree.Name(item.op[:-1], item.span), (item.target, item.value), item.span)
    return binary(item.op[0], item.target, item.value, item.span)


def merged(frame: Frame, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """The known values of names after either of two branches."""
    found: dict[str, Any] = {}
    for name in {**a, **b}:
        first, second = a.get(name), b.get(name)
        if first is None or second is None:
            found[name] = Unknown(f"`{name}` is set in only one of two branches", _key(frame, name, first or second))
        elif first == second:
            found[name] = first
        else:
            found[name] = Unknown(f"`{name}` means different things in two branches", _key(frame, name, first))
    return found


def _key(frame: Frame, name: str, found: Any) -> Any:
    return frame.key(name) if isinstance(found, Whole | Unknown) else None
