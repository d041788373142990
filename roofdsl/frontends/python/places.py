"""Where a node of Python's tree stands in its file."""

from __future__ import annotations

import ast

from roofdsl.lang.source import Source, Span


def span_of(node: ast.AST, source: Source) -> Span:
    """The span of a node; for a statement with a block, that of its head. Python counts columns in bytes of UTF-8."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line, end_column = getattr(node, "end_lineno", line) or line, getattr(node, "end_col_offset", column + 1)
    last = _head(node)
    if last is not None:
        end_line, end_column = last.end_lineno or line, last.end_col_offset or column + 1
    begin, end = _characters(source, line, column), _characters(source, end_line, end_column or 1)
    return Span(line, begin, end_line, max(end, begin + 1) if end_line == line else end)


def _head(node: ast.AST) -> ast.expr | ast.arg | None:
    """The end of the head of a statement with a block."""
    match node:
        case ast.For(iter=end) | ast.While(test=end) | ast.If(test=end):
            return end
        case ast.With(items=items):
            return items[-1].context_expr
        case ast.FunctionDef(args=ast.arguments(args=args), returns=returns):
            return returns or (args[-1] if args else None)
        case _:
            return None


def _characters(source: Source, line: int, offset: int) -> int:
    """The column, from 1, of a byte of a line."""
    return len(source.line(line).encode("utf-8")[:offset].decode("utf-8", "ignore")) + 1
