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


def test_what_no_multiple_helps_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    given = ["--shape", "x=n:f64", "--shape", "y=n:f64"]
    said = ran("convert", f"{file}:beyond", *given)
    assert said.returncode != 0 and "this may be beyond the end" in said.stderr
