"""What checking gives: the definitions of a file and of the files it uses, found right as far as text can tell."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source
from roofdsl.lang.tree import File, Kernel, Machine, Program


class CheckedKernel(Record):
    """A kernel with what its file says for all kernels: `traffic` (None where neither says) and `costs`."""

    tree: Kernel
    source: Source
    traffic: str | None
    costs: tuple[tuple[str, float], ...]


class CheckedProgram(Record):
    """A program; what it runs is in the same CheckedFile's `kernels` and `programs`."""

    tree: Program
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters in their order, `const` ones too."""
        return tuple(p.name.text for p in self.tree.parameters)


class CheckedFile(Record):
    """Names to definitions, those of used files included; `own` are the names this file defines itself, in order."""

    source: Source
    tree: File
    kernels: Mapping[str, CheckedKernel]
    machines: Mapping[str, Machine]
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
