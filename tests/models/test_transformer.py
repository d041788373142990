"""The transformer's models against what is published of Llama 3, and its attention against formulas and simulation."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.derive import derive
from roofdsl.counts.fixed import FixedForms
from roofdsl.counts.traffic_at import footprint_at, traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import load_file
from roofdsl.loops.program_model import Launch, program
from roofdsl.machine.find import load_machine, shipped
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_launches, predict_program
from roofdsl.predict.threshold import Question, program_bounds
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.models.shipped import model
from tests.oracle.lru import traffic

H100 = load_machine("h100_sxm")

# Sizes as in the models' config.json; parameters as safetensors' index counts them (8.03 and 70.6 billion).
LLAMA: dict[str, dict[str, int]] = {
    "llama3_8b": {"layers": 32, "d": 4096, "heads": 32, "kv": 8, "ffn": 14336, "parameters": 8_030_261_248},
    "llama3_70b": {"layers": 80, "d": 8192, "heads": 64, "kv": 8, "ffn": 28672, "parameters": 70_553_706_496},
}
WORDS, DH = 128256, 128


@cache
def launches(name: str, **sizes: int) -> list[tuple[Launch, dict[str, int], int]]:
    """(launch, its kernel's parameters, how often) of a program of llama.roof."""
    lowered = program(load_file(shipped("kernels")["llama"]), name, sizes)
    values = {p.name: sizes.get(p.name, p.default or 0) for p in lowered.parameters}
    return [
        (run, {n: e.evaluate(values) for n, e in run.arguments}, run.times.evaluate(values)) for run in lowered.launches
    ]


def predicted(name: str, **sizes: int) -> Prediction:
    return predict_program(load_file(shipped("kernels")["llama"]), name, sizes, H100, Options(unit="tensor"))


def weights(name: str, **sizes: int) -> int:
    """Elements of weights that the launches read: matrices of `linear`, scales of `rms_norm`."""
    total = 0
    for run, values, times in launches(name, **sizes):
        if run.kernel.name.startswith("linear"):
            total += times * values["inputs"] * values["outputs"]
        elif run.kernel.name == "rms_norm":
            total += times * values["d"]
    return total


@pytest.mark.parametrize("name", LLAMA)
def test_parameters_are_those_published(name: str) -> None:
    """All but the table of embeddings, of which a step reads one row for each token."""
    c = LLAMA[name]
    assert weights(f"{name}_decode") + WORDS * c["d"] == c["parameters"]
    matrices = c["layers"] * (c["d"] * (2 * c["heads"] + 2 * c["kv"]) * DH + 3 * c["d"] * c["ffn"])
    assert weights(f"{name}_decode") == matrices + (2 * c["layers"] + 1) * c["d"] + WORDS * c["d"]


@pytest.mark.parametrize("name", LLAMA)
def test_products_of_a_decoding_step_are_two_for_each_parameter_and_token(name: str) -> None:
    """W = 2 parameters tokens for projections, 4 d tokens context for attention; all else is below 1 %."""
    c, batch, context = LLAMA[name], 3, 500
    products = {"linear": 0, "attention_products": 0}
    others = 0
    for run, values, times in launches(f"{name}_decode", batch=batch, context=context):
        done = times * work_at(run.kernel, values).total
        if run.kernel.name in products:
            products[run.kernel.name] += done
        else:
            others += done
    norms = (2 * c["layers"] + 1) * c["d"]
    assert products["linear"] == 2 * batch * (c["parameters"] - WORDS * c["d"] - norms)
    assert products["attention_products"] == 4 * batch * c["layers"] * c["d"] * context
    assert 0 < others < sum(products.values()) / 100


@pytest.mark.parametrize("name", LLAMA)
def test_a_prefill_multiplies_every_token_and_every_pair(name: str) -> None:
    c, batch, new = LLAMA[name], 2, 300
    in_layers = attention = 0
    for run, values, times in launches(f"{name}_prefill", batch=batch, new=new):
        if run.kernel.name == "linear" and values["outputs"] != WORDS:
            in_layers += times * work_at(run.kernel, values).total
        if run.kernel.name == "attention_products":
            attention += times * work_at(run.kernel, values).total
    matrices = c["layers"] * (c["d"] * (2 * c["heads"] + 2 * c["kv"]) * DH + 3 * c["d"] * c["ffn"])
    assert in_layers == 2 * batch * new * matrices
    pairs = new * (new + 1) // 2  # causal: each token sees those before it and itself
    assert attention == 4 * batch * c["layers"] * c["d"] * pairs


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "bytes_each"), [("decode", 2), ("decode_f8", 1)])
@pytest.mark.parametrize("size", LLAMA)
def test_the_cache_of_keys_and_values(size: str, name: str, bytes_each: int) -> None:
    """2 layers kv dh numbers a token; in 8 bits 160 KiB for the larger model (How to Scale Your Model, part 8)."""
    c, batch, context = LLAMA[size], 2, 100
    read = written = 0
    for run, values, times in launches(f"{size}_{name}", batch=batch, context=context):
        if run.kernel.name.startswith("attention_products"):
            found = derive(run.kernel, values, plateaus=False).by_array
            read += times * int(found["K"].value or 0) + times * int(found["V"].value or 0)
        if run.kernel.name.startswith("store_cache"):
            written += times * int(derive(run.kernel, values, plateaus=False).by_array["K"].value or 0)
    each = 2 * c["layers"] * c["kv"] * DH * bytes_each
    assert read == batch * context * each
    assert written == batch * each
    if size == "llama3_70b" and bytes_each == 1:
        assert each == 160 * 1024


@pytest.mark.thorough
def test_a_decoding_step_reads_all_weights_and_little_else() -> None:
    """The course's bound: bytes of parameters over bandwidth, 4.5 ms for 15 GB; 8 bits halve it but for the last."""
    step = predicted("llama3_8b_decode", context=2048)
    parameters = 2 * weights("llama3_8b_decode")
    cache_read = 2048 * 2 * 32 * 8 * DH * 2
    rest = step.memory.bytes - parameters - cache_read
    assert 0 < rest < parameters / 1000
    assert step.bound == "HBM"
    assert float(step.bound_s) == pytest.approx((parameters + cache_read) / 3.35e12, rel=2e-3)
    half = predicted("llama3_8b_decode_f8", context=2048)
    words = 2 * WORDS * 4096
    assert half.memory.bytes == pytest.approx((step.memory.bytes + words) / 2, rel=5e-3)


@pytest.mark.thorough
def test_a_long_prefill_is_bound_by_compute() -> None:
    step = predicted("llama3_8b_prefill", new=8192)
    assert step.bound == "compute"
    assert 0.8 < float(step.rate_per_s) / 989.4e12 < 1


@pytest.mark.thorough
def test_eight_devices_share_the_products_of_a_layer() -> None:
    """An eighth of the heads and of the MLP's width each: an eighth of the products, and of weights and cache."""
    file = load_file(shipped("kernels")["transformer"])
    whole = {"batch": 4, "context": 600, "d": 8192, "kv": 8, "group": 8, "ffn": 28672}
    rows = {}
    for name, sizes in (("whole", whole), ("part", {**whole, "kv": 1, "ffn": 28672 // 8})):
        found = predict_launches(file, "layer_decode", sizes, H100, Options(unit="tensor"))
        rows[name] = {row.total.kernel: row.total for row in found.by_kernel}
    for kernel in ("linear", "attention_products", "swiglu", "rotary"):
        assert rows["whole"][kernel].work == 8 * rows["part"][kernel].work
    assert rows["whole"]["attention_products"].memory.bytes == 8 * rows["part"]["attention_products"].memory.bytes
    assert rows["whole"]["residual"] == rows["part"]["residual"]


@pytest.mark.thorough
def test_no_batch_makes_a_long_context_bound_by_compute() -> None:
    """b >= 2 P / ((2 P + w) / B - c): the last context at which there is such a b, by the exact search."""
    file = load_file(shipped("kernels")["transformer"])
    found = {}
    for context in (288, 289):
        question = Question("batch", Options(unit="tensor"), terms=("compute", "HBM"))
        whole, _ = program_bounds(file, "layer_decode", {"context": context}, H100, question)
        found[context] = whole.intervals[-1].names
    assert found == {288: ("compute",), 289: ("HBM",)}


# ---- attention ----

CASES = [
    {"batch": 2, "new": 3, "context": 5, "kv": 2, "group": 2, "dh": 4},
    {"batch": 1, "new": 4, "context": 4, "kv": 1, "group": 3, "dh": 2},
    {"batch": 3, "new": 1, "context": 7, "kv": 2, "group": 1, "dh": 3},
]


@pytest.mark.spread(1)
@pytest.mark.parametrize("sizes", CASES)
def test_fused_and_naive_attention_do_the_same_products(sizes: dict[str, int]) -> None:
    naive = [work_at(model(f"attention_{n}"), sizes).total for n in ("scores", "values")]
    assert work_at(model("attention_products"), sizes).total == sum(naive)
    assert is_contraction(model("attention_products"))
    moved = traffic_at(model("attention_products"), sizes, None, None, "load_store").bytes
    queries = 2 * sizes["batch"] * sizes["new"] * sizes["kv"] * sizes["group"] * sizes["dh"]
    keys = 2 * sizes["batch"] * sizes["context"] * sizes["kv"] * sizes["dh"]
    assert moved == 2 * queries + 2 * keys  # Q and O, K and V: no scores
    softmax = {n: v for n, v in sizes.items() if n != "dh"}
    assert traffic_at(model("attention_exponentials"), softmax, None, None, "load_store").bytes == 0


@pytest.mark.parametrize("sizes", CASES)
def test_exponentials_are_those_of_the_naive_softmax_but_for_the_last_pass(sizes: dict[str, int]) -> None:
    """The division is of the result, dh numbers a row, instead of the scores: one multiplication a score less."""
    softmax = {n: v for n, v in sizes.items() if n != "dh"}
    naive, fused = (work_at(model(f"attention_{n}"), softmax) for n in ("softmax", "exponentials"))
    rows = sizes["batch"] * sizes["kv"] * sizes["group"]
    scores = rows * sum(sizes["context"] - sizes["new"] + t + 1 for t in range(sizes["new"]))
    assert naive.operations["f32", "special"] == fused.operations["f32", "special"]
    assert fused.operations["f32", "add"] == naive.operations["f32", "add"] == 2 * scores
    assert naive.total - fused.total == scores


def test_decoding_attention_is_bound_by_memory_at_every_batch() -> None:
    """Intensity `group` in bf16, far below the balance: 4 dh operations a score, 4 dh / group bytes of K and V."""
    for batch in (1, 512):
        sizes = {"batch": batch, "new": 1, "context": 8192, "kv": 8, "group": 4, "dh": 128}
        kernel = model("attention_products")
        assert Fraction(work_at(kernel, sizes).total, footprint_at(kernel, sizes)) == pytest.approx(4, rel=2e-2)


TILES = [
    {"n": 16, "dh": 4, "bq": 4, "bk": 4},
    {"n": 24, "dh": 2, "bq": 8, "bk": 4},
    {"n": 12, "dh": 3, "bq": 6, "bk": 2},
]


@pytest.mark.spread(2)
@pytest.mark.parametrize("sizes", TILES)
@pytest.mark.parametrize("name", ["flash_attention", "flash_attention_f8", "flash_attention_causal"])
def test_flash_attentions_simulated_traffic_is_that_of_an_lru_list(name: str, sizes: dict[str, int]) -> None:
    kernel = model(name)
    for cache_bytes in (90, 200, 330):
        expected = traffic(kernel, sizes, cache_bytes, None, "load_store")
        simulated = simulate_lru(kernel, sizes, cache_bytes)
        assert simulated.bytes("load_store") == expected.bytes


@pytest.mark.thorough
def test_flash_attentions_closed_form_is_the_simulators() -> None:
    """Q(Z) by integer sets, n a symbol, at sizes it was not asked for."""
    kernel, tiles, cache_bytes = model("flash_attention"), {"dh": 4, "bq": 4, "bk": 4}, 300
    form = FixedForms(ClosedForms(kernel, {}), tiles).at_cache(cache_bytes, "load_store").total
    for n in (16, 20, 36):
        simulated = simulate_lru(kernel, {**tiles, "n": n}, cache_bytes)
        assert form.evaluate({**tiles, "n": n}) == simulated.bytes("load_store")


def test_flash_attentions_traffic_falls_with_its_queries() -> None:
    """On the plateau on which tiles fit, 4 n^2 dh / bq in 2 bytes each: a pass over K and V for every bq queries.

    Dao et al., 2022, theorem 2, has n^2 dh^2 / M: tiles that fill M bytes hold M / dh queries.
    """
    n, dh, bk = 128, 8, 4
    found = []
    for bq in (4, 8, 16):
        tiles = 4 * bq * bk + 4 * bq * dh + 8 * bq + 2 * bq * dh + 4 * bk * dh
        sizes = {"n": n, "dh": dh, "bq": bq, "bk": bk}
        found.append(simulate_lru(model("flash_attention"), sizes, 2 * tiles).bytes("load_store"))
        assert found[-1] == pytest.approx(4 * n * n * dh / bq + 4 * n * dh, rel=0.02)
    causal = simulate_lru(model("flash_attention_causal"), {"n": n, "dh": dh, "bq": 4, "bk": 4}, 2 * 400)
    assert causal.bytes("load_store") == pytest.approx(found[0] / 2, rel=0.1)
