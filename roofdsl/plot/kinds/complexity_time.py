"""The planes of complexity and of time in one figure."""

from __future__ import annotations

from roofdsl.plot.planes import plane_kind

KIND = plane_kind(
    "complexity-time",
    "Both in one: closed work and bytes, open run time.",
    "Draw work and bytes (closed) and run time (open) of each kernel together.",
)
