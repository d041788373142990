"""The certificate of "previous access" refuses every kind of wrong map."""

from __future__ import annotations

import islpy as isl
import pytest

from roofdsl.sets.previous import NotCertified, certify_previous, earlier_on_same_line, previous_access

TOUCH = isl.Map("[n] -> { T[i, j] -> A[j] : 0 <= i, j < n }")


def test_the_right_map_passes() -> None:
    right = isl.Map("[n] -> { T[i, j] -> T[i - 1, j] : 1 <= i < n and 0 <= j < n }")
    certify_previous(right, earlier_on_same_line(TOUCH))
    assert previous_access(TOUCH).is_equal(right)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("[n] -> { T[i, j] -> T[0, j] : 1 <= i < n and 0 <= j < n }", "lies between"),
        ("[n] -> { T[i, j] -> T[i - 1, j] : 2 <= i < n and 0 <= j < n }", "misses accesses"),
        ("[n] -> { T[i, j] -> T[i - 1, j'] : 1 <= i < n and 0 <= j < n and 0 <= j' < n }", "no earlier one"),
        ("[n] -> { T[i, j] -> T[i', j] : 0 <= i' < i < n and 0 <= j < n }", "several"),
        ("[n] -> { T[i, j] -> T[i + 1, j] : 0 <= i < n - 1 and 0 <= j < n }", "no earlier one"),
    ],
)
def test_wrong_maps_are_refused(wrong: str, says: str) -> None:
    with pytest.raises(NotCertified, match=says):
        certify_previous(isl.Map(wrong), earlier_on_same_line(TOUCH))
