"""Whether a claimed or measured time is possible."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from roofdsl.lang.record import Record
from roofdsl.sol.floor import Floor, FloorTerm

NEAR = Fraction(1, 4)
"""A time is called near the floor if it exceeds the floor by at most this share of it."""

Verdict = Literal["impossible", "near the floor", "possible"]


class Claim(Record):
    """A claimed time in seconds, with the verdict. violated: the terms that are longer than it, longest first."""

    measured_s: Fraction
    verdict: Verdict
    above_floor: Fraction
    violated: tuple[FloorTerm, ...]


def judge(measured_s: Fraction, floor: Floor) -> Claim:
    """The verdict on `measured_s`, the time of one launch that starts with its data in memory.

    above_floor: the ratio of the time to the floor, minus one. A time below the floor is impossible on this machine:
    the terms in `violated` need longer.
    """
    violated = tuple(t for t in floor.terms if measured_s < t.time_s)
    above = measured_s / floor.time_s - 1 if floor.time_s else Fraction(0)
    verdict: Verdict = "impossible" if violated else "near the floor" if above <= NEAR else "possible"
    return Claim(measured_s, verdict, above, violated)
