"""A lower bound on the time of any execution order: the fewest loads, at memory bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine


def least_memory_s(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> Fraction | None:
    """Seconds for the least loads into the caches (`roofdsl bound`); None without caches, arrays or a bound."""
    from roofdsl.bounds.bound import bound

    if not machine.caches or all(a.is_scalar for a in kernel.arrays):
        return None
    loads, _ = bound(kernel, values).bytes_at(values, machine.caches[-1].size_bytes)
    return Fraction(loads) / Fraction(machine.main_memory.bandwidth_bytes_per_s) if loads else None
