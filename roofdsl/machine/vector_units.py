"""Which vector units of a core execute a class of operations, as the machine's `instruction` lines state.

Golden Cove and its successor Raptor Cove, for example, multiply on p0 and p1 and add on p1 and p2. If there are as many
additions as products, or twice as many, no unit is idle: a core with three such units does 1.5 times what either class
reaches alone.
"""

from __future__ import annotations

from roofdsl.lang.types import TYPES
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Machine

Units = frozenset[int]

_INSTRUCTIONS = {"fma": "fma", "add": "add", "mul": "mul", "min": "max"}
"""Classes of operations whose instructions have units, by the names of the instructions."""

_SHORTEST = 128
"""Bits of the narrowest vector: scalars do not reach a peak."""


def units_of(machine: Machine, type_name: str, cls: str) -> Units:
    """The units of a class of operations on a type; empty if the machine states none.

    A floating-point type whose vector instructions state no units has those of f32, in which types for storage only are
    computed. If the units depend on the vector width, those of the width with the most units for this type count, so
    that no code can have more.
    """
    own = _stated(machine, type_name)
    if not own and TYPES[type_name].kind == "float":
        own = _stated(machine, "f32")
    widths = {i.bits for i in own if i.bits >= _SHORTEST}
    if cls not in _INSTRUCTIONS or not widths:
        return frozenset()
    best = max(widths, key=lambda bits: (len(frozenset[int]().union(*(_used(i) for i in own if i.bits == bits))), bits))
    return next((_used(i) for i in own if i.bits == best and i.cls == _INSTRUCTIONS[cls]), frozenset())


def _stated(machine: Machine, type_name: str) -> list[Instruction]:
    """The arithmetic of a type on vectors whose units are stated."""
    return [i for i in machine.instructions if i.type == type_name and i.cls in _INSTRUCTIONS.values() and _used(i)]


def _used(instruction: Instruction) -> Units:
    return frozenset(instruction.units)
