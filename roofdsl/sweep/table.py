"""The table of a sweep: columns over points, and what is best in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.report import did_you_mean

WORDS = ("machine", "bound", "how")
"""Columns of words; all others are numbers."""


class Table:
    """Columns of one length, in order. Numbers: numpy arrays of int64 (or Python integers) with -1, or of float64
    with nan, where there is no value. Words: arrays of indices into `words[name]`.
    """

    def __init__(self, columns: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> None:
        self.columns, self.words = dict(columns), {n: tuple(w) for n, w in words.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def cell(self, name: str, place: int) -> Any:
        """A number, a word, or None."""
        value = self.columns[name][place]
        if name in self.words:
            return self.words[name][int(value)] if value >= 0 else None
        if isinstance(value, float):  # numpy's float64 is one
            return None if isnan(value) else float(value)
        return None if value < 0 else int(value)

    def row(self, place: int) -> dict[str, Any]:
        """All cells of one point."""
        return {name: self.cell(name, place) for name in self.columns}

    def rows(self) -> Iterator[dict[str, Any]]:
        """All points."""
        return (self.row(k) for k in range(len(self)))

    def cells(self, name: str) -> list[Any]:
        """One column as Python values."""
        values = self.columns[name].tolist()
        if name in self.words:
            known = [*self.words[name], None]  # -1 is the last
            return [known[k] for k in values]
        if self.columns[name].dtype == float:
            return [None if isnan(v) else v for v in values]
        return [None if v < 0 else v for v in values]

    def numbers(self, name: str) -> Any:
        """A column of numbers in float64, nan where there is none. Raises CommandError for a name it does not have."""
        import numpy as np

        if name not in self.columns or name in self.words:
            numeric = [n for n in self.columns if n not in self.words]
            raise CommandError(
                f"the table has no column of numbers named `{name}`",
                did_you_mean(name, numeric, f"it has {', '.join(numeric)}"),
            )
        found = np.asarray(self.columns[name], dtype=np.float64)
        return np.where(found < 0, np.nan, found)


def is_better_high(name: str) -> bool:
    """Whether more of a column is better: of rates and intensities it is, of times and bytes it is not."""
    return name.endswith("_per_s") or name == "intensity"


def groups(table: Table, per: Sequence[str]) -> list[Any]:
    """The places of the points that have the same values in all columns of `per`; in the order of the table."""
    import numpy as np

    if not per:
        return [np.arange(len(table))]
    unknown = next((n for n in per if n not in table.columns), None)
    if unknown is not None:
        raise CommandError(f"the table has no column `{unknown}`", did_you_mean(unknown, table.names))
    keys = np.stack([np.unique(table.columns[n], return_inverse=True)[1] for n in per])
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    by_group = np.argsort(which, kind="stable")
    parts = np.split(by_group, np.cumsum(np.bincount(which))[:-1])
    return [parts[k] for k in np.argsort(first)]


def best(table: Table, name: str, per: Sequence[str] = ()) -> list[int]:
    """The place of the best point by column `name` in each group; the first of equals."""
    import numpy as np

    numbers = table.numbers(name) * (-1.0 if is_better_high(name) else 1.0)
    found = []
    for group in groups(table, per):
        own = numbers[group]
        if not np.isnan(own).all():
            found.append(int(group[np.nanargmin(own)]))
    return found


def pareto(table: Table, first: str, second: str, per: Sequence[str] = ()) -> list[int]:
    """The places of points that none in their group beats in one column without being worse in the other.

    By rising cost in `first`. Points equal in both columns are all kept.
    """
    import numpy as np

    a, b = (table.numbers(n) * (-1.0 if is_better_high(n) else 1.0) for n in (first, second))
    found: list[int] = []
    for group in groups(table, per):
        own = group[~(np.isnan(a[group]) | np.isnan(b[group]))]
        if not len(own):
            continue
        by_cost = own[np.lexsort((b[own], a[own]))]
        ys, xs = b[by_cost], a[by_cost]
        before = np.concatenate(([np.inf], np.minimum.accumulate(ys)[:-1]))
        same = np.concatenate(([False], (xs[1:] == xs[:-1]) & (ys[1:] == ys[:-1])))
        kept = ys < before
        for k in np.flatnonzero(same):  # equals of one that is kept
            kept[k] = kept[k - 1]
        found += [int(k) for k in by_cost[kept]]
    return found
