"""A copy of the package in which one place is different: what adding to the language takes, and where it shows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def run_in_copy(
    folder: Path,
    program: str,
    changes: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    added: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What `program` prints as JSON where it runs with a copy of the package, made in `folder`.

    changes: for each file, by its path in the package, texts that stand in it once and what stands there in the copy.
    added: files that the copy has beside those of the package, with their text.
    """
    package = folder / "roofdsl"
    shutil.copytree(ROOT / "roofdsl", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, pairs in (changes or {}).items():
        path = package / name
        text = path.read_text(encoding="utf-8")
        for before, after in pairs:
            assert text.count(before) == 1, f"{before!r} does not stand once in {name}"
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
    for name, text in (added or {}).items():
        assert not (package / name).exists()
        (package / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join((str(folder), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "ROOFDSL_CACHE": "off"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert Path(found.pop("package")).parent == package
    return found
