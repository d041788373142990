"""The planes of complexity and of time in one figure."""

from __future__ import annotations

from roofdsl.plot.planes import plane_kind

KIND = plane_kind(
    "complexity-time",
    "Draw work over bytes and run times in one figure.",
    "Draw each kernel's work and bytes (filled symbols) and run time (hollow symbols) in one figure.",
)
