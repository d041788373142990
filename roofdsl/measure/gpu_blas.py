"""Products as cuBLAS takes them: which arrays, in which layout, with which leading dimensions, in which types.

cuBLAS knows only column-major matrices. A row-major matrix is the transpose of one, so a product C = A B of row-major
matrices is computed as C' = B' A'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roofdsl.lang.diagnostics import CommandError


@dataclass(frozen=True)
class Types:
    """The numbers of cublas_api.h and library_types.h for the types of the operands, of the target, and of the
    computation; and the numpy type of the factors alpha and beta.
    """

    operand: int
    target: int
    compute: int
    factor: str


_DATA = {"f32": 0, "f64": 1, "f16": 2, "c64": 4, "c128": 5, "bf16": 14}
_TARGETS: Mapping[str, tuple[str, ...]] = {"f16": ("f16", "f32"), "bf16": ("bf16", "f32")}
_COMPUTE = {"f16": 68, "bf16": 68, "f32": 68, "c64": 68, "f64": 70, "c128": 70}
_FACTOR = {"f16": "float32", "bf16": "float32", "f32": "float32", "c64": "complex64", "f64": "float64",
           "c128": "complex128"}  # fmt: skip
_TF32, _PEDANTIC = 77, 1

GPU_TYPES: Mapping[str, tuple[str, ...]] = {name: _TARGETS.get(name, (name,)) for name in _DATA}
"""The types of operands that cuBLAS multiplies through cupy, each with the types of targets."""


def types_of(operand: str, target: str, math_mode: str) -> Types:
    """The types for a product of these element types."""
    compute = _COMPUTE[operand]
    if math_mode == "tf32" and operand in ("f32", "c64"):
        compute = _TF32
    if math_mode == "pedantic":
        compute += _PEDANTIC
    return Types(_DATA[operand], _DATA[target], compute, _FACTOR[operand])


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory: whether its rows are contiguous (otherwise its columns), and how far apart they are."""

    array: Any
    rows_first: bool
    leading: int
    between: int
    """The distance, in elements, from one matrix of a batch to the next."""


@dataclass(frozen=True)
class Gemm:
    """target = alpha op(first) op(second) + beta target, column-major: `m` rows, `n` columns, sums of `k` products."""

    first: Matrix
    second: Matrix
    target: Matrix
    m: int
    n: int
    k: int
    batch: int
    transposed: tuple[bool, bool]


def gemm_of(a: Any, b: Any, c: Any) -> Gemm:
    """The product c = a b of views (batch, rows, columns) or (rows, columns) on numpy's or cupy's arrays.

    Raises CommandError if a matrix is neither row-major nor column-major.
    """
    rows, summed = a.shape[-2:]
    columns = b.shape[-1]
    batch = c.shape[0] if c.ndim == 3 else 1
    first, second, target = (_matrix(x) for x in (a, b, c))
    if target.rows_first:
        turned = (not second.rows_first, not first.rows_first)
        return Gemm(second, first, target, columns, rows, summed, batch, turned)
    return Gemm(first, second, target, rows, columns, summed, batch, (first.rows_first, second.rows_first))


def _matrix(x: Any) -> Matrix:
    rows, columns = x.shape[-2:]
    of_row, of_column = (s // x.itemsize for s in x.strides[-2:])
    between = x.strides[0] // x.itemsize if x.ndim == 3 else 0
    # strides of an axis with one element mean nothing: such a matrix is in both orders
    if columns == 1 or of_column == 1:
        leading = of_row if rows > 1 else columns
        if leading >= columns:
            return Matrix(x, True, leading, between)
    if rows == 1 or of_row == 1:
        leading = of_column if columns > 1 else rows
        if leading >= rows:
            return Matrix(x, False, leading, between)
    raise CommandError("cuBLAS takes only matrices whose rows or columns are contiguous", "use the variant `naive`")


@dataclass(frozen=True)
class Gemv:
    """y = alpha op(matrix) x + beta y; `m` rows and `n` columns of the matrix in memory, read as column-major."""

    matrix: Matrix
    m: int
    n: int
    transposed: bool
    x: Any
    step_x: int
    y: Any
    step_y: int


def gemv_of(a: Any, x: Any, y: Any) -> Gemv:
    """The product y = a x of views (rows, columns), (columns,) and (rows,). Raises CommandError like `gemm_of`."""
    matrix = _matrix(a)
    rows, columns = a.shape
    m, n = (columns, rows) if matrix.rows_first else (rows, columns)
    steps = [v.strides[0] // v.itemsize if v.size > 1 else 1 for v in (x, y)]
    return Gemv(matrix, m, n, matrix.rows_first, x, steps[0], y, steps[1])
