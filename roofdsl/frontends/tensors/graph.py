"""A graph of operators on tensors of known shapes, the same for every framework."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from roofdsl.frontends.tensors.types import REAL
from roofdsl.lang.record import Record, replace
from roofdsl.lang.types import TYPES


class Tensor(Record):
    """A value of the graph. `id`: its producer's; a view has the id of its base.

    shape: as operators see it; stored: with 1 in dimensions along which one element is read repeatedly (`expand`).
    whole: it is everything that was produced, in the order of production. part: of a view that leaves elements out,
    which ones it has; views of different parts count as different data, even where they overlap.
    """

    id: int
    shape: tuple[int, ...]
    type: str
    stored: tuple[int, ...]
    whole: bool = True
    part: str = ""

    @property
    def size(self) -> int:
        """The number of elements in memory."""
        return prod(self.stored)

    def viewed(self, shape: tuple[int, ...], *, in_order: bool) -> Tensor:
        """Another shape of the same data. in_order: elements keep their order, and none is left out."""
        stored = self.stored if shape == self.shape else _stored(self, shape)
        return replace(self, shape=shape, stored=stored, whole=self.whole and in_order)

    def parted(self, shape: tuple[int, ...], part: str) -> Tensor:
        """A view that leaves elements out, unless it has all of them. part: which ones it has."""
        own = self.part if shape == self.shape else f"{self.part}[{part}]"
        return replace(self.viewed(shape, in_order=False), part=own)

    def of_complex(self, part: str) -> Tensor:
        """`real` or `imag` of each element, without copying."""
        return replace(self, type=REAL[self.type], whole=False, part=f"{self.part}[{part}]")


def _stored(of: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The stored shape of a reshaped tensor: expanded dimensions stay expanded if they still exist."""
    if of.stored == of.shape:
        return shape
    places = {k: (n, s) for k, (n, s) in enumerate(zip(of.shape, of.stored, strict=True)) if n != 1}
    kept = [pair for _, pair in sorted(places.items())]
    if [n for n, _ in kept] != [n for n in shape if n != 1]:
        return shape  # dimensions were joined: counted as if it were stored whole
    stored = iter(s for _, s in kept)
    return tuple(1 if n == 1 else next(stored) for n in shape)


Operand = Tensor | int | float | None


class Node(Record):
    """One operator. `op`: its name in the tables here; `called`: its name in the framework."""

    op: str
    called: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Tensor, ...]
    options: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs that are tensors."""
        return tuple(t for t in self.inputs if isinstance(t, Tensor))


class Graph(Record):
    """Operators in an executable order. `results`: the ids of the values that the program returns; `views`: the number
    of views.
    """

    name: str
    nodes: tuple[Node, ...]
    results: frozenset[int]
    views: int

    @property
    def moved_once(self) -> tuple[int, int]:
        """Bytes that any code for the graph loads and stores: its inputs, as far as one operator reads them, and its
        results. Of a tensor whose rows are picked by indices, none is sure to be read.
        """
        made = {t.id: t for node in self.nodes for t in node.outputs}
        read: dict[int, int] = {}
        for node in self.nodes:
            for k, tensor in enumerate(node.tensors):
                if tensor.id not in made and not (k == 0 and node.op in PICKING):
                    size = tensor.size * TYPES[tensor.type].bytes
                    read[tensor.id] = max(size, read.get(tensor.id, 0))
        stored = [prod(made[i].shape) * TYPES[made[i].type].bytes for i in self.results if i in made]
        return sum(read.values()), sum(stored)


PICKING = ("embedding", "index_select", "gather")
"""Operators that read rows of their first operand by the indices in their last one."""

UNKNOWN = "unknown"
"""The `op` of an operator that is in no table: its arguments' bytes are counted."""
