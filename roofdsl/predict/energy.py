"""The energy of a launch: the constant power for its time, its operations, and the bytes across every boundary.

E = P0 T + sum over types of operations x energy + sum over levels of bytes x energy (`machine.energy_roofline`). T is
the expected time if there is one, else the bound. A power cap stretches it if operations and bytes alone would draw
more than P_cap - P0.
"""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import replace
from roofdsl.machine.energy_roofline import (
    Unstated,
    byte_energy,
    capped_seconds,
    constant_power,
    energy_roofline,
    has_own_energy,
    operation_energy,
)
from roofdsl.machine.model import UNFUSED, Cache, Machine, Memory
from roofdsl.machine.quantities import show_number
from roofdsl.predict.energy_record import BOUND, EXPECTED, Balances, Energy, joined, total_of
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.time_model import ComputePart


def with_energy(prediction: Prediction, machine: Machine) -> Prediction:
    """The prediction of one launch with its energy, or with the reason why there is none."""
    try:
        found = energy_of(prediction, machine)
    except Unstated as error:
        return replace(prediction, energy=None, no_energy=str(error))
    assumptions = tuple(dict.fromkeys((*prediction.assumptions, *found.assumptions)))
    return replace(prediction, energy=found, no_energy="", assumptions=assumptions)


def energy_of(prediction: Prediction, machine: Machine) -> Energy:
    """The energy of one launch. Raises Unstated if the machine does not state what it needs."""
    constant_w = constant_power(machine)
    expected = prediction.expected
    seconds = prediction.bound_s if expected is None else expected.expected_s
    notes: list[str] = []
    operations = [(part.type, part.operations * _operation_j(part, machine, notes)) for part in prediction.parts]
    moved = prediction.levels if expected is None else tuple(level.with_allocated() for level in prediction.levels)
    main = machine.main_memory.name
    of_level: dict[str, Cache | Memory] = {cache.name: cache for cache in machine.caches}
    of_level |= {memory.name: memory for memory in machine.memories}
    levels, unstated = [], []
    for level in moved:
        stated = of_level.get(level.name)
        if level.name == main and stated is not None:
            levels.append((main, level.bytes * byte_energy(machine, stated)))
        elif stated is not None and stated.energy_j_per_byte is not None:
            levels.append((level.name, level.bytes * stated.energy_j_per_byte))
        elif level.bytes:
            unstated.append(level.name)
    unstated += [link.name for link in prediction.links]
    if unstated:
        notes.append(f"no energy of their own: bytes of {', '.join(unstated)}")
    dynamic_j = total_of(operations) + total_of(levels)
    time_s = Fraction(capped_seconds(seconds, dynamic_j, constant_w, machine.power_cap_w))
    return Energy(
        time_s, seconds, BOUND if expected is None else EXPECTED, constant_w, machine.power_cap_w, joined(operations),
        tuple(levels), _balances(prediction, machine), tuple(notes),
    )  # fmt: skip


def _operation_j(part: ComputePart, machine: Machine, notes: list[str]) -> Fraction:
    """The energy of one operation of a part, in joules.

    A division or function without an energy of its own has that of as many plain operations as take the same time.
    """
    each = operation_energy(machine, part.type, part.cls)
    if has_own_energy(machine, part.type, part.cls):
        return each
    cost = machine.rate(part.type, UNFUSED).per_s / part.rate_per_s
    if cost <= 1:
        return each
    notes.append(f"{part.type}: {part.cls} with the energy of {show_number(cost, 3)} operations, as in time")
    return each * cost


def _balances(prediction: Prediction, machine: Machine) -> tuple[Balances, ...]:
    """The balances of the launch's type; none without operations, or if the machine does not state them."""
    if prediction.type is None or not prediction.work:
        return ()
    try:
        found = energy_roofline(machine, prediction.type, prediction.unit)
    except Unstated:
        return ()
    time, energy, half = (Fraction(x) for x in (found.time_balance, found.energy_balance, found.half_intensity))
    return (Balances(prediction.type, time, energy, half),)
