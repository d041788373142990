"""Every file under bad/ is refused, with the diagnostics that its golden file holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.lang.check import check
from roofdsl.lang.codes import CODES
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.load import decode, kernels
from roofdsl.loops.transform import apply

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.roof"))


def load(path: str) -> str:
    return (BAD / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_diagnostics(path: Path, golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(InputError) as caught:
        for kernel in kernels(check(decode(path.read_bytes(), path.name), load)).values():
            apply(kernel)
    error = caught.value
    assert any(d.severity == "error" for d in error.diagnostics)
    for d in error.diagnostics:
        assert d.code in CODES
        assert 1 <= d.span.line <= error.source.text.count("\n") + 1
        assert d.span.column >= 1
        assert (d.span.end_line, d.span.end_column) > (d.span.line, d.span.column)
    places = [(d.span.line, d.span.column) for d in error.diagnostics]
    assert places == sorted(places)
    assert all(line.startswith(f"{path.name}:") for line in str(error).split("\n") if "error[" in line)
    golden(path.with_suffix(".txt"), str(error) + "\n")


def test_there_are_many() -> None:
    assert len(FILES) >= 70
