"""The hierarchical roofline and trajectories: their content, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, models_folder
from roofdsl.machine.model import BandwidthCeiling
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.hierarchy import draw_hierarchy
from roofdsl.plot.kinds.trajectory import Trajectory, draw_trajectory, measured_trajectory
from roofdsl.plot.roofline_plane import window_of
from roofdsl.plot.roofline_points import Point, common_sizes, measured_points, point_of, points_of
from roofdsl.plot.roofs import level_roofs, with_mixes
from roofdsl.predict.kernel import predict
from roofdsl.predict.prediction import Prediction
from roofdsl.profiler.cited import points_named
from roofdsl.profiler.measured_points import LevelBytes, MeasuredPoint, Points, TypeWork
from tests.predict.machines import machine

V100 = load_machine("v100")
A = Point("a", 2e11, (("L1", 0.06), ("L2", 0.25), ("HBM", 0.25)), bounds=("HBM",))
B = Point("b", 4e12, (("L1", 3.0), ("HBM", 40.0)), ceiling=4.2e12, bounds=("compute",))


def predicted(file: str, **sizes: int) -> Prediction:
    return predict(kernel(load_file(models_folder() / "kernels" / f"{file}.roof"), file), sizes, V100)


def texts(figure: Any) -> list[str]:
    return [t.get_text() for t in figure.axes[0].texts]


def symbols(figure: Any) -> Iterator[tuple[str, float, float]]:
    for line in figure.axes[0].lines:
        if len(line.get_xdata()) == 1:
            yield line.get_marker(), float(line.get_xdata()[0]), float(line.get_ydata()[0])


def test_a_bandwidth_for_every_level_and_roofs_at_the_fastest() -> None:
    roofs = level_roofs(V100, ["f64"])
    assert [(s.level, s.bytes_per_s) for s in roofs.levels] == [("L1", 13.875e12), ("L2", 2.44e12), ("HBM", 9e11)]
    assert [c.label.split(",")[0] for c in roofs.slopes if c.is_ceiling and c.level == "HBM"] == ["read", "triad"]
    assert roofs.roofs[0].ridge == pytest.approx(7.8e12 / 13.875e12)
    assert roofs.under("L2", 0.25) == pytest.approx(0.61e12)
    assert roofs.under("HBM", 100) == roofs.top == 7.8e12
    latency = BandwidthCeiling("latency", "L2", 10**12)  # type: ignore[arg-type]
    slopes = level_roofs(V100, ["f64"], (), [latency]).slopes
    assert [c.bytes_per_s for c in slopes if c.is_ceiling and c.level == "L2"] == [1e12]


def test_a_level_that_predictions_leave_out_has_no_line() -> None:
    assert [s.level for s in level_roofs(load_machine("v100_deck")).levels] == ["HBM"]


def test_kernels_are_those_of_predictions() -> None:
    p = predicted("gemv", n=512)
    found = point_of(p)
    assert found.label == "gemv n=512"
    assert found.intensities == tuple((level.name, p.work / level.bytes) for level in p.levels)
    assert (found.rate_per_s, found.bounds, found.ceiling) == (float(p.rate_per_s), ("launch",), None)
    assert points_of([predicted("transpose", n=32)]) == []
    assert point_of(predicted("minplus", n=32)).ceiling == pytest.approx(3.9e12)


@pytest.mark.thorough
def test_names_say_what_differs() -> None:
    sizes = [predicted("gemv", n=n) for n in (64, 128)]
    assert [k.label for k in points_of(sizes)] == ["n=64", "n=128"]
    assert common_sizes(sizes) == "gemv"
    two = [sizes[0], predicted("minplus", n=64)]
    assert [k.label for k in points_of(two)] == ["gemv", "minplus"]
    assert common_sizes(two) == "n=64"
    assert common_sizes(sizes[:1]) == ""
    three = [*two, replace(sizes[0], kernel="other", parameters=(("batch", 2),))]
    assert common_sizes(three) == "n=64, batch=2"  # each of those that have it
    assert common_sizes(three[1:]) == "n=64, batch=2"
    unlike = [sizes[1], *two[1:], three[2]]  # n differs, so that it is in the labels
    assert common_sizes(unlike) == "batch=2"
    assert [k.label for k in points_of(unlike)] == ["gemv n=128", "minplus n=64", "other"]


def test_a_ring_stands_at_levels_that_no_other_term_exceeds() -> None:
    """A level that takes almost as long as the arithmetic is not what bounds the kernel."""

    def rings(*bounds: str) -> list[float]:
        figure = draw_hierarchy(level_roofs(V100, ["f64"]), [replace(B, bounds=bounds)])
        return [
            float(line.get_xdata()[0])
            for line in figure.axes[0].lines
            if line.get_marker() == "o" and line.get_markersize() >= 15
        ]

    assert rings("HBM", "compute") == [40.0]
    assert rings("HBM", "L1") == [3.0, 40.0]
    assert rings("compute", "HBM") == rings("launch", "L1") == []


def test_effective_peaks_of_mixes_are_ceilings_of_their_own() -> None:
    roofs = level_roofs(V100, ["f64"])
    labels = [r.label for r in with_mixes(roofs, [A, B, Point("c", 1e12, ceiling=4.22e12)]).roofs]
    assert labels == ["f64 FMA 7.8 TFLOP/s", "mix of b, c 4.2 TFLOP/s", "f64 no FMA 3.9 TFLOP/s"]
    near = with_mixes(roofs, [Point("d", 1e12, ceiling=3.9e12)])
    assert near.roofs == roofs.roofs


def test_one_symbol_for_every_kernel_and_level() -> None:
    figure = draw_hierarchy(level_roofs(V100, ["f64"]), [A, B])
    drawn = [(m, x, y) for m, x, y in symbols(figure) if m in ("o", "s", "^") and y in (2e11, 4e12)]
    expected = [("o", 0.06, 2e11), ("s", 0.25, 2e11), ("^", 0.25, 2e11), ("o", 3.0, 4e12), ("^", 40.0, 4e12)]
    assert [d for d in drawn if d in expected] == expected
    assert ("o", 0.25, 2e11) in drawn  # the ring of the bound
    for name in ("a", "b", "L1 13.88 TB/s", "L2 2.44 TB/s", "HBM 900 GB/s", "f64 FMA 7.8 TFLOP/s"):
        assert name in texts(figure)
    assert "the bound" in [t.get_text() for t in figure.axes[0].get_legend().get_texts()]


def test_all_is_within_the_window() -> None:
    roofs = level_roofs(V100, ["f64"])
    far = Point("far", 3.0, (("L1", 1e-4), ("HBM", 1e5)))
    window = window_of([roofs], [far])
    assert window.x[0] < 1e-4
    assert window.x[1] > 1e5
    assert window.y[0] < 3.0 < roofs.top < window.y[1]


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("figure", "kind"), [("hierarchy", "svg"), ("trajectory", "svg"), ("hierarchy", "png"), ("trajectory", "pdf")]
)
def test_the_same_input_gives_the_same_file(tmp_path: Path, figure: str, kind: str) -> None:
    roofs, one, two = level_roofs(V100, ["f64"]), tmp_path / f"1.{kind}", tmp_path / f"2.{kind}"
    for path in (one, two):
        if figure == "hierarchy":
            save_figure(path, draw_hierarchy(roofs, [A, B]))
        else:
            save_figure(path, draw_trajectory(roofs, [Trajectory("t", (A, B))]))
    assert one.read_bytes() == two.read_bytes() != b""


def test_a_trajectory_on_the_roofline() -> None:
    path = Trajectory("t", (A, B))
    figure = draw_trajectory(level_roofs(V100, ["f64"]), [path], ["L1", "HBM"])
    places = {(x, y) for _, x, y in symbols(figure)}
    assert {(0.06, 2e11), (3.0, 4e12), (0.25, 2e11), (40.0, 4e12)} <= places
    arrows = [t for t in figure.axes[0].texts if getattr(t, "arrow_patch", None) is not None]
    assert len(arrows) == 2


def test_without_intensities_rate_over_work() -> None:
    steps = tuple(Point(n, r, origin="cited", work=w) for n, r, w in (("v1", 2.27e12, 3.71e12), ("v9", 3.5e12, 2e12)))
    figure = draw_trajectory(level_roofs(V100, ["f64"]), [Trajectory("t", steps, "a deck")])
    assert {(x, y) for _, x, y in symbols(figure)} >= {(3.71e12, 2.27e12), (2e12, 3.5e12)}
    assert any(t.startswith("T = ") for t in texts(figure))
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["cited: a deck"]
    with pytest.raises(CommandError, match="neither intensities nor work"):
        draw_trajectory(level_roofs(V100, ["f64"]), [Trajectory("t", (A, steps[0]))])


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    roofs = level_roofs(V100, ["f64"])
    with pytest.raises(CommandError, match="at least two points"):
        draw_trajectory(roofs, [Trajectory("t", (A,))])
    with pytest.raises(CommandError, match="not an svg, png or pdf"):
        save_figure(tmp_path / "t.gif", draw_hierarchy(roofs, [A]))
    with pytest.raises(CommandError, match="no roof to draw"):
        draw_hierarchy(level_roofs(machine("peak i32 1 TOP/s"), ["f64"]), [A])


def test_measured_and_cited_points() -> None:
    work = (TypeWork("f64", pairs=1e12),)
    one = MeasuredPoint("k", "k", 1, 2.0, work, (LevelBytes("L2", 8e12), LevelBytes("HBM", 4e12)))
    bare = MeasuredPoint("v1", "v1", 1, 1.63, (TypeWork("f64", other=3.71e12),), ())
    nothing = MeasuredPoint("x", "x", 1, None, None, ())
    assert measured_points(Points("ncu", "a report", (one, nothing))) == [
        Point("k", 1e12, (("L2", 0.25), ("HBM", 0.5)), "measured", work=2e12)
    ]
    deck = measured_trajectory(Points("cited", "a deck", (bare,)), "deck")
    assert deck == Trajectory("deck", (Point("v1", 3.71e12 / 1.63, origin="cited", work=3.71e12),), "a deck")


def test_the_nine_versions_are_the_decks() -> None:
    found = measured_trajectory(points_named("gpp_deck"), "gpp_deck")
    assert len(found.steps) == 9
    assert {s.origin for s in found.steps} == {"cited"}
    assert "GPP deck" in found.source
    figure = draw_trajectory(level_roofs(load_machine("v100_hierarchical"), ["f64"]), [found])
    shown = texts(figure)
    assert {s.label for s in found.steps} <= {name for text in shown for name in text.split(", ")}
    assert "v4.iwoutside, v5.swapindices" in shown  # 3.00 and 3.03 TFLOP/s at the same work: one symbol on the other


@pytest.mark.thorough
def test_names_of_close_ceilings_stand_one_under_the_other() -> None:
    """Those of a V100's memory, whose lines are a pixel or two apart."""
    steps = [point_of(predicted("gemv", n=n), f"n={n}") for n in (1000, 4000)]
    path = [Trajectory("gemv", tuple(steps))]
    assert not any("measured" in t for t in texts(draw_trajectory(level_roofs(V100, ["f64"]), path)))
    figure = draw_trajectory(level_roofs(V100, ["f64"]), path, ceilings="all")
    named = {t.get_text().split(",")[0] for t in figure.axes[0].texts}
    assert {"read", "triad"} <= named
    assert "n=1000, n=4000" in texts(figure)  # both at 1/4 FLOP a byte under the memory's roof
