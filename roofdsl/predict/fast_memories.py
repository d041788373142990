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

MOST_REGISTERS = 255
"""The maximum number of registers of a thread on NVIDIA's multiprocessors."""

AVX512_REGISTERS_BYTES = 32 * 64
"""The maximum size of a core's vector registers: 32 of 64 B, as in x86-64 with AVX-512."""

CORE_TILES_BYTES = 8 * 1024
"""The registers of a core's matrix unit: 8 of 1 KiB, as in x86-64 with AMX."""


class Front(Record):
    """Fast memories (`memories` of them) with `bytes` bytes each. A datum that two of them hold was loaded twice."""

    bytes: int
    memories: int = 1


def fronts(machine: Machine) -> tuple[Front | None, ...]:
    """What is in front of each cache and of the memory, nearest first; None if the machine does not say."""
    if not machine.caches or not is_first_level(machine.caches[0]) or not _states_registers(machine):
        return (None,) * len(machine.hierarchy)
    near = unit_registers_bytes(machine) + unit_shared_bytes(machine)
    found: list[Front | None] = [Front(near, units(machine))]
    if machine.multiprocessor is None and any(p.cls in MATRIX_CLASSES for p in machine.peaks):
        # Matrix units of cores have registers of their own, which machines do not describe.
        near, found = near + CORE_TILES_BYTES, [None]
    for k in range(1, len(machine.caches) + 1):
        caches = machine.caches[:k]
        copies = caches[-1].copies
        alone = machine.multiprocessor is None and k < len(machine.caches)
        memories = copies if alone else 1
        held = near * -(-units(machine) // memories)
        held += sum(c.size_bytes * -(-c.copies // memories) for c in caches)
        found.append(Front(held, memories))
    return tuple(found)


def _states_registers(machine: Machine) -> bool:
    """Whether the size of registers is known: that of cores is, that of multiprocessors if the machine states it."""
    return machine.multiprocessor is None or machine.multiprocessor.registers is not None


def unit_shared_bytes(machine: Machine) -> int:
    """The bytes of a multiprocessor's shared memory, if it is a memory of its own; 0 if it is a part of the L1.

    It is a part of an L1 that is larger than the most that can be shared (Volta, A100, Hopper). That of AMD's compute
    units is not. On Turing, a part of it is: the L1 has its stated size beside 32 KiB of shared memory.
    """
    own = machine.multiprocessor
    shared = 0 if own is None else own.shared_bytes or 0
    return shared if shared >= machine.caches[0].size_bytes else 0


def units(machine: Machine) -> int:
    """The number of cores or multiprocessors."""
    return machine.units or max((c.copies for c in machine.caches), default=1)


def unit_registers_bytes(machine: Machine) -> int:
    """The bytes in the registers of a core or multiprocessor; 2 KiB unless the machine states them."""
    own = machine.multiprocessor
    return AVX512_REGISTERS_BYTES if own is None or own.registers is None else own.registers * REGISTER_BYTES
