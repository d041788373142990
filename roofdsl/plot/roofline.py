"""The roofline figure: log-log, roofs and ceilings named along their lines, points named without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, ceil, cos, degrees, floor, hypot, log10, sin
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_bandwidth
from roofdsl.plot.content import MachineRoofs, Point, Window, ridge_label, window_of
from roofdsl.plot.labels import Box, place, stack

# Okabe and Ito: told apart with any colour vision. Black is for a single machine's lines.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, PAPER = "#222222", "#FFFFFF"
FORMATS = ("svg", "png", "pdf")
_SIZE_IN = (8.0, 5.2)
_DPI = 100
_AXES = (0.095, 0.11, 0.87, 0.80)  # left, bottom, width, height, as parts of the figure
_SMALL, _NORMAL = 8.5, 9.5


def save_roofline(
    path: Path, machines: Sequence[MachineRoofs], points: Sequence[Point] = (), title: str | None = None
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, for no machine with a roof, and where the file cannot be written.
    """
    kind = check_format(path)
    shown = [m for m in machines if m.roofs]
    if not shown:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = draw_roofline(shown, points, title)
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        try:
            figure.savefig(path, format=kind, dpi=2 * _DPI, metadata=metadata)
        except OSError as error:
            raise CommandError(f"`{path}` cannot be written: {error.strerror or error}") from None


def check_format(path: Path) -> str:
    """The format that the ending names. Raises CommandError for another than svg, png and pdf."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(f"`{path}` is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}", "end its name in .svg")
    return kind


def draw_roofline(machines: Sequence[MachineRoofs], points: Sequence[Point] = (), title: str | None = None) -> Any:
    """The matplotlib Figure, not bound to any display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_IN, dpi=_DPI, facecolor=PAPER)
    axes = figure.add_axes(_AXES)
    window = window_of(machines, points)
    _axes(
        axes,
        window,
        title if title is not None else _title(machines),
        any(" OP/s" in r.label for m in machines for r in m.roofs),
    )
    board = _Board(figure, axes, window)
    colors = {m.name: INK if len(machines) == 1 else OKABE_ITO[i % 6] for i, m in enumerate(machines)}
    board.points = [board.pixel(*_place_of(p, machines, window)) for p in points]
    for machine in machines:
        _lines(board, machine if len(machines) == 1 else machine.without_ceilings(), colors[machine.name])
    handles = _legend(machines, points, colors)
    if handles:
        axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=_SMALL)
        width = max(board.size(h.get_label(), _SMALL)[0] for h in handles) + 50
        board.taken.append(Box(board.frame.x1 - width, 0, board.frame.x1, board.frame.y0 + 20 * len(handles) + 8))
    _points(board, points, machines, colors)
    return figure


def _title(machines: Sequence[MachineRoofs]) -> str:
    return machines[0].title or machines[0].name if len(machines) == 1 else ""


@dataclass
class _Board:
    """Axes with known limits: data to pixels without asking matplotlib, and what already takes up room."""

    figure: Any
    axes: Any
    window: Window

    def __post_init__(self) -> None:
        width, height = (n * _DPI for n in _SIZE_IN)
        left, bottom, w, h = _AXES
        self.frame = Box(left * width, bottom * height, (left + w) * width, (bottom + h) * height)
        self.points: list[tuple[float, float]] = []
        self.taken: list[Box] = []
        self.crossed: list[Box] = []
        (x0, x1), (y0, y1) = self.window.x, self.window.y
        self.per_decade_x = (self.frame.x1 - self.frame.x0) / log10(x1 / x0)
        self.per_decade_y = (self.frame.y1 - self.frame.y0) / log10(y1 / y0)

    @property
    def angle(self) -> float:
        """Of a line of constant bandwidth, in radians."""
        return atan2(self.per_decade_y, self.per_decade_x)

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        return (
            self.frame.x0 + log10(x / self.window.x[0]) * self.per_decade_x,
            self.frame.y0 + log10(y / self.window.y[0]) * self.per_decade_y,
        )

    def data(self, px: float, py: float) -> tuple[float, float]:
        return (
            self.window.x[0] * 10 ** ((px - self.frame.x0) / self.per_decade_x),
            self.window.y[0] * 10 ** ((py - self.frame.y0) / self.per_decade_y),
        )

    def size(self, text: str, points: float) -> tuple[float, float]:
        """Width and height of a text, in pixels."""
        from matplotlib.textpath import TextPath

        box = TextPath((0, 0), text, size=points).get_extents()
        return 1.03 * box.width * _DPI / 72 + 4, points * 1.25 * _DPI / 72

    def hides_point(self, boxes: Sequence[Box]) -> int:
        """How many points lie under these rectangles."""
        near = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in self.points]
        return sum(any(b.overlap(n) for b in boxes) for n in near)

    def text(self, px: float, py: float, text: str, points: float, **style: Any) -> None:
        x, y = self.data(px, py)
        veil = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
        self.axes.text(x, y, text, fontsize=points, bbox=veil, zorder=3.5, **style)

    def line(self, xs: tuple[float, float], ys: tuple[float, float], **style: Any) -> None:
        """A straight line in the log-log plane, remembered as something labels had better not cross."""
        self.axes.plot(xs, ys, solid_capstyle="round", **style)
        (ax, ay), (bx, by) = self.pixel(xs[0], ys[0]), self.pixel(xs[1], ys[1])
        steps = max(1, int(max(abs(bx - ax), abs(by - ay)) // 6))
        for i in range(steps + 1):
            x, y = ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps
            self.crossed.append(Box(x - 3, y - 3, x + 3, y + 3))


def _axes(axes: Any, window: Window, title: str, integer: bool) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(window.x)
    axes.set_ylim(window.y)
    for axis, (low, high), label in ((axes.xaxis, window.x, _plain), (axes.yaxis, window.y, _prefixed)):
        ticks = [10.0**e for e in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FixedFormatter([label(t) for t in ticks]))
        axis.set_minor_formatter(NullFormatter())
    operation = "OP" if integer else "FLOP"
    axes.set_xlabel(f"Arithmetic intensity I ({operation}/byte)", fontsize=_NORMAL + 1)
    axes.set_ylabel(f"Performance P ({operation}/s)", fontsize=_NORMAL + 1)
    axes.set_title(title, fontsize=_NORMAL + 2, loc="left", color=INK)
    axes.grid(True, which="major", color="#E4E4E4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=_NORMAL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _plain(value: float) -> str:
    return f"{value:g}" if 1e-4 <= value < 1e6 else f"1e{round(log10(value))}"


def _prefixed(value: float) -> str:
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"


def _lines(board: _Board, machine: MachineRoofs, color: str) -> None:
    """Roofs solid, ceilings dashed; slopes end at the highest roof, roofs begin at the slope."""
    left, right = board.window.x
    for slope in machine.slopes:
        end = machine.top / slope.bytes_per_s
        style = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if slope.is_ceiling else {"linewidth": 2.0}
        board.line((left, end), (left * slope.bytes_per_s, machine.top), color=color, zorder=3, **style)
    for roof in machine.roofs:
        style = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if roof.is_ceiling else {"linewidth": 2.0}
        board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=color, zorder=3, **style)
    _name_slopes(board, machine, color)
    _name_roofs(board, machine, color)
    ridges = [r for r in machine.roofs if not r.is_ceiling]
    board.axes.plot(
        [r.ridge for r in ridges], [r.rate_per_s for r in ridges], "o", color=PAPER, markeredgecolor=color,
        markersize=5.5, markeredgewidth=1.4, zorder=4,
    )  # fmt: skip


def _name_slopes(board: _Board, machine: MachineRoofs, color: str) -> None:
    """The memory's name above its line, those of ceilings below, one under the other where lines are close."""
    height = _SMALL * 1.3 * _DPI / 72
    along = (cos(board.angle), sin(board.angle))
    across = board.per_decade_y * along[0]  # pixels between lines a decade of bandwidth apart
    left, end = board.window.x[0], machine.top / machine.bandwidth
    start, stop = board.pixel(left, left * machine.bandwidth), board.pixel(end, machine.top)
    length = hypot(stop[0] - start[0], stop[1] - start[1])
    widths = [board.size(s.label, _SMALL)[0] for s in machine.slopes]
    below = [log10(machine.bandwidth / s.bytes_per_s) * across + 3 for s in machine.slopes[1:]]
    shifts = [-height * 0.35, *(o + height * 0.75 for o in stack(below, height))]

    def spots(part: float) -> list[tuple[float, float, list[Box]]]:
        """Where each name goes, with its middle `part` of the line's length up, and what it covers."""
        found = []
        for width, shift in zip(widths, shifts, strict=True):
            px = start[0] + part * length * along[0] + shift * along[1]
            py = start[1] + part * length * along[1] - shift * along[0]
            steps = [(px + along[0] * width * i / 10, py + along[1] * width * i / 10) for i in range(-5, 6)]
            found.append((px, py, [Box(x - 8, y - 2, x + 8, y + 12) for x, y in steps]))
        return found

    margin = min(0.5, (max(widths) / 2 + 12) / length)
    parts = sorted((margin + (1 - 2 * margin) * i / 16 for i in range(17)), key=lambda p: abs(p - 0.42))
    best = min((spots(p) for p in parts), key=lambda found: board.hides_point([b for *_, bs in found for b in bs]))
    for slope, (px, py, boxes) in zip(machine.slopes, best, strict=True):
        board.text(
            px, py, slope.label, _SMALL, color=color, rotation=degrees(board.angle), rotation_mode="anchor",
            ha="center", va="baseline",
        )  # fmt: skip
        board.taken += boxes


def _name_roofs(board: _Board, machine: MachineRoofs, color: str) -> None:
    """Names above the lines, pushed up where two are close, at the right end or as far left as points ask for."""
    height = _SMALL * 1.45 * _DPI / 72
    roofs = machine.roofs[::-1]
    lines = [board.pixel(board.window.x[1], r.rate_per_s)[1] for r in roofs]
    for roof, y in zip(roofs, stack([p + 3 for p in lines], height), strict=True):
        width, _ = board.size(roof.label, _SMALL)
        ridge = board.pixel(roof.ridge, roof.rate_per_s)[0]
        ends = [board.frame.x1 - 4 - 12 * i for i in range(100)]
        room = [px for px in ends if px - width > ridge + 8] or ends[:1]
        px = min(room, key=lambda e: board.hides_point([Box(e - width, y, e, y + height)]))
        board.text(px, y, roof.label, _SMALL, color=color, ha="right", va="bottom")
        board.taken.append(Box(px - width, y, px, y + height))


def _place_of(point: Point, machines: Sequence[MachineRoofs], window: Window) -> tuple[float, float]:
    """Where a point stands; without work, on the left edge at the height at which its bandwidth's line begins."""
    if point.intensity is not None:
        return point.intensity, point.flops_per_s
    return window.x[0], (point.bytes_per_s or machines[0].bandwidth) * window.x[0]


def _points(board: _Board, points: Sequence[Point], machines: Sequence[MachineRoofs], colors: dict[str, str]) -> None:
    """Filled symbols for predictions, open ones with their spread for measurements; names where there is room."""
    anchors, texts, tints = [], [], []
    labels = list(dict.fromkeys(p.label for p in points))
    predicted = {(p.label, p.machine): _place_of(p, machines, board.window) for p in points if p.kind == "predicted"}
    for point in points:
        several = len(machines) > 1 and point.machine in colors
        tint = colors[point.machine] if several else OKABE_ITO[labels.index(point.label) % 6]
        x, y = _place_of(point, machines, board.window)
        if point.beside:
            marker, text = "o" if point.intensity is not None else ">", point.beside
            x0, y0 = predicted[point.label, point.machine]
            board.line((x0, x), (y0, y), color=tint, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=4)
        elif point.intensity is None:
            marker, text = ">", f"{point.label}: {show_bandwidth(point.bytes_per_s or 0)}, no operations"
        else:
            marker, text = "o", point.label
        face = tint if point.kind == "predicted" else PAPER
        if point.error is not None and point.intensity is not None:
            board.axes.plot([x, x], point.error, color=tint, linewidth=1.3, zorder=4)
        board.axes.plot(
            [x], [y], marker, color=face, markeredgecolor=tint, markersize=7.5, markeredgewidth=1.6, zorder=5,
            clip_on=False,
        )  # fmt: skip
        anchors.append(board.pixel(x, y))
        texts.append((text, _SMALL if point.beside else _NORMAL))
        tints.append(tint)
    if len(machines) == 1:
        for roof in machines[0].roofs:
            if not roof.is_ceiling:
                anchors.append(board.pixel(roof.ridge, roof.rate_per_s))
                texts.append((ridge_label(roof), _SMALL))
                tints.append("#555555")
    sizes = [board.size(text, points) for text, points in texts]
    boxes = place(anchors, sizes, board.frame, board.taken, board.crossed)
    for (ax, ay), (text, points_), tint, placed in zip(anchors, texts, tints, boxes, strict=True):
        box = placed.box
        if placed.distance > 21:
            near = (min(max(ax, box.x0), box.x1), min(max(ay, box.y0), box.y1))
            (x0, y0), (x1, y1) = board.data(ax, ay), board.data(*near)
            board.axes.plot([x0, x1], [y0, y1], color=tint, linewidth=0.7, zorder=2)
        board.text((box.x0 + box.x1) / 2, box.y0 + 2, text, points_, color=_darker(tint), ha="center", va="bottom")


def _darker(color: str) -> str:
    """The same hue, dark enough to read on white."""
    return "#" + "".join(f"{int(int(color[i : i + 2], 16) * 0.75):02x}" for i in (1, 3, 5))


def _legend(machines: Sequence[MachineRoofs], points: Sequence[Point], colors: dict[str, str]) -> list[Any]:
    """What the legend lists: the machines where there are several, open and filled symbols where both occur."""
    from matplotlib.lines import Line2D

    handles = []
    if len(machines) > 1:
        handles += [Line2D([], [], color=colors[m.name], linewidth=2, label=m.title or m.name) for m in machines]
    kinds = {p.kind for p in points}
    for kind, face in (("predicted", "#777777"), ("measured", PAPER)):
        if len(kinds) > 1:
            handles.append(Line2D([], [], linestyle="", marker="o", color=face, markeredgecolor="#777777", label=kind))
    return handles
