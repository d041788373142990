"""Ceilings under a core's peak from its instructions: code without vectors, and code that is a single dependent chain.

Williams, Waterman and Patterson, "Roofline" (CACM 2009), call them "without SIMD" and "without ILP".
"""

from __future__ import annotations

from roofdsl.incore.classes import Kind
from roofdsl.incore.rates import Rates, rates_of
from roofdsl.incore.result import NoInCore
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES
from roofdsl.machine.model import Machine


class CoreCeiling(Record):
    """Operations per second of all cores."""

    name: str
    per_s: float


def core_ceilings(machine: Machine, type_name: str) -> tuple[CoreCeiling, ...]:
    """The ceilings of a floating-point type, highest first; none if the machine states no clock or too few
    instructions.
    """
    if machine.clock_hz is None or not any(i.type == type_name for i in machine.instructions):
        return ()
    try:
        rates = rates_of(machine)
        widest = max(i.bits for i in machine.instructions if i.cls in ("add", "fma") and i.type == type_name)
        fused = machine.stated(type_name, "fma") is not None
        one = 8 * TYPES[type_name].bytes
        scalar = _per_cycle(rates, type_name, one, fused)
        chain = rates.cost(Kind("fma" if fused else "add", type_name, widest)).latency
    except (NoInCore, ValueError):
        return ()
    per_s = float(machine.clock_hz) * (machine.units or 1)
    found = (
        CoreCeiling(f"{type_name} no SIMD", scalar * per_s),
        CoreCeiling(f"{type_name} no ILP", (1 + fused) * widest / one / chain * per_s),
    )
    return tuple(sorted(found, key=lambda c: -c.per_s))


def _per_cycle(rates: Rates, type_name: str, bits: int, fused: bool) -> float:
    """The operations of independent instructions in a cycle; without fused pairs, of equally many sums and products."""
    if fused:
        cost = rates.cost(Kind("fma", type_name, bits))
        return 2 * len(cost.ports) / cost.busy
    add, mul = (rates.cost(Kind(cls, type_name, bits)) for cls in ("add", "mul"))
    together = add.busy / len(add.ports) + mul.busy / len(mul.ports)
    apart = max(add.busy / len(add.ports), mul.busy / len(mul.ports))
    return 2 / (apart if not set(add.ports) & set(mul.ports) else together)
