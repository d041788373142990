"""Rates of single special functions: what has which rate, and that every way to a compute time uses it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.source import Source
from roofdsl.machine.model import ComputeCeiling, Machine
from roofdsl.page.count_forms import work_forms
from roofdsl.page.time_function import rates_of
from roofdsl.predict.compute import compute_time
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.time_forms import launch_forms
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.run import sweep
from roofdsl.tell.derive_json import to_json
from tests.oracle.work import executed
from tests.predict.machines import kernel_of, machine

G = 10**9
MIXED = """
kernel mixed(n, m):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n):
        for j in range(i + 1):
            B[i,j] = exp(A[i,j]) + sqrt(A[i,j])
            if j < m:
                B[i,j] = tanh(exp(A[i,j])) / 3 + sigmoid(A[i,j]) * rcp(A[i,j])
"""
RATES = ("peak f64 fma 32 GFLOP/s", "peak f64 special 4 GFLOP/s", "peak f64 exp 1 GFLOP/s", "cost tanh 64")


def work(**functions: int) -> WorkAt:
    return WorkAt({("f64", "special"): sum(functions.values())}, {}, functions={("f64", f): n for f, n in
                                                                                functions.items()})  # fmt: skip


def test_each_function_runs_at_its_own_rate_and_the_rest_at_that_of_special() -> None:
    m = machine(*RATES)
    rates = {f: m.rate("f64", f).per_s for f in SPECIAL_FUNCTIONS}
    assert rates == dict.fromkeys(SPECIAL_FUNCTIONS, 4 * G) | {"exp": G, "tanh": 16 * G // 64}
    found = compute_time(work(exp=3, sqrt=4, tanh=1, log=4), m)
    assert found.time_s == Fraction(3, G) + Fraction(8, 4 * G) + Fraction(64, 16 * G)
    assert [(p.cls, p.operations) for p in found.parts] == [("special", 8), ("exp", 3), ("tanh", 1)]


def test_without_rates_of_their_own_functions_are_the_class_they_were() -> None:
    m = machine("peak f64 fma 32 GFLOP/s")
    found = compute_time(work(exp=3, sqrt=5), m)
    assert [(p.cls, p.operations, p.rate_per_s) for p in found.parts] == [("special", 8, 2 * G)]
    assert found.assumptions[-1] == "f64: special at 1/8 of the unfused rate (the default cost)"
    assert compute_time(WorkAt({("f64", "special"): 8}, {}), m) == found


@pytest.mark.parametrize(
    ("costs", "rate"),
    [
        ({}, G),
        ({"exp": Fraction(8)}, 2 * G),
        ({"special": Fraction(4)}, 4 * G),  # of all of them: the file knows how they are computed, the machine does not
        ({"special": Fraction(4), "exp": Fraction(8)}, 2 * G),
        ({"sqrt": Fraction(8)}, G),
    ],
)
def test_a_files_own_costs_go_first(costs: dict[str, Fraction], rate: int) -> None:
    m = machine(*RATES)
    assert m.rate("f64", "exp", costs).per_s == rate
    assert compute_time(work(exp=5), m, costs=costs).time_s == Fraction(5, rate)


def test_a_ceiling_of_the_class_is_over_all_functions_and_one_of_a_function_over_it_alone() -> None:
    m = machine(*RATES, 'ceiling "library" f64 special 500 MFLOP/s', 'ceiling "slow log" f64 log 1 GFLOP/s')
    every, log = (c for c in m.ceilings if isinstance(c, ComputeCeiling))
    counts = work(exp=5, sqrt=5, log=5)
    assert compute_time(counts, m).time_s == Fraction(5, G) + Fraction(10, 4 * G)
    assert compute_time(counts, m, ceilings=(every,)).time_s == Fraction(15, G // 2)
    assert compute_time(counts, m, ceilings=(log,)).time_s == Fraction(5, G) + Fraction(5, 4 * G) + Fraction(5, G)


def test_functions_share_the_pipe_of_their_class() -> None:
    """The busier pipe counts: 5 exp at 1 GFLOP/s and 4 sqrt at 4, beside 160 additions at half of 32."""
    counts = WorkAt({("f64", "special"): 9, ("f64", "add"): 160}, {}, functions={("f64", "exp"): 5, ("f64", "sqrt"): 4})
    for kinds in ("add mul", "add mul div"):
        m = machine(*RATES, f"pipes separate {kinds}")
        assert compute_time(counts, m).time_s == Fraction(10, G)
        assert compute_time(work(exp=5, sqrt=4), m).time_s == Fraction(6, G)
        capped = machine(*RATES, f"pipes separate {kinds}", 'ceiling "slow log" f64 log 1 GFLOP/s')
        assert compute_time(work(log=8), capped).time_s == compute_time(work(log=8), m).time_s == Fraction(2, G)


def by_hand(n: int, m: int) -> dict[str, int]:
    counts = dict.fromkeys(("exp", "sqrt", "tanh", "sigmoid", "rcp"), 0)
    for i in range(n):
        for j in range(i + 1):
            for f in ("exp", "sqrt", *(("tanh", "exp", "sigmoid", "rcp") if j < m else ())):
                counts[f] += 1
    return counts


@pytest.mark.parametrize(("n", "m"), [(7, 3), (4, 9), (12, 12)])
def test_operations_of_each_function_are_closed_forms(n: int, m: int) -> None:
    kernel = kernel_of(MIXED)
    form = to_json(derive(kernel, {"n": n, "m": m}))["work"]
    assert {f: entry["value"] for f, entry in form["by_function"].items()} == by_hand(n, m)
    assert all(entry["expr"] for entry in form["by_function"].values())
    assert sum(by_hand(n, m).values()) == form["by_class"]["special"]["value"]
    assert executed(kernel, {"n": n, "m": m}).operations["special"] == sum(by_hand(n, m).values())


def test_the_square_root_of_a_complex_absolute_value_is_one() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in a: c128[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = abs(a[i])\n"
    )
    assert to_json(derive(kernel, {"n": 5}))["work"]["by_function"]["sqrt"]["value"] == 5


def page_seconds(m: Machine, costs: dict[str, Fraction], sizes: dict[str, int]) -> Fraction:
    """T_comp as the page adds it up."""
    counts = work_forms(kernel_of(MIXED)).counts
    found = rates_of(m, frozenset(counts), None, costs)
    assert found.compute is not None
    return found.compute.at({" ".join(key): form.form.evaluate(sizes) for key, form in counts.items()})


@pytest.mark.spread(4)
@pytest.mark.parametrize("pipes", [(), ("pipes separate add mul",), ("pipes separate add mul div",)])
@pytest.mark.parametrize("caps", [(), ("library",), ("slow log",)])
def test_every_way_to_a_compute_time_has_these_rates(pipes: tuple[str, ...], caps: tuple[str, ...]) -> None:
    ceilings = ('ceiling "library" f64 special 500 MFLOP/s', 'ceiling "slow log" f64 sigmoid 1 GFLOP/s')
    m = machine(*RATES, "memory HBM 16 GiB, 100 TB/s", *ceilings, *pipes)
    kernel, options, sizes = kernel_of(MIXED), Options(ceilings=caps), {"n": 40, "m": 9}
    predicted = predict(kernel, sizes, m, options)
    counts = by_hand(40, 9)
    assert {p.cls: p.operations for p in predicted.parts if p.cls in SPECIAL_FUNCTIONS} == {
        f: counts[f] for f in ("exp", "tanh", "sigmoid")
    }  # sqrt and rcp have nothing of their own
    table = sweep([Variant(kernel, {})], {"n": (40,), "m": (9,)}, [m], options).table
    assert float(table.row(0)["time_s"]) == float(predicted.bound_s)
    if not caps:
        assert page_seconds(m, {}, sizes) == predicted.compute_s
    if not caps and not pipes:
        assert launch_forms(kernel, {}, m, DEFAULTS).compute_s.evaluate(sizes) == predicted.compute_s
        assert sum((part.time_s for part in predicted.parts), Fraction(0)) == predicted.compute_s


TURNED = """
kernel turned(n):
    in w: f64[n]
    out x: f64[n], y: f64[n]
    for i in range(n):
        x[i] = cos(w[i]) + exp(w[i])
        y[i] = sin(w[i])
"""


@pytest.mark.parametrize("pipes", [(), ("pipes separate add mul div",)])
def test_sines_and_cosines_count_as_the_larger_of_both(pipes: tuple[str, ...]) -> None:
    """Compilers compute both of one angle by one call. n additions, exponentials and cosines: the sines are shorter."""
    m = machine(*RATES, "peak f64 sin 2 GFLOP/s", "peak f64 cos 0.5 GFLOP/s", "memory HBM 16 GiB, 100 TB/s", *pipes)
    kernel = kernel_of(TURNED)
    found = predict(kernel, {"n": 1000}, m, Options())
    functions = Fraction(1000, G) + Fraction(2000, G)
    assert found.compute_s == functions + (0 if pipes else Fraction(1000, 16 * G))
    table = sweep([Variant(kernel, {})], {"n": (1000,)}, [m], Options()).table
    assert float(table.row(0)["time_s"]) == float(found.bound_s)
    if not pipes:
        with pytest.raises(NoClosedForm, match="the larger of several sums"):
            launch_forms(kernel, {}, m, DEFAULTS)
    slow_sines = machine(*RATES, "peak f64 sin 0.25 GFLOP/s", "peak f64 cos 0.5 GFLOP/s", *pipes)
    assert predict(kernel, {"n": 1000}, slow_sines, Options()).compute_s == found.compute_s + Fraction(2000, G)


def test_the_mix_names_functions_with_rates_of_their_own() -> None:
    document = predict(kernel_of(MIXED), {"n": 40, "m": 9}, machine(*RATES)).to_json()
    mix = {part["class"]: part["rate_flops"] for part in document["mix"]}
    assert (mix["special"], mix["exp"], mix["tanh"]) == (4e9, 1e9, 0.25e9)


def test_machine_files_with_rates_of_functions() -> None:
    lines = (
        "machine m:",
        "peak f64 fma 32 GFLOP/s",
        "peak  f64   exp 1.2 GFLOP/s",
        "cost log 20",
        "memory D 1 GiB, 1 GB/s",
    )
    text = "\n    ".join(lines) + "\n"
    assert "    peak f64 exp 1.2 GFLOP/s\n" in format_source(Source("m.roof", text))
    with pytest.raises(InputError) as error:
        machine("peak f64 fma 32 GFLOP/s", "peak f64 expt 1 GFLOP/s")
    assert "there is no class of rates `expt`" in str(error.value) and "exp" in error.value.diagnostics[0].help
    with pytest.raises(InputError, match="appears twice"):
        machine("peak f64 fma 32 GFLOP/s", "peak f64 exp 1 GFLOP/s", "peak f64 exp 2 GFLOP/s")
