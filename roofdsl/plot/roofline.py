"""The roofline figure: log-log, roofs and ceilings named along their lines, points named without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_bandwidth
from roofdsl.plot.board import Board, check_format, roofline_plane, roomy, save_figure
from roofdsl.plot.content import (
    Ceilings,
    MachineRoofs,
    Point,
    Window,
    operation_of,
    ridge_label,
    window_of,
    with_ceilings,
)
from roofdsl.plot.labels import hidden_under
from roofdsl.plot.look import USUAL, Look, named, outside, style_of, styled
from roofdsl.plot.names import name_line, name_points, name_roofs

_ROOF: dict[str, Any] = {"linewidth": 2.0}
_CEILING: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0}


def save_roofline(
    path: Path,
    machines: Sequence[MachineRoofs],
    points: Sequence[Point] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, for no machine with a roof, and where the file cannot be written.
    """
    kind = check_format(path)
    shown = [m for m in machines if m.roofs]
    if not shown:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    save_figure(path, kind, lambda: draw_roofline(shown, points, title, look=look, ceilings=ceilings))


@styled
def draw_roofline(
    machines: Sequence[MachineRoofs],
    points: Sequence[Point] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure, not bound to any display.

    ceilings: which of a single machine's are drawn; of several machines none are.
    """
    drawn = [with_ceilings(m, ceilings if len(machines) == 1 else "none", points) for m in machines]
    heading = title if title is not None else _title(machines)
    return roomy(lambda key: _board(_Shown(machines, drawn, points, heading, look), key))


@dataclass(frozen=True)
class _Shown:
    """What is drawn: machines, and of them those lines that are drawn."""

    machines: Sequence[MachineRoofs]
    drawn: Sequence[MachineRoofs]
    points: Sequence[Point]
    title: str
    look: Look

    @property
    def several(self) -> bool:
        return len(self.machines) > 1

    def line_color(self, machine: MachineRoofs) -> str:
        return self.look.color(list(self.drawn).index(machine)) if self.several else self.look.ink

    def styles(self) -> list[tuple[str, str]]:
        """(colour, symbol) of each point: its name's, of several machines in the machine's colour."""
        by_name = style_of([p.label for p in self.points])
        names = [m.name for m in self.machines]
        found = []
        for p in self.points:
            number, sign = by_name[p.label]
            of_machine = self.several and p.machine in names
            found.append((self.look.color(names.index(p.machine) if of_machine else number), _sign(p, sign)))
        return found


def _sign(point: Point, sign: str) -> str:
    """What has no operations, or moves nothing, points to the edge that it stands on."""
    return ">" if point.intensity is None else sign


def _board(shown: _Shown, key: bool) -> Board:
    integer = operation_of([r for m in shown.machines for r in m.roofs]) == "OP"
    window = window_of(shown.drawn, shown.points)
    listed = [_key_text(p, shown.points) for p in shown.points if not p.beside]
    board = roofline_plane(shown.look, window, shown.title, integer, list(dict.fromkeys(listed)) if key else None)
    places = [_place_of(p, shown.machines, board.window) for p in shown.points]
    board.points = [board.pixel(*at) for at in places if board.shows(*at)]
    for machine in shown.drawn:
        _lines(board, machine, shown.line_color(machine))
    for machine in shown.drawn:
        _name_slopes(board, machine, shown.line_color(machine))
    for machine in shown.drawn:
        name_roofs(board, machine.roofs, shown.line_color(machine))
    board.legend(_legend(shown, key))
    _points(board, shown)
    return board


def _title(machines: Sequence[MachineRoofs]) -> str:
    return machines[0].title or machines[0].name if len(machines) == 1 else ""


def _lines(board: Board, machine: MachineRoofs, color: str) -> None:
    """Roofs solid, ceilings dashed; slopes end at the highest roof, roofs begin at the slope."""
    left, right = board.window.x
    for slope in machine.slopes:
        end = machine.top / slope.bytes_per_s
        style = _CEILING if slope.is_ceiling else _ROOF
        if end > left:
            board.line((left, end), (left * slope.bytes_per_s, machine.top), color=color, zorder=3, **style)
    for roof in machine.roofs:
        style = _CEILING if roof.is_ceiling else _ROOF
        if roof.ridge < right:
            board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=color, zorder=3, **style)
    ridges = [r for r in machine.roofs if not r.is_ceiling]
    board.axes.plot(
        [r.ridge for r in ridges], [r.rate_per_s for r in ridges], "o", color=board.look.paper, markeredgecolor=color,
        markersize=5.5, markeredgewidth=1.4, zorder=4,
    )  # fmt: skip


def _name_slopes(board: Board, machine: MachineRoofs, color: str) -> None:
    """The memory's name above its line, those of ceilings below theirs, where there is room on either side."""
    left = board.window.x[0]
    for slope in machine.slopes:
        start = board.pixel(left, left * slope.bytes_per_s)
        end = board.pixel(machine.top / slope.bytes_per_s, machine.top)
        name_line(board, start, end, slope.label, color, above=not slope.is_ceiling)


def _place_of(point: Point, machines: Sequence[MachineRoofs], window: Window) -> tuple[float, float]:
    """Where a point stands; without work, on the left edge at the height at which its bandwidth's line begins.

    What computes and moves nothing (from caches that are warm) stands on the right edge.
    """
    if point.intensity is not None:
        return point.intensity, point.flops_per_s
    if point.flops_per_s:
        return window.x[1], point.flops_per_s
    return window.x[0], (point.bytes_per_s or machines[0].bandwidth) * window.x[0]


def _text(point: Point) -> str:
    if point.beside:
        return point.beside
    if point.intensity is None and point.flops_per_s:
        return f"{point.label}: nothing from memory"
    if point.intensity is None:
        return f"{point.label}: {show_bandwidth(point.bytes_per_s or 0)}, no operations"
    return point.label


def _key_text(point: Point, points: Sequence[Point]) -> str:
    """A point's name, and of what is measured too, how much of the prediction it reaches."""
    beside = [p.beside for p in points if p.beside and (p.label, p.machine) == (point.label, point.machine)]
    return ", ".join([_text(point), *beside])


def _points(board: Board, shown: _Shown) -> None:
    """Filled symbols for predictions, open ones with their spread for measurements; names where there is room."""
    look, machines = board.look, shown.machines
    styles = shown.styles()
    at = [_place_of(p, machines, board.window) for p in shown.points]
    predicted = {(p.label, p.machine): xy for p, xy in zip(shown.points, at, strict=True) if p.kind == "predicted"}
    pixels = [board.pixel(*xy) for xy in at]
    over = hidden_under(pixels, [color for color, _ in styles])
    anchors, texts, tints, letters = [], [], [], []
    for point, (color, sign), (x, y), above in zip(shown.points, styles, at, over, strict=True):
        if not board.shows(x, y):
            continue
        if point.beside:
            x0, y0 = predicted[point.label, point.machine]
            board.line((x0, x), (y0, y), color=color, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=4)
        if point.error is not None and (point.intensity is not None or point.flops_per_s):
            board.axes.plot([x, x], point.error, color=color, linewidth=1.3, zorder=4)
        board.axes.plot(
            [x], [y], sign, color=color if point.kind == "predicted" else look.paper, markeredgecolor=color,
            markersize=7.5 + 4.5 * min(above, 4), markeredgewidth=1.6, zorder=5, clip_on=False,
        )  # fmt: skip
        if not board.key:
            anchors.append(board.pixel(x, y))
            texts.append(_text(point))
            tints.append(color)
            letters.append(look.small if point.beside else look.normal)
    outside(sum(not board.shows(*xy) for xy in at))
    own = len(texts)
    for roof in machines[0].roofs if not shown.several else ():
        if not roof.is_ceiling and board.shows(roof.ridge, roof.rate_per_s):
            anchors.append(board.pixel(roof.ridge, roof.rate_per_s))
            texts.append(ridge_label(roof))
            letters.append(look.small)
            tints.append(look.grey("#555555"))
    may_go = [False] * own + [True] * (len(texts) - own)
    name_points(board, anchors, texts, tints, points=letters, optional=may_go)


def _legend(shown: _Shown, key: bool) -> list[Any]:
    """What the legend lists: the machines where there are several, open and filled symbols where both occur, and in
    a key the names of all points."""
    from matplotlib.lines import Line2D

    look = shown.look
    handles = []
    if shown.several:
        handles += [Line2D([], [], color=shown.line_color(m), linewidth=2, label=_machine_name(m)) for m in shown.drawn]
    grey, kinds = look.grey("#777777"), {p.kind for p in shown.points}
    for kind, face in (("predicted", grey), ("measured", look.paper)):
        if len(kinds) > 1:
            handles.append(Line2D([], [], linestyle="", marker="o", color=face, markeredgecolor=grey, label=kind))
    if key:
        handles += _key(shown)
    return handles


def _machine_name(machine: MachineRoofs) -> str:
    return named(machine.title or machine.name)


def _key(shown: _Shown) -> list[Any]:
    """The points by their symbols, of several machines each name once."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for point, (color, sign) in zip(shown.points, shown.styles(), strict=True):
        text = _key_text(point, shown.points)
        if point.beside or text in found:
            continue
        tint = shown.look.grey("#777777") if shown.several and point.machine else color
        face = tint if point.kind == "predicted" else shown.look.paper
        found[text] = Line2D(
            [], [], linestyle="", marker=sign, color=face, markeredgecolor=tint, markersize=7, label=named(text, 40)
        )
    return list(found.values())
