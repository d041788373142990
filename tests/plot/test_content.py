"""What figures show, as data."""

from __future__ import annotations

import pytest

from roofdsl.machine.find import load_machine
from roofdsl.plot.planes_content import plane_of
from roofdsl.plot.roofline_plane import place_of, window_of
from roofdsl.plot.roofline_points import Point, explained_point, point_of
from roofdsl.plot.roofs import level_roofs, operation_of, roofs_of, with_ceilings
from roofdsl.predict.given_counts import predict_counts
from tests.predict.machines import machine, work

DECK = load_machine("v100_deck")


def test_roofs_ceilings_and_ridges_of_the_deck() -> None:
    shown = roofs_of(DECK)
    assert [(r.label, r.rate_per_s, r.is_ceiling) for r in shown.roofs] == [
        ("f64 FMA 7 TFLOP/s", 7e12, False),
        ("f64 no FMA 3.5 TFLOP/s", 3.5e12, True),
    ]
    assert [(s.label, s.bytes_per_s, s.is_ceiling) for s in shown.slopes] == [("HBM 900 GB/s", 9e11, False)]
    assert shown.roofs[0].ridge_label == "ridge 7.78"
    for roof in shown.roofs:
        assert roof.ridge * shown.bandwidth == pytest.approx(roof.rate_per_s)


def test_types_and_units_choose_the_roofs() -> None:
    v100 = load_machine("v100")
    assert [r.label.split(" ")[0] for r in roofs_of(v100, ["f32"]).roofs] == ["f32", "f32"]
    assert "f16 tensor 125 TFLOP/s" in [r.label for r in roofs_of(v100, ["f16"], ["tensor"]).roofs]
    assert "f16 tensor 125 TFLOP/s" not in [r.label for r in roofs_of(v100, ["f16"]).roofs]
    assert "f16 tensor 125 TFLOP/s" in [r.label for r in roofs_of(v100).roofs]
    assert roofs_of(v100, ["i32"]).roofs == ()


def test_figures_of_integer_roofs_count_operations() -> None:
    h100 = load_machine("h100_sxm")
    shown = roofs_of(h100, ["i8"], ["tensor"])
    assert {r.operation for r in shown.roofs} == {"OP"} and operation_of(shown.roofs) == "OP"
    assert level_roofs(h100, ["i8"], ["tensor"]).operation == "OP"
    plane = plane_of(h100, ["i8"], ["tensor"])
    assert (plane.operation, plane.peak.name) == ("OP", "i8 tensor")
    assert operation_of(roofs_of(h100).roofs) == "FLOP"


def test_sparse_roofs_by_name_only() -> None:
    guide = load_machine("h100_guide")
    assert not any("sparse" in r.label for r in roofs_of(guide).roofs)
    sparse = roofs_of(guide, ["bf16"], ["tensor_sparse"]).roofs
    assert [r.label for r in sparse] == ["bf16 tensor sparse 1.979 PFLOP/s"]


def test_named_ceilings_lie_under_what_they_cap() -> None:
    opteron = roofs_of(load_machine("opteron_2356"))
    assert [r.label for r in opteron.roofs if r.is_ceiling] == [
        "mul/add imbalance 36.8 GFLOP/s",
        "no SIMD 18.4 GFLOP/s",
    ]
    slopes = roofs_of(load_machine("gh200_96")).slopes
    assert [s.bytes_per_s for s in slopes] == sorted((s.bytes_per_s for s in slopes), reverse=True)
    assert not any("far half" in s.label for s in slopes)  # of L2, which this figure has not
    assert with_ceilings(roofs_of(load_machine("v100")), "none").slopes[1:] == ()


def test_a_ceiling_as_high_as_a_roof_is_on_its_line() -> None:
    skylake = roofs_of(load_machine("skylake_gold_6148"))
    labels = {which: [r.label for r in with_ceilings(skylake, which).roofs] for which in ("few", "all", "none")}
    assert labels["few"][:2] == labels["all"][:2] == ["f32 FMA 3.072 TFLOP/s", "f64 FMA, f32 no FMA 1.536 TFLOP/s"]
    assert labels["none"] == ["f32 FMA 3.072 TFLOP/s", "f64 FMA 1.536 TFLOP/s"]


def test_points_of_predictions() -> None:
    p = point_of(predict_counts("k", {"n": 4}, work(pairs=10**9), 8 * 10**9, DECK))
    assert (p.label, p.intensity, p.machine) == ("k n=4", 0.25, "v100_deck")
    assert p.rate_per_s == pytest.approx(225e9)
    copied = point_of(predict_counts("copy", {}, work(), 9 * 10**9, DECK), label="copied")
    assert (copied.label, copied.intensity, copied.rate_per_s) == ("copied", None, 0)
    assert copied.bytes_per_s == pytest.approx(900e9)


def test_warm_points_without_memory_traffic_keep_their_rate() -> None:
    p = point_of(predict_counts("k", {"n": 4}, work(pairs=10**9), 0, DECK))
    assert p.intensity is None
    assert p.rate_per_s == pytest.approx(7e12)
    window = window_of([roofs_of(DECK)], [p])
    assert place_of(p, roofs_of(DECK), window) == (window.x[1], p.rate_per_s)


def test_labels_say_what_keeps_a_point_below_the_roof() -> None:
    """7 TFLOP/s fused, 900 GB/s, a launch of 4.2 us."""
    on_the_roof = predict_counts("k", {"n": 4}, work(pairs=10**9), 8 * 10**9, DECK)
    short = predict_counts("k", {"n": 4}, work(pairs=1000), 8000, DECK)
    unfused = predict_counts("k", {"n": 4}, work(add=10**9), 1000, DECK)
    points = [explained_point(p) for p in (on_the_roof, short, unfused)]
    assert [p.text for p in points] == ["k n=4", "k n=4 (launch)", "k n=4 (compute)"]
    assert {p.label for p in points} == {"k n=4"}, "one color and sign for one kernel"


def test_the_window_shows_everything() -> None:
    points = [
        Point("far", 1e6, (("HBM", 5000.0),)),
        Point("edge", 0.0, bytes_per_s=1e6),
        Point("mine", 1e9, (("HBM", 0.002),), "measured", (2e5, 2e9)),
    ]
    roofs = roofs_of(DECK)
    window = window_of([roofs], points)
    assert window.x[0] < 0.002
    assert window.x[1] > 5000
    assert window.y[0] < 2e5
    assert window.y[0] < 1e6 * window.x[0]
    assert window.y[1] > 7e12


def test_integer_roofs_say_so() -> None:
    both = machine("peak i32 1 TOP/s", "peak f32 1 TFLOP/s")
    assert [r.label for r in roofs_of(both, ["i32"]).roofs] == ["i32 1 TOP/s"]
    assert [r.label for r in roofs_of(both).roofs] == ["f32 1 TFLOP/s"]


def test_roofs_of_the_same_height_are_one_line() -> None:
    labels = [r.label for r in roofs_of(load_machine("h100_sxm")).roofs]
    assert "f16 tensor, bf16 tensor 989.4 TFLOP/s" in labels
    assert "f64 tensor, f32 FMA 66.9 TFLOP/s" in labels
    assert not any("no FMA" in label for label in labels)  # neither stated nor asked for
