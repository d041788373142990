"""The class of a kernel follows from its structure."""

from __future__ import annotations

import pytest

from benchmarks.kernel_class import class_of
from benchmarks.kernels import fresh, shipped
from benchmarks.validation_cases import polybench_cases

pytestmark = pytest.mark.thorough

CLASSIFIED = {
    "streams": ["triad", "copy", "zaxpy", "winograd_outputs"],
    "reductions": ["dot_f64", "gemv"],
    "products": ["matmul", "matmul_tiled", "matmul_blocked", "minplus", "batched_gemm"],
    "stencils": ["jacobi2d", "stencil27", "gsrb_branch", "heat3d_time"],
    "triangular": ["trsv", "lu", "cholesky"],
    "transposes": ["transpose"],
    "convolutions": ["conv2d_f32"],
    "half precision": ["to_half", "matmul_bf16", "attention_softmax"],
    "special functions": ["lstm_sigmoid"],
}


@pytest.mark.spread(3)
@pytest.mark.parametrize(("kind", "names"), CLASSIFIED.items(), ids=CLASSIFIED)
def test_the_class_of_a_kernel_follows_from_its_loops(kind: str, names: list[str]) -> None:
    every = shipped()
    assert {name: class_of(fresh(every[name], name)) for name in names} == dict.fromkeys(names, kind)


@pytest.mark.parametrize("name", ["seidel_2d", "deriche"])
def test_recurrences(name: str) -> None:
    assert class_of(polybench_cases()[name].kernel()) == "recurrences"
