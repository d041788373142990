"""C types: what a declaration says, which element type of the language it is, and the type of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record, replace

_FLOATS = {"float": "f32", "double": "f64", "_Float16": "f16", "__fp16": "f16", "__bf16": "bf16", "_Float32": "f32",
           "_Float64": "f64"}  # fmt: skip
_COMPLEX = {"f32": "c64", "f64": "c128"}
_RANK = {"f16": 1, "bf16": 1, "f32": 2, "f64": 3}
ELEMENTS = ("f16", "bf16", "f32", "f64", "c64", "c128", "i8", "i16", "i32", "i64")
"""The types that arrays and scalars can have in the language."""


class CType(Record):
    """`base`: an element type's name, u1 (`_Bool`) to u64, `void`, `struct`, or `other`; `dims`: of an array, None for
    a dimension that is not stated.

    `pointers`: the number of pointer levels around the array; `words`: the base as C writes it; `structure`: the node
    that defines a structure.
    """

    base: str
    words: str
    dims: tuple[Any, ...] = ()
    pointers: int = 0
    volatile: bool = False
    const: bool = False
    restrict: bool = False
    structure: Any = None

    @property
    def is_integer(self) -> bool:
        return self.base[0] in "iu" and self.base[1:].isdigit()

    @property
    def is_plain(self) -> bool:
        """Neither an array nor a pointer."""
        return not self.dims and not self.pointers

    @property
    def is_structure(self) -> bool:
        """A structure itself, neither an array of structures nor a pointer to one."""
        return self.base == "struct" and self.is_plain

    @property
    def target(self) -> CType | None:
        """The type that a pointer points at, or of an element of an array; None for other types."""
        if self.pointers:
            return replace(self, pointers=self.pointers - 1)
        return replace(self, dims=self.dims[1:]) if self.dims else None


def is_integer(base: str) -> bool:
    return base[0] in "iu" and base[1:].isdigit()


def is_unsigned(base: str) -> bool:
    return base in ("u32", "u64")


def ctype(node: Any, typedefs: Mapping[str, Any]) -> CType:
    """The type that the type node of a declaration means; its base is `other` for functions, structures and others."""
    # The nodes go from the name inwards: `double (*a)[3]` is a pointer, then an array, then double.
    dims: list[Any] = []
    pointers, restrict, volatile = 0, False, False
    while True:
        if isinstance(node, c_ast.ArrayDecl):
            dims.append(node.dim)
        elif isinstance(node, c_ast.PtrDecl):
            if dims:
                return CType("other", "an array of pointers")
            pointers += 1
            restrict = restrict or "restrict" in (node.quals or ())
            volatile = volatile or "volatile" in (node.quals or ())
        else:
            break
        node = node.type
    if not isinstance(node, c_ast.TypeDecl):
        return CType("other", "a function" if isinstance(node, c_ast.FuncDecl) else "this type")
    quals = node.quals or []
    volatile = volatile or "volatile" in quals
    inner = node.type
    if isinstance(inner, c_ast.Struct):
        words, defined = f"struct {inner.name}" if inner.name else "struct", structure_of(inner, typedefs)
        base = "struct" if defined is not None else "other"
        return CType(base, words, tuple(dims), pointers, volatile, "const" in quals, restrict, defined)
    if isinstance(inner, c_ast.Enum):
        words = f"enum {inner.name}" if inner.name else "enum"
        return CType("i32", words, tuple(dims), pointers, volatile, "const" in quals, restrict)
    if not isinstance(inner, c_ast.IdentifierType):
        return CType("other", type(inner).__name__.lower(), tuple(dims), pointers)
    names = [n for n in inner.names if n not in ("const", "volatile", "register", "restrict")]
    if len(names) == 1 and names[0] in typedefs and names[0] not in _FLOATS:
        of = ctype(typedefs[names[0]], typedefs)
        if dims and of.pointers:  # `typedef double *row; row A[5]` is `double *A[5]`: rows that may lie anywhere
            return CType("other", "an array of pointers")
        words = names[0] if of.base == "struct" else of.words
        return CType(of.base, words, (*dims, *of.dims), pointers + of.pointers, of.volatile or volatile,
                     of.const or "const" in quals, restrict, of.structure)  # fmt: skip
    base = _base(names)
    return CType(base, " ".join(names), tuple(dims), pointers, volatile, "const" in quals, restrict)


def structure_of(node: Any, typedefs: Mapping[str, Any]) -> Any:
    """The node that defines a structure, for one that names it; None if no definition is known."""
    return node if node.decls is not None else typedefs.get(tagged(node))


def tagged(node: Any) -> str:
    """The key under which the definition of a structure stands beside the types that have names of their own."""
    return f"struct {node.name}"


def _base(names: list[str]) -> str:
    words = sorted(names)
    complex_ = "_Complex" in words
    words = [w for w in words if w != "_Complex"]
    if len(words) == 1 and words[0] in _FLOATS:
        base = _FLOATS[words[0]]
        return _COMPLEX.get(base, "other") if complex_ else base
    if complex_ and not words:
        return "c128"
    if names == ["void"]:
        return "void"
    if "double" in words or "float" in words:
        return "other"  # long double
    unsigned = "unsigned" in words
    rest = [w for w in words if w not in ("unsigned", "signed", "int")]
    if rest in (["long"], ["long", "long"]):
        return "u64" if unsigned else "i64"
    kinds = {(): "i32", ("char",): "i8", ("short",): "i16", ("_Bool",): "u1"}
    found = kinds.get(tuple(rest))
    if found is None:
        return "other"
    return "u" + found[1:] if unsigned else found


def common(a: str, b: str) -> str:
    """The type of an operation on operands of these types: C's usual arithmetic conversions."""
    if a[0] == "c" or b[0] == "c":
        wide = {"c128", "f64"} & {a, b}
        return "c128" if wide else "c64"
    floats = [t for t in (a, b) if t in _RANK]
    if floats:
        if set(floats) == {"f16", "bf16"}:
            return "f32"
        return max(floats, key=lambda t: _RANK[t])
    a, b = promoted(a), promoted(b)
    if int(a[1:]) != int(b[1:]):
        return a if int(a[1:]) > int(b[1:]) else b
    return a if a[0] == "u" else b


def promoted(base: str) -> str:
    """Integers narrower than int become int."""
    return "i32" if is_integer(base) and int(base[1:]) < 32 else base


def same(own: str, type_: str) -> bool:
    """Whether the language computes in `type_` for its own type `own`: char and short are computed in int, as in C."""
    return own == type_ or (is_integer(own) and promoted(own) == type_)


def joined(owns: list[str]) -> str:
    """The language's type of an operation on values of these types: char with char is char, computed in int."""
    first, *others = dict.fromkeys(owns)
    for other in others:
        narrow = is_integer(first) and is_integer(other) and int(first[1:]) < 32 and int(other[1:]) < 32
        first = max(first, other, key=lambda t: int(t[1:])) if narrow else common(first, other)
    return first


def steady(type_: CType, node: Any, name: str) -> None:
    """Refuses volatile variables."""
    if type_.volatile:
        message = f"`{name}` is volatile: every access of it may do anything"
        raise Refused("c-type", message, node, "leave `volatile` out")


def index_element(type_: CType) -> str:
    """The language's type of the elements of an index array, which are never negative: signed also where C's is not."""
    return f"i{type_.base[1:]}"


def element(type_: CType, node: Any, name: str) -> str:
    """The language's type of the elements of an array or scalar. Raises Refused if there is none."""
    steady(type_, node, name)
    if type_.base in ELEMENTS:
        return type_.base
    if type_.is_integer and int(type_.base[1:]) in (8, 16):
        message = f"`{name}` has the type `{type_.words}`, and the language has only signed types"
        help = "use `int`, or a signed type of the same size, which moves the same bytes, if the values fit into it"
        raise Refused("c-type", message, node, help)
    if type_.is_integer:
        message = f"`{name}` has the unsigned type `{type_.words}`, whose arithmetic wraps around"
        raise Refused("c-type", message, node, "use a signed type, such as `int`, for data")
    message = f"`{name}` has the type `{type_.words}`, which no array of the language has"
    raise Refused("c-type", message, node, "use arrays of float, double, _Float16, complex or signed integers")
