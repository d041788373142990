"""The folder of the on-disk cache of derivations, and whether the cache is on (docs/cache.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

SWITCH, FOLDER = "ROOFDSL_CACHE", "ROOFDSL_CACHE_DIR"
"""Environment variables: `off` turns the cache off; the folder to use."""

_OFF = ("off", "0", "no", "false")


def is_off() -> bool:
    """Whether the cache is off: nothing is stored in it or read from it."""
    return os.environ.get(SWITCH, "").strip().lower() in _OFF


def turn_off() -> None:
    """Turns the cache off in this process and those that it starts."""
    os.environ[SWITCH] = "off"


def folder(environment: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path | None:
    """The folder of the cache: $ROOFDSL_CACHE_DIR, or else the platform's own; None if there is no home folder."""
    known = os.environ if environment is None else environment
    if known.get(FOLDER):
        return Path(known[FOLDER])
    if platform == "win32":
        local = known.get("LOCALAPPDATA")
        return Path(local) / "roofdsl" / "Cache" if local else None
    home = known.get("HOME") or os.path.expanduser("~")
    if platform == "darwin":
        return _absolute(Path(home) / "Library" / "Caches" / "roofdsl")
    named = Path(known.get("XDG_CACHE_HOME") or "")
    return _absolute((named if named.is_absolute() else Path(home) / ".cache") / "roofdsl")


def _absolute(path: Path) -> Path | None:
    return path if path.is_absolute() else None
