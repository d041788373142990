"""The figure of a validation: expected and bound over measured time of every run, against the size of its data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.kernel_class import CLASSES
from benchmarks.validation_runs import CLOSE, Ran, Report
from roofdsl.machine.quantities import show_size
from roofdsl.validate.compare import DEFAULTS

PICTURE = "![Expected and bound over measured time against the size of the data](ratios.svg)"


def draw(report: Report, path: Path) -> None:
    """Two panels over the size of the data: expected / measured (if there are expected times) and bound / measured.

    One color and symbol for each class of kernels; shaded is what counts as agreement.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        panels: list[tuple[str, Callable[[Ran], float | None], tuple[float, float]]] = []
        if report.expected:
            panels.append(("Expected / measured", lambda run: run.of_expected, (1 - CLOSE, 1 + CLOSE)))
        panels.append(("Bound / measured", lambda run: run.of_bound, (1, 1 + DEFAULTS.margin)))
        figure = Figure(figsize=(9.2, 1.2 + 3.7 * len(panels)), dpi=100, layout="constrained")
        for k, (label, ratio, agreement) in enumerate(panels):
            axes = figure.add_subplot(len(panels), 1, k + 1, sharex=figure.axes[0] if k else None)
            _panel(axes, report, ratio, agreement)
            axes.set_ylabel(label)
        figure.axes[0].set_title(f"{report.machine.title}: every run", loc="left")
        figure.axes[-1].set_xlabel("Data touched")
        figure.axes[0].legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Any, report: Report, ratio: Callable[[Ran], float | None], agreement: tuple[float, float]) -> None:
    """The runs that have this ratio, one series for each class."""
    from matplotlib.ticker import LogLocator, NullFormatter

    from roofdsl.plot.look import INK, OKABE_ITO, SIGNS

    axes.axhspan(*agreement, color="#E8E8E8", zorder=0)
    axes.axhline(1, color=INK, linewidth=1.2)
    for k, kind in enumerate(CLASSES):
        points = [
            (run.compared.prediction.footprint_bytes or 1, value)
            for run in report.runs
            if run.kind == kind and (value := ratio(run)) is not None
        ]
        if any(run.kind == kind for run in report.runs):  # also without points here: the legend is for both panels
            look = {"color": OKABE_ITO[k % len(OKABE_ITO)], "marker": SIGNS[k % len(SIGNS)], "label": kind}
            xs, ys = [x for x, _ in points], [y for _, y in points]
            axes.plot(xs, ys, linestyle="none", markersize=6, alpha=0.85, mec="white", mew=0.5, **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda size, _: show_size(int(size)) if size >= 1 else "")
    axes.set_ylim(top=max(1.6, 1.2 * axes.get_ylim()[1]))
    for cache in report.machine.caches:
        axes.axvline(cache.size_bytes, color="#999999", linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            cache.name, (cache.size_bytes, 1), xycoords=("data", "axes fraction"), xytext=(-4, -4),
            textcoords="offset points", ha="right", va="top", color="#666666",
        )  # fmt: skip
    axes.grid(True, color="#E4E4E4", linewidth=0.7)
