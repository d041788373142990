"""Loops in other words: `continue` as `if`, and `while` with a counter as `for`.

`if (c) continue; rest` is `if (c) {} else { rest }`; `while (i < n) { ...; i++; }` is `for (; i < n; i++) { ... }`.
"""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.variables import assigned_names, walk

_LOOPS = (c_ast.For, c_ast.While, c_ast.DoWhile)


def rewrite(function: Any) -> None:
    """Rewrites the loops of a function in place, where that is possible."""
    blocks = [p for p in walk(function.body) if isinstance(p, c_ast.Compound)]
    for node in walk(function.body):
        if isinstance(node, c_ast.For) and isinstance(node.stmt, c_ast.Compound):
            node.stmt.block_items = _without_continue(node.stmt.block_items or [])
    for block in reversed(blocks):  # inner ones first
        block.block_items = [_counted(item) for item in block.block_items or []]


def _without_continue(items: list[Any]) -> list[Any]:
    for k, item in enumerate(items):
        if not isinstance(item, c_ast.If) or item.iffalse is not None or k + 1 == len(items):
            continue
        own = item.iftrue.block_items or [] if isinstance(item.iftrue, c_ast.Compound) else [item.iftrue]
        if own and isinstance(own[-1], c_ast.Continue):
            rest = c_ast.Compound(_without_continue(items[k + 1 :]), items[k + 1].coord)
            before = c_ast.Compound(own[:-1], item.iftrue.coord)
            return [*items[:k], c_ast.If(item.cond, before, rest, item.coord)]
    return items


def _counted(node: Any) -> Any:
    """A `while` whose last statement changes what its condition tests, as a `for`; any other statement as it is."""
    items = node.stmt.block_items if isinstance(node, c_ast.While) and isinstance(node.stmt, c_ast.Compound) else None
    if not items or not isinstance(items[-1], c_ast.Assignment | c_ast.UnaryOp) or _jumps(items):
        return node
    tested = {p.name for p in walk(node.cond) if isinstance(p, c_ast.ID)}
    if not assigned_names(items[-1]) & tested:
        return node
    return c_ast.For(None, node.cond, items[-1], c_ast.Compound(items[:-1], node.stmt.coord), node.coord)


def _jumps(items: list[Any]) -> bool:
    """Whether statements leave an iteration early, apart from those of loops inside."""
    pending = list(items)
    while pending:
        part = pending.pop()
        if isinstance(part, c_ast.Continue | c_ast.Break | c_ast.Goto | c_ast.Return):
            return True
        if part is not None and not isinstance(part, _LOOPS):
            pending += [child for _, child in part.children()]
    return False
