"""What the measurements of a run leave behind: KERNEL.json and KERNEL.refused.json, written after every one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu.plan import PlannedRun
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.measure.measurement import Measurement, load, save
from roofdsl.store.atomic import write_whole

Key = tuple[str, str, tuple[tuple[str, int], ...]]


def key_of(run: PlannedRun) -> Key:
    """What tells runs apart."""
    return run.kernel, run.variant, tuple(sorted(run.sizes.items()))


class Results:
    """Measurements and refusals in a folder. `since`: older ones (seconds of time.time) count as not there."""

    def __init__(self, folder: Path, since: float = 0.0) -> None:
        self.folder, self.since = folder, since
        folder.mkdir(parents=True, exist_ok=True)
        self.measured: dict[str, list[Measurement]] = {}
        self.refused: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(folder.glob("*.json")):
            name = path.name.split(".")[0]
            if path.name.endswith(".refused.json"):
                kept = json.loads(path.read_text(encoding="utf-8"))
                self.refused[name] = [one for one in kept if self._counts(one["when"])]
                continue
            try:
                self.measured[name] = [m for m in load(path) if self._counts(m.when)]
            except (CommandError, InputError) as error:
                print(f"{path.name} is measured again: {error}", flush=True)
        self.done = {self._key(m) for some in self.measured.values() for m in some}
        self.done |= {
            (n, r["variant"], tuple(sorted(r["sizes"].items()))) for n, some in self.refused.items() for r in some
        }

    def _counts(self, when: str) -> bool:
        return datetime.fromisoformat(when).timestamp() >= int(self.since)

    @staticmethod
    def _key(m: Measurement) -> Key:
        asked = m.details.get("planned", dict(m.parameters))
        return m.kernel, m.variant, tuple(sorted(asked.items()))

    def add(self, run: PlannedRun, found: Measurement) -> None:
        """Write one more measurement; it says which run of the plan it is, since kernels have constants besides."""
        some = self.measured.setdefault(run.kernel, [])
        some.append(found)
        self.done.add(key_of(run))
        save(self.folder / f"{run.kernel}.json", some)

    def refuse(self, run: PlannedRun, reason: str) -> None:
        """Write why a run gave nothing."""
        some = self.refused.setdefault(run.kernel, [])
        when = datetime.now(UTC).isoformat(timespec="seconds")
        some.append({"variant": run.variant, "sizes": dict(run.sizes), "reason": reason, "when": when})
        self.done.add(key_of(run))
        _write(self.folder / f"{run.kernel}.refused.json", some)


def _write(path: Path, document: object) -> None:
    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def run_json(run: PlannedRun) -> Mapping[str, Any]:
    """A run in the form that the mark file of the run in progress holds."""
    return {"kernel": run.kernel, "variant": run.variant, "sizes": dict(run.sizes), "math_mode": run.math_mode}
