"""Thinning of sweeps with millions of points: more than a figure can show is left out before it is collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.sweep.table import Chosen, LongTable, Table, Varying, groups, joined, look

MOST_PLACES = 2048
"""A curve's axis is divided into this many parts, each of which keeps its least and its largest value."""

MOST_STEPS = 512
"""The maximum number of values on each axis of a map. If there are more, every second or third and so on is kept."""


class _Values:
    """The distinct values of some columns, ascending."""

    def __init__(self, names: Sequence[str]) -> None:
        self.parts: dict[str, list[Any]] = {n: [] for n in names}

    def add(self, part: Table, start: int) -> None:
        """Take note of the next points."""
        import numpy as np

        for name, parts in self.parts.items():
            parts.append(_different(part.columns[name]))
            while len(parts) > 1 and len(parts[-1]) >= len(parts[-2]):
                parts[-2:] = [_different(np.concatenate(parts[-2:]))]

    def found(self) -> dict[str, Any]:
        """The values of each column."""
        import numpy as np

        return {n: _different(np.concatenate(parts)) for n, parts in self.parts.items()}


def _different(column: Any) -> Any:
    """The distinct values, ascending. (numpy.unique hashes integers, which takes twenty times as long.)"""
    import numpy as np

    values = np.sort(column)
    return values[np.concatenate(([True], values[1:] != values[:-1]))]


def thinned(
    table: LongTable, value: str, keys: Sequence[str], axes: Callable[[Mapping[str, Any]], Sequence[str]]
) -> tuple[Table, list[str]]:
    """(the points that are drawn, the axes they are drawn over).

    keys: columns that identify a point. axes: chooses the axes, given the distinct values of each column that has
    several.
    """
    varying = Varying()
    look(table, varying)
    keys = [n for n in keys if n in varying.names]
    values = _Values([n for n in keys if n not in table.words])
    look(table, values)
    found = values.found()
    over = list(axes(found))
    if not over or len(over) > 2 or any(n not in found for n in over):
        return table.at([0]), over  # any point shows an error in them
    others = [n for n in keys if n not in over]
    names = [*dict.fromkeys((*keys, value))]
    if len(over) == 1:
        chosen = _extremes(names, value, over[0], (others, found[over[0]]))
        look(table, chosen)
        assert chosen.kept is not None
        return chosen.kept, over
    return _every_so_many(table, names, {n: found[n] for n in over}), over


def _extremes(names: Sequence[str], value: str, x: str, by: tuple[Sequence[str], Any]) -> Chosen:
    """A watcher that finds the least and the largest value in every part of the axis, for each combination of the
    others.
    """
    import numpy as np

    others, xs = by
    low, high = float(np.log(xs[0])), float(np.log(xs[-1]))

    def choose(part: Table) -> Any:
        numbers = part.numbers(value)
        place = (np.log(part.numbers(x)) - low) / (high - low or 1.0) * MOST_PLACES
        place = np.minimum(place.astype(np.int64), MOST_PLACES - 1)
        found = []
        for group in groups(part, others):
            own = group[~np.isnan(numbers[group])]
            by_value = own[np.lexsort((numbers[own], place[own]))]
            ends = np.flatnonzero(np.diff(place[by_value], append=-1))
            begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
            found += [by_value[begins], by_value[ends], group[:1]]
        return np.unique(np.concatenate(found))

    return Chosen(names, choose)


def _every_so_many(table: Table, names: Sequence[str], axes: Mapping[str, Any]) -> Table:
    """The points at evenly spaced values of the axes."""
    import numpy as np

    kept = {n: values[:: -(-len(values) // MOST_STEPS)] for n, values in axes.items()}
    found = []
    for part in table.parts():
        own = part.only(names)
        there = np.logical_and.reduce([np.isin(own.columns[n], values) for n, values in kept.items()])
        found.append(own.at(np.flatnonzero(there)))
    return joined(found)
