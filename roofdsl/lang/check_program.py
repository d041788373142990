"""Checks one program: that its kernels exist and get the right number of positive integers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.check_integers import ARGUMENT, Integers
from roofdsl.lang.check_kernel import check_parameters
from roofdsl.lang.report import Report, did_you_mean, plural
from roofdsl.lang.scope import Scope


def check_program(
    program: tree.Program,
    kernels: Mapping[str, tree.Kernel],
    others: Mapping[str, str],
    damaged: Collection[str],
    report: Report,
) -> set[str]:
    """Reports what is wrong; the names of the kernels it runs. `others` says what names are that are no kernels."""
    scope = Scope(report)
    check_parameters(program.parameters, scope, report)
    checker = _Program(Integers(scope, report), kernels, others, damaged, report)
    checker.steps(program.body)
    return checker.used


class _Program:
    def __init__(
        self,
        integers: Integers,
        kernels: Mapping[str, tree.Kernel],
        others: Mapping[str, str],
        damaged: Collection[str],
        report: Report,
    ) -> None:
        self.integers, self.kernels, self.others, self.damaged = integers, kernels, others, damaged
        self.report = report
        self.used: set[str] = set()

    def steps(self, steps: Sequence[tree.Step]) -> None:
        """Checks the steps; blocks are at most 64 deep, so that it may recurse."""
        for step in steps:
            if isinstance(step, tree.Repeat):
                self._positive(step.count, "a number of repetitions")
                self.steps(step.body)
                continue
            for arg in step.args:
                self._positive(arg, "an argument")
            name = step.kernel
            kernel = self.kernels.get(name.text)
            if kernel is not None:
                self.used.add(name.text)
                self._arguments(step, kernel)
            elif name.text in self.others:
                message = f"`run` launches a kernel, and `{name.text}` is {self.others[name.text]}"
                self.report.error("name-kind", message, name.span)
            elif name.text not in self.damaged:
                help = did_you_mean(name.text, self.kernels, "define it, or bring it in by `use`")
                self.report.error("name-unknown", f"there is no kernel `{name.text}`", name.span, help)

    def _positive(self, expression: tree.Expr, what: str) -> None:
        shape = self.integers.shape(expression, ARGUMENT)
        if shape.value is not None and shape.value <= 0:
            message = f"{what} is a positive integer, and this is {shape.value}"
            self.report.error("run-value", message, expression.span)

    def _arguments(self, step: tree.Run, kernel: tree.Kernel) -> None:
        parameters = kernel.parameters
        missing = [p.name.text for p in parameters[len(step.args) :] if p.default is None]
        shown = ", ".join(p.name.text for p in parameters)
        if missing or len(step.args) > len(parameters):
            given = plural(len(step.args), "argument")
            message = f"`{kernel.name.text}({shown})` takes {plural(len(parameters), 'argument')}, and {given} is given"
            message = message if len(step.args) == 1 else message.replace(" is given", " are given")
            help = f"`{missing[0]}` has no default" if missing else ""
            self.report.error("run-arguments", message, step.span, help)
