"""The notebook says of a result what the command says: the same rows, the same numbers, and formulas that hold."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.notebook import predict
from roofdsl.predict.prediction import Prediction
from tests.notebook.test_notebook import Shell, shell

__all__ = ["shell"]

KERNEL = """\
kernel g(n):
    in A: f64[n, n], x: f64[n]
    inout y: f64[n]
    for i in range(n), j in range(n):
        y[i] += A[i, j] * x[j]
"""

MACHINE = """\
machine turns:
    peak f64 fma 100 TFLOP/s
    cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate
    cache L2 4 KiB, 100 GB/s, line 64 B, write_allocate, beside 100 GB/s
    cache L3 64 KiB, 80 GB/s, line 64 B, write_allocate
    memory DRAM 16 GiB, 20 GB/s, line 64 B
    launch 1 us
"""

SECONDS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A kernel behind whose second cache the memory waits, and the machine that says so."""
    (tmp_path / "g.roof").write_text(KERNEL)
    (tmp_path / "turns.roof").write_text(MACHINE)
    yield str(tmp_path / "g.roof"), str(tmp_path / "turns.roof")


def cells_of(shown: str) -> list[list[str]]:
    """The cells of all rows of HTML tables that hold any."""
    rows = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    found = [[html.unescape(c) for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]
    return [[c for c in row if c] for row in found]


def printed(files: tuple[str, str], capsys: pytest.CaptureFixture[str], *more: str) -> list[list[str]]:
    """The cells of every line that the command prints."""
    capsys.readouterr()
    assert run(["predict", files[0], "--machine", files[1], "--set", "n=192", *more]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines if line.strip()]


def test_the_notebook_has_the_rows_of_the_command(
    shell: Shell, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = cells_of(shell.formats(predict(*files, n=192))["text/html"])
    wanted = printed(files, capsys)
    told = wanted[wanted.index(["amount", "rate", "I", "time"]) :]
    assert ["DRAM + L2", "in turn", "17.91 us"] in told
    for row in told[: [row[0] for row in told].index("expected")]:
        assert row in rows, row


def test_the_maximum_in_latex_is_the_largest_of_the_terms(shell: Shell, files: tuple[str, str]) -> None:
    found = predict(*files, n=192)
    assert isinstance(found, Prediction)
    tex = shell.formats(found)["text/latex"]
    times = re.findall(r"= *\\text\{([\d.,]+) (s|ms|us|ns)\}", tex)
    seconds = [Fraction(number.replace(",", "")) * SECONDS[unit] for number, unit in times]
    *terms, whole = seconds
    assert len(terms) == len([t for _, t in found.terms if t])
    assert whole == max(terms)
    assert r"\text{DRAM + L2}" in tex


def test_launches_with_different_bounds_have_a_maximum_each(shell: Shell) -> None:
    # the first is bound by its launch, the second by memory: their times add, and no term is as long as both
    both = predict("gemv", "v100_deck", n=64) + predict("gemv", "v100_deck", n=4096)
    assert both.bound_s > max(time for _, time in both.terms)
    assert r"T &= \sum_{\text{launches}} \max = " in shell.formats(both)["text/latex"]
    assert r"T &= \max = " in shell.formats(predict("gemv", "v100_deck", n=64))["text/latex"]
