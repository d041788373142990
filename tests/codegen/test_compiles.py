"""Generated CUDA compiles with nvcc or NVRTC, where one of them is found; nothing here needs a GPU."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from tests.codegen.features import FEATURES, TILED
from tests.codegen.nvrtc import nvrtc
from tests.codegen.shipped import free, private, ragged, shipped
from tests.oracle.loading import kernel_of

Compile = Callable[[str], str]


def _nvcc(folder: Path) -> Compile | None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None

    def run(source: str) -> str:
        path = folder / "kernels.cu"
        path.write_text(source, encoding="utf-8")
        command = [
            nvcc,
            "-arch=sm_90",
            "-ptx",
            "-Xcicc",
            "-O0",
            "-Werror",
            "all-warnings",
            "-o",
            str(folder / "kernels.ptx"),
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    return run


@pytest.fixture
def compiler(tmp_path: Path) -> Compile:
    by_nvrtc = nvrtc()
    if by_nvrtc is not None:
        return lambda source: by_nvrtc(source).errors
    found = _nvcc(tmp_path)
    if found is None:
        pytest.skip("neither nvcc nor NVRTC (pip install nvidia-cuda-nvrtc nvidia-cuda-runtime) is here")
    return found


def together(codes: list[Generated]) -> str:
    """Several kernels as one source; `extern "C"` names differ, all others are in a namespace each."""
    includes = {line for code in codes for line in code.source.splitlines() if line.startswith("#include")}
    parts = sorted(includes)
    for k, code in enumerate(codes):
        body = "\n".join(line for line in code.source.splitlines() if not line.startswith("#include"))
        parts.append(f"namespace kernel_{k} {{\n{body}\n}}")
    return "\n".join(parts)


def shipped_codes() -> list[Generated]:
    return [generate(kernel, "cuda", free=free(name), private=private(name)) for name, kernel in shipped().items()]


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(4))
def test_shipped(part: int, compiler: Compile) -> None:
    codes = shipped_codes()[part::4]
    assert codes
    assert compiler(together(codes)) == ""


@pytest.mark.thorough
def test_tiled(compiler: Compile) -> None:
    codes = []
    for name in ("matmul_blocked", "matmul_tiled", "minplus_blocked"):
        codes.append(generate(shipped()[name], "cuda", "tiled", free=free(name), sizes=ragged(shipped()[name])))
    for text, sizes in TILED.values():
        kernel = kernel_of(text)
        codes.append(generate(kernel, "cuda", "tiled", free=parallel_loops(kernel), sizes=sizes))
    assert compiler(together(codes)) == ""


@pytest.mark.thorough
def test_features(compiler: Compile) -> None:
    kernels = [kernel_of(text) for text, _ in FEATURES.values()]
    codes = [generate(kernel, "cuda", free=parallel_loops(kernel), private=private_loops(kernel)) for kernel in kernels]
    assert compiler(together(codes)) == ""


def test_each_alone(compiler: Compile) -> None:
    """With its own headers and nothing before it."""
    for name in ("gemm_f16", "zaxpy", "floyd_warshall", "attention_products", "fft_rows"):
        assert compiler(generate(shipped()[name], "cuda", free=free(name), private=private(name)).source) == ""
