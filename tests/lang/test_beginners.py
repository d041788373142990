"""What the language says to beginners: habits of Python, C, numpy and Fortran, typing errors, wrong units."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.source import Source

HERE = Path(__file__).parent / "beginners"
BEFORE = "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    inout y: f64[n]\n"


def cases() -> Iterator[tuple[str, str]]:
    text = (HERE / "cases.roof").read_text(encoding="utf-8")
    for part in text.split("\n### ")[1:]:
        name, _, body = part.partition("\n")
        whole = re.search(r"^(kernel|kernal|def|machine|@)", body, re.MULTILINE)
        yield name, body.rstrip() + "\n" if whole else BEFORE + re.sub(r"(?m)^(?=.)", "    ", body.rstrip()) + "\n"


def said(text: str) -> str:
    try:
        found = check(Source("k.roof", text))
    except InputError as error:
        return str(error)
    return "accepted" + "".join(f"; {w.message}" for w in found.warnings)


def test_messages(golden: Callable[[Path, str], None]) -> None:
    golden(HERE / "messages.txt", "\n\n".join(f"### {name}\n{said(text)}" for name, text in cases()) + "\n")


@pytest.mark.parametrize(("name", "text"), list(cases()), ids=lambda value: value if "\n" not in value else "")
def test_every_one_is_refused(name: str, text: str) -> None:
    assert said(text).startswith("k.roof:")


def test_there_are_many() -> None:
    assert len(list(cases())) >= 60
