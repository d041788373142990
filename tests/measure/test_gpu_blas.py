"""How products are handed to cuBLAS: every order of rows and columns, slices, scalars, batches, targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roofdsl.codegen.inputs import random_inputs
from roofdsl.codegen.reference import reference
from roofdsl.codegen.storage import decode
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.measure.gpu import GpuOptions, build_gpu, measure_gpu
from roofdsl.measure.gpu_blas import gemm_of, types_of
from roofdsl.measure.measurement import source_hash
from roofdsl.measure.timing import Plan
from roofdsl.validate.run import compare_all
from tests.measure.examples import EXAMPLE
from tests.measure.fake_gpu import FakeGpu
from tests.oracle.loading import kernel_of

BRIEF = Plan(repeats=5, budget_s=1, sample_s=1e-5, warm_s=0)
PRODUCT = """
kernel product(m, n, l):
    in A: {type}[{a}]{order_a}, B: {type}[{b}]{order_b}{more}
    inout C: {target}[{c}]{order_c}
    for i in range(m), j in range(n), k in range(l):
        C[{c_at}] += {factor}A[{a_at}] * B[{b_at}]
"""


@pytest.mark.spread(1, 8)
@pytest.mark.parametrize("order_a", ["", " col"])
@pytest.mark.parametrize("order_b", ["", " col"])
@pytest.mark.parametrize("order_c", ["", " col"])
@pytest.mark.parametrize("turned", [False, True])
def test_every_order_of_rows_and_columns(order_a: str, order_b: str, order_c: str, turned: bool) -> None:
    text = PRODUCT.format(
        type="f64", target="f64", order_a=order_a, order_b=order_b, order_c=order_c, more=", w: f64", factor="w * ",
        a="l, m" if turned else "m, l", a_at="k, i" if turned else "i, k", b="l, n", b_at="k, j", c="m, n", c_at="i, j",
    )  # fmt: skip
    kernel = kernel_of(text)
    for sizes in ({"m": 5, "n": 7, "l": 3}, {"m": 1, "n": 4, "l": 6}, {"m": 4, "n": 1, "l": 1}):
        measured = measure_gpu(kernel, sizes, GpuOptions("library", BRIEF), driver=FakeGpu())
        assert measured.verified.holds
    assert measured.details["call"] == "gemm" and "work array" not in measured.details["as"]


@pytest.mark.parametrize(("operand", "target"), [("f16", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("bf16", "f32")])
def test_reduced_types(operand: str, target: str) -> None:
    text = PRODUCT.format(
        type=operand, target=target, order_a="", order_b="", order_c="", more="", factor="", a="m, l", a_at="i, k",
        b="l, n", b_at="k, j", c="m, n", c_at="i, j",
    )  # fmt: skip
    kernel, sizes = kernel_of(text), {"m": 6, "n": 5, "l": 4}
    code = build_gpu(kernel, GpuOptions("library"), FakeGpu(), sizes)
    arrays = random_inputs(kernel, sizes, 3)
    want = reference(kernel, sizes, {n: a.copy() for n, a in arrays.items()})
    code.bind(arrays, sizes)()
    assert decode(arrays["C"], target) == pytest.approx(np.asarray(want.values["C"], float), rel=2**-7)


OTHERS = {
    "rows": ("gemv", """
kernel k(n):
    in A: f32[n, n], x: f32[n]
    inout y: f32[n]
    for i in range(n), j in range(n):
        y[i] += A[i, j] * x[j]
"""),
    "columns": ("gemv", """
kernel k(n):
    in A: f32[n, n], x: f32[n]
    inout y: f32[n]
    for i in range(n), j in range(n):
        y[i] += x[j] * A[j, i]
"""),
    "from zero": ("gemv", """
kernel k(n):
    in A: f64[n, n] col, x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = 0
        for j in range(n):
            y[i] += A[j, i] * x[j]
"""),
    "a scaled dot": ("dot", """
kernel k(n):
    in w: f64, x, y: f64[n]
    inout s: f64
    for i in range(n):
        s += w * x[i] * y[i]
"""),
    "a complex dot": ("dot", """
kernel k(n):
    in x, y: c64[n]
    out s: c64
    s = 0
    for i in range(n):
        s += x[i] * y[i]
"""),
    "a batch": ("gemm", """
kernel k(n, p):
    in A, B: f32[p, n, n]
    out C: f32[p, n, n]
    for b in range(p), i in range(n), j in range(n):
        C[b, i, j] = 0
        for k in range(n):
            C[b, i, j] += A[b, k, i] * B[b, k, j]
"""),
    "parts": ("gemm", """
kernel k(n):
    in A: f64[n, n + 5], B: f64[n + 5, n]
    inout C: f64[n, n]
    for i in range(2, n), j in range(n), k in range(3, n):
        C[i, j] += A[i, k] * B[k, j]
"""),
}  # fmt: skip


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", OTHERS)
def test_vectors_batches_and_parts_of_matrices(name: str) -> None:
    call, text = OTHERS[name]
    kernel = kernel_of(text)
    measured = measure_gpu(
        kernel, {p.name: 6 for p in kernel.parameters}, GpuOptions("library", BRIEF), driver=FakeGpu()
    )
    assert measured.verified.holds and measured.details["call"] == call


def test_what_cublas_is_asked_for() -> None:
    # numbers of library_types.h and cublas_api.h of CUDA 13
    assert types_of("f16", "f32", "default").compute == 68 and types_of("f32", "f32", "tf32").compute == 77
    assert types_of("f64", "f64", "pedantic").compute == 71 and types_of("bf16", "bf16", "default").target == 14
    a = np.zeros((4, 6))[:, ::2]
    with pytest.raises(CommandError, match="rows or columns are contiguous"):
        gemm_of(a, np.zeros((3, 5)), np.zeros((4, 5)))


def test_dot_products_in_reduced_types_have_no_call() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in x, y: f16[n]\n    inout s: f16\n    for i in range(n):\n        s += x[i] * y[i]\n"
    )
    with pytest.raises(CommandError, match="no call of cuBLAS"):
        measure_gpu(kernel, {"n": 9}, GpuOptions("library", BRIEF), driver=FakeGpu())


def test_a_library_product_in_f64_is_judged_by_the_matrix_units() -> None:
    text = PRODUCT.format(
        type="f64", target="f64", order_a="", order_b="", order_c="", more="", factor="", a="m, l", a_at="i, k",
        b="l, n", b_at="k, j", c="m, n", c_at="i, j",
    )  # fmt: skip
    kernel, sizes = kernel_of(text), {"m": 512, "n": 512, "l": 512}
    machine = machine_of(load_file(Source("m.roof", MACHINE)), None)
    measured = replace(
        EXAMPLE, kernel="product", parameters=tuple(sizes.items()), backend="gpu", variant="library",
        state="rotated", work=2 * 512**3, source_sha256=source_hash(kernel), details={"operation": "gemm"},
    )  # fmt: skip
    naive = replace(measured, variant="naive", details={})
    for m, rate in ((measured, 4e12), (naive, 1e12)):
        (found,) = compare_all([kernel], [m], machine)
        assert found.bound_s == pytest.approx(2 * 512**3 / rate)


MACHINE = """
machine m:
    peak f64 1e12 FLOP/s
    peak f64 tensor 4e12 FLOP/s
    memory HBM 64 GiB, 1e15 B/s
"""
