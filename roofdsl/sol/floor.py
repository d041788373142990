"""The floor: the longest of the times that no order of a kernel's operations on a machine can avoid.

- Compute: the operations at the machine's rates, on matrix units if the kernel is a contraction and the machine has
  units for its types.
- Each boundary between levels: the bytes that cross it in any order, at the rate of the level behind it. Loads are the
  largest of the lower bounds of `roofdsl.bounds` for the capacity of everything in front of the boundary, and of the
  compulsory loads. Stores are the elements that the kernel leaves behind.
- The launch.

The capacity in front of a boundary counts the registers of all cores or multiprocessors, and all copies of all caches
there together, in elements of the smallest size. Real machines hold less (caches contain copies of each other's lines),
so the floor remains a floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.numbers import numbers
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_rate
from roofdsl.predict.compute import ComputeTime, compute_time
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.time_model import COMPUTE, LAUNCH, LAUNCHES, launch_seconds, pipe_cost

if TYPE_CHECKING:
    from roofdsl.bounds.bound import Bound
    from roofdsl.counts.work_at import WorkAt

COMPULSORY = "compulsory"
MATRIX_UNIT = "tensor"
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
    """All terms, longest first. unit: of the compute term, None for the ordinary pipes; notes: what is not proven."""

    kernel: str
    machine: str
    parameters: tuple[tuple[str, int], ...]
    work: int
    terms: tuple[FloorTerm, ...]
    unit: str | None
    notes: tuple[str, ...] = ()

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

    Raises InputError for an illegal kernel, CommandError for a
    missing parameter and for a type that the machine lacks, and what the analyses raise.
    """
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import work_at

    require_legal(kernel)
    values = numbers(kernel, parameters)
    work = work_at(kernel, values)
    costs = {name: Fraction(value) for name, value in kernel.costs}
    unit = kernel.unit or fitting_unit(kernel, work, machine)
    compute = compute_time(work, machine, unit=unit, costs=costs)
    terms = [_compute_term(compute, work.total, unit, machine), *_levels(kernel, values, machine)]
    launch = launch_seconds(machine).at({LAUNCHES: 1})
    terms.append(FloorTerm(LAUNCH, 1, launch, "1 launch", "launches"))
    held = tuple(sorted(terms, key=lambda t: -t.time_s))
    return Floor(kernel.name, machine.name, tuple(values.items()), work.total, held, unit, _notes(kernel))


def fitting_unit(kernel: Kernel, work: WorkAt, machine: Machine) -> str | None:
    """The matrix unit that a library would use: for contractions, if the machine has one for all types of `work`."""
    types = {name for name, operations in work.by_type.items() if operations}
    has = all(machine.stated(name, MATRIX_UNIT) is not None for name in types)
    return MATRIX_UNIT if types and has and is_contraction(kernel) else None


def _compute_term(compute: ComputeTime, work: int, unit: str | None, machine: Machine) -> FloorTerm:
    """The compute term. Separate pipes run beside each other at their own rates; else, operations take turns."""
    parts, apart = [], not machine.one_sequence and unit is None
    for part in compute.parts:
        cls = "" if part.cls == unit else f" ({part.cls})"
        cost = pipe_cost(part, machine) if apart and machine.pipes_separate else None
        rate = part.rate_per_s if cost is None else machine.peak(part.type).per_s / 2 / cost
        parts.append(f"{part.operations:,} operations in {part.type}{cls} at {show_rate(rate)}")
    on = f", on {unit} units" if unit else ""
    return FloorTerm(COMPUTE, work, compute.time_s, (" beside " if apart else " + ").join(parts) + on, "operations")


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


def _levels(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> list[FloorTerm]:
    """A term for each boundary behind a cache; on a machine without caches, for the boundary of the memory."""
    from roofdsl.counts.traffic_at import traffic_at

    once = traffic_at(kernel, values, None, None, "load_store")
    loads, stores = once.loads_bytes or 0, once.stores_bytes or 0
    found = lower_bound(kernel)
    levels = [(c.name, c.bandwidth_bytes_per_s, c.duplex) for c in machine.caches]
    memory = machine.main_memory
    levels.append((memory.name, memory.bandwidth_bytes_per_s, memory.duplex))
    terms, held = [], registers_bytes(machine)
    for k, (name, rate, duplex) in enumerate(levels):
        least, argument = loads, COMPULSORY
        if k and found is not None:
            held += machine.caches[k - 1].size_bytes * machine.caches[k - 1].copies
            needed, why = found.bytes_at(values, held)
            if needed > loads:
                least, argument = needed, why
        moved = max(least, stores) if duplex else least + stores
        formula = f"{show_bytes(least)} loaded, {show_bytes(stores)} stored, at {show_bandwidth(rate)}"
        terms.append(FloorTerm(name, moved, Fraction(moved) / rate, formula, argument))
    return terms
