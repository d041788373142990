"""The log-log plane on which roofline figures are drawn: axes, pixel coordinates, texts, and the space already used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan2, hypot, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_size
from roofdsl.plot.labels import Box
from roofdsl.plot.look import DPI, USUAL, Look, named, rc, text_width
from roofdsl.plot.ticks import Write, log_ticks, plain, prefixed, set_ticks
from roofdsl.store.atomic import write_whole

FORMATS = ("svg", "png", "pdf")
SIZE_IN = (8.0, 5.2)
KEY_LINE_IN = 0.182


def check_format(path: Path) -> str:
    """The format that a file name's extension stands for. Raises CommandError for anything but svg, png and pdf."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(
            f"`{path}` is not an {', '.join(FORMATS[:-1])} or {FORMATS[-1]} file", "end its name in .svg, .png or .pdf"
        )
    return kind


def check_name(path: Path) -> str:
    """Check the format and that the folder exists, before any work is done; returns the format. Raises CommandError."""
    kind = check_format(path)
    if not path.absolute().parent.is_dir():
        raise CommandError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    return kind


def save_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib Figure in the format of the extension of `path`. The same figure gives the same file, which is
    written whole or not at all. Raises CommandError for another extension, and if the file cannot be written.
    """
    from io import BytesIO

    import matplotlib as mpl

    kind, drawn = check_format(path), BytesIO()
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with mpl.rc_context(rc()):
        figure.savefig(drawn, format=kind, dpi=2 * DPI, metadata=metadata)
    write_whole(path, drawn.getvalue())


# ---- the frame of a figure ----


@dataclass(frozen=True)
class Frame:
    """An empty figure with axes.

    rectangle: that of the axes, in fractions of the figure. key_at_in: how far to the right of the axes a key begins,
    in inches.
    """

    figure: Any
    axes: Any
    rectangle: tuple[float, float, float, float]
    key_at_in: float = 0.1

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of the axes."""
        width, height = self.figure.get_size_inches()
        return self.rectangle[2] * width, self.rectangle[3] * height


def frame_of(
    look: Look,
    title: str,
    written: Sequence[str],
    *,
    own: tuple[float, float] = SIZE_IN,
    key: Sequence[str] = (),
    right_in: float = 0.24,
    top_in: float = 0.0,
) -> Frame:
    """Axes with room for the labels of the y ticks (`written`), for the title, and for a key next to the axes.

    own: the size if none is requested; such a figure grows with its key. right_in, top_in: the additional room that the
    figure needs there. Raises CommandError if the size leaves too little room for the axes.
    """
    width, height = look.size(own)
    line = max((look.width_in(name) for name in key), default=0.0)
    rows = max(1, int((height - 1.0 * look.font_scale) / (KEY_LINE_IN * look.font_scale)))
    columns = -(-len(key) // rows)
    key_in = columns * (line + 0.38 * look.font_scale) + 0.1 if key else 0.0
    if look.size_in is None:
        width += key_in
    figure = Look(dark=look.dark, size_in=(width, height)).figure(own)
    left = (0.4 + 0.02) * look.font_scale + max((look.width_in(w, look.normal) for w in written), default=0.0)
    right = right_in * look.font_scale + key_in
    below = 0.57 * look.font_scale
    heading = look.heading(title, width - left - 0.1)
    above = 0.18 + 0.2 * look.font_scale * (heading.count("\n") + 1) + top_in * look.font_scale
    if width - left - right < 0.8 or height - below - above < 0.5:
        raise CommandError(
            f"a figure of {width:g} x {height:g} inches is too small for its axes and labels",
            "use a larger --size, or a smaller --font-scale",
        )
    rectangle = (left / width, below / height, 1 - (left + right) / width, 1 - (below + above) / height)
    axes = figure.add_axes(rectangle)
    axes.set_title(
        heading, fontsize=look.large, loc="left", color=look.ink, pad=6 + 72 * top_in * look.font_scale,
    )  # fmt: skip
    return Frame(figure, axes, rectangle, max(0.1, right_in * look.font_scale - 0.1))


def log_axes(
    axes: Any, look: Look, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str], *, base: int = 2
) -> None:
    """Make both axes logarithmic, x by powers of `base`, with these limits and names, and draw a grid."""
    axes.set_xscale("log", base=base)
    axes.set_yscale("log")
    axes.set_xlim(x)
    axes.set_ylim(y)
    axes.set_xlabel(labels[0], fontsize=look.normal + look.font_scale)
    axes.set_ylabel(labels[1], fontsize=look.normal + look.font_scale)
    axes.grid(True, which="major", color=look.grey("#E4E4E4"), linewidth=0.7)
    axes.tick_params(labelsize=look.normal)
    look.dress(axes)


def size_ticks(frame: Frame, look: Look, low: float, high: float) -> None:
    """Ticks of the x axis at powers of two bytes, as many as their labels have room for."""
    powers = [2.0**k for k in range(60) if low <= 2.0**k <= high]
    most = max(2, int(frame.inches[0] / (look.width_in("512 KiB", look.normal) + 0.12)))
    set_ticks(frame.axes.xaxis, powers[:: max(1, -(-len(powers) // most))], lambda p: show_size(round(p)), minor=False)


def symbol(marker: str, label: str, *, face: str, edge: str, size: float = 7.0, **style: Any) -> Any:
    """A single symbol for a legend."""
    from matplotlib.lines import Line2D

    style = {"linestyle": "", "color": face, "markeredgecolor": edge, "markersize": size, **style}
    return Line2D([], [], marker=marker, label=label, **style)


# ---- the plane ----


@dataclass(frozen=True)
class Window:
    """The plane's limits; of a roofline, x in operations per byte and y in operations per second."""

    x: tuple[float, float]
    y: tuple[float, float]


@dataclass
class Board:
    """Axes with known limits: converts data to pixels without matplotlib, and records the room already taken.

    key: whether names are listed next to the axes. crowded: whether there are too many names for their points, or a
    name had no free place there.
    """

    base: Frame
    window: Window
    look: Look = USUAL
    key: bool = False

    def __post_init__(self) -> None:
        self.figure, self.axes = self.base.figure, self.base.axes
        width, height = (n * DPI for n in self.figure.get_size_inches())
        left, bottom, w, h = self.base.rectangle
        self.frame = Box(left * width, bottom * height, (left + w) * width, (bottom + h) * height)
        self.points: list[tuple[float, float]] = []
        self.taken: list[Box] = []
        self.crossed: list[Box] = []
        self.crowded = False
        (x0, x1), (y0, y1) = self.window.x, self.window.y
        self.per_decade_x = (self.frame.x1 - self.frame.x0) / log10(x1 / x0)
        self.per_decade_y = (self.frame.y1 - self.frame.y0) / log10(y1 / y0)

    @property
    def angle(self) -> float:
        """The angle of a line of constant bandwidth, in radians."""
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

    def shows(self, x: float, y: float) -> bool:
        """Whether a point is within the limits."""
        (x0, x1), (y0, y1) = self.window.x, self.window.y
        return x0 * (1 - 1e-9) <= x <= x1 * (1 + 1e-9) and y0 * (1 - 1e-9) <= y <= y1 * (1 + 1e-9)

    def within(
        self, start: tuple[float, float], end: tuple[float, float]
    ) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """The part of a straight line, in pixels, that is inside the frame; None if there is none."""
        (ax, ay), (bx, by) = start, end
        first, last = 0.0, 1.0
        for a, b, low, high in ((ax, bx, self.frame.x0, self.frame.x1), (ay, by, self.frame.y0, self.frame.y1)):
            if abs(b - a) < 1e-9:
                if not low - 1e-6 <= a <= high + 1e-6:
                    return None
                continue
            ends = sorted(((low - a) / (b - a), (high - a) / (b - a)))
            first, last = max(first, ends[0]), min(last, ends[1])
        if first >= last:
            return None
        return (ax + (bx - ax) * first, ay + (by - ay) * first), (ax + (bx - ax) * last, ay + (by - ay) * last)

    def size(self, text: str, points: float) -> tuple[float, float]:
        """Width and height of a text, in pixels."""
        return text_width(text, points) * DPI / 72 + 4, points * 1.25 * DPI / 72 * (text.count("\n") + 1)

    def hides_point(self, boxes: Sequence[Box]) -> int:
        """The number of points under these rectangles."""
        return sum(any(b.overlap(n) for b in boxes) for n in self.around_points())

    def around_points(self) -> list[Box]:
        """The rectangles of the symbols."""
        return [Box(x - 7, y - 7, x + 7, y + 7) for x, y in self.points]

    def free(self, boxes: Sequence[Box]) -> bool:
        """Whether these rectangles are inside the frame and cover no point and no text."""
        return (
            all(b.within(self.frame) for b in boxes)
            and not self.hides_point(boxes)
            and not any(b.overlap(t) for b in boxes for t in self.taken)
        )

    def text(self, px: float, py: float, text: str, points: float, **style: Any) -> None:
        x, y = self.data(px, py)
        veil = {"facecolor": self.look.paper, "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
        self.axes.text(x, y, text, fontsize=points, bbox=veil, zorder=3.5, **style)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], color: str, **style: Any) -> None:
        """Draw an arrow between two symbols, in data coordinates, unless they overlap; recorded as in `line`."""
        seen = self.within(self.pixel(*start), self.pixel(*end))
        if seen is None:
            return
        (ax, ay), (bx, by) = seen
        length = hypot(bx - ax, by - ay)
        if length < 16:
            return
        ux, uy = (bx - ax) / length, (by - ay) / length
        self.axes.annotate(
            "", xy=self.data(bx - 6 * ux, by - 6 * uy), xytext=self.data(ax + 6 * ux, ay + 6 * uy), zorder=3.2,
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.3, "shrinkA": 0, "shrinkB": 0, **style},
        )  # fmt: skip
        self.cross((ax, ay), (bx, by))

    def line(self, xs: tuple[float, float], ys: tuple[float, float], **style: Any) -> None:
        """A straight line in the log-log plane, recorded as something that labels should not cross."""
        self.axes.plot(xs, ys, solid_capstyle="round", **style)
        seen = self.within(self.pixel(xs[0], ys[0]), self.pixel(xs[1], ys[1]))
        if seen is not None:
            self.cross(*seen)

    def cross(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Record a line between two pixels, which labels should not cross."""
        (ax, ay), (bx, by) = start, end
        steps = max(1, int(max(abs(bx - ax), abs(by - ay)) // 6))
        for i in range(steps + 1):
            x, y = ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps
            self.crossed.append(Box(x - 3, y - 3, x + 3, y + 3))

    def legend(self, handles: Sequence[Any]) -> None:
        """The meaning of the symbols: next to the axes if names are listed there, else in the emptiest corner."""
        if not handles:
            return
        style = {"frameon": False, "fontsize": self.look.small, "borderaxespad": 0.5}
        if self.key:
            rows = max(1, int((self.frame.y1 - self.frame.y0 + 50) / DPI / (KEY_LINE_IN * self.look.font_scale)))
            self.axes.legend(
                handles=handles, loc="upper left", bbox_to_anchor=(self._key_at(), 1.0), ncols=-(-len(handles) // rows),
                labelspacing=0.35, columnspacing=1.0, handlelength=1.2, **style,
            )  # fmt: skip
            return
        width = max(self.size(str(h.get_label()), self.look.small)[0] for h in handles) + 50 * self.look.font_scale
        height = 20 * self.look.font_scale * len(handles) + 8
        f = self.frame
        corners = {
            "lower right": Box(f.x1 - width, f.y0, f.x1, f.y0 + height),
            "upper left": Box(f.x0, f.y1 - height, f.x0 + width, f.y1),
            "lower left": Box(f.x0, f.y0, f.x0 + width, f.y0 + height),
            "upper right": Box(f.x1 - width, f.y1 - height, f.x1, f.y1),
        }
        place = min(corners, key=lambda c: self.cover([corners[c]]))
        veil: dict[str, Any] = {"frameon": True, "facecolor": self.look.paper, "edgecolor": "none", "framealpha": 0.8}
        self.axes.legend(handles=handles, loc=place, **style | veil)  # lines under it are veiled, as under other texts
        box = corners[place]
        self.taken.append(box if place != "lower right" else Box(box.x0, 0, box.x1, box.y1))

    def _key_at(self) -> float:
        return 1 + self.base.key_at_in * DPI / (self.frame.x1 - self.frame.x0)

    def cover(self, boxes: Sequence[Box]) -> tuple[int, float]:
        """How many points these rectangles hide, and how much they cover of names and lines (rounded to hundreds)."""
        names = sum(b.overlap(t) for b in boxes for t in self.taken)
        lines = sum(b.overlap(t) for b in boxes for t in self.crossed)
        return self.hides_point(boxes), round(3 * names + lines, -2)


def key_texts(names: Sequence[str]) -> list[str]:
    """The names in a key on the right, shortened to its width."""
    return [named(n, 40) for n in names]


def roomy(draw: Callable[[bool], Board]) -> Any:
    """The Figure of `draw(False)`, with names at their points, or of `draw(True)`, with a key next to the axes, if
    there was not enough room.
    """
    board = draw(False)
    return (draw(True) if board.crowded else board).figure


def plane(
    look: Look,
    window: Window,
    title: str,
    labels: tuple[str, str],
    write: tuple[Write, Write] = (plain, prefixed),
    *,
    key: Sequence[str] | None = None,
    right_in: float = 0.24,
    top_in: float = 0.0,
) -> Board:
    """An empty board: both axes logarithmic, with their ticks. key: the names listed next to it, None for none."""
    x, y = look.limits(window.x, "x"), look.limits(window.y, "y")
    shown = log_ticks(*y, most=9)
    base = frame_of(
        look, title, [write[1](t) for t in shown], key=key_texts(key or ()), right_in=right_in, top_in=top_in
    )
    axes = base.axes
    log_axes(axes, look, x, y, labels, base=10)
    board = Board(base, Window(x, y), look, key is not None)
    widest = max(board.size(write[0](t), look.normal)[0] for t in log_ticks(*x, most=60)) + 14
    set_ticks(axes.xaxis, log_ticks(*x, most=max(2, int((board.frame.x1 - board.frame.x0) / widest))), write[0])
    set_ticks(axes.yaxis, shown, write[1])
    return board
