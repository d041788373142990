"""Every tutorial runs without a GPU, says something, writes figures where it is run, and is listed in the index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tutorials"
TUTORIALS = sorted(FOLDER.glob("*.py"))
TIMEOUT_S = 900  # against hanging; most take seconds, and some minutes where others run beside them


@pytest.mark.thorough
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_runs_in_an_empty_folder(tutorial: Path, tmp_path: Path) -> None:
    """As a script, with no warnings; its figures are written there and are figures."""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", str(tutorial)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    figures = [*tmp_path.glob("*.png"), *tmp_path.glob("*.svg")]
    assert figures
    for figure in figures:
        assert figure.stat().st_size > 5000
        assert figure.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_is_a_notebook_in_percent_format(tutorial: Path) -> None:
    """Jupytext's percent format: cells begin with `# %%`, the first one is text with a title, all its code in cells."""
    text = tutorial.read_text(encoding="utf-8")
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    assert not [line for line in cells[0].splitlines() if line and not line.startswith("#")]
    assert cells[1].startswith(" [markdown]\n# # ")
    for cell in cells[1:]:
        if cell.startswith(" [markdown]"):
            assert all(line.startswith("#") for line in cell.splitlines()[1:] if line)
        compile(cell.partition("\n")[2], str(tutorial), "exec")


def test_index_lists_every_tutorial() -> None:
    listed = set(re.findall(r"\]\((\w+\.py)\)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in TUTORIALS}
