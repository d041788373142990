"""The floor: the longest of the times that no order of a kernel's operations on a machine can avoid.

- Compute: the operations at the machine's rates; sums of products on matrix units if the machine has some for their
  types (`compute_floor`).
- Each boundary between levels: the bytes that cross it in any order, at the rate of the level behind it. Loads are the
  largest of the lower bounds of `roofdsl.bounds` for the capacity of everything in front of the boundary, and of the
  compulsory loads. Stores are the elements that the kernel leaves behind.
- The launch.

The capacity in front of a boundary counts the registers of all cores or multiprocessors, and all copies of all caches
there together. Real machines hold less (caches contain copies of each other's lines), so the floor remains a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.numbers import numbers
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes
from roofdsl.predict.time_model import COMPUTE, LAUNCH, LAUNCHES, launch_seconds
from roofdsl.sol.compute_floor import Operations, compute_floor, operations_of

if TYPE_CHECKING:
    from roofdsl.bounds.bound import Bound

COMPULSORY = "compulsory"
REGISTER_BYTES = 4
"""The size of a register of a multiprocessor."""
CORE_REGISTERS_BYTES = 32 * 64
"""The maximum size of a core's vector registers: 32 of 64 B, as in x86-64 with AVX-512."""
KEPT = 256
"""The number of bounds that a long-running process keeps."""


class FloorTerm(Record):
    """One unavoidable time: its name ("compute", a level or "launch"), how it is made up, and the argument for it.

    formula: the numbers that give `time_s`, in words. amount: operations, bytes or launches. argument: "compulsory", an
    argument of `roofdsl bound` ("partition", "stencil", ...), "operations" or "launches".
    """

    name: str
    amount: int
    time_s: Fraction
    formula: str
    argument: str


class Floor(Record):
    """All terms, the longest first.

    kernel: or a program. unit: the matrix unit of the whole compute term, or None; partly: the unit that does a part of
    it beside the ordinary pipes. notes: what is not proven.
    """

    kernel: str
    machine: str
    parameters: tuple[tuple[str, int], ...]
    work: int
    terms: tuple[FloorTerm, ...]
    unit: str | None
    notes: tuple[str, ...] = ()
    partly: str | None = None

    @property
    def time_s(self) -> Fraction:
        return self.by.time_s

    @property
    def by(self) -> FloorTerm:
        """The term that is the floor."""
        return self.terms[0]


@lru_cache(KEPT)
def lower_bound(kernel: Kernel) -> Bound | None:
    """The lower bound on loads for symbolic sizes, found once; None for a kernel without arrays or without a form."""
    from roofdsl.bounds.bound import bound

    if all(a.is_scalar for a in kernel.arrays):
        return None
    try:
        return bound(kernel)
    except (CommandError, InputError):
        return None


def floor(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Floor:
    """The floor of one launch of `kernel` at `parameters`, with all data in the memory at first.

    Raises InputError for an illegal kernel, CommandError for a missing parameter and for a type that the machine lacks,
    and what the analyses raise.
    """
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import traffic_at

    require_legal(kernel)
    values = numbers(kernel, parameters)
    operations = operations_of(kernel, values, machine)
    kernel = ordinary(kernel)  # each datum moves once, past the caches or not
    once = traffic_at(kernel, values, None, None, "load_store")
    found = lower_bound(kernel)

    def needed(held_bytes: int) -> tuple[int, str]:
        return (0, COMPULSORY) if found is None else found.bytes_at(values, held_bytes)

    levels = level_terms(machine, (once.loads_bytes or 0, once.stores_bytes or 0), needed)
    terms = in_order([compute_term(operations, machine), *levels, launch_term(machine)])
    return Floor(
        kernel.name, machine.name, tuple(values.items()), operations.work, terms, operations.unit, _notes(kernel),
        operations.partly,
    )  # fmt: skip


def in_order(terms: list[FloorTerm]) -> tuple[FloorTerm, ...]:
    """The longest first."""
    return tuple(sorted(terms, key=lambda t: -t.time_s))


def compute_term(operations: Operations, machine: Machine) -> FloorTerm:
    """The operations at the machine's rates. Raises CommandError for a type that it lacks."""
    found = compute_floor(operations, machine)
    return FloorTerm(COMPUTE, operations.work, found.time_s, found.formula, "operations")


def launch_term(machine: Machine) -> FloorTerm:
    """One launch."""
    return FloorTerm(LAUNCH, 1, launch_seconds(machine).at({LAUNCHES: 1}), "1 launch", "launches")


def _notes(kernel: Kernel) -> tuple[str, ...]:
    """The reasons why the bound on the loads may be lower than the actual need."""
    found = lower_bound(kernel)
    if found is None:
        return ("no lower bound on loads is known beyond the compulsory ones",)
    return tuple(f"no further bound on loads: {note}" for note in found.notes)


def registers_bytes(machine: Machine) -> int:
    """The bytes in the registers of all cores or multiprocessors; 2 KiB for each unless the machine states them."""
    own = machine.multiprocessor
    each = CORE_REGISTERS_BYTES if own is None or own.registers is None else own.registers * REGISTER_BYTES
    return each * (machine.units or max((c.copies for c in machine.caches), default=1))


def level_terms(machine: Machine, once: tuple[int, int], needed: Callable[[int], tuple[int, str]]) -> list[FloorTerm]:
    """A term for each boundary behind a cache, and for that of the memory on a machine without caches.

    once: bytes that must be loaded and stored across every boundary. needed: the bytes of loads that any order needs
    with so many bytes in front of a boundary, and the argument for them.
    """
    loads, stores = once
    levels = [(c.name, c.bandwidth_bytes_per_s, c.duplex) for c in machine.caches]
    memory = machine.main_memory
    levels.append((memory.name, memory.bandwidth_bytes_per_s, memory.duplex))
    terms, held = [], registers_bytes(machine)
    for k, (name, rate, duplex) in enumerate(levels):
        least, argument = loads, COMPULSORY
        if k:
            held += machine.caches[k - 1].size_bytes * machine.caches[k - 1].copies
            bytes_needed, why = needed(held)
            if bytes_needed > loads:
                least, argument = bytes_needed, why
        moved = max(least, stores) if duplex else least + stores
        formula = f"{show_bytes(least)} loaded, {show_bytes(stores)} stored, at {show_bandwidth(rate)}"
        terms.append(FloorTerm(name, moved, Fraction(moved) / rate, formula, argument))
    return terms
