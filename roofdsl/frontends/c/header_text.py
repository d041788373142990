"""Checks of the headers of loops that need no more than their text: nothing uses what the same header changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.variables import assigned_names, walk
from roofdsl.frontends.refuse import Refused


def require_alone(node: Any, name: str) -> None:
    """Checks that the condition tests no other counter, as that of `for (i = 0, j = n; i < j; i++, j--)` does."""
    tested = {p.name for p in walk(node.cond) if isinstance(p, c_ast.ID)} - {name}
    declared = {d.name for d in getattr(node.init, "decls", ())}
    others = tested & (assigned_names(node.next) | declared)
    if others:
        message = f"the condition compares `{name}` with `{min(others)}`, which changes in the loop"
        raise Refused("c-loop", message, node.cond, "compare it with what does not change, such as `i < n / 2`")


def require_order(parts: Sequence[Any], own: Any, value: Any, name: str) -> None:
    """Refuses parts of a header that use each other, since all are read as if they were simultaneous."""
    place = next(k for k, part in enumerate(parts) if part is own)
    used = {p.name for p in walk(value) if isinstance(p, c_ast.ID)}
    for part in parts[:place]:
        if (assigned_names(part) | {getattr(part, "name", "")}) & used:
            message = f"`{name}` begins with a value that the same header sets first"
            raise Refused("c-loop", message, part, "set it before the loop")
    for part in parts[place + 1 :]:
        require_apart(part, name, "it is set")


def require_apart(part: Any, name: str, what: str) -> None:
    if name in {p.name for p in walk(part) if isinstance(p, c_ast.ID)}:
        message = f"this uses the counter `{name}` after {what}, inside the header"
        raise Refused("c-loop", message, part, "write it as a statement before the loop, or in its body")


def require_steady(node: Any, step: Any, name: str, after: tuple[Any, ...]) -> None:
    """Checks that nothing in the body changes the counter, or the variables in the bounds and the step."""
    parts = {p.name for n in (node.cond, step) for p in walk(n) if isinstance(p, c_ast.ID)}
    for body in (node.stmt, *after):
        for part in walk(body):
            changed = assigned_names(part) & parts if not list(part.children()) or _changes(part) else set()
            if changed:
                other = f"`{min(changed)}`, on which its bounds or its step depend"
                message = f"the body of the loop changes {'the counter' if name in changed else other}"
                raise Refused("c-loop", message, part, "leave counters and bounds as they are in the body")


def _changes(part: Any) -> bool:
    return isinstance(part, c_ast.Assignment | c_ast.UnaryOp)
