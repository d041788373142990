"""What a launch loads of an array that earlier launches touched: the bytes that it finds in a cache which kept them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from roofdsl.lang.types import TYPES
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import Launched
from roofdsl.sol.fused import Moved


def found_again(reader: Launched, array: Moved, before: Sequence[tuple[Launched, Moved]]) -> int:
    """The bytes of `array.loads` that the launches `before` touched; each comes with the array as it touches it.

    All have the array's name, type and number of elements. If the elements cannot be compared, the result is what they
    must have in common because the array has no more elements: a lower bound.
    """
    whole = TYPES[array.kind[0]].bytes * array.kind[1]
    least = max((array.loads + own.touched - whole for _, own in before), default=0)
    if least >= array.loads:
        return array.loads
    new = _only_in_reader(reader, array, [part for part, _ in before])
    return max(0, least if new is None else array.loads - new)


def _only_in_reader(reader: Launched, array: Moved, before: Sequence[Launched]) -> int | None:
    """The bytes that the reader reads and no launch before it touches; None if the elements cannot be compared."""
    from roofdsl.sets.count import count_number
    from roofdsl.sets.library import LibraryFailure, TooHard, limited
    from roofdsl.sets.misses import CannotCount, Part
    from roofdsl.sets.sizes import NotAffine

    if len({_layout(part, array.name) for part in (reader, *before)}) > 1:
        return None
    try:
        with limited(f"what {reader.kernel.name} loads of {array.name}"):
            new = _elements(reader, array.name, reads_only=True)
            for part in before:
                new = new.subtract(_elements(part, array.name, reads_only=False))
            return TYPES[array.kind[0]].bytes * count_number([Part(new.coalesce())])
    except (CannotCount, LibraryFailure, NotAffine, TooHard):
        return None


def _layout(part: Launched, name: str) -> tuple[bool, tuple[int, ...]]:
    values = dict(part.kernel.constants) | numbers(part.kernel, dict(part.arguments))
    array = next(a for a in part.kernel.arrays if a.name == name)
    return array.column_major, tuple(d.evaluate(values) for d in array.dims)


def _elements(part: Launched, name: str, *, reads_only: bool) -> Any:
    """The elements of an array that a launch touches or, if reads_only, that accesses touch which begin with a read."""
    from roofdsl.loops.sized import sized
    from roofdsl.loops.streams import ordinary
    from roofdsl.sets.access_sets import build

    at = sized(ordinary(part.kernel), dict(part.arguments))
    references = [r for r in build(at.kernel, at.values, None).references if r.array.name == name]
    places = [r.location.range() for r in references if r.reads_first or not reads_only]
    return reduce(lambda a, b: a.union(b), places)
