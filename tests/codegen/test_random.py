"""Random kernels in all targets against the reference, and what the reference counts against enumeration."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from random import Random

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.c_flags import FLAGS
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.loops.transform import apply
from tests.codegen.running import Case, CLibrary, CudaLibrary, Interpreted
from tests.oracle.enumerate import counters
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

PART = 20
"""Kernels that are compiled together."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        many = metafunc.config.getoption("--kernels") // 5
        parts = [range(first, min(first + PART, many)) for first in range(0, many, PART)]
        metafunc.parametrize("seeds", parts, ids=lambda part: f"{part.start}-{part.stop - 1}")


@cache
def case(seed: int) -> Case:
    drawn = random_kernel(seed)
    return Case(kernel_of(drawn.text), Random(seed).choice(drawn.sizes), seed)


@pytest.mark.spread(1)
def test_python(seeds: range) -> None:
    compared = 0.0
    for seed in seeds:
        result = case(seed).check(Interpreted(), generate(case(seed).kernel), told=False)
        compared += 1 - result.unverified
        assert case(seed).want.counters == counters(apply(case(seed).kernel), case(seed).params)
    assert compared > 0.8 * len(seeds)  # the rest overflowed, or its error has no bound


@pytest.mark.spread(1)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile generated C with")
def test_c(seeds: range, tmp_path: Path) -> None:
    codes: list[Generated] = []
    for seed in seeds:
        free = parallel_loops(case(seed).kernel)
        codes.append(generate(case(seed).kernel, "c", "parallel" if free else "loops", free=free))
    library = CLibrary(codes, tmp_path, [f for f in FLAGS if f != "-march=native"] + ["-fopenmp"])
    for seed, code in zip(seeds, codes, strict=True):
        case(seed).check(library, code, told=False)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
def test_cuda(seeds: range, tmp_path: Path) -> None:
    kernels = [case(seed).kernel for seed in seeds]
    codes = [generate(k, "cuda", free=parallel_loops(k), private=private_loops(k)) for k in kernels]
    library = CudaLibrary(codes, tmp_path)
    for seed, code in zip(seeds, codes, strict=True):
        case(seed).check(library, code, told=False)
