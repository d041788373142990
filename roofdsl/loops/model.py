"""The checked kernel: what every analysis, generator and simulator reads.

Built from a checked syntax tree by `roofdsl.loops.lower`; names are resolved, types are known, shapes agree.
Parameters declared `const` are already replaced by their numbers. Spans take no part in equality.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from roofdsl.lang.record import Record, field
from roofdsl.lang.source import Source, Span
from roofdsl.lang.types import ElementType
from roofdsl.loops.integers import Compare, Condition, IntExpr, Max, Min, Sym

if TYPE_CHECKING:
    from roofdsl.loops.index_data import IndexData

Intent = Literal["in", "out", "inout", "temp"]
Traffic = Literal["once", "load_store", "write_allocate"]


class Parameter(Record):
    """A positive integer; `default` is None if the file gives none."""

    name: str
    default: int | None
    span: Span = field(compare=False, repr=False)


class Array(Record):
    """A declared array, or a scalar if `dims` is empty. Row-major unless `column_major`."""

    name: str
    type: ElementType
    dims: tuple[IntExpr, ...]
    intent: Intent
    column_major: bool
    span: Span = field(compare=False, repr=False)
    below: IntExpr | None = None
    """The values of an index array are 0 to `below` - 1; None for an array of any values."""

    @property
    def is_scalar(self) -> bool:
        return not self.dims

    def element_count(self, values: Mapping[str, int]) -> int:
        """The number of elements; 1 for a scalar."""
        return prod(d.evaluate(values) for d in self.dims)

    def strides(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The distance in elements between neighbors along each dimension."""
        dims = [d.evaluate(values) for d in self.dims]
        if self.column_major:
            return tuple(prod(dims[:k]) for k in range(len(dims)))
        return tuple(prod(dims[k + 1 :]) for k in range(len(dims)))


# ---- computations (what W counts); the type of each node is known ----


class Number(Record):
    """A literal. It has no type of its own, but takes that of the value it is combined with; 2.0 makes an operation on
    integers one of f64 (rule 7), 2 does not, so these two are not equal.
    """

    value: float | int
    span: Span = field(compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(self._exact)

    @property
    def _exact(self) -> tuple[bool, float | int]:
        return isinstance(self.value, int), self.value


class IntValue(Record):
    """A parameter, a loop variable or integer arithmetic of these, used as a number; costs nothing (rule 2)."""

    value: IntExpr
    span: Span = field(compare=False, repr=False)


class ScalarRef(Record):
    """A declared scalar; lives in a register."""

    array: Array
    span: Span = field(compare=False, repr=False)


class LetRef(Record):
    """A name bound by an earlier `let` in scope; lives in a register."""

    name: str
    type: ElementType
    span: Span = field(compare=False, repr=False)


class Element(Record):
    """An array element, read or written: one access."""

    array: Array
    subscripts: tuple[IntExpr, ...]
    span: Span = field(compare=False, repr=False)


class Read(IntExpr):
    """An element of an index array as an integer, in a subscript or a loop bound: one access."""

    element: Element

    def args(self) -> tuple[IntExpr, ...]:
        return self.element.subscripts

    def rebuild(self, args: tuple[Any, ...]) -> Read:
        return Read(Element(self.element.array, args, self.element.span))

    def __str__(self) -> str:
        return f"{self.element.array.name}[{', '.join(map(str, self.element.subscripts))}]"


class Unary(Record):
    """Unary minus (`op` is '-'); costs nothing."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False)


class Binary(Record):
    """`op` is one of + - * / or ** (then `right` is a Number holding a small non-negative integer)."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


class Call(Record):
    """`function` is one of `roofdsl.lang.functions.FUNCTIONS`, other than `select`."""

    function: str
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class DataCompare(Record):
    """A comparison of computed values, inside `select`; counted under `cmp`. `op` as in integers.Compare."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


class Select(Record):
    """`select(c, a, b)`: c, a and b are all evaluated, in this order."""

    condition: DataCompare
    if_true: Expr
    if_false: Expr
    span: Span = field(compare=False, repr=False)


Expr = Number | IntValue | ScalarRef | LetRef | Element | Unary | Binary | Call | Select

# ---- statements ----


class Assign(Record):
    """`target = value`, or an update: `op` is one of = += -= *= /= min= max=.

    stream: the store of `=` to an element bypasses the caches.
    """

    target: Element | ScalarRef
    op: str
    value: Expr
    span: Span = field(compare=False, repr=False)
    stream: bool = False


class Let(Record):
    """`let name = value`: a register of type `type`; elements in `value` are read here."""

    name: str
    type: ElementType
    value: Expr
    span: Span = field(compare=False, repr=False)


class Count(Record):
    """`count name amount`: adds `amount` to the counter."""

    name: str
    amount: IntExpr
    span: Span = field(compare=False, repr=False)


class For(Record):
    """`for var in range(start, stop, step)`; step is a positive integer constant or a parameter."""

    var: str
    start: IntExpr
    stop: IntExpr
    step: IntExpr
    parallel: bool
    body: tuple[Node, ...]
    span: Span = field(compare=False, repr=False)

    @property
    def starts(self) -> tuple[IntExpr, ...]:
        """Lower bounds of `var`: the terms of a start that is a maximum."""
        return self.start.terms if isinstance(self.start, Max) else (self.start,)

    @property
    def stops(self) -> tuple[IntExpr, ...]:
        """Exclusive upper bounds of `var`: the terms of a stop that is a minimum."""
        return self.stop.terms if isinstance(self.stop, Min) else (self.stop,)

    @property
    def bounds(self) -> tuple[Compare, ...]:
        """What holds for `var` in the body, apart from the step."""
        var = Sym(self.var)
        return (*(Compare(">=", var, e) for e in self.starts), *(Compare("<", var, e) for e in self.stops))


class If(Record):
    condition: Condition
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]
    span: Span = field(compare=False, repr=False)


Node = For | If | Assign | Let | Count


# ---- directives ----


class Tile(Record):
    """`tile i, j by bi, bj`: one size (Const or Sym of a parameter) per loop."""

    loops: tuple[str, ...]
    sizes: tuple[IntExpr, ...]
    span: Span = field(compare=False, repr=False)


class Order(Record):
    """`order i, k, j`: the loops of one perfect nest, all of them, in their new order."""

    loops: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


class Rises(Record):
    """`assume array rises from first to last`: its elements never fall; the first and the last are these."""

    array: str
    first: IntExpr
    last: IntExpr


class Takes(Record):
    """`assume array takes number values`: the number of different values among its elements."""

    array: str
    number: IntExpr


class HasAlpha(Record):
    """`assume array has alpha 0.25`: the average bytes that an access to it moves, divided by those of an element."""

    array: str
    alpha: Fraction


DataFact = Rises | Takes | HasAlpha


class Kernel(Record):
    """A checked kernel.

    `body` is as written; `directives` are the tile and order lines not yet applied (`roofdsl.loops.transform.apply`
    returns the kernel with its directives applied and none left). `costs` are the file's `cost CLASS N` lines; `unit`
    is "tensor" if the kernel asks for matrix units; `compute_type` is tf32 if an f32 kernel names it. `constants`
    records the given values of `const` parameters. `facts` are what is assumed of index arrays, `data` their values if
    they are known.
    """

    name: str
    parameters: tuple[Parameter, ...]
    arrays: tuple[Array, ...]
    assumptions: tuple[Condition, ...]
    traffic: Traffic | None
    directives: tuple[Tile | Order, ...]
    body: tuple[Node, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    costs: tuple[tuple[str, float], ...] = ()
    unit: str | None = None
    compute_type: ElementType | None = None
    constants: tuple[tuple[str, int], ...] = ()
    facts: tuple[DataFact, ...] = ()
    data: IndexData | None = None

    @cached_property
    def _hashed(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        """As of any record, but found once: what is kept of a kernel is looked up hundreds of times for one answer."""
        return self._hashed

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: another process has other hashes."""
        return {name: getattr(self, name) for name in self.__match_args__}
