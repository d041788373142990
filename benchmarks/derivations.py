"""How long each derivation takes in a warm process: W and compulsory traffic, Q(Z), a value, and all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from benchmarks.kernels import fresh, shipped, size_of
from benchmarks.measure import Timing, markdown, show_seconds, timed
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic

REPEATS = 5
CACHE_BYTES = 256 * 1024
SIZES_TEXT = "the file's defaults, else n = m = k = 512 (100 on cubes of points), b = 32, steps = 10, batch = 16"

MEDIAN_GOAL_S = 0.2
GOALS = {"matmul_blocked": 1.0, "stencil27": 2.0, "heat3d_time": 10.0}
"""Seconds within which these are to be derived."""

NEAR = 1.25
"""The goal of the blocked product reads "near 1 s": up to this factor counts as near."""

HEAD = (
    "kernel",
    "W and compulsory",
    "Q(Z) plateaus",
    "plateaus",
    "value at a size",
    "way",
    "derive",
    "least",
    "processor",
    "runs",
)


@dataclass(frozen=True)
class Row:
    """Timings of one kernel. The result of each is what came out, in words."""

    kernel: str
    forms: Timing[str]
    plateaus: Timing[str]
    value: Timing[str]
    derive: Timing[str]
    size: dict[str, int]

    @property
    def complete(self) -> bool:
        """Whether W, compulsory traffic and plateaus have closed forms."""
        return not self.forms.result and self.plateaus.result.isdigit()


def measure(name: str, checked: CheckedFile, repeats: int = REPEATS) -> Row:
    """All timings of one kernel."""
    size = size_of(fresh(checked, name))

    def value(kernel: Kernel) -> str:
        return _value(kernel, size)

    def time_of(step: Callable[[Kernel], str]) -> Timing[str]:
        return timed(lambda: _told(step, fresh(checked, name)), repeats)

    return Row(name, time_of(_forms), time_of(_plateau_forms), time_of(value), time_of(_derive), size)


def _told(step: Callable[[Kernel], str], kernel: Kernel) -> str:
    try:
        return step(kernel)
    except (NoClosedForm, CommandError) as error:
        return f"refused: {error.message if isinstance(error, CommandError) else error}"


def _convention(kernel: Kernel) -> Traffic:
    return kernel.traffic or "load_store"


def _forms(kernel: Kernel) -> str:
    forms = ClosedForms(kernel, {})
    _ = forms.work
    forms.compulsory(_convention(kernel))
    return ""


def _plateau_forms(kernel: Kernel) -> str:
    return str(len(ClosedForms(kernel, {}).plateau_forms(_convention(kernel))))


def _value(kernel: Kernel, size: dict[str, int]) -> str:
    work_at(kernel, size)
    return traffic_at(kernel, size, CACHE_BYTES, None, _convention(kernel)).method


def _derive(kernel: Kernel) -> str:
    return str(len(derive(kernel).plateaus))


def measure_all(names: Iterable[str] | None = None, repeats: int = REPEATS, tell: bool = False) -> list[Row]:
    """Timings of all shipped kernels, or of those named, after one pass over a small one to load all modules."""
    files = shipped()
    measure("triad", files["triad"], 1)
    rows = []
    for name in names or files:
        rows.append(measure(name, files[name], repeats))
        if tell:
            print(f"  {name}: derive {show_seconds(rows[-1].derive.median)} s", flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """One line a kernel: medians in seconds. Reasons of refusals stand below the table."""
    cells = []
    for r in rows:
        refused = r.plateaus.result.startswith("refused")
        cells.append(
            (
                r.kernel,
                show_seconds(r.forms.median) + (" (refused)" if r.forms.result else ""),
                show_seconds(r.plateaus.median),
                "refused" if refused else r.plateaus.result,
                show_seconds(r.value.median),
                "refused" if r.value.result.startswith("refused") else r.value.result,
                show_seconds(r.derive.median),
                show_seconds(r.derive.least),
                show_seconds(r.derive.processor_median),
                str(len(r.derive.seconds)),
            )
        )
    return markdown(HEAD, cells, numeric=(1, 2, 3, 4, 6, 7, 8, 9))


def refusals(rows: list[Row]) -> str:
    """What was refused and why, as a list; empty where nothing was."""
    reasons: dict[str, list[str]] = {}
    for r in rows:
        for what, timing in (("closed forms", r.forms), ("plateaus", r.plateaus), ("value", r.value)):
            if timing.result.startswith("refused"):
                reasons.setdefault(timing.result.removeprefix("refused: "), []).append(f"{r.kernel} ({what})")
    return "\n".join(f"- {', '.join(where)}: {why}" for why, where in reasons.items())


def goals(rows: list[Row]) -> str:
    """The goals that concern the kernels measured, and whether they are reached."""
    lines = []
    if len(rows) > len(GOALS):
        all_of = median(r.derive.median for r in rows)
        plateaus = median(r.plateaus.median for r in rows)
        spent = median(r.derive.processor_median for r in rows)
        both = (
            f"{show_seconds(all_of)} s (processor {show_seconds(spent)} s; plateaus alone {show_seconds(plateaus)} s)"
        )
        what = f"median of {len(rows)} shipped kernels"
        lines.append((what, f"under {MEDIAN_GOAL_S:g} s", both, all_of, MEDIAN_GOAL_S))
    for r in rows:
        if r.kernel in GOALS:
            goal = GOALS[r.kernel]
            near = r.kernel == "matmul_blocked"
            text = f"near {goal:g} s" if near else f"under {goal:g} s"
            cpu = show_seconds(r.derive.processor_median)
            found = f"{show_seconds(r.derive.median)} s (processor {cpu} s){'' if r.complete else ', refused'}"
            value = r.derive.median if r.complete else float("inf")
            lines.append((r.kernel, text, found, value, goal * NEAR if near else goal))
    cells = [(a, b, c, "reached" if value <= limit else "not reached") for a, b, c, value, limit in lines]
    return markdown(("derivation", "goal", "measured", ""), cells)


def section(rows: list[Row]) -> str:
    """The part of a report."""
    reasons = refusals(rows)
    return "\n\n".join(
        [
            "## Derivations",
            "Medians in seconds, in one warm process, fresh objects in every run. `W and compulsory` and `Q(Z) "
            "plateaus` are the closed forms in all parameters, each from the kernel alone; `value at a size` is W and "
            f"the exact traffic behind {CACHE_BYTES // 1024} KiB at {SIZES_TEXT}; `derive` is the whole library call "
            "of that name without sizes (legality, W by class and type, compulsory and `once` traffic, plateaus), "
            "`least` its fastest run of `runs`, `processor` the median of processor time, which other "
            "load on the machine lengthens less. A refusal is timed until it is told.",
            goals(rows),
            table(rows),
            *([f"Refused:\n\n{reasons}"] if reasons else []),
        ]
    )
