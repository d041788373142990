"""The labels of ticks say which numbers they stand at."""

from __future__ import annotations

import pytest

from roofdsl.plot.ticks import even_ticks, plain, power, prefixed


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1e-7, "10⁻⁷"), (2e7, "2x10⁷"), (9.996e6, "9.996x10⁶"), (12_345_000.0, "1.2345x10⁷"), (10.0**-5, "10⁻⁵")],
)
def test_powers_of_ten(value: float, shown: str) -> None:
    assert power(value) == shown


def test_ticks_that_differ_have_labels_that_differ() -> None:
    """Between 12.34 and 12.36 million, five ticks had the labels `1.23x10⁷` and `1.24x10⁷`."""
    ticks = even_ticks(12.34e6, 12.36e6, 6)
    assert len({plain(t) for t in ticks}) == len(ticks) == 5


@pytest.mark.parametrize(
    ("value", "shown"),
    [(999.0, "999 "), (999.5, "999.5"), (1000.0, "1 k"), (0.9995, "999.5 m"), (10.0**-3, "1 m"), (1e9, "1 G")],
)
def test_prefixes_begin_at_their_thousand(value: float, shown: str) -> None:
    assert prefixed(value).strip() == shown.strip()
