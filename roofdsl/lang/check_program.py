"""Checks one program: that what it runs exists, gets the right number of positive integers, and is not itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.check_integers import ARGUMENT, Integers
from roofdsl.lang.check_kernel import check_parameters
from roofdsl.lang.findings import Report, did_you_mean, plural
from roofdsl.lang.scope import Scope
from roofdsl.lang.syntax_hints import of_type
from roofdsl.lang.types import TYPES

MAX_RUN_DEPTH = 16
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
TOPOLOGIES = ("ring", "two_way_ring", "switch")


def check_program(
    program: tree.Program,
    runnable: Mapping[str, tree.Kernel | tree.Program],
    machines: Collection[str],
    damaged: Collection[str],
    report: Report,
) -> set[str]:
    """Reports all errors of a program; returns the names that it runs. `runnable`: the file's kernels and programs."""
    scope = Scope(report)
    check_parameters(program.parameters, scope, report)
    checker = _Program(Integers(scope, report), runnable, machines, damaged, report)
    checker.steps(program.body)
    return checker.used


def check_circles(own: Sequence[tree.Program], programs: Mapping[str, tree.Program], report: Report) -> None:
    """Reports each `run` of one of the `own` programs that closes a circle, and chains that are too long.

    `programs` are all of the file; those of used files are already checked and run none of the file's own.
    """
    depth: dict[str, int] = {}
    for start in own:
        way: list[str] = []  # the programs that run one another, from `start` to the one looked at
        waiting: list[Iterator[tree.Run]] = []

        def enter(name: str, way: list[str] = way, waiting: list[Iterator[tree.Run]] = waiting) -> None:
            way.append(name)
            waiting.append(tree.runs(programs[name].body))
            depth[name] = 0

        if start.name.text not in depth:
            enter(start.name.text)
        while way:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
                name = way.pop()
                if way:
                    depth[way[-1]] = max(depth[way[-1]], depth[name] + 1)
                if depth[name] == MAX_RUN_DEPTH:
                    message = f"programs run each other deeper than the limit of {MAX_RUN_DEPTH}"
                    report.error("limit-runs", message, programs[name].name.span)
            elif (name := step.kernel.text) in way:
                circle = [*way[way.index(name) :], name]
                shown = " -> ".join(circle if len(circle) < 9 else [*circle[:4], "...", *circle[-3:]])
                message = f"the program `{name}` runs itself: {shown}"
                report.error("run-cycle", message, step.kernel.span, "write `repeat N:` around the repeated lines")
            elif name in depth:
                depth[way[-1]] = max(depth[way[-1]], depth[name] + 1)
            elif name in programs:
                enter(name)


class _Program:
    def __init__(
        self,
        integers: Integers,
        runnable: Mapping[str, tree.Kernel | tree.Program],
        machines: Collection[str],
        damaged: Collection[str],
        report: Report,
    ) -> None:
        self.integers, self.runnable, self.machines, self.damaged = integers, runnable, machines, damaged
        self.report = report
        self.used: set[str] = set()

    def steps(self, steps: Sequence[tree.Step]) -> None:
        """Checks the steps; blocks are at most 64 deep, so that it may recurse."""
        for step in steps:
            if isinstance(step, tree.Repeat):
                self._positive(step.count, "a number of repetitions")
                self.steps(step.body)
                continue
            if isinstance(step, tree.Collective):
                self._collective(step)
                continue
            for arg in step.args:
                self._positive(arg, "an argument")
            name = step.kernel
            found = self.runnable.get(name.text)
            if found is not None:
                self.used.add(name.text)
                self._arguments(step, found)
            elif name.text in self.machines:
                message = f"`run` launches a kernel or a program, but `{name.text}` is a machine"
                self.report.error("name-kind", message, name.span)
            elif name.text not in self.damaged:
                help = did_you_mean(name.text, self.runnable, "define it, or bring it in by `use`")
                self.report.error("name-unknown", f"there is no kernel or program `{name.text}`", name.span, help)

    def _collective(self, step: tree.Collective) -> None:
        """Checks the words of a collective; whether its link exists depends on the machine, and is checked when a
        program is predicted on one.
        """
        for name, known, what in (
            (step.kind, COLLECTIVES, "collective"),
            (step.topology, TOPOLOGIES, "network"),
        ):
            if name is not None and name.text not in known:
                help = did_you_mean(name.text, known, f"there are {', '.join(known)}")
                self.report.error("word-unknown", f"there is no {what} `{name.text}`", name.span, help)
        if step.type.text not in TYPES:
            help = of_type(step.type.text)
            self.report.error("type-unknown", f"there is no type `{step.type.text}`", step.type.span, help)
        for dim in step.dims:
            self._positive(dim, "a dimension")
        self._positive(step.devices, "a number of devices")

    def _positive(self, expression: tree.Expr, what: str) -> None:
        shape = self.integers.shape(expression, ARGUMENT)
        if shape.value is not None and shape.value <= 0:
            message = f"{what} is a positive integer, but this is {shape.value}"
            self.report.error("run-value", message, expression.span)

    def _arguments(self, step: tree.Run, found: tree.Kernel | tree.Program) -> None:
        parameters = found.parameters
        missing = [p.name.text for p in parameters[len(step.args) :] if p.default is None]
        shown = ", ".join(p.name.text for p in parameters)
        if missing or len(step.args) > len(parameters):
            given = plural(len(step.args), "argument")
            message = f"`{found.name.text}({shown})` takes {plural(len(parameters), 'argument')}, but {given} is given"
            message = message if len(step.args) == 1 else message.replace(" is given", " are given")
            help = f"`{missing[0]}` has no default" if missing else ""
            self.report.error("run-arguments", message, step.span, help)
