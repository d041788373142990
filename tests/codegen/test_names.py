"""Kernels named after every word that means something elsewhere compile, and compute what they should.

The words come from the compilers and headers of this machine, not from the lists that the generator keeps.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.targets.cuda import COMPLEX
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.grammar import reserved
from roofdsl.lang.record import replace
from tests.codegen.running import Case, CLibrary, CudaLibrary, Interpreted
from tests.codegen.test_compiles import Compile, compiler
from tests.oracle.loading import kernel_of

__all__ = ["compiler"]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile generated C with")
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")


NO_NAMES = reserved() | FUNCTIONS.keys() | {"range"}
"""Words that the language itself refuses."""


def _listed(text: str) -> list[str]:
    return [word for word in text.split() if word not in NO_NAMES]


KEYWORDS = _listed(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas "
    "_Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local asm typeof alignas "
    "alignof bool constexpr false nullptr static_assert thread_local true typeof_unqual and and_eq bitand bitor catch "
    "char8_t char16_t char32_t class compl concept consteval constinit const_cast co_await co_return co_yield decltype "
    "delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private "
    "protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual "
    "wchar_t xor xor_eq override final import module main std __global__ __device__ __restrict__ __int128 __func__ "
    "threadIdx blockIdx blockDim gridDim warpSize half half2 float4 dim3 int64_t uint8_t size_t ptrdiff_t I M_PI y0 j0 "
    "gamma linux unix index div abs _init _fini _start _end _edata __bss_start environ end etext edata"
)
OWN = _listed(
    "floor_div floor_mod quotient f32_to_f16 f16_to_f32 f32_to_bf16 bits_to_f32 f32_to_bits min_index max_index "
    "min_f64 power3_f64 sigmoid_f32 rsqrt_f64 x_sum x_sum2 x_product x_min x_max2 x_dim0 x_trip x_out own_x "
    "own_i from_0 at_1 tile_x tile_A tile_ p sum shared thread threads index_t complex64 complex128 "
    "complex_of thread_x threads_y a__x __x np math numba njit prange range min max"
)
C_HEADERS = "".join(f"#include <{h}.h>\n" for h in ("stdint", "complex", "math", "stdlib", "string"))
CUDA_HEADERS = "".join(f"#include <cuda_{h}.h>\n" for h in ("fp16", "bf16", "fp8"))

NAMED = """kernel {0}({1}):
    in {2}: f64[{1}, {1}]
    inout {3}: f64[{1}]
    out {4}: f64
    {4} = 0
    for {5} in range({1}):
        let {6} = 2 * {2}[{5}, {5}]
        {3}[{5}] += {6}
        {4} += {3}[{5}]
"""
"""A kernel all of whose names are open: its own, a parameter, arrays, a scalar, a loop variable and a `let`."""


def declared(command: list[str], headers: str) -> set[str]:
    """Every word that headers hold, and every macro that is defined with them."""
    found: set[str] = set()
    for flags, pattern in ((["-E"], r"[A-Za-z_]\w*"), (["-E", "-dM"], r"(?<=#define )\w+")):
        done = subprocess.run([*command, *flags, "-"], input=headers, capture_output=True, text=True, check=False)
        found.update(re.findall(pattern, done.stdout))
    return found


def some(words: set[str], request: pytest.FixtureRequest) -> list[str]:
    """As many of the words as `--words` asks for, the same ones every time."""
    count: int = request.config.getoption("--words")
    return Random(1).sample(sorted(words), min(count, len(words)))


def named_after(words: list[str], target: str, everywhere: bool = False) -> list[Generated]:
    """Code for a kernel named after each word, and code in which the words are the other names.

    everywhere: each word stands in each place; else in one of them, and as the kernel's name.
    """
    words = [w for w in dict.fromkeys(words) if w not in NO_NAMES and len(w) <= 60]
    names = [[words[(k + j) % len(words)] for j in range(7)] for k in range(0, len(words), 1 if everywhere else 6)]
    own = "every" if everywhere else "some"
    kernels = [kernel_of(NAMED.format(f"{own}_{k}", *of[1:])) for k, of in enumerate(names)]
    plain = kernel_of(NAMED.format(*"kabcdef"))
    kernels += [replace(plain, name=word) for word in words]
    return [generate(kernel, target) for kernel in kernels]


@pytest.mark.thorough
@needs_gcc
def test_c(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    standards = (["-std=c11"], ["-std=gnu17", "-D_GNU_SOURCE"])
    words = set().union(*(declared(["gcc", *flags, "-fopenmp", "-x", "c"], C_HEADERS) for flags in standards))
    assert len(words) > 1000
    codes = named_after(some(words, request), "c") + named_after(KEYWORDS + OWN, "c", everywhere=True)
    texts = {code.function: code.source for code in codes}
    file, library = tmp_path / "all.c", str(tmp_path / "all.so")
    file.write_text("\n".join(texts.values()), encoding="utf-8")
    for flags in standards:
        command = ["gcc", *flags, "-O0", "-fopenmp", "-Wall", "-Werror", "-Wno-unused", "-shared", "-fPIC", str(file)]
        done = subprocess.run([*command, "-o", library, "-lm"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]


def test_cuda(compiler: Compile, request: pytest.FixtureRequest) -> None:
    words: set[str] = set()
    if shutil.which("nvcc") is not None:
        words |= declared(["nvcc", "-x", "cu"], CUDA_HEADERS)
    if shutil.which("g++") is not None:
        words |= declared(["g++", "-x", "c++"], C_HEADERS)
    everywhere = request.config.option.thorough
    known = KEYWORDS + OWN if everywhere else (KEYWORDS + OWN)[::3]
    codes = named_after(some(words, request), "cuda") + named_after(known, "cuda", everywhere)
    shared = ["typedef long long index_t;  // 64 bits wherever it runs", COMPLEX]
    sources = {code.function: code.source for code in codes}
    for text in shared:
        sources = {name: source.replace(text, "") for name, source in sources.items()}
    assert compiler("\n".join([CUDA_HEADERS, *shared, *sources.values()])) == ""


def test_python(request: pytest.FixtureRequest) -> None:
    words = [*keyword.kwlist, *keyword.softkwlist, *dir(builtins)]
    everywhere = request.config.option.thorough
    if everywhere:
        words += [*dir(math), *(w for w in dir(np) if not w.startswith("_"))]
    for code in named_after(words, "python") + named_after(KEYWORDS + OWN, "python", everywhere):
        compile(code.source, code.function, "exec")
    for at in range(0, len(keyword.kwlist), 7):
        names = (keyword.kwlist * 2)[at : at + 7]
        if not set(names) & NO_NAMES:
            kernel = kernel_of(NAMED.format(*names))
            Case(kernel, {names[1]: 5}).check(Interpreted(), generate(kernel, "python"))


@pytest.mark.parametrize("names", [OWN[k : k + 7] for k in range(0, len(OWN) - 7, 7)], ids=lambda n: n[0])
def test_names_of_our_own_in_python(names: list[str]) -> None:
    kernel = kernel_of(NAMED.format(*names))
    Case(kernel, {names[1]: 5}).check(Interpreted(), generate(kernel, "python"))


def test_numba_compiles_them() -> None:
    for names in (
        ["print", "len", "njit", "sum", "float", "int64", "np"],
        ["jit", "_", "__x", "a__x", "x", "x_", "id"],
    ):
        kernel = kernel_of(NAMED.format(*names))
        Case(kernel, {names[1]: 5}).check(Interpreted(compiled=True), generate(kernel, "python"))


@needs_gcc
def test_results_in_c(tmp_path: Path) -> None:
    """Names that are renamed stand for the same thing everywhere."""
    words = list(dict.fromkeys(KEYWORDS + OWN))
    kernels = [kernel_of(NAMED.format(*words[k : k + 7])) for k in range(0, len(words) - 7, 7)]
    codes = [generate(kernel, "c") for kernel in kernels]
    library = CLibrary(codes, tmp_path, ["-std=c11", "-O1"])
    for kernel, code in zip(kernels, codes, strict=True):
        Case(kernel, {kernel.parameters[0].name: 5}).check(library, code)


TILED = """kernel product(n, {0}):
    in {1}: f64[n, {0}], {2}: f64[{0}, n]
    inout {3}: f64[n, n]
    for {4} in range(n):
        for {5} in range(n):
            for {6} in range({0}):
                {3}[{4}, {5}] += {1}[{4}, {6}] * {2}[{6}, {5}]
    tile {4} by 4
    tile {5} by 4
    tile {6} by 4
"""


@pytest.mark.spread(1)
@needs_gxx
@pytest.mark.parametrize(
    "names",
    [
        ("p", "A", "tile_A", "sum", "i", "j", "k"),
        ("m", "shared", "x", "tile_x", "thread", "own_i", "at_0"),
        ("from_0", "sum", "p", "shared", "p2", "own_p2", "index_t"),
    ],
)
def test_results_of_tiles(names: tuple[str, ...], tmp_path: Path) -> None:
    kernel = kernel_of(TILED.format(*names))
    sizes = {"n": 7, names[0]: 9}
    code = generate(kernel, "cuda", "tiled", free=parallel_loops(kernel), sizes=sizes)
    Case(kernel, sizes).check(CudaLibrary([code], tmp_path), code)


def test_one_let_of_two_types() -> None:
    """Python knows no blocks; the second one's new name is none that the kernel has."""
    kernel = kernel_of(
        "kernel k(n):\n    in x_: f32[n], x_f32: f64[n]\n    out y: f64[n]\n    for i in range(n):\n"
        "        if i < 2:\n            let x = x_f32[i]\n            y[i] = x + x_[i]\n"
        "        else:\n            let x = x_[i]\n            y[i] = x + x_f32[i]\n"
    )
    Case(kernel, {"n": 6}).check(Interpreted(), generate(kernel, "python"))
