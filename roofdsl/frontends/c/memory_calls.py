"""`memset`, `memcpy` and `memmove` of arrays of numbers, as loops over their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType
from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.loops import nested
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer
from roofdsl.frontends.integer_facts import Range
from roofdsl.frontends.poly import Poly, quotient_of
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.record import replace

NAMES = ("memset", "memcpy", "memmove")
_LOOP = "write a loop over the elements"


class MemoryCalls:
    """Reads calls that fill or copy memory."""

    def __init__(self, context: Context, values: Values) -> None:
        self.context, self.values = context, values

    def write(self, name: str, node: Any) -> None:
        """Writes the loops of a call. Raises Refused, also where elements are written or copied in part."""
        if node.args is None or len(node.args.exprs) != 3:
            raise Refused("c-call", f"`{name}` takes three arguments", node)
        to, second, bytes_ = node.args.exprs
        target = self.values.pointers.pointer(_without_cast(to))
        type_ = self._number(target, to)
        count = self._elements(bytes_, type_, target, node)
        if name == "memset":
            value = self._filled(second, type_)
            self._loops(_shape(self.context, target, count) or (count,), [target], node, value)
            return
        source = self.values.pointers.pointer(_without_cast(second))
        if self._number(source, second).base != type_.base:
            raise Refused("c-type", f"`{name}` copies between arrays of different types", node, _LOOP)
        if name == "memmove" and source.array is target.array:
            raise Refused("c-pointer", "`memmove` within one array may overwrite what it copies", node, _LOOP)
        shapes = [_shape(self.context, place, count) for place in (target, source)]
        known = {shape for shape in shapes if shape is not None and len(shape) > 1}
        if len(known) > 1:
            message = "the rows of these arrays have different lengths, or are not copied as a whole"
            raise Refused("c-pointer", message, node, _LOOP)
        self._loops(known.pop() if known else (count,), [target, source], node, None)

    def _number(self, where: Pointer, node: Any) -> CType:
        """The type of the numbers at a place. Raises Refused for structures."""
        type_ = replace(where.inner or where.array.type, dims=(), pointers=0)
        if type_.base == "struct" or where.inner is not None:
            message = "bytes of structures are not read, since their members may have different types"
            raise Refused("c-type", message, node, "write a loop, with `p[i] = q[i]` for a whole structure")
        return type_

    def _elements(self, bytes_: Any, type_: CType, where: Pointer, node: Any) -> Poly:
        size = self.values.pointers.layouts.size(type_, node)
        total = self.values.integer(bytes_, "the number of bytes")
        found = quotient_of(total, Poly.number(size))
        if found is None:
            message = f"{total} bytes are not shown to be whole elements of `{where.array.name}`, of {size} bytes each"
            raise Refused("c-type", message, bytes_, f"write `n * sizeof(*{where.array.name})` for n elements")
        return found

    def _filled(self, byte: Any, type_: CType) -> Value:
        """The number whose bytes all have one value: 0, or -1 as an integer."""
        value = self.values.integer(byte, "the byte").value
        if value == 0 or (type_.is_integer and value in (-1, 255)):
            return Value("i32", None, None, Poly.number(0 if value == 0 else -1))
        raise Refused("c-type", "only bytes of 0 make a number that is read here", byte, _LOOP)

    def _loops(self, shape: Sequence[Poly], places: Sequence[Pointer], node: Any, value: Value | None) -> None:
        """`for i: for j: to[i, j] = value`, or what is at the second place."""
        context = self.context
        if any(not context.facts.not_negative(extent) for extent in shape):
            raise Refused("c-integer", "nothing shows that this size is not negative", node, _LOOP)
        self._loop(tuple(shape), places, (), node, value)

    def _loop(
        self, shape: tuple[Poly, ...], places: Sequence[Pointer], counters: tuple[Poly, ...], node: Any, value: Any
    ) -> None:
        context, depth = self.context, len(counters)
        span = context.spans(node)
        if depth == len(shape):
            values = [self.values.pointers.access(_at(place, shape, counters), node)[1] for place in places]
            target = values[0].expr
            assert isinstance(target, tree.Index | tree.Ref)
            context.emit(tree.Assign(target, "=", (value or values[1]).written(span), span), node)
            return
        with context.visible():
            name = context.inner_name("ijkl"[depth] if depth < 4 else "i")
            inside = Range(name, (Poly.number(0),), (shape[depth] - 1,))
            with context.within(context.facts.inside(inside)), context.block() as body:
                self._loop(shape, places, (*counters, Poly.name(name)), node, value)
        clause = tree.Clause(tree.Name(name, span), tree.Name("range", span), (shape[depth].tree(span),), span)
        context.emit(nested(clause, body, 0, span), node)


def _shape(context: Context, where: Pointer, count: Poly) -> tuple[Poly, ...] | None:
    """The numbers of rows and of elements in a row that `count` elements from a place on are; None if they end within
    a row.
    """
    dims = context.dims.get(where.array, ())
    begin = len(where.subscripts)
    while begin > 1 and where.subscripts[begin - 1].value == 0 and count != dims[begin - 1]:
        begin -= 1  # `&A[i][0]` and more than a row: `A[i]`, and rows
    inner = dims[begin:]
    for dim in reversed(inner):
        rows = None if dim is None else quotient_of(count, dim)
        if rows is None:
            return (count,) if begin == len(dims) else None
        count = rows
    return (count, *(d for d in inner if d is not None))


def _at(place: Pointer, shape: tuple[Poly, ...], counters: tuple[Poly, ...]) -> Pointer:
    """The element at these counters, in an array of the same rows or in one that is linear."""
    subscripts = list(place.subscripts)
    rank = len(place.array.type.dims) + place.array.type.pointers
    own = min(len(counters), rank)  # the last subscripts, which the counters move
    if own < len(counters):
        linear = Poly.number(0)
        for extent, counter in zip(shape, counters, strict=True):
            linear = linear * extent + counter
        return place.at(place.subscripts[-1] + linear)
    subscripts += [Poly.number(0)] * (rank - len(subscripts))
    for k, counter in enumerate(counters):
        subscripts[rank - own + k] += counter
    return Pointer(place.array, tuple(subscripts))


def _without_cast(node: Any) -> Any:
    """`a` for `(void *) a`."""
    while isinstance(node, c_ast.Cast):
        node = node.expr
    return node
