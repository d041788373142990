"""An operator of a tensor library: its name, its sizes, and the work and bytes that no implementation avoids."""

from __future__ import annotations

from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record

BYTES = 4
"""The bytes of an element: all operators are on f32."""

BINARY = ("add", "mul", "div", "pow")
"""Elementwise operators of two arrays."""

UNARY = ("addu", "mulu", "divu", "powu", "relu", "gelu", "tanh")
"""Elementwise operators of one array; in `addu`, `mulu`, `divu` and `powu`, the other operand is a number."""

ROWS = ("ln", "softmax")
"""Layer normalization and softmax, over rows of `width` elements."""

PRODUCTS = ("linear", "bmm")
"""`linear`: y = x W^T + b, with x of m x k and W of n x k. `bmm`: `batch` products of m x k by k x n."""

Kind = Literal["elementwise", "row", "product"]


class Operator(Record):
    """One call. Products use `batch`, `m`, `n` and `k`; the others use `batch` rows of `width` elements."""

    name: str
    batch: int = 1
    m: int = 0
    n: int = 0
    k: int = 0
    width: int = 0

    @property
    def kind(self) -> Kind:
        """The kind of launch. Raises CommandError for an unknown operator."""
        if self.name in PRODUCTS:
            return "product"
        if self.name in ROWS:
            return "row"
        if self.name in (*BINARY, *UNARY):
            return "elementwise"
        known = ", ".join((*PRODUCTS, *ROWS, *BINARY, *UNARY))
        raise CommandError(f"there is no model of the operator `{self.name}`", f"there are {known}")

    @property
    def elements(self) -> int:
        """The number of elements of the result."""
        return self.batch * (self.m * self.n if self.kind == "product" else self.width)

    @property
    def work(self) -> int:
        """Operations: 2 m n k for each product; otherwise one for each element, which is a lower bound."""
        return 2 * self.batch * self.m * self.n * self.k if self.kind == "product" else self.elements

    @property
    def loads_bytes(self) -> int:
        """The bytes of all operands, each loaded once."""
        if self.name == "linear":
            return BYTES * (self.m * self.k + self.n * self.k + self.n)
        if self.name == "bmm":
            return BYTES * self.batch * (self.m * self.k + self.k * self.n)
        return BYTES * self.elements * (2 if self.name in BINARY else 1)

    @property
    def stores_bytes(self) -> int:
        """The bytes of the result, stored once."""
        return BYTES * self.elements
