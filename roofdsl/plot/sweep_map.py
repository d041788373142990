"""Figures of a sweep: a family of curves over one parameter, or maps over two, one a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_number, show_size
from roofdsl.plot.board import INK, NORMAL, OKABE_ITO, PAPER, SMALL, check_format, frame, prefixed, save_figure
from roofdsl.sweep.table import Table

MOST_CURVES, MOST_MAPS = 12, 6
LABELS = {
    "time_s": "Expected time (s)",
    "time_no_overlap_s": "Time without overlap (s)",
    "compute_s": "Compute time (s)",
    "flops_per_s": "Performance (FLOP/s)",
    "bytes_per_s": "Bandwidth (B/s)",
    "intensity": "Arithmetic intensity I (FLOP/byte)",
    "work_flops": "Work W (FLOP)",
    "launches": "Launches",
}
RESULTS = (*LABELS, "bound", "how")


@dataclass(frozen=True)
class Curves:
    """(name, xs, ys) of each curve, by ascending x."""

    x: str
    value: str
    curves: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]


@dataclass(frozen=True)
class Map:
    """A value over two columns: `values[row][column]` at ys[row] and xs[column], nan where there is no point."""

    name: str
    x: str
    y: str
    value: str
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


def swept(table: Table) -> list[str]:
    """The columns that say which point it is and that have several values: machine, cache and parameters."""
    keys = [n for n in table.names if n not in RESULTS and (not n.endswith("_bytes") or n == "cache_bytes")]
    return [n for n in keys if len(table) and bool((table.columns[n] != table.columns[n][0]).any())]


def sweep_content(table: Table, value: str, over: Sequence[str]) -> Curves | tuple[Map, ...]:
    """What is drawn. Raises CommandError for columns the table lacks, and for more curves or maps than can be read."""
    keys = swept(table)
    numeric = [n for n in keys if n != "machine"]
    unknown = next((n for n in over if n not in numeric), None)
    if unknown is not None or len(over) > 2:
        listed = f"it has several values of {', '.join(numeric)}" if numeric else "it is a single point"
        raise CommandError(f"the sweep cannot be drawn over `{unknown or ','.join(over)}`", listed)
    if not numeric:
        raise CommandError("no parameter of the sweep has several values, so that nothing can be drawn over one")
    table.numbers(value)  # says what is wrong with the name
    axes = list(over) or _axes(table, numeric)
    others = [n for n in keys if n not in axes]
    if len(axes) == 1:
        return _curves(table, value, axes[0], others)
    return _maps(table, value, (axes[0], axes[1]), others)


def _axes(table: Table, numeric: list[str]) -> list[str]:
    """The parameter with most values, or the last two where each has at least three values."""
    import numpy as np

    counts = {n: len(np.unique(table.columns[n])) for n in numeric}
    if len(numeric) >= 2 and all(counts[n] >= 3 for n in numeric[-2:]):
        return [numeric[-2], numeric[-1]]
    return [max(numeric, key=lambda n: counts[n])]


def _curves(table: Table, value: str, x: str, others: Sequence[str]) -> Curves:
    import numpy as np

    from roofdsl.sweep.table import groups

    xs, ys = table.numbers(x), table.numbers(value)
    parts = groups(table, others)
    if len(parts) > MOST_CURVES:
        raise CommandError(
            f"{len(parts):,} curves are too many to read", "draw over two columns with --over, or sweep less"
        )
    found = []
    for places in parts:
        kept = places[~np.isnan(ys[places])]
        by_x = kept[np.argsort(xs[kept], kind="stable")]
        name = ", ".join(_cell(table, n, int(places[0])) for n in others)
        found.append((name, tuple(map(float, xs[by_x])), tuple(map(float, ys[by_x]))))
    return Curves(x, value, tuple(found))


def _maps(table: Table, value: str, axes: tuple[str, str], others: Sequence[str]) -> tuple[Map, ...]:
    import numpy as np

    from roofdsl.sweep.table import groups

    parts = groups(table, others)
    if len(parts) > MOST_MAPS:
        raise CommandError(f"{len(parts):,} maps are too many to read", f"sweep fewer values of {', '.join(others)}")
    numbers = table.numbers(value)
    xs, ys = (np.unique(table.columns[n]) for n in axes)
    maps = []
    for places in parts:
        grid = np.full((len(ys), len(xs)), np.nan)
        rows = np.searchsorted(ys, table.columns[axes[1]][places])
        columns = np.searchsorted(xs, table.columns[axes[0]][places])
        grid[rows, columns] = numbers[places]
        name = ", ".join(_cell(table, n, int(places[0])) for n in others)
        values = tuple(tuple(map(float, row)) for row in grid)
        maps.append(Map(name, *axes, value, tuple(map(int, xs)), tuple(map(int, ys)), values))
    return tuple(maps)


def _cell(table: Table, name: str, place: int) -> str:
    value = table.cell(name, place)
    return (
        str(value) if name == "machine" else f"{_name(name)} = {show_size(value) if name == 'cache_bytes' else value}"
    )


def _name(column: str) -> str:
    return "cache" if column == "cache_bytes" else column


def _label(column: str) -> str:
    return LABELS.get(column, f"{column.removesuffix('_bytes')} traffic (B)" if column.endswith("_bytes") else column)


def save_sweep_figure(path: Path, table: Table, value: str, over: Sequence[str], title: str) -> None:
    """Draws into `path`. Raises CommandError as `sweep_content`, and where the file cannot be written."""
    kind = check_format(path)
    content = sweep_content(table, value, over)
    save_figure(
        path, kind, lambda: draw_curves(content, title) if isinstance(content, Curves) else draw_maps(content, title)
    )


def draw_curves(content: Curves, title: str) -> Any:
    """The matplotlib Figure of a family of curves, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.2), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0.105, 0.11, 0.86, 0.80))
    styles = ("-", (0, (5, 2)))
    for k, (name, xs, ys) in enumerate(content.curves):
        marker = "o" if len(xs) <= 40 else None
        axes.plot(
            xs, ys, color=OKABE_ITO[k % 6], linestyle=styles[k // 6 % 2], linewidth=1.7, marker=marker, markersize=4,
            label=name,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _decade_ticks(axes.yaxis)
    _integer_ticks(axes.xaxis, content.x, sorted({x for _, xs, _ in content.curves for x in xs}))
    axes.set_xlabel(_name(content.x), fontsize=NORMAL + 1)
    axes.set_ylabel(_label(content.value), fontsize=NORMAL + 1)
    frame(axes, title)
    if len(content.curves) > 1:
        axes.legend(frameon=False, fontsize=SMALL)
    return figure


def _decade_ticks(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if _decades(axis) < 3 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda v, _: _short(v)))
    axis.set_minor_formatter(NullFormatter())


def _decades(axis: Any) -> float:
    from math import log10

    low, high = axis.get_view_interval()
    return log10(high / low) if low > 0 else 9.0


def _short(value: float) -> str:
    """`10 G`, `20 us` without its unit: a number with the prefix of its unit."""
    if value >= 1:
        return prefixed(value)
    for factor, prefix in ((1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"


def _integer_ticks(axis: Any, column: str, values: Sequence[float]) -> None:
    """Ticks at the values themselves, where they are few."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    if len(values) <= 12:
        axis.set_major_locator(FixedLocator(list(values)))
        axis.set_minor_locator(NullLocator())
    show = show_size if column == "cache_bytes" else (lambda v: f"{round(v):,}")
    axis.set_major_formatter(FuncFormatter(lambda v, _: show(round(v)) if v >= 1 else ""))
    axis.set_minor_formatter(NullFormatter())


def draw_maps(maps: Sequence[Map], title: str) -> Any:
    """The matplotlib Figure of maps side by side, with one logarithmic scale of colours."""
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    wide = min(len(maps), 3)
    tall = -(-len(maps) // wide)
    figure = Figure(figsize=(2.2 + 3.6 * wide if wide > 1 else 8.0, 0.9 + 3.6 * tall if wide > 1 else 5.2), dpi=100)
    figure.set_facecolor(PAPER)
    figure.set_layout_engine("constrained")
    values = np.array([m.values for m in maps])
    shown = values[np.isfinite(values) & (values > 0)]
    if not len(shown):
        raise CommandError(f"no point of the sweep has a value of `{maps[0].value}` above 0")
    norm = LogNorm(float(shown.min()), float(max(shown.max(), shown.min() * 1.01)))
    panels = figure.subplots(tall, wide, squeeze=False)
    mesh: Any = None
    for k, panel in enumerate(panels.flat):
        if k >= len(maps):
            panel.set_visible(False)
            continue
        mesh = _draw_map(panel, maps[k], norm, title if len(maps) == 1 else maps[k].name)
    bar = figure.colorbar(mesh, ax=panels, pad=0.02)
    bar.set_label(_label(maps[0].value), fontsize=NORMAL + 1)
    _decade_ticks(bar.ax.yaxis)
    bar.ax.tick_params(labelsize=SMALL)
    if len(maps) > 1:
        figure.suptitle(title, fontsize=NORMAL + 2, x=0.01, ha="left", color=INK)
    return figure


def _draw_map(axes: Any, content: Map, norm: Any, title: str) -> Any:
    import numpy as np

    grid = np.array(content.values)
    mesh = axes.pcolormesh(np.where(grid > 0, grid, np.nan), norm=norm, cmap="viridis")
    axes.set_facecolor("#EEEEEE")
    for axis, values, column in ((axes.xaxis, content.xs, content.x), (axes.yaxis, content.ys, content.y)):
        step = max(1, -(-len(values) // 9))
        places = range(0, len(values), step)
        axis.set_ticks([p + 0.5 for p in places])
        axis.set_ticklabels([show_size(values[p]) if column == "cache_bytes" else f"{values[p]:,}" for p in places])
        axis.set_label_text(_name(column), fontsize=NORMAL + 1)
    axes.set_title(title, fontsize=NORMAL + 1, loc="left", color=INK)
    axes.tick_params(labelsize=SMALL)
    if grid.size <= 120:
        _numbers(axes, grid, norm, content.value)
    return mesh


def _numbers(axes: Any, grid: Any, norm: Any, value: str) -> None:
    """Every cell's value in it, where there are few."""
    for (row, column), number in _cells(grid):
        text = show_number(number, 3) if value == "intensity" else _short(float(f"{number:.3g}"))
        color = "white" if norm(number) < 0.6 else INK
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=SMALL - 1, color=color)


def _cells(grid: Any) -> list[tuple[tuple[int, int], float]]:
    import numpy as np

    return [((int(r), int(c)), float(v)) for (r, c), v in np.ndenumerate(grid) if np.isfinite(v) and v > 0]
