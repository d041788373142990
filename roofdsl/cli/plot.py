"""`roofdsl plot KIND`: figures."""

from __future__ import annotations

from collections.abc import Mapping

import click

from roofdsl.cli.lazy import LazyGroup

# name -> (module:attribute, one line of help)
KINDS: Mapping[str, tuple[str, str]] = {
    "roofline": ("roofdsl.cli.plot_roofline:roofline", "Performance over intensity, under a machine's roofs."),
    "hierarchy": ("roofdsl.cli.plot_hierarchy:hierarchy", "A symbol for every kernel and memory level."),
    "trajectory": ("roofdsl.cli.plot_trajectory:trajectory", "A kernel over sizes, or versions one after another."),
    "traffic": ("roofdsl.cli.plot_traffic:traffic", "Q(Z): traffic over cache size, exact, derived and simulated."),
}


@click.group(cls=LazyGroup, commands_at=KINDS)
def plot() -> None:
    """Draw a figure of the given KIND."""
