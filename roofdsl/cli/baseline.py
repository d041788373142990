"""The options of `roofdsl validate` for a project's own tests: a baseline, and reports that other programs read."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import click

from roofdsl.cli.option_groups import as_one
from roofdsl.lang.diagnostics import CommandError
from roofdsl.store.atomic import check_writable, write_whole
from roofdsl.tell.ci_reports import cases_of, junit, markdown
from roofdsl.validate.baseline import Baseline, Regressions, against, load_baseline, require_device
from roofdsl.validate.compare import Comparison
from roofdsl.validate.compare_points import PointCheck
from roofdsl.validate.run import Backend


def parse_share(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """`5%` or `0.05` as a fraction. Raises click.BadParameter for anything that is not one from 0 to 10."""
    text = value.strip()
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not (isfinite(found) and 0 <= found <= 10):
        raise click.BadParameter(f"`{text[:40]}` is not a share such as 5% or 0.05", ctx, param)
    return found


class Reports:
    """What the options ask for. Files are checked before anything is measured."""

    def __init__(self, baseline: str | None, allow: float, junit_path: str | None, markdown_path: str | None) -> None:
        """Raises CommandError for a baseline that cannot be read or a report that cannot be written."""
        self.baseline: Baseline | None = None if baseline is None else load_baseline(Path(baseline))
        self.allow = allow
        both = ((junit_path, junit), (markdown_path, markdown))
        self.paths = {Path(path): written for path, written in both if path is not None}
        for path in self.paths:
            check_writable(path)

    def before_measuring(self, backend: Backend) -> None:
        """Raises CommandError if the baseline is of another processor than this."""
        if self.baseline is not None and backend == "cpu":
            from roofdsl.measure.device import describe_cpu

            require_device(self.baseline, {describe_cpu().name})

    def beside(self, compared: Sequence[Comparison]) -> Regressions | None:
        """The runs beside the baseline; None without one. Raises CommandError if times cannot be compared."""
        if self.baseline is None:
            return None
        if not compared:
            raise CommandError("there is no measurement to compare with the baseline", "a profiler's points have none")
        return against(self.baseline, compared, self.allow)

    def write(
        self, compared: Sequence[Comparison], checks: Sequence[PointCheck], regressions: Regressions | None
    ) -> None:
        """Write the reports. Raises CommandError."""
        cases = cases_of(compared, checks, regressions)
        for path, written in self.paths.items():
            write_whole(path, written(cases))


baseline_options = as_one(
    "reports",
    Reports,
    of=("baseline", "allow", "junit", "markdown"),
    options=(
        click.option(
            "--baseline",
            metavar="RESULT.json",
            help="Fail if a run is slower than in these stored results, instead of slower than predicted.",
        ),
        click.option(
            "--allow",
            callback=parse_share,
            default="5%",
            show_default=True,
            metavar="SHARE",
            help="How much slower than the baseline a run may be.",
        ),
        click.option("--junit", metavar="FILE.xml", help="Write the results as JUnit XML."),
        click.option("--markdown", metavar="FILE.md", help="Write a table of the results in Markdown."),
    ),
)
"""--baseline, --allow, --junit and --markdown; the command gets `reports`."""


def status_beside(regressions: Regressions) -> int:
    """The exit status: 1 if a run is slower than its baseline, above the bound or not verified, 2 if one is
    inconclusive.
    """
    if any(
        change.verdict == "slower than its baseline"
        or change.comparison.verdict == "above the roof"
        or not change.comparison.measurement.verified.holds
        for change in regressions.changes
    ):
        return 1
    return 2 if any(change.verdict == "inconclusive" for change in regressions.changes) else 0
