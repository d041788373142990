"""`roofdsl plot KIND`: figures."""

from __future__ import annotations

from collections.abc import Mapping

import click

from roofdsl.cli.lazy import LazyGroup

# name -> (module:attribute, one line of help)
KINDS: Mapping[str, tuple[str, str]] = {
    "roofline": ("roofdsl.cli.plot_roofline:roofline", "Performance over intensity, under a machine's roofs."),
    "hierarchy": ("roofdsl.cli.plot_levels:hierarchy", "A symbol for every kernel and memory level."),
    "trajectory": ("roofdsl.cli.plot_levels:trajectory", "A kernel over sizes, or versions one after another."),
    "complexity": ("roofdsl.cli.plot_times:complexity", "Work over bytes, with the balance and the launches' box."),
    "time": ("roofdsl.cli.plot_times:time", "Compute time over bandwidth time, with lines of equal run time."),
    "complexity-time": (
        "roofdsl.cli.plot_times:complexity_time",
        "Both in one: closed work and bytes, open run time.",
    ),
    "runtime": ("roofdsl.cli.plot_times:runtime", "Run times as bars, programs by their kernels."),
    "traffic": ("roofdsl.cli.plot_traffic:traffic", "Q(Z): traffic over cache size, exact, derived and simulated."),
}


@click.group(cls=LazyGroup, commands_at=KINDS)
def plot() -> None:
    """Draw a figure of the given KIND."""
