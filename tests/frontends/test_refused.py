"""C that is wrong or outside: each a diagnostic at the user's own text, none read wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.frontends.c.read import read
from roofdsl.lang.diagnostics import InputError

TABLE = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
CASES = {}
"""By name: the C, the code of the diagnostic, and the text that is underlined."""
for block in f"\n{TABLE}".split("\n== ")[1:]:
    head, text = block.split("\n", 1)
    name, code, marked = head.split(" | ", 2)
    CASES[name] = (text, code, marked)


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: Path) -> None:
    text, code, marked = CASES[name]
    path = tmp_path / "wrong.c"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        print(read(str(path)).kernels)
    found = caught.value.diagnostics[0]
    span = found.span
    line = text.splitlines()[span.line - 1]
    shown = line[span.column - 1 : span.end_column - 1] if span.end_line == span.line else line[span.column - 1 :]
    assert (found.code, shown[: len(marked)]) == (code, marked), f"{found.message} at `{shown}`"
    assert found.message and "\n" not in found.message


def test_there_are_enough() -> None:
    assert len(CASES) >= 150
