"""Checks a whole file, with the files it uses: names, types, shapes, units; all errors at once, in order.

What needs integer sets (subscripts within bounds, legality of `tile`, `order` and `parallel for`) is checked elsewhere.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from errno import ENOENT

from roofdsl.lang import tree
from roofdsl.lang.check_kernel import CONVENTIONS, check_kernel, check_word
from roofdsl.lang.check_machine import resolve_cost, resolve_machine
from roofdsl.lang.check_program import check_circles, check_program
from roofdsl.lang.checked import CheckedFile, CheckedKernel, CheckedMachine, CheckedProgram
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.findings import Report, did_you_mean
from roofdsl.lang.parse import parse_all
from roofdsl.lang.source import Source, Span

Loader = Callable[[str], str]
MAX_USE_DEPTH = 16


def no_files(path: str) -> str:
    """A loader for text without a file: it finds no other files."""
    raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)


def check(source: Source, loader: Loader = no_files) -> CheckedFile:
    """The checked file. `loader` returns the text of a used file by its path and may raise OSError, ValueError,
    CommandError or InputError.

    Raises InputError with every error that was found, including syntax errors, in the order of the text.
    """
    return _File(source, loader, (posixpath.normpath(source.name),), {}).run()


class _File:
    def __init__(
        self, source: Source, loader: Loader, chain: tuple[str, ...], known: dict[str, CheckedFile | str]
    ) -> None:
        self.source, self.loader, self.chain, self.known = source, loader, chain, known
        self.report = Report()
        self.kernels: dict[str, CheckedKernel] = {}
        self.machines: dict[str, CheckedMachine] = {}
        self.programs: dict[str, CheckedProgram] = {}
        self.origin: dict[str, tuple[str, int]] = {}  # name -> file and line that define it
        self.brought: dict[str, tree.Use] = {}
        self.used: set[str] = set()
        self.incomplete = False  # a used file could not be read, so that names may be missing through no fault here

    def run(self) -> CheckedFile:
        file, syntax = parse_all(self.source)
        self.report.diagnostics += syntax
        if not file.items and not file.damaged and not syntax:
            message = "this file defines nothing"
            help = "a file holds kernels, machines and programs: `kernel NAME(n):`"
            self.report.error("file-empty", message, Span(1, 1, 1, 2), help)
        for item in file.items:
            if isinstance(item, tree.Use):
                self._use(item)
        own = self._definitions(file)
        self._programs(file)
        self._links()
        self._unused(file, own)
        if self.report.errors:
            raise InputError(self.source, self.report.diagnostics)
        warnings = tuple(sorted(self.report.diagnostics, key=lambda d: (d.span.line, d.span.column)))
        return CheckedFile(self.source, file, self.kernels, self.machines, self.programs, own, warnings)

    # ---- other files ----

    def _use(self, use: tree.Use) -> None:
        path = use.path.text
        if not path.endswith(".roof"):
            message = "`use` names another file of this language"
            self.report.error("use-path", message, use.path.span, 'its name ends in .roof: `use "other.roof"`')
            self.incomplete = True
            return
        full = posixpath.normpath(posixpath.join(posixpath.dirname(self.source.name), path))
        if full in self.chain:
            circle = " -> ".join([*self.chain[self.chain.index(full) :], full])
            self.report.error("use-cycle", f"files use each other in a cycle: {circle}", use.path.span)
            self.incomplete = True
        elif len(self.chain) > MAX_USE_DEPTH:
            message = f"files use each other deeper than the limit of {MAX_USE_DEPTH}"
            self.report.error("limit-use", message, use.path.span)
            self.incomplete = True
        else:
            other = self._load(full, use)
            if other is None:
                self.incomplete = True
            else:
                self._bring(use, other)

    def _load(self, path: str, use: tree.Use) -> CheckedFile | None:
        if path not in self.known:
            try:
                source = Source(path, self.loader(path))
                self.known[path] = _File(source, self.loader, (*self.chain, path), self.known).run()
            except InputError as error:
                first = next(d for d in error.diagnostics if d.severity == "error")
                count = sum(d.severity == "error" for d in error.diagnostics)
                errors = "an error" if count == 1 else f"{count} errors, the first"
                place = f"{path}:{first.span.line}:{first.span.column}"
                self.known[path] = f"the used file has {errors} at {place}: {first.message}"
            except CommandError as error:
                self.report.error("use-missing", error.message, use.path.span)
                return None
            except (OSError, ValueError) as error:
                reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
                self.report.error("use-missing", f"`{path}` cannot be read: {reason}", use.path.span)
                return None
        result = self.known[path]
        if isinstance(result, str):
            self.report.error("use-errors", result, use.path.span, f"see `roofdsl check {path}`")
            return None
        return result

    def _bring(self, use: tree.Use, other: CheckedFile) -> None:
        definitions: list[tuple[str, Source, Span]] = []
        definitions += [(n, k.source, k.tree.span) for n, k in other.kernels.items()]
        definitions += [(n, m.source, m.span) for n, m in other.machines.items()]
        definitions += [(n, p.source, p.tree.span) for n, p in other.programs.items()]
        for name, source, span in definitions:
            origin = (source.name, span.line)
            before = self.origin.setdefault(name, origin)
            if before != origin:
                message = f"`{name}` of {source.name} is also defined in {before[0]}, line {before[1]}"
                self.report.error("name-twice", message, use.path.span, "rename one of the two")
                continue
            self.brought.setdefault(name, use)
            if name in other.kernels:
                self.kernels[name] = other.kernels[name]
            elif name in other.machines:
                self.machines[name] = other.machines[name]
            else:
                self.programs[name] = other.programs[name]

    # ---- this file ----

    def _definitions(self, file: tree.File) -> tuple[str, ...]:
        traffic = self._traffic(file)
        costs = self._costs(file)
        own: list[str] = []
        for item in file.items:
            if not isinstance(item, tree.Kernel | tree.MachineBlock | tree.Program):
                continue
            name = item.name
            origin = (self.source.name, item.span.line)
            before = self.origin.setdefault(name.text, origin)
            if before != origin:
                where = f"on line {before[1]}" if before[0] == self.source.name else f"in {before[0]}, line {before[1]}"
                message = f"`{name.text}` is defined twice; the first time {where}"
                self.report.error(
                    "name-twice", message, name.span, "kernels, machines and programs share one set of names"
                )
            else:
                own.append(name.text)
            if isinstance(item, tree.Kernel):
                check_kernel(item, self.report)
                own_traffic = [i.convention.text for i in item.body if isinstance(i, tree.Traffic)]
                convention = own_traffic[0] if own_traffic else traffic
                self.kernels.setdefault(name.text, CheckedKernel(item, self.source, convention, costs))
            elif isinstance(item, tree.MachineBlock):
                self.machines.setdefault(name.text, resolve_machine(item, self.source, self.report))
            else:
                self.programs.setdefault(name.text, CheckedProgram(item, self.source))
        return tuple(own)

    def _traffic(self, file: tree.File) -> str | None:
        found: list[tree.Traffic] = [item for item in file.items if isinstance(item, tree.Traffic)]
        for item in found:
            check_word(item.convention, "traffic convention", CONVENTIONS, self.report)
        for item in found[1:]:
            message = f"`traffic` appears twice; it was first given on line {found[0].span.line}"
            self.report.error("directive-twice", message, item.span, "a kernel may have its own")
        return found[0].convention.text if found else None

    def _costs(self, file: tree.File) -> tuple[tuple[str, float], ...]:
        costs: dict[str, float] = {}
        for item in file.items:
            if isinstance(item, tree.MachineLine):
                cls, value = resolve_cost(item, self.report)
                if cls in costs:
                    message = f"`cost {cls}` appears twice in this file"
                    self.report.error("directive-twice", message, item.span)
                costs.setdefault(cls, float(value))
        return tuple(costs.items())

    def _programs(self, file: tree.File) -> None:
        runnable: dict[str, tree.Kernel | tree.Program] = {name: p.tree for name, p in self.programs.items()}
        runnable |= {name: kernel.tree for name, kernel in self.kernels.items()}
        damaged = _Everything() if self.incomplete else file.damaged
        for item in file.items:
            if isinstance(item, tree.Program):
                self.used |= check_program(item, runnable, self.machines, damaged, self.report)
        own = [item for item in file.items if isinstance(item, tree.Program)]
        check_circles(own, {name: p.tree for name, p in self.programs.items()}, self.report)

    def _links(self) -> None:
        """The ends of links: memories of the same machine, or machines."""
        for machine in self.machines.values():
            if machine.source is not self.source:
                continue
            memories = [e.fields["name"] for e in machine.all_of("memory")]
            known = [*memories, *(n for n in self.machines if n != machine.name)]
            for link in machine.all_of("link"):
                for end in (link.fields["start"], link.fields["end"]):
                    self.used.add(end)
                    if end not in known and not self.incomplete:
                        help = did_you_mean(end, known, "the ends are memories of this machine or other machines")
                        message = f"the link `{link.fields['name']}` leads to `{end}`, which does not exist"
                        self.report.error("link-end", message, link.line.span, help)

    def _unused(self, file: tree.File, own: tuple[str, ...]) -> None:
        """Warns of used files that nothing here needs; in a file that defines nothing itself, all are needed."""
        if not own:
            return
        for use in file.items:
            if isinstance(use, tree.Use):
                names = [name for name, by in self.brought.items() if by is use]
                if names and not self.used & set(names):
                    message = f"nothing of `{use.path.text}` is used here"
                    self.report.warning("use-unused", message, use.span, "leave it out")


class _Everything(frozenset[str]):
    """Contains every name: a used file is missing, and any name may be defined in it."""

    def __contains__(self, name: object) -> bool:
        return True
