"""In-core time from the kernel and what the machine states."""
from __future__ import annotations
from collections.abc import Mapping
from roofdsl.incore.model import InCore, NoInCore
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine


def in_core(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> InCore:
    raise NoInCore(f"{machine.name} states no instruction latencies")
