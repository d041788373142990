"""lark at work: it is the only parser, its grammar is where words are defined, and it is built once."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lark import Lark

from roofdsl.lang import grammar
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.parse import parse
from roofdsl.lang.source import Source

ROOT = Path(__file__).parents[2]


def test_check_parses_with_lark() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "roofdsl", "check", "models/kernels/gemv.roof"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert re.search(r"\| +lark$", result.stderr, re.M)


def test_help_does_not_load_the_parser() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "roofdsl", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert not re.search(r"\| +lark$", result.stderr, re.M)


def test_the_parser_is_built_once_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_kept_in", lambda: tmp_path)
    built = grammar.parser.__wrapped__()
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(Lark, "_build_parser", lambda self: pytest.fail("built a second time"))
    again = grammar.parser.__wrapped__()
    assert {t.name for t in again.terminals} == {t.name for t in built.terminals}


@pytest.mark.spread(1)
@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\x80\x04K\x01."])
def test_a_damaged_file_of_the_parser_is_made_anew(
    damage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar, "_kept_in", lambda: tmp_path)
    grammar.parser.__wrapped__()
    (kept,) = tmp_path.iterdir()
    damaged = kept.read_bytes().split(b"\n", 1)[0] + b"\n" + damage
    kept.write_bytes(damaged)
    assert grammar.parser.__wrapped__().terminals
    assert kept.read_bytes() != damaged
    monkeypatch.setattr(Lark, "_build_parser", lambda self: pytest.fail("not kept"))
    assert grammar.parser.__wrapped__().terminals


def test_where_no_folder_can_be_written_the_parser_is_built_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert grammar._kept_in() is None
    assert isinstance(grammar.parser.__wrapped__(), Lark)


def test_every_word_of_a_rule_is_a_keyword_terminal() -> None:
    """Names of keyword terminals are their words in capitals: `_KERNEL` is written `kernel`."""
    text = grammar.text()
    defined = set(re.findall(r'^_?([A-Z_]+)\.2: "([a-z_]+)"', text, re.M))
    assert all(name.lower() == word for name, word in defined)
    assert {word for _, word in defined} == set(grammar.keywords())
    listed = re.search(r"^NAME: /\(\?!\(\?:([a-z|]+)\)", text, re.M)
    assert listed is not None and set(listed[1].split("|")) == grammar.reserved()


def test_texts_are_parsed_in_several_threads() -> None:
    texts = [f"kernel k{i}(n):\n    out y: f64[n]\n    y[{i}] = {'(' * (i % 3)}1\n" for i in range(60)]
    found: dict[int, bool] = {}

    def read(i: int) -> None:
        try:
            found[i] = parse(Source("t", texts[i])).items[0].name.text == f"k{i}"  # type: ignore[union-attr]
        except InputError as error:
            found[i] = [d.code for d in error.diagnostics] == ["bracket-unclosed"] and i % 3 > 0

    threads = [threading.Thread(target=read, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(texts) and all(found.values())
