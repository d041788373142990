"""The floor of a program as one launch: what its launches pass on need not leave the chip.

A program does not say which array of a launch is the result of an earlier one. So the floor takes every chance: an
array that a launch reads may be any result of an earlier launch with the same type and number of elements, and arrays
of two launches with the same type and number of elements may be the same. Arrays that differ in one of these are
different. The data that must then come from the memory, and must stay there at the end, are never more than in truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.numbers import numbers
from roofdsl.loops.program_at import Launched, ProgramAt, RepeatedAt
from roofdsl.machine.model import Machine
from roofdsl.sol.capacity import Front
from roofdsl.sol.compute_floor import executed, operations_of, together
from roofdsl.sol.floor import COMPULSORY, Floor, compute_term, in_order, launch_term, level_terms, lower_bound

NOTE = "arrays of another type or another number of elements are taken to be other arrays"

Kind = tuple[str, int]
"""Type and number of elements of an array."""


class Moved(Record):
    """An array of a launch: bytes that the launch loads and stores of it, each element once."""

    name: str
    kind: Kind
    loads: int
    stores: int


class Passed(Record):
    """An array that a launch reads and an earlier one may have written."""

    array: str
    reader: str
    bytes: int


class Fused(Record):
    """The floor of the program as one launch, and what need not move then."""

    floor: Floor
    passed: tuple[Passed, ...]


def fused(at: ProgramAt, machine: Machine, once: tuple[int, int] | None = None) -> Fused:
    """The floor of all launches of a program as one.

    once: the bytes of the inputs and of the results, if they are known. Raises what counting raises, CommandError for a
    missing type.
    """
    arrays = [arrays_of(part) for part in at.launched]
    given = list(_given(at.launched, arrays))
    operations = together(
        [(operations_of(executed(part.kernel, dict(part.arguments)), machine), part.times) for part in at.launched]
    )
    moved = once or (_loaded(at, arrays, given), _stored(at, arrays))

    def needed(front: Front) -> tuple[int, str]:
        best = 0, COMPULSORY
        for part, own, passed in zip(at.launched, arrays, given, strict=True):
            bound = lower_bound(part.kernel)
            if bound is not None:
                sizes = numbers(part.kernel, dict(part.arguments))
                least, why = bound.bytes_at(sizes, front.bytes, front.memories)
                best = max(best, (least - sum(a.loads for a in own if a.name in passed), why))
        return best

    terms = in_order([compute_term(operations, machine), *level_terms(machine, moved, needed), launch_term(machine)])
    notes = (*((NOTE,) if once is None else ()), *(("collectives are not counted",) if at.exchanges else ()))
    floor = Floor(
        at.name, machine.name, at.parameters, operations.work, terms, operations.unit, notes, operations.partly
    )
    found = [
        Passed(a.name, part.kernel.name, a.loads)
        for part, own, passed in zip(at.launched, arrays, given, strict=True)
        for a in own
        if once is None and a.name in passed and a.loads
    ]
    return Fused(floor, tuple(dict.fromkeys(found)))


def arrays_of(part: Launched) -> tuple[Moved, ...]:
    """The arrays of a launch that outlive it, with what moves if each element moves once."""
    from roofdsl.counts.traffic_at import first_touches_at

    values = dict(part.kernel.constants) | numbers(part.kernel, dict(part.arguments))
    lines = {a.name: a for a in first_touches_at(part.kernel, dict(part.arguments))}
    found = []
    for array in part.kernel.arrays:
        if array.is_scalar or array.intent == "temp" or array.name not in lines:
            continue
        own = lines[array.name]
        kind = array.type.name, prod(d.evaluate(values) for d in array.dims)
        moved = own.begun_by_read * own.line_bytes, own.stored * own.line_bytes
        found.append(Moved(array.name, kind, *moved))
    return tuple(found)


def _given(launched: Sequence[Launched], arrays: Sequence[Sequence[Moved]]) -> Iterator[frozenset[str]]:
    """For each launch, by its first time, the arrays that earlier launches may have written: those read most first."""
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
    """Bytes that come from the memory: of each kind, what the launch needs that needs most of it from outside."""
    outside: dict[Kind, int] = {}
    for own, passed in zip(arrays, given, strict=True):
        here: dict[Kind, int] = {}
        for array in own:
            if array.name not in passed:
                here[array.kind] = here.get(array.kind, 0) + array.loads
        outside |= {kind: max(n, outside.get(kind, 0)) for kind, n in here.items()}
    return sum(outside.values()) + max(scalar_bytes(part.kernel)[0] for part in at.launched)


def _stored(at: ProgramAt, arrays: Sequence[Sequence[Moved]]) -> int:
    """Bytes that must be in the memory at the end: of each kind, what the last launch that writes it stores, if no
    later one reads that kind.
    """
    last: dict[Kind, int] = {}
    for place in _by_last_time(at.steps):
        for kind in {a.kind for a in arrays[place] if a.loads}:
            last.pop(kind, None)
        for kind in {a.kind for a in arrays[place] if a.stores}:
            last[kind] = sum(a.stores for a in arrays[place] if a.kind == kind)
    return sum(last.values()) + max(scalar_bytes(part.kernel)[1] for part in at.launched)


def _by_last_time(steps: Sequence[int | RepeatedAt]) -> list[int]:
    """Places of launches in the order of their last time."""

    def once(part: Sequence[int | RepeatedAt]) -> Iterator[int]:
        for step in part:
            if isinstance(step, int):
                yield step
            else:
                yield from once(step.steps)

    order: Mapping[int, None] = dict.fromkeys(reversed(list(once(steps))))
    return list(order)[::-1]
