"""A call of a function of a library: its arguments by name."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.frontends.python.context import Context
from roofdsl.frontends.python.values import Constant
from roofdsl.lang.record import Record


class Call(Record):
    """A call with its arguments evaluated."""

    name: str
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    node: ast.Call

    def bound(self, context: Context, names: Sequence[str], least: int) -> dict[str, Any]:
        """The arguments by name, without those that are None. Raises Refused for other arguments, and if one of the
        first `least` is missing.
        """
        short = self.name.removeprefix("numpy.")
        found: dict[str, Any] = {}
        if len(self.args) > len(names):
            context.refuse("py-call", f"`{short}` is read with at most {len(names)} arguments", self.node)
        for name, value in [*zip(names, self.args, strict=False), *self.named.items()]:
            if name not in names or name in found:
                help = f"it is read with {', '.join(names)}" if names else ""
                context.refuse("py-call", f"the argument `{name}` of `{short}` is not supported", self.node, help)
            if not (isinstance(value, Constant) and value.value is None):
                found[name] = value
        for name in names[:least]:
            if name not in found:
                context.refuse("py-call", f"`{short}` lacks its argument `{name}`", self.node)
        return found
