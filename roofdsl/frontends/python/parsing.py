"""The user's text as Python's own tree, with uniform errors. Nothing in it is executed."""

from __future__ import annotations

import ast


def parse_module(text: str) -> ast.Module:
    """The tree of a file. Raises SyntaxError, also for a text that is nested too deeply for Python."""
    try:
        return ast.parse(text)
    except (RecursionError, MemoryError):
        raise SyntaxError("this is nested too deeply") from None


def parse_expression(text: str) -> ast.expr:
    """The tree of one expression. Raises SyntaxError for anything else, and for deep nesting or null bytes."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (RecursionError, MemoryError, ValueError):
        raise SyntaxError("this is not an expression") from None
