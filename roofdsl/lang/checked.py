"""The result of checking: the definitions of a file and of the files it uses, accepted by the checker, not executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.record import Record, field
from roofdsl.lang.source import Source, Span
from roofdsl.lang.tree import File, Kernel, MachineLine, Program, runs


class CheckedKernel(Record):
    """A kernel with what its file states for all kernels: `traffic` (None if neither states it) and `costs`.

    notes: comments for the kernel as a text, if it was read from code in another language.
    """

    tree: Kernel
    source: Source
    traffic: str | None
    costs: tuple[tuple[str, float], ...]
    notes: tuple[str, ...] = ()


class CheckedProgram(Record):
    """A program; the kernels and programs it runs are in the same CheckedFile's `kernels` and `programs`."""

    tree: Program
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters in their order, `const` ones too."""
        return tuple(p.name.text for p in self.tree.parameters)


class Entry(Record):
    """A line of a machine with its units resolved: `fields` are those of the machine model, by name.

    Every number is exact and in plain units: bytes, seconds, hertz, watts, cycles, bits, bytes/s, operations/s, and
    joules per byte or operation. `source` is the line's own note.
    """

    keyword: str
    fields: Mapping[str, Any]
    source: str
    line: MachineLine = field(compare=False, repr=False)


class CheckedMachine(Record):
    """A machine: `entries` in the order of the file; `sources` are its own `source "..."` lines."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    sources: tuple[str, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)

    def all_of(self, keyword: str) -> tuple[Entry, ...]:
        """The lines that begin with a word."""
        return tuple(e for e in self.entries if e.keyword == keyword)


class CheckedFile(Record):
    """Names to definitions, those of used files included; `own` are the names this file defines itself, in order."""

    source: Source
    tree: File
    kernels: Mapping[str, CheckedKernel]
    machines: Mapping[str, CheckedMachine]
    programs: Mapping[str, CheckedProgram]
    own: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def own_kernels(self) -> tuple[str, ...]:
        """The kernels that the file itself defines, in order."""
        return tuple(name for name in self.own if name in self.kernels)

    @property
    def own_machines(self) -> tuple[str, ...]:
        """The machines that the file itself defines, in order."""
        return tuple(name for name in self.own if name in self.machines)

    @property
    def own_programs(self) -> tuple[str, ...]:
        """The programs that the file itself defines, in order."""
        return tuple(name for name in self.own if name in self.programs)

    def kernels_run_by(self, program: str) -> tuple[str, ...]:
        """The kernels that a program runs, itself or through other programs, in the order of their first launches."""
        found: dict[str, None] = {}
        waiting = [runs(self.programs[program].tree.body)]
        while waiting:
            name = next((step.kernel.text for step in waiting[-1] if step.kernel.text not in found), None)
            if name is None:
                waiting.pop()
                continue
            found[name] = None
            if name in self.programs:
                waiting.append(runs(self.programs[name].tree.body))
        return tuple(name for name in found if name not in self.programs)
