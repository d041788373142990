"""Break-even sizes: the worked problems of the course, and the closed forms against predictions on both sides."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.formulas.writing import neat_text, text
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.machine.model import Machine
from roofdsl.predict.break_even import BreakEven, break_even
from roofdsl.predict.collectives import network_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_program
from roofdsl.predict.sharded import predict_sharded, shard
from roofdsl.predict.threshold import Question, program_bounds
from roofdsl.predict.time_forms import kernel_terms, program_terms, summed, terms_of
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.break_even import answer
from tests.predict.machines import kernel_of, machine

TPU = load_machine("tpu_v5e")
TENSOR = Options(unit="tensor")
x, y = Quasi.symbol("x"), Quasi.symbol("y")


def of_kernel(name: str, over: str, on: Machine = TPU, options: Options = TENSOR, **values: int) -> BreakEven:
    checked = load_file(shipped_names("kernels")[name])
    known, (terms,) = kernel_terms(checked, name, on, values, options)
    given = {n: v for n, v in known.items() if v is not None}
    both = (terms.compute_s, terms.memory_bytes * (1 / on.main_memory.bandwidth_bytes_per_s))
    return break_even("HBM", both, over, given)


# ---- the course's problems (How to Scale Your Model, "All About Rooflines" and "How to Think About TPUs") ----


def test_int8_matmul_is_compute_bound_above_240() -> None:
    found = of_kernel("matmul_i8", "B")
    assert found.limit == Fraction(394 * 10**12, 2 * 81 * 10**10)  # 243.2: int8 operations per byte, over two a weight
    assert round(float(found.limit), -1) == 240
    assert of_kernel("matmul_i8", "B", D=10**6, F=10**6).first == 244


def test_int8_weights_with_bf16_arithmetic_are_compute_bound_above_120() -> None:
    found = of_kernel("matmul_i8_weights", "B")
    assert found.limit == Fraction(197 * 10**12, 2 * 81 * 10**10)
    assert round(float(found.limit), -1) == 120
    # the course's third question: small weights almost double the batch
    small, large = (of_kernel("matmul_i8_weights", "B", D=n, F=n).first for n in (1024, 4096))
    assert small is not None and large is not None
    assert 1.6 < small / large < 2


def test_two_chips_that_split_the_contracted_dimension() -> None:
    file = load_file(shipped_names("kernels")["matmul_bdf"])
    s = shard(kernel(file, "matmul_bdf", {}), "D")
    found = predict_sharded(s, {}, TPU, network_of(TPU, 2), TENSOR, over="D").break_evens
    link = next(b for b in found if b.term == "ICI")
    assert link.limit == Fraction(2 * 197 * 10**12, 45 * 10**9)  # 8755.6, whatever B and F are
    assert (link.first, text(link.form) if link.form else "") == (8756, "78800/9")


def test_a_matrix_for_every_row_never_is() -> None:
    assert of_kernel("matmul_i8_each", "B").intervals == ()


def test_a_ragged_product_of_8_bits() -> None:
    """D = 4096, F = 16384: the course's 271 is this with its numbers rounded to two digits on the way."""
    assert of_kernel("matmul_i8", "B", D=4096, F=16384).first == 263
    rounded = break_even(
        "HBM", (x * Fraction(13 * 10**7, 394 * 10**12), (x * 20000 + 67 * 10**6) * Fraction(1, 81 * 10**10)), "x"
    )
    assert rounded.first == 271


def test_h100_and_a_link_to_the_host() -> None:
    """295 tokens on an H100; about 61,000 where weights come over PCIe at 15 GB/s to 920 TFLOP/s."""
    h100 = of_kernel("matmul_bdf", "B", load_machine("h100_sxm"))
    assert h100.limit is not None
    assert int(h100.limit) == 295
    hosted = machine("peak bf16 tensor 920 TFLOP/s", "memory DRAM 512 GB, 15 GB/s")
    found = of_kernel("matmul_bdf", "B", hosted)
    assert found.limit == Fraction(920 * 10**12, 15 * 10**9)
    assert round(float(found.limit), -3) == 61000


def test_the_guides_matmul_crosses_at_1773() -> None:
    guide = load_machine("h100_guide")
    found = of_kernel("matmul_bf16", "n", guide, Options(unit="tensor_sparse"))
    assert found.first == 1773
    assert found.form is not None
    assert found.form.constant() == Fraction(3 * 1979 * 10**12, 335 * 10**10)


# ---- against predictions ----


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("name", "over", "values"),
    [
        ("matmul_i8", "B", {"D": 700, "F": 900}),
        ("matmul_i8", "B", {"D": 400, "F": 900}),
        ("matmul_i8_weights", "D", {"B": 300, "F": 500}),
        ("matmul_bf16", "n", {}),
    ],
)
def test_predictions_change_where_the_form_says(name: str, over: str, values: dict[str, int]) -> None:
    found = of_kernel(name, over, **values)
    own = kernel(load_file(shipped_names("kernels")[name]), name, {})
    sizes = [1, 7, 10**6] if found.first is None else [found.first - 1, found.first, found.first + 1, 9 * found.first]
    for size in sizes:
        p = predict(own, {**values, over: size}, TPU, TENSOR)
        assert (p.compute_s >= p.memory.time_s) == (found.first is not None and size >= found.first)


@pytest.mark.thorough
def test_terms_are_the_predictions() -> None:
    """Compute seconds and bytes, with mixed classes and types, at sizes of no special form."""
    h100 = load_machine("h100_sxm")
    for name in ("attention_exponentials", "rms_norm", "swiglu", "linear_f8"):
        own = kernel(load_file(shipped_names("kernels")[name]), name, {})
        sizes = {p.name: 3 + k for k, p in enumerate(own.parameters)}  # new before context
        options = Options(unit="tensor") if name == "linear_f8" else Options()
        terms, p = terms_of(own, h100, options), predict(own, sizes, h100, options)
        assert terms.compute_s.evaluate(sizes) == p.compute_s
        assert terms.memory_bytes.evaluate(sizes) == p.memory.bytes


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize(
    "sizes", [{"batch": 3, "context": 50}, {"batch": 700, "context": 30, "d": 512, "kv": 2, "dh": 64, "ffn": 900}]
)
def test_terms_of_programs_are_the_predictions(sizes: dict[str, int]) -> None:
    h100 = load_machine("h100_sxm")
    file = load_file(shipped_names("kernels")["layer_decode"])
    values, terms = program_terms(file, "layer_decode", h100, sizes, TENSOR)
    p = predict_program(file, "layer_decode", sizes, h100, TENSOR)
    given = {n: v for n, v in values.items() if v is not None}
    assert summed(terms).compute_s.evaluate(given) == p.compute_s
    assert summed(terms).memory_bytes.evaluate(given) == p.memory.bytes


def test_behind_a_cache_there_is_no_one_form() -> None:
    own = kernel_of("kernel k(n):\n    inout A: f64[n]\n    for i in range(n):\n        A[i] += A[i] * A[i]\n")
    with pytest.raises(CommandError, match="has caches, so its traffic"):
        terms_of(own, machine("peak f64 1 TFLOP/s", "cache L 1 KiB, 1 TB/s", "memory M 1 GB, 1 GB/s"))


def test_separate_pipes_have_no_sum() -> None:
    own = kernel_of("kernel k(n):\n    inout A: f64[n]\n    for i in range(n):\n        A[i] += A[i] * A[i]\n")
    with pytest.raises(CommandError, match="separate pipes"):
        terms_of(own, machine("peak f64 1 TFLOP/s", "pipes separate add mul"))


def test_a_const_parameter_does_not_grow() -> None:
    text = (
        "kernel k(n, const s = 2):\n    inout A: f64[n]\n    for i in range(n):\n        A[i] += A[i] * A[i]\n"
        "program p(n = 9, s = 2):\n    run k(n * s, s)\n"
    )
    file = load_file(Source("k.roof", text))
    one = machine("peak f64 fma 1 TFLOP/s")
    values, _ = program_terms(file, "p", one, {}, over="n")
    assert values == {"n": 9, "s": 2}
    with pytest.raises(CommandError, match="gives `s` for the `const` parameter `s` of k"):
        program_terms(file, "p", one, {}, over="s")


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("sizes", [{"context": 2048}, {"context": 64}, {"context": 64, "d": 512, "ffn": 700, "kv": 2}])
def test_numbers_agree_with_those_found_over_all_integers(sizes: dict[str, int]) -> None:
    """`threshold` finds the same sizes another way: by intervals in which each term is the largest."""
    h100 = load_machine("h100_sxm")
    file = load_file(shipped_names("kernels")["layer_decode"])
    values, terms = program_terms(file, "layer_decode", h100, sizes, TENSOR)
    given = {n: v for n, v in values.items() if v is not None}
    question = Question("batch", TENSOR, terms=("compute", "HBM"))
    whole, parts = program_bounds(file, "layer_decode", sizes, h100, question)
    for t, bounds in zip([*terms, summed(terms)], [*parts, whole], strict=True):
        both = (t.compute_s, t.memory_bytes * (1 / h100.main_memory.bandwidth_bytes_per_s))
        found = break_even("HBM", both, "batch", given)
        theirs = [(i.first, i.last) for i in bounds.intervals if i.names == ("compute",)]
        assert list(found.intervals or ()) == theirs, t.label


# ---- shapes of the inequality ----


@pytest.mark.parametrize(
    ("compute", "other", "intervals"),
    [
        (x * 3, x * 2 + 5, ((5, None),)),
        (x * 3, x * 2 + Fraction(1, 2), ((1, None),)),
        (x * 2, x * 3, ()),
        (x * 2 + 9, x * 3, ((1, 9),)),
        (x * x * 2, x * 7, ((4, None),)),
        (x * 20, x * x + 51, ((3, 17),)),  # 20 x >= x^2 + 51 between its roots
        (x * 2, x * 2, ((1, None),)),
    ],
)
def test_intervals(compute: Quasi, other: Quasi, intervals: tuple[object, ...]) -> None:
    found = break_even("t", (compute, other), "x")
    assert found.intervals == intervals
    for size in range(1, 40):
        inside = any(a <= size and (b is None or size <= b) for a, b in found.intervals or ())
        assert (compute.evaluate({"x": size}) >= other.evaluate({"x": size})) == inside


def test_other_parameters_stay_symbols() -> None:
    found = break_even("t", (x * y * 6, x * 2 + y * 4), "x")
    assert (neat_text(found.form), found.limit, found.intervals) == ("2*y/(3*y - 1)", Fraction(2, 3), None)
    known = break_even("t", (x * y * 6, x * 2 + y * 4), "x", {"y": 5})
    assert known.intervals == ((1, None),)


def test_only_sizes_that_are_allowed_count() -> None:
    wave = (x * 20, x * x + 51)  # from 3 to 17
    for least, most, intervals in [(1, 17, ((3, None),)), (5, 99, ((1, 17),)), (1, 2, ()), (18, 30, ())]:
        found = break_even("t", wave, "x", within=[x - least, most - x])
        assert found.intervals == intervals
    with_names = break_even("t", (x * 3, x * 2 + 5), "x", {"y": 9}, within=[y - x])
    assert with_names.intervals == ((5, None),)


def test_compute_against_the_launches_of_a_program() -> None:
    v100, checked = load_machine("v100_time_paper"), load_file(shipped_names("kernels")["lstm_forward"])
    given, terms = program_terms(checked, "lstm_forward", v100, {}, over="batch")
    values = {n: v for n, v in given.items() if v is not None}
    whole = summed(terms)
    found = break_even("launch", (whole.seconds("compute", v100), whole.seconds("launch", v100)), "batch", values)
    assert found.first is not None
    for batch, longer in ((found.first - 1, False), (found.first, True)):
        p = predict_program(checked, "lstm_forward", {"batch": batch}, v100)
        assert (p.compute_s >= p.launch_s) is longer
    with pytest.raises(CommandError, match="no term is named L2"):
        whole.seconds("L2", v100)


def test_arguments_divided_by_a_parameter_with_a_number() -> None:
    """`kv // p` is no polynomial in p; at p = 4 the sizes are those that `threshold` finds without a formula."""
    h100 = load_machine("h100_sxm")
    sizes = {"p": 4, "new": 1, "context": 500}
    file = load_file(shipped_names("kernels")["layer_parallel"])
    values, terms = program_terms(file, "layer_parallel", h100, sizes, TENSOR, over="batch")
    given = {n: v for n, v in values.items() if v is not None}
    whole, parts = program_bounds(file, "layer_parallel", sizes, h100, Question("batch", TENSOR))
    assert len(parts) == len(terms)
    for bounds, each in zip((whole, *parts), (summed(terms), *terms), strict=True):
        found = break_even("HBM", (each.compute_s, each.seconds("HBM", h100)), "batch", given)
        assert found.first == bounds.first_without("HBM")
    with pytest.raises(CommandError, match=r"`.*kv//p.*` has no closed form"):
        program_terms(file, "layer_parallel", h100, {}, TENSOR, over="batch")


@pytest.mark.parametrize(
    ("intervals", "said"),
    [(((5, 5),), "at B = 5 only"), (((1, 1), (7, None)), "at B = 1 only, from B = 7 on"),
     (((1, 5),), "up to B = 5 only"),
     (((2, 3),), "from B = 2 up to B = 3"), ((), "never"), (((1, None),), "at every B")],
)  # fmt: skip
def test_where_compute_takes_as_long_in_words(intervals: tuple[tuple[int, int | None], ...], said: str) -> None:
    """A single size was `from B = 5 up to B = 5`."""
    assert answer(BreakEven("HBM", "B", None, Quasi.constant(0), None, intervals), {}) == said
