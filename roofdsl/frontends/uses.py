"""How the statements of a kernel use names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.lang import tree


class Use:
    """How a kernel uses a name: read, assigned, updated."""

    def __init__(self) -> None:
        self.read = self.assigned = self.updated = False


def uses(items: Sequence[tree.Item]) -> dict[str, Use]:
    """How the statements use names."""
    found: dict[str, Use] = {}

    def use(name: str) -> Use:
        return found.setdefault(name, Use())

    def read(e: Any) -> None:
        match e:
            case tree.Ref(name):
                use(name).read = True
            case tree.Index(name, subscripts):
                use(name.text).read = True
                for subscript in subscripts:
                    read(subscript)
            case tree.Group(inner) | tree.Unary(_, inner):
                read(inner)
            case tree.Binary(_, left, right):
                read(left)
                read(right)
            case tree.Call(_, args):
                for arg in args:
                    read(arg)
            case tree.Compare(first, rest):
                read(first)
                for _, operand in rest:
                    read(operand)

    def walk(body: Sequence[tree.Item]) -> None:
        for item in body:
            match item:
                case tree.Assign(target, op, value):
                    read(value)
                    name = target.name if isinstance(target, tree.Ref) else target.name.text
                    for subscript in target.subscripts if isinstance(target, tree.Index) else ():
                        read(subscript)
                    if op == "=":
                        use(name).assigned = True
                    else:
                        use(name).updated = True
                case tree.Let(_, value):
                    read(value)
                case tree.For(clauses, body=inner):
                    for bound in (arg for clause in clauses for arg in clause.args):
                        read(bound)
                    walk(inner)
                case tree.If(branches, orelse):
                    for branch in branches:
                        walk(branch.body)
                    walk(orelse)

    walk(items)
    return found
