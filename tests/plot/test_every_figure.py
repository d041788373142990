"""Every kind of figure, with one, five, nine and twenty subjects: no text lies on another or leaves the figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from roofdsl.machine.find import load_machine
from roofdsl.plot.advised import Change, Floor, draw_advice
from roofdsl.plot.bandwidth_curve import Curve, Mark, SweepFigure, draw_sweep
from roofdsl.plot.kinds.hierarchy import draw_hierarchy
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.kinds.runtime import Bar, draw_runtime
from roofdsl.plot.kinds.traffic import draw_traffic
from roofdsl.plot.kinds.trajectory import Trajectory, draw_trajectory
from roofdsl.plot.look import OKABE_ITO, SIGNS, USUAL, Look
from roofdsl.plot.planes import draw_plane
from roofdsl.plot.planes_content import Series, Spot, plane_of
from roofdsl.plot.roofline_points import Point
from roofdsl.plot.roofs import level_roofs, roofs_of
from roofdsl.plot.sweep_map import Curves, Map, draw_curves, draw_maps
from roofdsl.plot.traffic_content import PlateauLine, TrafficContent, TrafficPoint
from tests.plot.drawn import beyond, collisions, outlines

V100 = load_machine("v100")
ROOFS, LEVELS, PLANE = roofs_of(V100, ["f64"]), level_roofs(V100, ["f64"]), plane_of(V100, ["f64"], [])
Draw = Callable[[int, Look], Any]


def points(count: int) -> list[Point]:
    random, found = Random(count), []
    for k in range(count):
        x = 10 ** random.uniform(-1.5, 2.2)
        rate = min(ROOFS.top, ROOFS.bandwidth * x) * random.choice([1, 1, 0.5, 0.2])
        found.append(Point(f"kernel_{k} n={10 ** random.randint(1, 7):,}", rate, (("HBM", x),)))
    return found


def measured(count: int) -> list[Point]:
    """Each predicted and, lower, measured."""
    found = []
    for p in points(count):
        low = replace(p, origin="measured", rate_per_s=0.7 * p.rate_per_s, beside="70 %")
        found += [p, low]
    return found


def kernels(count: int) -> list[Point]:
    random, found = Random(count), []
    for k in range(count):
        x, f = 10 ** random.uniform(-1.2, 1), random.uniform(1, 6)
        at = (("L1", x), ("L2", x * f), ("HBM", x * f * random.uniform(1, 9)))
        rate = min(LEVELS.under(level, v) for level, v in at) * random.choice([1, 0.7])
        found.append(Point(f"kernel_{k}", rate, at, bounds=("HBM",)))
    return found


def series(count: int) -> list[Series]:
    random, found = Random(count), []
    for k in range(count):
        q = 10 ** random.uniform(4, 9)
        w = q * 10 ** random.uniform(-7 if k == 0 else -2, 2)
        run = max(w / 7.8e12, q / 9e11, 4e-6) * random.choice([1, 1.5, 3])
        found.append(Series(f"kernel_{k}", (Spot(f"kernel_{k}", w, q, run, 1, 4e-6),)))
    return found


def paths(count: int, by_work: bool = False) -> list[Trajectory]:
    found = []
    for k in range(count):
        random, x, steps = Random(k), 10 ** Random(k).uniform(-0.8, 0), []
        for i in range(5):
            x *= random.uniform(1, 1.7)
            rate = min(LEVELS.top, 9e11 * x) * random.uniform(0.5, 1)
            steps.append(Point(f"n={8 << i}", rate, () if by_work else (("HBM", x),), work=1e9 * 2.2**i))
        found.append(Trajectory(f"code {k}", tuple(steps)))
    return found


def bars(count: int) -> list[Bar]:
    return [Bar(f"program_{k} n={10**k % 10**9:,}", (("a", 1e-6 * (k + 1)), (f"part_{k}", 2e-6))) for k in range(count)]


def changes(count: int) -> list[Change]:
    bounds = ("HBM", "L2", "compute", "launch", "L1 and HBM")
    labels = [f"{k} block the loops over i and j by {16 * k}" for k in range(count)]
    return [Change(label, 1e-3 / (k + 1), bounds[k % 5]) for k, label in enumerate(labels)]


def curves(count: int) -> Curves:
    xs = tuple(2.0**k for k in range(4, 12))
    rows = [tuple(x * 1e9 * (k + 1) for x in xs) for k in range(count)]
    return Curves("n", "flops_per_s", tuple((f"b = {k}", xs, row) for k, row in enumerate(rows)))


def maps(count: int) -> list[Map]:
    xs = tuple(8 * (k + 1) for k in range(count + 1))
    values = tuple(tuple(1e9 * (x + y) for x in xs) for y in xs)
    return [Map("", "a", "b", "flops_per_s", xs, xs, values)]


def characterized(count: int) -> SweepFigure:
    xs = [2.0**k for k in range(12, 30)]
    lines = [Curve(f"load {k}", tuple((x, 1e11 / (k + 1) / (1 + x / 2**20)) for x in xs)) for k in range(min(count, 6))]
    marks = (Mark("L1d 32 KiB", 2**15, 9e10), Mark("L2 512 KiB", 2**19, 6e10), Mark("L3 1 MiB", 2**20, 5e10))
    return SweepFigure("A processor", "Working set", tuple(lines), (*marks, Mark("DRAM", None, 1e9)))


def traffic(count: int) -> TrafficContent:
    plateaus = tuple(
        PlateauLine(64.0 * 4**k, 64.0 * 4 ** (k + 1), 1e9 / 3**k, f"${8 + k} n^{{2}} m$ B")
        for k in range(count % 10 + 1)
    )
    sizes = tuple(int(p.start_bytes) for p in plateaus)
    moved = tuple(int(p.traffic_bytes) for p in plateaus)
    caches = (("L1", 32 << 10), ("L2", 40 << 10), ("L3", 32 << 20))
    points = (TrafficPoint(100, 10**9, "simulated"),)
    return TrafficContent("gemv, n = 1,000", "load_store, lines of 64 B", (sizes, moved), plateaus, points, caches)


KINDS: dict[str, Draw] = {
    "roofline": lambda n, look: draw_roofline([ROOFS], points(n), look=look),
    "roofline of everything": lambda n, look: draw_roofline([roofs_of(V100)], points(n), look=look, ceilings="all"),
    "overlay": lambda n, look: draw_roofline([ROOFS], measured(n), look=look),
    "hierarchy": lambda n, look: draw_hierarchy(LEVELS, kernels(n), look=look),
    "complexity": lambda n, look: draw_plane("complexity", PLANE, series(n), look=look),
    "time": lambda n, look: draw_plane("time", PLANE, series(n), look=look),
    "complexity-time": lambda n, look: draw_plane("complexity-time", PLANE, series(n), look=look),
    "trajectory": lambda n, look: draw_trajectory(LEVELS, paths(n), look=look),
    "rate over work": lambda n, look: draw_trajectory(LEVELS, paths(n, by_work=True), look=look),
    "runtime": lambda n, look: draw_runtime(bars(n), "NVIDIA V100", look=look),
    "advice": lambda n, look: draw_advice(changes(n), [Floor("arithmetic at its peak, f64", 5e-5)], "gemv", look=look),
    "sweep curves": lambda n, look: draw_curves(curves(n), "gemv", look=look),
    "sweep map": lambda n, look: draw_maps(maps(n), "gemv", look=look),
    "characterize": lambda n, look: draw_sweep(characterized(n), look=look),
    "traffic": lambda n, look: draw_traffic(traffic(n), look=look),
}
LOOKS = {"usual": USUAL, "large letters": Look(font_scale=1.3, dark=True), "wide": Look(size_in=(11, 5.5))}


@pytest.mark.spread(1, 16)
@pytest.mark.parametrize("count", [1, 5, 9, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_neither_overlap_nor_leave_the_figure(kind: str, count: int) -> None:
    look = list(LOOKS.values())[(count + len(kind)) % len(LOOKS)]
    figure = KINDS[kind](count, look)
    assert collisions(figure) == []
    assert beyond(figure) == []


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", KINDS)
def test_user_text_is_text(kind: str) -> None:
    """No `$` begins a formula, nothing breaks the figure, and a long title ends in time."""
    hostile = "a $\\frac$ b $x_{ \\ _ ^ } 50 % \x1b[31m \u202e " + "long " * 200
    look = Look(title=hostile)
    figure = KINDS[kind](5, look)
    shown = [text for text, _ in outlines(figure)]
    title = next(t for t in shown if t.startswith("a $\\frac$ b"))
    assert title.endswith("...")
    assert title.count("\n") < 4
    assert "\x1b" not in title
    assert beyond(figure) == []


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "sweep map"])
def test_the_look_is_taken(kind: str) -> None:
    limits = {"roofline": (0.01, 50.0), "traffic": (64.0, 2.0**20), "sweep curves": (16.0, 256.0)}
    x = limits.get(kind)
    figure = KINDS[kind](3, Look(size_in=(7, 6.5), dark=True, title="mine", x=x))
    assert tuple(figure.get_size_inches()) == (7, 6.5)
    assert figure.get_facecolor()[:3] < (0.2, 0.2, 0.2)
    assert "mine" in [text for text, _ in outlines(figure)]
    if x is not None:
        assert figure.axes[0].get_xlim() == x


@pytest.mark.thorough
def test_subjects_differ_in_colour_or_symbol() -> None:
    """At least 24, and the first eleven by their symbols alone, as in print without colour."""
    styles = [(USUAL.color(k), SIGNS[k % len(SIGNS)]) for k in range(len(OKABE_ITO) * len(SIGNS))]
    assert len(set(styles)) == len(styles) >= 24
    assert len({sign for _, sign in styles[:11]}) == 11
    figure = draw_roofline([ROOFS], points(24))
    drawn = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert len({(line.get_color(), line.get_marker()) for line in drawn if line.get_markersize() > 6}) == 24
    assert len(figure.axes[0].get_legend().get_texts()) == 24


@pytest.mark.thorough
def test_two_signs_of_twenty_kernels_of_a_hierarchy_differ() -> None:
    figure = draw_hierarchy(LEVELS, kernels(24))
    legend = figure.axes[0].get_legend()
    entries = [h for h, t in zip(legend.legend_handles, legend.get_texts(), strict=True) if "kernel_" in t.get_text()]
    assert len({(h.get_color(), h.get_fillstyle(), h.get_linestyle()) for h in entries}) == 24
