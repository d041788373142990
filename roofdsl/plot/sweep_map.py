"""Figures of a sweep: curves over one column, or maps over two, one for each combination of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_number, show_size
from roofdsl.plot.board import frame_of, key_texts, log_axes
from roofdsl.plot.look import SIGNS, USUAL, Look, fitted, named, styled
from roofdsl.plot.sweep_thin import thinned
from roofdsl.plot.ticks import log_ticks, prefixed, set_ticks
from roofdsl.sweep.table import LongTable, Table, groups, keys_of

MOST_CURVES, MOST_MAPS, MOST_INSIDE = 24, 6, 6
LABELS = {
    "time_s": "Time at the bound (s)",
    "time_no_overlap_s": "Time without overlap (s)",
    "compute_s": "Compute time (s)",
    "flops_per_s": "Performance (FLOP/s)",
    "bytes_per_s": "Bandwidth (B/s)",
    "intensity": "Arithmetic intensity I (FLOP/byte)",
    "work_flops": "Work W (FLOP)",
    "launches": "Launches",
}


@dataclass(frozen=True)
class Curves:
    """(name, xs, ys) of each curve, by ascending x."""

    x: str
    value: str
    curves: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]


@dataclass(frozen=True)
class Map:
    """A value over two columns: `values[row][column]` at ys[row] and xs[column], nan if there is no point."""

    name: str
    x: str
    y: str
    value: str
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


def swept(table: Table) -> list[str]:
    """Those columns of `keys_of` that have several values."""
    return [n for n in keys_of(table) if len(table) and bool((table.columns[n] != table.columns[n][0]).any())]


def sweep_content(table: Table, value: str, over: Sequence[str]) -> Curves | tuple[Map, ...]:
    """The content of the figure. Raises CommandError for columns that are missing or have a single value, and for too
    many curves or maps to read.
    """
    import numpy as np

    keys = swept(table)
    numeric = [n for n in keys if n != "machine"]
    unknown = next((n for n in over if n not in numeric), None)
    if unknown is not None or len(over) > 2:
        listed = f"it has several values of {', '.join(numeric)}" if numeric else "it is a single point"
        raise CommandError(f"the sweep cannot be drawn over `{unknown or ','.join(over)}`", listed)
    if not numeric:
        raise CommandError("no parameter of the sweep has several values to draw over")
    table.numbers(value)  # reports a wrong name
    axes = list(over) or _axes({n: np.unique(table.columns[n]) for n in numeric})
    others = [n for n in keys if n not in axes]
    if len(axes) == 1:
        return _curves(table, value, axes[0], others)
    return _maps(table, value, (axes[0], axes[1]), others)


def _axes(values: Mapping[str, Any]) -> list[str]:
    """The columns to draw over: the last two if each has at least three values, else the one with the most values."""
    numeric = list(values)
    if len(numeric) >= 2 and all(len(values[n]) >= 3 for n in numeric[-2:]):
        return [numeric[-2], numeric[-1]]
    return [max(numeric, key=lambda n: len(values[n]))] if numeric else []


def _curves(table: Table, value: str, x: str, others: Sequence[str]) -> Curves:
    import numpy as np

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
    if name == "machine":
        return str(value)
    return f"{_name(name)} = {show_size(value) if name == 'cache_bytes' else value}"


def _name(column: str) -> str:
    return "cache" if column == "cache_bytes" else column


def _label(column: str) -> str:
    return LABELS.get(column, f"{column.removesuffix('_bytes')} traffic (B)" if column.endswith("_bytes") else column)


def draw_sweep_figure(table: Table, value: str, over: Sequence[str], title: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure of the results of a sweep. Raises CommandError like `sweep_content`."""
    table.require_numbers(value)
    if isinstance(table, LongTable):
        table, over = thinned(table, value, keys_of(table), lambda values: over or _axes(values))
    content = sweep_content(table, value, over)
    heading = _with_fixed(title, table)
    if isinstance(content, Curves):
        return draw_curves(content, heading, look=look)
    return draw_maps(content, heading, look=look)


def _with_fixed(title: str, table: Table) -> str:
    """The title with what is the same at all points: `matmul on v100, b = 16`."""
    varying = swept(table)
    fixed = [n for n in keys_of(table) if n not in varying and table.cell(n, 0) is not None]
    machine = [f" on {table.cell(n, 0)}" for n in fixed if n == "machine"]
    return ", ".join([title + "".join(machine), *(_cell(table, n, 0) for n in fixed if n != "machine")])


@styled
def draw_curves(content: Curves, title: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure of a family of curves, both axes logarithmic."""
    xs = sorted({x for _, row, _ in content.curves for x in row})
    ys = [y for _, _, row in content.curves for y in row if y > 0]
    if not ys:
        raise CommandError(f"no point of the sweep has a value of `{content.value}` above 0")
    x = look.limits((xs[0] / (xs[-1] / xs[0] or 1) ** 0.03 / 1.01, xs[-1] * (xs[-1] / xs[0]) ** 0.03 * 1.01), "x")
    y = look.limits((min(ys) / (max(ys) / min(ys)) ** 0.05 / 1.1, max(ys) * (max(ys) / min(ys)) ** 0.05 * 1.1), "y")
    shown = log_ticks(*y, most=9)
    key = [name for name, _, _ in content.curves] if len(content.curves) > MOST_INSIDE else []
    frame = frame_of(look, title, [prefixed(t) for t in shown], key=key_texts(key))
    axes = frame.axes
    for k, (name, row, values) in enumerate(content.curves):
        axes.plot(
            row, values, color=look.color(k), linewidth=1.7, marker=SIGNS[k % len(SIGNS)], markersize=4.5,
            markevery=max(1, len(row) // 16), label=named(name, 40),
        )  # fmt: skip
    log_axes(axes, look, x, y, (_name(content.x), _label(content.value)))
    set_ticks(axes.yaxis, shown, prefixed)
    _integer_ticks(axes.xaxis, content.x, [v for v in xs if x[0] <= v <= x[1]], x, (look, frame.inches[0]))
    if key:
        axes.legend(
            frameon=False, fontsize=look.small, loc="upper left", bbox_to_anchor=(1.01, 1.0), labelspacing=0.35,
            ncols=-(-len(key) // 22),
        )  # fmt: skip
    elif len(content.curves) > 1:
        axes.legend(frameon=False, fontsize=look.small)
    return frame.figure


def _integer_ticks(
    axis: Any, column: str, values: Sequence[float], limits: tuple[float, float], place: tuple[Look, float]
) -> None:
    """Ticks at the values themselves if there are few; else at powers of two."""
    look, inches = place

    def show(value: float) -> str:
        return show_size(round(value)) if column == "cache_bytes" else f"{round(value):,}"

    if not values:
        set_ticks(axis, [], show, minor=False)
        return
    longest = sorted({show(v) for v in values}, key=len)[-8:]  # thousands would take a minute
    most = max(2, int(inches / (max(look.width_in(text, look.normal) for text in longest) + 0.14)))
    ticks = list(values)
    if len(values) > most:
        powers = [2.0**k for k in range(64) if limits[0] <= 2.0**k <= limits[1]]
        ticks = (powers if len(powers) > 1 else ticks)[:: -(-len(powers if len(powers) > 1 else ticks) // most)]
    set_ticks(axis, ticks, show, minor=False)


@styled
def draw_maps(maps: Sequence[Map], title: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure of maps next to each other, with one logarithmic colour scale."""
    import numpy as np
    from matplotlib.colors import LogNorm

    maps = [_within(m, look) for m in maps]
    wide = min(len(maps), 3)
    tall = -(-len(maps) // wide)
    figure = look.figure((2.2 + 3.6 * wide if wide > 1 else 8.0, 0.9 + 3.6 * tall if wide > 1 else 5.2))
    figure.set_layout_engine("constrained")
    values = np.array([m.values for m in maps])
    shown = values[np.isfinite(values) & (values > 0)]
    if not len(shown):
        raise CommandError(f"no point of the sweep has a value of `{maps[0].value}` above 0")
    low, high = float(shown.min()), float(max(shown.max(), shown.min() * 1.01))
    norm = LogNorm(low, high)
    panels = figure.subplots(tall, wide, squeeze=False)
    width = float(figure.get_size_inches()[0])
    heading = look.heading(title, width - 0.8)
    mesh: Any = None
    for k, panel in enumerate(panels.flat):
        if k >= len(maps):
            panel.set_visible(False)
            continue
        each = int((width - 1.5) / wide * 72 / (0.56 * look.large))
        mesh = _draw_map(panel, maps[k], norm, heading if len(maps) == 1 else fitted(maps[k].name, each, 2), look)
    bar = figure.colorbar(mesh, ax=panels, pad=0.02)
    bar.set_label(_label(maps[0].value), fontsize=look.normal + look.font_scale, color=look.ink)
    set_ticks(bar.ax.yaxis, log_ticks(low, high, most=9), prefixed)
    bar.ax.tick_params(labelsize=look.small, which="both", colors=look.ink, labelcolor=look.ink)
    bar.outline.set_edgecolor(look.ink)
    if len(maps) > 1:
        figure.suptitle(heading, fontsize=look.large, x=0.01, ha="left", color=look.ink)
    return figure


def _within(content: Map, look: Look) -> Map:
    """The columns and rows within the limits. Raises CommandError if there are none."""
    (left, right), (low, high) = look.x or (0, float("inf")), look.y or (0, float("inf"))
    columns = [k for k, x in enumerate(content.xs) if left <= x <= right]
    rows = [k for k, y in enumerate(content.ys) if low <= y <= high]
    if not columns or not rows:
        raise CommandError(f"no value of {content.y if columns else content.x} lies between these limits")
    values = tuple(tuple(content.values[r][c] for c in columns) for r in rows)
    return replace(
        content, xs=tuple(content.xs[c] for c in columns), ys=tuple(content.ys[r] for r in rows), values=values
    )


def _draw_map(axes: Any, content: Map, norm: Any, title: str, look: Look) -> Any:
    import numpy as np

    grid = np.array(content.values)
    mesh = axes.pcolormesh(np.where(grid > 0, grid, np.nan), norm=norm, cmap="viridis")
    look.dress(axes)
    axes.set_facecolor(look.grey("#EEEEEE"))
    for axis, values, column in ((axes.xaxis, content.xs, content.x), (axes.yaxis, content.ys, content.y)):
        step = max(1, -(-len(values) // 9))
        places = range(0, len(values), step)
        axis.set_ticks([p + 0.5 for p in places])
        axis.set_ticklabels([show_size(values[p]) if column == "cache_bytes" else f"{values[p]:,}" for p in places])
        axis.set_label_text(_name(column), fontsize=look.normal + look.font_scale)
    axes.set_title(title, fontsize=look.normal + look.font_scale, loc="left", color=look.ink)
    axes.tick_params(labelsize=look.small)
    if grid.size <= 120:
        _numbers(axes, grid, norm, content.value, look)
    return mesh


def _numbers(axes: Any, grid: Any, norm: Any, value: str, look: Look) -> None:
    """Write every cell's value in it, if the cells are large enough."""
    box = axes.get_position()
    width, height = axes.figure.get_size_inches()
    cell = box.width * width / grid.shape[1], box.height * height / grid.shape[0]
    widest = max([0.0, *(look.width_in(_written(v, value), look.small) for _, v in _cells(grid))])
    if widest > 0.95 * cell[0] or look.small * 1.2 / 72 > cell[1]:
        return
    for (row, column), number in _cells(grid):
        color = "white" if norm(number) < 0.6 else "#222222"
        axes.text(
            column + 0.5, row + 0.5, _written(number, value), ha="center", va="center", fontsize=look.small - 1,
            color=color,
        )  # fmt: skip


def _written(number: float, value: str) -> str:
    return show_number(number, 3) if value == "intensity" else prefixed(float(f"{number:.3g}"))


def _cells(grid: Any) -> list[tuple[tuple[int, int], float]]:
    import numpy as np

    return [((int(r), int(c)), float(v)) for (r, c), v in np.ndenumerate(grid) if np.isfinite(v) and v > 0]
