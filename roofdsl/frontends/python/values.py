"""What expressions of Python stand for while a function is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.frontends.poly import Poly
from roofdsl.lang import tree
from roofdsl.lang.record import Record, field

Shape = tuple[Poly, ...]
ONE = Poly.number(1)
ZERO = Poly.number(0)


class Whole(Record):
    """An integer that follows from sizes and loop variables."""

    poly: Poly


class Extremum(Record):
    """The smallest (`min`) or largest (`max`) of integers, allowed only as a bound of a loop."""

    op: str
    polys: tuple[Poly, ...]


class Constant(Record):
    """None, True, False, a text, `...`."""

    value: Any


class Items(Record):
    """A tuple or list."""

    values: tuple[Any, ...]


class TypeName(Record):
    """A type such as `np.float32`."""

    type: str


class Named(Record):
    """A function or module of a library, by its full name: `numpy.linalg.norm`."""

    name: str


class Function(Record):
    """A function of the file."""

    node: ast.FunctionDef = field(compare=False)


class Method(Record):
    """`value.name`, to be called."""

    value: Any
    name: str


class Unknown(Record):
    """An unknown value, with the reason as the rest of a sentence. `key` identifies a scalar that may be kept as data.

    value: its value at sizes at which `needs` is nonnegative.
    """

    why: str
    key: tuple[object, ...] | None = None
    value: Whole | None = None
    needs: Poly | None = None


class Known(Record):
    """A condition on sizes and loop variables. `value`: if numbers decide it.

    holds, fails: differences that are nonnegative if it holds, and if it does not.
    """

    written: tree.Expr
    value: bool | None
    holds: tuple[Poly, ...] = ()
    fails: tuple[Poly, ...] = ()


class Buffer:
    """An array of the kernel, by identity; a scalar if it has no dimensions.

    place: `argument`, `local` or `result`. weak: whether a scalar is a Python number, whose type yields to others.
    """

    def __init__(self, name: str, type_: str, dims: Shape, node: ast.AST, *, place: str, weak: bool) -> None:
        self.name, self.type, self.dims, self.node, self.place, self.weak = name, type_, dims, node, place, weak

    def __repr__(self) -> str:
        return f"Buffer({self.name})"


class Axis(Record):
    """The subscript of a dimension of a buffer: `start + step * index` for an axis of the view, or `start` alone."""

    start: Poly
    axis: int | None = None
    step: Poly = ONE


class View(Record):
    """A part of a buffer. `axes`: one for each of the buffer's dimensions."""

    buffer: Buffer
    axes: tuple[Axis, ...]
    shape: Shape

    def subscripts(self, indices: Sequence[Poly]) -> tuple[Poly, ...]:
        """The buffer's subscripts of the element at these indices of the view."""
        return tuple(a.start if a.axis is None else a.start + a.step * indices[a.axis] for a in self.axes)


At = Callable[[Sequence[Poly]], tree.Expr]


class Value(Record):
    """An array, or a scalar if `shape` is empty, whose elements are computed where they are needed.

    type: the type that numpy gives it, `bool` for truth values, whose elements are conditions. weak: a Python number,
    whose type yields to that of arrays. own: whether the language sees this type in the expression; numbers, sizes and
    loop variables take the type of their operands. at: the expression of an element. view: if it is only a part of an
    array. strides: of a part in another arrangement, which has no `view`, the distances in memory along each axis; None
    for an axis without any. simple: whether writing it twice costs nothing. number: the value of a plain number.
    origins: arguments of unknown kind from which it is made, which may turn out to be sizes.
    """

    shape: Shape
    type: str
    at: At = field(compare=False, repr=False)
    weak: bool = False
    own: bool = True
    view: View | None = None
    simple: bool = False
    number: int | float | complex | None = None
    origins: frozenset[str] = frozenset()
    strides: tuple[Poly | None, ...] | None = field(default=None, compare=False, repr=False)

    @property
    def is_scalar(self) -> bool:
        """Whether it has no dimensions."""
        return not self.shape


def whole_view(buffer: Buffer) -> View:
    """All of a buffer."""
    return View(buffer, tuple(Axis(ZERO, k) for k in range(len(buffer.dims))), buffer.dims)
