"""The plane of complexity: work over bytes."""

from __future__ import annotations

from roofdsl.plot.planes import plane_kind

KIND = plane_kind(
    "complexity",
    "Work over bytes, with the balance and the launches' box.",
    "Draw work over bytes: the balance, launches as a box, lines of equal intensity.",
)
