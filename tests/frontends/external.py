"""Benchmark suites of others: files that lie beside the project where somebody has put them, and tests skip without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def suite(name: str) -> Path | None:
    """The folder of a suite: under $ROOFDSL_EXTERNAL, or in `shared/external` beside the project or a folder above."""
    named = os.environ.get("ROOFDSL_EXTERNAL")
    places = [Path(named)] if named else []
    places += [parent / "shared" / "external" for parent in ROOT.parents]
    places += [Path(line) / "shared" / "external" for line in _main_checkout()]
    return next((p / name for p in places if (p / name).is_dir()), None)


def _main_checkout() -> list[str]:
    """The folder around the checkout that this one is a git worktree of."""
    link = ROOT / ".git"
    if not link.is_file():
        return []
    folder = link.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    return [str(Path(folder).parents[3])] if len(Path(folder).parents) > 3 else []


def files(name: str, pattern: str = "*.c") -> list[str]:
    """The names of a suite's files without their suffix; none where it is not there."""
    folder = suite(name)
    return sorted(p.stem for p in folder.glob(pattern)) if folder is not None else []


def required(name: str) -> Path:
    """The folder of a suite; the test is skipped where it is not there."""
    folder = suite(name)
    if folder is None:
        pytest.skip(f"{name} is not there: put it into $ROOFDSL_EXTERNAL")
    return folder
