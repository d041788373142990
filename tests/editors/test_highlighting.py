"""The highlighters: every word of the language known to both, every shipped file without an unknown sign."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from pygments.token import Error, Keyword, Name, Number, Text, Token

from roofdsl.editors import textmate, vocabulary
from roofdsl.editors.pygments_lexer import RoofLexer
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.grammar import keywords
from roofdsl.lang.machine_attributes import LINES
from roofdsl.lang.types import TYPES

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "models").rglob("*.roof"))

SAMPLE = """\
kernel axpy(n = 4, const s = 2):  # a comment
    traffic once
    assume n % 8 == 0 and not n < 2
    in    a: f64, x: f64[n] col
    inout y: f64[n]
    parallel for i in range(0, n, s):
        let t = sqrt(x[i]) + 1.5e-3
        y[i] min= a * t
    tile i by 8
machine m "A title":
    peak f64 fma 7 TFLOP/s source "deck"
    cache L2 6 MiB, 2.44 TB/s, line 64 B, write_allocate
program p(n):
    repeat 4:
        run axpy(n)
    collective all_reduce x: f64[n] among 4 over ICI
"""


def tokens(text: str) -> list[tuple[object, str]]:
    return list(RoofLexer(stripnl=False, ensurenl=False).get_tokens(text))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_shipped_files_have_no_unknown_sign(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = tokens(text)
    assert "".join(part for _, part in found) == text
    assert [part for kind, part in found if kind in (Error, Text)] == []


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("kernel", Keyword.Declaration), ("axpy", Name.Function), ("m", Name.Class), ("once", Name.Attribute),
        ("f64", Keyword.Type), ("sqrt", Name.Builtin), ("range", Name.Builtin), ("let", Keyword), ("tile", Keyword),
        ("by", Keyword), ("and", Token.Operator.Word), ("min=", Token.Operator), ("1.5e-3", Number),
        ("TFLOP/s", Keyword.Constant), ("MiB", Keyword.Constant), ("line", Name.Attribute), ("source", Keyword),
        ("write_allocate", Name.Attribute), ("repeat", Keyword), ("run", Keyword), ("col", Keyword),
        ("collective", Keyword), ("all_reduce", Name.Attribute), ("among", Keyword), ("over", Keyword),
        ("parallel", Keyword), ("inout", Keyword), ("t", Name.Variable), ("# a comment", Token.Comment.Single),
    ],
)  # fmt: skip
def test_words_are_told_apart(word: str, kind: object) -> None:
    assert kind in [k for k, part in tokens(SAMPLE) if part == word]


def test_a_soft_keyword_may_name_an_array() -> None:
    found = tokens("        count[i] += units[i]\n        unit = 3\n        collective[i] = over[i]\n")
    assert [part for kind, part in found if kind in Keyword] == []


def test_every_keyword_is_in_a_group() -> None:
    groups = (
        vocabulary.DEFINERS, vocabulary.OPERATORS, vocabulary.INTENTS, LINES, vocabulary.SETTINGS,
        vocabulary.STATEMENTS, vocabulary.EXCHANGES, vocabulary.EXCHANGE_WORDS, vocabulary.FACT_WORDS,
        ("col", "const", "index"),
    )  # fmt: skip
    assert {w for group in groups for w in group} == set(keywords())


@pytest.mark.parametrize("text", ["", "\x00\u2028'\"", "kernel\n  ((", '"' * 50, "é ☃ \U0001f600\n"])
def test_anything_is_highlighted(text: str) -> None:
    assert "".join(part for _, part in tokens(text)) == text


def test_the_entry_point_is_the_lexer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["roof"].partition(":")
    assert getattr(import_module(module), name) is RoofLexer


# ---- TextMate ----


def test_the_extension_has_the_grammar_of_the_language(golden: Callable[[Path, str], None]) -> None:
    golden(textmate.GRAMMAR, textmate.text())


def patterns(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key in ("match", "begin", "end"))
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from patterns(child)


def test_the_grammar_knows_every_word() -> None:
    every = list(patterns(textmate.grammar()))
    for pattern in every:
        re.compile(pattern)
    known = " ".join(every).replace("\\b", " ")
    for word in (*keywords(), *TYPES, *FUNCTIONS, "TFLOP/s", "MiB"):
        assert re.search(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z/])", known), word


def test_every_include_is_in_the_repository() -> None:
    text = textmate.text()
    assert set(re.findall(r'"include": "#(\w+)"', text)) <= set(textmate.grammar()["repository"])


def test_the_extension_names_files_that_are_there() -> None:
    package = json.loads((textmate.EXTENSION / "package.json").read_text(encoding="utf-8"))
    named = [package["main"], *(g["path"] for g in package["contributes"]["grammars"])]
    named += [language["configuration"] for language in package["contributes"]["languages"]]
    assert all((textmate.EXTENSION / name).is_file() for name in named)
    json.loads((textmate.EXTENSION / "language-configuration.json").read_text(encoding="utf-8"))
