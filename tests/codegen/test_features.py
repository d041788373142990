"""Every part of the language, in every target, against the reference."""

from __future__ import annotations

import shutil
from functools import cache
from math import prod
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.c_flags import FLAGS
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.lang.diagnostics import CommandError
from tests.codegen.features import FEATURES, TILED
from tests.codegen.running import Case, CLibrary, CudaLibrary, Interpreted
from tests.oracle.loading import kernel_of

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile generated C with")
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
ALL = FEATURES | TILED
CHECKED = [f for f in FLAGS if f not in ("-O3", "-march=native")] + ["-O1", "-fopenmp"]


@cache
def case(name: str) -> Case:
    text, sizes = ALL[name]
    return Case(kernel_of(text), sizes)


def code(name: str, target: str, variant: str) -> Generated:
    kernel = case(name).kernel
    private = private_loops(kernel)
    return generate(kernel, target, variant, free=parallel_loops(kernel), private=private, sizes=case(name).params)


@pytest.mark.spread(7)
@pytest.mark.parametrize("name", ALL)
def test_python(name: str) -> None:
    result = case(name).check(Interpreted(), code(name, "python", "loops"))
    assert result.unverified == 0


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["whole", "functions", "complex", "reduced", "scalars", "names"])
def test_numba(name: str) -> None:
    case(name).check(Interpreted(compiled=True), code(name, "python", "loops"))


@pytest.mark.spread(1)
@needs_gcc
@pytest.mark.parametrize("variant", ["loops", "parallel"])
def test_c(variant: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    codes = []
    for name in ALL if pytestconfig.option.thorough else list(ALL)[1::2]:
        try:
            codes.append((name, code(name, "c", variant)))
        except CommandError:
            assert variant == "parallel"
    library = CLibrary([c for _, c in codes], tmp_path, CHECKED)
    for name, c in codes:
        case(name).check(library, c)


@needs_gxx
def test_cuda(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    names = list(ALL) if pytestconfig.option.thorough else {*list(ALL)[::3], "moved", "triangle"}
    codes = {name: code(name, "cuda", "naive") for name in names}
    library = CudaLibrary(list(codes.values()), tmp_path)
    for name, c in codes.items():
        case(name).check(library, c)
    assert set(codes["moved"].parallel) == {"i", "j"}
    assert set(codes["triangle"].parallel) == {"ii", "jj", "i", "j"}


@pytest.mark.thorough
@needs_gxx
def test_cuda_tiled(tmp_path: Path) -> None:
    codes = {name: code(name, "cuda", "tiled") for name in TILED}
    library = CudaLibrary(list(codes.values()), tmp_path)
    for name, c in codes.items():
        case(name).check(library, c)
        assert "__shared__" in c.source
    launch = next(codes["large"].launches(case("large").params))
    assert launch.shared_bytes == 2 * 64 * 64 * 8
    assert launch.block == (16, 16, 1)
    assert launch.grid == (2, 2, 1)


RAGGED = {
    "double": ("f64", {"n": 53, "b": 24}),
    "double complex": ("c128", {"n": 50, "b": 20}),
    "prime": ("f32", {"n": 61, "b": 17}),
    "smaller": ("f32", {"n": 50, "b": 11}),
}


@pytest.mark.thorough
@needs_gxx
def test_tiles_that_no_block_of_threads_divides(tmp_path: Path) -> None:
    """24 points along an axis are two rounds of 16 threads, the last 8 of which have no point. They must not read the
    tile, whose row ends there.
    """
    cases, codes = {}, {}
    for name, (type_, sizes) in RAGGED.items():
        text = f"""
kernel ragged_{name.replace(" ", "_")}(n, b):
    tile i, j, k by b
    in A, B: {type_}[n, n]
    inout C: {type_}[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""
        cases[name] = Case(kernel_of(text), sizes)
        kernel = cases[name].kernel
        codes[name] = generate(kernel, "cuda", "tiled", free=parallel_loops(kernel), sizes=sizes)
    library = CudaLibrary(list(codes.values()), tmp_path)
    for name, c in codes.items():
        cases[name].check(library, c)
    guarded = [name for name, c in codes.items() if "< ii + " in c.source]
    assert guarded == ["double", "double complex", "prime"]


FEWER_PARTS = 300
"""Instead of 1024 sums of blocks: more than a block's 256 threads, and a quarter of the threads to run one by one."""
SUMS = {
    "several": (
        """
kernel several(n, m):
    in A: f32[n, m], w: f64
    inout s: f64, low: f32
    out top: i64
    in K: i64[n]
    for i in range(n), j in range(m):
        let x = A[i, j] * w
        s -= x * x
        low min= A[i, j]
    top = K[0]
    for i in range(1, n):
        top max= K[i]
""",
        {"n": 131, "m": 61},
    ),
    "of_a_triangle": (
        """
kernel of_a_triangle(n):
    in A: c64[n, n]
    out s: c64
    s = A[0, 0]
    for i in range(n), j in range(i):
        s += A[i, j] * conj(A[j, i])
""",
        {"n": 57},
    ),
    "in_turns": (
        """
kernel in_turns(n, steps):
    in x: f64[n, steps]
    out y: f64[steps]
    temp s: f64
    for t in range(steps):
        s = 0
        for i in range(n):
            s += x[i, t]
        y[t] = s * s
""",
        {"n": 700, "steps": 3},
    ),
    "more_than_all_threads": (
        """
kernel more_than_all_threads(n):
    in x: i32[n]
    out s: i32
    s = 5
    for i in range(n):
        s += x[i]
""",
        {"n": 256 * FEWER_PARTS + 257},
    ),
    "of_nothing": (
        """
kernel of_nothing(n):
    in x: f64[n]
    out s: f64
    s = 3
    for i in range(1, n):
        s += x[i]
""",
        {"n": 1},
    ),
}


@pytest.mark.thorough
@needs_gxx
def test_sums_over_whole_nests_are_made_by_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = generate(kernel_of(SUMS["more_than_all_threads"][0]), "cuda")
    launches = list(full.launches({"n": 262_401}))
    assert [x.grid for x in launches] == [(1024, 1, 1), (1, 1, 1)] and launches[1].values == (1024,)
    for module in ("block_sums", "cuda_kernels"):
        monkeypatch.setattr(f"roofdsl.codegen.{module}.MOST_PARTS", FEWER_PARTS)
    cases = {name: Case(kernel_of(text), sizes) for name, (text, sizes) in SUMS.items()}
    codes = {n: generate(c.kernel, "cuda", free=parallel_loops(c.kernel)) for n, c in cases.items()}
    library = CudaLibrary(list(codes.values()), tmp_path)
    for name, code_ in codes.items():
        cases[name].check(library, code_)
        assert not any("one thread" in note for note in code_.notes), name
    launches = list(codes["more_than_all_threads"].launches({"n": 256 * FEWER_PARTS + 257}))
    assert [x.grid for x in launches] == [(FEWER_PARTS, 1, 1), (1, 1, 1)] and launches[1].values == (FEWER_PARTS,)
    assert [x.values for x in codes["of_nothing"].launches({"n": 1})] == [(0,)]
    assert codes["several"].parallel == ("j", "i")


@pytest.mark.parametrize(("loops", "dims", "place"), [
    ("i in range(n)", "n", "i"), ("i in range(m), j in range(n)", "m, n", "i, j"),
    ("i in range(7), j in range(n)", "7, n", "i, j"),
])  # fmt: skip
def test_launches_of_sums_stay_within_what_their_comment_allows(loops: str, dims: str, place: str) -> None:
    """A block's tree needs a power of two of threads, of which it holds 256; there is room for the parts of 1024."""
    head = f"kernel k(m, n):\n    in A: f64[{dims}]\n    inout s: f64\n    assume m >= 1, n >= 1\n"
    made = generate(kernel_of(f"{head}    for {loops}:\n        s += A[{place}]\n"), "cuda")
    assert "// Launch at most 1024 blocks, each of a power of two of at most 256 threads." in made.source
    assert "// One block of 256 threads joins the parts." in made.source
    for m in (1, 3, 96, 5000):
        for n in (1, 2, 31, 100, 257, 70_000, 1_000_003):
            parts, whole = made.launches({"m": m, "n": n})
            threads = prod(parts.block)
            assert threads <= 256 and threads & (threads - 1) == 0
            assert prod(parts.grid) <= 1024 and whole.values == (prod(parts.grid),)
            assert (whole.grid, whole.block) == ((1, 1, 1), (256, 1, 1))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "for i in range(n):\n        C[i] += 1\n        C[i] += A[i]",
            "its loops do not surround a single assignment",
        ),
        (
            "for i in range(n):\n        if i > 1:\n            C[i] += A[i]",
            "its loops do not surround a single assign",
        ),
        ("for i in range(n):\n        s += A[i]", "its loops do not surround a single assignment to an array"),
        (
            "for i in range(n):\n        C[i] += A[i]\n    tile i by 16",
            "no array that it reads has some and not all of",
        ),
        (
            "for i in range(n):\n        C[i] += A[0]\n    tile i by 16",
            "no array that it reads has some and not all of",
        ),
    ],
)
def test_why_a_kernel_has_no_tiles(body: str, reason: str) -> None:
    kernel = kernel_of(f"kernel k(n):\n    in A: f64[n]\n    inout C: f64[n], s: f64\n    assume n >= 1\n    {body}\n")
    with pytest.raises(CommandError, match=f"kernel k has no variant `tiled`: {reason}"):
        generate(kernel, "cuda", "tiled", free=parallel_loops(kernel), sizes={"n": 100})
