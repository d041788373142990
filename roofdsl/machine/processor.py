"""The name of this computer's processor, by which a machine file says where it was measured."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def processor_name() -> str:
    """The processor's name as the system reports it; a general word if it reports none."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        info = ""
    return name_in(info)


def name_in(info: str) -> str:
    """The name in the text of /proc/cpuinfo, or else the one that Python knows."""
    for key in ("model name", "Model", "cpu"):
        match = re.search(rf"^{key}\s*:\s*(\S.*)$", info, re.MULTILINE)
        if match:
            return " ".join(match[1].split())
    return platform.processor() or platform.machine() or "unknown processor"
