"""Every number of the source documents that a model can produce, from the shipped models and the real engine.

tests/reference/seeds.json is a copy of the project's reference. Errata are asserted at their correct value; what it
lists under `cited_only` is not a prediction and not tested here.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from roofdsl.counts.traffic_at import footprint_at, traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, models_folder
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.kernel import predict
from roofdsl.predict.links import stream_rate
from roofdsl.predict.measured_times import measured_times
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from tests.predict.machines import machine, work

ROOT = Path(__file__).parents[2]
SEEDS: dict[str, Any] = json.loads((ROOT / "tests/reference/seeds.json").read_text())
DECK, GUIDE = SEEDS["model_driven_optimization_deck"], SEEDS["interactive_guide"]
TIME, HIERARCHICAL = SEEDS["time_based_roofline_paper"], SEEDS["hierarchical_roofline_paper"]
ROWS = {row["kernel"].split()[0] + (" Z" if "Z=" in row["kernel"] else ""): row for row in DECK["rows"]}
BIG = 2**20


@cache
def model(file: str, name: str | None = None, **constants: int) -> Kernel:
    return kernel(load_file(models_folder() / "kernels" / f"{file}.roof"), name or file, constants)


def on_deck(name: str, n: int) -> Prediction:
    return predict(model(name), {"n": n}, load_machine("v100_textbook"))


def value(formula: str, n: int) -> Fraction:
    return Fraction(eval(formula.replace("n", f"Fraction({n})"), {"Fraction": Fraction}))


# ---- the deck ----


@pytest.mark.parametrize("name", ["v100_deck", "v100_textbook"])
def test_the_decks_machine(name: str) -> None:
    deck, seeds = load_machine(name), DECK["machine"]
    assert deck.main_memory.bandwidth_bytes_per_s == seeds["beta_GBs"] * 10**9
    assert deck.peak("f64").per_s == seeds["peak_f64_fma_GFLOPs"] * 10**9
    assert deck.rate("f64", "unfused").per_s == seeds["peak_f64_nofma_GFLOPs"] * 10**9


@pytest.mark.parametrize("n", [1, 1000, BIG])
def test_vector_add(n: int) -> None:
    p, row = on_deck("vector_add", n), ROWS["vector"]
    assert p.work == value(row["W"], n)
    assert p.memory.bytes == value(row["Q"], n)
    assert p.intensity == Fraction(row["I"])
    assert p.rate_per_s == Fraction(str(row["P_GFLOPs"])) * 10**9
    assert (p.peak_per_s, p.bound) == (35 * 10**11, "HBM")


@pytest.mark.parametrize("n", [1, 100, 4096])
def test_gemv(n: int) -> None:
    p, row = on_deck("gemv", n), ROWS["GEMV"]
    assert (p.work, p.memory.bytes) == (value(row["W"], n), value(row["Q"], n))
    assert p.rate_per_s == 225 * 10**9 * Fraction(n, n + 2)  # 225 as n grows


def test_gemv_tends_to_a_quarter() -> None:
    p, row = on_deck("gemv", BIG), ROWS["GEMV"]
    assert p.intensity is not None
    assert abs(p.intensity - Fraction(row["I_limit"])) < Fraction(1, BIG)
    assert float(p.rate_per_s) == pytest.approx(row["P_GFLOPs"] * 1e9, rel=1e-5)


@pytest.mark.parametrize(("name", "key", "peak"), [("matmul", "matmul", 7000), ("minplus", "semiring", 3500)])
@pytest.mark.parametrize("n", [1, 24, 46, 47, 93, 94, 1024])
def test_products(name: str, key: str, peak: int, n: int) -> None:
    p, row = on_deck(name, n), ROWS[key]
    assert (p.work, p.memory.bytes) == (value(row["W"], n), value(row["Q"], n))
    assert p.intensity == value(row["I"], n) == Fraction(n, 12)
    assert row["P_GFLOPs"] == f"min(75*n, {peak})"
    assert p.rate_per_s == min(75 * n, peak) * 10**9


@pytest.mark.parametrize("name", ["gemv", "matmul", "minplus"])
def test_the_l2_of_the_deck_changes_nothing_where_all_fits(name: str) -> None:
    deck = predict(model(name), {"n": 256}, load_machine("v100_deck"))
    assert deck.memory.bytes == on_deck(name, 256).memory.bytes


def test_the_readmes_prediction() -> None:
    p = predict(model("gemv"), {"n": 4096}, load_machine("v100_deck"))
    assert p.memory.bytes == 134283264
    assert float(p.rate_per_s) == pytest.approx(224.89e9, rel=1e-5)
    assert p.bound == "HBM"


def test_a_cache_of_three_elements() -> None:
    moved = [traffic_at(model("matmul_orders", "matmul_kij"), {"n": n}, 24, None, "once").bytes for n in (8, 32)]
    assert moved == [16 * n**3 + 8 * n**2 for n in (8, 32)]  # B and C stream: I -> 2 n^3 / 16 n^3
    assert ROWS["matmul Z"]["I"] == "1/8"


@pytest.mark.parametrize(("n", "b"), [(32, 8), (48, 12)])
def test_blocked_product(n: int, b: int) -> None:
    row, blocked = ROWS["blocked Z"], model("matmul_blocked")
    room = 24 * b**2 + 4 * 8  # a few more lines
    moved = traffic_at(blocked, {"n": n, "b": b}, room, None, "once").bytes
    tiles = (n // b) ** 3
    assert work_at(blocked, {"n": n, "b": b}).total == tiles * 2 * b**3
    assert row["W_per_tile"] == "2*b**3"
    assert 2 * n**3 / moved == pytest.approx(b / 12, rel=0.01)
    assert row["I_of_Z"] == "sqrt(Z)/(24*sqrt(6))"
    assert b / 12 == pytest.approx(sqrt(24 * b**2) / (24 * sqrt(6)))


def test_the_cache_that_makes_the_blocked_product_compute_bound() -> None:
    assert ROWS["cache"]["Z"] == "3456*B**2"
    balance, b = 1, 12
    z = 3456 * balance**2
    assert z == 24 * b**2
    m = machine("peak f64 fma 1 TFLOP/s", f"cache L {z + 32 * b} B, 9 TB/s")
    p = predict(model("matmul_blocked"), {"n": 48, "b": b}, m)
    assert set(p.bounds) == {"compute", "HBM"}
    small = machine("peak f64 fma 1 TFLOP/s", "cache L 2 KiB, 9 TB/s")
    smaller = predict(model("matmul_blocked"), {"n": 48, "b": 8}, small)
    assert smaller.bounds == ("HBM",)


def test_communication_paths() -> None:
    node, paths = load_machine("summit"), DECK["communication_paths"]
    gpus = [f"HBM{i}" for i in range(6)]
    for key, to in (
        ("one_gpu_local", gpus[:1]),
        ("three_gpus_local", gpus[:3]),
        ("three_gpus_remote", gpus[3:]),
        ("six_gpus_from_one_socket_DRAM", gpus),
    ):
        assert stream_rate(node, ["DRAM0"], to).bytes_per_s == paths[key] * 10**9


# ---- the guide ----


def guide(name: str, file: str, n: int) -> Prediction:
    return predict(model(file, name), {"n": n}, load_machine("h100_guide"), Options(unit="tensor_sparse"))


def test_the_guides_machine() -> None:
    m, seeds = load_machine("h100_guide"), GUIDE["machine"]
    assert m.rate("bf16", "tensor_sparse").per_s == seeds["bf16_TFLOPs"] * 10**12
    assert m.rate("tf32", "tensor_sparse").per_s == seeds["tf32_TFLOPs"] * 10**12
    assert m.rate("bf16", "tensor").per_s == 989 * 10**12
    assert m.rate("tf32", "tensor").per_s == 4947 * 10**11
    assert m.main_memory.bandwidth_bytes_per_s == Fraction(str(seeds["HBM_TBs"])) * 10**12
    assert float(m.rate("bf16", "tensor_sparse").per_s / m.main_memory.bandwidth_bytes_per_s) == pytest.approx(
        seeds["ridge_bf16"], abs=0.05
    )
    assert stream_rate(m, ["HBM"], ["peer_HBM"]).bytes_per_s == seeds["NVLink_GBs"] * 10**9


@pytest.mark.parametrize("n", [1, 1000, GUIDE["dot"]["N"]])
def test_dot(n: int) -> None:
    p = guide("dot_bf16", "dot", n)
    assert (p.work, p.memory.bytes) == (2 * n - 1, 4 * n + 2)
    assert p.intensity == Fraction(2 * n - 1, 4 * n + 2)


def test_dots_times() -> None:
    p, seeds = guide("dot_bf16", "dot", GUIDE["dot"]["N"]), GUIDE["dot"]
    assert float(p.compute_s) == pytest.approx(seeds["T_math_s"], rel=1e-3)
    assert float(p.memory.time_s) == pytest.approx(seeds["T_comms_s"], rel=2e-3)
    assert round(p.memory.time_s / p.compute_s) == seeds["ratio"]
    assert p.bound_s == p.memory.time_s
    assert p.no_overlap_s == p.memory.time_s + p.compute_s
    assert float(p.intensity or 0) == pytest.approx(seeds["I_limit"], rel=1e-5)


@pytest.mark.parametrize(("name", "work_done"), [("dot", 2 * 777), ("dot_first", 2 * 777 - 1)])
def test_dots_closed_forms(name: str, work_done: int) -> None:
    assert work_at(model("dot", name), {"n": 777}).total == work_done
    for convention in ("once", "load_store"):
        assert traffic_at(model("dot", name), {"n": 777}, None, None, convention).bytes == 4 * 777 + 2


def test_the_guides_product() -> None:
    seeds = GUIDE["matmul"]
    p = guide("matmul_bf16", "matmul_half", seeds["N"])
    assert p.intensity == Fraction(seeds["N"], 3)
    assert float(p.intensity) == pytest.approx(seeds["I_at_N"], abs=0.005)
    assert float(p.rate_per_s) == pytest.approx(seeds["P_TFLOPs"] * 1e12, rel=1e-3)
    assert float(p.compute_s) == pytest.approx(seeds["T_math_s"], rel=1e-3)
    assert float(p.memory.time_s) == pytest.approx(seeds["T_comms_s"], rel=1e-3)
    assert float(p.memory.time_s / p.compute_s) == pytest.approx(seeds["ratio"], abs=0.05)


def test_the_guides_product_is_compute_bound_from() -> None:
    first = GUIDE["matmul"]["compute_bound_from_N"]
    assert guide("matmul_bf16", "matmul_half", first - 1).bounds[0] == "HBM"
    assert guide("matmul_bf16", "matmul_half", first).bounds[0] == "compute"


# ---- the time-based paper ----


def test_the_time_papers_machine() -> None:
    m, seeds = load_machine("v100_time_paper"), TIME["machine"]
    assert m.launch_s == Fraction(str(seeds["launch_overhead_us"])) / 10**6
    assert m.main_memory.bandwidth_bytes_per_s == Fraction(str(seeds["HBM_GBs"])) * 10**9
    for key, type_name, cls in (("f32", "f32", "fma"), ("f16", "f16", "fma"), ("tensor", "f16", "tensor")):
        assert m.rate(type_name, cls).per_s == Fraction(str(seeds[f"{key}_TFLOPs"])) * 10**12
    assert float(m.rate("f16", "tensor").per_s) == pytest.approx(eval(seeds["tensor_formula"]), rel=1e-6)
    balance = m.rate("f16", "tensor").per_s / m.main_memory.bandwidth_bytes_per_s
    assert float(balance) == pytest.approx(seeds["machine_balance"], abs=0.005)
    assert m.clock_hz == 1312 * 10**6


def convolution(stride: int = 2, **sizes: int) -> tuple[int, int]:
    """W and the compulsory elements."""
    conv = model("conv2d", None, s=stride)
    return work_at(conv, sizes).total, footprint_at(conv, sizes) // 2


def test_the_default_convolution() -> None:
    seeds = TIME["conv2d_default"]
    total, elements = convolution()
    assert total == seeds["W_flop"]
    touched, out, channels = seeds["inputs_touched_per_side"], seeds["out"], seeds["C"]
    assert elements == seeds["batch"] * (touched**2 + out**2) * channels + seeds["K"] ** 2 * channels * seeds["C_out"]


def test_strides_of_the_convolution() -> None:
    (work_1, elements_1), (work_3, elements_3) = convolution(1), convolution(3)
    assert work_1 / work_3 == pytest.approx(8.8, abs=0.05)
    assert elements_1 == pytest.approx(TIME["conv2d_stride_elements"]["stride_1"], rel=5e-4)
    assert elements_3 == pytest.approx(TIME["conv2d_stride_elements"]["stride_3"], rel=5e-4)


def test_traits_of_the_convolution() -> None:
    sweeps = TIME["conv2d_sweeps"]
    batches = [w / e for w, e in (convolution(batch=n) for n in sweeps["batch"])]
    assert max(batches) / min(batches) < 1.002
    for key, name in (("C_out", "f"), ("kernel", "r")):
        intensities = [w / e for w, e in (convolution(**{name: n}) for n in sweeps[key])]
        assert intensities == sorted(intensities)
        assert len(set(intensities)) == len(intensities)


def test_launch_overheads() -> None:
    m = load_machine("v100_time_paper")
    for framework, launches in TIME["lstm_launches_forward"].items():
        p = predict_counts("lstm", {}, work("f16", pairs=1), 1, m, launches=launches)
        assert float(p.launch_s) * 1e6 == pytest.approx(TIME["lstm_overhead_us"][framework])
        assert p.bound == "launch"


def test_break_even_of_launches() -> None:
    m, seeds = load_machine("v100_time_paper"), TIME["lstm_break_even_GFLOP"]
    assert m.launch_s is not None
    for launches, giga in ((1, seeds["one_launch"]), (36, seeds["launches_36"])):
        even = launches * m.launch_s * m.rate("f16", "tensor").per_s
        assert float(even) / 1e9 == pytest.approx(giga, rel=5e-4)
        p = predict_counts("k", {}, work("f16", pairs=int(even) // 2), 1, m, unit="tensor", launches=launches)
        assert set(p.bounds) == {"compute", "launch"}


def test_measured_times_of_the_paper() -> None:
    m = load_machine("v100_time_paper")
    peak, beta = float(m.rate("f16", "tensor").per_s), float(m.main_memory.bandwidth_bytes_per_s)
    below = measured_times(1e9, 1e9, 1e-2, peak, beta)
    assert (below.bandwidth_s, below.compute_s) == pytest.approx((1e-2, 1e-2 / (peak / beta)))
    above = measured_times(1e12, 1e9, 1e-1, peak, beta)
    assert (above.compute_s, above.bandwidth_s) == pytest.approx((1e-1, 1e-1 * (peak / beta) / 1e3))


# ---- the hierarchical paper and the GPP deck ----


def test_the_hierarchical_papers_machine() -> None:
    m, seeds = load_machine("v100_hierarchical"), HIERARCHICAL["machine"]
    for key, type_name, cls in (
        ("f32_fma", "f32", "fma"),
        ("f32_nofma", "f32", "unfused"),
        ("f16_fma", "f16", "fma"),
        ("f16_nofma", "f16", "unfused"),
        ("tensor", "f16", "tensor"),
    ):
        stated = m.stated(type_name, cls)
        assert stated is not None
        assert stated.rate_per_s == Fraction(str(seeds[f"{key}_TFLOPs"])) * 10**12
    gpp = SEEDS["gpp_and_conv2d_deck"]["ceilings_GFLOPs"]
    assert m.rate("f64", "fma").per_s == Fraction(str(gpp["fma"])) * 10**9
    assert m.rate("f64", "unfused").per_s == Fraction(str(gpp["nofma"])) * 10**9
    sectors = [c.sector_bytes for c in m.caches]
    assert sectors == [HIERARCHICAL["transaction_bytes"][c.name] for c in m.caches]
    assert m.main_memory.line_bytes == 64  # what the strides of GPP show


def test_the_mix_of_fused_pairs() -> None:
    seeds = HIERARCHICAL["fma_mix"]
    counts = work(pairs=6, mul=4)
    assert counts.fma_fraction == seeds["alpha_GPP_nw6"]
    p = predict_counts("gpp", {}, counts, 0, load_machine("v100_textbook"))
    assert p.peak_per_s == Fraction(str(seeds["beta_GPP_nw6"])) * 7 * 10**12


# ---- errata ----


def test_the_errata_page_has_every_erratum() -> None:
    page = (ROOT / "docs/errata.md").read_text()
    for erratum in SEEDS["errata"]:
        row = next((line for line in page.splitlines() if erratum["printed"] in line), "")
        assert row.startswith("|"), erratum["printed"]
        for key in ("correct", "why"):
            assert erratum[key] in row, erratum[key]
