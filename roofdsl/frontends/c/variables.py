"""What the names of a function mean, and what is known of their values at a place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record


class Variable:
    """A variable of the program, by identity. `place`: `parameter`, `local`, `outer` (before the region) or `global`.

    `key` identifies it in every run over the same program. A member of a single structure is a variable, too: `owner`
    is that structure, or the pointer to it, and `place` is `member` if the structure lives outside the function.
    """

    def __init__(self, name: str, type_: CType, node: Any, place: str, key: object, **of: Any) -> None:
        self.name, self.type, self.node, self.place, self.key = name, type_, node, place, key
        self.owner: Variable | None = of.get("owner")
        self.field: str = of.get("field", "")

    @property
    def root(self) -> Variable:
        """The variable of the program that it is, or is a member of."""
        return self if self.owner is None else self.owner.root

    @property
    def label(self) -> str:
        """Its name in a kernel: `v_n` for `v->n`."""
        return self.name if self.owner is None else f"{self.owner.label}_{self.field}"

    @property
    def paths(self) -> set[str]:
        """The names by which it may be changed: `v.grid.n`, `v.grid`, `v`."""
        if self.owner is None:
            return {self.name}
        return {*self.owner.paths, f"{max(self.owner.paths, key=len)}.{self.field}"}

    def __repr__(self) -> str:
        return f"Variable({self.name})"


class Pointer:
    """Points at the element of `array` with these subscripts; fewer than its dimensions point at a row. A structure
    that is no array's element has no subscripts.

    Inside an element that is a structure, the last subscript is a number of bytes from its beginning: `inner` is the
    type there, of `unit` bytes.
    """

    def __init__(
        self, array: Variable, subscripts: tuple[Poly, ...], inner: CType | None = None, unit: int = 1
    ) -> None:
        self.array, self.subscripts, self.inner, self.unit = array, subscripts, inner, unit

    def __eq__(self, other: object) -> bool:
        mine = (self.array, self.subscripts, self.inner)
        return isinstance(other, Pointer) and mine == (other.array, other.subscripts, other.inner)

    def __hash__(self) -> int:
        return hash((self.array, self.subscripts))

    def at(self, last: Poly) -> Pointer:
        """The same with another last subscript."""
        return Pointer(self.array, (*self.subscripts[:-1], last), self.inner, self.unit)

    def moved(self, by: Poly) -> Pointer:
        """`p + by`."""
        return self.at(self.subscripts[-1] + by * self.unit)


class Unknown:
    """An unknown value, with the reason as the rest of a sentence about the variable."""

    def __init__(self, why: str) -> None:
        self.why = why


class OfData(Unknown):
    """A value that depends on data."""

    def __init__(self) -> None:
        super().__init__("it depends on data")


class Swapped(Unknown):
    """A pointer that the next iteration of a loop finds at another array: where `source` points now, if it is known."""

    def __init__(self, source: Variable | None = None) -> None:
        super().__init__("it points at another array in the next iteration")
        self.source = source


class Wrapped(Unknown):
    """A value from outside in the first iteration of a loop, and from the previous iteration in all others."""

    def __init__(self, loop: Any, variable: Variable) -> None:
        super().__init__("its value is from the iteration before, and in the first iteration from outside the loop")
        self.loop, self.variable = loop, variable


class Choice(Record):
    """One of two states: `iftrue` where a condition on loop variables and sizes holds. `place` names the condition."""

    place: object
    condition: Any
    iftrue: State
    iffalse: State


State = Poly | Pointer | Unknown | Choice


class Scopes:
    """Names to variables. A name of a function that hides another one of the same function is refused."""

    def __init__(self) -> None:
        self.levels: list[dict[str, Variable]] = [{}]
        self.floor = 1  # levels below are of the file, and may be hidden

    def find(self, name: str) -> Variable | None:
        for level in reversed(self.levels):
            if name in level:
                return level[name]
        return None

    def declare(self, variable: Variable) -> None:
        """Introduces a name. Raises Refused if it hides another name of the function."""
        for level in self.levels[self.floor :]:
            if variable.name in level:
                other = level[variable.name]
                if level is self.levels[-1] and other.node is variable.node:
                    continue
                message = f"`{variable.name}` hides another variable of the same name in this function"
                raise Refused("c-name", message, variable.node, "rename one of the two")
        self.levels[-1][variable.name] = variable

    @contextmanager
    def block(self) -> Iterator[None]:
        self.levels.append({})
        try:
            yield
        finally:
            self.levels.pop()

    @contextmanager
    def function(self) -> Iterator[None]:
        """A separate scope: it contains only the names of the file."""
        before = self.levels, self.floor
        self.levels, self.floor = [self.levels[0], {}], 1
        try:
            yield
        finally:
            self.levels, self.floor = before


def assigned_names(node: Any) -> set[str]:
    """The names that a piece of the program may change, by `=`, `+=`, `++` and so on, or whose address it takes; those
    of members are `v.n`, also for `v->n`.
    """
    return set(assigned_paths(node))


def assigned_paths(node: Any) -> Iterator[str]:
    """`assigned_names`, one for each statement that changes something."""
    for part in walk(node):
        target = None
        if isinstance(part, c_ast.Assignment):
            target = part.lvalue
        elif isinstance(part, c_ast.UnaryOp) and part.op in ("++", "--", "p++", "p--", "&"):
            target = part.expr
        path = member_path(target)
        if path:
            yield path


def member_path(node: Any) -> str:
    """`v.grid.n` for `v->grid.n`, `v` for `v`; empty for other expressions."""
    if isinstance(node, c_ast.StructRef):
        before = member_path(node.name)
        return f"{before}.{node.field.name}" if before else ""
    return str(node.name) if isinstance(node, c_ast.ID) else ""


def parameters(function: Any) -> list[Any]:
    """The declarations of a function's parameters."""
    listed = function.decl.type.args
    return [p for p in listed.params if isinstance(p, c_ast.Decl)] if listed is not None else []


def walk(node: Any) -> Iterator[Any]:
    """A node and everything below it."""
    pending = [node]
    while pending:
        part = pending.pop()
        if part is None:
            continue
        yield part
        pending += [child for _, child in reversed(part.children())]


def copied(node: Any) -> Any:
    """A copy of a node and of everything below it."""
    found = copy(node)
    pending = [found]
    while pending:
        part = pending.pop()
        for name in [n for n in part.__slots__ if n not in ("coord", "__weakref__")]:
            value = getattr(part, name)
            if isinstance(value, c_ast.Node):
                setattr(part, name, copy(value))
                pending.append(getattr(part, name))
            elif isinstance(value, list):
                setattr(part, name, [copy(v) if isinstance(v, c_ast.Node) else v for v in value])
                pending += [v for v in getattr(part, name) if isinstance(v, c_ast.Node)]
    return found


def base_name(node: Any) -> str:
    """The name in an lvalue such as `a[i][j]`, `*p`, `(*p)[i]`, `p->x`; empty if there is none."""
    while True:
        if isinstance(node, c_ast.ArrayRef | c_ast.StructRef):
            node = node.name
        elif isinstance(node, c_ast.UnaryOp):
            node = node.expr
        elif isinstance(node, c_ast.BinaryOp):
            node = node.left
        elif isinstance(node, c_ast.ID):
            return str(node.name)
        else:
            return ""
