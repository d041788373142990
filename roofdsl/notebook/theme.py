"""Colours of a highlighted source in a notebook, readable on light and dark backgrounds."""

from __future__ import annotations

STYLE = (
    ".roofdsl-source pre { line-height: 1.45 }"
    ".roofdsl-source .k, .roofdsl-source .kd, .roofdsl-source .ow { color: #7a6be0; font-weight: bold }"
    ".roofdsl-source .kt, .roofdsl-source .s2 { color: #14906f }"
    ".roofdsl-source .kc, .roofdsl-source .m { color: #c8691c }"
    ".roofdsl-source .nf, .roofdsl-source .nc { color: #2a86c7; font-weight: bold }"
    ".roofdsl-source .nb, .roofdsl-source .na { color: #b65a8f }"
    ".roofdsl-source .c1 { color: #7d8590; font-style: italic }"
)
