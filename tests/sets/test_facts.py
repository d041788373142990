"""Facts: where each holds, with numbers for some sizes, kept on disk, and in words."""

from __future__ import annotations

import json

import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.formulas.fact_text import fact_latex, fact_text, facts_text
from roofdsl.loops.integers import Compare, Const, Mod, Product, Sym
from roofdsl.sets.facts import (
    CACHE,
    CacheMultiple,
    Compared,
    Fact,
    LeadingTerms,
    Remainders,
    Row,
    RowsAligned,
    at_least,
    decided,
    fixed,
    whole_units,
)
from roofdsl.sets.quasi import Quasi
from roofdsl.store.codec import read, write
from tests.oracle.loading import kernel_of

N, M, B, Z = (Quasi.symbol(name) for name in ("n", "m", "b", CACHE))
ODD = Remainders(Compare("==", Mod(Sym("n"), Const(2)), Const(1)))
ALIGNED = RowsAligned((Row("A", Product((Const(3), Sym("m"))), 8),))

FACTS: list[tuple[Fact, str, str | None]] = [
    (at_least("n", 4), "n >= 4", "n \\geq 4"),
    (at_least("n", 4 * B), "n >= 4*b", "n \\geq 4 b"),
    (at_least("rows", 4), "rows >= 4", "\\mathrm{rows} \\geq 4"),
    (at_least(CACHE, 64), "Z >= 64", "Z \\geq 64"),
    (fixed("n", 3), "n = 3", "n = 3"),
    (Compared(N * M - 32704, ">", Quasi.constant(0)), "m*n - 32704 > 0", "m n - 32704 > 0"),
    (Compared(N * B**-1, ">=", Quasi.constant(5)), "n/b >= 5", "\\frac{n}{b} \\geq 5"),
    (Compared(Z, "<", 24 * B**2), "Z < 24*b**2", "Z < 24 b^{2}"),
    (CacheMultiple(8), "Z a multiple of 8", None),
    (ODD, "n % 2 == 1", None),
    (ALIGNED, "rows that begin at line boundaries", None),
    (LeadingTerms(), "leading terms", None),
]


@pytest.mark.parametrize(("fact", "words", "formula"), FACTS, ids=[words for _, words, _ in FACTS])
def test_words_and_formula(fact: Fact, words: str, formula: str | None) -> None:
    assert (fact_text(fact), fact_latex(fact)) == (words, formula)


@pytest.mark.parametrize("fact", [fact for fact, _, _ in FACTS], ids=[words for _, words, _ in FACTS])
def test_kept_on_disk(fact: Fact) -> None:
    assert read(json.loads(json.dumps(write(fact)))) == fact


@pytest.mark.parametrize(
    ("fact", "holding", "broken"),
    [
        (at_least("n", 4), {"n": 4}, {"n": 3}),
        (at_least("n", 4 * B), {"n": 16, "b": 4}, {"n": 16, "b": 5}),
        (fixed("n", 3), {"n": 3}, {"n": 4}),
        (Compared(N * M - 12, ">", Quasi.constant(0)), {"n": 13, "m": 1}, {"n": 12, "m": 1}),
        (Compared(Z, "<", 8 * N), {CACHE: 31, "n": 4}, {CACHE: 32, "n": 4}),
        (CacheMultiple(8), {CACHE: 64}, {CACHE: 60}),
        (ODD, {"n": 7}, {"n": 8}),
        (ALIGNED, {"m": 16}, {"m": 12}),
    ],
)
def test_where_it_holds(fact: Fact, holding: dict[str, int], broken: dict[str, int]) -> None:
    assert fact.holds(holding) is True and fact.holds(broken) is False
    assert decided(fact) is None
    if CACHE not in holding:
        assert decided(fact.at(holding)) is True and decided(fact.at(broken)) is False
    with pytest.raises(KeyError):
        fact.holds({})


def test_what_no_sizes_decide() -> None:
    assert LeadingTerms().holds({"n": 3}) is None and RowsAligned().holds({"n": 3}) is None


def test_words_are_said_once_and_in_order() -> None:
    assert (
        facts_text([at_least("n", 4), RowsAligned(), ALIGNED, at_least("n", 4)])
        == "n >= 4, rows that begin at line boundaries"
    )
    assert facts_text([]) == ""


def test_units_of_a_cache() -> None:
    assert whole_units([at_least("n", 4), CacheMultiple(8)]) == 8 and whole_units([ODD]) == 1


def test_rows_that_are_folded_are_rows_of_the_next_extent_too() -> None:
    """Rows of 3 elements fill no line, so that 3*m elements lie in one row of the sets."""
    text = "kernel k(n, m):\n    inout A: f64[n, m, 3]\n    for i in range(n), j in range(m), k in range(3):\n"
    forms = ClosedForms(kernel_of(text + "        A[i, j, k] += 1\n"), {}, 64)
    (fact,) = forms.compulsory("once").total.assumes
    assert [fact.holds({"n": 5, "m": m}) for m in (3, 8, 12, 16)] == [False, True, False, True]
    given = ClosedForms(forms.kernel, {"m": 7}, 64).compulsory("once").total
    assert given.assumes == ()
