"""Arrays in another arrangement: transposed, reversed, reshaped, and their diagonals."""

from __future__ import annotations

from typing import Any

from roofdsl.frontends.poly import Poly, quotient_of
from roofdsl.frontends.python.calls import Call
from roofdsl.frontends.python.context import Again
from roofdsl.frontends.python.creation import Creation
from roofdsl.frontends.python.indexing import Part
from roofdsl.frontends.python.values import ONE, ZERO, Value
from roofdsl.lang.record import replace


class Arrangements(Creation):
    """Functions that give views."""

    def flip(self, call: Call) -> Any:
        given = call.bound(self.context, ["m", "axis"], 1)
        value = self.arithmetic.shaped(given["m"], call.node)
        return self.indexing.flipped(value, self.axes(given.get("axis"), len(value.shape), call.node), call.node)

    def transpose(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "axes"], 1)
        value = self.arithmetic.shaped(given["a"], call.node)
        rank = len(value.shape)
        order = self.axes(given["axes"], rank, call.node) if "axes" in given else list(range(rank))[::-1]
        if sorted(order) != list(range(rank)):
            self.context.refuse("py-shape", "`axes` names every axis once", call.node)
        return self.indexing.permuted(value, order, call.node)

    def swapaxes(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "axis1", "axis2"], 3)
        value = self.arithmetic.shaped(given["a"], call.node)
        order = list(range(len(value.shape)))
        a, b = (self.axes(given[k], len(order), call.node)[0] for k in ("axis1", "axis2"))
        order[a], order[b] = b, a
        return self.indexing.permuted(value, order, call.node)

    def reshape(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "shape"], 2)
        value = self.arithmetic.shaped(given["a"], call.node)
        shape = list(self.shape(given["shape"], call.node))
        open_ = [k for k, e in enumerate(shape) if e.value == -1]
        if open_:
            rest = [e for k, e in enumerate(shape) if k not in open_]
            own = self.size(value)
            product = ONE
            for e in rest:
                product *= e
            found = quotient_of(own, product)
            if found is None or len(open_) > 1:
                self.context.refuse(
                    "py-shape", "the size that -1 stands for is not known", call.node, "write that size"
                )
            shape[open_[0]] = found
        self.equal_sizes(value, shape)
        return self.indexing.reshaped(value, shape, call.node)

    def equal_sizes(self, value: Value, shape: list[Poly]) -> None:
        """An argument that is a size of the new shape gets the value that the number of elements requires. Raises
        Again.
        """
        total = self.size(value)
        for k, extent in enumerate(shape):
            rest = ONE
            for e in (*shape[:k], *shape[k + 1 :]):
                rest *= e
            if rest * extent != total and len(extent.names) == 1 and extent == Poly.name(*extent.names):
                found = quotient_of(total, rest)
                if found is not None and not extent.names & found.names:
                    self.context.learnt.equal[min(extent.names)] = found
                    raise Again

    def newaxis(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "axis"], 2)
        value = self.arithmetic.shaped(given["a"], call.node)
        (axis,) = self.axes(given["axis"], len(value.shape) + 1, call.node)
        parts: list[Part | None] = [Part(ZERO, e) for e in value.shape]
        return self.indexing.taken(value, [*parts[:axis], None, *parts[axis:]], call.node)

    def squeeze(self, call: Call) -> Any:
        value = self.arithmetic.shaped(self.one(call, "a"), call.node)
        parts = [Part(ZERO, None if e == ONE else e) for e in value.shape]
        return self.indexing.taken(value, parts, call.node)

    def trace(self, call: Call) -> Any:
        diagonal = self.indexing.diagonal(self.arithmetic.shaped(self.one(call, "a"), call.node), call.node)
        return self.reductions.reduce(diagonal, [0], "+=", call.node)

    def diagonal(self, call: Call) -> Any:
        """numpy's diagonal can only be read, so it is no view that takes stores."""
        found = self.indexing.diagonal(self.arithmetic.shaped(self.one(call, "a"), call.node), call.node)
        return replace(found, view=None)
