"""The figure of a sharded product: the terms of one device's time over the number of devices, both logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time
from roofdsl.plot.board import frame_of, log_axes
from roofdsl.plot.look import SIGNS, USUAL, Look, styled
from roofdsl.plot.ticks import log_ticks, set_ticks
from roofdsl.predict.sharded import ShardedPrediction


def lines_of(found: Sequence[ShardedPrediction]) -> dict[str, list[float]]:
    """Seconds by term, in the order of `found`: compute, the memory, the links."""
    first = found[0]
    return {
        "compute": [float(f.compute_s) for f in found],
        first.device.memory.name: [float(f.device.memory.time_s) for f in found],
        first.link: [float(f.communication_s) for f in found],
    }


@styled
def draw_sharded(found: Sequence[ShardedPrediction], title: str | None = None, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure, not bound to any display: a line for each term, and the band between the bounds of the
    time.

    found: a prediction for each number of devices. Raises CommandError for fewer than two numbers.
    """
    if len({f.network.devices for f in found}) < 2:
        raise CommandError("a figure over devices needs at least two numbers of devices", "as in --devices 2,4,8,16")
    found = sorted(found, key=lambda f: f.network.devices)
    devices = [f.network.devices for f in found]
    lower, upper = [float(f.bound_s) for f in found], [float(f.no_overlap_s) for f in found]
    names = {name: times for name, times in lines_of(found).items() if any(times)}
    every = [t for times in names.values() for t in times if t > 0] + lower + upper
    x = look.limits((devices[0] / 1.06, devices[-1] * 1.06), "x")
    y = look.limits((min(every) / 1.5, max(every) * 1.9), "y")
    s, network = found[0].sharding, found[0].network
    sizes = ", ".join(f"{n} = {v:,}" for n, v in found[0].parameters.items())
    shown = log_ticks(*y, most=9)
    frame = frame_of(
        look, title or f"{s.kernel.name}, {sizes}, on {found[0].device.machine}", [show_time(t, 3) for t in shown],
        right_in=0.3 + max(look.width_in(name, look.normal) for name in names) / look.font_scale,
    )  # fmt: skip
    axes = frame.axes
    shared = f"devices that share {s.parameter} ({network.topology.replace('way-', 'way ')})"
    log_axes(axes, look, x, y, (shared, "time of one device"))
    axes.fill_between(
        devices, lower, upper, color=look.grey("#E4E4E4"), linewidth=0, label="between full and no overlap"
    )  # fmt: skip
    axes.plot(devices, lower, color=look.ink, linewidth=5.5, alpha=0.22, solid_capstyle="round", label="all overlapped")
    ends = []
    for k, (name, times) in enumerate(names.items()):
        line = [(p, t) for p, t in zip(devices, times, strict=True) if t > 0]
        axes.plot(
            *zip(*line, strict=True), marker=SIGNS[k % len(SIGNS)], color=look.color(k), linewidth=1.8, markersize=5,
            zorder=3,
        )  # fmt: skip
        ends.append((line[-1][1], name, look.letters(look.color(k))))
    step = (y[1] / y[0]) ** (look.normal * 1.35 / 72 / frame.inches[1])
    for (_, name, color), height in zip(ends, _apart([t for t, _, _ in ends], step), strict=True):
        if y[0] <= height <= y[1]:
            axes.annotate(
                name, (1, height), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                va="center", color=color, fontsize=look.normal, annotation_clip=False,
            )  # fmt: skip
    inside = [p for p in devices if x[0] <= p <= x[1]]
    each = max(look.width_in(f"{p:,}", look.normal) for p in devices) + 0.1
    most = max(2, int(frame.inches[0] / each))
    set_ticks(axes.xaxis, inside[:: -(-len(inside) // most)] if inside else [], lambda p: f"{p:,g}", minor=False)
    set_ticks(axes.yaxis, shown, lambda t: show_time(t, 3))
    axes.legend(frameon=False, fontsize=look.small, loc="upper right")
    return frame.figure


def _apart(values: Sequence[float], step: float) -> list[float]:
    """The values moved up where their names would overlap, so that neighbours differ by at least a factor of `step`."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    placed = list(values)
    for before, k in pairwise(order):
        placed[k] = max(placed[k], placed[before] * step)
    return placed
