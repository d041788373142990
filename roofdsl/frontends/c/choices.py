"""`if` on data: both ways are computed, and each scalar or element takes its value by a `select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofdsl.frontends.c.conditions import Condition
from roofdsl.frontends.c.context import Value
from roofdsl.frontends.c.follow import merged
from roofdsl.frontends.c.refuse import Refused
from roofdsl.lang import tree

if TYPE_CHECKING:
    from roofdsl.frontends.c.statements import Statements

_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}
_STORE = "an element is stored only where a condition on data holds, which the language cannot say"


def chosen(statements: Statements, condition: Condition, node: Any) -> None:
    """Writes an `if` on data. Raises Refused for loops in it, and for elements that only one way stores."""
    context = statements.context
    before = dict(context.env)
    first = _way(statements, node.iftrue, node)
    after, context.env = context.env, before
    second = _way(statements, node.iffalse, node)
    context.env = merged(after, context.env)
    a, b = _assigned(first), _assigned(second)
    if not a and not b:
        return
    same = [x.target for x in a] == [x.target for x in b]
    for store in (*a, *b):
        if isinstance(store.target, tree.Index) and not same:
            written = f"write `{store.target.name.text}[...] = condition ? new : old` if every element may be stored"
            raise Refused("c-condition", _STORE, node.cond, written)
    if len(a) + len(b) > (2 if same else 1):
        condition = statements.values.conditions.kept(condition, node)
    if same:
        _paired(statements, condition, first, second, node)
        return
    for items, taken in ((first, True), (second, False)):
        for item in items:
            if isinstance(item, tree.Assign):
                _one(statements, condition, item, taken, node)
            else:
                context.emit(item, node)


def _way(statements: Statements, node: Any, whole: Any) -> list[tree.Item]:
    """What one way writes: assignments and `let`s."""
    context = statements.context
    with context.collected() as items:
        if node is not None:
            statements.scoped(node)
    for item in items:
        if not isinstance(item, tree.Assign | tree.Let):
            message = "whether these statements run depends on data"
            raise Refused("c-condition", message, whole.cond, "take loops and branches out of the `if`")
    return items


def _assigned(items: list[tree.Item]) -> list[tree.Assign]:
    return [item for item in items if isinstance(item, tree.Assign)]


def _paired(
    statements: Statements, condition: Condition, first: list[tree.Item], second: list[tree.Item], node: Any
) -> None:
    """The k-th assignments of both ways have the same target."""
    ways = [list(first), list(second)]
    for _ in _assigned(first):
        pair: list[tree.Assign] = []
        for items in ways:
            while isinstance(items[0], tree.Let):
                statements.context.emit(items.pop(0), node)
            store = items.pop(0)
            assert isinstance(store, tree.Assign)
            pair.append(store)
        a, b = map(_value, pair)
        _emit(statements, pair[0], statements.values.conditions.select(condition, a, b, node), node)


def _one(statements: Statements, condition: Condition, item: tree.Assign, taken: bool, node: Any) -> None:
    value, old = _value(item), Value("f64", None, item.target)
    a, b = (value, old) if taken else (old, value)
    _emit(statements, item, statements.values.conditions.select(condition, a, b, node), node)


def _emit(statements: Statements, item: tree.Assign, value: tree.Expr, node: Any) -> None:
    statements.context.emit(tree.Assign(item.target, "=", value, item.span), node)


def _value(item: tree.Assign) -> Value:
    """What an assignment stores: `x + v` of `x += v`."""
    if item.op == "=":
        return Value("f64", None, item.value)
    op, value = item.op[0], item.value
    level = _LEVEL.get(value.op, 9) if isinstance(value, tree.Binary) else 9
    if level <= _LEVEL[op]:
        value = tree.Group(value, value.span)
    return Value("f64", None, tree.Binary(op, item.target, value, item.span))
