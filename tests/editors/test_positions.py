"""`check --json` as an editor reads it: lines and columns from 1, ends exclusive, every range inside the text."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from roofdsl.cli.check import check
from roofdsl.editors.textmate import EXTENSION

BAD = sorted((Path(__file__).parents[1] / "lang" / "bad").rglob("*.roof"))


def findings(text: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(check, ["-", "--json"], input=text)
    found: list[dict[str, object]] = json.loads(result.stdout)["diagnostics"]
    return found


def underlined(text: str, found: dict[str, object]) -> str:
    """What the range of a finding covers; columns count characters."""
    lines = text.split("\n")
    line, end = int(str(found["line"])) - 1, int(str(found["end_line"])) - 1
    column, stop = int(str(found["column"])) - 1, int(str(found["end_column"])) - 1
    if line == end:
        return lines[line][column:stop]
    return "\n".join([lines[line][column:], *lines[line + 1 : end], lines[end][:stop]])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kernel f(n):\n    inout A: f64[n]\n    for i in range(n):\n        A[i] = B[i] + é\n", ["é"]),
        (
            "kernel f(n):\n    inout A: f64[n]\n    for i in range(n):\n        A[i] = B[i] + m\nkernel f(n):\n    f\n",
            ["B", "m", "f"],
        ),
        ("# \U0001f600\nmachine m:\n\tpeak f64 fma 7 GB\n\tmemory M 1 GB, 1 GB/s\n", ["GB"]),
    ],
)
def test_a_range_covers_the_offending_part(text: str, parts: list[str]) -> None:
    shown = [underlined(text, f) for f in findings(text) if f["severity"] == "error"]
    for part in parts:
        assert part in [s.strip().split(" ")[-1] for s in shown], shown


@pytest.mark.spread(25)
@pytest.mark.skipif(not BAD, reason="no bad files")
@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_every_range_lies_in_the_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    for f in findings(text):
        start = (int(str(f["line"])), int(str(f["column"])))
        end = (int(str(f["end_line"])), int(str(f["end_column"])))
        assert (1, 1) <= start <= end
        assert end[0] <= len(lines)
        # an error at the end of a line may reach one past its last character
        assert end[1] <= len(lines[end[0] - 1]) + 2
        assert f["code"] and f["message"] and f["severity"] in ("error", "warning")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the extension's code with")
def test_the_extension_reads_ranges_so() -> None:
    script = """
    const Module = require("node:module");
    const load = Module._load;
    const vscode = { Range: class { constructor(...at) { this.at = at; } } };
    Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
    const { rangeOf } = require(process.argv[1]);
    console.log(JSON.stringify(rangeOf({ line: 3, column: 5, end_line: 3, end_column: 9 }).at));
    """
    path = str(EXTENSION / "extension.js")
    found = subprocess.run(["node", "-e", script, path], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(found.stdout) == [2, 4, 2, 8]
