"""One form for even and odd sizes: the values of the pieces at every size, however the library writes them."""

from __future__ import annotations

from itertools import product

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.sets.cases import closed_form_of
from roofdsl.sets.library import pieces
from roofdsl.sets.parities import joined_parities
from tests.models.shipped import model

CONTEXT = isl.Set("[n, m] -> { : n >= 1 and m >= 1 }")

SPLIT = "[n, m] -> { n * m : n mod 2 = 0 and n >= 4; n * m - m : n mod 2 = 1 and n >= 3; 2 * m : n = 2; 7 : n = 1 }"
AS_FLOOR = "[n, m] -> { 2 * m * floor(n/2) : n >= 4; 2 * m : 2 <= n <= 3; 7 : n = 1 }"
TWO = "[n, m] -> { floor(n/2) + floor(m/2) : n >= 2; 1 : n = 1 }"
BETA_K = [(k, j, i) for k in (0, 1) for j, i in ((-1, 0), (0, -1), (0, 0), (0, 1), (1, 0))]
"""The coefficients that the smoother reads for a cell, from it."""

OF_THREE = "[n, m] -> { n : n mod 3 = 0; m : n mod 3 = 1 }"


def joined(text: str) -> list[tuple[isl.Set, object]]:
    split = [(d.intersect(CONTEXT), v) for d, v in pieces(isl.PwQPolynomial(text))]
    return joined_parities([(d.params(), v) for d, v in split], CONTEXT)


@pytest.mark.parametrize("text", [SPLIT, AS_FLOOR, TWO, OF_THREE])
def test_values_stay_the_same(text: str) -> None:
    form = closed_form_of(joined(text), CONTEXT, {})
    plain = isl.PwQPolynomial(text)
    for n in range(1, 13):
        for m in range(1, 5):
            at = isl.Set(f"[n, m] -> {{ : n = {n} and m = {m} }}")
            here = plain.intersect_params(at)
            outside = here.domain().is_empty()
            expected = 0 if outside else int(str(here.eval(here.domain().sample_point())))
            assert form.evaluate({"n": n, "m": m}) == expected, (n, m)


def test_both_ways_to_write_a_count_become_one() -> None:
    forms = [closed_form_of(joined(text), CONTEXT, {}) for text in (SPLIT, AS_FLOOR)]
    assert forms[0] == forms[1]
    assert len(forms[0].cases) == 2


def test_other_periods_stay_as_they_are() -> None:
    assert [str(v) for _, v in joined(OF_THREE)] == ["n", "m"]


def test_even_and_odd_sizes_that_differ_with_the_size_stay_two_cases() -> None:
    split = "[n, m] -> { n * m : n mod 2 = 0; n * m - n : n mod 2 = 1 }"
    assert [str(v) for _, v in joined(split)] == [str(v) for _, v in pieces(isl.PwQPolynomial(split))]


def test_what_a_red_black_smoother_touches_is_one_form() -> None:
    """As many bytes as elements are counted one by one, for even and odd sizes."""
    forms = ClosedForms(model("gsrb_branch"), {}).by_array()
    for dim in range(2, 6):
        inside = range(2, dim + 2)
        cells = [(k, j, i) for k, j, i in product(inside, inside, inside) if (k + j + i + 1) % 2 == 0]
        assert forms["dinv"].evaluate({"boxes": 1, "dim": dim}) == 8 * len(cells)
        touched = {(k + a, j + b, i + c) for k, j, i in cells for a, b, c in BETA_K}
        assert forms["beta_k"].evaluate({"boxes": 3, "dim": dim}) == 3 * 8 * len(touched)
    assert all(len(forms[name].cases) == 1 for name in ("beta_i", "beta_j", "beta_k"))
