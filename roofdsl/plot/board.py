"""The log-log plane that roofline figures are drawn on: its axes, pixels, texts and what already takes up room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan2, ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.content import Window
from roofdsl.plot.labels import Box

# Okabe and Ito: told apart with any colour vision. Black is for a single machine's lines.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, PAPER = "#222222", "#FFFFFF"
FORMATS = ("svg", "png", "pdf")
SIZE_IN = (8.0, 5.2)
DPI = 100
AXES = (0.095, 0.11, 0.87, 0.80)  # left, bottom, width, height, as parts of the figure
SMALL, NORMAL = 8.5, 9.5


def check_format(path: Path) -> str:
    """The format that the ending names. Raises CommandError for another than svg, png and pdf."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(f"`{path}` is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}", "end its name in .svg")
    return kind


def save_figure(path: Path, kind: str, draw: Callable[[], Any]) -> None:
    """Writes what `draw` makes in the format `kind`; the same figure gives the same file. Raises CommandError."""
    from io import BytesIO

    import matplotlib as mpl

    from roofdsl.measure.atomic import write_whole

    drawn = BytesIO()

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = draw()
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(drawn, format=kind, dpi=2 * DPI, metadata=metadata)
    write_whole(path, drawn.getvalue())


@dataclass
class Board:
    """Axes with known limits: data to pixels without asking matplotlib, and what already takes up room."""

    figure: Any
    axes: Any
    window: Window
    rectangle: tuple[float, float, float, float] = AXES

    def __post_init__(self) -> None:
        width, height = (n * DPI for n in SIZE_IN)
        left, bottom, w, h = self.rectangle
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
        return 1.03 * box.width * DPI / 72 + 4, points * 1.25 * DPI / 72

    def hides_point(self, boxes: Sequence[Box]) -> int:
        """How many points lie under these rectangles."""
        near = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in self.points]
        return sum(any(b.overlap(n) for b in boxes) for n in near)

    def text(self, px: float, py: float, text: str, points: float, **style: Any) -> None:
        x, y = self.data(px, py)
        veil = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
        self.axes.text(x, y, text, fontsize=points, bbox=veil, zorder=3.5, **style)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], color: str, **style: Any) -> None:
        """From symbol to symbol, in data, where they are not one on the other; remembered as `line` does."""
        (ax, ay), (bx, by) = self.pixel(*start), self.pixel(*end)
        length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
        if length < 16:
            return
        ux, uy = (bx - ax) / length, (by - ay) / length
        self.axes.annotate(
            "", xy=self.data(bx - 6 * ux, by - 6 * uy), xytext=self.data(ax + 6 * ux, ay + 6 * uy), zorder=4,
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.3, "shrinkA": 0, "shrinkB": 0, **style},
        )  # fmt: skip
        for i in range(int(length // 6)):
            x, y = ax + 6 * i * ux, ay + 6 * i * uy
            self.crossed.append(Box(x - 3, y - 3, x + 3, y + 3))

    def line(self, xs: tuple[float, float], ys: tuple[float, float], **style: Any) -> None:
        """A straight line in the log-log plane, remembered as something labels had better not cross."""
        self.axes.plot(xs, ys, solid_capstyle="round", **style)
        (ax, ay), (bx, by) = self.pixel(xs[0], ys[0]), self.pixel(xs[1], ys[1])
        steps = max(1, int(max(abs(bx - ax), abs(by - ay)) // 6))
        for i in range(steps + 1):
            x, y = ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps
            self.crossed.append(Box(x - 3, y - 3, x + 3, y + 3))


def draw_axes(axes: Any, window: Window, title: str, integer: bool) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(window.x)
    axes.set_ylim(window.y)
    for axis, (low, high), label in ((axes.xaxis, window.x, _plain), (axes.yaxis, window.y, prefixed)):
        ticks = [10.0**e for e in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FixedFormatter([label(t) for t in ticks]))
        axis.set_minor_formatter(NullFormatter())
    operation = "OP" if integer else "FLOP"
    axes.set_xlabel(f"Arithmetic intensity I ({operation}/byte)", fontsize=NORMAL + 1)
    axes.set_ylabel(f"Performance P ({operation}/s)", fontsize=NORMAL + 1)
    frame(axes, title)


def frame(axes: Any, title: str) -> None:
    """The title and the grid that plots have, and no lines above and on the right."""
    axes.set_title(title, fontsize=NORMAL + 2, loc="left", color=INK)
    axes.grid(True, which="major", color="#E4E4E4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=NORMAL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _plain(value: float) -> str:
    return f"{value:g}" if 1e-4 <= value < 1e6 else f"1e{round(log10(value))}"


def prefixed(value: float) -> str:
    """`10 G`: a number at a tick, with the prefix of its unit."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"


def darker(color: str) -> str:
    """The same hue, dark enough to read on white."""
    return "#" + "".join(f"{int(int(color[i : i + 2], 16) * 0.75):02x}" for i in (1, 3, 5))
