"""Measurements: times, rates, and how the results were verified."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.machine.quantities import group, show_energy, show_power, show_rate, show_time
from roofdsl.measure.energy_counter import ENERGY, measured_j, measured_w, why_missing
from roofdsl.measure.measurement import CORES, Measurement
from roofdsl.tell.blocks import Block, Gap, figures, line
from roofdsl.tell.titles import short_sizes

CACHES = {
    "warm": "caches: as the previous call left them, which `predict --warm` assumes (`predict` alone: empty caches)",
    "cold": "caches: emptied before each call, as `predict` assumes",
    "rotated": "caches: without the data of a call, whose buffers take turns, as `predict` assumes",
}
"""What a call found in the caches, by the state of a measurement, and which prediction is for that."""


def variant_of(measured: Measurement) -> str:
    """The variant, and the number of cores if it was requested: `parallel, 2 cores`."""
    cores = measured.details.get(CORES)
    return measured.variant if cores is None else f"{measured.variant}, {cores} core{'' if cores == 1 else 's'}"


def blocks(found: Sequence[Measurement]) -> list[Block]:
    """One line for each measurement: median, 10th and 90th percentile, rate, error, and number of calls."""
    rows = []
    for m in found:
        times = [show_time(t, 4) for t in (m.median_s, m.low_s, m.high_s)]
        rate = show_rate(m.rate_per_s, m.operation) if m.work else "no operations"
        calls = f"{len(m.times_s)} x {group(m.calls_per_repeat)}"
        rows.append([_kernel(m), variant_of(m), *times, rate, _error(m), calls])
    head = ("kernel", "variant", "median", "10 %", "90 %", "rate", "error", "calls")
    table = figures(rows, head, range(2, 8), depth=0, strong=True)
    states = [line(CACHES[state], 0) for state in dict.fromkeys(m.state for m in found)]
    return [table, *states, *(block for m in found for block in _by_launch(m)), *_energies(found)]


def _energies(found: Sequence[Measurement]) -> list[Block]:
    """The measured energies, one line each, and why others could not be measured."""
    rows = []
    for m in found:
        joules, watts = measured_j(m.details), measured_w(m.details)
        if joules is not None and watts is not None:
            efficiency = f"{show_rate(m.work / joules, m.operation)}/W" if m.work else ""
            told = [show_energy(joules), show_power(watts), efficiency]
            rows.append([_kernel(m), variant_of(m), *told, str(m.details[ENERGY].get("counter", ""))])
    out: list[Block] = []
    if rows:
        head = ("energy", "", "of a call", "power", "efficiency", "counted")
        out += [Gap(), figures(rows, head, (2, 3, 4), depth=0)]
    missing = dict.fromkeys(why for m in found if (why := why_missing(m.details)))
    return out + ([Gap()] if missing else []) + [line(f"no energy: {why}", 0) for why in missing]


def _kernel(m: Measurement) -> str:
    """`gemv n=64`."""
    return f"{m.kernel} {short_sizes(m.parameters)}".strip()


def _error(m: Measurement) -> str:
    return f"{m.verified.max_error:.1e}" if m.verified.holds else "cannot be verified"


def _by_launch(m: Measurement) -> list[Block]:
    """The launches of a program by kernel and size, the slowest first, with the variants that ran and their errors."""
    if not m.by_launch:
        return []
    rows = []
    for part in sorted(m.by_launch, key=lambda part: -part.median_s):
        times = [show_time(part.of.median_s, 4), show_time(part.median_s, 4), f"{part.median_s / m.median_s:.1%}"]
        rows.append([_kernel(part.of), part.of.variant, group(part.launches), *times, _error(part.of)])
    head = ("kernel", "variant", "launches", "each", "together", "", "error")
    return [
        Gap(),
        line(f"launches of {m.kernel}, {m.variant}, by kernel and size:", 0),
        figures(rows, head, range(2, 7)),
    ]
