"""An affine kernel that makes every access that a kernel with index arrays can make, whatever their data.

`x[col[k]]` with `col` in 0..n - 1 becomes a loop over all of these values, and `for k in range(rowptr[i], ...)` one
for every pair of bounds. What stays inside its arrays here does so for all data, and what leaves them does for some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses, reads_in, statements
from roofdsl.loops.integers import Const, IntExpr, Sym, add
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    Read,
    Rises,
    Select,
    Unary,
)


class Enclosing(Record):
    """The affine kernel, and what each of its new loop variables stands for: `data1` for `col[k]`."""

    kernel: Kernel
    meaning: Mapping[str, str]


def enclosing(kernel: Kernel) -> Enclosing:
    """The affine kernel of one with index arrays."""
    enclose = _Enclose(kernel)
    body = enclose.block(kernel.body)
    return Enclosing(replace(kernel, body=body, facts=(), data=None), enclose.meaning)


class _Enclose:
    def __init__(self, kernel: Kernel) -> None:
        self.rises = {f.array: f for f in kernel.facts if isinstance(f, Rises)}
        self.meaning: dict[str, str] = {}
        loops = {loop.var for placed in statements(kernel.body) for loop in placed.loops}
        self.taken = loops | {p.name for p in kernel.parameters} | {a.name for a in kernel.arrays}

    def _name(self) -> str:
        number = len(self.meaning) + 1
        while f"data{number}" in self.taken:
            number += 1
        self.taken.add(f"data{number}")
        return f"data{number}"

    def block(self, body: Sequence[Node]) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for node in body:
            match node:
                case For():
                    values: dict[Element, IntExpr] = {}
                    loops = self._loops((node.start, node.stop), values)
                    start, stop = self._known(node.start, values), self._known(node.stop, values)
                    inner = replace(node, start=start, stop=stop, body=self.block(node.body))
                    nodes += self._around(loops, inner)
                case If():
                    nodes.append(replace(node, then=self.block(node.then), orelse=self.block(node.orelse)))
                case Assign() | Let():
                    nodes += self._statement(node)
                case Count():
                    nodes.append(node)
        return tuple(nodes)

    def _statement(self, node: Assign | Let) -> Sequence[Node]:
        values: dict[Element, IntExpr] = {}
        subscripts = tuple(s for access in accesses(node) for s in access.element.subscripts)
        loops = self._loops(subscripts, values)
        return self._around(loops, self._replaced(node, values)) if loops else (node,)

    def _loops(self, expressions: Sequence[IntExpr], values: dict[Element, IntExpr]) -> list[tuple[Let, For]]:
        """A loop for each element read, inner reads first, with the access of that element; `values`: its variable."""
        loops = []
        for element in reads_in(*expressions):
            if element in values:
                continue
            subscripts = tuple(self._known(s, values) for s in element.subscripts)
            array, name = element.array, self._name()
            rises = self.rises.get(array.name)
            first: IntExpr = Const(0) if rises is None else rises.first
            stop = array.below if rises is None else add(rises.last, Const(1))
            assert stop is not None  # the checker lets no other array be read
            access = Let("_", array.type, Element(array, subscripts, element.span), element.span)
            loops.append((access, For(name, first, stop, Const(1), False, (), element.span)))
            values[element] = Sym(name)
            self.meaning[name] = str(Read(element))
        return loops

    @staticmethod
    def _around(loops: Sequence[tuple[Let, For]], node: Node) -> tuple[Node, ...]:
        nodes: tuple[Node, ...] = (node,)
        for access, loop in reversed(loops):
            nodes = (access, replace(loop, body=nodes))
        return nodes

    def _known(self, e: IntExpr, values: Mapping[Element, IntExpr]) -> IntExpr:
        """An expression with the loop variables that stand for what it reads."""
        if isinstance(e, Read):
            return values[e.element]
        return e.rebuild(tuple(self._known(a, values) for a in e.args()))

    def _replaced(self, part: Any, values: Mapping[Element, IntExpr]) -> Any:
        match part:
            case Element(array, subscripts, span):
                return Element(array, tuple(self._known(s, values) for s in subscripts), span)
            case tuple():
                return tuple(self._replaced(p, values) for p in part)
            case Assign() | Let() | Unary() | Binary() | Call() | DataCompare() | Select():
                return type(part)(*(self._replaced(getattr(part, name), values) for name in part.__match_args__))
        return part
