"""Loops in steps whose slices or elements stay in the array only if the length is a multiple of the step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TEXT = """\
def blocked(A, B, C, n, bs):
    for i in range(0, n, bs):
        for j in range(0, n, bs):
            for k in range(0, n, bs):
                C[i:i+bs, j:j+bs] += A[i:i+bs, k:k+bs] @ B[k:k+bs, j:j+bs]

def fours(x, y, n):
    for i in range(2, n, 4):
        y[i:i+4] = x[i:i+4] * 2.0

def pairs(x, y, n):
    for i in range(0, n, 2):
        y[i] = x[i] + x[i + 1]

def asserted(x, y, n):
    assert n % 4 == 0
    for i in range(n):
        y[i] = x[i]

def beyond(x, y, n):
    for i in range(0, n, 2):
        y[i:i+3] = x[i:i+3] * 2.0

def backwards(x, y, n):
    for i in range(n - 1, -1, -2):
        y[i] = x[i] + x[i - 1]

def inner(x, y, n, b):
    for i in range(0, n, b):
        for ii in range(i, i + b):
            y[ii] = x[ii] * 2.0

def twice(x, y, n, b, c):
    for i in range(0, n, b):
        for ii in range(i, i + b, c):
            for k in range(ii, ii + c):
                y[k] = x[k] * 2.0

def equal(x, y, n, m):
    assert n == m
    for i in range(n):
        y[i] = x[i] * m

def whole(x, y, n):
    for i in range(0, n - n % 4, 4):
        for j in range(4):
            y[i + j] = x[i + j] * 2.0

def under_a_condition(x, y, n, m):
    if m > 3:
        assert n % 4 == 0
    for i in range(n):
        y[i] = x[i] * 2.0
"""


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "roofdsl", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "shapes", "assumed"),
    [
        ("blocked", ("A=n,n:f64", "B=n,n:f64", "C=n,n:f64"), "assume n % bs == 0"),
        ("fours", ("x=n:f64", "y=n:f64"), "assume (n - 2) % 4 == 0"),
        ("pairs", ("x=n:f64", "y=n:f64"), "assume n % 2 == 0"),
        ("asserted", ("x=n:f64", "y=n:f64"), "assume n % 4 == 0"),
        ("backwards", ("x=n:f64", "y=n:f64"), "assume n % 2 == 0"),
        ("inner", ("x=n:f64", "y=n:f64"), "assume n % b == 0"),
        ("twice", ("x=n:f64", "y=n:f64"), "assume n % b == 0, b % c == 0"),
        ("equal", ("x=n:f64", "y=n:f64"), "assume n == m"),
    ],
)
def test_the_multiple_is_assumed_and_the_function_computes_the_same(
    name: str, shapes: tuple[str, ...], assumed: str, tmp_path: Path
) -> None:
    """Without the assumption, the kernel of `blocked` had `assume bs <= 1`; the others were refused, or illegal."""
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    given = [part for shape in shapes for part in ("--shape", shape)]
    said = ran("convert", f"{file}:{name}", *given, "--verify")
    assert said.returncode == 0, said.stderr
    assert f"    {assumed}\n" in said.stdout
    assert "verified" in said.stdout + said.stderr
    assert ran("derive", f"{file}:{name}", *given).returncode == 0


def test_a_length_that_is_a_multiple_needs_no_assumption(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    said = ran("convert", f"{file}:whole", "--shape", "x=n:f64", "--shape", "y=n:f64")
    assert said.returncode == 0 and "assume" not in said.stdout


def test_an_assertion_under_a_condition_is_refused(tmp_path: Path) -> None:
    """It was assumed for every call."""
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    said = ran("convert", f"{file}:under_a_condition", "--shape", "x=n:f64", "--shape", "y=n:f64")
    assert said.returncode != 0 and "does not hold for every call" in said.stderr


def test_what_no_multiple_helps_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    given = ["--shape", "x=n:f64", "--shape", "y=n:f64"]
    said = ran("convert", f"{file}:beyond", *given)
    assert said.returncode != 0 and "this may be beyond the end" in said.stderr


C_TEXT = """\
#include <assert.h>
void blocks(int n, int b, const double *x, double *y) {
  for (int i = 0; i < n; i += b) for (int ii = i; ii < i + b; ii++) y[ii] += x[ii];
}
void fours(int n, double x[n], double y[static n]) {
  for (int i = 0; i < n; i += 4) { y[i] += x[i]; y[i+1] += x[i+1]; y[i+2] += x[i+2]; y[i+3] += x[i+3]; }
}
void twice(int n, int b, int c, double y[n]) {
  for (int i = 0; i < n; i += b) for (int j = i; j < i + b; j += c) for (int k = j; k < j + c; k++) y[k] += 1;
}
void tiles(int n, int b, const double *A, const double *B, double *C) {
  for (int i = 0; i < n; i += b) for (int j = 0; j < n; j += b) for (int k = 0; k < n; k += b)
    for (int ii = i; ii < i + b; ii++) for (int jj = j; jj < j + b; jj++) for (int kk = k; kk < k + b; kk++)
      C[ii*n + jj] += A[ii*n + kk] * B[kk*n + jj];
}
void backwards(int n, double *x, double *y) { for (int i = n - 1; i >= 0; i -= 2) y[i] = x[i] + x[i-1]; }
void asserted(int n, int m, int b, const double *x, double *y) {
  assert(x); assert(n % b == 0 && "blocks"); assert(n > 0 && m >= n); assert(x[0] > 0);
  for (int i = 0; i < n; i++) y[i] += x[m - i - 1] * b;
}
void left(int n, int m, double *y) { if (n < m || n % 4 != 0) return; for (int i = m; i < n; i++) y[i - m] = 1; }
void rows(int n, int lda, double *A) {
  assert(lda >= n);
  for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) A[i + j*lda] += 1;
}
"""
C_CUT = """\
#include <assert.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
void cut(int n, int b, double *x) {
  assert(n % b == 0);
  for (int i = 0; i < n; i += b) for (int ii = i; ii < MIN(i + b, n); ii++) x[ii] += 1;
}
void fixed(double x[512]) {
  for (int i = 0; i < 512; i += 64) for (int ii = i; ii < MIN(512, i + 64); ii++) x[ii] += 1;
}
void first(int n, double x[n]) { for (int i = 1; i < n; i++) for (int j = MAX(i, 1); j < n; j++) x[j] += 1; }
void same(int n, double x[n]) { for (int i = 0; i < MIN(n, n); i++) x[i] += 1; }
void rest(int n, double x[n]) {
  for (int i = 0; i < n; i += 64) for (int ii = i; ii < MIN(i + 64, n); ii++) x[ii] += 1;
}
void two(int n, int m, double x[n]) { for (int i = 0; i < MIN(n, m); i++) x[i] += 1; }
"""
PY_CUT = """
def cut(x, n: int, b: int):
    assert n % b == 0
    for i in range(0, n, b):
        for ii in range(i, min(i + b, n)):
            x[ii] += 1
"""


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        ("cut", "range(i, i + b)"),
        ("fixed", "range(i, i + 64)"),
        ("first", "range(i, n)"),
        ("same", "range(n)"),
        ("rest", "range(i, min(i + 64, n))"),
        ("two", "range(min(n, m))"),
    ],
)
def test_bounds_that_never_matter_are_left_out(name: str, loop: str, tmp_path: Path) -> None:
    """`min(i + b, n)` is i + b if b divides n. With `min`, W and the lower bound had no closed form in b."""
    file = tmp_path / "code.c"
    file.write_text(C_CUT)
    said = ran("convert", f"{file}:{name}", "--verify")
    assert said.returncode == 0 and "verified" in said.stdout + said.stderr, said.stderr
    assert f" in {loop}" in said.stdout, said.stdout


def test_python_leaves_them_out_as_well(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(PY_CUT)
    said = ran("convert", str(file), "--shape", "x=n", "--verify")
    assert said.returncode == 0 and "verified" in said.stdout + said.stderr, said.stderr
    assert "ii in range(i, i + b)" in said.stdout, said.stdout


C_NOTHING = """\
#include <stddef.h>
#include <math.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
void cut(int n, int b, double *C) {
  for (int i = 0; i < n; i += b) for (int j = 0; j < n; j += b)
    for (int ii = i; ii < MIN(i + b, n); ii++) for (int jj = j; jj < (j + b < n ? j + b : n); jj++) C[ii*n + jj] += 1;
}
void cut_double(int n, int b, double C[n]) {
  for (int i = 0; i < n; i += b) for (int ii = i; ii < fmin(i + b, n); ii++) C[ii] += 1;
}
void red(int n, double *u) { for (int i = 1; i < n - 1; i += 2) u[i] = u[i-1] + u[i+1]; }
void rest(int n, double y[n]) {
  int i;
  for (i = 0; i < n - n % 4; i += 4) { y[i] += 1; y[i+3] += 1; }
  for (; i < n; i++) y[i] += 1;
}
void number(double x[1024]) { for (int i = 0; i < 1022; i += 4) for (int j = 0; j < 4; j++) x[i+j] += 1; }
void room(size_t n, double *y) { for (size_t i = 0; i + 1 < n; i += 2) { y[i] += 1; y[i+1] += 2; } }
void room_before(int n, double *y) { for (int i = 0; i <= n - 2; i += 2) { y[i] += 1; y[i+1] += 2; } }
void twos(size_t n, double y[n]) { for (size_t i = 0; i + 1 < n; i += 2) { y[i] += 1; y[i+1] += 2; } }
void unless(int n, int flag, double y[n]) { if (flag > 1) for (int i = 0; i < n; i += 2) y[i + 1] += 1; }
"""


@pytest.mark.parametrize(
    ("name", "assumed", "declared"),
    [
        ("blocks", "n % b == 0", "y: f64[n]"),
        ("fours", "n % 4 == 0", "y: f64[n]"),
        ("twice", "n % b == 0, b % c == 0", "y: f64[n]"),
        ("tiles", "n % b == 0", "C: f64[n, n]"),
        ("backwards", "n % 2 == 0", "x: f64[n]"),
        ("asserted", "m >= n, n % b == 0", "x: f64[m]"),
        ("left", "n >= m, n % 4 == 0", "y: f64[n - m]"),
        ("rows", "lda >= n", "A: f64[n, lda]"),
    ],
)
def test_c_assumes_the_same(name: str, assumed: str, declared: str, tmp_path: Path) -> None:
    """Without the assumption, the unsized arrays had n + b - 1 elements, and the declared ones were left."""
    file = tmp_path / "code.c"
    file.write_text(C_TEXT)
    said = ran("convert", f"{file}:{name}", "--verify")
    assert said.returncode == 0, said.stderr
    assert f"    assume {assumed}\n" in said.stdout and declared in said.stdout
    assert "verified" in said.stdout + said.stderr
    assert ran("derive", f"{file}:{name}").returncode == 0


@pytest.mark.parametrize(
    "name", ["cut", "cut_double", "red", "rest", "number", "twos", "room", "room_before", "unless"]
)
def test_c_assumes_nothing_without_need(name: str, tmp_path: Path) -> None:
    file = tmp_path / "code.c"
    file.write_text(C_NOTHING)
    said = ran("convert", f"{file}:{name}")
    assert said.returncode == 0 and "assume" not in said.stdout, said.stdout + said.stderr
    assert "n + b - 1" not in said.stdout
