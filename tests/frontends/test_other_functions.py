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
