"""C files in commands: names, macros, headers, places of messages, and what documents say of them."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.frontends.c.read import read
from roofdsl.lang.codes import C_CODES
from roofdsl.lang.diagnostics import InputError, render
from roofdsl.lang.write import written
from tests.frontends.test_refused import CASES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/c.md").read_text(encoding="utf-8")
TWO = """
#include <stdio.h>
#include "sizes.h"
#include <beside.h>
#ifndef FACTOR
#error no factor
#endif
static double twice(double x) { return FACTOR * x; }
void scale(int n, double *a) { for (int i = 0; i < n; i++) a[i] = twice(a[i]); }
void clear(double a[SIZE]) { for (int i = 0; i < SIZE; i++) a[i] = OFFSET; }
int main(void) { double a[SIZE]; for (int i = 0; i < 3; i++) printf("%d", i); return 0; }
"""


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two.c").write_text(TWO)
    (tmp_path / "beside.h").write_text("#define OFFSET 1.5\n")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "sizes.h").write_text("#pragma once\n#define SIZE 100\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SCALE = "kernel scale(n):\n    inout a: f64[n]\n    for i in range(n):\n        a[i] = 3 * a[i]\n"
CLEAR = "kernel clear():\n    out a: f64[100]\n    for i in range(100):\n        a[i] = 1.5\n"


@pytest.mark.parametrize("compiler", ["cc", "none"])
def test_convert(compiler: str, two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Macros, headers and stubs mean the same to the compiler's preprocessor and to pcpp."""
    if compiler == "none":
        monkeypatch.setenv("PATH", str(two))
        monkeypatch.delenv("CC", raising=False)
    assert run(["-D", "FACTOR=3", "convert", "two.c", "-Iinclude"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == f"{SCALE}\n{CLEAR}"
    assert run(["convert", "two.c:clear", "-o", "clear.roof", "-DFACTOR=3", "-I", "include"]) == 0
    assert (two / "clear.roof").read_text() == CLEAR
    capsys.readouterr()
    assert run(["convert", "two.c", "-I", "include"]) == 1
    assert "two.c:6:2: error[c-syntax]: #error no factor" in capsys.readouterr().err.replace("two.c:6:1:", "two.c:6:2:")


def test_options_hold_for_one_command(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "two.c", "-D", "FACTOR=2", "-I", "include"]) == 0
    assert "two.c: ok (2 kernels)" in capsys.readouterr().out
    assert run(["check", "two.c"]) == 1
    assert "sizes.h: No such file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convert", "two.c", "-D", "3=4"], "is not of the form `-D NAME or -D NAME=VALUE`"),
        (["convert", "two.c", "-I"], "is not of the form `-I FOLDER`"),
        (["convert", "two.c:scael", "-D", "FACTOR=2", "-I", "include"], "did you mean `scale`?"),
        (["convert", "none.c"], "there is no file or shipped kernel named `none.c`"),
        (["bound", "two.c:matmul", "-I", "include", "-D", "FACTOR=2"], "has no function `matmul`"),
    ],
)
def test_wrong_arguments(arguments: list[str], said: str, two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


def test_steps_quote_the_users_lines(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["derive", "two.c:scale", "--steps", "-D", "FACTOR=2", "-I", "include"]) == 0
    assert "a[i] = twice(a[i])" in capsys.readouterr().out


def test_a_macro_points_at_its_use(tmp_path: Path) -> None:
    path = tmp_path / "macro.c"
    lines = ["#define BAD(x) ((x) >> 1)", "void f(int n, double *a) {", "\tfor (int i = 0; i < n; i++)  /* c */"]
    path.write_text("\n".join([*lines, "    a[ BAD(i) ]   = 1; }  // end", ""]))
    with pytest.raises(InputError) as caught:
        read(str(path))
    shown = render(caught.value.source, caught.value.diagnostics[0]).splitlines()
    assert shown[0].startswith(f"{path}:4:8: error[c-integer]")
    assert shown[1].endswith("    a[ BAD(i) ]   = 1; }  // end")
    assert shown[2] == "     |        ^^^^^^"


def test_a_function_of_a_header_is_quoted_there(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text("\nstatic double g(double x) { while (x > 0) x = x - 1; return x; }\n")
    path = tmp_path / "f.c"
    path.write_text('#include "h.h"\nvoid f(int n, double *a) { for (int i = 0; i < n; i++) a[i] = g(a[i]); }\n')
    with pytest.raises(InputError) as caught:
        read(str(path))
    assert caught.value.source.name.endswith("h.h")
    assert caught.value.diagnostics[0].span.line == 2


def test_nothing_of_c_is_imported_for_roof_files() -> None:
    program = (
        "import sys; from roofdsl.cli.main import run; run(['check', 'models/kernels/gemv.roof']);"
        "assert not [m for m in sys.modules if m.startswith(('pycparser', 'pcpp', 'roofdsl.frontends.c'))]"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_code_is_documented_and_shown() -> None:
    section = PAGE[PAGE.index("\n## Diagnostics\n") :]
    assert re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section, re.MULTILINE) == list(C_CODES.items())
    assert {code for _, code, _ in CASES.values()} == set(C_CODES)


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(
        r"\$ cat gemv\.c\n(.*?)\$ roofdsl convert gemv\.c\n(.*?)\$ roofdsl (predict .*?)\n\.\.\.\n```", PAGE, re.S
    )
    assert found is not None
    monkeypatch.chdir(tmp_path)
    Path("gemv.c").write_text(found[1])
    assert run(["convert", "gemv.c"]) == 0
    assert capsys.readouterr().out == found[2]
    assert run(found[3].split()) == 0


def summing(terms: int) -> str:
    total = "a[i] + " * (terms - 1) + "a[i]"
    return f"void f(int n, double *a) {{ for (int i = 0; i < n; i++) a[i] = {total}; }}\n"


@pytest.mark.parametrize(
    ("terms", "command", "said"),
    [
        (250, "convert", "kernel f cannot be written out: an expression is nested deeper than the limit of 200"),
        (1500, "convert", "sum.c:1:1: error[limit-nesting]"),
        (1500, "derive", "sum.c:1:1: error[limit-nesting]"),
    ],
)
def test_sums_of_many_terms(
    terms: int, command: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sum.c"
    path.write_text(summing(terms))
    assert run([command, str(path)]) in {1, 2}
    told = capsys.readouterr().err
    assert said in told and "RecursionError" not in told and "<changed>" not in told


def test_a_sum_too_long_to_be_written_out_is_still_derived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sum.c"
    path.write_text(summing(250))
    assert run(["derive", str(path)]) == 0
    assert "249*n" in capsys.readouterr().out


def test_tiles_are_written_into_roof_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    loops = " ".join(f"for (int {v} = 0; {v} < n; {v}++)" for v in "ijk")
    body = f"{loops} C[i][j] += A[i][k] * B[k][j];"
    Path("mm.c").write_text(f"void mm(int n, double A[n][n], double B[n][n], double C[n][n]) {{ {body} }}\n")
    assert run(["bound", "mm.c", "--cache", "32KiB", "--apply"]) == 2
    assert "roofdsl convert mm.c:mm -o mm.roof" in capsys.readouterr().err
    assert run(["convert", "mm.c:mm", "-o", "mm.roof"]) == 0
    assert run(["bound", "mm.roof", "--cache", "32KiB", "--apply"]) == 0
    assert "tile i, j by" in capsys.readouterr().out


def test_fmt_leaves_c_alone(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (two / "two.c").read_text()
    assert run(["fmt", "two.c"]) == 2
    assert "`roofdsl convert two.c` reads it" in capsys.readouterr().err
    assert (two / "two.c").read_text() == before


def _user_seconds(arguments: list[str]) -> float:
    """Processor time that a command takes as a process, its own children with it, without the system's part."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-m", "roofdsl", *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


@pytest.mark.thorough
def test_predicting_c_takes_hardly_longer(tmp_path: Path) -> None:
    """At most 1.5 times what the same loops in a .roof file take, reading the C included."""
    code, model = tmp_path / "gemm.c", tmp_path / "gemm.roof"
    code.write_text(
        "void gemm(int n, double C[n][n], double A[n][n], double B[n][n]) {\n"
        "  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)\n"
        "    for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];\n}\n"
    )
    assert run(["convert", str(code), "-o", str(model)]) == 0
    options = ["--machine", "v100", "--set", "n=60"]
    of_model = min(_user_seconds(["predict", str(model), *options]) for _ in range(2))
    of_code = min(_user_seconds(["predict", str(code), *options]) for _ in range(2))
    assert of_code <= 1.5 * of_model


@pytest.mark.parametrize(
    ("begin", "before", "after", "intent"),
    [
        ("for (int k = 0; k < m; k++) {", "b[k] = s;", "}", "out"),
        ("for (int k = 0; k < m; k++) {", "", "b[k] = s; }", "out"),
        ("while (s < 3.0) {", "", "}", "out"),
        ("do {", "", "} while (s < 3.0);", "out"),
        ("for (int k = 0; k < s; k++) {", "", "}", "out"),
        ("for (int k = s; k < m; k++) {", "", "}", "temp"),  # before the first iteration only
        ("for (int k = 0; k < m; k++) {", "s = 1.0;", "}", "temp"),  # overwritten
        ("{", "b[0] = s;", "}", "temp"),  # no loop
    ],
)
def test_a_scalar_that_the_next_iteration_around_the_region_reads_is_a_result(
    begin: str, before: str, after: str, intent: str, tmp_path: Path
) -> None:
    """By hand: the value of s from the region is used, or never."""
    (tmp_path / "around.c").write_text(
        f"void f(int n, int m, double a[n], double b[m]) {{\ndouble s = 0.0;\n{begin}\n{before}\n#pragma scop\n"
        f"s = 0.0; for (int i = 0; i < n; i++) s += a[i]; a[0] = s;\n#pragma endscop\n{after}\n}}\n"
    )
    kernel = read(str(tmp_path / "around.c"), None).kernels["f"]
    assert f"    {intent} s: f64\n" in written(kernel)


def test_a_function_that_would_be_read_too_often_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its array's dimensions are known after the first reading, which a second one uses."""
    (tmp_path / "a.c").write_text(
        "void f(int n, int m, double *a) {\n"
        "    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * m + j] = 0.0;\n}\n"
    )
    assert read(str(tmp_path / "a.c"), None).kernels
    monkeypatch.setattr("roofdsl.frontends.c.kernel._MOST_RUNS", 1)
    with pytest.raises(InputError) as refused:
        read(str(tmp_path / "a.c"), None)
    (found,) = refused.value.diagnostics
    assert found.message == "the types and sizes in this function are not all known after reading it 1 times"
    assert found.help == "split it into smaller functions"
