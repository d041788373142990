"""The same blocks give the terminal, the notebook and LaTeX: each says every word and every number of a result."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roofdsl import api
from roofdsl.cli import text
from roofdsl.cli.main import run
from roofdsl.measure.measurement import Launches
from roofdsl.profiler.metrics import points_of
from roofdsl.profiler.tables import read
from roofdsl.tell import (
    characterization,
    derive_html,
    derive_latex,
    derive_text,
    measured_points,
    measurement,
    validation,
)
from roofdsl.tell.as_html import to_html
from roofdsl.tell.as_latex import SPECIAL, to_latex
from roofdsl.tell.as_text import to_text
from roofdsl.tell.blocks import Block, Code, Equation, Equations, Heading, Line, Math, Table, figures, items
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized
from tests.validate.test_compare import comparison

DATA = Path(__file__).parents[1] / "profiler/data"

COMMANDS = [
    "predict models/kernels/stream.roof --machine v100 --set n=4096",
    "predict gemm_f16 --machine v100 --set m=256,n=256,k=256 --unit tensor",
    "predict gemv --machine v100 --set n=4096 --threads 128 --registers 64 --shared 16KiB --in-flight 16B",
    "predict lstm_forward --machine v100",
    "machines",
    "machines show opteron_2356",
    "machines show summit",
    "machines flow summit --from DRAM0 --to HBM3,HBM4,HBM5",
    "threshold gemv --machine v100_deck --over n",
    "threshold matmul_i8 --over B --formula --machine tpu_v5e --unit tensor",
    "collective all-gather --bytes 1GiB --among HBM0,HBM1,HBM2 --machine summit",
    "shard matmul_bdf --split D --devices 2 --over D --machine tpu_v5e --unit tensor",
    "shard matmul_bdf --split D --devices 2,8 --over B --machine tpu_v5e --unit tensor",
    "simulate gemv --machine zen2_epyc_7452 --set n=20 --histogram",
    "suite models/kernels/gemv.roof models/kernels/dot.roof --machine v100_deck --set n=64",
    "sweep gemv --machine v100_deck --set n=16..64:*2",
    "bound gemv --set n=64 --cache 1KiB --steps",
    "advise gemv --machine v100_deck --set n=256 --all",
]


def words_of_text(blocks: Sequence[Block]) -> Counter[str]:
    return Counter(word for word in "\n".join(to_text(blocks)).split() if word.strip("-─"))


def words_of_html(blocks: Sequence[Block]) -> Counter[str]:
    return _words(html.unescape(re.sub(r"<[^>]*>", " ", "\n".join(to_html(blocks)))))


def words_of_latex(blocks: Sequence[Block]) -> Counter[str]:
    """The words of a fragment without formulas."""
    marks = r"\\(begin|end)\{\w+\}(\{[lr]*\})?(\\par)?|\\\\( \\hline)?$|\\par$|\\item| & "
    shown = re.sub(marks, " ", latex(blocks), flags=re.MULTILINE)
    shown = re.sub(r"\\paragraph\{(.*)\}$", r"\1", shown, flags=re.MULTILINE)
    for plain, escaped in sorted(SPECIAL.items(), key=lambda pair: -len(pair[1])):
        shown = shown.replace(escaped, plain)
    return _words(shown)


def latex(blocks: Sequence[Block]) -> str:
    return "\n".join(to_latex(blocks))


def _words(shown: str) -> Counter[str]:
    return Counter(word for word in shown.split() if word.strip("-"))


def assert_told_alike(blocks: Sequence[Block]) -> None:
    said = words_of_text(blocks)
    assert any(re.search(r"\d", word) for word in said)
    assert words_of_html(blocks) == said
    assert words_of_latex(blocks) == said


@pytest.mark.spread(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_result_is_told_alike(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[Sequence[Block]] = []

    def write(blocks: Sequence[Block], **how: object) -> list[str]:
        shown.append(blocks)
        return list(to_text(blocks))

    monkeypatch.setattr(text, "to_text", write)
    assert run(command.split()) == 0
    assert capsys.readouterr().out == "\n\n".join("\n".join(to_text(blocks)) for blocks in shown) + "\n"
    for blocks in shown:
        assert_told_alike(blocks)


def test_what_is_measured_is_told_alike() -> None:
    parts = (Launches(3, EXAMPLE), Launches(1, replace(EXAMPLE, variant="parallel", parameters=())))
    assert_told_alike(measurement.blocks([EXAMPLE, replace(EXAMPLE, kernel="both", by_launch=parts)]))
    assert_told_alike(validation.blocks([comparison("gemv", 4096, ratio) for ratio in (0.3, 0.9, 3.0)]))
    assert_told_alike(characterization.of_cpu(characterized()))
    launches = [launch for path in sorted(DATA.glob("*.csv")) for launch in read(path)]
    assert_told_alike(measured_points.blocks(points_of(launches, "files", None)))


MIXED = [
    Heading("A & B"),
    Line(("the array ", Code("x_1"), " has ", Math("n**2", "n^{2}"), " elements")),
    Equations((Equation(Math("W", "W"), (Math("2*n", "2 n"),), "FLOP", ("100 %",)),)),
    items(["a < b", "c_d"]),
    figures([("HBM", "1 kB", "", "")], ("", "amount", "rate", "")),
]


def test_each_output_has_its_own_spelling() -> None:
    assert list(to_text(MIXED)) == [
        "A & B", "  the array x_1 has n**2 elements", "  W = 2*n FLOP   100 %", "    a < b", "    c_d",
        "       amount  rate", "  HBM  1 kB",
    ]  # fmt: skip
    tex = latex(MIXED)
    for part in (r"\paragraph{A \& B}", r"\texttt{x\_1} has $n^{2}$", r"W &= 2 n\ \text{FLOP} && \text{100 \%}"):
        assert part in tex
    assert r"  \item a \textless{} b" in tex
    assert "\\begin{tabular}{lll}\n   & amount & rate \\\\ \\hline\n  HBM & 1 kB &  \\\\" in tex
    shown = "".join(to_html(MIXED))
    for part in ("<h4>A &amp; B</h4>", r"<code>x_1</code> has \(n^{2}\)", "<li>a &lt; b</li>", "<th>amount</th>"):
        assert part in shown
    assert shown.count("<th>") == 3  # the last column has neither a head nor cells


def test_columns_that_are_aligned_to_the_right() -> None:
    table = figures([("a", "1", "x"), ("b", "", "y"), ("c", "100", "")], ("", "n", "what"), (1,))
    assert list(to_text([table])) == ["       n  what", "  a    1  x", "  b       y", "  c  100"]
    assert r"\begin{tabular}{lrl}" in latex([table])
    assert '<td style="text-align: right">100</td>' in "".join(to_html([table]))
    ruled = Table(table.head, table.rows, "ruled", table.right)
    assert list(to_text([ruled]))[:3] == ["       n   what", " " + "─" * 14, " a     1   x"]


def test_nothing_is_left_of_what_is_empty() -> None:
    nothing = [figures([]), figures([], ("a",)), items([])]
    assert latex(nothing) == "".join(to_html(nothing)) == ""
    assert list(to_text(nothing)) == ["  a"]


def test_a_long_table_is_cut_in_a_notebook_only() -> None:
    long = [figures([(str(k),) for k in range(100)], ("k",))]
    shown = "".join(to_html(long))
    assert "<td" in shown and ">59<" in shown and ">60<" not in shown and "and 40 more" in shown
    assert "  99" in list(to_text(long)) and "  99 \\\\" in latex(long)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "options"),
    [("gemv", {"n": 64}), ("lu", {"n": 50}), ("matmul_blocked", {"n": 64, "b": 8, "cache": "4KiB"}), ("gpp", {}),
     ("gemv", {"n": 64, "cache": "1KiB", "line": "64B"})],
)  # fmt: skip
def test_numbers_of_a_derivation_stand_in_html_and_latex(name: str, options: dict[str, Any]) -> None:
    d = api.derive(name, **options)
    told = _numbers(derive_text.to_text(d))
    assert len(told) > 3
    shown = html.unescape(re.sub(r"<[^>]*>", " ", derive_html.to_html(d)))
    assert told <= _numbers(shown.replace("{,}", ","))
    assert told <= _numbers(derive_latex.to_latex([d]).replace("{,}", ","))


def _numbers(said: str) -> set[str]:
    """Numbers of three digits and more; smaller ones are coefficients, which text and formulas write differently."""
    found = (number.replace(",", "") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", said))
    return {number for number in found if len(number) > 2}
