"""LaTeX that compiles, HTML that is well-formed: for reports of every kind of kernel."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest

import roofdsl.tell.display  # noqa: F401
from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation, Quantity
from roofdsl.lang.record import replace
from roofdsl.tell.derive_html import to_html
from roofdsl.tell.derive_latex import formula, to_latex
from tests.oracle.loading import kernel_of

TEXTS = {
    "guards": (
        "kernel guards(rows_n, m):\n    in A: f32[rows_n, m]\n    out y: f32[rows_n]\n    for i in range(rows_n):\n"
        "        let t_0 = 2.0 * A[i, 0] + 1.0\n        if i % 2 == 0 and i < m:\n            y[i] = t_0 / 3.0\n"
        "            count some_edges i\n"
    ),
    "triangle": (
        "kernel triangle(n):\n    in L: f64[n, n]\n    inout x: f64[n]\n    for i in range(n):\n"
        "        for j in range(i):\n            x[i] -= L[i, j] * x[j]\n        x[i] /= L[i, i]\n"
    ),
    "tiles": (
        "kernel tiles(n, b):\n    assume n % b == 0\n    in x: f64[n]\n    inout y: f64[n]\n"
        "    for ii in range(0, n, b), i in range(ii, min(n, ii + b)):\n        y[i] += x[i] * x[i]\n"
    ),
    "nothing": "kernel nothing(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n    for i in range(n), j in range(n):\n"
    "        B[j, i] = A[i, j]\n",
    "halves": "kernel halves(n):\n    in A: f64[(n - 1) // 2 + 1]\n    out B: f64[(n - 1) // 2 + 1]\n"
    "    for i in range((n - 1) // 2 + 1):\n        B[i] = 3.0 * A[i]\n",
}


@cache
def derivation(name: str) -> Derivation:
    return derive(kernel_of(TEXTS[name]), {"b": 8} if name == "tiles" else {}, cache_bytes=1024, steps=True)


def fragments(name: str) -> list[str]:
    d = derivation(name)
    return [to_latex([d]), to_latex([replace(d, steps=None)])]


@pytest.mark.parametrize("name", TEXTS)
def test_latex_is_balanced(name: str) -> None:
    for text in fragments(name):
        body = re.sub(r"(?<!\\)%.*", "", text)
        plain = body.replace("\\{", "").replace("\\}", "")
        depth = 0
        for character in plain:
            depth += (character == "{") - (character == "}")
            assert depth >= 0
        assert depth == 0
        opened: list[str] = []
        for kind, environment in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
            if kind == "begin":
                opened.append(environment)
            else:
                assert opened.pop() == environment
        assert not opened
        assert body.count("\\left") - body.count("\\left\\l") == body.count("\\right") - body.count("\\right\\r")
        assert len(re.findall(r"(?<!\\)\$", body)) % 2 == 0


@pytest.mark.parametrize("name", TEXTS)
def test_latex_tables_have_as_many_cells_as_columns(name: str) -> None:
    for text in fragments(name):
        for columns, rows in re.findall(r"\\begin\{tabular\}\{(l+)\}\n(.*?)\\end\{tabular\}", text, re.S):
            for row in rows.strip().split("\n"):
                assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", TEXTS)
def test_mathtext_sets_every_formula(name: str) -> None:
    parser = pytest.importorskip("matplotlib.mathtext").MathTextParser("agg")
    for text in fragments(name):
        formulas = re.findall(r"(?<!\\)\$(.+?)(?<!\\)\$", text)
        for block in re.findall(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", text, re.S):
            for line in block.split("\\\\\n"):
                formulas.append(re.sub(r"&& .*", "", line).replace("&", "").replace("\n", " "))
        for found in formulas:
            if "\\begin{cases}" not in found:  # mathtext has no environments
                parser.parse(f"${_mathtext(found)}$")


def _mathtext(found: str) -> str:
    """`found` in what mathtext knows: no text mode, floors without \\left."""
    known = found.replace("\\text{", "\\mathrm{").replace("\\mathtt{", "\\mathrm{").replace("{,}", ",")
    return known.replace("\\ldots", "\\dots")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("name", TEXTS)
def test_html_is_well_formed_and_escaped(name: str) -> None:
    d = derivation(name)
    for text in (to_html(d), to_html(replace(d, steps=None))):
        tags = _Tags()
        tags.feed(text)
        tags.close()
        assert not tags.open
        words = "".join(tags.words)
        assert words.count("\\(") == words.count("\\)")
        if name == "guards" and "1. " in words:
            assert "i < m" in words
            assert "i < m" not in text


def test_notebooks_show_quantities_and_why_there_is_none() -> None:
    d = derivation("triangle")
    assert d.work.total._repr_latex_() == "$\\displaystyle n^{2}$"
    assert d.work.total._repr_html_() == "\\(n^{2}\\)"
    assert "\\frac" in d.intensity._repr_html_()
    assert d._repr_html_().startswith('<div class="roofdsl">')
    assert d._repr_latex_().startswith("% roofdsl")
    missing = Quantity(None, None, "a & b < c_d")
    assert missing._repr_html_() == "a &amp; b &lt; c_d"
    assert missing._repr_latex_() == "a \\& b \\textless{} c\\_d"
    assert formula(derivation("nothing").intensity) is None
    assert derivation("nothing").intensity._repr_html_() == "undefined"
