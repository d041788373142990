"""The tools as lines of JSON, for editors: one request per line, one answer per line, in order.

`{"id": 1, "method": "predict", "params": {"text": "...", "machine": "v100"}}` is answered by
`{"id": 1, "result": {...}}`, or by `{"id": 1, "error": {"status": 2, "message": "...", "help": "..."}}`. The
methods are the tools, and `hover`, which gives W, Q and I of the kernel at a line of `text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.server.answers import answer
from roofdsl.server.isolation import Nursery
from roofdsl.server.tools import BY_NAME

METHODS = (*BY_NAME, "hover")

MOST_CHARACTERS = 4_000_000
"""The maximum length of a line."""


def serve(requests: Iterable[str], nursery: Nursery, root: Path | None) -> Iterator[str]:
    """Yields the answer to every line that is not empty."""
    for line in requests:
        if line.strip():
            yield json.dumps(_answered(line, nursery, root))


def _answered(line: str, nursery: Nursery, root: Path | None) -> dict[str, Any]:
    if len(line) > MOST_CHARACTERS:
        return _refused(None, f"a request has at most {MOST_CHARACTERS:,} characters")
    try:
        asked = json.loads(line, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return _refused(None, "a request must be one line of JSON")
    if not isinstance(asked, dict):
        return _refused(None, 'a request must be an object with a "method"')
    number, given = asked.get("id"), asked.get("params", {})
    if not isinstance(asked.get("method"), str):
        return _refused(number, 'a request must be an object with a "method"')
    if not isinstance(given, dict):
        return _refused(number, '"params" must be an object')
    if asked["method"] not in METHODS:
        help = did_you_mean(asked["method"], METHODS, f"the methods are {', '.join(METHODS)}")
        return _refused(number, f"there is no method `{asked['method'][:80]}`", help)
    try:
        found = (
            _hover(nursery, root, given)
            if asked["method"] == "hover"
            else answer(nursery, root, asked["method"], given)
        )
    except CommandError as error:
        return _refused(number, error.message, error.help)
    if "error" in found:
        return {"id": number, "error": found["error"]}
    return {"id": number, "result": found}


def _finite(text: str) -> float:
    """A number of a request. Raises ValueError for NaN and infinity, which no answer in JSON could repeat."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _refused(number: object, message: str, help: str = "") -> dict[str, Any]:
    return {"id": number, "error": {"status": 2, "message": message, "help": help}}


def _hover(nursery: Nursery, root: Path | None, given: dict[str, Any]) -> dict[str, Any]:
    """The derivation of the kernel that contains `line` (from 1). Raises CommandError if there is none, or no `text` or
    `line`.
    """
    text, line = given.get("text"), given.get("line")
    if not isinstance(text, str) or type(line) is not int:
        raise CommandError("hover needs `text` and `line`, a whole number from 1")
    name = _kernel_at(text, line)
    if name is None:
        raise CommandError(f"line {line} is not in a kernel")
    return answer(nursery, root, "derive", {"text": text, "name": name})


def _kernel_at(text: str, line: int) -> str | None:
    """The last kernel that begins on or before the line, if nothing else begins at the margin between the two."""
    name = None
    lines = text.splitlines()
    if line > len(lines) + 1:  # the cursor may stand on the empty line after the last one
        return None
    for content in lines[: max(line, 0)]:
        words = content.replace("(", " ").split()
        if content[:1].isalpha():
            name = words[1] if words[0] == "kernel" and len(words) > 1 else None
    return name
