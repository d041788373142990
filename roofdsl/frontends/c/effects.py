"""Side effects inside expressions."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.variables import walk
from roofdsl.frontends.refuse import Refused


def no_effects(node: Any, statement: Any = None, *, calls: bool = False) -> None:
    """Checks that a value that is never used has no side effects, apart from those of `statement` itself. Raises
    Refused. calls: whether functions may be called.
    """
    for part in walk(node):
        changes = isinstance(part, c_ast.Assignment) or getattr(part, "op", "") in ("++", "--", "p++", "p--")
        if (isinstance(part, c_ast.FuncCall) and not calls) or (changes and part is not statement):
            message = "a side effect inside an expression is not supported"
            raise Refused("c-effect", message, part, "write two statements")
