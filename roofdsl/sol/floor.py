"""The floor: the longest of the times that no order of a kernel's operations on a machine can avoid.

- Compute: the operations at the machine's rates; sums of products on matrix units if the machine has some for their
  types (`compute_floor`).
- Each boundary between levels: the bytes that must cross it in any order, at the rate of the level behind it. Loads are
  the compulsory loads or, if larger, the lower bound of `roofdsl.bounds` for the capacity of everything in front of the
  boundary. Stores are the elements that the kernel leaves behind.
- The launch.

The capacity in front of a boundary (`capacity`) adds up what registers and caches there can hold. Real machines hold
less, since caches contain copies of each other's lines, so the floor remains a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.machine.quantities import show_bandwidth, show_bytes
from roofdsl.predict.fast_memories import Front, fronts
from roofdsl.predict.time_model import COMPUTE, LAUNCH, LAUNCHES, launch_seconds
from roofdsl.sol.compute_floor import Executed, Operations, compute_floor, executed, operations_of
from roofdsl.store.in_process import in_process
from roofdsl.store.memo import recall

if TYPE_CHECKING:
    from roofdsl.bounds.bound_at_sizes import LowerBound

COMPULSORY = "compulsory"
UNCOUNTED = (
    "the bytes that any order must move take too long to count at these sizes, so the floor has no term for them"
)
KEPT = 256
"""The maximum number of bounds that a long-running process keeps."""


class FloorTerm(Record):
    """One unavoidable time: its name ("compute", a level or "launch"), how it is made up, and the argument for it.

    formula: how `time_s` is made up, in words. amount: the number of operations, bytes or launches. argument:
    "compulsory", an argument of `roofdsl bound` ("partition", "stencil", ...), "operations" or "launches". parts: the
    parts of the formula if it has several, one for each type and class of operations.
    """

    name: str
    amount: int
    time_s: Fraction
    formula: str
    argument: str
    parts: tuple[str, ...] = ()


class Floor(Record):
    """All terms, the longest first.

    kernel: the name of the kernel or program. unit: the matrix unit that does the whole compute term, or None; partly:
    the unit that does a part of it alongside the ordinary pipes. notes: why a bound may differ from the actual need.
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


@in_process(KEPT)
def lower_bound(kernel: Kernel) -> LowerBound | None:
    """The lower bound on loads for symbolic sizes, found once unless a limit cuts it short; None for a kernel without
    arrays or without such a bound.
    """

    def found() -> LowerBound:
        from roofdsl.bounds.bound import bound

        return bound(kernel).numbers

    if all(a.is_scalar for a in kernel.arrays):
        return None
    try:
        return recall("bound", kernel, (), found)
    except (CommandError, InputError):
        return None


class Needs(Record):
    """What a kernel needs at its sizes on any machine.

    loads, stores: bytes that must cross every boundary; None if they take too long to count. The floor then has no
    terms for them.
    """

    kernel: Kernel
    values: tuple[tuple[str, int], ...]
    launch: Executed
    loads: int | None
    stores: int | None
    bound: LowerBound | None


def floor(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Floor:
    """The floor of one launch of `kernel` at `parameters` that starts with all data in memory.

    Raises InputError for an illegal kernel, CommandError for a missing parameter and for a type that the machine lacks,
    and what the analyses raise.
    """
    return floor_on(machine, needs(kernel, parameters, machine))


def needs(kernel: Kernel, parameters: Mapping[str, int], machine: Machine | None = None) -> Needs:
    """The part of a floor that is the same on all machines. Raises what `floor` raises.

    machine: one that must have the types of the kernel, which is checked before bytes are counted.
    """
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import OutOfReach, traffic_at

    require_legal(kernel)
    values = numbers(kernel, parameters)
    launch = executed(kernel, values)
    if machine is not None:
        compute_term(operations_of(launch, machine), machine)
    kernel = ordinary(kernel)  # each datum moves once, past the caches or not
    given = tuple(values.items())
    try:
        once = traffic_at(kernel, values, None, None, "load_store")
    except OutOfReach:
        return Needs(kernel, given, launch, None, None, None)
    return Needs(kernel, given, launch, once.loads_bytes or 0, once.stores_bytes or 0, lower_bound(kernel))


def floor_on(machine: Machine, found: Needs) -> Floor:
    """The floor on a machine. Raises CommandError for a type that it lacks."""
    values, bound = dict(found.values), found.bound

    def needed(front: Front) -> tuple[int, str]:
        return (0, COMPULSORY) if bound is None else bound.bytes_at(values, front.bytes, front.memories)

    operations = operations_of(found.launch, machine)
    known = found.loads is not None and found.stores is not None
    levels = level_terms(machine, (found.loads or 0, found.stores or 0), needed) if known else []
    launches = [launch_term(machine)] if operations.work or found.loads or found.stores else []
    terms = in_order([compute_term(operations, machine), *levels, *launches])
    notes = _notes(bound) if known else (UNCOUNTED,)
    return Floor(
        found.kernel.name, machine.name, found.values, operations.work, terms, operations.unit, notes, operations.partly
    )  # fmt: skip


def in_order(terms: list[FloorTerm]) -> tuple[FloorTerm, ...]:
    """The terms, longest first."""
    return tuple(sorted(terms, key=lambda t: -t.time_s))


def compute_term(operations: Operations, machine: Machine) -> FloorTerm:
    """The term for the operations, at the machine's rates. Raises CommandError for a type that it lacks."""
    found = compute_floor(operations, machine)
    return FloorTerm(COMPUTE, operations.work, found.time_s, found.formula, "operations", found.parts)


def launch_term(machine: Machine) -> FloorTerm:
    """One launch."""
    return FloorTerm(LAUNCH, 1, launch_seconds(machine).at({LAUNCHES: 1}), "1 launch", "launches")


def _notes(bound: LowerBound | None) -> tuple[str, ...]:
    """The reasons why the bound on the loads may be lower than the actual need."""
    if bound is None:
        return ("no lower bound on loads is known beyond the compulsory ones",)
    return tuple(f"no further bound on loads: {note}" for note in bound.notes)


def level_terms(machine: Machine, once: tuple[int, int], needed: Callable[[Front], tuple[int, str]]) -> list[FloorTerm]:
    """A term for the boundary in front of each cache and of the memory.

    once: the bytes that must be loaded and stored across every boundary. needed: gives, for what is in front of a
    boundary, the bytes that any order must load across it, and the argument for them. Code of cores may bypass the
    caches with its stores, so these only have to reach the memory, at the rate that is stated for such stores if it is
    the faster one, as in the bound of `predict`.
    """
    loads, stores = once
    past = machine.main_memory.streamed_bytes_per_s if machine.multiprocessor is None else None
    terms = []
    for at, front in zip(machine.hierarchy, fronts(machine), strict=True):
        least, argument = loads, COMPULSORY
        if front is not None:
            bytes_needed, why = needed(front)
            if bytes_needed > loads:
                least, argument = bytes_needed, why
        through = stores if at is machine.main_memory or machine.multiprocessor is not None else 0
        terms.append(_level_term(at, (least, through), argument, past))
    return terms


def _level_term(at: Cache | Memory, moved: tuple[int, int], argument: str, past: Fraction | None) -> FloorTerm:
    """The term of one boundary. moved: the bytes that must be loaded and stored across it."""
    loads, stores = moved
    rate = at.bandwidth_bytes_per_s
    fastest = rate if past is None else max(rate, past)  # only the memory has any stores then
    loads_s, stores_s = Fraction(loads) / rate, Fraction(stores) / fastest
    formula = f"{show_bytes(loads)} loaded, {show_bytes(stores)} stored, at {show_bandwidth(rate)}"
    if stores and fastest > rate:
        formula = f"{show_bytes(loads)} loaded at {show_bandwidth(rate)}, {show_bytes(stores)} stored past the caches "
        formula += f"at {show_bandwidth(fastest)}"
    if at.duplex:
        return FloorTerm(at.name, max(loads, stores), max(loads_s, stores_s), formula, argument)
    return FloorTerm(at.name, loads + stores, loads_s + stores_s, formula, argument)
