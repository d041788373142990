"""Python that is wrong or outside: each a diagnostic at the user's own text, none read wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.frontends.python.read import read
from roofdsl.lang.codes import PYTHON_CODES
from roofdsl.lang.diagnostics import InputError

TABLE = Path(__file__).with_name("refused_python.txt").read_text(encoding="utf-8")
CASES = {}
"""By name: the Python, the code of the diagnostic, and the text that is underlined."""
for block in f"\n{TABLE}".split("\n== ")[1:]:
    head, text = block.split("\n", 1)
    name, code, marked = head.split(" | ", 2)
    assert name not in CASES, name
    CASES[name] = (text, code, marked)


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: Path) -> None:
    text, code, marked = CASES[name]
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        print(read(str(path), None if "def f(" not in text or code == "py-syntax" else "f").kernels)
    found = caught.value.diagnostics[0]
    span = found.span
    line = text.splitlines()[span.line - 1]
    shown = line[span.column - 1 : span.end_column - 1] if span.end_line == span.line else line[span.column - 1 :]
    assert (found.code, shown[: len(marked)]) == (code, marked), f"{found.message} at `{shown}`"
    assert found.message and "\n" not in found.message


def test_equal_names_are_advised_only_where_they_help(tmp_path: Path) -> None:
    """`n - 1` and `n - 2` never become equal, whatever their names."""
    told = {}
    for name, text in (("apart", "x[1:] - x[:-2]"), ("named", "x - y")):
        path = tmp_path / f"{name}.py"
        path.write_text(f"def f(x: 'f64[n]', y: 'f64[m]'):\n    return {text}\n")
        with pytest.raises(InputError) as caught:
            read(str(path), "f")
        told[name] = caught.value.diagnostics[0].help
    assert told == {"apart": "", "named": "say that sizes are equal by giving them the same name"}


def test_every_code_is_shown_and_there_are_enough() -> None:
    assert {code for _, code, _ in CASES.values()} >= set(PYTHON_CODES)
    assert len(CASES) >= 130
