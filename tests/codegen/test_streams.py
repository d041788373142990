"""Stores that bypass the caches in generated code: the instructions for them, whole lines, and the same results."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.c_flags import WITHOUT, assembly, flags_for
from roofdsl.codegen.generate import generate
from roofdsl.codegen.system_c_compiler import find_compiler
from roofdsl.lang.diagnostics import CommandError
from tests.codegen.running import Case, CLibrary
from tests.oracle.loading import kernel_of

TYPES = ("f64", "f32", "f16", "i8", "c128")
SIMPLE = """
kernel simple_{type}(n, m):
    in b: {type}[m, n + 1]
    out a: {type}[m, n]
    for i in range(m), j in range(n):
        stream a[i, j] = b[i, j + 1]
"""

SEVERAL = """
kernel several(n, m):
    in b, c: f64[n, m], x: f32[m]
    out u: f64[n, m + 1], v: f32[n, m], w: i8[n, m], z: f64[n]
    inout y: f64[n]
    for i in range(n):
        for j in range(1, m):
            let t = b[i, j] * c[i, m - 1 - j]
            stream u[i, j - 1] = t
            y[i] += t
            stream v[i, j] = x[j] - 1
            stream w[i, j] = j
        stream z[i] = y[i]
"""

INSIDE = """
kernel inside(n):
    in b: f64[n, n]
    out a: f64[n, n], t: f64[n, n] col
    assume n >= 3
    tile i, j by 24
    for i in range(1, n - 1), j in range(1, n - 1):
        stream a[i, j] = b[i, j] + b[j, i]
"""

COLUMNS = """
kernel columns(n, m):
    in b: f64[n, m], x: f64[n]
    out t: f64[n, m] col, d: f64[n]
    for j in range(m), i in range(j % 3, n):
        stream t[i, j] = b[i, j] + 1
    for i in range(n):
        let s = x[i] * 2
        stream d[i] = select(s > 1, s, 1)
"""

ON_X86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other instructions")


def texts() -> dict[str, tuple[str, list[dict[str, int]]]]:
    sizes = [{"n": n, "m": m} for n, m in ((1, 3), (7, 2), (64, 3), (130, 5))]
    found = {f"simple_{t}": (SIMPLE.format(type=t), sizes) for t in TYPES}
    wide = [{"n": n, "m": m} for n, m in ((3, 1), (2, 65), (5, 131))]
    found["several"] = (SEVERAL, wide)
    found["inside"] = (INSIDE, [{"n": n} for n in (3, 20, 71)])
    found["columns"] = (COLUMNS, [{"n": n, "m": m} for n, m in ((1, 4), (70, 5))])
    return found


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("flags", "names"), [(("-O1",), ("simple_f64", "several")), (("-O1", "-march=native"), tuple(texts()))]
)
def test_results_are_those_of_numpy(tmp_path: Path, flags: tuple[str, ...], names: tuple[str, ...]) -> None:
    made = {name: (kernel_of(text), sizes) for name, (text, sizes) in texts().items() if name in names}
    codes = {name: generate(kernel, "c") for name, (kernel, _) in made.items()}
    library = CLibrary(list(codes.values()), tmp_path, ("-std=c11", *flags))
    for name, (kernel, sizes) in made.items():
        for params in sizes:
            Case(kernel, params).check(library, codes[name], told=False)


def test_on_several_threads(tmp_path: Path) -> None:
    kernel = kernel_of(SEVERAL)
    generated = generate(kernel, "c", "parallel", free=parallel_loops(kernel))
    assert generated.parallel == ("i",)
    library = CLibrary([generated], tmp_path, ("-std=c11", "-O1", "-fopenmp"))
    Case(kernel, {"n": 13, "m": 90}).check(library, generated, told=False)


def test_the_innermost_loop_itself_is_divided(tmp_path: Path) -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in b: f32[n]\n    out a: f32[n]\n    for i in range(n):\n        stream a[i] = b[i] + 1\n"
    )
    generated = generate(kernel, "c", "parallel", free=parallel_loops(kernel))
    assert generated.parallel == ("i",)
    assert re.search(r"#pragma omp parallel for\n *for \(int64_t i_line", generated.source)
    Case(kernel, {"n": 1001}).check(CLibrary([generated], tmp_path, ("-std=c11", "-O1", "-fopenmp")), generated)


def compiled(text: str, *flags: str) -> str:
    code = assembly(find_compiler(WITHOUT), (*flags_for("relaxed"), *flags), generate(kernel_of(text), "c").source)
    return "\n".join(line for line in code.splitlines() if not line.startswith("\t."))


@pytest.mark.spread(1)
@ON_X86
@pytest.mark.parametrize("type_", ["f64", "f32", "f16", "i8"])
def test_the_instructions_for_them_are_in_the_assembly(type_: str) -> None:
    text = SIMPLE.format(type=type_)
    code = compiled(text)
    assert re.search(r"\bv?movnt(dq|ps|pd)\s+%[xyz]mm", code), "vectors go from registers past the caches"
    assert "sfence" in code
    plain = compiled(text.replace("stream ", ""))
    assert "movnt" not in plain
    assert "sfence" not in plain


@pytest.mark.spread(1)
@ON_X86
@pytest.mark.parametrize("flags", [(), ("-mtune=znver1",)])
def test_a_loop_computes_vectors_between_them(flags: tuple[str, ...]) -> None:
    """Between two labels stand the arithmetic in vectors and the store of the result, and no detour by memory; also
    where the compiler prefers vectors of 16 bytes, although there are longer ones.
    """
    text = SIMPLE.format(type="f64").replace("b[i, j + 1]", "3 * b[i, j + 1]")
    bodies = re.split(r"^\.?\w+:$", compiled(text, *flags), flags=re.MULTILINE)
    (body,) = [b for b in bodies if "movnt" in b]
    assert re.search(r"v?mul(pd)\s", body)
    assert "sp)" not in body


def test_cuda_stores_as_usual() -> None:
    text = SIMPLE.format(type="f32")
    assert generate(kernel_of(text), "cuda").notes[-1] == "cuda: `stream` stores are made as usual"
    as_usual = generate(kernel_of(text.replace("stream ", "")), "cuda").source
    shown = generate(kernel_of(text), "cuda").source
    assert re.sub(r" *// line .*\n", "", shown) == re.sub(r" *// line .*\n", "", as_usual)


def test_python_has_none() -> None:
    with pytest.raises(CommandError, match="which python cannot make") as caught:
        generate(kernel_of(SIMPLE.format(type="f64")), "python")
    assert "--to c" in (caught.value.help or "")


def test_code_is_refused_where_they_fill_no_lines() -> None:
    text = SIMPLE.format(type="f64").replace("for i in range(m), j in range(n)", "for j in range(n), i in range(m)")
    with pytest.raises(CommandError, match="fill no lines: the innermost loop, over `i`"):
        generate(kernel_of(text), "c")
