"""`switch` as `if`, `else if` and `else`."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.variables import walk

_MEMORY = (c_ast.ArrayRef, c_ast.StructRef, c_ast.FuncCall, c_ast.Assignment)
_EFFECTS = ("*", "++", "--", "p++", "p--")


def as_ifs(node: Any) -> Any:
    """A `switch` on a variable as `if`s; None if a case goes on into the next one, or ends anywhere but at its end."""
    tested = node.cond
    if any(isinstance(p, _MEMORY) or getattr(p, "op", "") in _EFFECTS for p in walk(tested)):
        return None
    labels: list[Any] = []  # of the cases that share the next statements
    chain: list[tuple[list[Any], Any]] = []
    otherwise: Any = None
    cases = node.stmt.block_items or [] if isinstance(node.stmt, c_ast.Compound) else []
    for k, case in enumerate(cases):
        if not isinstance(case, c_ast.Case | c_ast.Default):
            return None
        labels.append(case)
        items = list(case.stmts or [])
        if len(items) == 1 and isinstance(items[0], c_ast.Compound):
            items = list(items[0].block_items or [])
        if not items and k + 1 < len(cases):
            continue
        ended = bool(items) and isinstance(items[-1], c_ast.Break)
        items = items[:-1] if ended else items
        if (not ended and k + 1 < len(cases)) or _breaks(items):
            return None
        body = c_ast.Compound(items, case.coord)
        if any(isinstance(label, c_ast.Default) for label in labels):
            otherwise = body
        else:
            chain.append(([label.expr for label in labels], body))
        labels = []
    found = otherwise
    for values, body in reversed(chain):
        found = c_ast.If(_one_of(tested, values), body, found, node.coord)
    return found or c_ast.EmptyStatement(node.coord)


def _one_of(tested: Any, values: list[Any]) -> Any:
    """`k == 1 || k == 2`."""
    found: Any = None
    for value in values:
        one = c_ast.BinaryOp("==", tested, value, value.coord)
        found = one if found is None else c_ast.BinaryOp("||", found, one, value.coord)
    return found


def _breaks(items: list[Any]) -> bool:
    """Whether a `break` of the `switch` stands inside."""
    pending = list(items)
    while pending:
        part = pending.pop()
        if isinstance(part, c_ast.Break):
            return True
        if not isinstance(part, c_ast.For | c_ast.While | c_ast.DoWhile | c_ast.Switch | None):
            pending += [child for _, child in part.children()]
    return False
