"""NVIDIA's compiler unrolls innermost loops of the generated CUDA as `counts.compiled_warps` says."""

from __future__ import annotations

import re

import pytest

from roofdsl.codegen.generate import generate
from roofdsl.counts.compiled_warps import UNROLLED
from tests.codegen.nvrtc import nvrtc
from tests.codegen.shipped import free, private, shipped

COMPILE = nvrtc()

pytestmark = pytest.mark.skipif(COMPILE is None, reason="NVRTC (pip install nvidia-cuda-nvrtc) is not here")


def ptx(name: str) -> str:
    """The PTX of a shipped kernel."""
    assert COMPILE is not None
    return COMPILE(generate(shipped()[name], "cuda", free=free(name), private=private(name)).source).ptx


def loads_of_bodies(text: str) -> list[int]:
    """The loads from memory between each label and the branch that leads back to it."""
    lines, found = text.splitlines(), []
    at = {line.rstrip(":"): k for k, line in enumerate(lines) if re.fullmatch(r"\$L\w+:", line)}
    for k, line in enumerate(lines):
        back = re.search(r"bra\S*\s+(\$L\w+);", line)
        if back and at.get(back[1], k) < k:
            found.append(sum("ld.global" in inside for inside in lines[at[back[1]] : k]))
    return found


@pytest.mark.parametrize("name", ["gemv", "matmul", "minplus"])
def test_a_round_of_an_innermost_loop(name: str) -> None:
    """Both operands of so many iterations are loaded before the loop goes back."""
    assert min(loads_of_bodies(ptx(name))) == 2 * UNROLLED


@pytest.mark.parametrize(("name", "loads"), [("triad", 2), ("jacobi2d", 5)])
def test_a_thread_with_a_single_iteration(name: str, loads: int) -> None:
    """The loop over threads is not unrolled."""
    assert loads_of_bodies(ptx(name))[0] == loads
