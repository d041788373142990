"""Which kernels a library has, told by their structure alone, and that what it is called with is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.measure.library_kernels import described, library_runner, recognize
from roofdsl.measure.verify import verify

MODELS = Path(__file__).parents[2] / "models" / "kernels"


def written(text: str) -> Kernel:
    return kernel(load_file(Source("k.roof", text)), None)


def shipped(name: str) -> Kernel:
    file, _, own = name.partition(":")
    return kernel(load_file(MODELS / f"{file}.roof"), own or file)


def one(body: str, arrays: str, parameters: str = "n, m, p") -> Kernel:
    return written(f"kernel k({parameters}):\n    {arrays}\n    {body}\n")


FOUND = {
    "gemv": (shipped("gemv"), "gemv"),
    "matmul": (shipped("matmul"), "gemm"),
    "orders": (shipped("matmul_orders:matmul_jki"), "gemm"),
    "tiled": (shipped("matmul_tiled"), "gemm"),
    "batched": (shipped("batched_gemm"), "batched gemm"),
    "daxpy": (shipped("daxpy"), "axpy"),
    "zaxpy": (shipped("daxpy:zaxpy"), "axpy"),
    "transposed": (
        one("for i in range(n), j in range(m), k in range(p):\n        Z[j, i] += U[k, i] * V[j, k]",
            "in U: f32[p, n], V: f32[m, p]\n    inout Z: f32[m, n]"), "gemm"),
    "vector from the left": (
        one("for i in range(n), j in range(m):\n        y[j] = y[j] + a * x[i] * A[i, j]",
            "in a: f64, A: f64[n, m], x: f64[n]\n    inout y: f64[m]", "n, m"), "gemv"),
    "set to zero": (
        one("for i in range(n), j in range(m):\n        C[i, j] = 0\n"
            "        for k in range(p):\n            C[i, j] += A[i, k] * B[k, j]",
            "in A: f64[n, p], B: f64[p, m]\n    out C: f64[n, m]"), "gemm"),
    "zero before": (
        one("for i in range(n):\n        y[i] = 0\n"
            "    for j in range(n), i in range(n):\n        y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    out y: f64[n]", "n"), "gemv"),
    "dot": (
        one("s = 0\n    for i in range(n):\n        s += a[i] * b[i]", "in a, b: f64[n]\n    out s: f64", "n"), "dot"),
    "let": (
        one("for i in range(n):\n        let u = a[i]\n        s += u * b[i]",
            "in a, b: c128[n]\n    inout s: c128", "n"), "dot"),
    "let of the target": (
        one("for i in range(n):\n        let u = y[i]\n        y[i] = u + a * x[i]",
            "in a: f64, x: f64[n]\n    inout y: f64[n]", "n"), "axpy"),
    "addition": (
        one("for i in range(n):\n        y[i] += x[i]", "in x: f64[n]\n    inout y: f64[n]", "n"), "axpy"),
    "copy": (
        one("for i in range(n):\n        y[i] = 0\n        y[i] += x[i]", "in x: f64[n]\n    out y: f64[n]", "n"),
        "axpy"),
    "scaled copy": (
        one("for i in range(n):\n        y[i] = 0\n        y[i] += a * x[i]",
            "in a: f64, x: f64[n]\n    out y: f64[n]", "n"), "axpy"),
    "inside": (
        one("for i in range(1, n - 1), j in range(2, n):\n        y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n    assume n >= 4", "n"), "gemv"),
    "column-major": (
        one("for i in range(n), j in range(m):\n        y[i] += A[i, j] * x[j]",
            "in A: f64[n, m] col, x: f64[m]\n    inout y: f64[n]", "n, m"), "gemv"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_products_are_recognized_and_right(name: str) -> None:
    found, kind = FOUND[name]
    assert recognize(found).kind == kind
    sizes = {"n": 13, "m": 7, "p": 5, "batch": 3, "b": 1}
    values = {p.name: sizes[p.name] for p in found.parameters}
    verified = verify(found, library_runner(found).run, values, "the library")
    assert verified.parameters == tuple(values.items()) and verified.unverified == 0


NOT_FOUND = {
    "minplus": (shipped("minplus"), "`min=`"),
    "stencil": (shipped("stencils:jacobi2d"), "`=`"),
    "add": (shipped("vector_add"), "`=`"),
    "half": (shipped("dot"), "BLAS multiplies"),
    "blocked": (shipped("matmul_blocked"), "not a plain range"),
    "solve": (shipped("triangular:trsv"), "not one sum"),
    "triangle": (
        one("for i in range(n), j in range(i):\n        y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    inout y: f64[n]", "n"), "not a plain range"),
    "diagonal": (
        one("for i in range(n):\n        s += A[i, i] * x[i]", "in A: f64[n, n], x: f64[n]\n    inout s: f64", "n"),
        "are the same"),
    "shifted": (
        one("for i in range(n - 1):\n        s += x[i] * x[i + 1]", "in x: f64[n]\n    inout s: f64\n    assume n >= 2",
            "n"), "not a loop variable"),
    "reads itself": (
        one("for i in range(n), j in range(n):\n        y[i] += A[i, j] * y[j]",
            "in A: f64[n, n]\n    inout y: f64[n]", "n"), "reads its own target"),
    "repeated": (
        one("for t in range(n), i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    inout y: f64[n]", "n"), "not a subscript"),
    "sum": (
        one("for i in range(n), j in range(n):\n        y[i] += A[i, j]", "in A: f64[n, n]\n    inout y: f64[n]", "n"),
        "sums one array"),
    "zero in the wrong loop": (
        one("for j in range(n):\n        for i in range(n):\n            y[i] = 0\n"
            "        for i in range(n):\n            y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    out y: f64[n]", "n"), "does not set each element"),
    "guarded": (
        one("for i in range(n), j in range(n):\n        if i > j:\n            y[i] += A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    inout y: f64[n]", "n"), "branches"),
    "value before the sum": (
        one("for i in range(n):\n        let u = y[i]\n"
            "        for j in range(n):\n            y[i] = u + A[i, j] * x[j]",
            "in A: f64[n, n], x: f64[n]\n    inout y: f64[n]", "n"), "`u` holds an earlier value of y"),
    "value before the zero": (
        one("for i in range(n):\n        let u = y[i]\n        y[i] = 0\n        y[i] = u + a * x[i]",
            "in a: f64, x: f64[n]\n    inout y: f64[n]", "n"), "`u` holds an earlier value of y"),
    "three": (
        one("for i in range(n):\n        s += a[i] * b[i] * c[i]", "in a, b, c: f64[n]\n    inout s: f64", "n"),
        "multiplies 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FOUND)
def test_what_no_library_has_is_said(name: str) -> None:
    found, why = NOT_FOUND[name]
    with pytest.raises(CommandError, match="not a product that a library has") as caught:
        recognize(found)
    assert why in caught.value.message


def test_a_work_array_is_stated_only_where_a_factor_needs_one() -> None:
    calls = {name: described(recognize(FOUND[name][0])) for name in ("addition", "copy", "scaled copy")}
    assert calls == {"addition": "y += x", "copy": "y = x", "scaled copy": "y = a * x, through a work array"}
