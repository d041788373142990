"""The VS Code extension against the real service, in node with a stand-in for VS Code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roofdsl.editors.textmate import EXTENSION
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture(scope="module")
def done() -> dict[str, Any]:
    script = Path(__file__).parent / "extension.js"
    command = json.dumps([sys.executable, "-m", "roofdsl"])
    run = subprocess.run(
        ["node", str(script), str(EXTENSION), command], capture_output=True, text=True, check=True, timeout=120
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_kernel_under_the_cursor_is_derived(done: dict[str, Any]) -> None:
    assert done["hover"].startswith("**gemv**") and "- W: `2*n**2` operations" in done["hover"]
    assert done["outside"]


def test_a_change_replaces_the_kernel_and_nothing_else(done: dict[str, Any]) -> None:
    """The file with the change is one that roofdsl takes."""
    (edit,) = done["edits"]
    first, last = edit["range"]
    assert (first["line"], first["character"], last["line"]) == (1, 0, 5)
    assert done["offered"] and " x: " in done["offered"][0]
    assert "gemv" in load_file(Source("<changed>", edit["made"] + "\n")).kernels
    (action,) = done["actions"]
    assert action["command"] == "roof.advise" and action["arguments"][1] == 2


def test_errors_are_told_and_the_extension_goes_on(done: dict[str, Any]) -> None:
    assert len(done["messages"]) == 2
    assert "no_such_machine" in done["messages"][0] and "could not be run" in done["messages"][1]
