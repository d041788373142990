"""The measured facts about a core's instructions, as lines of a machine file."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from roofdsl.machine.attribute_text import written
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.quantities import show_time
from roofdsl.measure.core_facts import CoreFacts

_GIVEN = ("cls", "type", "bits", "source")


def core_lines(found: CoreFacts) -> Iterator[str]:
    """The clock, the core, its instructions, and what arguments add to a launch."""
    yield f'clock {found.clock_hz / 1e9:.4g} GHz source "a chain of dependent additions"'
    for word, seconds in (
        ("launch_array", found.launches.array_s),
        ("launch_scalar", found.launches.scalar_s),
        ("launch_number", found.launches.number_s),
    ):
        if seconds > 0:
            yield f"{word} {show_time(seconds)}"
    yield _line("core", found.core, found.core.__match_args__)
    for instruction in found.instructions:
        type_name = f" {instruction.type}" if instruction.type else ""
        head = f"instruction {instruction.cls}{type_name} {instruction.bits} bits"
        options = written("instruction", _stated(instruction, instruction.__match_args__))
        yield f"{head}{options}"


def _line(word: str, of: Core, names: tuple[str, ...]) -> str:
    """A line with no comma before its first option."""
    return f"{word} {written('core', _stated(of, names)).removeprefix(', ')}"


def _stated(of: Core | Instruction, names: tuple[str, ...]) -> dict[str, object]:
    """The options to state, without unknown and zero numbers."""
    fields: dict[str, object] = {}
    for name in names:
        value = getattr(of, name)
        if name in _GIVEN or value is None or value is False or (isinstance(value, int | Fraction) and value == 0):
            continue
        fields[name] = value
    return fields
