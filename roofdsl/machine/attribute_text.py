"""The attributes of a machine as people read them and as JSON holds them, from the table of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from roofdsl.lang.attribute_row import Attribute, Place
from roofdsl.lang.machine_attributes import attributes
from roofdsl.lang.record import Record
from roofdsl.lang.units import Kind
from roofdsl.machine.model import Machine, Peak, operation
from roofdsl.machine.quantities import show_bandwidth, show_energy_per, show_power, show_rate, show_size, show_time

_TEXT: dict[Kind | None, Callable[[Any], str]] = {
    "size": show_size,
    "bandwidth": show_bandwidth,
    "time": show_time,
    "frequency": lambda hertz: f"{float(hertz) / 1e9:g} GHz",
    "flop_rate": show_rate,
    "op_rate": lambda per_s: show_rate(per_s, "OP"),
    "count": str,
    "cycles": lambda cycles: f"{float(cycles):g} cycle{'' if cycles == 1 else 's'}",
    "bits": lambda bits: f"{bits} bits",
    "number": lambda value: f"{float(value):g}",
    "power": show_power,
    "byte_energy": lambda joules: show_energy_per(joules, "B"),
    "operation_energy": lambda joules: show_energy_per(joules, "FLOP"),
    None: str,
}


def settings(machine: Machine) -> list[tuple[str, str, str]]:
    """(word, value as text, source) of each attribute of the machine itself that it states."""
    rows = []
    for word, attribute in attributes("machine").items():
        value = getattr(machine, attribute.field)
        if value is not None:
            text = attribute.shown.format(number=value, text=_TEXT[attribute.kind](value))
            rows.append((word, text, machine.source_of(word)))
    return rows


def options(of: Record, place: Place, *before: str) -> str:
    """`before` and the attributes of a part of a machine, such as a cache or a core, separated by commas.

    Attributes with the value that they have if they are not stated are left out. One that `joins`, such as `copies`,
    follows the first text without a comma.
    """
    parts = list(before)
    for attribute in attributes(place).values():
        value = getattr(of, attribute.field)
        unstated = getattr(type(of), attribute.field, None)  # a record's defaults are attributes of its class
        if value == unstated or (attribute.kind is None and not _is_said(attribute, value)):
            continue
        text = _TEXT[attribute.kind](value)
        if attribute.kind == "operation_energy" and isinstance(of, Peak):
            text = show_energy_per(value, operation(of.type))
        text = attribute.shown.format(number=value, text=text) + _share(value, attribute)
        if attribute.joins:
            parts[0] += text
        else:
            parts.append(text)
    return ", ".join(parts)


def written(place: Place, fields: Mapping[str, object]) -> str:
    """Options as a file states them, each after a comma; `fields` are those of the model, None means not stated."""
    text = ""
    for field, value in fields.items():
        for attribute in attributes(place).values():
            if attribute.field != field or value is None:
                continue
            if attribute.kind is not None:
                text += f", {attribute.word} {_TEXT[attribute.kind](value)}"
            elif _is_said(attribute, value):
                text += f", {attribute.word}{_share(value, attribute)}"
    return text


def _is_said(attribute: Attribute, value: object) -> bool:
    """Whether the attribute's word, alone or with a share, states this value."""
    return value is attribute.value or (attribute.share and isinstance(value, Fraction))


def _share(value: object, attribute: Attribute) -> str:
    """A share, to be written after its word; empty for anything else."""
    return f" {float(value):g}" if attribute.share and isinstance(value, Fraction) else ""


def numbers(of: Record) -> dict[str, Any]:
    """The fields of a part of a machine, such as a cache or a core, for JSON, in plain units."""
    return {name: _number(getattr(of, name)) for name in of.__match_args__}


def attribute_numbers(of: Record, place: Place) -> dict[str, Any]:
    """The attributes of a machine or a peak for JSON, in plain units; None if not stated."""
    return {a.field: _number(getattr(of, a.field)) for a in attributes(place).values()}


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value
