"""`roofdsl import ncu`: converts a profiler's report to measured points."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.lazy import LazyGroup
from roofdsl.cli.options import json_option, show_json, warn
from roofdsl.cli.text import show_blocks
from roofdsl.profiler.measured_points import MeasuredPoint, save_points
from roofdsl.profiler.metrics import points_of
from roofdsl.profiler.tables import read
from roofdsl.store.atomic import check_writable
from roofdsl.tell.measured_points import blocks

FORMATS = {"ncu": ("roofdsl.cli.import_ncu:ncu", "Read a CSV report of Nsight Compute or nvprof.")}


@click.group(name="import", cls=LazyGroup, commands_at=FORMATS)
def import_group() -> None:
    """Import measurements from other tools as points."""


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT.csv...")
@click.option(
    "-o", "--output", metavar="POINTS.json", help="The file to write; figures read it with --measured-file or --points."
)
@click.option("--kernel", "pattern", metavar="TEXT", help="Import only kernels whose name contains TEXT.")
@click.option(
    "--tensor-flop",
    type=click.IntRange(1, 1 << 24),
    metavar="N",
    help="Operations of one tensor instruction of a warp; needed for every GPU but a V100 (512).",
)
@json_option
def ncu(
    *, reports: tuple[str, ...], output: str | None, pattern: str | None, tensor_flop: int | None, as_json: bool
) -> None:
    """Read each kernel's time, operations and bytes per level from a profiler's REPORTs, taken together."""
    if output is not None:
        check_writable(Path(output))
    launches = [one for name in reports for one in read(Path(name))]
    if pattern is not None:
        launches = [one for one in launches if pattern in one.kernel]
    if not launches:
        what = "has no kernel" if pattern is None else f"has no kernel with `{pattern}` in its name"
        raise click.UsageError(f"{', '.join(reports)} {what}")
    found = points_of(launches, ", ".join(Path(name).name for name in reports), tensor_flop)
    if output is not None:
        save_points(Path(output), found)
    if as_json:
        show_json(found.to_json())
    else:
        show_blocks(blocks(found))
    for note in found.notes:
        warn(note)
    for kernels, names in _missing(found.points):
        warn(f"{kernels}: not measured: {names}")


def _missing(points: tuple[MeasuredPoint, ...]) -> list[tuple[str, str]]:
    """Kernels grouped by the metrics they lack."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for p in points:
        if p.missing:
            groups.setdefault(p.missing, []).append(p.label)
    every = len(points)
    return [("every kernel" if len(k) == every else ", ".join(k), "; ".join(m)) for m, k in groups.items()]
