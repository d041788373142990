"""The seconds of each level of a machine for the bytes that an order moves across its boundary."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.levels_in_turn import in_turn
from roofdsl.predict.time_model import larger_direction

Moved = tuple[int, int]
"""The bytes that are loaded and stored across a boundary."""

Times = tuple[tuple[str, Fraction], ...]


def level_times(machine: Machine, moved: Sequence[Moved]) -> Times:
    """Seconds of each level, nearest first, and of the levels that take turns, if there are any.

    moved: the bytes across the boundary of each cache, and then of the memory.
    """
    levels = [
        LevelTime(
            at.name, loads + stores, at.bandwidth_bytes_per_s, loads_bytes=loads, stores_bytes=stores,
            duplex_bytes=larger_direction(at.duplex, loads, stores),
        )
        for at, (loads, stores) in zip(machine.hierarchy, moved, strict=True)
    ]  # fmt: skip
    turns = in_turn(levels, machine)
    in_turn_term = " + ".join(name for name, _ in turns), sum((t for _, t in turns), Fraction(0))
    return (*((level.name, level.time_s) for level in levels), *((in_turn_term,) if len(turns) > 1 else ()))
