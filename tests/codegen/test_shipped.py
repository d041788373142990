"""Every shipped kernel in every variant that applies computes what the reference says, at ragged sizes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from roofdsl.codegen.c_flags import FLAGS
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.launch_grids import Call
from roofdsl.lang.diagnostics import CommandError
from tests.codegen.running import Case, CLibrary, CudaLibrary, Interpreted
from tests.codegen.shipped import free, private, ragged, shipped

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile generated C with")
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
TILED = {"matmul_blocked", "matmul_tiled", "minplus_blocked"}


@cache
def case(name: str) -> Case:
    kernel = shipped()[name]
    return Case(kernel, ragged(kernel))


@cache
def generated(name: str, target: str, variant: str) -> Generated | None:
    kernel = shipped()[name]
    try:
        return generate(kernel, target, variant, free=free(name), private=private(name), sizes=ragged(kernel))
    except CommandError:
        return None


def every(target: str, variant: str) -> list[Generated]:
    return [g for name in shipped() if (g := generated(name, target, variant)) is not None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


@pytest.mark.thorough
@needs_gcc
@pytest.mark.parametrize("variant", ["loops", "parallel"])
def test_c(variant: str, tmp_path: Path) -> None:
    codes = every("c", variant)
    library = CLibrary(codes, tmp_path, [f for f in FLAGS if f not in ("-O3", "-march=native")] + ["-O1", "-fopenmp"])
    for code in codes:
        case(code.kernel).check(library, code)
    assert len(codes) == len(shipped()) if variant == "loops" else len(codes) > 25


@pytest.mark.thorough
@needs_gxx
@pytest.mark.parametrize("variant", ["naive", "tiled"])
def test_cuda(variant: str, tmp_path: Path) -> None:
    codes = every("cuda", variant)
    library = CudaLibrary(codes, tmp_path)
    for code in codes:
        case(code.kernel).check(library, code)
    assert {c.kernel for c in codes} >= (set(shipped()) if variant == "naive" else TILED)


@pytest.mark.thorough
@pytest.mark.parametrize("variant", ["loops", "parallel"])
def test_python(variant: str) -> None:
    for code in every("python", variant):
        case(code.kernel).check(Interpreted(), code)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("gemv", "loops"), ("matmul_bf16", "loops"), ("dot", "loops"), ("zaxpy", "loops"), ("cholesky", "loops"),
        ("floyd_warshall", "loops"), ("minplus_blocked", "parallel"), ("jacobi2d_time", "parallel"),
    ],
)  # fmt: skip
def test_numba(name: str, variant: str) -> None:
    code = generated(name, "python", variant)
    assert code is not None
    case(name).check(Interpreted(compiled=True), code)


FAULTS = {
    "a bound": ("< n", "<= n"),
    "an end": ("kk + 5", "kk + 4"),
    "a guarded load": ("from_0 < n && from_1 < n ?", "true ?"),
    "a guarded sum": ("i < n && j < n ?", "true ?"),
    "a guarded store": ("if (i < n && j < n)", "if (true)"),
    "a share of the copy": ("int p = thread;", "int p = thread + 1;"),
}


@pytest.mark.thorough
@needs_gxx
def test_faults_in_cuda_are_found(tmp_path: Path) -> None:
    """What running on the host can tell: each of these changes makes a result or an access wrong."""
    code = generated("minplus_blocked", "cuda", "tiled")
    assert code is not None
    broken = {}
    for k, (fault, (old, new)) in enumerate(FAULTS.items()):
        assert old in code.source, fault
        name = f"{code.function}_{k}"
        source = code.source.replace(old, new).replace(f"\n{code.function}(", f"\n{name}(")
        call = code.steps[0]
        assert isinstance(call, Call)
        broken[fault] = replace(code, source=source, function=name, steps=(replace(call, function=name),))
    library = CudaLibrary(list(broken.values()), tmp_path)
    for fault, wrong in broken.items():
        with pytest.raises(AssertionError):
            case("minplus_blocked").check(library, wrong)
            pytest.fail(f"{fault} was not found")
