"""What the two roofline papers say of their applications, on the models' numbers (tests/reference/seeds.json).

Measured figures of the papers (`cited_only` there) are compared with nothing here.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from roofdsl.counts.traffic_at import footprint_at, traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import load_file
from roofdsl.loops.program_model import program
from roofdsl.machine.find import load_machine, shipped
from roofdsl.predict.kernel import predict
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_program
from roofdsl.profiler.cited import cited_files, points_named
from roofdsl.profiler.metrics import SECTOR_BYTES
from tests.models.shipped import model
from tests.oracle.enumerate import run

SEEDS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "reference/seeds.json").read_text())
HIERARCHICAL, TIME = SEEDS["hierarchical_roofline_paper"], SEEDS["time_based_roofline_paper"]
GPP, HPGMG = HIERARCHICAL["GPP"], HIERARCHICAL["HPGMG"]
SMALL = {"bands": 3, "ngpown": 2, "ncouls": 240}

# ---- GPP ----


def test_gpps_intensity_grows_linearly_with_nw() -> None:
    """At the registers and at memory: the work is proportional to nw, the bytes do not change."""
    accessed, moved, done = set(), set(), []
    for nw in GPP["nw"]:
        gpp = model("gpp", nw=nw)
        accessed.add(sum(len(e.accesses) for e in run(gpp, {**SMALL, "ncouls": 8})))
        moved.add(traffic_at(gpp, SMALL, 16 * 1024, 64, "load_store").bytes)
        done.append(work_at(gpp, SMALL).total)
    assert done == [done[0] * nw for nw in GPP["nw"]]
    assert (len(accessed), len(moved)) == (1, 1)


@pytest.mark.spread(1)
@pytest.mark.parametrize(("line", "flat_from"), [(64, 4), (32, 2)])
def test_gpps_intensity_falls_with_the_stride_until_a_transaction_holds_one_element(line: int, flat_from: int) -> None:
    assert f"HBM intensity falls as 1/stride up to stride {4}" in GPP["trait_stride"]
    intensities = {}
    for s in GPP["strides"]:
        gpp = model("gpp", s=s)
        intensities[s] = work_at(gpp, SMALL).total / traffic_at(gpp, SMALL, 1024, line, "load_store").bytes
    for s, found in intensities.items():
        assert found == pytest.approx(intensities[1] / min(s, flat_from), rel=0.02)


def test_gpps_mix_of_operations() -> None:
    """11 pairs in 27 with a division as one operation; the paper's 60 % are instructions (docs/models.md)."""
    counts = work_at(model("gpp"), SMALL)
    assert counts.fma_fraction == pytest.approx(11 / 27)
    alpha = HIERARCHICAL["fma_mix"]["alpha_GPP_nw6"]
    assert (2 * alpha + (1 - alpha)) / 2 == HIERARCHICAL["fma_mix"]["beta_GPP_nw6"]


def test_what_the_model_says_of_the_decks_versions() -> None:
    sizes = {"bands": 8, "ngpown": 3, "ncouls": 8}
    points = 8 * 3 * 8
    versions = [work_at(model(f"gpp_{v}"), sizes) for v in ("divides", "reciprocals", "squares", "blocks")]
    assert [w.operations["f64", "div"] // points for w in versions] == [4, 2, 2, 2]
    assert [w.operations.get(("f64", "special"), 0) // points for w in versions] == [1, 1, 0, 0]
    assert [w.total // points for w in versions] == [76, 78, 77, 77]


def test_blocks_of_bands_save_traffic() -> None:
    sizes = {"bands": 16, "ngpown": 8, "ncouls": 64}
    room = 13 * 64 * 16  # rows of eps and wtilde with eight bands of aqsn and more, but not with sixteen
    plain = traffic_at(model("gpp_squares"), sizes, room, 64, "load_store").bytes
    blocked = traffic_at(model("gpp_blocks", b=8), sizes, room, 64, "load_store").bytes
    assert blocked < 0.5 * plain


# ---- HPGMG ----


def gsrb(variant: str, **sizes: int) -> int:
    return work_at(model(f"gsrb_{variant}"), sizes).total


@pytest.mark.thorough
def test_updates_of_a_colour() -> None:
    per_update = gsrb("branch", boxes=1, dim=2) // 4
    assert per_update == 113
    assert gsrb("branch", boxes=1, dim=128) == HPGMG["updates_per_colour_sweep_dim128"] * per_update
    assert gsrb("stride2", boxes=8, dim=128) == gsrb("branch", boxes=8, dim=128)


@pytest.mark.thorough
def test_the_masked_smoother_does_twice_the_work_at_twice_the_intensity() -> None:
    assert gsrb("fp", boxes=8, dim=64) == 2 * gsrb("branch", boxes=8, dim=64) + 8 * 64**3  # the mask's product
    names = [{a.name for a in model(f"gsrb_{v}").arrays} for v in ("fp", "branch")]
    assert names[0] - names[1] == {"mask"}
    intensity = {}
    for v in ("fp", "branch"):
        moved = traffic_at(model(f"gsrb_{v}"), {"boxes": 2, "dim": 8}, 256 * 1024, 64, "load_store").bytes
        intensity[v] = gsrb(v, boxes=2, dim=8) / moved
    assert intensity["fp"] / intensity["branch"] == pytest.approx(2, rel=0.05)


@pytest.mark.thorough
def test_ghost_zones_cost_intensity() -> None:
    """Per element of an array with its ghost zone the work goes as dim^3 / (dim + 4)^3; what is touched grows less."""
    found = []
    smoother = model("gsrb_branch")
    (x,) = (a for a in smoother.arrays if a.name == "x")
    for dim in HPGMG["dims"]:
        sizes = {"boxes": HPGMG["boxes"], "dim": dim}
        elements = 1
        for d in x.dims:
            elements *= d.evaluate(sizes)
        work = gsrb("branch", **sizes)
        assert Fraction(work, elements) == Fraction(113, 2) * Fraction(dim**3, (dim + 2 * HPGMG["ghost"]) ** 3)
        found.append(work / footprint_at(smoother, sizes))
    assert found == sorted(found)
    assert found[0] / found[-1] > (16 / 20) ** 3 / (128 / 132) ** 3


# ---- convolution ----


def test_every_pass_of_the_default_convolution_does_the_same_products() -> None:
    default = TIME["conv2d_default"]
    sizes = {"batch": 16, "h": 112, "w": 112, "c": 64, "f": 64, "r": 3}
    for name in ("conv2d", "conv2d_f32", "conv2d_backward_data", "conv2d_backward_filter"):
        assert work_at(model(name), sizes).total == default["W_flop"]
    rows = default["batch"] * default["out"] ** 2
    assert work_at(model("conv_gemm"), {"rows": rows, "f": 64, "sums": 9 * 64}).total == default["W_flop"]


def test_algorithms_of_other_complexity() -> None:
    """Winograd's products take 16 multiplications where the direct loops take 36."""
    tiles, c, f = 4 * 5 * 5, 8, 8
    direct = 2 * (4 * 10 * 10) * 9 * c * f
    assert Fraction(work_at(model("winograd_products"), {"tiles": tiles, "c": c, "f": f}).total, direct) == Fraction(
        16, 36
    )


# ---- LSTM ----


def lstm(name: str = "lstm_forward", **sizes: int) -> Prediction:
    checked = load_file(shipped("kernels")["lstm"])
    return predict_program(checked, name, sizes, load_machine("v100_time_paper"))


def test_the_lstms_launches() -> None:
    forward = lstm()
    assert forward.launches == TIME["lstm_launches_forward"]["PyTorch"]
    assert float(forward.launch_s) * 1e6 == pytest.approx(TIME["lstm_overhead_us"]["PyTorch"])
    assert forward.bound == "launch"
    parts: dict[str, int] = {}
    for launch in program(load_file(shipped("kernels")["lstm"]), "lstm_forward", {}).launches:
        name = launch.kernel.name
        parts[name] = parts.get(name, 0) + launch.times.evaluate(TIME["lstm_default"])
    assert parts == {
        "lstm_recurrent_product": 16, "lstm_elementwise": 16, "lstm_input_product": 2, "lstm_move": 2,
    }  # fmt: skip
    assert (
        "16 GEMM + 16 element-wise + 2 half-precision GEMM + 2 data movement"
        in TIME["lstm_launches_forward_parts"]["PyTorch"]
    )
    assert work_at(model("lstm_move"), {"n": 100}).total == 0


def test_every_launch_is_bound_by_its_overhead() -> None:
    machine, checked = load_machine("v100_time_paper"), load_file(shipped("kernels")["lstm"])
    default = TIME["lstm_default"]
    for name in ("lstm_forward", "lstm_backward", "lstm_forward_unfused"):
        for launch in program(checked, name, {}).launches:
            values = {n: e.evaluate(default) for n, e in launch.arguments}
            assert predict(launch.kernel, values, machine).bound == "launch"


def test_time_does_not_depend_on_the_batch() -> None:
    assert len({lstm(batch=n).bound_s for n in (16, 32, 64, 128)}) == 1


@pytest.mark.thorough
def test_time_and_launches_grow_with_the_sequence_at_one_intensity() -> None:
    sweep = {n: lstm(sequence=n) for n in (16, 32, 64, 128)}
    assert {n: p.launches for n, p in sweep.items()} == {n: 2 * n + 4 for n in sweep}
    intensities = [float(p.intensity or 0) for p in sweep.values()]
    assert max(intensities) / min(intensities) < 1.02
    fused = {n: lstm("lstm_forward_fused", sequence=n) for n in (16, 32, 64, 128)}
    assert {p.bound_s / n for n, p in fused.items()} == {fused[16].bound_s / 16}
    assert len({p.intensity for p in fused.values()}) == 1


# ---- citations ----


def test_sectors() -> None:
    assert set(HIERARCHICAL["transaction_bytes"].values()) == {SECTOR_BYTES}


def test_citations_hold_what_the_documents_print() -> None:
    assert all(points_named(name).origin == "cited" for name in cited_files())
    deck = [(p.kernel, (p.work_flops or 0) / 1e12, p.time_s) for p in points_named("gpp_deck").points]
    assert deck == [(name, pytest.approx(tera), s) for name, tera, s, _ in SEEDS["gpp_and_conv2d_deck"]["steps"]]
    launches = {p.label: p.launches for p in points_named("lstm_launches").points}
    assert launches == {k: v for k, v in TIME["lstm_launches_forward"].items() if k != "PyTorch"}
