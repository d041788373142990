"""The table of compiled CUDA: what ptxas says, read and attributed, and with nvcc that no simple kernel spills."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.gpu.compiled import Compiled, compiled, grouped, reported, together
from benchmarks.kernels import fresh, shipped
from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate

SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k1_minplus_2' for 'sm_90'
ptxas info    : Function properties for k1_minplus_2
    16 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 9216 bytes smem
ptxas info    : Compiling entry function 'k0_triad' for 'sm_90'
ptxas info    : Function properties for k0_triad
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers
"""


def test_what_ptxas_says_is_read() -> None:
    found = grouped(reported(SAID), 2)
    assert found == [[Compiled("triad", 20, 0, 0, 0)], [Compiled("minplus_2", 40, 9216, 16, 28)]]


@pytest.mark.thorough
def test_functions_of_several_texts_get_their_numbers() -> None:
    kernel = fresh(shipped()["matmul_tiled"], "matmul_tiled")
    code = generate(kernel, "cuda", "tiled", free=parallel_loops(kernel), sizes={"n": 48, "b": 24})
    text = together([code.source, code.source])
    assert "k0_matmul_tiled(" in text and "k1_matmul_tiled(" in text and "__launch_bounds__(256)" in text


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_a_stream_and_a_sum_need_few_registers() -> None:
    sources = []
    for name in ("triad", "dot"):
        kernel = fresh(shipped()[name], name)
        sources.append(generate(kernel, "cuda", free=parallel_loops(kernel)).source)
    triad, dot = compiled(sources)
    assert [f.function for f in dot] == ["dot_1", "dot_2"] and dot[0].shared == 256 * 4
    assert all(f.registers <= 40 and f.spilled == 0 for f in (*triad, *dot))
