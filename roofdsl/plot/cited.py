"""Points that somebody else states, from a JSON file: drawn as theirs, never produced by a model.

{"name": "GPP", "source": "where they are from", "points": [{"label": "v1", "flops_per_s": 2.27e12,
 "work_flops": 3.71e12, "time_s": 1.63, "intensity": {"HBM": 3.2}}, ...]}; of rate, work and time two give the third,
the rate as stated going before the quotient of the other two; `kind` is "cited" (the default) or "measured".
"""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.levels_content import Kernel
from roofdsl.plot.trajectory import Step, Trajectory


def load_points(path: Path) -> Trajectory:
    """The trajectory in a file. Raises CommandError where it cannot be read or says what it must not."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise CommandError(f"`{path}` is no JSON file", 'it holds {"source": "...", "points": [...]}') from None
    points = document.get("points") if isinstance(document, dict) else None
    if not isinstance(points, list) or not points:
        raise CommandError(f"`{path}` has no list of `points`", 'write {"source": "...", "points": [{"label": ...}]}')
    kind = document.get("kind", "cited")
    if kind not in ("cited", "measured"):
        raise CommandError(f"the `kind` of `{path}` is neither cited nor measured")
    steps = tuple(_step(path, i, point, kind) for i, point in enumerate(points, 1))
    return Trajectory(str(document.get("name", path.stem)), steps, str(document.get("source", "")))


def _step(path: Path, number: int, point: Any, kind: str) -> Step:
    where = f"point {number} of `{path}`"
    if not isinstance(point, dict):
        raise CommandError(f"{where} is no object", 'write {"label": "v1", "flops_per_s": 2.27e12}')
    rate, work, time = (_positive(where, point, key) for key in ("flops_per_s", "work_flops", "time_s"))
    if rate is None and work is not None and time is not None:
        rate = work / time
    if rate is None:
        raise CommandError(f"{where} has no rate", "give `flops_per_s`, or `work_flops` and `time_s`")
    if work is None and time is not None:
        work = rate * time
    levels = point.get("intensity", {})
    if not isinstance(levels, dict):
        raise CommandError(f"the `intensity` of {where} is no object", 'write {"HBM": 3.2}')
    found = {name: _positive(where, levels, name) for name in levels}
    intensities = tuple((name, value) for name, value in found.items() if value is not None)
    return Step(Kernel(str(point.get("label", number)), rate, intensities, kind), work)


def _positive(where: str, values: dict[str, Any], key: str) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value <= 0:
        raise CommandError(f"`{key}` of {where} is no positive number")
    return float(value)
