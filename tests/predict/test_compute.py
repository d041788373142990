"""Compute time: docs/rules.md, rules 5 and 12 to 14."""

from fractions import Fraction

import pytest

from roofdsl.counts.work_at import work_at
from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped
from roofdsl.machine.model import ComputeCeiling
from roofdsl.page.time_function import rates_of
from roofdsl.predict.compute import compute_time
from roofdsl.predict.contraction import check_unit
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches
from roofdsl.sol.answer import speed_of_light
from tests.predict.machines import kernel_of, machine, work

V100 = load_machine("v100_textbook")


def effective_peak(counts: WorkAt) -> Fraction:
    return counts.total / compute_time(counts, V100).time_s


def test_sixty_percent_fused_is_eighty_percent_of_peak() -> None:
    assert effective_peak(work(pairs=6, add=4)) / (7 * 10**12) == Fraction(8, 10)


@pytest.mark.parametrize("pairs", range(11))
def test_the_ceiling_of_a_mixture_is_that_of_rule_5(pairs: int) -> None:
    alpha = Fraction(pairs, 10)
    expected = (2 * alpha + 1 - alpha) / 2 * 7 * 10**12
    assert effective_peak(work(pairs=pairs, mul=10 - pairs)) == expected


def test_min_plus_reaches_half_the_fused_peak() -> None:
    assert effective_peak(work(add=1000, min=1000)) == 35 * 10**11


def test_classes_and_types_share_the_pipes() -> None:
    m = machine("peak f64 fma 8 TFLOP/s", "peak f32 fma 16 TFLOP/s")
    both = WorkAt({("f64", "add"): 400, ("f32", "div"): 100}, {})
    found = compute_time(both, m)
    assert found.time_s == Fraction(400, 4 * 10**12) + Fraction(100, 10**12)
    assert found.type == "f64"  # 100 ps each: the first of equals
    assert [(p.type, p.cls, p.operations) for p in found.parts] == [("f64", "add", 400), ("f32", "div", 100)]
    assert any("div at 1/8" in note for note in found.assumptions)


def test_an_adder_and_a_multiplier_work_at_the_same_time() -> None:
    opteron = load_machine("opteron_2356")
    for adds, muls, gflops in ((10, 10, 73.6), (10, 0, 36.8), (0, 10, 36.8), (10, 5, 55.2)):
        counts = work(add=adds, mul=muls)
        assert counts.total / compute_time(counts, opteron).time_s == Fraction(str(gflops)) * 10**9
    assert compute_time(work(pairs=10), opteron).time_s == compute_time(work(add=10, mul=10), opteron).time_s


@pytest.mark.parametrize("peaks", [("peak f64 fma 8 TFLOP/s",), ("peak f64 8 TFLOP/s",)])
def test_separate_pipes_have_half_the_peak_each_however_it_is_stated(peaks: tuple[str, ...]) -> None:
    m = machine(*peaks, "pipes separate add mul")
    assert compute_time(work(add=8), m).time_s == Fraction(8, 4 * 10**12)
    assert compute_time(work(pairs=8), m).time_s == Fraction(8, 4 * 10**12)


def test_a_divider_apart_is_a_third_pipe() -> None:
    rates = ("peak f64 fma 8 TFLOP/s", "peak f64 div 1 TFLOP/s", "cost special 4")
    two, three = (machine(*rates, f"pipes separate {kinds}") for kinds in ("add mul", "add mul div"))
    assert not two.divider_separate and three.divider_separate
    for counts, busy in (
        (work(add=8, mul=16, div=3), {"add": 2, "mul": 4, "div": 3}),  # in units of 1 / (10**12 per s)
        (work(add=40, mul=16, div=3), {"add": 10, "mul": 4, "div": 3}),
        (work(mul=4, div=9, min=4), {"add": 1, "mul": 1, "div": 9}),
        (work(mul=4, special=4), {"add": 0, "mul": 1, "div": 4}),
    ):
        together = {"add": busy["add"], "mul": busy["mul"] + busy["div"]}
        assert compute_time(counts, two).time_s == Fraction(max(together.values()), 10**12)
        assert compute_time(counts, three).time_s == Fraction(max(busy.values()), 10**12)
        keys = frozenset(counts.operations)
        for m in (two, three):  # the page computes the same from counts
            of = rates_of(m, keys, None).compute
            assert of is not None
            at = {" ".join(key): n for key, n in counts.operations.items()}
            assert of.at(at) == compute_time(counts, m).time_s


@pytest.mark.parametrize("kinds", ["add mul", "add mul div"])
def test_a_cost_of_the_file_takes_precedence_over_a_peak_on_a_pipe_too(kinds: str) -> None:
    """4 unfused operations of a pipe with half of 8 GFLOP/s take 1 ns, whether or not the machine states a peak."""
    for peaks in (("peak f64 8 GFLOP/s",), ("peak f64 8 GFLOP/s", "peak f64 div 5 GFLOP/s", "peak f64 exp 7 GFLOP/s")):
        m = machine(*peaks, f"pipes separate {kinds}")
        for counts, cost in (
            (work(div=10), "div"),
            (WorkAt({("f64", "special"): 10}, {}, functions={("f64", "exp"): 10}), "exp"),
        ):
            found = compute_time(counts, m, costs={cost: Fraction(4)})
            assert found.time_s == Fraction(10, 10**9)
            assert any(note.endswith("cost 4") for note in found.assumptions)


def test_a_named_ceiling_caps_its_type_only() -> None:
    ceiling = ComputeCeiling("slow", "f64", Fraction(10**12))
    plain, capped = (compute_time(work(pairs=50), V100, ceilings=c).time_s for c in ((), (ceiling,)))
    assert (plain, capped) == (Fraction(100, 7 * 10**12), Fraction(100, 10**12))
    other = ComputeCeiling("slow", "f32", Fraction(10**12))
    assert compute_time(work(pairs=50), V100, ceilings=(other,)).time_s == plain


def test_matrix_units_take_all_operations_of_a_contraction() -> None:
    guide = load_machine("h100_guide")
    counts = WorkAt({("bf16", "mul"): 1048576, ("bf16", "add"): 1048575}, {"bf16": 1048575})
    found = compute_time(counts, guide, unit="tensor_sparse")
    assert float(found.time_s) == pytest.approx(2097151 / 1979e12)
    assert found.peak_per_s == 1979 * 10**12
    with pytest.raises(CommandError, match="matrix units, but none for others"):
        compute_time(counts, guide)


def test_pairs_in_8_bits_run_on_matrix_units_in_any_kernel() -> None:
    """FlashAttention in 8 bits: only its scores S are sums of products in f8. The rest is that of the f16 version."""
    sizes = {"n": 512, "dh": 64, "bq": 64, "bk": 64}
    h100 = load_machine("h100_sxm")
    checked = load_file(shipped("kernels")["flash_attention"])
    narrow, wide = (
        compute_time(work_at(kernel(checked, name), sizes), h100) for name in ("flash_attention_f8", "flash_attention")
    )
    scores = 2 * 512**2 * 64
    assert sum(p.operations for p in narrow.parts if p.type == "f8") == scores
    assert float(narrow.time_s) == pytest.approx(float(wide.time_s) - scores / 133.8e12 + scores / 1978.9e12, rel=1e-9)
    assert "f8: sums of products on tensor units" in narrow.assumptions


def test_other_operations_in_8_bits_have_the_rates_of_f32() -> None:
    h100 = load_machine("h100_sxm")
    found = compute_time(WorkAt({("f8", "add"): 3, ("f8", "mul"): 2}, {"f8": 1}), h100)
    assert float(found.time_s) == pytest.approx(2 / 1978.9e12 + 3 / (66.9e12 / 2))
    with pytest.raises(CommandError, match="no peak for f8"):
        compute_time(WorkAt({("f8", "add"): 1}, {}), load_machine("v100"))


@pytest.mark.parametrize("pipes", [(), ("pipes separate add mul",), ("pipes separate add mul div",)])
def test_functions_in_8_bits_have_the_peaks_of_f32(pipes: tuple[str, ...]) -> None:
    own = machine("peak f32 fma 10 TFLOP/s", "peak f32 exp 1 TFLOP/s", "peak f8 tensor 100 TFLOP/s", *pipes)
    narrow, wide = (
        compute_time(WorkAt({(t, "special"): 20, (t, "add"): 30}, {}, functions={(t, "exp"): 10}), own)
        for t in ("f8", "f32")
    )
    assert narrow.time_s == wide.time_s
    assert pipes or wide.time_s == Fraction(10, 10**12) + Fraction(10 * 8 + 30, 5 * 10**12)


PRODUCT = """
kernel product(n):
    in A, B: f16[n, n]
    out C: f16[n, n]
    temp s: f32
    for i in range(n), j in range(n):
        s = 0
        for k in range(n):
            s += A[i, k] * B[k, j]
        C[i, j] = s
"""
LAYER = PRODUCT.replace("product", "layer").replace("C[i, j] = s", "C[i, j] = max(s, 0)")
TWO = f"""{PRODUCT}
kernel rest(n):
    inout C: f16[n, n]
    temp s: f32
    for i in range(n), j in range(n):
        s = C[i, j]
        C[i, j] = max(s, 0)

program layer(n):
"""


def test_matrix_units_are_for_contractions() -> None:
    check_unit(None, kernel_of(LAYER))
    check_unit("tensor", kernel_of(PRODUCT))
    add = kernel_of("kernel k(n):\n    inout C: f64[n]\n    for i in range(n):\n        C[i] += 1.0\n")
    with pytest.raises(CommandError, match="k is not a contraction") as refused:
        check_unit("tensor", add)
    assert refused.value.help.startswith("matrix units compute sums of products")


@pytest.mark.parametrize("name", ["v100", "h100_80", "mi300x"])
def test_a_product_with_more_around_it_is_two_kernels_of_a_program(name: str) -> None:
    """What the help says to write has a time on the unit, that of the product alone, and `sol` takes the kernel."""
    with pytest.raises(CommandError, match="layer is not a contraction") as refused:
        check_unit("tensor", kernel_of(LAYER))
    runs = [part for part in refused.value.help.split("`") if part.startswith("run ")]
    given, options = load_machine(name), Options(unit="tensor")
    text = TWO + "".join(f"    {run}\n" for run in runs)
    checked = load_file(Source("two.roof", text))
    product, rest = predict_launches(checked, "layer", {"n": 4096}, given, options).parts
    alone = predict(kernel_of(PRODUCT), {"n": 4096}, given, options)
    assert (product.unit, rest.unit) == ("tensor", None)
    rate = given.stated("f16", "tensor")
    assert rate is not None and product.compute_s == 2 * 4096**3 / rate.rate_per_s
    assert product.bound_s == alone.bound_s
    light = speed_of_light(kernel_of(LAYER), {"n": 4096}, given, None)
    assert any("on tensor units" in t.formula for t in light.floor.terms)


def test_no_work_takes_no_time() -> None:
    found = compute_time(WorkAt({}, {}), V100)
    assert (found.time_s, found.type, found.peak_per_s) == (0, None, None)
