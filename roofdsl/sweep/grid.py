"""The points of a sweep: the product of ranges, written out one window at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from roofdsl.counts.integers_at_many_points import holds
from roofdsl.loops.integers import Condition
from roofdsl.sweep.ranges import points_of

WINDOW = 1 << 18
"""The most points that are in memory at a time, with all their columns: 40 MB."""


class Grid:
    """All points; the last name varies fastest."""

    def __init__(self, ranges: Mapping[str, Sequence[int]]) -> None:
        self.ranges = dict(ranges)
        self.count = points_of(ranges)

    def windows(self) -> Iterator[tuple[int, int]]:
        """(first point, the point behind the last) of parts of about the same length."""
        parts = -(-self.count // WINDOW)
        return ((self.count * k // parts, self.count * (k + 1) // parts) for k in range(parts))

    def columns(self, window: tuple[int, int], assumed: Sequence[Condition]) -> tuple[dict[str, Any], int]:
        """(the columns of those points in a window that satisfy `assumed`, the number of these points)."""
        import numpy as np

        places = np.arange(*window)
        columns: dict[str, Any] = {}
        inner = self.count  # points per step of a name: 6, 2 and 1 for 2 x 3 x 2 values
        for name, values in self.ranges.items():
            inner //= len(values)
            columns[name] = _values_at(values, places // inner % len(values))
        keep = np.ones(len(places), dtype=bool)
        for condition in assumed:
            keep &= np.asarray(holds(condition, columns), dtype=bool)
        return ({n: c[keep] for n, c in columns.items()} if not keep.all() else columns), int(keep.sum())


def _values_at(values: Sequence[int], places: Any) -> Any:
    import numpy as np

    if isinstance(values, range):
        return values.start + values.step * places
    return np.array(values, dtype=np.int64)[places]
