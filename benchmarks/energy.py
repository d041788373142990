"""Published powers of GPUs by intensity beside the energy model: fits, their errors, and the effect of power caps.

A file has the columns device, card, flop_per_byte, gb_per_s, gflop_per_s, mhz, watt, as gpu-benches (Ernst) publishes
them for a stream in f32 with more and more operations per byte.

- fit: P = P0 + bytes/s x energy + operations/s x energy over all points (`roofdsl.measure.energy_fit`).
- left out: the error at every second point of each card, if only the others are fitted.
- Performance: that of the energy roofline with this fit, the peak of the shipped machine, the highest bandwidth
  measured, and the power at which the clock was lowered as cap; for comparison, that of the roofline without a cap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.measure import markdown
from benchmarks.published import rows_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.energy_roofline import EnergyRoofline
from roofdsl.machine.find import load_machine
from roofdsl.measure.energy_fit import EnergyFit, PowerPoint, fit_power, power_cap

COLUMNS = ("device", "card", "flop_per_byte", "gb_per_s", "gflop_per_s", "mhz", "watt")
BYTES, OPERATIONS = "bytes", "f32"


@dataclass(frozen=True)
class Fitted:
    """The fit of a device's points, or of those of one card of several. left_out: the mean error at points that were
    not fitted.
    """

    device: str
    card: str
    fit: EnergyFit
    left_out: float


@dataclass(frozen=True)
class Capped:
    """A card within its power cap: mean errors of the performance with and without it; of the points under the cap, the
    clock over the highest one, as reported, and the performance over the one without a cap, as modeled and as measured.
    """

    device: str
    card: str
    cap_w: float
    error: float
    uncapped_error: float
    clock: float
    modeled: float
    measured: float


def points_of(path: Path) -> dict[str, dict[str, list[PowerPoint]]]:
    """The points by device and card. Raises CommandError for a file that cannot be used."""
    found: dict[str, dict[str, list[PowerPoint]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(path, COLUMNS):
        rates = {BYTES: float(row["gb_per_s"]) * 1e9, OPERATIONS: float(row["gflop_per_s"]) * 1e9}
        found[row["device"]][row["card"]].append(PowerPoint(float(row["watt"]), rates, float(row["mhz"]) * 1e6))
    return found


def fitted(device: str, cards: Sequence[Sequence[PowerPoint]], card: str) -> Fitted:
    """The fit of these cards' points together."""
    every = [p for points in cards for p in points]
    kept = fit_power([p for points in cards for p in points[::2]])
    left_out = mean(abs(kept.watts(p.rates_per_s) / p.watts - 1) for points in cards for p in points[1::2])
    return Fitted(device, card, fit_power(every), left_out)


def capped(device: str, card: str, points: Sequence[PowerPoint], fit: EnergyFit) -> Capped | None:
    """What the cap does to a card; None if its clock is never lowered."""
    cap = power_cap(points)
    if cap is None:
        return None
    peak = float(load_machine(device).peak("f32").per_s)
    bandwidth = max(p.rates_per_s[BYTES] for p in points)
    energies = fit.energies_j[OPERATIONS], fit.energies_j[BYTES]
    free = EnergyRoofline(*energies, fit.constant_w, peak, bandwidth)
    under = EnergyRoofline(*energies, fit.constant_w, peak, bandwidth, cap)
    top = max(p.clock_hz or 0.0 for p in points)
    errors, without, clocks, modeled, measured = [], [], [], [], []
    for p in points:
        rate = p.rates_per_s[OPERATIONS]
        intensity = rate / p.rates_per_s[BYTES]
        slow, fast = 1 / float(under.seconds(intensity)), 1 / float(free.seconds(intensity))
        errors.append(abs(slow / rate - 1))
        without.append(abs(fast / rate - 1))
        if p.clock_hz is not None and p.clock_hz < top:
            clocks.append(p.clock_hz / top)
            modeled.append(slow / fast)
            measured.append(rate / fast)
    return Capped(device, card, cap, mean(errors), mean(without), mean(clocks), mean(modeled), mean(measured))


def answer(path: Path | None) -> str:
    """What `python -m benchmarks energy` prints. Raises CommandError without a usable file."""
    if path is None:
        raise CommandError("there is nothing to fit", "give --points CSV")
    fits, caps = [], []
    for device, cards in points_of(path).items():
        fits.append(fitted(device, list(cards.values()), "all" if len(cards) > 1 else next(iter(cards))))
        if len(cards) > 1:
            fits += [fitted(device, [points], card) for card, points in cards.items()]
        for card, points in cards.items():
            found = capped(device, card, points, fit_power(points))
            caps += [found] if found is not None else []
    parts = ["## Energy", markdown(_HEAD, [_row(f) for f in fits])]
    if caps:
        parts += ["Within a power cap:", markdown(_CAP_HEAD, [_cap_row(c) for c in caps])]
    return "\n\n".join(parts)


_HEAD = ("device", "card", "points", "P0 W", "pJ/B", "pJ/FLOP", "mean error", "greatest", "left out")
_CAP_HEAD = (
    "device", "card", "cap W", "error of the rate", "without the cap", "clock over highest",
    "rate over uncapped, modeled", "measured",
)  # fmt: skip


def _row(f: Fitted) -> tuple[str, ...]:
    energies = (f"{1e12 * f.fit.energies_j[BYTES]:.1f}", f"{1e12 * f.fit.energies_j[OPERATIONS]:.2f}")
    errors = (f.fit.mean_error, f.fit.greatest_error, f.left_out)
    shown = (f"{100 * e:.1f} %" for e in errors)
    return (f.device, f.card, str(f.fit.points), f"{f.fit.constant_w:.1f}", *energies, *shown)


def _cap_row(c: Capped) -> tuple[str, ...]:
    errors = (f"{100 * e:.1f} %" for e in (c.error, c.uncapped_error))
    return (c.device, c.card, f"{c.cap_w:.0f}", *errors, *(f"{x:.2f}" for x in (c.clock, c.modeled, c.measured)))
