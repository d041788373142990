"""Clocks, power and what slows the card down, sampled by nvidia-smi beside the measurements."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FIELDS = (
    "timestamp", "clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "clocks_event_reasons.active",
)  # fmt: skip
_EVERY_MS = 500
_IDLE = 0x1
"""The bit of the reasons that says only that nothing runs."""


class Meter:
    """Samples as long as it is entered; without nvidia-smi it has none. All samples go to `log`."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.samples: list[tuple[float, Mapping[str, float]]] = []
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Meter:
        found = shutil.which("nvidia-smi")
        if found is not None:
            query = [
                f"--query-gpu={','.join(_FIELDS)}",
                "--format=csv,noheader,nounits",
                "-lms",
                str(_EVERY_MS),
                "-i",
                "0",
            ]
            self.process = subprocess.Popen([found, *query], stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)

    def _read(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        with self.log.open("a", encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                sample = sample_of(line)
                if sample:
                    self.samples.append((time.monotonic(), sample))

    def since(self, begun: float) -> dict[str, Any]:
        """What was seen from `begun` (of time.monotonic) until now, and in the sample before, for a record."""
        inside = [s for at, s in self.samples if at >= begun]
        before = [s for at, s in self.samples if at < begun][-1:]
        return summary([*before, *inside])


def sample_of(line: str) -> dict[str, float]:
    """A line of nvidia-smi; what it does not report (`[N/A]`) is left out."""
    values = [v.strip() for v in line.split(",")]
    found: dict[str, float] = {}
    for name, text in zip(_FIELDS[1:], values[1:], strict=False):
        try:
            found[name] = float(int(text, 16)) if text.startswith("0x") else float(text)
        except ValueError:
            continue
    return found


def summary(samples: list[Mapping[str, float]]) -> dict[str, Any]:
    """{"samples", "sm_mhz": [low, high], "memory_mhz", "celsius", "watts", "throttled_by"}: ranges, and the reasons of
    all samples together but that nothing ran; empty without samples.
    """
    if not samples:
        return {}
    names = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "celsius": "temperature.gpu", "watts": "power.draw"}
    found: dict[str, Any] = {"samples": len(samples)}
    for short, name in names.items():
        values = [s[name] for s in samples if name in s]
        if values:
            found[short] = [min(values), max(values)]
    reasons = 0
    for s in samples:
        reasons |= int(s.get(_FIELDS[-1], 0))
    return {"card": found | {"throttled_by": hex(reasons & ~_IDLE)}}
