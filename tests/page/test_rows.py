"""Rows of arrays that begin within cache lines: the page's intervals hold what moves."""

from __future__ import annotations

import pytest

from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.source import Source
from roofdsl.loops.integers import Const, FloorDiv, Min, Product, Sum, Sym
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.page import line_forms
from roofdsl.page.content import Asked, content_of
from roofdsl.sets.facts import Row
from tests.page.javascript import evaluate

FOLDED = (
    "kernel folded(n, m):\n    inout A: f64[n, m, 3]\n    for i in range(n), j in range(m), k in range(3):\n"
    "        A[i, j, k] += 1\n"
)


@pytest.mark.thorough
def test_rows_shorter_than_a_line_are_one_with_the_next_extent() -> None:
    """3*m elements lie in a row: Q is known where they fill lines, and bracketed where they do not."""
    of, machine = kernel_in(FOLDED), load_machine("skylake_gold_6148")
    content = content_of(Asked("", ((of, {}),), (machine,)))
    asked = [{"n": n, "m": m} for n in (15, 20) for m in (15, 16, 19, 24)]
    text = (
        "ASKED.map((values) => { const p = predictionAt(DATA.kernels[0], 'f64', DATA.machines[0], '', values, 128n); "
        "return [isExact(p.moved), p.low.bytes, p.high.bytes]; })"
    )
    for values, (exact, low, high) in zip(
        asked, evaluate(content.functions, text, DATA=content.document, ASKED=asked), strict=True
    ):
        seen = traffic_at(of, values, 128, 64, content.document["kernels"][0]["convention"]).bytes
        assert exact == (values["m"] % 8 == 0), values
        assert (low == seen == high) if exact else (low <= seen <= high and low < high), values


HALVES = """\
kernel halves(m, n):
    assume n >= 2
    in A: f64[3*m, n // 2]
    inout y: f64[m]
    for i in range(m), j in range(n // 2):
        y[i] += A[3*i, j]
"""
WITHOUT = """\
kernel without(m, n, k):
    assume n >= k + 2
    in A: f64[m, n - k]
    inout y: f64[m]
    for i in range(m), j in range(n - k - 1):
        y[i] += A[i, j]
"""


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (HALVES, [{"m": 64, "n": n} for n in (20, 22, 32, 38)]),
        (WITHOUT, [{"m": 64, "n": n, "k": 10} for n in (19, 22, 26, 35)]),
    ],
)
def test_a_row_is_a_line_longer_and_shorter_at_the_sizes_that_bracket_it(
    text: str, asked: list[dict[str, int]]
) -> None:
    """If n grows by 8, a row of n // 2 is half a line longer; one of n - k is as long as before if k grows as well."""
    of, machine = kernel_in(text), load_machine("skylake_gold_6148")
    content = content_of(Asked("", ((of, asked[0]),), (machine,)))
    code = (
        "ASKED.map((values) => { const p = predictionAt(DATA.kernels[0], 'f64', DATA.machines[0], '', values, 1024n); "
        "return [p.moved.how, p.low.bytes, p.high.bytes]; })"
    )
    found = evaluate(content.functions, code, DATA=content.document, ASKED=asked)
    for values, (how, low, high) in zip(asked, found, strict=True):
        seen = traffic_at(of, values, 1024, 64, content.document["kernels"][0]["convention"]).bytes
        assert how in ("rows", "exact") and low <= seen <= high, values


def test_rows_of_which_no_longer_ones_are_known() -> None:
    rows = [Row("A", Sum((Sym("n"), Product((Const(-1), Sym("k"))))), 8), Row("B", Sym("k"), 8)]
    assert line_forms._steps(rows[:1]) == (("n", 8),)
    assert line_forms._steps(rows) is None  # both parameters grow, and A's rows stay as long
    assert line_forms._steps([Row("A", Min((Sym("n"), Sym("k"))), 8)]) is None
    assert line_forms._steps([Row("A", FloorDiv(Sym("n"), Const(3)), 8)]) == (("n", 24),)


def kernel_in(text: str) -> Kernel:
    return kernel(load_file(Source("text.roof", text)), None)
