"""Programs as launches: which kernels run, with which parameter values, how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.report import did_you_mean
from roofdsl.loops.integers import Const, IntExpr, mul
from roofdsl.loops.lower import default_of, lower
from roofdsl.loops.lower_integers import Integers
from roofdsl.loops.model import Kernel, Parameter


class Launch(Record):
    """`times` launches of `kernel`, whose parameters have the values `arguments`, both in the program's parameters."""

    kernel: Kernel
    arguments: tuple[tuple[str, IntExpr], ...]
    times: IntExpr
    run: tree.Run


class LoweredProgram(Record):
    """A program; each `run` line of the text is one Launch, in order."""

    name: str
    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]


def program(checked: CheckedFile, name: str, settings: Mapping[str, int] | None = None) -> LoweredProgram:
    """The program of that name, own or brought in by `use`.

    `settings` and defaults give numbers to the program's parameters where a `const` parameter of a kernel needs one.
    Raises CommandError for an unknown name and for a `const` parameter without a number.
    """
    if name not in checked.programs:
        known = ", ".join(checked.programs)
        help = did_you_mean(name, checked.programs, f"it has {known}" if known else "")
        raise CommandError(f"`{checked.source.name}` has no program `{name}`", help)
    found = checked.programs[name]
    defaults = {p.name.text: default_of(p) for p in found.tree.parameters}
    given = {n: v for n, v in defaults.items() if v is not None} | {
        n: v for n, v in (settings or {}).items() if n in defaults
    }
    constants = {p.name.text: given[p.name.text] for p in found.tree.parameters if p.const and p.name.text in given}
    integers = Integers(found.source, constants)
    parameters = tuple(
        Parameter(p.name.text, defaults[p.name.text], p.span)
        for p in found.tree.parameters
        if p.name.text not in constants
    )
    lowering = _Lowering(checked, integers, given)
    return LoweredProgram(name, parameters, tuple(lowering.launches(found.tree.body, Const(1))))


class _Lowering:
    def __init__(self, checked: CheckedFile, integers: Integers, given: Mapping[str, int]) -> None:
        self.checked, self.integers, self.given = checked, integers, given

    def launches(self, steps: Sequence[tree.Step], times: IntExpr) -> list[Launch]:
        found: list[Launch] = []
        for step in steps:
            if isinstance(step, tree.Repeat):
                found += self.launches(step.body, mul(times, self.integers.lower(step.count)))
            else:
                found.append(self._launch(step, times))
        return found

    def _launch(self, step: tree.Run, times: IntExpr) -> Launch:
        checked = self.checked.kernels[step.kernel.text]
        arguments: list[tuple[str, IntExpr]] = []
        constants: dict[str, int] = {}
        for i, parameter in enumerate(checked.tree.parameters):
            name = parameter.name.text
            value = self.integers.lower(step.args[i]) if i < len(step.args) else Const(default_of(parameter) or 1)
            if not parameter.const:
                arguments.append((name, value))
                continue
            missing = value.symbols() - self.given.keys()
            if missing:
                message = f"the kernel `{step.kernel.text}` needs a number for its `const` parameter `{name}`"
                raise CommandError(message, f"give the program's `{min(missing)}` with --set {min(missing)}=2")
            constants[name] = value.evaluate(self.given)
        return Launch(lower(checked, constants), tuple(arguments), times, step)
