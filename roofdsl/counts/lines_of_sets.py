"""The lines that cross a boundary at given sizes, counted by integer sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.sizes import NotAffine
from roofdsl.store.in_process import in_process

if TYPE_CHECKING:
    from roofdsl.sets.access_sets import AccessSets

_GRID_POINTS_PER_OPERATION = 20
"""Points at which a curved condition may be evaluated for each allowed operation: MAX_GRID for QUICK_OPERATIONS."""

KEPT = 64
"""The maximum number of counts for unbounded caches that a process keeps."""


class ArrayLines(Record):
    """The lines of one array: residencies begun, those begun by a read, and those that end in a store."""

    name: str
    line_bytes: int
    begun: int
    begun_by_read: int
    stored: int


def lines_by_sets(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, operations: int
) -> tuple[ArrayLines, ...]:
    """Line counts by integer sets. Raises NoAnswer, TooHard."""
    if cache_bytes is None:
        return _touched_by_sets((at.kernel, tuple(at.values.items()), line_bytes, operations))
    return _lines_by_sets(at, cache_bytes, line_bytes, operations)


@in_process(KEPT)
def _touched_by_sets(
    asked: tuple[Kernel, tuple[tuple[str, int], ...], int | None, int],
) -> tuple[ArrayLines, ...]:
    """`_lines_by_sets` for an unbounded cache: several boundaries and conventions ask for the same lines."""
    kernel, values, line_bytes, operations = asked
    return _lines_by_sets(Sized(kernel, dict(values)), None, line_bytes, operations)


def _lines_by_sets(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, operations: int
) -> tuple[ArrayLines, ...]:
    from roofdsl.sets.compulsory import compulsory
    from roofdsl.sets.count import MAX_GRID, count_number
    from roofdsl.sets.misses import Fresh, exceeding, residencies
    from roofdsl.sets.reuse import reuse

    grid = min(MAX_GRID, operations * _GRID_POINTS_PER_OPERATION)
    with _sets_of(at, line_bytes, operations) as access_sets:
        if cache_bytes is None:
            found = compulsory(access_sets)
        else:
            rule = exceeding(Quasi.constant(cache_bytes), Fresh())
            found = tuple(residencies(r, rule) for r in reuse(access_sets))
        return tuple(
            ArrayLines(
                r.array,
                r.bytes,
                count_number([r.begun], grid),
                count_number([r.begun_by_read], grid),
                count_number(r.stored, grid),
            )
            for r in found
        )


def touched_bytes_by_sets(at: Sized, line_bytes: int | None, operations: int) -> int:
    """The bytes of all touched lines, whoever touches them first. Raises NoAnswer, TooHard."""
    from roofdsl.sets.compulsory import touched_lines
    from roofdsl.sets.count import count_number

    with _sets_of(at, line_bytes, operations) as access_sets:
        lines = touched_lines(access_sets).items()
        return sum(access_sets.line_bytes[name] * count_number([part]) for name, part in lines)


@contextmanager
def _sets_of(at: Sized, line_bytes: int | None, operations: int) -> Iterator[AccessSets]:
    """The accesses as integer sets, inside a limit of operations. Raises NoAnswer, TooHard."""
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.library import LibraryFailure, limited
    from roofdsl.sets.misses import CannotCount
    from roofdsl.sets.previous import NotCertified

    try:
        with limited(f"the traffic at these sizes of kernel {at.name}", operations):
            yield build(at.kernel, at.values, line_bytes)
    except (CannotCount, LibraryFailure, NotCertified, NotAffine) as error:
        raise NoAnswer(str(error)) from error
