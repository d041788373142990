"""The plane of time: compute time over bandwidth time."""

from __future__ import annotations

from roofdsl.plot.planes import plane_kind

KIND = plane_kind(
    "time",
    "Draw compute time over bandwidth time.",
    "Draw compute time over bandwidth time, with lines of equal run time and the launches as a box.",
)
