"""The figure of published measurements: operators by time, and bandwidths of streams by resident threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.published import OperatorPoint, StreamPoint

PRODUCTS = ("linear", "bmm")
ROWS = ("ln", "softmax")


def draw(calls: Sequence[OperatorPoint], curves: Sequence[StreamPoint], path: Path) -> None:
    """Write the figure: a panel of operators for each device, and one of streams for each device that has them."""
    from matplotlib.figure import Figure

    devices = list(dict.fromkeys(p.device for p in calls))
    streaming = list(dict.fromkeys(p.device for p in curves))
    columns = max(len(devices), len(streaming), 1)
    rows = bool(devices) + bool(streaming)
    figure = Figure(figsize=(3.4 * columns, 3.1 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_visible(False)
    for panel, device in zip(panels[0], devices, strict=False):
        _operators(panel, [p for p in calls if p.device == device], device)
    for panel, device in zip(panels[-1], streaming, strict=False):
        _streams(panel, [p for p in curves if p.device == device], device)
    figure.savefig(path, dpi=130)


def _operators(panel: Axes, points: Sequence[OperatorPoint], device: str) -> None:
    panel.set_visible(True)
    groups = {
        "linear, bmm": [p for p in points if p.op in PRODUCTS],
        "elementwise": [p for p in points if p.op not in (*PRODUCTS, *ROWS)],
        "ln, softmax": [p for p in points if p.op in ROWS],
    }
    for name, own in groups.items():
        at = [1e3 * p.measured_s for p in own]
        panel.plot(at, [p.expected_s / p.measured_s for p in own], ".", markersize=3, alpha=0.6, label=name)
    panel.axhspan(0.9, 1.1, color="0.92", zorder=0)
    panel.axhline(1, color="0.4", linewidth=0.8)
    panel.set(xscale="log", yscale="log", ylim=(0.25, 4), title=device)
    panel.set(xlabel="measured time [ms]", ylabel="expected / measured")
    panel.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    panel.minorticks_off()
    panel.legend(fontsize="x-small", loc="upper right")


def _streams(panel: Axes, points: Sequence[StreamPoint], device: str) -> None:
    panel.set_visible(True)
    for loop in dict.fromkeys(p.loop for p in points):
        own = sorted((p for p in points if p.loop == loop), key=lambda p: p.threads)
        at = [p.threads for p in own]
        (drawn,) = panel.plot(at, [p.expected_per_s / 1e9 for p in own], linewidth=1, label=loop)
        panel.plot(at, [p.measured_per_s / 1e9 for p in own], ".", markersize=4, color=drawn.get_color())
    panel.set(title=device, xlabel="resident threads per multiprocessor", ylabel="GB/s", ylim=(0, None))
    panel.legend(fontsize="x-small", title="points: measured\nlines: expected", title_fontsize="x-small")
