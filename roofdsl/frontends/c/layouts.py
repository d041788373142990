"""Where the members of a structure lie in memory: the rules of the ABIs of 64-bit Linux and macOS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType
from roofdsl.frontends.c.context import Context
from roofdsl.frontends.c.static_types import place_type, static_type
from roofdsl.frontends.c.variables import parameters
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record, replace

_POINTER = 8
_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16, "u1": 1}
_ALIGNMENTS = {"c64": 4, "c128": 8}


class Field(Record):
    """A member: its type, and the byte at which it begins."""

    offset: int
    type: CType


class Layout(Record):
    """A structure of `size` bytes, which begins at multiples of `align`."""

    size: int
    align: int
    fields: dict[str, Field]


class Layouts:
    """Sizes of types, and offsets of members. `integer` gives the value of a dimension."""

    def __init__(self, context: Context, integer: Callable[[Any, str], Poly]) -> None:
        self.context, self.integer = context, integer
        self._known: dict[Any, Layout] = {}

    def of(self, type_: CType) -> Layout:
        """The layout of a structure. Raises Refused if it is not known."""
        node = type_.structure
        if node not in self._known:
            self._known[node] = self._laid_out(type_)
        return self._known[node]

    def size(self, type_: CType, node: Any) -> int:
        """The bytes of a value of a type. Raises Refused if they are not known."""
        return self._measures(type_, node)[0]

    def bytes_of(self, node: Any) -> Poly:
        """`sizeof` of a type or of an expression. Raises Refused if it is not known."""
        if isinstance(node, c_ast.Typename):
            type_: CType | None = self.context.type_of(node.type)
        else:
            type_ = place_type(node, self.context)
            base = static_type(node, self.context) if type_ is None else None
            type_ = CType(base, base) if base is not None else type_
        if type_ is None or type_.base in ("other", "void"):
            raise Refused("c-type", "the size of this is not known", node, "write the size of a type: `sizeof(double)`")
        if isinstance(node, c_ast.ID) and self._is_argument(node.name):
            type_ = replace(type_, dims=(), pointers=1) if type_.dims else type_
        total = Poly.number(self.size(replace(type_, dims=()), node))
        for dim in () if type_.pointers else type_.dims:
            if dim is None:
                raise Refused("c-type", "the size of this array is not known", node, "declare its dimensions")
            total *= self.integer(dim, "a dimension")
        return total

    def _is_argument(self, name: str) -> bool:
        """Whether a variable is an argument of a function, where an array is a pointer."""
        variable = self.context.scopes.find(name)
        functions = self.context.program.functions.values()
        return variable is not None and any(p is variable.node for f in functions for p in parameters(f))

    def _laid_out(self, type_: CType) -> Layout:
        size, align = 0, 1
        fields: dict[str, Field] = {}
        for decl in type_.structure.decls:
            if decl.name is None or decl.bitsize is not None or decl.align:
                message = f"`{type_.words}` has members without names, in single bits, or aligned by hand"
                raise Refused("c-type", message, decl, "use members of plain types")
            own = self.context.type_of(decl.type)
            bytes_, to = self._measures(own, decl)
            size += -size % to
            fields[decl.name] = Field(size, own)
            size, align = size + bytes_, max(align, to)
        coord = type_.structure.coord
        if (coord.line, coord.column) in self.context.program.packed:
            message = f"an attribute or a pragma changes how `{type_.words}` lies in memory"
            raise Refused("c-type", message, type_.structure, "leave `packed`, `aligned` and `#pragma pack` out")
        return Layout(size + -size % align, align, fields)

    def _measures(self, type_: CType, node: Any) -> tuple[int, int]:
        """Size and alignment."""
        if type_.pointers:
            return _POINTER, _POINTER
        if type_.dims:
            size, align = self._measures(replace(type_, dims=()), node)
            for dim in type_.dims:
                count = None if dim is None else self.integer(dim, "a dimension").value
                if count is None:
                    message = "the size of this member of a structure is not a number"
                    raise Refused("c-type", message, node, "write a number, or a macro that is one")
                size *= count
            return size, align
        if type_.base == "struct":
            own = self.of(type_)
            return own.size, own.align
        if type_.base in _SIZES:
            size = _SIZES[type_.base]
            return size, _ALIGNMENTS.get(type_.base, size)
        if type_.is_integer:
            return int(type_.base[1:]) // 8, int(type_.base[1:]) // 8
        message = f"how `{type_.words}` lies in memory is not known"
        raise Refused("c-type", message, node, "use members of float, double and integer types")
