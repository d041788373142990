"""The examples of docs/derive.md are what the program prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from roofdsl.cli.derive import derive

PAGE = (Path(__file__).parents[1] / "docs" / "derive.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ roofdsl derive (.*?)\n(.*?)\n```", PAGE, re.S)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("$ roofdsl derive") == 8


@pytest.mark.spread(1)
@pytest.mark.parametrize(("line", "printed"), EXAMPLES, ids=[line for line, _ in EXAMPLES])
def test_examples_are_what_is_printed(line: str, printed: str) -> None:
    result = CliRunner().invoke(derive, line.split())
    shown = result.stdout.rstrip()
    if printed.startswith("...\n"):  # an excerpt
        printed = printed.removeprefix("...\n")
        shown = shown[shown.index(printed.split("\n")[0]) :][: len(printed)]
    assert (result.exit_code, shown) == (0, printed)
