"""Parts of titles that all results share: sizes, and the machine."""

from __future__ import annotations

from collections.abc import Iterable

from roofdsl.machine.model import Machine


def sizes(parameters: Iterable[tuple[str, int]]) -> str:
    """`n = 64, b = 8`."""
    return ", ".join(f"{name} = {value}" for name, value in parameters)


def short_sizes(parameters: Iterable[tuple[str, int]]) -> str:
    """`n=64, b=8`, for the cells of tables."""
    return ", ".join(f"{name}={value}" for name, value in parameters)


def at(parameters: Iterable[tuple[str, int]]) -> str:
    """The sizes after a title, `, n = 64`; nothing without sizes."""
    found = sizes(parameters)
    return f", {found}" if found else ""


def on(machine: Machine) -> str:
    """The machine by name, with its title in parentheses if it has one."""
    return machine.name + (f" ({machine.title})" if machine.title else "")
