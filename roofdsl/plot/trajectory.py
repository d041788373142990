"""Trajectories: a kernel over a parameter, or versions of a code one after another, as symbols joined by arrows.

Under the roofs of a machine where intensities are known; else rate over work, with lines of equal time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time
from roofdsl.plot.board import Board, check_format, plane, roomy, save_figure
from roofdsl.plot.content import Ceilings, Window
from roofdsl.plot.hierarchy import roofs_board
from roofdsl.plot.levels_content import Kernel, LevelRoofs, levels_with
from roofdsl.plot.look import SIGNS, USUAL, Look, named, outside, styled
from roofdsl.plot.names import name_line, name_points, name_roofs
from roofdsl.plot.ticks import prefixed

MOST_LISTED = 8
"""Trajectories that a legend inside the axes has room for."""

_ORIGINS = ("predicted", "measured", "cited")


@dataclass(frozen=True)
class Step:
    """One point of a trajectory. work: operations, None where not known; kernel: its rate and intensities."""

    kernel: Kernel
    work: float | None = None


@dataclass(frozen=True)
class Trajectory:
    """Steps in order; `source` says whose they are, for points that a document states."""

    name: str
    steps: tuple[Step, ...]
    source: str = ""


def save_trajectory(
    path: Path,
    roofs: LevelRoofs,
    paths: Sequence[Trajectory],
    levels: Sequence[str] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    `levels` are those whose intensities are drawn, the memory's by default. Raises CommandError for another ending,
    without a roof, with fewer than two points in all, and where neither intensities nor work are known of all.
    """
    kind = check_format(path)
    if not roofs.roofs:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    if sum(len(p.steps) for p in paths) < 2:
        raise CommandError("a trajectory needs at least two points", "give --at twice, several files, or --points")
    save_figure(path, kind, lambda: draw_trajectory(roofs, paths, levels, title, look=look, ceilings=ceilings))


@dataclass(frozen=True)
class _Track:
    """A trajectory at one level, "" for work: its points in data, its colour and symbol; named: whether its points'
    labels stand here, and not at another level."""

    path: Trajectory
    level: str
    points: tuple[tuple[Step, float], ...]
    color: str
    sign: str
    named: bool
    name: str


@styled
def draw_trajectory(
    roofs: LevelRoofs,
    paths: Sequence[Trajectory],
    levels: Sequence[str] = (),
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure; a colour and symbol for each trajectory (and level), open where it is not predicted."""
    wanted = tuple(levels) or (roofs.slopes[-1].level,)
    steps = [s for p in paths for s in p.steps]
    heading = title if title is not None else roofs.title or roofs.name
    by_work = not all(any(level in wanted for level, _ in s.kernel.intensities) for s in steps)
    if by_work and not all(s.work is not None for s in steps):
        raise CommandError(
            "these points have neither intensities nor work in common",
            "give every point an `intensity` at the level, or `work_flops`",
        )
    tracks = _tracks(paths, () if by_work else wanted, look)
    kernels = [_only(s.kernel, wanted) for s in steps]
    shown = levels_with(roofs, ceilings, [s.kernel for s in steps])

    def board_of(key: bool) -> Board:
        names = [t.name for t in tracks] if key else None
        if by_work:
            board = _work_board(shown, steps, heading, look, names)
        else:
            board = roofs_board(shown, kernels, heading, look, names)
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
    found: list[tuple[Trajectory, str, tuple[tuple[Step, float], ...]]]
    if levels:
        found = [(p, level, _along(p, level)) for p in paths for level in levels]
    else:
        found = [(p, "", tuple((s, float(s.work or 0)) for s in p.steps)) for p in paths]
    found = [each for each in found if each[2]]
    return [
        _Track(
            p,
            level,
            points,
            look.color(k),
            SIGNS[k % len(SIGNS)],
            level in ("", *levels[-1:]),
            f"{p.name}, {level}" if len(levels) > 1 else p.name,
        )
        for k, (p, level, points) in enumerate(found)
    ]


def _name_steps(board: Board, tracks: Sequence[_Track]) -> None:
    """Names at the steps; of many, those of the first and the last step, and of the others as many as there is room."""
    anchors: list[tuple[float, float]] = []
    texts: list[str] = []
    tints: list[str] = []
    may_go: list[bool] = []
    for track in tracks:
        for k, (step, x) in enumerate(track.points if track.named else ()):
            if board.shows(x, step.kernel.rate_per_s):
                anchors.append(board.pixel(x, step.kernel.rate_per_s))
                texts.append(step.kernel.label)
                tints.append(track.color)
                between = 0 < k < len(track.points) - 1
                may_go.append(board.key or (between and (len(tracks) > 3 or len(track.points) > 6)))
    name_points(board, anchors, texts, tints, points=[board.look.small] * len(texts), optional=may_go)


def _only(kernel: Kernel, levels: Sequence[str]) -> Kernel:
    kept = tuple(pair for pair in kernel.intensities if pair[0] in levels)
    return Kernel(kernel.label, kernel.rate_per_s, kept, kernel.origin)


def _along(path: Trajectory, level: str) -> tuple[tuple[Step, float], ...]:
    return tuple((s, dict(s.kernel.intensities)[level]) for s in path.steps if level in dict(s.kernel.intensities))


def _draw(board: Board, track: _Track) -> None:
    """Symbols, and an arrow from each to the next where they are not one on the other."""
    for (one, x), (other, there) in pairwise(track.points):
        board.arrow((x, one.kernel.rate_per_s), (there, other.kernel.rate_per_s), track.color)
    outside(sum(not board.shows(x, step.kernel.rate_per_s) for step, x in track.points))
    for step, x in track.points:
        if not board.shows(x, step.kernel.rate_per_s):
            continue
        face = track.color if step.kernel.origin == "predicted" else board.look.paper
        board.axes.plot(
            [x], [step.kernel.rate_per_s], track.sign, color=face, markeredgecolor=track.color, markersize=7.5,
            markeredgewidth=1.5, zorder=5,
        )  # fmt: skip


def _work_board(roofs: LevelRoofs, steps: Sequence[Step], title: str, look: Look, key: Sequence[str] | None) -> Board:
    """Rate over work: the roofs across, and lines of equal time."""
    works = [s.work for s in steps if s.work]
    rates = [s.kernel.rate_per_s for s in steps]
    shown = [r for r in roofs.roofs if r.rate_per_s < 4 * max(rates)] or [roofs.roofs[-1]]
    x = (min(works) / 1.6, max(works) * 1.6)
    y = (min(rates) / 1.8, max([*rates, *(r.rate_per_s for r in shown)]) * 1.5)
    labels = (f"Work W ({roofs.operation})", f"Performance P ({roofs.operation}/s)")
    board = plane(look, Window(x, y), title, labels, (prefixed, prefixed), key=key)
    places = [(float(s.work or 0), s.kernel.rate_per_s) for s in steps]
    board.points = [board.pixel(*at) for at in places if at[0] and board.shows(*at)]
    for roof in shown:
        style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if roof.is_ceiling else {"linewidth": 1.8}
        board.line(board.window.x, (roof.rate_per_s, roof.rate_per_s), color=look.ink, zorder=3, **style)
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
    """Trajectories by colour and symbol, where there are several, and what open symbols are; with their sources."""
    from matplotlib.lines import Line2D

    look = board.look
    handles = []
    if len(tracks) > 1:
        for track in tracks:
            handles.append(
                Line2D(
                    [], [], color=track.color, linewidth=1.5, marker=track.sign, markersize=6, label=named(track.name)
                )
            )
    origins = [o for o in _ORIGINS if any(s.kernel.origin == o for t in tracks for s, _ in t.points)]
    for origin in origins:
        grey = look.grey("#777777")
        face = grey if origin == "predicted" else look.paper
        sources = dict.fromkeys(t.path.source for t in tracks if t.path.source and origin == "cited")
        label = named(f"cited: {'; '.join(sources)}", 72) if sources else origin
        if origin != "predicted" or len(origins) > 1:
            handles.append(Line2D([], [], linestyle="", marker="o", color=face, markeredgecolor=grey, label=label))
    return handles
