"""A function that cannot be read does not hide that the others of its file can."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.cli.main import run

C = """
void good(int n, double x[n]) { for (int i = 0; i < n; i++) x[i] = 0; }
void bad(int n, double x[n]) { for (int i = 0; x[i] > 0; i++) x[i] = 0; }
"""
PYTHON = """
def good(n: int, x: "f64[n]"):
    for i in range(n):
        x[i] = 0.0

def bad(n: int, x: "f64[n]"):
    while x[0] > 0:
        x[0] -= 1.0
"""


@pytest.mark.parametrize(("name", "text"), [("two.c", C), ("two.py", PYTHON)])
def test_the_functions_that_can_be_read_are_named(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert run(["check", str(path)]) == 1
    told = capsys.readouterr()
    said = told.out + told.err
    assert f"`good` can be read: name one, as in {path}:good" in said
    assert run(["check", f"{path}:good"]) == 0
    capsys.readouterr()
    assert run(["check", f"{path}:bad"]) == 1
    told = capsys.readouterr()
    assert "can be read" not in told.out + told.err


def status(*args: str) -> int:
    try:
        return run([*args])
    except SystemExit as exit:
        return int(exit.code or 0)


@pytest.mark.parametrize(("name", "text"), [("many.c", C), ("many.py", PYTHON)])
def test_convert_converts_the_others_and_reports_each_error(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, to = tmp_path / name, tmp_path / "all.roof"
    path.write_text(text + text.replace("good", "fine").replace("bad", "worse"))
    assert status("convert", str(path)) == 1
    told = capsys.readouterr()
    assert [line.split("(")[0] for line in told.out.splitlines() if line.startswith("kernel ")] == [
        "kernel good",
        "kernel fine",
    ]
    assert told.err.count("error[") == 2 and "can be read" not in told.err
    assert status("convert", str(path), "-o", str(to)) == 1
    assert run(["check", str(to)]) == 0
    capsys.readouterr()
    assert run(["convert", f"{path}:good"]) == 0
    one = capsys.readouterr()
    assert one.out and one.out in told.out and not one.err


def test_errors_in_included_files_are_reported_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper = "static double f(double *x) { int i = 0; while (x[i] > 0) i++; return x[i]; }\n"
    (tmp_path / "helper.h").write_text(helper)
    path = tmp_path / "uses.c"
    uses = "void uses(int n, double x[n]) { for (int i = 0; i < n; i++) x[i] = f(x); }\n"
    path.write_text(f'#include "helper.h"\n{C}{uses}')
    assert status("convert", str(path)) == 1
    told = capsys.readouterr()
    assert "kernel good" in told.out and told.err.count("error[") == 2


def test_nothing_is_written_if_no_function_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, to = tmp_path / "bad.c", tmp_path / "bad.roof"
    path.write_text(C.replace("x[i] = 0; }\nvoid bad", "x[i] = g(x[i]); }\nvoid bad"))
    assert status("convert", str(path), "-o", str(to)) == 1
    assert not to.exists() and capsys.readouterr().err.count("error[") == 2
