"""NVIDIA's compiler unrolls innermost loops of the generated CUDA as `counts.compiled_warps` says."""

from __future__ import annotations

import re

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.counts.compiled_warps import UNROLLED
from tests.codegen.nvrtc import nvrtc
from tests.codegen.shipped import free, private, shipped
from tests.predict.machines import kernel_of

COMPILE = nvrtc()

pytestmark = pytest.mark.skipif(COMPILE is None, reason="NVRTC (pip install nvidia-cuda-nvrtc) is not here")


def ptx(name: str) -> str:
    """The PTX of a shipped kernel."""
    assert COMPILE is not None
    return COMPILE(generate(shipped()[name], "cuda", free=free(name), private=private(name)).source).ptx


def accesses_of_bodies(text: str) -> list[str]:
    """L for each load and S for each store between each label and the branch that leads back to it."""
    lines, found = text.splitlines(), []
    at = {line.rstrip(":"): k for k, line in enumerate(lines) if re.fullmatch(r"\$L\w+:", line)}
    for k, line in enumerate(lines):
        back = re.search(r"bra\S*\s+(\$L\w+);", line)
        if back and at.get(back[1], k) < k:
            inside = lines[at[back[1]] : k]
            found.append("".join("L" if "ld.global" in i else "S" if "st.global" in i else "" for i in inside))
    return found


@pytest.mark.parametrize("name", ["gemv", "matmul", "minplus"])
def test_a_round_of_an_innermost_loop(name: str) -> None:
    """Both operands of so many iterations are loaded before the loop goes back."""
    assert min(body.count("L") for body in accesses_of_bodies(ptx(name))) == 2 * UNROLLED


@pytest.mark.parametrize(("name", "loads"), [("triad", 2), ("jacobi2d", 5)])
def test_a_thread_with_a_single_iteration(name: str, loads: int) -> None:
    """The loop over threads is not unrolled."""
    assert accesses_of_bodies(ptx(name))[0].count("L") == loads


@pytest.mark.parametrize("name", ["cholesky", "lu"])
def test_a_factorization_in_place(name: str) -> None:
    """A[i, j] -= A[i, k] * A[k, j]: A[i, j] is loaded before the loop, but stored in each iteration, before those of
    the next one are loaded, as `registers.seen_at` says.
    """
    assert "LLS" * UNROLLED in accesses_of_bodies(ptx(name))


def test_an_element_under_a_condition() -> None:
    """It is loaded and stored in each iteration in which the condition holds."""
    assert COMPILE is not None
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n]\n    inout s: f64[n]\n    for i in range(n), j in range(n):\n"
        "        if j < i + 3:\n            s[i] += A[i, j]\n"
    )
    text = generate(kernel, "cuda", free=parallel_loops(kernel)).source
    assert "LLS" * UNROLLED in accesses_of_bodies(COMPILE(text).ptx)
