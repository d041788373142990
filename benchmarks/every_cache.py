"""Q(Z) of all PolyBench kernels in closed form, Z and all sizes symbols: what it takes, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from statistics import mean, median

from benchmarks.derivations import REPEATS
from benchmarks.measure import Timing, markdown, show_seconds, timed
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.lang.checked import CheckedFile
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import shipped

MEDIAN_GOAL_S, MEAN_GOAL_S = 0.5, 2.0


@dataclass(frozen=True)
class Row:
    """What the forms of one kernel take from the text of its file on; the result says what they are."""

    kernel: str
    cases: Timing[str]
    terms: Timing[str]


def measure_all(names: Iterable[str] | None = None, repeats: int = REPEATS) -> list[Row]:
    """Each kernel (all where none are named) `repeats` times, by cases that exclude each other and as a sum."""
    files = {name: load_file(path) for name, path in shipped("polybench").items()}
    chosen = tuple(names or files)
    _by_cases(files[chosen[0]], chosen[0])  # loads all modules
    return [
        Row(
            name,
            timed(partial(_by_cases, files[name], name), repeats),
            timed(partial(_as_sum, files[name], name), repeats),
        )
        for name in chosen
    ]


def _by_cases(checked: CheckedFile, name: str) -> str:
    try:
        return str(len(ClosedForms(kernel(checked, name), {}).at_any_cache("load_store").total.cases))
    except NoClosedForm:
        return "-"


def _as_sum(checked: CheckedFile, name: str) -> str:
    try:
        form = ClosedForms(kernel(checked, name), {}).terms_at_any_cache("load_store").total
    except NoClosedForm as error:
        return f"refused: {error}"
    summed = sum(term.over is not None for term in form.terms)
    return f"{len(form.terms)}{f', {summed} of them sums' if summed else ''}"


def section(rows: list[Row]) -> str:
    """The part of a report."""
    found = [r for r in rows if not r.terms.result.startswith("refused")]
    seconds = [r.terms.processor_median for r in rows]
    goals = markdown(
        ("Q(Z) of PolyBench", "goal", "measured", ""),
        [
            (what, f"under {goal:g} s", f"{show_seconds(value)} s", "reached" if value < goal else "not reached")
            for what, goal, value in (("median", MEDIAN_GOAL_S, median(seconds)), ("mean", MEAN_GOAL_S, mean(seconds)))
        ],
    )
    cells = [(r.kernel, r.terms.result, show_seconds(r.terms.processor_median), r.cases.result) for r in rows]
    return "\n\n".join(
        [
            "## Q(Z) with Z a symbol",
            f"{len(found)} of {len(rows)} kernels, elements as lines, load_store; medians of processor time in seconds "
            "from the file's text on, reuse distances included. Terms: of the sum that Q(Z) is. Cases: of the same by "
            "cases that exclude each other, where there are such.",
            goals,
            markdown(("kernel", "terms", "s", "cases"), cells, numeric=(2, 3)),
        ]
    )
