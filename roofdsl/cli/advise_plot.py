"""Advice as a figure: what `roofdsl advise --plot` draws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roofdsl.advise.advise import Advised
from roofdsl.advise.memory_lower_bound import least_memory_s
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.plot.advised import Change, Floor, save_advice
from roofdsl.plot.look import Look
from roofdsl.tell.advice import short


def plot_advice(path: Path, advised: Advised, machine: Machine, kernel: Kernel | None, look: Look) -> None:
    """Bars for the kernel as it is and each change by rank; lines at what arithmetic and the fewest loads take.

    kernel: None for a program, of which no fewest loads are known. Raises what `save_advice` raises.
    """
    now = advised.now.prediction
    at = ", ".join(f"{n} = {v:,}" for n, v in now.parameters)
    title = f"{advised.kernel} on {machine.name}" + (f", {at}" if at else "")
    changes = [Change("as it is", float(now.expected_s), now.bound)]
    for number, one in enumerate(advised.advice, 1):
        label = f"{number}  {short(one, advised.advice)}"
        changes.append(Change(label, float(one.estimate.time_s), one.estimate.prediction.bound, not one.estimate.exact))
    save_advice(path, changes, _floors(advised, machine, kernel), title, look=look)


def _floors(advised: Advised, machine: Machine, kernel: Kernel | None) -> list[Floor]:
    now = advised.now.prediction
    found = []
    if now.compute_s:
        kind = f", {now.type}" if now.type else ""
        found.append(Floor(f"arithmetic at its peak{kind}", float(now.compute_s)))
    values: Mapping[str, int] = dict(now.parameters)
    least = least_memory_s(kernel, values, machine) if kernel is not None else None
    if least:
        found.append(
            Floor(f"fewest loads of any order from {machine.main_memory.name}, types as they are", float(least))
        )
    return found
