"""Lines that gather instructions load element by element: those of `x[2*i]`, and of `real(z[i])` for complex `z`.

Compilers load such elements with gathers. The lines follow each other, but the hardware does not fetch them ahead as it
does those of streams. A line takes the longer, the more of its elements are loaded one by one, since each of these
loads takes up room in the core. A machine states the rate of lines with one load each (`strided`, `strided_odd`) and
with eight (`gathered`). In between, and beyond, the time of a line is taken to grow as a power of the number of its
loads, through these two points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import log

from roofdsl.lang.record import Record
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import within_caches
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import Lines, Reference, all_behind, directions, references
from roofdsl.predict.strided_times import from_each

MEASURED = 8
"""The loads of a line at the rate `gathered`."""

MOST = 16
"""The loads of a line in one pass over it: all elements of four bytes. More of them find the line in a nearer cache."""


class Gathered(Record):
    """The lines of one launch that gathers load, if the code has gathers: the arrays, and the bytes that their lines
    load across each boundary behind the first cache, nearest first.
    """

    arrays: tuple[str, ...]
    lines: tuple[Lines, ...]


def gathered_of(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, levels: Sequence[LevelTime], convention: Traffic
) -> Gathered | None:
    """What gathers would load in one launch; None if no array is accessed such that compilers gather its elements, and
    if the machine states no rate of gathered lines.

    levels: the exact bytes of every level, counted by this convention.
    """
    from roofdsl.sets.library import TooHard

    line = machine.caches[0].line_bytes if machine.caches else None
    if line is None or is_indirect(kernel) or not any(part.gathered_bytes_per_s for part in machine.hierarchy):
        return None
    behind = all_behind(levels, machine)
    if behind is None:
        return None
    try:
        found = list(references(sized(within_caches(kernel), values)))
    except TooHard:
        return None
    own = _gathered(found, line)
    if not own:
        return None
    # A level moves the bytes over which the gathers pass, unless it moves less in all: some are hits there, and some of
    # its bytes belong to other accesses.
    passed = sum(r.executed * abs(r.step_bytes) for r in own)
    moved = [r for r in found if r not in own and (r.loaded or convention != "load_store")]
    others = sum(r.executed * min(abs(r.step_bytes), line) for r in moved)
    lines = tuple(Lines(v.name, min(passed, max(0, directions(v)[0] - others)), 0) for v in behind)
    return Gathered(tuple(dict.fromkeys(r.array.name for r in own)), lines)


def _gathered(found: Sequence[Reference], line: int) -> list[Reference]:
    """The loads of elements that are apart but in common lines. If no elements are apart, the parts of complex numbers;
    otherwise it is not known whether gathers load these too, and they count as a stream.
    """
    apart = [r for r in found if r.loaded and abs(r.step_bytes) > r.array.type.bytes]
    if apart:
        return [r for r in apart if abs(r.step_bytes) < line]
    return [r for r in found if r.loaded and r.array.type.kind == "complex" and r.step_bytes]


def gathered_seconds(found: Gathered, loads: float, machine: Machine) -> Fraction:
    """The seconds of the lines that gathers load, from the levels that state how long these take.

    loads: the elements that all gathers of the launch load.
    """
    if not found.lines or not found.lines[0].loaded:
        return Fraction(0)
    line = machine.caches[0].line_bytes or 1
    each = min(float(MOST), max(1.0, loads * line / found.lines[0].loaded))
    return sum((loaded * time for loaded, time in _times(found, each, machine)), Fraction(0))


def _times(found: Gathered, each: float, machine: Machine) -> Iterator[tuple[Fraction, Fraction]]:
    """(bytes, seconds of a byte) of the lines from each level, with so many loads of each line."""
    for part, loaded, _ in from_each(found.lines, machine):
        if part.gathered_bytes_per_s:
            yield loaded, _byte_s(part, each)


def _byte_s(part: Cache | Memory, each: float) -> Fraction:
    """The seconds of a byte of lines with so many loads each: a power law through the times of one and of eight."""
    assert part.gathered_bytes_per_s is not None
    odd = part.strided_odd_bytes_per_s if isinstance(part, Cache) else None
    one, eight = odd or part.strided_bytes_per_s or part.bandwidth_bytes_per_s, part.gathered_bytes_per_s
    return Fraction(float(one / eight) ** log(each, MEASURED)).limit_denominator(10**6) / one
