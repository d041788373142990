"""Which operations the floor gives to matrix units, and which loops are rows, columns and steps."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest

from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.machine.find import load_machine, shipped_models
from roofdsl.sol.compute_floor import compute_floor, executed, operations_of
from roofdsl.sol.floor import floor
from roofdsl.sol.grouped_products import grouped_products
from roofdsl.sol.sums import sums_of_products
from tests.oracle.enumerate import executions
from tests.oracle.loading import kernel_of


def shipped(name: str) -> Kernel:
    target = shipped_models()[name]
    return pick(load_file(target.path), target.name)


GROUPS = [
    ("matmul", [("i",), ("j",), ("k",), ()]),
    ("batched_gemm", [("i",), ("j",), ("k",), ("b",)]),
    ("conv2d_f32", [("n", "i", "j"), ("o",), ("p", "q", "e"), ()]),
    ("gemv", [("i",), (), ("j",), ()]),
    ("attention_scores", [("g", "t"), ("u",), ("k",), ("b", "h")]),
]


@pytest.mark.parametrize(("name", "groups"), GROUPS)
def test_loops_are_grouped_by_what_they_move(name: str, groups: list[tuple[str, ...]]) -> None:
    (found,) = sums_of_products(shipped(name))
    assert [found.rows, found.columns, found.steps, found.batch] == groups


def test_both_products_of_flash_attention_have_the_queries_as_rows() -> None:
    """The scores are temporary: they belong to the tile of queries and that of keys around them."""
    scores, values = sums_of_products(shipped("flash_attention"))
    assert (scores.rows, scores.columns, scores.steps) == (("ii", "i"), ("jj", "j"), ("k",))
    assert (values.rows, values.columns, values.steps) == (("ii", "i"), ("k",), ("jj", "j"))


@pytest.mark.parametrize(
    "line", ["y[i] += a[i] * b[i]", "y[i] = a[i] * b[i]", "y[i] += 2 * a[i]", "y[i] = y[i] * a[i] + b[i]"]
)
def test_what_sums_nothing_is_no_sum_of_products(line: str) -> None:
    head = "kernel f(n):\n    in a, b: f64[n]\n    inout y: f64[n]\n    for t in range(9), i in range(n):\n"
    assert sums_of_products(kernel_of(f"{head}        {line}\n")) == ()


@pytest.mark.parametrize("name", ["conv2d_f32", "batched_gemm", "attention_products", "flash_attention"])
def test_extents_multiply_to_the_executions(name: str) -> None:
    """Counted by walking the loops; a triangle has fewer than its extents say."""
    kernel = shipped(name)
    small = {"batch": 2, "h": 9, "w": 7, "c": 3, "f": 4, "r": 3, "n": 8, "new": 3, "context": 5, "kv": 2, "group": 2,
             "dh": 4, "bq": 4, "bk": 2}  # fmt: skip
    sizes = {p.name: small[p.name] for p in kernel.parameters}
    found = grouped_products(kernel, sizes)
    assert found is not None
    at = sized(kernel, sizes)
    counted = executions(at.kernel, at.values)
    for one, product in zip(sums_of_products(at.kernel), found.products, strict=True):
        extents = prod((product.rows, product.columns, product.steps, product.batch))
        assert product.executions == counted[one.place] <= extents
        assert name == "attention_products" or product.executions == extents


@pytest.mark.thorough
def test_a_convolution_with_its_relu_runs_on_matrix_units() -> None:
    """cuDNN fuses them. The ReLU and what starts the sums stay on the ordinary pipes, beside the units."""
    machine = load_machine("a100_80")
    plain, fused = (floor(shipped(name), {}, machine) for name in ("conv2d_forward", "conv2d_bias_relu"))
    compute = [next(t for t in f.terms if t.name == "compute") for f in (plain, fused)]
    assert compute[1].time_s == compute[0].time_s == Fraction(plain.work) / (312 * 10**12)
    assert "on tensor units, beside" in compute[1].formula and fused.partly == "tensor" and fused.unit is None


def test_flash_attention_is_bounded_by_the_faster_of_both_units() -> None:
    """Its two products are 4 n^2 dh operations on matrix units in f16; the exponentials take their time beside them.

    FlashAttention-2 reaches 230 TFLOP/s of 312 on an A100 (Dao 2023, figure 5): what that takes must be possible.
    """
    n, dh = 4096, 128
    machine, kernel = load_machine("a100_80"), shipped("flash_attention")
    found = floor(kernel, {"n": n, "dh": dh, "bq": 128, "bk": 64}, machine)
    products = 4 * n * n * dh
    compute = next(t for t in found.terms if t.name == "compute")
    assert compute.time_s >= Fraction(products, 312 * 10**12)
    assert found.time_s < Fraction(products, 230 * 10**12)


@pytest.mark.parametrize("name", ["flash_attention", "conv2d_bias_relu", "rms_norm", "lu", "jacobi2d"])
def test_no_operation_is_lost(name: str) -> None:
    kernel = shipped(name)
    sizes = {p.name: p.default or {"bq": 4, "bk": 4}.get(p.name, 16) for p in kernel.parameters}
    found = operations_of(executed(kernel, sizes), load_machine("a100_80"))
    on_units = sum(part.operations for part in found.matrix)
    assert on_units + found.ordinary.total == found.work == work_at(kernel, sizes).total
    assert compute_floor(found, load_machine("a100_80")).time_s > 0
