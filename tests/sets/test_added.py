"""Sums of counts: at every point the sum of the counts there, however their domains overlap."""

from __future__ import annotations

from itertools import product

import islpy as isl
import pytest

from roofdsl.sets.cardinality import FEW_PIECES, added, disjoint_sum

LONG = "[n] -> { [i, j] -> 1 + i : 0 <= i < 4 and 0 <= j < n; [i, j] -> 7 : 4 <= i < n and 0 <= j < n }"
CUT = (
    "[n] -> { [i, j] -> n : 0 <= i < n and j = 0; [i, j] -> j : 0 <= i < 3 and 0 < j < n; "
    "[i, j] -> i * j : 3 <= i < n and 0 < j < n; [i, j] -> 2 : i = n and 0 <= j < n }"
)
APART = "[n] -> { [i, j] -> 5 : i > n and 0 <= j < 3; [i, j] -> n : i > n and j = 3; [i, j] -> 4 : i > n and j = 4 }"
INSIDE = "[n] -> { [i, j] -> i : 1 <= i < n - 1 and 0 < j < n - 1; [i, j] -> 3 : i = 0 and 0 < j < n - 1 }"
REMAINDERS = "[n] -> { [i, j] -> floor(i / 2) : 0 <= i < n and 0 <= j < n; [i, j] -> 9 : i = n and 0 <= j <= n }"


@pytest.mark.parametrize(
    "texts",
    [(LONG, CUT), (CUT, LONG), (CUT, APART), (INSIDE, CUT), (LONG, CUT, APART, INSIDE), (REMAINDERS, CUT, LONG)],
)
def test_a_sum_has_the_value_of_all_its_counts_at_every_point(texts: tuple[str, ...]) -> None:
    counts = [isl.PwQPolynomial(text) for text in texts]
    assert max(a.n_piece() * b.n_piece() for a, b in product(counts, counts) if a is not b) > FEW_PIECES
    points = [
        isl.Set(f"[n] -> {{ [{i}, {j}] : n = {n} }}").sample_point()
        for n, i, j in product((1, 2, 5), range(-1, 8), range(-1, 7))
    ]
    expected = [sum(count.eval(point).to_python() for count in counts) for point in points]
    total = added(counts)
    assert [total.eval(point).to_python() for point in points] == expected
    again = [sum(count.eval(point).to_python() for count in counts) for point in points]
    assert again == expected  # the library has not written into the counts


def test_counts_that_are_joined_stay_what_they_are() -> None:
    """Two joins begin with the same count, which has room for more pieces."""
    first = isl.PwQPolynomial("[n] -> { [i] -> 1 : i = 0; [i] -> 2 : i = 1; [i] -> 3 : i = 2 }")
    others = [isl.PwQPolynomial(f"[n] -> {{ [i] -> {k} : i = {k}; [i] -> n : i = {k + 1} }}") for k in (4, 6)]
    whole = disjoint_sum([first, others[0]])
    again = disjoint_sum([whole, others[1]])
    assert (first.n_piece(), whole.n_piece(), again.n_piece()) == (3, 5, 7)
    at = isl.Set("[n] -> { [i] : i = 5 and n = 11 }").sample_point()
    assert (first.eval(at).to_python(), whole.eval(at).to_python(), again.eval(at).to_python()) == (0, 11, 11)
    nothing = isl.PwQPolynomial("[n] -> { [i] -> 0 : i < 0 }")
    assert disjoint_sum([nothing, nothing]).eval(at).to_python() == 0
