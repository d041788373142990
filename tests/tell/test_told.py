"""What people read of shipped kernels: equal to the expressions of JSON at random sizes, and as wide as it may be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
import sympy

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation, Quantity
from roofdsl.counts.readable_forms import condition_text
from roofdsl.formulas.writing import Remainder, neat_text, remainder
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import find_model
from roofdsl.sets.quasi import Quasi, floor
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_latex import to_latex
from roofdsl.tell.derive_text import to_text
from roofdsl.tell.floors import with_names
from roofdsl.tell.line_breaks import fitted

KERNELS = [
    "batched_gemm", "cholesky", "conv_gemm", "daxpy", "dot_first", "fft_crop", "gemv", "gpp", "jacobi2d",
    "lstm_input_product", "lu", "matmul", "matmul_blocked", "minplus", "pad_images", "residual", "swiglu",
]  # fmt: skip


@cache
def derivation(name: str, **options: Any) -> Derivation:
    target = find_model(name)
    return derive(kernel(load_file(target.path), target.name), **options)


def quantities(d: Derivation) -> Iterator[Quantity]:
    traffics = [d.compulsory, d.at_cache]
    yield from (d.work.total, d.work.fused_pairs, *d.work.by_class.values(), *d.by_array.values())
    yield from (q for t in traffics for q in (t.bytes, t.loads, t.stores) if q is not None)
    yield from (q for p in d.plateaus for q in (p.from_bytes, p.bytes, p.all_bytes))


def entries(document: Any) -> Iterator[dict[str, Any]]:
    """All {"expr", "value"} of a JSON document."""
    if isinstance(document, dict):
        if "expr" in document:
            yield document
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from entries(part)


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_told_is_what_json_says(name: str) -> None:
    d = derivation(name)
    chance = random.Random(name)
    exact = {e["expr"] for e in entries(to_json(d)) if e["expr"] is not None}
    checked = 0
    for q in quantities(d):
        if q.form is None or q.form.single is None or q.expr not in exact:
            continue
        told, said = (_read(expr, d) for expr in (neat_text(q.form.single), q.expr))
        for _ in range(3):
            at = {_symbol(p.name): chance.randint(1, 99) for p in d.kernel.parameters}
            assert told.subs(at) == said.subs(at)
        checked += 1
    assert checked >= 3


def _read(expr: str, d: Derivation) -> sympy.Expr:
    return sympy.sympify(expr, locals={p.name: _symbol(p.name) for p in d.kernel.parameters})


def _symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, positive=True)


@pytest.mark.spread(1)
@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("name", [*KERNELS, "matmul_lines", "steps"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    match name:
        case "matmul_lines":
            d = derivation("matmul", any_cache=True, line_bytes=64)
        case "steps":
            d = derivation("matmul_ijk", steps=True, line_bytes=64)
        case _:
            d = derivation(name)
    assert [line for line in to_text(d, width).splitlines() if len(line) > width] == []


def test_lines_are_broken_at_operators_and_nothing_is_lost() -> None:
    long = "  Q = " + " + ".join(f"{k}*alpha**{k}*floor((beta + {k})/8)" for k in range(1, 12)) + " B   if beta >= 2"
    lines = list(fitted([long], 80))
    assert max(map(len, lines)) <= 80
    assert "".join(" ".join(lines).split()) == "".join(long.split())
    assert all(line.lstrip().startswith(("Q", "+", "if")) for line in lines)
    assert all(line.count("(") == line.count(")") for line in lines)


def test_a_sum_of_terms_names_its_floors() -> None:
    d = derivation("matmul", any_cache=True, line_bytes=64)
    assert d.any_cache is not None
    terms = d.any_cache.bytes.terms
    assert terms is not None
    named, names = with_names(terms)
    assert "u = ceiling(n/8)" in [f"{short.name} = {short.meaning}" for short in names]
    for size, cache_bytes in [(9, 300), (40, 2000), (41, 30_000), (100, 90_000)]:
        env: dict[str, int | Fraction] = {"n": size, "Z": cache_bytes}
        put = {short.name: Quasi.symbol(short.floor) for short in names}
        back = replace(
            named,
            terms=tuple(
                replace(t, value=t.value.substitute(put), where=tuple(
                    tuple((v.substitute(put), zero) for v, zero in each) for each in t.where
                ))
                for t in named.terms
            ),
            definitions=named.substitute(put).definitions,
        )  # fmt: skip
        assert back.evaluate(env) == terms.evaluate(env)


def test_matmul_with_lines_is_readable() -> None:
    """It was 700 columns wide."""
    text = to_text(derivation("matmul", any_cache=True, line_bytes=64), all_cases=True)
    assert "  + 64*n*(n - 1)*(u - 2) B" in text
    assert "if Z < 8*n**2 + 72*n and n >= 16 and n % 8 = 0" in text
    assert "+ -" not in text


def test_conditions_are_said_once_and_remainders_as_such() -> None:
    n, h, r = map(Quasi.symbol, ("n", "h", "r"))
    stronger = (((h - r, False), (h - r - 2, False), (r - 2, False)),)
    assert condition_text(stronger) == "r >= 2 and h >= r + 2"
    fixed = (((h - 1, True), (r - 1, True), (h - r, False)),)
    assert condition_text(fixed) == "h = 1 and r = 1"
    multiple = 8 * floor((n + 7) * Fraction(1, 8)) - n - 7
    assert remainder(multiple, True) == Remainder(n, 8, "=", 1)
    assert condition_text((((multiple, True),),)) == "n % 8 = 1"
    assert condition_text((((n - 5, True),),)) == "n = 5"
    tightest = (((n - 5, False), (2 * n - 5, False), (40 - n, False), (100 - 2 * n, False)),)
    assert condition_text(tightest) == "5 <= n <= 40"


def test_a_form_without_its_number_says_why_there_is_no_number() -> None:
    d = derivation("gemv", cache_bytes=1024)
    late = {
        name: replace(q, note="it takes too long")
        for name, q in (("bytes", d.at_cache.bytes), ("loads", d.at_cache.loads), ("stores", d.at_cache.stores))
        if q is not None
    }
    told = replace(d, at_cache=replace(d.at_cache, **late))
    assert d.at_cache.bytes.form is not None and d.at_cache.bytes.value is None
    for shown in (to_text(told), *to_latex([told]).split("\\begin{align*}")[1:]):
        assert shown.count("it takes too long") == 1 and "no closed form" not in shown
        assert "no number at these sizes: it takes too long" in shown
    assert "it takes too long" not in to_text(d) + to_latex([d])
