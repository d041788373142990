"""The number of lines or sectors that a union of boxes of array elements touches, in closed form.

A box is an interval of subscripts in every dimension. Boxes of one array usually overlap: those of a stencil are one
box, shifted. The leading dimensions are cut where a box begins or ends. Between two cuts, every row of the array has
the same intervals, so one row is counted and multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple

Interval = tuple[int, int]
"""First and last subscript."""

Box = tuple[Interval, ...]
"""The intervals of the dimensions; the dimension that is contiguous in memory comes last."""

Amount = int | Fraction

KEPT = 8192
"""The maximum number of counts that are kept, for boxes of the same shape in other places."""


SHORT = 4
"""Planes of at most so many units are counted like rows: those next to each other share units."""


def distinct_units(boxes: Sequence[Box], dims: Sequence[int], element_bytes: int, unit_bytes: int) -> Amount:
    """The number of distinct units of `unit_bytes` that the boxes touch in an array of `dims` that begins on a unit.

    Exact if rows are a whole number of units long. Otherwise, rows are assumed to begin at every possible offset
    equally often. A unit that several rows share is counted once; in arrays of more than two dimensions, one
    that the last row of a plane shares with the next plane counts twice, unless all boxes have all rows of the planes
    or planes are short.
    """
    found = list(dict.fromkeys(boxes))
    extents = list(dims)
    while len(extents) > 1 and all(box[-1] == (0, extents[-1] - 1) for box in found):
        # whole rows follow each other in memory, so the last two dimensions are one
        length = extents.pop()
        extents[-1] *= length
        found = [(*box[:-2], (box[-2][0] * length, box[-2][1] * length + length - 1)) for box in found]
    while len(extents) > 2 and all(box[-2] == (0, extents[-2] - 1) for box in found):
        # all rows of a plane are followed by those of the next
        length = extents.pop(-2)
        extents[-2] *= length
        found = [(*box[:-3], (box[-3][0] * length, box[-3][1] * length + length - 1), box[-1]) for box in found]
    while len(extents) > 2 and extents[-1] * extents[-2] * element_bytes <= SHORT * unit_bytes:
        length = extents.pop()
        extents[-1] *= length
        found = [(*box[:-2], part) for box in found for part in _in_plane(box, length)]
    if not found:
        return 0
    row = extents[-1] * element_bytes if len(extents) > 1 else 0
    shift = gcd(row, unit_bytes) if row else unit_bytes
    moved = _to_the_origin(found, unit_bytes // gcd(element_bytes, unit_bytes))
    return _of_moved(moved, _Rows(element_bytes, unit_bytes, row, range(0, unit_bytes, shift)))


def _in_plane(box: Box, length: int) -> list[Interval]:
    """The elements of the last two dimensions in one that holds the rows, of this length, one after another."""
    (begin, end), (low, high) = box[-2:]
    return [(row * length + low, row * length + high) for row in range(begin, end + 1)]


def _to_the_origin(boxes: list[Box], whole: int) -> tuple[Box, ...]:
    """The boxes moved together towards 0, which keeps their number of units: within a row by multiples of `whole`
    elements, which fill whole units, and by any number of rows.
    """
    if len(boxes) == 1:
        ((*leading, (low, high)),) = boxes
        by = low // whole * whole
        return ((*((0, b - a) for a, b in leading), (low - by, high - by)),)
    least = [min(ends)[0] for ends in zip(*boxes, strict=True)]
    least[-1] = least[-1] // whole * whole
    return tuple([tuple([(a - by, b - by) for (a, b), by in zip(box, least, strict=True)]) for box in boxes])


class _Rows(NamedTuple):
    """The bytes of an element, of a unit and of a row (0: there is one), and the offsets within a unit at which rows
    begin.
    """

    element_bytes: int
    unit_bytes: int
    row_bytes: int
    offsets: range


@lru_cache(KEPT)
def _of_moved(boxes: tuple[Box, ...], rows: _Rows) -> Amount:
    """The units of boxes of which many others are copies in another place."""
    if len(boxes[0]) == 1:
        return _of_row(_merged([box[0] for box in boxes]), None, rows)
    return _of_rows(list(boxes), 0, rows, {})


def _of_rows(boxes: list[Box], dimension: int, rows: _Rows, known: dict[tuple[int, tuple[Box, ...]], Amount]) -> Amount:
    """The units of the boxes from `dimension` on; known: earlier counts."""
    is_last, length = dimension == len(boxes[0]) - 2, rows.row_bytes // rows.element_bytes
    total_units: Amount = 0
    before: int | None = None
    cuts = sorted({end for box in boxes for end in (box[dimension][0], box[dimension][1] + 1)})
    for begin, end in pairwise(cuts):
        inside = [box for box in boxes if box[dimension][0] <= begin and end <= box[dimension][1] + 1]
        if not inside:
            continue
        if is_last:
            intervals = _merged([box[-1] for box in inside])
            total_units += _of_row(intervals, None if before is None else before - begin * length, rows)
            if end > begin + 1:
                total_units += (end - begin - 1) * _of_row(intervals, intervals[-1][1] - length, rows)
            before = (end - 1) * length + intervals[-1][1]
        else:
            key = dimension, tuple(dict.fromkeys(box[dimension + 1 :] for box in inside))
            if key not in known:
                known[key] = _of_rows(inside, dimension + 1, rows, known)
            total_units += (end - begin) * known[key]
    return total_units


def _of_row(intervals: list[Interval], before: int | None, rows: _Rows) -> Amount:
    """The units of a row, on average over its offsets, without those of the rows before it.

    before: the last element of these rows, counted from the beginning of this one; None if there are none.
    """
    total = 0
    for offset in rows.offsets:
        end = 0 if before is None else offset + (before + 1) * rows.element_bytes
        total += _units_of_row(intervals, rows, offset, (end - 1) // rows.unit_bytes)
    return total if len(rows.offsets) == 1 else Fraction(total, len(rows.offsets))


def _merged(intervals: list[Interval]) -> list[Interval]:
    """The union of intervals, in order; those that overlap or touch are joined."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def _units_of_row(intervals: list[Interval], rows: _Rows, offset: int, last: int) -> int:
    """The units of a row behind the unit `last`."""
    total = 0
    for low, high in intervals:
        first = max((offset + low * rows.element_bytes) // rows.unit_bytes, last + 1)  # neighbors may share a unit
        last = max((offset + (high + 1) * rows.element_bytes - 1) // rows.unit_bytes, last)
        total += max(0, last - first + 1)
    return total
