"""A lower bound on the time of any execution order: the fewest loads, at memory bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.fast_memories import fronts


def least_memory_s(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> Fraction | None:
    """Seconds for the least loads into all registers and caches together (`roofdsl bound` at their size).

    None without arrays, if there are no loads, or if the machine does not state what its registers and caches hold.
    """
    from roofdsl.bounds.bound import bound

    held = fronts(machine)[-1]
    if held is None or all(a.is_scalar for a in kernel.arrays):
        return None
    loads, _ = bound(kernel, values).bytes_at(values, held.bytes)
    return Fraction(loads) / Fraction(machine.main_memory.bandwidth_bytes_per_s) if loads else None
