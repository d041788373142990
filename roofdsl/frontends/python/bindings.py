"""Gives names to values: numbers stand for themselves, scalars that never change are `let`s, arrays are views."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from roofdsl.frontends.python.context import Again, Carried, Context, Key, Let
from roofdsl.frontends.python.expressions import Expressions
from roofdsl.frontends.python.types import kind, promoted, with_weak
from roofdsl.frontends.python.values import Buffer, Constant, Extremum, Items, Unknown, Value, Whole, whole_view


class Bindings:
    """Assigns names."""

    def __init__(self, context: Context, expressions: Expressions) -> None:
        self.context, self.expressions = context, expressions

    def bind(self, name: str, found: Any, node: ast.AST) -> None:
        """`name = value`. Raises Refused, or Again if the name turns out to be something else."""
        context, env = self.context, self.context.frame.env
        key = context.frame.key(name)
        if isinstance(found, Whole) and key in context.learnt.data:
            found = self.expressions.arithmetic.value(found, node)
            self._cell(name, key, found, node)
            return
        if isinstance(found, Constant) and isinstance(found.value, bool) and context.frame.counts.get(name, 0) > 1:
            env[name] = found
            return
        if isinstance(found, Items):
            env[name] = Items(tuple(self._item(v, node, k, name) for k, v in enumerate(found.values)))
            return
        if isinstance(found, Extremum):
            env[name] = found
            return
        if not isinstance(found, Value):
            env[name] = found
            return
        if found.is_scalar:
            self._scalar(name, key, found, node)
            return
        env[name] = found if found.view is not None or found.simple else self._array(name, key, found, node)

    def settle(self, names: Iterable[str], node: ast.AST) -> None:
        """Scalars that are about to change in a loop or branch get storage of their own."""
        context = self.context
        for name in names:
            found, key = context.frame.env.get(name), context.frame.key(name)
            if isinstance(found, Whole) and key in context.learnt.data:
                found = self.expressions.arithmetic.value(found, node)
            if not isinstance(found, Value) or not found.is_scalar:
                continue
            if found.view is None or found.view.buffer is not context.buffers.get(key):
                self._cell(name, key, found, node)

    def changing(self, names: Iterable[str], before: dict[str, Any]) -> dict[str, Any]:
        """The names that are unknown at the beginning of an iteration: flags, tuples and types changed by the loop."""
        followed = (Value, Whole, Unknown, Carried, type(None))
        return {n: Unknown(f"`{n}` changes in the loop") for n in names if not isinstance(before.get(n), followed)}

    def _item(self, found: Any, node: ast.AST, k: int, name: str) -> Any:
        if isinstance(found, Value) and found.number is None and (found.is_scalar or not found.simple):
            return self.expressions.nests.materialized(found, node, name, ("item", k))
        return found

    # ---- arrays ----

    def _array(self, name: str, key: Key, found: Value, node: ast.AST) -> Value:
        """An array that an expression makes."""
        context = self.context
        place = (*context.path, id(node), "bound", name)
        home = context.buffers.get(context.learnt.homes.get(place, ()))
        if home is None:
            return self.expressions.nests.materialized(found, node, name, ("bound", name))
        target = whole_view(home)
        if self.expressions.nests.overlaps(target, found):
            message = f"`{name}` is a new array in every iteration, made from the old one"
            context.refuse("py-loop", message, node, f"write `{name}[:] = ...`, which changes the array itself")
        others = [n for f in context.frames for n, v in f.env.items() if n != name and self._is_of(v, home)]
        if others:
            message = f"`{name}` is a new array in every iteration, and `{others[0]}` is still the old one"
            context.refuse("py-loop", message, node, f"write `{name}[:] = ...`, which changes the array itself")
        self.expressions.library.store(target, "=", found, node)
        return context.read(target, node)

    def _is_of(self, found: Any, buffer: Buffer) -> bool:
        found = found.value if isinstance(found, Carried) else found
        return isinstance(found, Value) and found.view is not None and found.view.buffer is buffer

    # ---- scalars ----

    def _scalar(self, name: str, key: Key, found: Value, node: ast.AST) -> None:
        context = self.context
        env, learnt = context.frame.env, context.learnt
        once = context.frame.counts.get(name, 0) <= 1 and key not in learnt.stored
        if once and found.number is not None:
            env[name] = found
            return
        view = found.view
        if (
            once
            and view is not None
            and not view.buffer.dims
            and (view.buffer.place == "argument" or (view.buffer.name == name and found.type != "bool"))
        ):
            env[name] = found  # it does not change, or was made for this name
            return
        if once and not found.own and found.origins:
            env[name] = found  # whether it is a size is not known yet
            return
        if once and found.own and found.type != "bool":
            if found.simple and view is None:
                env[name] = found
                return
            env[name] = Let(self.expressions.nests.let(found, node, name, own=True), context.blocks[-1][0])
            return
        self._cell(name, key, found, node)

    def _cell(self, name: str, key: Key, found: Value, node: ast.AST) -> None:
        """A scalar that is kept in the kernel."""
        context = self.context
        known = context.learnt.types.get(key)
        if known is None:
            cell = context.buffers.get(key)
            known = (cell.type, cell.weak) if cell is not None else (found.type, found.weak)
        joined = self._joined(name, known, found, node)
        if joined != known or (
            key in context.buffers and joined != (context.buffers[key].type, context.buffers[key].weak)
        ):
            context.learnt.types[key] = joined
            raise Again
        type_, weak = known
        buffer = context.buffer(key, name, type_, (), node, weak=weak)
        written = self.expressions.nests.written(found, found.at(()), node)
        context.assign(buffer, (), "=", written, node)
        context.frame.env[name] = context.scalar(buffer, node)

    def _joined(self, name: str, known: tuple[str, bool], found: Value, node: ast.AST) -> tuple[str, bool]:
        """The type of a scalar whose type was `known` and which now gets the value `found`."""
        (a, a_weak), b, b_weak = known, found.type, found.weak
        if a == b:
            return a, a_weak and b_weak
        if "bool" in (a, b):
            message = f"`{name}` is a truth value in one place and a number in another"
            self.context.refuse("py-type", message, node, "use two names")
        if a_weak and b_weak:
            return promoted(a, b), True
        if a_weak or b_weak:
            strong, weak = (b, a) if a_weak else (a, b)
            joined = with_weak(strong, weak)
            if joined == strong or kind(weak) == "int":
                return joined, False
        message = f"`{name}` has the type {a} and then {b}"
        self.context.refuse("py-type", message, node, "use two names, or one type")
