"""The variant `grouped`: neighboring sums together, with the same terms in the same order, and only where it helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.load import load_python
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from tests.codegen.running import Arrays, Case, CLibrary
from tests.oracle.loading import kernel_of

PRODUCT = """
kernel product(m, n, k):
    in A: {a}[m, k], B: {b}[k, n]
    {intent} C: {c}[m, n]
    for i in range(m), j in range(n):
{begin}        for p in range(k):
            C[i, j] += A[i, p] * B[p, j]
{end}"""
BEGIN, END = "        C[i, j] = 0\n", "        C[i, j] *= 2\n"

CONVOLUTION = """
kernel convolution(h, f, c):
    in X: bf16[h + 2, c], G: bf16[3, c, f], s: f32
    out Y: bf16[h, f]
    for i in range(h), o in range(1, f):
        Y[i, o] = s
        for q in range(3), d in range(c):
            Y[i, o] += X[i + q, d] * G[q, d, o]
        Y[i, o] max= 0
    for i in range(h):
        Y[i, 0] = 1
"""

TRIANGLE = """
kernel triangle(n):
    in A: f64[n, n] col, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(i):
        for k in range(i):
            C[i, j] += A[k, i] * B[k, j]
        for k in range(0, n, 2):
            C[i, j] -= A[j, k] * B[k, j] * j
"""

NAMES = """
kernel names(n, j_part):
    in A, B: f16[n, n]
    out C: f16[n, n], C_part: f16[n, n]
    for i in range(n), j in range(n):
        C[i, j] = 0
        for k in range(n):
            C[i, j] += A[i, k] * B[k, j]
    for i in range(n), j in range(n):
        C_part[i, j] = j_part
        for k in range(n):
            C_part[i, j] += A[i, k] * B[k, j]
"""


def grouped(kernel: Kernel, target: str) -> Generated:
    return generate(kernel, target, "grouped", free=parallel_loops(kernel))


def kernels() -> list[tuple[Kernel, list[dict[str, int]]]]:
    sizes = [{"m": 2, "n": n, "k": 5} for n in (1, 7, 1030)]
    found = []
    for a, b, c, intent, begin, end in (
        ("f64", "f64", "f64", "inout", "", ""),
        ("f16", "f16", "f32", "out", BEGIN, END),
        ("f16", "f32", "f16", "inout", "", ""),
        ("i8", "i8", "i32", "out", BEGIN, ""),
        ("c64", "c64", "c64", "inout", "", END),
    ):
        text = PRODUCT.format(a=a, b=b, c=c, intent=intent, begin=begin, end=end)
        found.append((kernel_of(text.replace("product", f"product_{a}_{b}_{c}")), sizes))
    found.append((kernel_of(CONVOLUTION), [{"h": 3, "f": 600, "c": 4}, {"h": 1, "f": 1, "c": 1}]))
    found.append((kernel_of(TRIANGLE), [{"n": n} for n in (1, 2, 23)]))
    found.append((kernel_of(NAMES), [{"n": n, "j_part": 3} for n in (1, 23)]))
    return found


def test_c_computes_the_same(tmp_path: Path) -> None:
    made = [(kernel, grouped(kernel, "c"), sizes) for kernel, sizes in kernels()]
    library = CLibrary([generated for _, generated, _ in made], tmp_path, ("-std=c11", "-O1"))
    for kernel, generated, sizes in made:
        assert generated.parallel == ()
        for params in sizes:
            Case(kernel, params).check(library, generated, told=False)


def test_python_computes_the_same() -> None:
    (kernel, sizes), *_ = kernels()
    generated = grouped(kernel, "python")
    function = load_python(generated).py_func

    def call(code: Generated, arrays: Arrays, params: dict[str, int]) -> None:
        function(*(params[a.name] if a.role == "parameter" else arrays[a.name] for a in code.arguments))

    for params in sizes[:2]:
        Case(kernel, params).check(call, generated, told=False)


def test_the_innermost_loop_runs_along_rows_and_terms_keep_their_order() -> None:
    (kernel, _), *_ = kernels()
    lines = [line.strip() for line in grouped(kernel, "c").source.splitlines() if line.strip().startswith("for")]
    assert lines == [
        "for (int64_t i = 0; i < m; ++i) {",
        "for (int64_t j_part = 0; j_part < n; j_part += 512) {",
        "for (int64_t p = 0; p < k; ++p) {",
        "for (int64_t j = j_part; j < min_index(j_part + 512, n); ++j) {",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "C[i, j] += A[i, p] * B[j, p]",  # the sum itself runs along rows
        "C[j, i] += A[i, p] * B[p, j]",  # the results do not
        "C[i, 0] += A[i, p] * B[p, j]",  # they are one
        "C[i, j] += A[i, p] * C[p, j]",  # they depend on each other
    ],
)
def test_other_sums_are_left_alone(body: str) -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
        f"    for i in range(n), j in range(n), p in range(n):\n        {body}\n"
    )
    with pytest.raises(CommandError, match="no sums that the variant `grouped` could compute"):
        grouped(kernel, "c")
