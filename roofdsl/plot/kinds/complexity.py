"""The plane of complexity: work over bytes."""

from __future__ import annotations

from roofdsl.plot.planes import plane_kind

KIND = plane_kind(
    "complexity",
    "Draw work over bytes.",
    "Draw work over bytes, with the machine balance, lines of equal intensity, and the launches as a box.",
)
