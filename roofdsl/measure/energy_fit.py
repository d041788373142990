"""Constant power and energies from measured powers: a least-squares fit of the linear law of power.

While something runs at steady rates, its power is P = P0 + sum of rates x energies: of operations per second by type,
of bytes per second by level (Choi, Bedard, Fowler, Vuduc, A Roofline Model of Energy, IPDPS 2013, section IV, fit
energies over a time in the same way). Points at several intensities tell P0 and the energies apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roofdsl.measure.timing import median


@dataclass(frozen=True)
class PowerPoint:
    """The average power of something that ran steadily: watts, and what it did per second, by name.

    clock_hz: the clock frequency during that time, if it is known.
    """

    watts: float
    rates_per_s: Mapping[str, float]
    clock_hz: float | None = None


@dataclass(frozen=True)
class EnergyFit:
    """The law: constant_w (P0), and energies_j, the joules of one operation or byte. Errors are |fitted / measured - 1|
    of the power over the points that were fitted.
    """

    constant_w: float
    energies_j: Mapping[str, float]
    points: int
    mean_error: float
    greatest_error: float

    def watts(self, rates_per_s: Mapping[str, float]) -> float:
        """The power at these rates."""
        return self.constant_w + sum(energy * rates_per_s.get(name, 0.0) for name, energy in self.energies_j.items())


def fit_power(points: Sequence[PowerPoint]) -> EnergyFit:
    """The law that fits these points best: the least sum of squares of the errors in watts.

    P0 and the energies are not negative: the most negative one is set to 0 and the others are fitted again, until none
    is negative. Raises ValueError for fewer points than unknowns, for a rate that is 0 at all points, and if the rates
    do not differ enough to tell the unknowns apart.
    """
    import numpy as np

    names = list(dict.fromkeys(name for p in points for name in p.rates_per_s))
    if len(points) <= len(names):
        raise ValueError(f"{len(points)} points cannot tell the constant power and {len(names)} energies apart")
    rates = np.array([[p.rates_per_s.get(name, 0.0) for name in names] for p in points])
    scales = rates.max(axis=0)
    if not (scales > 0).all():
        raise ValueError("every rate must be above 0 at some point")
    columns = np.column_stack([np.ones(len(points)), rates / scales])
    watts = np.array([p.watts for p in points])
    if np.linalg.cond(columns) > _WORST:
        raise ValueError("the rates of all points are too much alike to tell energies apart")
    kept = list(range(columns.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(columns[:, kept], watts, rcond=None)
        if len(kept) == 1 or found.min() >= 0:
            break
        del kept[int(found.argmin())]
    solved = dict(zip(kept, found, strict=True))
    energies = {name: float(solved.get(k + 1, 0.0) / scales[k]) for k, name in enumerate(names)}
    errors = np.abs(columns[:, kept] @ found / watts - 1)
    return EnergyFit(float(solved.get(0, 0.0)), energies, len(points), float(errors.mean()), float(errors.max()))


_WORST = 1e4
"""The largest condition number of scaled rates at which the energies still mean something despite noise of a percent.
"""

_SLOWED = 0.995
"""A clock below this share of the highest one counts as lowered."""


def power_cap(points: Sequence[PowerPoint]) -> float | None:
    """The power at which the clock was lowered, in watts: the median over the points with a lower clock than others.

    None if fewer than three points have one. They must be points of one device.
    """
    clocks = [p.clock_hz for p in points if p.clock_hz is not None]
    if not clocks:
        return None
    lowered = [p.watts for p in points if p.clock_hz is not None and p.clock_hz < _SLOWED * max(clocks)]
    return median(lowered) if len(lowered) >= 3 else None
