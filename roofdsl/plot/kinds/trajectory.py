"""Trajectories: a kernel over a parameter, or successive versions of a code, as symbols joined by arrows.

They are drawn under the roofs of a machine if intensities are known, else as rate over work with lines of equal time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.types import TYPES
from roofdsl.machine.quantities import show_time
from roofdsl.plot.board import Board, Window, plane, roomy, symbol
from roofdsl.plot.kind import POINTS, Asked, Kind, Option, at_option, units_of
from roofdsl.plot.look import SIGNS, USUAL, Look, named, outside, styled
from roofdsl.plot.names import Name, name_line, name_points, name_roofs
from roofdsl.plot.roofline_plane import line_style, origin_symbols, roofs_board
from roofdsl.plot.roofline_points import Point, measured_points, points_of
from roofdsl.plot.roofs import Ceilings, Roofs, level_roofs, require_roof, with_ceilings
from roofdsl.plot.ticks import prefixed
from roofdsl.predict.prediction import Prediction
from roofdsl.profiler.cited import points_named
from roofdsl.profiler.measured_points import Points

MOST_LISTED = 8
"""The maximum number of trajectories in a legend inside the axes."""


@dataclass(frozen=True)
class Trajectory:
    """Points in order; `source` names the authors of points from a document."""

    name: str
    steps: tuple[Point, ...]
    source: str = ""


def measured_trajectory(document: Points, name: str) -> Trajectory:
    """The points in the order of their document, with its source."""
    return Trajectory(name, tuple(measured_points(document)), document.source if document.origin == "cited" else "")


@dataclass(frozen=True)
class _Track:
    """A trajectory at one level ("" for work): its points in data coordinates, its colour and symbol; named: whether
    its points' labels are drawn at this level and not at another one.
    """

    path: Trajectory
    points: tuple[tuple[Point, float], ...]
    color: str
    sign: str
    named: bool
    name: str


@styled
def draw_trajectory(
    roofs: Roofs,
    paths: Sequence[Trajectory],
    levels: Sequence[str] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure; a colour and symbol for each trajectory (and level), open if it is not predicted.

    `levels` are those whose intensities are drawn, by default the memory's. Raises CommandError without a roof, with
    fewer than two points in total, and if neither intensities nor work are known for all points.
    """
    require_roof(roofs.roofs)
    steps = [s for p in paths for s in p.steps]
    if len(steps) < 2:
        raise CommandError("a trajectory needs at least two points", "give --at twice, several files, or --points")
    wanted = tuple(levels) or (roofs.levels[-1].level,)
    heading = title if title is not None else roofs.title or roofs.name
    by_work = not all(s.at(wanted).places for s in steps)
    if by_work and not all(s.work is not None for s in steps):
        raise CommandError(
            "these points have neither intensities nor work in common",
            "give every point an `intensity` at the level, or `work_flops`",
        )
    tracks = _tracks(paths, () if by_work else wanted, look)
    shown = with_ceilings(roofs, ceilings, steps)

    def board_of(key: bool) -> Board:
        names = [t.name for t in tracks] if key else None
        if by_work:
            board = _work_board(shown, steps, heading, look, names)
        else:
            board = roofs_board(look, [shown], [s.at(wanted) for s in steps], heading, key=names)
        board.crowded = len(tracks) > MOST_LISTED
        board.legend(_legend(board, tracks))
        if by_work:
            _equal_times(board)
        for track in tracks:
            _draw(board, track)
        _name_steps(board, tracks)
        return board

    return roomy(board_of)


def _tracks(paths: Sequence[Trajectory], levels: Sequence[str], look: Look) -> list[_Track]:
    """One track for each trajectory and level; over work if there are no levels."""

    def places(step: Point, level: str) -> list[tuple[Point, float]]:
        return [(step, x) for _, x in step.at([level]).places] if levels else [(step, step.work or 0.0)]

    found = [
        (p, level, tuple(place for step in p.steps for place in places(step, level)))
        for p in paths
        for level in levels or [""]
    ]
    return [
        _Track(
            p,
            points,
            look.color(k),
            SIGNS[k % len(SIGNS)],
            level in ("", *levels[-1:]),
            f"{p.name}, {level}" if len(levels) > 1 else p.name,
        )
        for k, (p, level, points) in enumerate(each for each in found if each[2])
    ]


def _name_steps(board: Board, tracks: Sequence[_Track]) -> None:
    """Names at the steps; if there are many, of the first and last step, and of as many others as there is room for."""
    names = []
    for track in tracks:
        for k, (step, x) in enumerate(track.points if track.named else ()):
            if board.shows(x, step.rate_per_s):
                between = 0 < k < len(track.points) - 1
                may_go = between and (board.key or len(tracks) > 3 or len(track.points) > 6)
                names.append(Name(board.pixel(x, step.rate_per_s), step.label, track.color, board.look.small, may_go))
    name_points(board, names)


def _draw(board: Board, track: _Track) -> None:
    """Draw the symbols, and an arrow from each to the next unless they overlap."""
    for (one, x), (other, there) in pairwise(track.points):
        board.arrow((x, one.rate_per_s), (there, other.rate_per_s), track.color)
    outside(sum(not board.shows(x, step.rate_per_s) for step, x in track.points))
    for step, x in track.points:
        if board.shows(x, step.rate_per_s):
            face = track.color if step.origin == "predicted" else board.look.paper
            board.axes.plot(
                [x], [step.rate_per_s], track.sign, color=face, markeredgecolor=track.color, markersize=7.5,
                markeredgewidth=1.5, zorder=5,
            )  # fmt: skip


def _work_board(roofs: Roofs, steps: Sequence[Point], title: str, look: Look, key: Sequence[str] | None) -> Board:
    """Rate over work: the roofs as horizontal lines, and lines of equal time."""
    works, rates = [s.work for s in steps if s.work], [s.rate_per_s for s in steps]
    shown = [r for r in roofs.roofs if r.rate_per_s < 4 * max(rates)] or [roofs.roofs[-1]]
    x = (min(works) / 1.6, max(works) * 1.6)
    y = (min(rates) / 1.8, max([*rates, *(r.rate_per_s for r in shown)]) * 1.5)
    labels = (f"Work W ({roofs.operation})", f"Performance P ({roofs.operation}/s)")
    board = plane(look, Window(x, y), title, labels, (prefixed, prefixed), key=key)
    board.points = [board.pixel(s.work, s.rate_per_s) for s in steps if s.work and board.shows(s.work, s.rate_per_s)]
    for roof in shown:
        across = (roof.rate_per_s, roof.rate_per_s)
        board.line(board.window.x, across, color=look.ink, zorder=3, **line_style(roof.is_ceiling))
    name_roofs(board, [replace(r, ridge=board.window.x[0]) for r in shown], look.ink)
    return board


def _equal_times(board: Board) -> None:
    """Dotted lines P = W / T at times of one digit, with their names along them."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    grey, faint = board.look.grey("#666666"), board.look.grey("#9A9A9A")
    times = [d * 10.0**e for e in range(floor(log10(x0 / y1)), ceil(log10(x1 / y0)) + 1) for d in (1, 2, 5)]
    shown = [t for t in times if max(x0, y0 * t) < 0.98 * min(x1, y1 * t)]
    for time in shown[:: -(-len(shown) // 12)] if shown else ():
        low, high = max(x0, y0 * time), min(x1, y1 * time)
        ends = (low, high), (low / time, high / time)
        board.axes.plot(*ends, color=faint, linewidth=0.9, linestyle=":", zorder=2)
        start, end = board.pixel(low, low / time), board.pixel(high, high / time)
        name_line(board, start, end, f"T = {show_time(time)}", grey, prefer=0.08, must=False)


def _legend(board: Board, tracks: Sequence[_Track]) -> list[Any]:
    """The trajectories with colours and symbols, if there are several; the meaning of open symbols, with sources."""
    handles = [
        symbol(t.sign, named(t.name), face=t.color, edge=t.color, size=6, linestyle="-", linewidth=1.5)
        for t in tracks
        if len(tracks) > 1
    ]
    sources = dict.fromkeys(t.path.source for t in tracks if t.path.source)
    return handles + origin_symbols(board.look, [s for t in tracks for s, _ in t.points], list(sources))


# ---- the command ----


def _figure(asked: Asked, *, level: tuple[str, ...], points: tuple[str, ...]) -> Any:
    machine, documents = asked.machine, {name: points_named(name) for name in points}
    known = [*(c.name for c in machine.caches), machine.main_memory.name]
    wrong = next((name for name in level if name not in known), None)
    if wrong is not None:
        raise CommandError(f"machine {machine.name} has no level {wrong}", f"its levels are {', '.join(known)}")
    found = asked.predicted()
    measured = [w.type for d in documents.values() for p in d.points for w in p.work or ()]
    types = asked.types or tuple(dict.fromkeys(t for t in [*asked.types_of(found), *measured] if t in TYPES))
    paths = _trajectories(found)
    paths += [measured_trajectory(document, Path(name).stem) for name, document in documents.items()]
    roofs = level_roofs(machine, types, units_of(found))
    return draw_trajectory(roofs, paths, level, asked.title(found), look=asked.look, ceilings=asked.ceilings)


def _trajectories(found: Sequence[Prediction]) -> list[Trajectory]:
    """One trajectory for each kernel if any kernel occurs at several sizes; else a single one over all kernels, as
    versions of a code.
    """
    found = [p for p in found if p.work]
    sizes: dict[str, set[object]] = {}
    steps: dict[str, list[Point]] = {}
    for p, step in zip(found, points_of(found), strict=True):
        sizes.setdefault(p.kernel, set()).add(p.parameters)
        steps.setdefault(p.kernel, []).append(step)
    if any(len(own) > 1 for own in sizes.values()):
        return [Trajectory(name, tuple(own)) for name, own in steps.items()]
    return [Trajectory("versions", tuple(points_of(found)))] if found else []


KIND = Kind(
    "Draw a kernel over sizes, or versions of a code.",
    "Draw a kernel over sizes (--at), or several versions of a code, joined by arrows.",
    (
        "machine",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable); drawn in the order given."),
        Option("--level", "Show intensities at this level (repeatable); by default, the memory.", "NAME", many=True),
        POINTS,
        "traffic",
        "unit",
        "type",
        "ceilings",
    ),
    _figure,
)
