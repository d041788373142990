"""The floor of a program as one launch: what its launches pass on need not leave the chip.

A program does not say which array of a launch is the result of an earlier one. So the floor assumes the best case. Any
two arrays with the same type and number of elements may be the same array, so what a launch reads may be the result of
an earlier launch. Arrays that differ in type or number of elements are different. The bytes that must come from memory,
and those that must be there at the end, are therefore never overestimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import Launched, ProgramAt, RepeatedAt
from roofdsl.machine.model import Machine
from roofdsl.predict.fast_memories import Front
from roofdsl.sol.compute_floor import executed, operations_of, together
from roofdsl.sol.floor import COMPULSORY, Floor, compute_term, in_order, launch_term, level_terms, lower_bound

NOTE = "arrays of another type or another number of elements are taken to be other arrays"

Kind = tuple[str, int]
"""The type and the number of elements of an array."""


class Moved(Record):
    """An array of a launch, and the bytes that the launch loads, stores and touches of it, each element once."""

    name: str
    kind: Kind
    loads: int
    stores: int
    touched: int


class Passed(Record):
    """An array that a launch reads and an earlier one may have written."""

    array: str
    reader: str
    bytes: int


class Known(Record):
    """What is known of a program from its graph of tensors.

    loads, stores: the bytes of its inputs and of its results. first: the kernels that read only inputs, each element
    under one name. notes: of its floor.
    """

    loads: int
    stores: int
    first: frozenset[str]
    notes: tuple[str, ...] = ()


class Fused(Record):
    """The floor of the program as one launch, and what then need not move."""

    floor: Floor
    passed: tuple[Passed, ...]


def fused(at: ProgramAt, machine: Machine, known: Known | None = None) -> Fused:
    """The floor of a program whose launches are all fused into one.

    Only launches that read nothing but inputs of the program may need more loads than these: what one computes, a later
    one may compute again instead of loading it. known: which launches these are, and what is loaded and stored; without
    it, a launch that may read an earlier result counts as one that does. Raises what counting raises, and CommandError
    for a type that the machine lacks.
    """
    arrays = [arrays_of(part) for part in at.launched]
    given = list(_given(at.launched, arrays))
    operations = together(
        [(operations_of(executed(part.kernel, dict(part.arguments)), machine), part.times) for part in at.launched]
    )
    moved = (known.loads, known.stores) if known else (_loaded(at, arrays, given), _stored(at, arrays))

    def needed(front: Front) -> tuple[int, str]:
        best = 0, COMPULSORY
        for part, passed in zip(at.launched, given, strict=True):
            from_outside = not passed if known is None else part.kernel.name in known.first
            bound = lower_bound(part.kernel) if from_outside else None
            if bound is not None:
                sizes = numbers(part.kernel, dict(part.arguments))
                best = max(best, bound.bytes_at(sizes, front.bytes, front.memories))
        return best

    terms = in_order([compute_term(operations, machine), *level_terms(machine, moved, needed), launch_term(machine)])
    notes = (*((NOTE,) if known is None else known.notes), *(("collectives are not counted",) if at.exchanges else ()))
    floor = Floor(
        at.name, machine.name, at.parameters, operations.work, terms, operations.unit, notes, operations.partly
    )
    found = [
        Passed(a.name, part.kernel.name, a.loads)
        for part, own, passed in zip(at.launched, arrays, given, strict=True)
        for a in own
        if known is None and a.name in passed and a.loads
    ]
    return Fused(floor, tuple(dict.fromkeys(found)))


def arrays_of(part: Launched) -> tuple[Moved, ...]:
    """The arrays of a launch that exist beyond it, with the bytes that move if each element moves once."""
    from roofdsl.counts.traffic_at import first_touches_at

    values = dict(part.kernel.constants) | numbers(part.kernel, dict(part.arguments))
    lines = {a.name: a for a in first_touches_at(part.kernel, dict(part.arguments))}
    found = []
    for array in part.kernel.arrays:
        if array.is_scalar or array.intent == "temp" or array.name not in lines:
            continue
        own = lines[array.name]
        kind = array.type.name, array.element_count(values)
        moved = (number * own.line_bytes for number in (own.begun_by_read, own.stored, own.begun))
        found.append(Moved(array.name, kind, *moved))
    return tuple(found)


def held_of(part: Launched, line_bytes: int | None) -> dict[str, int]:
    """For each array of `arrays_of`, the bytes of the lines that hold what the launch touches."""
    from roofdsl.counts.traffic_at import lines_at
    from roofdsl.loops.streams import ordinary

    lines = lines_at(ordinary(part.kernel), dict(part.arguments), None, line_bytes)
    return {own.name: own.begun * own.line_bytes for own in lines}


def _given(launched: Sequence[Launched], arrays: Sequence[Sequence[Moved]]) -> Iterator[frozenset[str]]:
    """For each launch, by its first execution, the arrays that earlier launches may have written.

    If fewer results than arrays of a kind exist, those with the most loads count as written.
    """
    written: dict[Kind, int] = {}
    for _, own in zip(launched, arrays, strict=True):
        left = dict(written)
        names = set()
        for array in sorted(own, key=lambda a: -a.loads):
            if array.loads and left.get(array.kind, 0) > 0:
                left[array.kind] -= 1
                names.add(array.name)
        yield frozenset(names)
        for array in own:
            if array.stores:
                written[array.kind] = written.get(array.kind, 0) + 1


def _loaded(at: ProgramAt, arrays: Sequence[Sequence[Moved]], given: Sequence[frozenset[str]]) -> int:
    """Bytes that must come from memory: for each kind, the most that a single launch needs from outside the program."""
    outside: dict[Kind, int] = {}
    for own, passed in zip(arrays, given, strict=True):
        here: dict[Kind, int] = {}
        for array in own:
            if array.name not in passed:
                here[array.kind] = here.get(array.kind, 0) + array.loads
        outside |= {kind: max(n, outside.get(kind, 0)) for kind, n in here.items()}
    return sum(outside.values()) + max(scalar_bytes(part.kernel)[0] for part in at.launched)


def _stored(at: ProgramAt, arrays: Sequence[Sequence[Moved]]) -> int:
    """Bytes that must be in memory at the end: for each kind, what the last launch that writes it stores, unless a
    later launch reads that kind.
    """
    last: dict[Kind, int] = {}
    for place in _by_last_time(at.steps):
        for kind in {a.kind for a in arrays[place] if a.loads}:
            last.pop(kind, None)
        for kind in {a.kind for a in arrays[place] if a.stores}:
            last[kind] = sum(a.stores for a in arrays[place] if a.kind == kind)
    return sum(last.values()) + max(scalar_bytes(part.kernel)[1] for part in at.launched)


def _by_last_time(steps: Sequence[int | RepeatedAt]) -> list[int]:
    """The launches (by index) in the order of their last executions."""

    def once(part: Sequence[int | RepeatedAt]) -> Iterator[int]:
        for step in part:
            if isinstance(step, int):
                yield step
            else:
                yield from once(step.steps)

    order: Mapping[int, None] = dict.fromkeys(reversed(list(once(steps))))
    return list(order)[::-1]
