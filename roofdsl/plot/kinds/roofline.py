"""The roofline: performance over intensity under the roofs of machines; the labels of points are placed so that none
collide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roofdsl.lang.record import replace as with_fields
from roofdsl.lang.units import UnitError, parse_rate
from roofdsl.machine.quantities import show_bandwidth, show_number
from roofdsl.plot.board import Board, roomy, symbol
from roofdsl.plot.kind import Asked, Kind, Option, at_option, units_of
from roofdsl.plot.labels import hidden_under, joined
from roofdsl.plot.look import USUAL, Look, named, outside, style_of, styled
from roofdsl.plot.names import Name, name_points
from roofdsl.plot.roofline_plane import origin_symbols, place_of, ridge_names, roofs_board
from roofdsl.plot.roofline_points import (
    Point,
    common_sizes,
    expected_point,
    explained_point,
    intensity_of,
    labels_of,
    sizes_text,
)
from roofdsl.plot.roofs import Ceilings, Roofs, require_roof, roofs_of, with_ceilings, with_launches
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction
from roofdsl.profiler.cited import points_named


@styled
def draw_roofline(
    machines: Sequence[Roofs],
    points: Sequence[Point] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure, not bound to any display. Raises CommandError if no machine has a roof.

    ceilings: which ceilings of a single machine are drawn; for several machines, none are.
    """
    machines = [m for m in machines if m.roofs]
    require_roof(machines)
    drawn = [with_ceilings(m, ceilings if len(machines) == 1 else "none", points) for m in machines]
    heading = title if title is not None else _title(machines)
    shown = _Shown(drawn, [p.at_memory() for p in points], heading, look)
    return roomy(lambda key: _board(shown, key))


@dataclass(frozen=True)
class _Shown:
    """The content of the figure, with only those lines of the machines that are drawn."""

    machines: Sequence[Roofs]
    points: Sequence[Point]
    title: str
    look: Look

    @property
    def several(self) -> bool:
        return len(self.machines) > 1

    def line_color(self, number: int) -> str:
        """The colour of a machine's lines."""
        return self.look.color(number) if self.several else self.look.ink

    def styles(self) -> list[tuple[str, str]]:
        """(colour, symbol) of each point: those of its name; with several machines, in the machine's colour."""
        by_name = style_of([p.label for p in self.points])
        names = [m.name for m in self.machines]
        found = []
        for p in self.points:
            number, sign = by_name[p.label]
            of_machine = self.several and p.machine in names
            found.append((self.look.color(names.index(p.machine) if of_machine else number), _sign(p, sign)))
        return found


def _sign(point: Point, sign: str) -> str:
    """The symbol of a point; `>` on the edge of the figure if it has no operations or moves nothing."""
    return ">" if point.intensity is None else sign


def _title(machines: Sequence[Roofs]) -> str:
    return machines[0].title or machines[0].name if len(machines) == 1 else ""


def _board(shown: _Shown, key: bool) -> Board:
    listed = [_key_text(p, shown.points) for p in shown.points if not p.beside and p.origin != "expected"]
    colors = [shown.line_color(k) for k in range(len(shown.machines))]
    board = roofs_board(
        shown.look, shown.machines, shown.points, shown.title, colors=colors,
        key=list(dict.fromkeys(listed)) if key else None,
    )  # fmt: skip
    board.legend(_legend(shown, key))
    _points(board, shown)
    return board


def _text(point: Point) -> str:
    if point.beside:
        return point.beside
    if point.intensity is None and point.rate_per_s:
        return f"{point.text}: nothing from memory"
    if point.intensity is None:
        return f"{point.text}: {show_bandwidth(point.bytes_per_s or 0)}, no operations"
    return point.text


def _key_text(point: Point, points: Sequence[Point]) -> str:
    """A point's name, and if it is also measured, how much of the prediction it reaches."""
    beside = [p.beside for p in points if p.beside and (p.label, p.machine) == (point.label, point.machine)]
    return ", ".join([_text(point), *beside])


def _points(board: Board, shown: _Shown) -> None:
    """Filled symbols for predictions, open ones with their spread for measurements; names as far as there is room."""
    look, machines, styles = board.look, shown.machines, shown.styles()
    places = [place_of(p, machines[0], board.window) for p in shown.points]
    both = zip(shown.points, places, strict=True)
    predicted = {(p.label, p.machine): xy for p, xy in both if p.origin == "predicted"}
    pixels, colors = [board.pixel(*xy) for xy in places], [color for color, _ in styles]
    over, under = hidden_under(pixels, colors), hidden_under(pixels[::-1], colors[::-1])[::-1]
    names = []
    for point, (color, sign), (x, y), above, below in zip(shown.points, styles, places, over, under, strict=True):
        if not board.shows(x, y):
            continue
        if point.beside:
            x0, y0 = predicted[point.label, point.machine]
            board.line((x0, x), (y0, y), color=color, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=4)
        if point.origin == "expected":
            board.axes.plot([x], [y], "_", color=color, markersize=15, markeredgewidth=2.4, zorder=6, clip_on=False)
            continue
        if point.error is not None and (point.intensity is not None or point.rate_per_s):
            board.axes.plot([x, x], point.error, color=color, linewidth=1.3, zorder=4)
        filled = point.origin == "predicted"
        apart = filled and below > 0  # a margin between it and the symbols that it covers
        board.axes.plot(
            [x], [y], sign, color=color if filled else look.paper, markeredgecolor=look.paper if apart else color,
            markersize=2.5 * apart + 7.5 + 4.5 * min(above, 4), markeredgewidth=1.6, zorder=5, clip_on=False,
        )  # fmt: skip
        if not board.key:
            names.append(Name(board.pixel(x, y), _text(point), color, look.small if point.beside else look.normal))
    outside(sum(not board.shows(*xy) for xy in places))
    name_points(board, names if shown.several else [*names, *ridge_names(board, machines[0])])


def _legend(shown: _Shown, key: bool) -> list[Any]:
    """The entries of the legend: the machines if there are several, the meaning of open symbols, and in a key the names
    of all points.
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=shown.line_color(k), linewidth=2, label=named(m.title or m.name))
        for k, m in enumerate(shown.machines)
        if shown.several
    ]
    handles += origin_symbols(shown.look, shown.points)
    return handles + (_key(shown) if key else [])


def _key(shown: _Shown) -> list[Any]:
    """The points with their symbols, each text once; in grey if colours stand for machines."""
    found: dict[str, Any] = {}
    for point, (color, sign) in zip(shown.points, shown.styles(), strict=True):
        text = _key_text(point, shown.points)
        if point.beside or text in found or point.origin == "expected":
            continue
        tint = shown.look.grey("#777777") if shown.several and point.machine else color
        face = tint if point.origin == "predicted" else shown.look.paper
        found[text] = symbol(sign, named(text, 40), face=face, edge=tint)
    return list(found.values())


# ---- the command ----

ABOVE = 1.05
"""A measured point more than this many times as high as the roof is reported: rates are rounded, and clocks vary."""

_POINT = re.compile(r"(?P<label>.+)=(?P<intensity>[^=@]+)@(?P<rate>[^=@]+)")


def _measured(text: str) -> Point:
    """`LABEL=I@RATE`. Raises ValueError."""
    match = _POINT.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not of the form LABEL=I@RATE")
    try:
        rate = float(parse_rate(match["rate"]))
    except UnitError as error:
        raise ValueError(str(error)) from None
    return Point(match["label"], rate, (("", intensity_of(match["intensity"])),), "measured")


def _figure(
    asked: Asked,
    *,
    measured: tuple[Point, ...],
    measured_file: tuple[str, ...],
    level: str | None,
    launches: bool,
    by_kernel: bool,
    expected: bool,
) -> Any:
    found = asked.launched(with_fields(asked.options, code=Code()) if expected else None)
    predictions = [p for p, _ in found]
    types, units = asked.types_of(predictions), units_of(predictions)
    roofs = [roofs_of(m, types, units) for m in asked.machines]
    if launches:
        for k, r in enumerate(roofs):
            roofs[k], above = with_launches(r, [p for p in predictions if p.machine == r.name])
            for text in above:
                asked.warn(f"the ceiling of {text}")
    programs = [program for _, program in found if by_kernel and program is not None]
    parts = [point for program in programs for point in _kernels(program)]
    points = _predicted(asked, predictions, expected=expected, in_parts=bool(parts))
    points += [*parts, *measured]
    for point in measured:
        _compare_with_roofs(asked, roofs, point)
    points += [p for name in measured_file for p in _profiled(asked, name, level or asked.machine.main_memory.name)]
    # labels leave out what all predictions of a machine have in common, which is the same for every machine
    own = [p for p in predictions if p.machine == asked.machines[0].name]
    sizes = sizes_text(own[0].parameters) if parts and len(own) == 1 else common_sizes(own)
    name = asked.machine.title or asked.machine.name
    title = "\n".join(filter(None, [name if len(roofs) == 1 else "", sizes]))
    return draw_roofline(roofs, points, title, look=asked.look, ceilings=asked.ceilings)


def _predicted(asked: Asked, predictions: Sequence[Prediction], *, expected: bool, in_parts: bool) -> list[Point]:
    """The points of predictions, machine by machine, with marks at their expected rates; warns about what is missing.

    in_parts: whether the kernels of a program are drawn, too. A single program then has its name as a label, since its
    sizes are in the title.
    """
    points: list[Point] = []
    for machine in asked.machines:
        own = [p for p in predictions if p.machine == machine.name]
        labels = [own[0].kernel] if in_parts and len(own) == 1 else labels_of(own)
        for p, label in zip(own, labels, strict=True):
            if not p.bounds:
                asked.warn(f"{label} is left out: nothing is computed, and nothing moves")
                continue
            point = explained_point(p, label)
            points += [point, *expected_point(point, p)]
            if expected and p.expected is None:
                asked.warn(f"{label} on {machine.name} has no mark at an expected rate: {p.no_expected}")
    return points


def _compare_with_roofs(asked: Asked, roofs: Sequence[Roofs], point: Point) -> None:
    """Warns if a measured point is clearly above the roof of every machine."""
    ((_, intensity),) = point.places
    tops = [r.under(m.main_memory.name, intensity) for r, m in zip(roofs, asked.machines, strict=True)]
    if tops and point.rate_per_s > ABOVE * max(tops):
        asked.warn(f"{point.label} is {show_number(point.rate_per_s / max(tops), 3)} times as fast as the roof allows")


def _kernels(program: ProgramPrediction) -> list[Point]:
    """The kernels of a program as points, each with its share of the time; no roof applies to collectives."""
    return [
        explained_point(row.total, f"{row.total.kernel}, {show_number(100 * row.share, 2)} %")
        for row in program.by_kernel
        if not row.collectives
    ]


def _profiled(asked: Asked, name: str, level: str) -> list[Point]:
    """The points of a document that have a time, and operations and bytes at `level`; warns about the others."""
    found, bare = [], []
    for p in points_named(name).points:
        intensity, rate = p.intensity(level), p.flops_per_s
        moved = next((x.bytes for x in p.levels if x.name == level), None)
        if intensity is None or rate is None or moved is None or not p.time_s:
            bare.append(p.label)
        else:
            at_level = ((level, intensity or None),)
            found.append(Point(p.label, rate, at_level, "measured", bytes_per_s=moved / p.time_s))
    if bare:
        known = "" if found else f"; `plot trajectory --points {name}` draws rate over work where these are known"
        asked.warn(f"{joined(bare)} of {name} left out: no time, no operations or no bytes at {level} are known{known}")
    return found


KIND = Kind(
    "Draw performance over intensity, with a machine's roofs.",
    "Draw kernels (FILEs, FILE:KERNELs, shipped names) under the roofs of machines.",
    (
        "machines",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable)."),
        "traffic",
        "unit",
        "type",
        Option(
            "--measured",
            'A measured point, as in "mine=0.25@200 GFLOP/s" (repeatable).',
            "LABEL=I@RATE",
            many=True,
            read=_measured,
        ),
        Option(
            "--measured-file", "A file of measured points, as from `import ncu` (repeatable).", "POINTS.json", many=True
        ),
        Option(
            "--level",
            "The level whose bytes give the intensity of the points of --measured-file; by default, the memory.",
            "NAME",
        ),
        Option("--launches", "Draw W over the total launch time as ceilings.", takes="nothing"),
        Option("--by-kernel", "Also draw each program's kernels, with their shares of its time.", takes="nothing"),
        Option("--expected", "Also mark the expected rate of every kernel's code on a CPU.", takes="nothing"),
        "ceilings",
    ),
    _figure,
)
