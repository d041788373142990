"""The page's arithmetic against Python's: expressions, traffic, times, and how numbers are written."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import lcm

import pytest

from roofdsl.counts.closed_forms import Bytes, ClosedForms, NoClosedForm, PlateauBytes
from roofdsl.counts.derive import derive
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.counts.traffic_form_records import TermBytes
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import TYPES
from roofdsl.loops.integers import And, Compare, Const, FloorDiv, Max, Min, Mod, Not, Or, Product, Sum, Sym
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.quantities import show_bytes, show_number, show_rate, show_size, show_time
from roofdsl.page.content import Asked, content_of
from roofdsl.page.count_forms import of_derivation
from roofdsl.page.forms_in_javascript import function, truth
from roofdsl.page.retype import retyped
from roofdsl.page.sums import MOST_SUMMED, sum_function
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import fixed
from roofdsl.sets.quasi import Quasi, floor
from tests.page.javascript import evaluate
from tests.page.kernels import KERNELS, MACHINES, kernel_of, machine_of

POINTS = 1000
FORMS = "FORMS.map(([k, at]) => FUNCTIONS[k](sizesOf(at)).map(String))"


@pytest.mark.thorough
def test_expressions_are_exact_at_random_points() -> None:
    """Every W, Q, Q(Z) and plateau of some kernels, in lines of an element and of 64 B: 1,000 points, equal."""
    forms = list(every_form())
    functions = tuple(function(form) for form in forms)
    draw = random.Random(2026)
    points = []
    for k in range(POINTS):
        form = k % len(forms)
        sizes = {n: draw.randrange(1, 10 ** draw.randrange(1, 10)) for n in forms[form].names()}
        points.append((form, sizes))
    found = evaluate(functions, FORMS, FORMS=points)
    for (form, sizes), (top, bottom) in zip(points, found, strict=True):
        assert Fraction(int(top), int(bottom)) == forms[form].evaluate(sizes), (functions[form], sizes)


def every_form() -> Iterator[Cases]:
    for name in ("dot", "gemv", "matmul", "triangle", "blocked", "halves"):
        for line in (None, 64) if name in ("dot", "gemv", "halves") else (None,):
            forms = ClosedForms(kernel_of(name), {}, line)
            yield forms.work
            yield forms.compulsory("load_store").total
            if name != "blocked":
                yield forms.at_any_cache("load_store").total
            for plateau in forms.plateau_forms("load_store") if line is None else ():
                yield plateau.all_bytes
                yield Cases((Case((), plateau.from_bytes),))


def test_a_page_is_exact_where_traffic_is_a_sum_of_terms() -> None:
    """In the kernel's own type and in another, whose cache holds twice the elements."""
    kernel, machine = shipped("cholesky"), machine_of("plain")
    content = content_of(Asked("", ((kernel, {"n": 24}),), (machine,), types=("f32",)))
    asked = [(t, z) for t in ("f64", "f32") for z in (24, 100, 404, 1000, 2000, 4002)]
    text = (
        "ASKED.map(([t, z]) => { const p = predictionAt(DATA.kernels[0], t, DATA.machines[0], '', {n: 24}, BigInt(z)); "
        "return [isExact(p.moved), p.bytes]; })"
    )
    found = evaluate(content.functions, text, DATA=content.document, ASKED=asked)
    for (type_name, cache), (exact, moved) in zip(asked, found, strict=True):
        own = kernel if type_name == "f64" else retyped(kernel, type_name)
        assert (exact, moved) == (True, traffic_at(own, {"n": 24}, cache, None, "load_store").bytes), (type_name, cache)


def test_a_kernel_that_computes_in_another_type_keeps_its_types() -> None:
    kernel = replace(shipped("cholesky"), compute_type=TYPES["tf32"])
    with pytest.raises(ValueError, match="data and operations of kernel cholesky do not share one floating-point type"):
        retyped(kernel, "f32")


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["cholesky", "lu", "mvt"])
def test_sums_of_terms_are_exact_at_random_points(name: str) -> None:
    terms = ClosedForms(shipped(name), {}).terms_at_any_cache("load_store").total
    draw = random.Random(name)
    most = MOST_SUMMED // 8
    points = [(0, {"n": draw.randrange(4, most), "Z": int(8 * 2 ** draw.uniform(0, 11))}) for _ in range(25)]
    found = evaluate((sum_function(terms),), FORMS, FORMS=points)
    for (_, sizes), (top, bottom) in zip(points, found, strict=True):
        assert Fraction(int(top), int(bottom)) == terms.evaluate(sizes), sizes
    large = [(0, {"n": 10**6, "Z": 2**20})]
    text = "FORMS.map(([k, at]) => FUNCTIONS[k](sizesOf(at))?.map(String) ?? null)"
    (out,) = evaluate((sum_function(terms),), text, FORMS=large)
    if name == "cholesky" or out is not None:
        assert Fraction(int(out[0]), int(out[1])) == terms.evaluate(large[0][1])
    else:  # a million summands would hold the page up
        assert name != "cholesky"


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("convention", ["once", "load_store", "write_allocate"])
def test_sums_that_repeat_or_only_begin_or_cease_are_not_added_one_by_one(convention: Traffic) -> None:
    """A product in lines of 64 B: equal to the sum term by term, and there at sizes far beyond MOST_SUMMED."""
    terms = ClosedForms(kernel_of("matmul"), {}, 64).terms_at_any_cache(convention).total
    assert any(t.over is not None for t in terms.terms)
    draw = random.Random(convention)
    points = [(0, {"n": draw.randrange(4, 60), "Z": 64 * round(2 ** draw.uniform(0, 10))}) for _ in range(40)]
    found = evaluate((sum_function(terms),), FORMS, FORMS=points)
    for (_, sizes), (top, bottom) in zip(points, found, strict=True):
        assert Fraction(int(top), int(bottom)) == terms.evaluate(sizes), sizes
    large = [(0, {"n": 10**7, "Z": 2**z}) for z in (10, 20, 30, 50)]
    assert None not in evaluate(
        (sum_function(terms),), "FORMS.map(([k, at]) => FUNCTIONS[k](sizesOf(at))?.map(String) ?? null)", FORMS=large
    )


def test_floors_of_negative_numbers_and_quotients() -> None:
    n, b = Quasi.symbol("n"), Quasi.symbol("b")
    values = [floor(n * Fraction(-1, 3)), floor(floor(n * Fraction(1, 2)) * Fraction(-1, 5)) * n - 7, n * b**-2 - 3]
    forms = [Cases((Case((((v + 2, False), (n - 5, False)), ((n - 3, True),)), v),)) for v in values]
    points = [(k, {"n": n, "b": b}) for k in range(len(forms)) for n in (1, 3, 4, 7, 100) for b in (1, 2, 7)]
    found = evaluate(tuple(map(function, forms)), FORMS, FORMS=points)
    for (k, sizes), (top, bottom) in zip(points, found, strict=True):
        assert Fraction(int(top), int(bottom)) == forms[k].evaluate(sizes)


def test_conditions() -> None:
    n, m = Sym("n"), Sym("m")
    conditions = [
        Compare("==", Mod(n, m), Const(0)), Compare("<", Sum((n, Product((Const(-3), m)))), Const(-2)),
        Compare("!=", FloorDiv(Sum((n, Const(-9))), Const(4)), Const(-1)), Compare(">=", Min((n, m)), Const(3)),
        Or((Compare(">", Max((n, m)), Const(8)), And((Compare("<=", n, m), Not(Compare("==", n, Const(2))))))),
    ]  # fmt: skip
    points = [(k, {"n": i, "m": j}) for k in range(len(conditions)) for i in range(1, 12) for j in range(1, 12)]
    text = "FORMS.map(([k, at]) => FUNCTIONS[k](sizesOf(at)))"
    found = evaluate(tuple(truth([c]) for c in conditions), text, FORMS=points)
    assert found == [conditions[k].holds(at) for k, at in points]


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", ["class", "__proto__", "constructor", "FUNCTIONS", "await", "toString"])
def test_a_parameter_of_any_name(name: str) -> None:
    form = Cases((Case((), Quasi.symbol(name) * 3),))
    assert evaluate((function(form),), "FUNCTIONS[0](sizesOf(JSON.parse(AT))).map(String)", AT=f'{{"{name}": 14}}') == [
        "42",
        "1",
    ]


# ---- predictions ----


@pytest.mark.thorough
def test_predictions_are_those_of_predict() -> None:
    """W, Q, times and rate on machines of every kind, where the page says that its traffic is exact: to 1e-12."""
    machines = tuple(map(machine_of, MACHINES))
    shown = tuple((kernel_of(name), {}) for name in KERNELS)
    content = content_of(Asked("", shown, machines, types=("f32",)))
    draw = random.Random(7)
    asked = list(cases(draw))
    text = (
        "ASKED.map(([k, type, m, unit, values, cache]) => { const p = predictionAt(DATA.kernels[k], type, "
        "DATA.machines[m], unit, values, cache === null ? null : BigInt(cache)); return p.problem ? p : "
        "{work: p.work, bytes: p.bytes, compute: p.compute, memory: p.memory, time: p.time, sum: p.sum, rate: p.rate, "
        "bounds: p.bounds, exact: isExact(p.moved)}; })"
    )
    found = evaluate(content.functions, text, DATA=content.document, ASKED=asked)
    compared = 0
    for (k, type_name, m, unit, values, _), page in zip(asked, found, strict=True):
        own = kernel_of(KERNELS[k], type_name)
        matrix = unit if unit and content.document["kernels"][k]["contraction"] else None
        if page.get("problem") or not page["exact"]:
            continue
        expected = predict(own, values, machines[m], Options(unit=matrix, levels="memory"))
        near = pytest.approx(page["bytes"], rel=1e-12)
        assert expected.memory.bytes == near, (own.name, values, machines[m].name)
        assert page["work"] == pytest.approx(expected.work, rel=1e-12)
        for key, value in (
            ("compute", expected.compute_s), ("memory", expected.memory.time_s), ("time", expected.bound_s),
            ("sum", expected.no_overlap_s), ("rate", expected.rate_per_s),
        ):  # fmt: skip
            assert page[key] == pytest.approx(float(value), rel=1e-12), (key, own.name, machines[m].name)
        assert tuple(page["bounds"]) == expected.bounds
        compared += 1
    assert compared > len(asked) / 2


def cases(draw: random.Random) -> Iterator[tuple[int, str, int, str, dict[str, int], int | None]]:
    for k, name in enumerate(KERNELS):
        for m, machine_name in enumerate(MACHINES):
            machine = machine_of(machine_name)
            cache = None if machine.last_cache is None else machine.last_cache.size_bytes
            n = draw.randrange(4, 25)
            values = {p.name: 4 if p.name == "b" else 4 * n for p in kernel_of(name).parameters}
            for type_name in ("f64", "f32"):
                unit = draw.choice(["", "tensor"]) if machine_name == "matrix" else ""
                yield k, type_name, m, unit, values, cache


def test_a_crossing_is_where_python_finds_it() -> None:
    kernel, machine = shipped("matmul_bf16"), load_machine("h100_guide")
    content = content_of(Asked("", ((kernel, {}),), (machine,), unit="tensor_sparse"))
    text = (
        "crossings(DATA.kernels[0], 'n', 131072, {n: 64}, (v) => "
        "predictionAt(DATA.kernels[0], 'bf16', DATA.machines[0], 'tensor_sparse', v, null))"
    )
    assert evaluate(content.functions, text, DATA=content.document) == [
        {"from": 1, "after": None, "longest": "HBM"},
        {"from": 1773, "after": 1772, "longest": "compute"},
    ]
    sides = [predict(kernel, {"n": n}, machine, Options(unit="tensor_sparse")) for n in (1772, 1773)]
    assert [p.compute_s >= p.memory.time_s for p in sides] == [False, True]


def shipped(name: str) -> Kernel:
    from roofdsl.cli.options import choose, kernels_of

    return kernels_of(choose(name), {})[0][0]


def test_a_tile_size_that_is_given_has_exact_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Q(Z) has no form with the tile size as a symbol: exact at b = 4, plateaus and steps at b = 8."""
    found_at = ClosedForms.at_any_cache

    def refuse(self: ClosedForms, convention: Traffic) -> Bytes:
        if type(self) is ClosedForms:
            raise NoClosedForm("products of several unknown sizes")
        return found_at(self, convention)

    monkeypatch.setattr(ClosedForms, "at_any_cache", refuse)
    monkeypatch.setattr(ClosedForms, "terms_at_any_cache", no_terms)
    kernel, machine = kernel_of("blocked"), machine_of("plain")
    content = content_of(Asked("", ((kernel, {"n": 64, "b": 4}),), (machine,), types=()))
    asked = [
        ({"n": n, "b": b}, cache) for b in (4, 8) for n in (16, 40) for cache in (8, 56, 100, 200, 500, 1000, 9999)
    ]
    text = (
        "ASKED.map(([values, cache]) => { const p = predictionAt(DATA.kernels[0], 'f64', DATA.machines[0], '', values, "
        "BigInt(cache)); return [p.moved.how, p.high.bytes, p.low.bytes]; })"
    )
    found = evaluate(content.functions, text, DATA=content.document, ASKED=asked)
    hows = []
    for (values, cache), (how, moved, least) in zip(asked, found, strict=True):
        true = traffic_at(kernel, values, cache, None, "load_store").bytes
        if how in ("exact", "fits"):
            assert moved == true, (values, cache)
        elif how == "plateau":
            assert moved == pytest.approx(true, rel=0.02), (values, cache)
        elif how == "step":
            assert least <= true <= moved, (values, cache)
        else:  # below the sizes for which plateaus are stated
            assert values["n"] < 4 * values["b"]
            assert least <= true <= moved
        hows += [how] if values["b"] == 8 else []
        assert values["b"] != 4 or how in ("exact", "fits")
    assert {"plateau", "step"} <= set(hows)


def no_terms(self: ClosedForms, *asked: object) -> TermBytes:
    raise NoClosedForm("too hard")


def test_a_wide_step_is_bracketed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances of a triangle run from few bytes to all: without a form of Q(Z) it is bounded between plateaus, and
    said to be.
    """
    monkeypatch.setattr(ClosedForms, "terms_at_any_cache", no_terms)
    kernel, machine = shipped("cholesky"), machine_of("plain")
    content = content_of(Asked("", ((kernel, {"n": 24}),), (machine,), types=()))
    caches = [24, 100, 400, 1000, 2000, 9999]
    text = (
        "CACHES.map((z) => { const p = predictionAt(DATA.kernels[0], 'f64', DATA.machines[0], '', {n: 24}, BigInt(z)); "
        "return [p.moved.how, p.high.bytes, p.low.bytes]; })"
    )
    found = evaluate(content.functions, text, DATA=content.document, CACHES=caches)
    for cache, (how, most, least) in zip(caches, found, strict=True):
        true = traffic_at(kernel, {"n": 24}, cache, None, "load_store").bytes
        assert least <= true <= most, (cache, how)
    assert [how for how, _, _ in found].count("step") >= 3


FILTER = """\
kernel filtered(n, r = 3):
    in X: f64[n + r], G: f64[r]
    out Y: f64[n]
    for i in range(n):
        Y[i] = 0
        for p in range(r):
            Y[i] += X[i + p] * G[p]
"""


def test_plateaus_at_a_number_hold_at_that_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `derive` takes r = 3 to find plateaus, the page does not use them at r = 4."""
    plateaus = ClosedForms.plateau_forms

    def refuse(self: ClosedForms, convention: Traffic, *sizes: Mapping[str, int]) -> tuple[PlateauBytes, ...]:
        if "r" not in self.given:
            raise NoClosedForm("too hard")
        return plateaus(self, convention, *sizes)

    monkeypatch.setattr(ClosedForms, "plateau_forms", refuse)
    forms = of_derivation(derive(kernel_in(FILTER), any_cache=False))
    assert forms.any_cache is None
    assert forms.plateaus
    for plateau in forms.plateaus:
        assert fixed("r", 3) in plateau.whole.needs


def kernel_in(text: str) -> Kernel:
    (found,) = kernels(load_file(Source("text.roof", text))).values()
    return found


def test_integer_operations_are_no_flop() -> None:
    text = "kernel k(n):\n    inout A: i32[n]\n    for i in range(n):\n        A[i] = A[i] + 1\n"
    document = content_of(Asked("", ((kernel_in(text), {}),), (machine_of("plain"),))).document
    assert document["kernels"][0]["variants"]["as written"]["operation"] == "OP"


# ---- sizes ----


def test_a_size_that_must_be_a_multiple_of_two_numbers_is_one_of_both() -> None:
    """Rounding to one after the other gave n = 1008 for tiles of 32 and 48: no multiple of 32, so no prediction."""
    kernel = {"multiples": [{"of": "n", "by": 4}, {"of": "n", "by": "p"}, {"of": "n", "by": "q"}]}
    asked = [(1000, 32, 48), (1, 5, 7), (2**40 + 1, 6, 9), (100, 8, 8)]
    text = "ASKED.map(([n, p, q]) => withSize(KERNEL, { n: 1, p, q }, 'n', n).n)"
    found = evaluate((), text, KERNEL=kernel, ASKED=asked)
    assert found[0] == 960
    for n, (size, p, q) in zip(found, asked, strict=True):
        step = lcm(4, p, q)
        assert n % step == 0 and (abs(n - size) <= step / 2 or n == step)


# ---- numbers in words ----


def test_numbers_are_written_as_on_the_command_line() -> None:
    draw = random.Random(3)
    values = [0.0, 1.0, 999.95, 999.96, 999.96e6, 0.99996e-3, 999_999_999.0, 1e15, 0.5, 1024.0, 6 * 2.0**20, 2.5e9]
    values += [draw.uniform(1, 10) * 10 ** draw.randrange(-14, 18) for _ in range(200)]
    functions = {
        "showNumber": show_number, "showRate": show_rate, "showBytes": show_bytes, "showTime": show_time,
        "showSize": show_size,
    }  # fmt: skip
    for name, python in functions.items():
        shown = [v for v in values if name not in ("showTime",) or v >= 1e-12]
        shown = [float(round(v)) for v in shown if v >= 1] if name == "showSize" else shown
        found = evaluate((), f"VALUES.map((v) => {name}(v))", VALUES=shown)
        differing = [
            (v, page, python(v)) for v, page in zip(shown, found, strict=True) if page.replace("µ", "u") != python(v)
        ]
        # JavaScript rounds a decimal half away from zero, Python to even: the last of four digits, rarely
        assert len(differing) <= len(shown) // 50, differing


def test_a_kernel_that_states_matrix_units_runs_on_them() -> None:
    loops = "    for i in range(n), j in range(n), k in range(n): C[i, j] += A[i, k] * B[k, j]\n"
    arrays = "    in A, B: f32[n, n]\n    inout C: f32[n, n]\n"
    kernel = kernel_in(f"kernel product(n):\n{arrays}    unit tensor\n{loops}")
    machine = machine_of("matrix")
    content = content_of(Asked("", ((kernel, {"n": 64}),), (machine,), types=()))
    text = "predictionAt(DATA.kernels[0], 'f32', DATA.machines[0], '', { n: 64 }, null).compute"
    page = evaluate(content.functions, text, DATA=content.document)
    expected = predict(kernel, {"n": 64}, machine)
    assert expected.unit == "tensor"
    assert page == pytest.approx(float(expected.compute_s), rel=1e-12)
    roofs = content.document["machines"][0]["roofs"]["f32"]
    unit = evaluate(content.functions, "unitOf(DATA.kernels[0], '')", DATA=content.document)
    assert roofs[unit] == roofs["tensor"] != roofs[""]
