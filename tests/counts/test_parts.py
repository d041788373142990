"""Parts of an iteration space in which comparisons have one result (`counts.lines.cells`)."""

from __future__ import annotations

import pytest

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.symbolic import Sizes


@pytest.mark.parametrize("first", ["size", "coordinate"])
def test_a_constraint_may_begin_with_a_product_of_sizes(first: str) -> None:
    """i + j >= n*m, with i and j below n*m: then neither i - j nor j - i has one sign, and i + j - n*m has."""
    sizes = Sizes(2)
    n, m = sizes.symbol(0), sizes.symbol(1)
    i, j = sizes.symbol(2), sizes.symbol(5)
    whole = Cell(sizes, 1, {2: (0, n * m - 1), 5: (0, n * m - 1)}, (i, j))
    constraint = -(n * m) + i + j if first == "size" else i + j - n * m
    part = Cell(sizes, 1, whole.bounds, whole.forms, (constraint,))
    assert part.known_negative(i - j) is None
    assert part.known_negative(i + j - n * m) is False
    assert part.known_negative(2 * i + 2 * j - 2 * n * m + 1) is False
    assert whole.known_negative(i + j - n * m) is None
