"""`a[k++] = x` as two statements, `a[k] = x; k++;`: it means the same if `k` occurs once and always changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.variables import walk

STEPS = ("++", "--", "p++", "p--")
_STATEMENTS = (c_ast.Assignment, c_ast.Decl)


def has_steps(function: Any) -> bool:
    """Whether a function has a `++` or `--` inside a statement, which `take_out` may change."""
    statements = [p for p in walk(function.body) if isinstance(p, _STATEMENTS)]
    return any(isinstance(p, c_ast.UnaryOp) and p.op in STEPS for node in statements for p in walk(node))


def take_out(function: Any) -> None:
    """Takes `++` and `--` out of the assignments of a function, in place."""
    for node in list(walk(function.body)):
        if isinstance(node, c_ast.Compound):
            node.block_items = [part for item in node.block_items or [] for part in _parts(item)]
        for name in ("stmt", "iftrue", "iffalse"):
            only = getattr(node, name, None)
            parts = _parts(only)
            if only is not None and len(parts) > 1:
                setattr(node, name, c_ast.Compound(parts, only.coord))


def _parts(statement: Any) -> list[Any]:
    """A statement, between those that its `++` and `--` become."""
    if not isinstance(statement, _STATEMENTS):
        return [statement]
    names = Counter(p.name for p in walk(statement) if isinstance(p, c_ast.ID))
    before: list[Any] = []
    after: list[Any] = []
    pending = [statement]
    while pending:
        node = pending.pop()
        for place, child in node.children():
            if isinstance(child, c_ast.UnaryOp) and child.op in STEPS:
                if isinstance(child.expr, c_ast.ID) and names[child.expr.name] == 1:
                    (after if child.op[0] == "p" else before).append(child)
                    _put(node, place, child.expr)
            elif not _may_skip(child):
                pending.append(child)
    return [*before, statement, *after]


def _may_skip(node: Any) -> bool:
    """Whether a part of an expression may not be computed, or computes nothing."""
    return (
        isinstance(node, c_ast.TernaryOp | c_ast.TypeDecl | c_ast.ArrayDecl | c_ast.PtrDecl)
        or (isinstance(node, c_ast.BinaryOp) and node.op in ("&&", "||"))
        or (isinstance(node, c_ast.UnaryOp) and node.op == "sizeof")
    )


def _put(node: Any, place: str, child: Any) -> None:
    """Puts a child in its place, which pycparser calls `expr` or `exprs[1]`."""
    name, _, index = place.partition("[")
    if index:
        getattr(node, name)[int(index[:-1])] = child
    else:
        setattr(node, name, child)
