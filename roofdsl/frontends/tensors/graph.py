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

    @property
    def bytes(self) -> int:
        """Of its elements in memory."""
        return self.size * TYPES[self.type].bytes

    def viewed(self, shape: tuple[int, ...], *, in_order: bool) -> Tensor:
        """Another shape of the same data. in_order: elements keep their order, and none is left out."""
        stored = self.stored if shape == self.shape else _stored(self, shape) or shape
        return replace(self, shape=shape, stored=stored, whole=self.whole and in_order)

    def is_copied(self, shape: tuple[int, ...]) -> bool:
        """Whether only a copy has this shape: it joins a dimension of repeated elements with one of others."""
        return shape != self.shape and _stored(self, shape) is None

    def parted(self, shape: tuple[int, ...], part: str, stored: tuple[int, ...] | None = None) -> Tensor:
        """A view that leaves elements out, unless it has all of them. part: which ones it has.

        stored: as that of a tensor; without it, each dimension is taken to be a part of the same one here, if the
        number of dimensions is the same.
        """
        own = self.part if shape == self.shape else f"{self.part}[{part}]"
        if stored is None and len(shape) == len(self.shape):
            stored = tuple(min(n, s) for n, s in zip(shape, self.stored, strict=True))
        return replace(self, shape=shape, stored=shape if stored is None else stored, whole=False, part=own)

    def of_complex(self, part: str) -> Tensor:
        """`real` or `imag` of each element, without copying."""
        return replace(self, type=REAL[self.type], whole=False, part=f"{self.part}[{part}]")


def _stored(of: Tensor, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The stored shape of a reshaped tensor: expanded dimensions stay expanded. None where they are joined with others.

    Both shapes are taken apart into the shortest runs of dimensions with the same number of elements.
    """
    if of.stored == of.shape:
        return shape
    # A row of 4 that is repeated 3 times, (3, 4) stored as (1, 4), is (3, 2, 2) stored as (1, 2, 2): the runs are 3
    # and 4. As (12,) it would be one run of a repeated and a stored dimension.
    found: list[int] = []
    old, new = list(zip(of.shape, of.stored, strict=True)), list(shape)
    while old or new:
        run, own = [old.pop(0)] if old else [], [new.pop(0)] if new else []
        while (have := prod(n for n, _ in run)) != (want := prod(own)):
            if not (old if have < want else new):
                return None
            if have < want:
                run.append(old.pop(0))
            else:
                own.append(new.pop(0))
        wide = [(n, s) for n, s in run if n != 1]
        if any(n == s for n, s in wide) and any(n != s for n, s in wide):
            return None
        found += own if all(n == s for n, s in wide) else [1] * len(own)
    return tuple(found)


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

    def read_bytes(self, k: int) -> int:
        """The bytes of its tensor k that it is sure to read: of the first one, those of the elements that the option
        `reads` counts, and none if rows are picked by indices.
        """
        tensor = self.tensors[k]
        if k > 0:
            return tensor.bytes
        if self.op in PICKING:
            return 0
        reads: int = self.options.get("reads", tensor.size)
        return min(tensor.bytes, reads * TYPES[tensor.type].bytes)


class Graph(Record):
    """Operators in an executable order. returned: the values that the program returns. views: their number."""

    name: str
    nodes: tuple[Node, ...]
    returned: tuple[Tensor, ...]
    views: int

    @property
    def results(self) -> frozenset[int]:
        """The ids of the values that the program returns."""
        return frozenset(t.id for t in self.returned)

    @property
    def moved_once(self) -> tuple[int, int]:
        """Bytes that any code for the graph loads and stores: its inputs, as far as one operator reads them, and as
        much of its results as it returns. Of a tensor whose rows are picked by indices, none is sure to be read.
        """
        made = {t.id: t for node in self.nodes for t in node.outputs}
        read: dict[int, int] = {}
        for node in self.nodes:
            for k, tensor in enumerate(node.tensors):
                if tensor.id not in made:
                    read[tensor.id] = max(node.read_bytes(k), read.get(tensor.id, 0))
        stored: dict[int, int] = {}
        for tensor in dict.fromkeys(self.returned):
            if tensor.id in made:
                stored[tensor.id] = min(stored.get(tensor.id, 0) + tensor.bytes, made[tensor.id].bytes)
        return sum(read.values()), sum(stored.values())

    @property
    def partly_used(self) -> tuple[str, ...]:
        """The framework's names of operators of whose results not all elements are sure to be used."""
        used: dict[int, dict[str, int]] = {}
        reads = [(t, n.read_bytes(k)) for n in self.nodes for k, t in enumerate(n.tensors)]
        for tensor, size in [*reads, *((t, t.bytes) for t in self.returned)]:
            parts = used.setdefault(tensor.id, {})
            parts[tensor.part] = max(parts.get(tensor.part, 0), size)
        found = [(n.called, t) for n in self.nodes for t in n.outputs if t.id in used]
        return tuple(dict.fromkeys(called for called, t in found if sum(used[t.id].values()) < t.bytes))


PICKING = ("embedding", "index_select", "gather")
"""Operators that read rows of their first operand by the indices in their last one."""

UNKNOWN = "unknown"
"""The `op` of an operator that is in no table: its arguments' bytes are counted."""
