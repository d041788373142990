"""The planes of the time-based roofline: where symbols and boxes stand, from the models and the paper's own numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped, shipped_names
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.runtime import OTHERS, PALETTE, Bar, draw_runtime, gathered
from roofdsl.plot.planes import draw_plane
from roofdsl.plot.planes_content import (
    Plane,
    Series,
    Spot,
    Which,
    boxes_of,
    complexity_window,
    plane_of,
    points_series,
    predicted_series,
    time_window,
)
from roofdsl.plot.roofs import roofs_of, with_launches
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_program
from roofdsl.profiler.cited import points_named
from roofdsl.profiler.measured_points import LevelBytes, MeasuredPoint, Points, TypeWork
from tests.predict.machines import kernel_of, machine

SEEDS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "reference/seeds.json").read_text())
TIME = SEEDS["time_based_roofline_paper"]
V100 = load_machine("v100_time_paper")
KINDS: tuple[Which, ...] = ("complexity", "time", "complexity-time")


def paper_plane() -> Plane:
    return plane_of(V100, ("f16",), ("tensor",))


def lstm(**sizes: int) -> Prediction:
    return predict_program(load_file(shipped("kernels")["lstm"]), "lstm_forward", sizes, V100)


def convolution(**sizes: int) -> Prediction:
    found = kernel(load_file(shipped_names("kernels")["conv2d"]), "conv2d")
    return predict(found, sizes, V100, Options(unit="tensor"))


def symbols(figure: Any, closed: bool) -> list[tuple[float, float]]:
    """Where single symbols stand, closed or open ones."""
    lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    wanted = [line for line in lines if (line.get_markerfacecolor() != "none") == closed]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in wanted]


# ---- the plane of the paper ----


def test_the_papers_balance_is_that_of_the_tensor_peak() -> None:
    plane = paper_plane()
    assert plane.balance == pytest.approx(TIME["machine"]["machine_balance"], abs=0.005)
    assert [r.label for r in plane.others] == ["f16 FMA 29.18 TFLOP/s"]


def test_the_overhead_box_of_the_lstm() -> None:
    """Its corner is 36 launches times launch time: 151.2 us, 16.25 GFLOP at the tensor peak."""
    plane = paper_plane()
    (box,) = boxes_of(predicted_series([lstm()], "HBM"))
    assert box.launch_s * 1e6 == pytest.approx(TIME["lstm_overhead_us"]["PyTorch"])
    assert box.launch_s * plane.peak.rate_per_s / 1e9 == pytest.approx(
        TIME["lstm_break_even_GFLOP"]["launches_36"], rel=5e-4
    )
    assert box.label == "36 launches: 151.2 us"


@pytest.mark.thorough
def test_boxes_of_cited_launches() -> None:
    """Only launches are printed in the paper: the boxes are drawn as cited, and no symbol."""
    (series,), notes = points_series(points_named("lstm_launches"), "lstm_launches", "HBM", V100)
    assert len(notes) == 2
    boxes = boxes_of([*predicted_series([lstm()], "HBM"), series])
    assert [b.label for b in boxes] == [
        "TensorFlow 1 (cited), 277 launches: 1.163 ms",
        "TensorFlow 2 (cited), 243 launches: 1.021 ms",
        "lstm_forward, 36 launches: 151.2 us",
    ]
    overheads = {name: b.launch_s * 1e6 for b, name in zip(boxes, TIME["lstm_overhead_us"], strict=False)}
    assert sorted(overheads.values()) == pytest.approx(sorted(TIME["lstm_overhead_us"].values()))
    figure = draw_plane("complexity-time", paper_plane(), [series, *predicted_series([lstm()], "HBM")])
    assert len(symbols(figure, closed=True)) == 1


def test_of_a_series_with_several_boxes_the_first_and_the_last() -> None:
    series = predicted_series([lstm(sequence=n) for n in (16, 32, 64)], "HBM")
    assert [b.label for b in boxes_of(series)] == [
        "sequence=64, 132 launches: 554.4 us", "sequence=16, 36 launches: 151.2 us",
    ]  # fmt: skip


# ---- where symbols stand ----


@pytest.mark.spread(1)
@pytest.mark.parametrize("prediction", [lstm(), convolution(), convolution(f=512)], ids=["lstm", "conv", "conv512"])
def test_closed_symbols_are_complexity_and_open_ones_run_time(prediction: Prediction) -> None:
    plane = paper_plane()
    series = predicted_series([prediction], "HBM")
    figure = draw_plane("complexity-time", plane, series)
    (closed,), (opened,) = symbols(figure, closed=True), symbols(figure, closed=False)
    work, moved, run = float(prediction.work), float(prediction.memory.bytes), float(prediction.bound_s)
    assert closed == pytest.approx((moved, work))
    # rule 17: the larger of the two times is the run time, and both keep the intensity
    times = opened[0] / plane.bytes_per_s, opened[1] / plane.peak.rate_per_s
    assert max(times) == pytest.approx(run)
    assert opened[1] / opened[0] == pytest.approx(work / moved)
    assert (times[1] >= times[0]) == (work / moved >= plane.balance)
    lost = run / max(work / plane.peak.rate_per_s, moved / plane.bytes_per_s)
    assert opened[0] / closed[0] == pytest.approx(lost)
    right, above = figure.axes[1:]
    assert right.get_ylim() == pytest.approx(tuple(v / plane.peak.rate_per_s for v in figure.axes[0].get_ylim()))
    assert above.get_xlim() == pytest.approx(tuple(v / plane.bytes_per_s for v in figure.axes[0].get_xlim()))


def test_the_time_plane_has_the_same_in_seconds() -> None:
    plane, p = paper_plane(), convolution()
    figure = draw_plane("time", plane, predicted_series([p], "HBM"))
    (closed,), (opened,) = symbols(figure, closed=True), symbols(figure, closed=False)
    assert closed == pytest.approx((p.memory.bytes / plane.bytes_per_s, p.work / plane.peak.rate_per_s))
    assert max(opened) == pytest.approx(float(p.bound_s))


def test_the_complexity_plane_has_no_times() -> None:
    figure = draw_plane("complexity", paper_plane(), predicted_series([convolution()], "HBM"))
    assert len(symbols(figure, closed=True)) == 1
    assert symbols(figure, closed=False) == []


@pytest.mark.thorough
def test_a_kernel_without_operations_stands_on_the_bandwidth_axis() -> None:
    transpose = kernel(load_file(shipped_names("kernels")["transpose"]), "transpose")
    v100 = load_machine("v100")
    p = predict(transpose, {"n": 512}, v100, Options(levels="memory"))
    plane = plane_of(v100, (), ())
    figure = draw_plane("complexity", plane, predicted_series([p, predict_gemv()], "HBM"))
    at = next(spot for spot in symbols(figure, closed=True) if spot[0] == p.memory.bytes)
    assert at[1] == pytest.approx(figure.axes[0].get_ylim()[0])


def predict_gemv() -> Prediction:
    gemv = kernel(load_file(shipped_names("kernels")["gemv"]), "gemv")
    return predict(gemv, {"n": 128}, load_machine("v100"))


def test_sizes_are_joined_by_arrows_in_their_order() -> None:
    batches = [16, 32, 64]
    series = predicted_series([convolution(batch=n) for n in batches], "HBM")
    assert [s.label for s in series[0].spots] == ["batch=16", "batch=32", "batch=64"]
    figure = draw_plane("complexity", paper_plane(), series)
    arrows = [a for a in figure.axes[0].texts if getattr(a, "arrow_patch", None) is not None]
    assert len(arrows) == 2
    assert all(a.xyann[0] < a.xy[0] for a in arrows)


def test_measured_points_of_a_profile() -> None:
    """Open at the measured time, a square; what has no bytes at the level is left out and said."""
    points = Points("ncu", "a profile", (
        MeasuredPoint("k", "k", 1, 1e-3, (TypeWork("f32", pairs=5e8),), (LevelBytes("HBM", 1e8),)),
        MeasuredPoint("l", "l", 1, 1e-3, (TypeWork("f32", pairs=5e8),), ()),
    ))  # fmt: skip
    (series,), notes = points_series(points, "profile", "HBM", load_machine("v100_textbook"))
    assert notes == ["l of profile has no bytes at HBM, and is left out"]
    assert [(s.work, s.bytes, s.run_s) for s in series.spots] == [(1e9, 1e8, 1e-3)]
    plane = plane_of(V100, ("f32",), ())
    figure = draw_plane("complexity-time", plane, [series])
    (opened,) = symbols(figure, closed=False)
    assert max(opened[0] / plane.bytes_per_s, opened[1] / plane.peak.rate_per_s) == pytest.approx(1e-3)
    marks = {line.get_marker() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1}
    assert marks == {"s"}


def test_measured_run_times_have_their_spread() -> None:
    """From the 10th to the 90th percentile, on the diagonal of the spot."""
    plane = plane_of(V100, ("f32",), ())
    spot = Spot("k", 1e9, 1e8, 1e-3, spread_s=(0.8e-3, 1.5e-3))
    figure = draw_plane("time", plane, [Series("k", (spot,), "measured")])
    (line,) = (ln for ln in figure.axes[0].get_lines() if ln.get_linewidth() == 3)
    ends = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert [max(end) for end in ends] == pytest.approx([0.8e-3, 1.5e-3])
    assert ends[0][0] / ends[0][1] == pytest.approx(ends[1][0] / ends[1][1])


def test_a_duplex_memory_has_its_bandwidth_both_ways() -> None:
    """Else a copy, whose loads and stores cross together, would be faster than the plane's bandwidth allows."""
    duplex = machine("peak f64 fma 1 TFLOP/s", "memory RAM 1 GiB, 10 GB/s, duplex", "launch 1 us")
    text = "kernel k(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i]\n"
    copy = predict(kernel_of(text), {"n": 10**6}, duplex)
    plane = plane_of(duplex, (), ())
    assert plane.bytes_per_s == 20e9
    (series,) = predicted_series([copy], "RAM")
    times = plane.times(series.spots[0])
    assert times is not None
    assert times.lost == pytest.approx(1)


# ---- windows, levels, files ----


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_in_the_window(kind: Which) -> None:
    series = predicted_series([lstm(batch=n) for n in (16, 1024)] + [convolution()], "HBM")
    plane = paper_plane()
    figure = draw_plane(kind, plane, series)
    window = time_window(plane, series) if kind == "time" else complexity_window(plane, series, kind != "complexity")
    axes = figure.axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == (window.x, window.y)
    for x, y in symbols(figure, True) + symbols(figure, False):
        assert window.x[0] < x < window.x[1]
        assert window.y[0] < y < window.y[1]
    for box in boxes_of(series):
        scale = (1.0, 1.0) if kind == "time" else (plane.bytes_per_s, plane.peak.rate_per_s)
        assert window.x[0] < box.launch_s * scale[0] < window.x[1]
        assert window.y[0] < box.launch_s * scale[1] < window.y[1]


def test_levels() -> None:
    v100 = load_machine("v100")
    gemv = predict_gemv()
    plane = plane_of(v100, ("f64",), (), "L2")
    (series,) = predicted_series([gemv], "L2")
    assert series.spots[0].bytes == next(x.bytes for x in gemv.levels if x.name == "L2")
    assert plane.bytes_per_s == 2440e9
    with pytest.raises(CommandError, match="machine v100 has no level L3"):
        plane_of(v100, (), (), "L3")
    with pytest.raises(CommandError, match="no roof"):
        plane_of(v100, ("c64",), ())
    with pytest.raises(CommandError, match="there is no run time to draw"):
        draw_plane("time", paper_plane(), [Series("k", (Spot("k", 1.0, 1.0, None),))])


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_file(kind: Which, tmp_path: Path) -> None:
    series = predicted_series([convolution(batch=n) for n in (16, 32)], "HBM")
    files = [tmp_path / name for name in ("a.svg", "b.svg")]
    for file in files:
        save_figure(file, draw_plane(kind, paper_plane(), series))
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(CommandError, match=r"not an svg, png or pdf"):
        save_figure(tmp_path / "a.gif", draw_plane(kind, paper_plane(), series))


# ---- launches as a ceiling of the classic plot ----


@pytest.mark.thorough
def test_launches_are_a_ceiling() -> None:
    roofs, above = with_launches(roofs_of(V100, ("f16",)), [lstm(), convolution()])
    ceiling = roofs.roofs[-1]
    assert ceiling.is_ceiling
    assert ceiling.rate_per_s == pytest.approx(float(lstm().work / lstm().launch_s))
    assert ceiling.rate_per_s == pytest.approx(float(lstm().rate_per_s))  # it is the bound
    assert ceiling.label == "lstm_forward, 36 launches 10.86 GFLOP/s"
    assert above == ["conv2d, 1 launch (849.6 TFLOP/s) is above the roof and is not drawn"]


# ---- run times as bars ----


def test_bars_are_as_long_as_their_parts() -> None:
    bars = [
        Bar("a", (("x", 1e-6), ("y", 2e-6)), 1e-6),
        Bar("b", (("y", 5e-6),), 0.0, (4e-6, 6e-6, 7e-6)),
    ]
    figure = draw_runtime(bars, "title")
    axes = figure.axes[0]
    rows: dict[int, float] = {}
    for patch in axes.patches:
        rows[round(patch.get_y() + patch.get_height() / 2)] = patch.get_x() + patch.get_width()
    assert rows == pytest.approx({0: 3e-6, 1: 5e-6})
    assert [t.get_text() for t in axes.texts] == ["3 us", "5 us, measured 6 us"]
    assert axes.get_xlim()[1] > 7e-6


def test_the_last_tick_is_whole() -> None:
    """One at the very end of the axis: half of its label stands beyond it."""
    figure = draw_runtime([Bar("a", (("x", 164e-6),))], "title")
    figure.canvas.draw()
    last = figure.axes[0].get_xticklabels()[-1]
    assert last.get_text() == "150 us"
    assert last.get_window_extent().x1 <= figure.bbox.x1


def test_more_kernels_than_colours() -> None:
    parts = tuple((f"k{i}", 1.0 + i) for i in range(len(PALETTE) + 3))
    (bar,), names = gathered([Bar("p", parts)])
    assert names[-1] == OTHERS
    assert len(names) == len(PALETTE) + 1
    assert dict(bar.parts)[OTHERS] == 1.0 + 2.0 + 3.0
    assert bar.total_s == sum(seconds for _, seconds in parts)


def test_bars_need_a_time() -> None:
    with pytest.raises(CommandError, match="no run time"):
        draw_runtime([], "")


def test_every_size_of_a_series_is_named_if_its_legend_stands_beside_the_axes() -> None:
    """The legend there has the series, not their sizes."""
    sizes = ({"batch": 16, "hidden": 16}, {"batch": 64, "hidden": 64}, {"batch": 128, "hidden": 512})
    series = predicted_series([lstm(**each) for each in sizes], "HBM")
    figure = draw_plane("time", plane_of(V100, ("f16", "f32"), ()), series, "")
    texts = {t.get_text() for t in figure.axes[0].texts}
    assert {f"batch={s['batch']}, hidden={s['hidden']}" for s in sizes} <= texts
