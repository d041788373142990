"""The examples of documentation pages are what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from roofdsl.cli.main import run

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = [
    (page, line, printed)
    for page in ("links.md", "transformer.md")
    for line, printed in re.findall(r"```console\n\$ roofdsl (.*?)\n(.*?)\n```", (DOCS / page).read_text(), re.S)
]


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) == sum((DOCS / page).read_text().count("$ roofdsl ") for page in {p for p, _, _ in EXAMPLES})
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize(("page", "line", "printed"), EXAMPLES, ids=[line for _, line, _ in EXAMPLES])
def test_examples_are_what_is_printed(page: str, line: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)) == 0, page
    assert capsys.readouterr().out.rstrip() == printed
