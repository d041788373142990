"""`if` on data: both branches are computed, and each scalar or element takes its value by a `select`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofdsl.frontends.c.conditions import Condition, Conditions
from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.follow import merged
from roofdsl.frontends.c.given_values import help_for
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree

_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}
_TAKE_OUT = "take loops and branches out of the `if`, or write a function for each case"
_STORE = "an element is stored only where a condition on data holds, which the language cannot express"


class Choices:
    """Writes `if`s on data. `scoped` writes a statement, or those of a block, in a scope of its own."""

    def __init__(self, context: Context, conditions: Conditions, scoped: Callable[[Any], None]) -> None:
        self.context, self.conditions, self.scoped = context, conditions, scoped

    def write(self, condition: Condition, node: Any) -> None:
        """Writes an `if`. Raises Refused for loops in it, and for elements unless both branches assign the same targets
        in the same order.
        """
        context = self.context
        before = dict(context.env)
        first = self._way(node.iftrue, node)
        after, context.env = context.env, before
        second = self._way(node.iffalse, node)
        context.env = merged(after, context.env)
        a, b = _assigned(first), _assigned(second)
        same = [x.target for x in a] == [x.target for x in b]
        for store in (*a, *b):
            if isinstance(store.target, tree.Index) and not same:
                help = f"write `{store.target.name.text}[...] = condition ? new : old` if every element may be stored"
                raise Refused("c-condition", _STORE, node.cond, help_for(node.cond, self.context, help))
        if len(a) + len(b) > (2 if same else 1):
            condition = self.conditions.kept(condition, node)
        if same:
            self._paired(condition, first, second, node)
            return
        for items, taken in ((first, True), (second, False)):
            for item in items:
                if isinstance(item, tree.Assign):
                    value, old = _value(item), Value("f64", None, item.target)
                    a_b = (value, old) if taken else (old, value)
                    self._emit(item, self.conditions.select(condition, *a_b, node), node)
                else:
                    context.emit(item, node)

    def _way(self, node: Any, whole: Any) -> list[tree.Item]:
        """The effects of one branch: assignments and `let`s."""
        outer, self.context.choosing = self.context.choosing, True
        try:
            with self.context.collected() as items:
                if node is not None:
                    self.scoped(node)
        finally:
            self.context.choosing = outer
        for item in items:
            if not isinstance(item, tree.Assign | tree.Let):
                message = "whether these statements run depends on data"
                raise Refused("c-condition", message, whole.cond, help_for(whole.cond, self.context, _TAKE_OUT))
        return items

    def _paired(self, condition: Condition, first: list[tree.Item], second: list[tree.Item], node: Any) -> None:
        """The k-th assignments of both branches have the same target."""
        ways = [list(first), list(second)]
        for _ in _assigned(first):
            pair: list[tree.Assign] = []
            for items in ways:
                while isinstance(items[0], tree.Let):
                    self.context.emit(items.pop(0), node)
                store = items.pop(0)
                assert isinstance(store, tree.Assign)
                pair.append(store)
            a, b = map(_value, pair)
            self._emit(pair[0], self.conditions.select(condition, a, b, node), node)

    def _emit(self, item: tree.Assign, value: tree.Expr, node: Any) -> None:
        self.context.emit(tree.Assign(item.target, "=", value, item.span), node)


def _assigned(items: list[tree.Item]) -> list[tree.Assign]:
    return [item for item in items if isinstance(item, tree.Assign)]


def _value(item: tree.Assign) -> Value:
    """The value that an assignment stores: `x + v` for `x += v`."""
    if item.op == "=":
        return Value("f64", None, item.value)
    op, value = item.op[0], item.value
    level = _LEVEL.get(value.op, 9) if isinstance(value, tree.Binary) else 9
    if level <= _LEVEL[op]:
        value = tree.Group(value, value.span)
    return Value("f64", None, tree.Binary(op, item.target, value, item.span))
