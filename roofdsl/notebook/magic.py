"""The cell magic `%%roof`: a cell in the language, whose definitions become names of the notebook."""

from __future__ import annotations

import shlex
from typing import Any

from roofdsl.api import Program
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as load_kernel
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.lower import lower as lower_machine
from roofdsl.machine.model import Machine
from roofdsl.notebook.findings import Findings


class Definitions(Record):
    """What a cell defines, by name."""

    kernels: tuple[Kernel, ...]
    machines: tuple[Machine, ...]
    programs: tuple[Program, ...]

    def __repr__(self) -> str:
        parts = []
        for what, found in (("kernel", self.kernels), ("machine", self.machines), ("program", self.programs)):
            if found:
                names = ", ".join(_title(f) for f in found)
                parts.append(f"{what}{'s' if len(found) > 1 else ''} {names}")
        return "; ".join(parts) or "nothing"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def _title(of: Kernel | Machine | Program) -> str:
    return f"{of.name}({', '.join(p.name for p in of.parameters)})" if isinstance(of, Kernel) else of.name


def settings_of(line: str) -> dict[str, int]:
    """The numbers for `const` parameters of `%%roof s=2 d=1`. Raises CommandError."""
    found = {}
    for part in shlex.split(line):
        name, equals, number = part.partition("=")
        if not equals or not name.isidentifier() or not number.isdecimal() or len(number) > 18 or not int(number):
            raise CommandError(f"`{part}` is not of the form s=2", "%%roof takes numbers for const parameters")
        found[name] = int(number)
    return found


def read(cell: str, settings: dict[str, int]) -> tuple[Definitions, Findings]:
    """What a cell defines, and warnings about it. Raises InputError with all errors of the text, and CommandError as
    `loops.load.kernel` does.
    """
    source = Source("<cell>", cell)
    checked = load_file(source)
    found = Definitions(
        tuple(load_kernel(checked, name, settings) for name in checked.own_kernels),
        tuple(lower_machine(checked.machines[name]) for name in checked.own_machines),
        tuple(Program(name, checked) for name in checked.own_programs),
    )
    return found, Findings(source, tuple(checked.warnings))


def run(shell: Any, line: str, cell: str) -> Definitions:
    """`%%roof`: reads the cell, shows warnings, and adds its definitions to the notebook under their names."""
    found, warnings = read(cell, settings_of(line))
    if warnings.diagnostics:
        from IPython.display import display

        display(warnings)
    every: tuple[Kernel | Machine | Program, ...] = (*found.kernels, *found.machines, *found.programs)
    shell.push({each.name: each for each in every})
    return found
