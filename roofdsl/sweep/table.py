"""The table of a sweep: columns over points, and the best points in it. `tell.sweep` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import isnan
from typing import Any, Protocol

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean

COMPUTED = (
    "launches", "work_flops", "compute_s", "time_s", "time_no_overlap_s", "flops_per_s", "bytes_per_s", "intensity",
    "bound", "how",
)  # fmt: skip
"""The columns that are computed, in order; the bytes of levels (`HBM_bytes`) follow `work_flops`."""

WORDS = ("machine", "bound", "how")
"""Columns of words; all others are numbers."""


class Table:
    """Columns of one length, in order. Numbers are numpy arrays of int64 (or Python integers), with -1 if there is no
    value, or of float64, with nan. Words are arrays of indices into `words[name]`.
    """

    def __init__(self, columns: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> None:
        self.columns, self.words = dict(columns), {n: tuple(w) for n, w in words.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def parts(self) -> Iterator[Table]:
        """The points in order, in parts that fit into memory."""
        yield self

    def only(self, names: Sequence[str]) -> Table:
        """Some of the columns."""
        return Table({n: self.columns[n] for n in names}, {n: w for n, w in self.words.items() if n in names})

    def at(self, places: Any) -> Table:
        """The points at `places`, in their order."""
        import numpy as np

        places = np.asarray(places, dtype=np.int64)
        return Table({n: c[places] for n, c in self.columns.items()}, self.words)

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
            known = [*self.words[name], None]  # -1 refers to the last
            return [known[k] for k in values]
        if self.columns[name].dtype == float:
            return [None if isnan(v) else v for v in values]
        return [None if v < 0 else v for v in values]

    def require_numbers(self, name: str) -> None:
        """Raise CommandError if there is no column of numbers with that name."""
        if name not in self.columns or name in self.words:
            numeric = [n for n in self.columns if n not in self.words]
            shown = [n if heading(n) == n else f"{heading(n)} ({n})" for n in numeric]
            raise CommandError(
                f"the table has no column of numbers named `{name}`",
                did_you_mean(name, [*numeric, *map(heading, numeric)], f"it has {', '.join(shown)}"),
            )

    def require_columns(self, names: Sequence[str]) -> None:
        """Raise CommandError if one of them is missing."""
        unknown = next((n for n in names if n not in self.columns), None)
        if unknown is not None:
            raise CommandError(f"the table has no column `{unknown}`", did_you_mean(unknown, self.names))

    def numbers(self, name: str) -> Any:
        """A column of numbers in float64, nan if there is no value. Raises CommandError for an unknown name."""
        import numpy as np

        self.require_numbers(name)
        found = np.asarray(self.columns[name], dtype=np.float64)
        return np.where(found < 0, np.nan, found)

    def first_numbers(self, names: Sequence[str]) -> Any:
        """At each point, the number of the first of these columns that has one there: each machine has its own."""
        import numpy as np

        found = self.numbers(names[0])
        for name in names[1:]:
            found = np.where(np.isnan(found), self.numbers(name), found)
        return found


_HEADINGS = {
    "work_flops": "W", "time_s": "time", "intensity": "I", "cache_bytes": "cache", "flops_per_s": "rate",
    "bytes_per_s": "rate",
}  # fmt: skip


def heading(column: str) -> str:
    """What people read above a column: `rate` for `flops_per_s`, `HBM` for `HBM_bytes`."""
    return _HEADINGS.get(column, column.removesuffix("_bytes"))


def column_named(asked: str, columns: Sequence[str]) -> str:
    """The column with this name or, if none has it, with this heading; `asked` itself if there is none."""
    return asked if asked in columns else next((c for c in columns if heading(c) == asked), asked)


def joined(tables: Sequence[Table]) -> Table:
    """The points of all tables, one after another; they have the same columns and words."""
    import numpy as np

    first = tables[0]
    if len(tables) == 1:
        return first
    return Table({n: np.concatenate([t.columns[n] for t in tables]) for n in first.names}, first.words)


class LongTable(Table):
    """A table with more points than are kept: `part(k)` creates the k-th part, and `lengths` has the lengths of the
    parts.

    Each requested column is complete, so callers should request few; parts have all columns of few points.
    """

    def __init__(
        self, names: Sequence[str], words: Mapping[str, Sequence[str]], lengths: Sequence[int],
        part: Callable[[int], Table],
    ) -> None:  # fmt: skip
        super().__init__({}, words)
        self.columns = _Made(tuple(names), self)  # type: ignore[assignment]
        self.lengths, self.part = tuple(lengths), part

    def __len__(self) -> int:
        return sum(self.lengths)

    def parts(self) -> Iterator[Table]:
        return map(self.part, range(len(self.lengths)))

    def only(self, names: Sequence[str]) -> Table:
        return joined([part.only(names) for part in self.parts()])

    def at(self, places: Any) -> Table:
        import numpy as np

        places = np.asarray(places, dtype=np.int64)
        if not len(places):
            return self.part(0).at(places)
        ends = np.cumsum(self.lengths)
        which = np.searchsorted(ends, places, side="right")
        by_part = np.argsort(which, kind="stable")
        needed = np.unique(which)
        starts = ends - np.array(self.lengths)
        found = joined([self.part(int(k)).at(places[which == k] - starts[k]) for k in needed])
        back = np.empty_like(by_part)
        back[by_part] = np.arange(len(places))
        return found.at(back)

    def row(self, place: int) -> dict[str, Any]:
        return self.at([place]).row(0)

    def rows(self) -> Iterator[dict[str, Any]]:
        return (row for part in self.parts() for row in part.rows())


class _Made(Mapping[str, Any]):
    """The columns of a long table, each created when it is requested."""

    def __init__(self, names: tuple[str, ...], table: LongTable) -> None:
        self.names, self.table = names, table

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return self.table.only([name]).columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


def keys_of(table: Table) -> list[str]:
    """The columns that identify a point: machine, cache and parameters. They come first in a table."""
    return list(takewhile(lambda name: name not in COMPUTED, table.names))


def is_better_high(name: str) -> bool:
    """Whether a larger value of a column is better: yes for rates and intensities, no for times and bytes."""
    return name.endswith("_per_s") or name == "intensity"


def groups(table: Table, per: Sequence[str]) -> list[Any]:
    """The places of the points that have the same values in all columns of `per`, in the order of the table."""
    import numpy as np

    if not per:
        return [np.arange(len(table))]
    table.require_columns(per)
    keys = np.stack([np.unique(table.columns[n], return_inverse=True)[1] for n in per])
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    by_group = np.argsort(which, kind="stable")
    parts = np.split(by_group, np.cumsum(np.bincount(which))[:-1])
    return [parts[k] for k in np.argsort(first)]


class Chosen:
    """The places that `choose` selects from all points that it is shown, part by part, by some of their columns.

    Selecting from the earlier selection and the new points must give the same as selecting from all points.
    """

    def __init__(self, names: Sequence[str], choose: Callable[[Table], Any]) -> None:
        self.names, self.choose = tuple(dict.fromkeys(names)), choose
        self.kept: Table | None = None
        self.places: Any = None

    def add(self, part: Table, start: int) -> None:
        """Show it the next points, the first of which is at `start`."""
        import numpy as np

        own = part.only(self.names)
        picked = np.asarray(self.choose(own), dtype=np.int64)
        kept, places = own.at(picked), picked + start
        if self.kept is not None:
            kept, places = joined([self.kept, kept]), np.concatenate([self.places, places])
            again = np.asarray(self.choose(kept), dtype=np.int64)
            kept, places = kept.at(again), places[again]
        self.kept, self.places = kept, places

    def found(self, *columns: Sequence[str]) -> list[int]:
        """The places at which each of these has a value, in one of its columns."""
        import numpy as np

        if self.kept is None:
            return []
        there = np.logical_and.reduce([~np.isnan(self.kept.first_numbers(names)) for names in columns])
        return [int(k) for k in self.places[there]]


class Varying:
    """The columns that have different values, or a value only at some points."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.first: dict[str, Any] = {}

    def add(self, part: Table, start: int) -> None:
        """Show it the next points."""
        for name in part.names if len(part) else ():
            column = part.columns[name]
            first = self.first.setdefault(name, column[0])
            others = column != first if first == first else column == column  # noqa: PLR0124 - nan is not
            if bool(others.any()):
                self.names.add(name)


class Watcher(Protocol):
    """An object that is shown all points, part by part."""

    def add(self, part: Table, start: int) -> None:
        """Show it the next points, the first of which is at `start`."""


def look(table: Table, *at: Watcher) -> None:
    """Show all points to each of the watchers, in order."""
    start = 0
    for part in table.parts():
        for each in at:
            each.add(part, start)
        start += len(part)


def best_of(table: Table, name: str, per: Sequence[str] = ()) -> Chosen:
    """A watcher that finds the best point by column `name` in each group. Raises CommandError for missing columns."""
    import numpy as np

    table.require_numbers(name)
    table.require_columns(per)

    def choose(part: Table) -> list[int]:
        numbers = part.numbers(name) * (-1.0 if is_better_high(name) else 1.0)
        found = []
        for group in groups(part, per):  # a point without a value represents its group, in the groups' order
            own = numbers[group]
            found.append(int(group[0 if np.isnan(own).all() else np.nanargmin(own)]))
        return found

    return Chosen([*per, name], choose)


def front_of(table: Table, first: str, second: Sequence[str], per: Sequence[str] = ()) -> Chosen:
    """A watcher that finds the points not dominated in their group. second: a column, or one for each machine, of the
    same kind. Raises CommandError for missing columns.
    """
    import numpy as np

    for name in (first, *second):
        table.require_numbers(name)
    table.require_columns(per)

    def choose(part: Table) -> list[int]:
        a, b = (part.first_numbers(n) * (-1.0 if is_better_high(n[0]) else 1.0) for n in ((first,), second))
        found: list[int] = []
        for group in groups(part, per):
            own = group[~(np.isnan(a[group]) | np.isnan(b[group]))]
            found += _front(own, a, b) if len(own) else [int(group[0])]
        return found

    return Chosen([*per, first, *second], choose)


def best(table: Table, name: str, per: Sequence[str] = ()) -> list[int]:
    """The place of the best point by column `name` in each group; the first of equals."""
    found = best_of(table, name, per)
    look(table, found)
    return found.found((name,))


def pareto(table: Table, first: str, second: str, per: Sequence[str] = ()) -> list[int]:
    """The places of points for which no other one in their group is better in one column and not worse in the other.

    Within each group, they are in order of rising cost in `first`. Points equal in both columns are all kept.
    """
    found = front_of(table, first, (second,), per)
    look(table, found)
    return found.found((first,), (second,))


def _front(own: Any, a: Any, b: Any) -> list[int]:
    """Those of the places `own` whose costs a and b are not dominated."""
    import numpy as np

    by_cost = own[np.lexsort((b[own], a[own]))]
    ys, xs = b[by_cost], a[by_cost]
    before = np.concatenate(([np.inf], np.minimum.accumulate(ys)[:-1]))
    same = np.concatenate(([False], (xs[1:] == xs[:-1]) & (ys[1:] == ys[:-1])))
    kept = ys < before
    for k in np.flatnonzero(same):  # equal to one that is kept
        kept[k] = kept[k - 1]
    return [int(k) for k in by_cost[kept]]
