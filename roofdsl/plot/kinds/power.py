"""The roofline of power: the average power over intensity, between the constant power and a power cap."""

from __future__ import annotations

from roofdsl.lang.units import parse_power
from roofdsl.plot.energy_kind import energy_kind, measured_spot
from roofdsl.plot.energy_plane import Spot

FORM = "LABEL=I@POWER"


def _measured(text: str) -> Spot:
    """`mine=0.25@230 W`. Raises ValueError."""
    return measured_spot(text, lambda number: float(parse_power(number)), FORM)


KIND = energy_kind(
    "power",
    "Draw the average power over intensity.",
    "Draw the roofline of power: the average power over intensity, with the constant power, a power cap, and kernels "
    "(FILEs) as points.",
    _measured,
    FORM,
)
