"""The measurements that a page draws as points, and why it leaves others out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.loops.model import Kernel
from roofdsl.measure.measurement import Measurement

Json = dict[str, Any]


def sizes_of(kernel: Kernel, m: Measurement) -> dict[str, int] | None:
    """The values of the kernel's parameters in a measurement of it; None if it lacks one, or was made with other values
    of the constants.
    """
    stated = dict(m.parameters)
    names = [p.name for p in kernel.parameters]
    if not stated.keys() >= set(names) or not stated.items() >= dict(kernel.constants).items():
        return None
    return {name: stated[name] for name in names}


def measured_points(kernels: Sequence[Kernel], measurements: Sequence[Measurement]) -> tuple[list[Json], list[str]]:
    """The rows of the page's document, and the warnings."""
    by_name, rows, warnings = {k.name: k for k in kernels}, list[Json](), list[str]()
    for m in measurements:
        kernel = by_name.get(m.kernel)
        if kernel is None:
            warnings.append(f"the measurement of {m.kernel} is left out: the page does not show that kernel")
            continue
        values = sizes_of(kernel, m)
        if values is None:
            warnings.append(f"a measurement of {m.kernel} is left out: {_why_not(kernel, m)}")
            continue
        if m.is_stale(kernel):
            warnings.append(f"{m.kernel} has changed since it was measured")
        rows.append(_row(kernel, m, values))
    return rows, warnings


def _why_not(kernel: Kernel, m: Measurement) -> str:
    stated = dict(m.parameters)
    for name, value in kernel.constants:
        if stated.get(name, value) != value:
            return f"it was made with {name} = {stated[name]}, and the page shows {name} = {value}"
    return "it does not say all of its parameters"


def _row(kernel: Kernel, m: Measurement, values: dict[str, int]) -> Json:
    threads = f", {m.threads} thread{'s' if m.threads > 1 else ''}"
    device = m.device.get("name") or m.device.get("cpu") or m.backend
    return {
        "kernel": m.kernel,
        "values": values,
        "label": m.variant + (threads if m.backend == "cpu" else ""),
        "device": str(device),
        "state": m.state,
        "stale": m.is_stale(kernel),
        "seconds": m.median_s,
        "low": m.low_s,
        "high": m.high_s,
    }
