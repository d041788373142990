"""The roofline of energy: operations per joule over intensity, an arch, beside the roofline of time."""

from __future__ import annotations

from roofdsl.lang.units import parse_rate
from roofdsl.plot.energy_kind import energy_kind, measured_spot
from roofdsl.plot.energy_plane import Spot

FORM = "LABEL=I@EFFICIENCY"


def _measured(text: str) -> Spot:
    """`mine=0.25@1.2 GFLOP/J`. Raises ValueError."""

    def value(number: str) -> float:
        rate = number.strip()
        if not rate.endswith("/J"):
            raise ValueError(f"`{number}` is not an efficiency; write it like `1.2 GFLOP/J`")
        return float(parse_rate(rate.removesuffix("J") + "s"))

    return measured_spot(text, value, FORM)


KIND = energy_kind(
    "efficiency",
    "Draw operations per joule over intensity.",
    "Draw the roofline of energy: operations per joule over intensity, an arch, with kernels (FILEs) as points and the "
    "roofline of time beside it.",
    _measured,
    FORM,
)
