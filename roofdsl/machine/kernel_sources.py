"""Kernels and programs as people name them in Python: a shipped model, a file, a text, or an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import check_constants
from roofdsl.machine.find import checked_file, find_model

Sizes = Mapping[str, int]


class Program(Record):
    """A program of a file, to be predicted."""

    name: str
    checked: CheckedFile


KernelLike = Kernel | str | Path
ProgramLike = Program | str | Path


def kernel(source: str | Path, name: str | None = None, *, sizes: Sizes | None = None, **constants: int) -> Kernel:
    """A checked kernel: the name of a shipped model ("gemv", "polybench/lu"), a file ("mine.roof", "mine.roof:axpy"),
    or the text of a file (anything with a line break in it).

    name: which kernel, if there are several. constants, sizes: numbers for its `const` parameters. Raises InputError
    for a text with errors, CommandError if the kernel does not exist.
    """
    checked, found = checked_source(source)
    return lowered(checked, name or found, {**(sizes or {}), **constants})


def program(source: str | Path, name: str | None = None) -> Program:
    """A program, named in the same way as kernels. Raises InputError for a text with errors, CommandError if the
    program does not exist.
    """
    checked, found = checked_source(source)
    own = checked.own_programs or tuple(checked.programs)
    picked = name or found or (own[0] if len(own) == 1 else None)
    if picked is None or picked not in checked.programs:
        what = "several programs" if own else "no program"
        if picked:
            what = f"no program `{picked}`"
        listed = ", ".join(own[:8])
        raise CommandError(f"`{checked.source.name}` has {what}", f"it has {listed}" if listed else "")
    return Program(picked, checked)


def checked_source(source: str | Path) -> tuple[CheckedFile, str | None]:
    """The file, and the name that is selected in it; None if no name is."""
    text = str(source)
    if "\n" in text:
        return load_file(Source("<text>", text)), None
    target = find_model(text)
    return checked_file(target.path, target.name), target.name


def is_program(source: str | Path) -> bool:
    """Whether the name refers to a program; a file with kernels and programs refers to its kernel."""
    checked, name = checked_source(source)
    return name in checked.programs if name is not None else not checked.own_kernels and bool(checked.own_programs)


def kernel_and_sizes(source: KernelLike, sizes: Sizes | None, more: Sizes) -> tuple[Kernel, dict[str, int]]:
    """The kernel with its constants set, and all other sizes. Unknown ones are rejected when they are used.

    Raises CommandError if a Kernel has other constants than are given.
    """
    given = {**(sizes or {}), **more}
    own = source if isinstance(source, Kernel) else kernel(source, sizes=given)
    check_constants(own, given)
    constants = {name for name, _ in own.constants}
    return own, {name: value for name, value in given.items() if name not in constants}


def several(sources: Sequence[KernelLike], given: Sizes) -> list[tuple[Kernel, dict[str, int]]]:
    """Kernels, each with those sizes that are its parameters; a file without a name gives all its kernels.

    Raises CommandError for a size that is a parameter of none, if a Kernel has other constants than are given, and if
    there is no kernel.
    """
    found: list[Kernel] = []
    for source in sources:
        if isinstance(source, Kernel):
            check_constants(source, given)
            found.append(source)
            continue
        checked, name = checked_source(source)
        found += kernels(checked, given).values() if name is None else [kernel(source, sizes=given)]
    if not found:
        raise CommandError("there is no kernel to show", "name a shipped kernel or a file that defines one")
    names = [({p.name for p in k.parameters}, {n for n, _ in k.constants}) for k in found]
    unknown = set(given).difference(*(own | constants for own, constants in names))
    if unknown:
        raise CommandError(f"none of the kernels has a parameter `{min(unknown)}`")
    return [(k, {n: v for n, v in given.items() if n in own}) for k, (own, _) in zip(found, names, strict=True)]
