"""The answer to a call of a tool, as a document: both the MCP server and the JSON lines give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.server.isolation import Nursery
from roofdsl.server.tools import question


def answer(nursery: Nursery, root: Path | None, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The document that answers a call, or `{"error": ...}` if it cannot be answered."""
    try:
        asked = question(name, given, root)
    except CommandError as error:
        return {"error": {"status": 2, "message": error.message, "help": error.help}}
    return nursery.ask(asked).document()
