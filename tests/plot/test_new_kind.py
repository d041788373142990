"""A kind of figure is one file of `roofdsl/plot/kinds`: another one in a copy of the package is a command at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.plot.kinds import kind, names
from tests.copied import run_in_copy

FILE = '''
"""Rates as steps."""

from roofdsl.plot.board import Window, plane
from roofdsl.plot.kind import Kind, Option, at_option
from roofdsl.plot.look import styled
from roofdsl.plot.ticks import prefixed


@styled
def draw_stairs(rates, top, title, *, look):
    board = plane(look, Window((0.5, len(rates) + 1), (min(rates) / 2, top)), title, ("Step", "Performance P"))
    board.axes.plot(range(1, len(rates) + 1), rates, drawstyle="steps-mid", color=look.color(0))
    return board.figure


def figure(asked, *, top, prefix):
    found = asked.predicted()
    asked.warn(f"{len(found)} steps")
    heading = prefix + ", ".join(prefixed(float(p.rate_per_s)) for p in found)
    return draw_stairs([float(p.rate_per_s) for p in found], top, heading, look=asked.look)


KIND = Kind(
    "Rates, one step after the other.",
    "Draw the rates of kernels as steps.",
    (
        "machine",
        "set",
        at_option("One step per size."),
        Option("--top", "Where the axis ends.", "RATE", read=float),
        Option("--prefix", "What the title begins with.", "TEXT"),
    ),
    figure,
)
'''

PROGRAM = '''
import contextlib, io, json
from pathlib import Path

import roofdsl
from roofdsl.cli.main import run


def printed(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(list(words))
    return [status, out.getvalue(), err.getvalue()]


TEXT = """
kernel add(n):
    in x: f64[n]
    inout y: f64[n]
    for i in range(n):
        y[i] += x[i]

machine m:
    peak f64 10 GFLOP/s
    memory DRAM 1 GiB, 24 GB/s
"""
Path("add.roof").write_text(TEXT)
draw = ["plot", "rate-stairs", "add.roof:add", "--machine", "add.roof:m", "--at", "n=64", "--at", "n=128"]
draw += ["--prefix", "mine: "]
print(json.dumps({
    "package": roofdsl.__file__,
    "kinds": printed("plot", "--help"),
    "help": printed("plot", "rate-stairs", "--help"),
    "svg": [*printed(*draw, "--top", "1e13", "-o", "a.svg"), Path("a.svg").read_text()],
    "png": [*printed(*draw, "--top", "1e13", "--dark", "-o", "a.png"), Path("a.png").read_bytes()[:8].hex()],
    "wrong": printed(*draw, "--top", "high", "-o", "b.svg"),
    "misspelt": printed("plot", "rate-stair", "-o", "b.svg"),
}))
'''


@pytest.mark.thorough
def test_one_more_file(tmp_path: Path) -> None:
    found = run_in_copy(tmp_path, PROGRAM, added={"plot/kinds/rate_stairs.py": FILE})
    status, out, _ = found["kinds"]
    assert status == 0
    assert "  rate-stairs      Rates, one step after the other.\n" in out and "  roofline " in out
    status, out, _ = found["help"]
    assert status == 0 and out.startswith("Usage: roofdsl plot rate-stairs [OPTIONS] [FILE...]\n")
    for text in ("Draw the rates of kernels as steps.", "--top RATE", "Where the axis ends.", "--dark", "--output"):
        assert text in out
    status, _, err, svg = found["svg"]
    assert (status, err) == (0, "warning: 2 steps\n")
    assert svg.startswith("<?xml") and "<!-- mine: 1 G, 1 G -->" in svg
    assert found["png"][0] == 0 and found["png"][3] == "89504e470d0a1a0a"
    status, _, err = found["wrong"]
    assert status == 2 and "Invalid value for --top: could not convert string to float" in err
    assert "did you mean `rate-stairs`?" in found["misspelt"][2]


def test_every_kind_says_what_it_is() -> None:
    assert {"roofline", "hierarchy", "complexity-time", "traffic"} <= set(names())
    assert "rate-stairs" not in names()
    for name in names():
        assert kind(name).line.endswith(".") and kind(name).about.startswith("Draw ")
