"""What the arguments of a function are: from annotations, from what is given beside the file, or from their use."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.python.context import Context, arguments_of
from roofdsl.frontends.python.parsing import parse_expression
from roofdsl.frontends.python.types import NUMPY
from roofdsl.frontends.python.values import Buffer, Value, Whole
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES

_SIZES = ("n", "m", "k", "l", "p", "q", "r", "s")
"""Names for sizes that nobody has named."""


_LIKE_A_TYPE = re.compile(r"[a-z]+\d+")


class Given(Record):
    """The description of an argument: its dimensions as text (none for a scalar) and its type, empty if it is not
    stated.

    weak: a Python number, whose type yields to others. size: an integer on which sizes may depend.
    """

    dims: tuple[str, ...] | None
    type: str = ""
    weak: bool = False
    size: bool = False


def shape_option(text: str) -> tuple[str, Given]:
    """`A=n,m:f64` (an array), `a=:f32` (a scalar), `n=int` (a size). Raises CommandError."""
    name, equals, rest = (s.strip() for s in text.partition("="))
    if not equals or not name.isidentifier():
        raise CommandError(f"`{text}` is not of the form `NAME=SIZES:TYPE`", "such as A=n,m:f64, alpha=:f32 or n=int")
    return name, given_of(rest, name)


def given_of(text: str, name: str) -> Given:
    """`n,m:f64`. Raises CommandError."""
    if text == "int":
        return Given(None, "i64", size=True)
    dims, colon, type_ = text.rpartition(":") if not text.endswith(":") and ":" in text else (text, "", "")
    if colon and type_.strip() not in TYPES and not type_.strip():
        dims, type_ = text, ""
    if type_.strip() and type_.strip() not in TYPES and type_.strip() not in NUMPY:
        raise CommandError(f"there is no type `{type_.strip()}` for `{name}`", f"the types are {', '.join(TYPES)}")
    own = type_.strip()
    own = NUMPY.get(own, own)
    parts = tuple(p.strip() for p in dims.split(",")) if dims.strip() else ()
    for part in parts:
        if part != ":":
            size_of(part, name)
    return Given(parts, own)


def size_of(text: str, name: str) -> Poly:
    """A size such as `n + 4`. Raises CommandError."""
    try:
        return _size(parse_expression(text))
    except (SyntaxError, ValueError, RecursionError):
        message = f"`{text[:80]}` is not a size of `{name}`"
        raise CommandError(message, "sizes are names and numbers, such as n, 2*n + 1 or n//2") from None


def _size(node: ast.expr) -> Poly:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return Poly.number(value)
        case ast.Name(name):
            return Poly.name(name)
        case ast.BinOp(left, ast.Add(), right):
            return _size(left) + _size(right)
        case ast.BinOp(left, ast.Sub(), right):
            return _size(left) - _size(right)
        case ast.BinOp(left, ast.Mult(), right):
            return _size(left) * _size(right)
        case ast.BinOp(left, ast.FloorDiv(), ast.Constant(int(by))) if by > 0:
            return quotient("//", _size(left), by)
        case _:
            raise ValueError


def _is_flag(default: ast.expr | None) -> bool:
    """Whether a default shows that an argument is no number: `verbose=False`, `mode="fast"`, `out=None`."""
    return isinstance(default, ast.Constant) and (default.value is None or isinstance(default.value, bool | str))


class Signature:
    """Gives the arguments of a function their values."""

    def __init__(self, context: Context, function: ast.FunctionDef, shapes: Mapping[str, Given]) -> None:
        self.context, self.function, self.shapes = context, function, shapes

    def bind(self) -> None:
        """Values of all arguments, and the kernel's parameters in their order. Raises Refused."""
        context, spec = self.context, self.function.args
        if spec.vararg or spec.kwarg:
            extra = spec.vararg or spec.kwarg
            assert extra is not None
            context.refuse("py-call", "`*` arguments are not supported", extra, "write the arguments")
        args = arguments_of(self.function)
        given = {a.arg: self.shapes.get(a.arg) or self._annotation(a) for a in args}
        dims = {n: self._dims(n, g, next(a for a in args if a.arg == n)) for n, g in given.items()}
        used = {n for shape in dims.values() for d in shape or () for n in d.names}
        # The defaults are those of the last arguments, so that both lists are paired from their ends.
        defaults = dict(zip([a.arg for a in spec.args][::-1], spec.defaults[::-1], strict=False))
        for arg in args:
            name, own, shape = arg.arg, given[arg.arg], dims[arg.arg]
            if shape:
                for n in dict.fromkeys(n for d in shape for n in d.names):
                    context.parameters.setdefault(n, arg)
                self._array(name, own.type if own is not None else "", shape, arg)
            elif name in used or name in context.learnt.sizes or (own is not None and own.size):
                context.parameters.setdefault(name, arg)
                context.frame.env[name] = Whole(self._resolved(Poly.name(name)))
            elif own is None and _is_flag(defaults.get(name)):
                context.refuse("py-call", f"the argument `{name}` is not a number", arg, "leave the argument out")
            else:
                self._scalar(name, own, arg)

    # ---- annotations ----

    def _annotation(self, arg: ast.arg) -> Given | None:
        """The meaning of an annotation; None if it says nothing that is supported."""
        node = arg.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = parse_expression(node.value)
            except SyntaxError:
                self.context.refuse("py-syntax", "this annotation is not an expression", node)
        if node is None:
            return None
        if isinstance(node, ast.Subscript):
            type_ = self._type(node.value)
            if type_ is None:
                base = ast.unparse(node.value)
                if _LIKE_A_TYPE.fullmatch(base.rpartition(".")[2]):
                    help = f"the types are {', '.join(TYPES)}"
                    self.context.refuse("py-type", f"there is no type `{base}`", arg.annotation or arg, help)
                return None
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return Given(tuple(text for item in items for text in self._dim(item)), type_)
        name = node.id if isinstance(node, ast.Name) else ""
        if name == "int":
            return Given(None, "i64", size=True)
        if name in ("float", "complex"):
            return Given(None, {"float": "f64", "complex": "c128"}[name], weak=True)
        type_ = self._type(node)
        return Given((), type_) if type_ is not None else None

    def _type(self, node: ast.expr) -> str | None:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        return name if name in TYPES else NUMPY.get(name)

    def _dim(self, item: ast.expr) -> list[str]:
        if isinstance(item, ast.Slice):
            return [":"]
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            return [part.strip() for part in item.value.split(",")]
        return [ast.unparse(item)]

    # ---- values ----

    def _dims(self, name: str, given: Given | None, arg: ast.arg) -> tuple[Poly, ...] | None:
        if given is None or given.dims is None:
            return None
        context = self.context
        found: list[Poly] = []
        for k, text in enumerate(given.dims):
            if text == ":":
                found.append(Poly.name(self._unnamed(f"{name}{k}")))
                continue
            try:
                poly = size_of(text, name)
            except CommandError as error:
                context.refuse("py-shape", error.message, arg.annotation or arg, error.help)
            constants = {n: Poly.number(v) for n, v in context.module.constants.items() if isinstance(v, int)}
            found.append(poly.put(constants))
        return tuple(self._resolved(p) for p in found)

    def _unnamed(self, otherwise: str) -> str:
        """A name for a size that has none."""
        context = self.context
        stated = {a.arg for a in arguments_of(self.function)}.union(
            *(size_of(t, "").names for g in self.shapes.values() for t in g.dims or () if t != ":")
        )
        taken = {*context.words, *context.unnamed, *stated}
        symbol = next((n for n in _SIZES if n not in taken), otherwise)
        while symbol in taken:
            symbol += "_"
        context.unnamed.append(symbol)
        return symbol

    def _resolved(self, poly: Poly) -> Poly:
        """The polynomial with equal sizes under one name."""
        for _ in range(len(self.context.learnt.equal) + 1):
            poly = poly.put(self.context.learnt.equal)
        return poly

    def _array(self, name: str, type_: str, shape: tuple[Poly, ...], arg: ast.arg) -> None:
        context = self.context
        if name in context.parameters:
            context.refuse("py-name", f"`{name}` is an array and a size", arg, "give the size another name")
        buffer = self._buffer(name, type_ or "f64", shape, arg)
        context.frame.env[name] = context.scalar(buffer, arg)

    def _scalar(self, name: str, given: Given | None, arg: ast.arg) -> None:
        """A number, which is a size if it turns out to be used as one."""
        context = self.context
        type_ = given.type if given is not None and given.type else "f64"
        weak = given is None or given.weak or not given.type
        learnt = context.learnt.types.get(context.frame.key(name))
        if learnt is not None and weak and name not in context.learnt.mixed:
            type_ = learnt[0]
        buffer = self._buffer(name, type_, (), arg, weak=weak)
        found = context.scalar(buffer, arg)
        origins = frozenset({name}) if given is None else frozenset()
        context.frame.env[name] = Value((), found.type, found.at, weak, True, found.view, True, None, origins)

    def _buffer(self, name: str, type_: str, shape: tuple[Poly, ...], arg: ast.arg, *, weak: bool = False) -> Buffer:
        buffer = self.context.buffer(("argument", name), name, type_, shape, arg, weak=weak)
        buffer.place = "argument"
        return buffer
