"""The fast memories in front of each boundary of a machine, whose capacity limits the reuse of what is loaded.

Directly behind the registers, and between the caches of cores, each core or cache counts separately: data that another
one holds must still cross its own boundary. Elsewhere, all of them count as one fast memory, because data may come from
a neighbor: caches pass lines to each other without the memory, and a multiprocessor may get what another one loads (a
cluster shares its memory; a load may be broadcast).
"""

from __future__ import annotations

from roofdsl.lang.operation_classes import MATRIX_CLASSES
from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.predict.level_traffic import is_first_level

REGISTER_BYTES = 4
"""The size of a register of a multiprocessor."""

CORE_REGISTERS_BYTES = 32 * 64
"""The maximum size of a core's vector registers: 32 of 64 B, as in x86-64 with AVX-512."""


class Front(Record):
    """Fast memories (`memories` of them) with `bytes` bytes each. A datum that two of them hold was loaded twice."""

    bytes: int
    memories: int = 1


def fronts(machine: Machine) -> tuple[Front | None, ...]:
    """What is in front of each cache and of the memory, nearest first; None if the machine does not say."""
    found: list[Front | None] = [_registers(machine)]
    for k in range(1, len(machine.caches) + 1):
        caches = machine.caches[:k]
        copies = caches[-1].copies
        alone = machine.multiprocessor is None and k < len(machine.caches)
        memories = copies if alone else 1
        held = unit_registers_bytes(machine) * -(-units(machine) // memories)
        held += sum(c.size_bytes * -(-c.copies // memories) for c in caches)
        found.append(Front(held, memories))
    return tuple(found)


def _registers(machine: Machine) -> Front | None:
    """The registers of each core or multiprocessor, if the nearest cache is an L1 and their size is known.

    None for cores with matrix units: these have registers of their own, which machines do not describe.
    """
    own = machine.multiprocessor
    stated = own.registers is not None if own is not None else not any(p.cls in MATRIX_CLASSES for p in machine.peaks)
    if not machine.caches or not is_first_level(machine.caches[0]) or not stated:
        return None
    return Front(unit_registers_bytes(machine), units(machine))


def units(machine: Machine) -> int:
    """The number of cores or multiprocessors."""
    return machine.units or max((c.copies for c in machine.caches), default=1)


def unit_registers_bytes(machine: Machine) -> int:
    """The bytes in the registers of a core or multiprocessor; 2 KiB unless the machine states them."""
    own = machine.multiprocessor
    return CORE_REGISTERS_BYTES if own is None or own.registers is None else own.registers * REGISTER_BYTES
