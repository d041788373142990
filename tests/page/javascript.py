"""Runs JavaScript outside or inside a browser, whichever this machine has."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from roofdsl.page.assemble import NUMERIC, asset, expressions
from tests.page.browser import browser, chromium

NODE = shutil.which("node")


def evaluate(functions: tuple[str, ...], expression: str, **data: Any) -> Any:
    """The value of `expression`, with the page's numeric scripts, `functions` as FUNCTIONS and each of `data` in scope.

    Skips the test where there is neither node nor Chromium.
    """
    given = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in data.items())
    body = "\n".join([expressions(functions), *(asset(name) for name in NUMERIC), given])
    program = f'(() => {{ "use strict";\n{body}\nreturn JSON.stringify({expression});\n}})()'
    if NODE is not None:
        found = subprocess.run(
            [NODE, "-"], check=False, input=f"console.log({program})", capture_output=True, text=True, timeout=120
        )
        assert found.returncode == 0, found.stderr[-2000:]
        return json.loads(found.stdout)
    path = chromium()
    if path is None:
        pytest.skip("neither node nor Chromium is here to run JavaScript (apt-get install chromium)")
    with browser(path) as page:
        return json.loads(page.run(program))
