"""The figure of a shared product: the terms of one device's time over the number of devices, both logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time
from roofdsl.plot.board import (
    DPI,
    INK,
    NORMAL,
    OKABE_ITO,
    PAPER,
    SIZE_IN,
    SMALL,
    check_format,
    darker,
    frame,
    save_figure,
)
from roofdsl.predict.sharded import ShardedPrediction


def save_sharded(path: Path, found: Sequence[ShardedPrediction], title: str | None = None) -> None:
    """Draws the predictions, one for each number of devices, into `path`, whose ending is the format.

    Raises CommandError for another ending, for fewer than two numbers of devices, and where it cannot be written.
    """
    kind = check_format(path)
    if len({f.network.devices for f in found}) < 2:
        raise CommandError("a line over devices takes two numbers of them or more", "as in --devices 2,4,8,16")
    save_figure(path, kind, lambda: draw_sharded(found, title))


def lines_of(found: Sequence[ShardedPrediction]) -> dict[str, list[float]]:
    """Seconds by term, in the order of `found`: compute, the memory, the links."""
    first = found[0]
    return {
        "compute": [float(f.compute_s) for f in found],
        first.device.memory.name: [float(f.device.memory.time_s) for f in found],
        first.link: [float(f.communication_s) for f in found],
    }


def draw_sharded(found: Sequence[ShardedPrediction], title: str | None = None) -> Any:
    """The matplotlib Figure, not bound to any display: a line for each term, between the bounds of the time."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    found = sorted(found, key=lambda f: f.network.devices)
    devices = [f.network.devices for f in found]
    figure = Figure(figsize=SIZE_IN, dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes((0.105, 0.115, 0.78, 0.795))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    lower, upper = [float(f.expected_s) for f in found], [float(f.no_overlap_s) for f in found]
    axes.fill_between(devices, lower, upper, color="#ECECEC", linewidth=0, label="between all and no overlap")
    axes.plot(devices, lower, color=INK, linewidth=5.5, alpha=0.22, solid_capstyle="round", label="all overlapped")
    names = lines_of(found)
    ends = []
    for color, (name, times) in zip(OKABE_ITO, names.items(), strict=False):
        shown = [(p, t) for p, t in zip(devices, times, strict=True) if t > 0]
        if not shown:
            continue
        axes.plot(*zip(*shown, strict=True), "o-", color=color, linewidth=1.8, markersize=5, zorder=3)
        ends.append((shown[-1][1], name, darker(color)))
    heights = _apart([t for t, _, _ in ends])
    for (_, name, color), height in zip(ends, heights, strict=True):
        axes.annotate(
            name, (devices[-1], height), xytext=(9, 0), textcoords="offset points", va="center", color=color,
            fontsize=NORMAL, annotation_clip=False,
        )  # fmt: skip
    axes.xaxis.set_major_locator(FixedLocator(devices))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda t, _: show_time(t, 3)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    s, network = found[0].sharding, found[0].network
    axes.set_xlabel(f"devices that share {s.parameter} ({network.topology.replace('-', ' ')})", fontsize=NORMAL + 1)
    axes.set_ylabel("time of one device", fontsize=NORMAL + 1)
    sizes = ", ".join(f"{n} = {v}" for n, v in found[0].parameters.items())
    named = f"{s.kernel.name}, {sizes}, on {found[0].device.machine}"
    frame(axes, title or named)
    axes.legend(frameon=False, fontsize=SMALL, loc="upper right")
    return figure


def _apart(values: Sequence[float]) -> list[float]:
    """The values moved up where names at them would overlap: a factor of 1.16 at least between neighbours."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    placed = list(values)
    for before, k in pairwise(order):
        placed[k] = max(placed[k], placed[before] * 1.16)
    return placed
