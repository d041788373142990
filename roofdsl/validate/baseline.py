"""New measurements beside those of a baseline: which runs became slower, beyond noise and beyond what is allowed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source
from roofdsl.machine.quantities import show_number, show_time
from roofdsl.measure.measurement import CORES, OTHERS, Measurement, parse
from roofdsl.measure.other_load import BUSY, taken_by_others
from roofdsl.predict.prediction import Prediction
from roofdsl.validate.compare import Comparison
from roofdsl.validate.rank_test import larger_p, least_p

LEVEL = 0.01
"""How probable a false alarm may be, in all runs of a comparison together."""

_LARGEST_FILE = 64 << 20
_VALIDATION = "roofdsl.validate/1"

Verdict = Literal["slower than its baseline", "not slower", "inconclusive", "not in the baseline"]


@dataclass(frozen=True)
class Baseline:
    """The measurements of a file; if it is a document of `validate --json`, with the prediction of each (empty where
    the document has none).
    """

    path: str
    measurements: tuple[Measurement, ...]
    predictions: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Compared:
    """A run beside its baseline. p: the probability of such ranks if it is not slower by more than is allowed.

    before: None if the baseline does not have the run. why: what is known of the cause, in words.
    """

    comparison: Comparison
    before: Measurement | None
    p: float | None
    verdict: Verdict
    why: str = ""

    @property
    def slower_by(self) -> float | None:
        """The median over that of the baseline, minus 1."""
        return None if self.before is None else self.comparison.measured_s / self.before.median_s - 1


@dataclass(frozen=True)
class Regressions:
    """All runs beside the baseline, and the runs of the baseline that were not measured now."""

    baseline: Baseline
    allowed: float
    level: float
    changes: tuple[Compared, ...]
    missing: tuple[Measurement, ...]


def load_baseline(path: Path) -> Baseline:
    """The measurements that `measure -o`, `validate -o`, or `--json` of either wrote.

    Raises CommandError if the file cannot be read or holds no measurement, InputError if it is damaged.
    """
    text = read_limited(path, _LARGEST_FILE, "a baseline").decode("utf-8-sig", "replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # `parse` says what is wrong with it, and where
    if not isinstance(document, dict) or document.get("schema") != _VALIDATION:
        return Baseline(str(path), parse(Source(str(path), text)))
    rows = document.get("comparisons")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        again = "write it again: `roofdsl validate ... --json > FILE`"
        raise CommandError(f"the baseline `{path}` holds no measurement", again)
    held = json.dumps([row.get("measurement") for row in rows], indent=1)
    found = parse(Source(f"{path} (its measurements)", held))
    predictions = tuple(p if isinstance(p := row.get("prediction"), dict) else {} for row in rows)
    return Baseline(str(path), found, predictions)


def against(baseline: Baseline, comparisons: Sequence[Comparison], allowed: float, level: float = LEVEL) -> Regressions:
    """Every new measurement beside that of the same run in the baseline.

    A run is slower if its median exceeds that of the baseline by more than `allowed`, and if the rank test says so too:
    the times of the baseline, lengthened by `allowed`, would give such ranks with a probability below `level` divided
    by the number of runs. A false alarm in any of them is then rarer than `level` (Bonferroni), as long as the times
    are independent. Raises CommandError for a baseline of another processor or machine.
    """
    _require_same(baseline, comparisons)
    by_run = {_run(m): m for m in baseline.measurements}
    pairs = [(c, by_run.get(_run(c.measurement))) for c in comparisons]
    known = sum(before is not None for _, before in pairs)
    changes = tuple(
        Compared(c, None, None, "not in the baseline") if before is None else _change(c, before, allowed, level / known)
        for c, before in pairs
    )
    now = {_run(c.measurement) for c in comparisons}
    return Regressions(baseline, allowed, level, changes, tuple(m for key, m in by_run.items() if key not in now))


def _run(m: Measurement) -> tuple[object, ...]:
    """What two measurements have in common that can be compared."""
    return m.kernel, tuple(sorted(m.parameters)), m.backend, m.variant, m.state, m.threads


def _change(c: Comparison, before: Measurement, allowed: float, level: float) -> Compared:
    now = c.measurement
    p = larger_p([t * (1 + allowed) for t in before.times_s], now.times_s)
    beyond = now.median_s > before.median_s * (1 + allowed)
    if not beyond:
        return Compared(c, before, p, "not slower")
    least = least_p(len(before.times_s), len(now.times_s))
    if least >= level:
        few = f"{len(before.times_s)} and {len(now.times_s)} repeats are too few to tell it from noise"
        return Compared(c, before, p, "inconclusive", few)
    if p >= level:
        return Compared(c, before, p, "not slower")
    others = now.details.get(OTHERS)
    if isinstance(others, int | float) and others >= BUSY:
        return Compared(c, before, p, "inconclusive", taken_by_others(float(others)))
    return Compared(c, before, p, "slower than its baseline", "; ".join(_causes(before, now)))


def _causes(before: Measurement, now: Measurement) -> list[str]:
    """What differs between the two records."""
    found = []
    if before.work != now.work:
        found.append(f"it does {now.work:,} operations instead of {before.work:,}")
    elif before.source_sha256 != now.source_sha256:
        found.append("its text has changed")
    if before.generated_sha256 != now.generated_sha256:
        found.append("the generated code has changed")
    if before.compiler != now.compiler:
        found.append(f"the compiler is {now.compiler} instead of {before.compiler}")
    for name, version in now.software.items():
        old = before.software.get(name)
        if old is not None and old != version:
            found.append(f"{name} is {version} instead of {old}")
    return found


def described(change: Compared) -> str:
    """`12 % slower than its baseline (1.2 ms, was 1.07 ms; p = 2e-09)`, with the causes that are known."""
    assert change.before is not None and change.slower_by is not None
    times = f"{show_time(change.comparison.measured_s)}, was {show_time(change.before.median_s)}; p = {change.p:.1g}"
    told = f"{show_number(100 * change.slower_by, 2)} % slower than its baseline ({times})"
    return f"{told}: {change.why}" if change.why else told


def require_device(baseline: Baseline, now: set[str]) -> None:
    """Raise CommandError if the baseline was measured on another processor or GPU than these."""
    then = {str(m.device.get("name")) for m in baseline.measurements}
    if then - now:
        theirs, ours = " and ".join(sorted(then - now)), " and ".join(sorted(now))
        raise CommandError(
            f"the baseline `{baseline.path}` was measured on {theirs}, but this computer has {ours}",
            "measure a new baseline on this computer",
        )


def _require_same(baseline: Baseline, comparisons: Sequence[Comparison]) -> None:
    """Raise CommandError if times cannot be compared: another processor or GPU, another machine file."""
    require_device(baseline, {str(c.measurement.device.get("name")) for c in comparisons})
    names = {c.prediction.machine for c in comparisons}
    other = next((str(p.get("machine")) for p in baseline.predictions if p and p.get("machine") not in names), None)
    if other is not None:
        raise CommandError(
            f"the baseline `{baseline.path}` was compared with machine {other}, and this is "
            f"{' and '.join(sorted(names))}",
            "give the same --machine, or write the baseline again with this one",
        )
    here = {(c.prediction.machine, *_run_on_cores(c.measurement)): _rates(c.prediction) for c in comparisons}
    for m, p in zip(baseline.measurements, baseline.predictions, strict=False):
        rates = here.get((str(p.get("machine")), *_run_on_cores(m)), {})
        for what, rate in _stored_rates(p).items():
            if rates.get(what, rate) != rate:
                raise CommandError(
                    f"the baseline `{baseline.path}` was compared with another file of machine {p.get('machine')}: its "
                    f"{what} is {rate:.4g} per second there, and {rates[what]:.4g} here",
                    "give the same machine file, or write the baseline again with this one",
                )


def _run_on_cores(m: Measurement) -> tuple[object, ...]:
    """A run, and on how many cores of the machine it was predicted; None for all of them."""
    return *_run(m), m.details.get(CORES)


def _rates(p: Prediction) -> dict[str, float]:
    """Peak and bandwidths of the machine, as a kernel sees them."""
    found = {f"bandwidth of {v.name}": float(v.bandwidth_bytes_per_s) for v in p.levels}
    if p.machine_peak_per_s is not None:
        found["peak"] = float(p.machine_peak_per_s)
    return found


def _stored_rates(p: dict[str, Any]) -> dict[str, float]:
    """The same of a stored prediction; what is not as `predict --json` writes it is left out."""
    levels = p.get("levels")
    rows = [v for v in levels if isinstance(v, dict)] if isinstance(levels, list) else []
    named = {f"bandwidth of {v.get('name')}": v.get("bandwidth_bytes_per_s") for v in rows}
    named["peak"] = p.get("machine_peak_flops")
    return {what: float(rate) for what, rate in named.items() if isinstance(rate, int | float)}
