"""Parts whose coordinates depend on each other: the number of their distances that exceed a limit, by integer sets."""

from __future__ import annotations

from math import prod
from typing import Any

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.sums import points
from roofdsl.counts.lines.symbolic import Growing
from roofdsl.lang.record import Record


class Tied(Record):
    """Accesses at distances that are linear in coordinates which depend on each other, at given sizes.

    kind: as in the histogram; low, high: bounds of the distances; points: the number of accesses. For each choice of
    `names` within `where` (isl text), there are `free` accesses at distance `distance`.
    """

    kind: int
    low: int
    high: int
    points: int
    names: tuple[str, ...]
    where: str
    free: int
    distance: str

    def beyond(self, limit: int) -> int:
        """The number of distances that exceed `limit`."""
        if self.high <= limit or self.low > limit:
            return 0 if self.high <= limit else self.points
        import islpy as isl

        text = f"{{ [{', '.join(self.names)}] : {self.where} and {self.distance} > {limit} }}"
        return self.free * int(isl.Set(text).count_val().to_python())


def tied_distances(kind: int, cell: Cell, distance: Growing) -> Tied:
    """The accesses of a part at given sizes, at a linear distance."""
    involved = _involved(cell) | {u for m in distance.terms for u in m}
    names, where, free = _set(cell, involved)
    low, high = cell.range(distance)
    return Tied(kind, low, high, points(cell), tuple(names.values()), where, free, _text(distance, names))


def _involved(cell: Cell) -> set[int]:
    return {u for c in cell.constraints for m in c.terms for u in m if u >= cell.sizes.count}


def _forms(cell: Cell, involved: set[int]) -> list[Growing]:
    found = list(cell.constraints)
    for u in sorted(involved):
        x, (low, high) = cell.sizes.symbol(u), cell.bounds[u]
        found += [x - low, high - x]
    return found


def _set(cell: Cell, involved: set[int]) -> tuple[dict[int, str], str, Any]:
    """The names of coordinates, the constraints on them as isl text, and the number of choices of the other
    coordinates.
    """
    names = {u: f"x{u}" for u in sorted(involved)}
    free = prod(high - low + 1 for u, (low, high) in cell.bounds.items() if u not in involved)
    return names, " and ".join(f"{_text(f, names)} >= 0" for f in _forms(cell, involved)), free


def _text(form: Growing, names: dict[int, str]) -> str:
    terms = [f"{c} * {names.get(m[0], f's{m[0]}')}" for m, c in form.terms.items()]
    return " + ".join([*terms, str(form.constant)])
