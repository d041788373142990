"""Python that is read: roofdsl's code of the kernel computes what the user's function does."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from roofdsl.checks.deep import deep_check
from roofdsl.frontends.python.read import read
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.lang.write import written
from roofdsl.loops.load import kernel, load_file
from tests.frontends.python_running import both, wrong
from tests.frontends.running import unfolded

FILES = {name: Path(__file__).with_name(name) for name in ("taken_python.py", "taken_reductions.py")}
HELPERS = ("half", "sums", "change", "with_default", "pairs", "sign")
ROUNDED = ("constant_powers", "complex_numbers", "in_double_precision", "complex_numbers_of_python")
"""numpy computes powers and complex products in another way than C; everything else is bitwise identical."""
CASES = [
    (name, node.name)
    for name, path in FILES.items()
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name not in HELPERS
]
SIZES = {"n": 9, "m": 6, "k": 5, "b": 3, "s": 2, "steps": 4, "h": 6, "w": 7, "c": 3, "d": 2}


@pytest.mark.spread(18)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(("file", "name"), CASES)
def test_computes_the_same(file: str, name: str, tmp_path: Path, fuse: bool = False) -> None:
    exact = file == "taken_python.py" and name not in ROUNDED
    for ours, theirs, own in both(FILES[file], name, "", SIZES, tmp_path, seeds=(1, 2), fuse=fuse):
        assert wrong(ours, theirs, own, exact=exact) == []
        assert any(a.intent in ("out", "inout") for a in own.arrays)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.spread(8)
@pytest.mark.parametrize(("file", "name"), CASES)
def test_fused_loops_compute_the_same(file: str, name: str, tmp_path: Path) -> None:
    test_computes_the_same(file, name, tmp_path, fuse=True)


@pytest.mark.spread(18)
@pytest.mark.parametrize(("file", "name"), CASES)
def test_text_is_the_kernel(file: str, name: str) -> None:
    """What `convert` prints is canonical, is the kernel that is analyzed, and passes the checks of all sizes."""
    checked = read(str(FILES[file]), name)
    own = checked.kernels[name]
    text = written(own)
    again = load_file(Source("again.roof", text))
    assert unfolded(next(iter(again.kernels.values())).tree.body) == unfolded(own.tree.body)
    assert format_source(Source("again.roof", text)) == text
    errors = [d for d in deep_check(kernel(checked, name)) if d.severity == "error"]
    assert errors == []


def test_there_are_enough() -> None:
    assert len(CASES) >= 75
