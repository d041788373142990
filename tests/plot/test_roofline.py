"""The drawn figure: its data, its labels' places, its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine, shipped_machines
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.look import USUAL
from roofdsl.plot.roofline_points import Point
from roofdsl.plot.roofs import roofs_of


def at(label: str, intensity: float, rate: float, *more: Any) -> Point:
    return Point(label, rate, (("HBM", intensity),), *more)


POINTS = [
    at("vector_add", 1 / 24, 37.5e9),
    at("gemv", 0.25, 225e9),
    at("a friend's gemv", 0.25, 200e9, "measured", (180e9, 210e9)),
    at("minplus", 341.0, 3.5e12),
    at("matmul", 341.0, 7e12),
    Point("transpose", 0.0, bytes_per_s=450e9),
]
DECK = roofs_of(load_machine("v100_textbook"))


def lines(figure: Any) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines]


def test_the_roof_is_the_minimum_of_both_bounds() -> None:
    drawn = lines(draw_roofline([DECK]))
    (x0, x1), (y0, y1) = drawn[0]
    assert (y0 / x0, y1 / x1, y1) == pytest.approx((900e9, 900e9, 7e12))
    assert ([7e12 / 900e9, x1], [7e12, 7e12])[1] == drawn[1][1]
    assert drawn[1][0][0] == pytest.approx(7e12 / 900e9)


def test_points_stand_where_they_say() -> None:
    figure = draw_roofline([DECK], POINTS)
    places = [(x[0], y[0]) for x, y in lines(figure) if len(x) == 1]
    for point in POINTS[:5]:
        assert (point.intensity, point.rate_per_s) in places
    left = figure.axes[0].get_xlim()[0]
    assert (left, pytest.approx(450e9 * left)) in places
    assert ([0.25, 0.25], [180e9, 210e9]) in lines(figure)


def test_marks_that_cover_others_have_a_margin() -> None:
    """The one below is larger, so both are seen; percentages are explained in the legend."""
    pairs = [at("matmul", 42.0, 4.4e12), at("matmul_blocked", 41.0, 4.3e12)]
    slower = [replace(p, origin="measured", rate_per_s=0.5 * p.rate_per_s, beside="50 %") for p in pairs]
    figure = draw_roofline([DECK], [*pairs, *slower])
    below, above = (next(m for m in figure.axes[0].lines if list(m.get_ydata()) == [p.rate_per_s]) for p in pairs)
    assert above.get_markeredgecolor() == USUAL.paper != below.get_markeredgecolor()
    assert below.get_markersize() > above.get_markersize()
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["bound", "measured, in % of the bound"]


def test_no_line_passes_between_a_roof_and_its_name() -> None:
    """Roofs that lie close together on a tall figure: the name of one was once above the line of the next."""
    roofs = roofs_of(load_machine("v100"), ["f16", "f64"])
    launch = replace(roofs.roofs[-1], rate_per_s=7.989e12, name="one launch", is_ceiling=True)
    figure = draw_roofline([replace(roofs, roofs=(*roofs.roofs, launch))], [at("slow", 0.003, 3e7)])
    rates = {r.label: r.rate_per_s for r in roofs.roofs} | {"f64 FMA 7.8, one launch 7.989 TFLOP/s": 7.8e12}
    named = {t.get_text(): t.get_position()[1] for t in figure.axes[0].texts if t.get_text() in rates}
    assert len(named) > 3
    for label, bottom in named.items():
        low, high = sorted((rates[label], bottom))
        others = [r for r in rates.values() if not 0.95 < r / rates[label] < 1.05]
        assert not [r for r in others if low < r < high], (label, named)


def test_roofs_too_close_to_be_told_apart_share_a_name() -> None:
    """f64 FMA at 7.8 and f32 without FMA at 7.85 TFLOP/s: the name of the latter once lay on the roof above both."""
    roofs = roofs_of(load_machine("v100"), ["f32", "f64"])
    figure = draw_roofline([roofs], [at("gemv", 0.5, 450e9), at("dot", 0.125, 1e9)])
    names = {t.get_text(): t.get_position()[1] for t in figure.axes[0].texts if "TFLOP/s" in t.get_text()}
    assert list(names) == ["f64 no FMA 3.9 TFLOP/s", "f64 FMA 7.8, f32 no FMA 7.85 TFLOP/s", "f32 FMA 15.7 TFLOP/s"]
    assert 7.85e12 < names["f64 FMA 7.8, f32 no FMA 7.85 TFLOP/s"] < 15.7e12


@pytest.mark.spread(1)
@pytest.mark.parametrize("machine", shipped_machines().values(), ids=lambda m: m.name)
def test_labels_neither_overlap_nor_leave_the_figure(machine: Any) -> None:
    roofs = roofs_of(machine)
    points = [
        at(
            f"kernel {i}",
            roofs.roofs[0].ridge * factor,
            min(roofs.top, roofs.roofs[0].ridge * factor * roofs.bandwidth),
        )
        for i, factor in enumerate((0.02, 0.3, 0.5, 1, 1, 3))
    ]
    figure = draw_roofline([roofs], points)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    upright = [t for t in figure.axes[0].texts if t.get_rotation() == 0]
    boxes = [t.get_window_extent(renderer) for t in upright]
    for i, a in enumerate(boxes):
        assert figure.bbox.x0 <= a.x0 <= a.x1 <= figure.bbox.x1, upright[i].get_text()
        for j, b in enumerate(boxes[:i]):
            width = min(a.x1, b.x1) - max(a.x0, b.x0)
            height = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert width <= 1 or height <= 2.5, (upright[i].get_text(), upright[j].get_text())


@pytest.mark.spread(1)
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_input_gives_the_same_file(ending: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for path in (first, second):
        save_figure(path, draw_roofline([DECK], POINTS))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 5000


def test_several_machines_have_a_legend_and_no_ceilings() -> None:
    figure = draw_roofline([roofs_of(load_machine(n), ["f64"]) for n in ("v100_deck", "a100_80")], POINTS[:2])
    legend = figure.axes[0].get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["NVIDIA V100, as in the deck", "NVIDIA A100, 80 GB"]
    assert not any("no FMA" in t.get_text() for t in figure.axes[0].texts)


def test_predictions_alone_need_no_legend() -> None:
    assert draw_roofline([DECK], POINTS[:2]).axes[0].get_legend() is None
    assert draw_roofline([DECK], POINTS[:3]).axes[0].get_legend() is not None


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not an svg, png or pdf file"):
        save_figure(tmp_path / "a.gif", draw_roofline([DECK]))
    with pytest.raises(CommandError, match="no roof to draw"):
        draw_roofline([roofs_of(load_machine("v100_deck"), ["f16"])])
    with pytest.raises(CommandError, match="cannot be written"):
        save_figure(tmp_path / "no/a.svg", draw_roofline([DECK]))


def test_names_of_two_machines_lie_on_neither_s_roof() -> None:
    """Over five decades the f64 roofs of V100 and A100 are 8 pixels apart: the lower one's name stands below it."""
    shown = [roofs_of(load_machine(name), ["f64"]) for name in ("v100", "a100_40")]
    figure = draw_roofline(shown, [at("low", 0.1, 1e9)])
    names = {t.get_text(): t.get_position()[1] for t in figure.axes[0].texts if "FMA" in t.get_text()}
    assert names["f64 FMA 9.7 TFLOP/s"] > 9.7e12
    assert names["f64 FMA 7.8 TFLOP/s"] < 7.8e12 * 0.95


def test_a_measured_point_above_the_roof_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plot", "roofline", "--machine", "v100", "-o", str(tmp_path / "r.svg")]
    assert run([*line, "--measured", "mine=0.25@2000 GFLOP/s", "--measured", "fine=0.25@200 GFLOP/s"]) == 0
    said = capsys.readouterr().err
    assert "mine is 8.89 times as fast as the roof allows" in said
    assert "fine" not in said
