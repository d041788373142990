"""What a reference code in PyTorch computes with while it is read: tensors of known shapes, and Python's own values.

`Builder` collects the operators. Its methods return the tensors that the operators of torch return, without data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from roofdsl.frontends.tensors.elementwise import OPERATORS
from roofdsl.frontends.tensors.graph import Graph, Node, Tensor
from roofdsl.frontends.tensors.types import is_whole, promoted
from roofdsl.lang.record import Record, replace

MOST_OPERATORS = 4000
COMPARISONS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "isnan", "isinf"}
)
ROUNDING = frozenset({
    "add", "sub", "rsub", "mul", "maximum", "minimum", "abs", "neg", "square", "clamp", "relu", "copy", "where", "sign",
    "pow", "bitwise_and", "bitwise_or",
})  # fmt: skip
"""Operators that keep whole numbers whole."""


class Dtype(Record):
    """A type of torch, by the name of the language."""

    name: str


class Module(Record):
    """A module that the code imports, such as `torch.nn.functional`, or a part of one."""

    path: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


class NotRead(Exception):
    """Something that is not read; the message says what."""


class Given:
    """A number that is given when the code runs. The one that stands for it here must decide nothing."""


class _GivenInt(int, Given):
    pass


class _GivenFloat(float, Given):
    pass


def given(value: Any, unknown: bool = True) -> Any:
    """The value; if it is not known here, as a `Given`. Raises NotRead for anything but a number then."""
    if not unknown:
        return value
    if not isinstance(value, int | float):
        raise NotRead("this, of a number that is given when the code runs")
    return _GivenFloat(value) if isinstance(value, float) else _GivenInt(value)


def has_given(value: Any) -> bool:
    """Whether a number that is given when the code runs is in a value: in a tuple, or in a slice, too."""
    if isinstance(value, tuple | list):
        return any(map(has_given, value))
    if isinstance(value, slice):
        return has_given((value.start, value.stop, value.step))
    return isinstance(value, Given)


class Builder:
    """The operators of a reference, in their order."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.views = 0
        self.fresh = 0

    def new(self, shape: Sequence[int], type_name: str) -> Tensor:
        """A new tensor."""
        self.fresh += 1
        return Tensor(self.fresh, tuple(shape), type_name, tuple(shape))

    def add(
        self, op: str, called: str, inputs: Sequence[Any], shape: Sequence[int], type_name: str, **options: Any
    ) -> Tensor:
        """The result of an operator. Raises NotRead for too many of them."""
        if len(self.nodes) >= MOST_OPERATORS:
            raise NotRead(f"more than {MOST_OPERATORS:,} operators")
        out = self.new(shape, type_name)
        self.nodes.append(Node(op, called, tuple(inputs), (out,), options))
        return out

    def graph(self, name: str, returned: tuple[Tensor, ...]) -> Graph:
        """The operators that the returned tensors need."""
        wanted = {t.id for t in returned}
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if any(t.id in wanted for t in node.outputs):
                kept.insert(0, node)
                wanted |= {t.id for t in node.tensors}
        return Graph(name, tuple(kept), returned, self.views)

    # ---- element by element ----

    def elementwise(self, op: str, operands: Sequence[Any], type_name: str | None = None, **options: Any) -> Tensor:
        """An operator on elements, with operands broadcast. type_name: of the result, if torch's rules do not say."""
        tensors = [o for o in operands if isinstance(o, Tensor)]
        if not tensors or not all(isinstance(o, Tensor | int | float) for o in operands):
            raise NotRead(f"{op} of these operands")
        try:
            OPERATORS[op](*["0"] * len(operands), **options)
        except TypeError:
            raise NotRead(f"{op} of {len(operands)} operands") from None
        if op == "pow" and has_given(operands[1]):
            raise NotRead("a power whose exponent is given when the code runs")
        shape = broadcast([t.shape for t in tensors])
        return self.add(op, op, operands, shape, type_name or _result(op, operands), **options)

    def cast(self, data: Tensor, type_name: str) -> Tensor:
        """The tensor cast to a type; the same tensor if it has the type."""
        return data if data.type == type_name else self.add("cast", "to", [data], data.shape, type_name)

    # ---- views ----

    def view(self, data: Tensor, shape: Sequence[int], *, in_order: bool) -> Tensor:
        """Other shape, same data; a copy where repeated elements must be stored for it, as torch copies."""
        if data.is_copied(tuple(shape)):
            data = self.add("copy", "reshape", [data], data.shape, data.type)
        self.views += 1
        return data.viewed(tuple(shape), in_order=in_order)

    def part(self, data: Tensor, shape: Sequence[int], stored: Sequence[int], ranges: Sequence[range]) -> Tensor:
        """A view that leaves elements out. ranges: the places in each dimension of the data."""
        self.views += 1
        return data.parted(tuple(shape), ", ".join(f"{r.start}:{r.stop}:{r.step}" for r in ranges), tuple(stored))

    def reshape(self, data: Tensor, wanted: Sequence[int]) -> Tensor:
        """With one -1 for what is left. Raises NotRead for another number of elements."""
        known = prod(n for n in wanted if n != -1)
        total = prod(data.shape)
        shape = [total // max(1, known) if n == -1 else n for n in wanted]
        if prod(shape) != total or any(n < 1 for n in shape):
            raise NotRead(f"a view of {list(data.shape)} as {list(wanted)}")
        return self.view(data, shape, in_order=True)

    def permuted(self, data: Tensor, order: Sequence[int]) -> Tensor:
        """Dimensions in another order."""
        rank = len(data.shape)
        order = [k % rank for k in order]
        if sorted(order) != list(range(rank)):
            raise NotRead(f"the order {order} of {rank} dimensions")
        self.views += 1
        shape, stored = ([of[k] for k in order] for of in (data.shape, data.stored))
        whole = data.whole and order == list(range(rank))
        return replace(data, shape=tuple(shape), stored=tuple(stored), whole=whole)

    def expanded(self, data: Tensor, wanted: Sequence[int]) -> Tensor:
        """Dimensions of one element read again and again."""
        own = (*[1] * (len(wanted) - len(data.shape)), *data.shape)
        stored = (*[1] * (len(wanted) - len(data.stored)), *data.stored)
        shape = [n if n != -1 else m for n, m in zip(wanted, own, strict=True)]
        if any(m not in (1, n) for n, m in zip(shape, own, strict=True)):
            raise NotRead(f"{list(data.shape)} expanded to {list(wanted)}")
        self.views += 1
        return replace(data, shape=tuple(shape), stored=stored, whole=False)

    def indexed(self, data: Tensor, index: Sequence[Any]) -> Tensor:
        """Slices, places, new dimensions and `...`: a view. Raises NotRead for tensors as indices."""
        named = sum(1 for i in index if i is not None and i is not Ellipsis)
        rest = [slice(None)] * (len(data.shape) - named)
        at = next((k for k, i in enumerate(index) if i is Ellipsis), None)
        full = [*index[:at], *rest, *index[at + 1 :]] if at is not None else [*index, *rest]
        shape: list[int] = []
        stored: list[int] = []
        ranges: list[range] = []
        places = iter(zip(data.shape, data.stored, strict=True))
        changed = False
        for one in full:
            if one is None:
                shape.append(1)
                stored.append(1)
                continue
            extent, own = next(places, (None, 1))
            if extent is None or isinstance(one, bool) or not isinstance(one, int | slice):
                raise NotRead("an index that is no number or slice")
            if isinstance(one, int):
                changed = changed or extent != 1
                if not -extent <= one < extent:
                    raise NotRead("an index that is out of range")
                ranges.append(range(one % extent, one % extent + 1))
                continue
            if not all(n is None or isinstance(n, int) for n in (one.start, one.stop, one.step)) or one.step == 0:
                raise NotRead("a slice of this form")
            ranges.append(range(*one.indices(extent)))
            shape.append(len(ranges[-1]))
            stored.append(min(shape[-1], own))
            changed = changed or shape[-1] != extent
        if 0 in shape:
            raise NotRead("a tensor without elements")
        return self.part(data, shape, stored, ranges) if changed else self.view(data, shape, in_order=True)

    # ---- products ----

    def matmul(self, left: Tensor, right: Tensor, called: str = "matmul", bias: Tensor | None = None) -> Tensor:
        """`torch.matmul` with vectors, matrices and batches; a batch of one is read again and again."""
        if not left.shape or not right.shape:
            raise NotRead("a product with a scalar")
        wide = len(left.shape) > 1, len(right.shape) > 1
        a = left if wide[0] else self.view(left, (1, *left.shape), in_order=True)
        if a.shape[-1] != right.shape[-2 if wide[1] else -1]:
            raise NotRead(f"a product of {list(left.shape)} and {list(right.shape)}")
        type_name = promoted(left.type, right.type)
        columns = right.shape[-1:] if wide[1] else ()
        if len(right.shape) <= 2:
            rows = prod(a.shape[:-1])
            flat = a if len(a.shape) == 2 else self.reshape(a, (rows, a.shape[-1]))
            inputs = [*([bias] if bias is not None else []), flat, right]
            made = self.add("matmul", called, inputs, (rows, *columns), type_name, bias=bias is not None)
            shape = (*(a.shape[:-1] if wide[0] else ()), *columns)
            return made if made.shape == shape else self.view(made, shape, in_order=True)
        batch = broadcast([a.shape[:-2], right.shape[:-2]])
        whole = self.expanded(a, (*batch, *a.shape[-2:])) if a.shape[:-2] != batch else a
        other = self.expanded(right, (*batch, *right.shape[-2:])) if right.shape[:-2] != batch else right
        made = self.add("matmul", called, [whole, other], (*batch, a.shape[-2], *columns), type_name, bias=False)
        return made if wide[0] else self.view(made, (*batch, *columns), in_order=True)


def broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The common shape of operands, as torch broadcasts them. Raises NotRead for shapes that do not fit."""
    rank = max(map(len, shapes), default=0)
    found = []
    for column in zip(*((*[1] * (rank - len(s)), *s) for s in shapes), strict=True):
        sizes = {n for n in column if n != 1}
        if len(sizes) > 1:
            raise NotRead(f"shapes that do not fit: {', '.join(str(list(s)) for s in shapes)}")
        found.append(max(sizes, default=1))
    return tuple(found)


def _result(op: str, operands: Sequence[Any]) -> str:
    """The type that torch gives the result."""
    if op in COMPARISONS:
        return "i8"
    values = operands[1:] if op == "where" else operands
    tensors = [o for o in values if isinstance(o, Tensor)]
    wide = [t for t in tensors if t.shape] or tensors
    if not wide:
        return "f32"
    found = wide[0].type
    for tensor in wide[1:]:
        found = promoted(found, tensor.type)
    fraction = any(isinstance(o, float) for o in values) or op not in ROUNDING
    return "f32" if is_whole(found) and fraction else found
