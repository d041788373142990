"""Programs as launches: which kernels run, with which parameter values, how often, in which order.

All of it is in the program's parameters. `program_at_sizes` has the launches, and their order one by one, at given
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile, CheckedProgram
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source
from roofdsl.lang.types import TYPES, ElementType
from roofdsl.loops.integers import Const, IntExpr, Sym, mul
from roofdsl.loops.lower import default_of, lower
from roofdsl.loops.lower_integers import Integers
from roofdsl.loops.model import Kernel, Parameter

MAX_RUNS = 10_000
"""The maximum number of launches and collectives of a program and those it runs, each `repeat` counted once."""


class Launch(Record):
    """`times` launches of `kernel`, whose parameters have the values `arguments`, both in the program's parameters.

    decided: the kernel's `const` parameters, each with the program's parameters on which its value depends.
    """

    kernel: Kernel
    arguments: tuple[tuple[str, IntExpr], ...]
    times: IntExpr
    run: tree.Run
    decided: tuple[tuple[str, frozenset[str]], ...] = ()


class Exchange(Record):
    """A collective, `times` times: `dims` of elements of `type` among `devices`, all in the program's parameters."""

    step: tree.Collective
    source: Source
    type: ElementType
    dims: tuple[IntExpr, ...]
    devices: IntExpr
    times: IntExpr


class Repeated(Record):
    """Steps repeated `times` times."""

    times: IntExpr
    steps: tuple[Step, ...]


Step = int | Repeated
"""A launch, by its place among the program's launches, or steps that are repeated."""


class LoweredProgram(Record):
    """A program; each `run` of a kernel is one Launch, in order; those of programs it runs are in their place.

    steps: the same launches in the order in which they run, with their repetitions. exchanges: its collectives.
    """

    name: str
    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]
    steps: tuple[Step, ...] = ()
    exchanges: tuple[Exchange, ...] = ()


def require_launches(of: LoweredProgram) -> None:
    """Raises CommandError for a program that launches nothing: it may have collectives alone."""
    if not of.launches:
        help = "use `roofdsl collective` for a collective alone" if of.exchanges else ""
        raise CommandError(f"program {of.name} launches nothing", help)


def program(checked: CheckedFile, name: str, settings: Mapping[str, int] | None = None) -> LoweredProgram:
    """The program of that name, defined here or imported by `use`.

    `settings` and defaults give values to the program's parameters if a `const` parameter of a kernel needs one. Raises
    CommandError for an unknown name, for a `const` parameter without a value, and for more than MAX_RUNS launches and
    collectives; also what `lower` raises.
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
    parameters = tuple(
        Parameter(p.name.text, defaults[p.name.text], p.span)
        for p in found.tree.parameters
        if p.name.text not in constants
    )
    own = {p.name: Sym(p.name) for p in parameters} | {n: Const(v) for n, v in constants.items()}
    lowering = _Lowering(checked, name, given)
    steps = lowering.run(found, own, Const(1))
    return LoweredProgram(name, parameters, tuple(lowering.found), steps, tuple(lowering.exchanges))


class _Lowering:
    """Collects the launches of a program in `found`; all expressions are in its parameters, `given` as far as known."""

    def __init__(self, checked: CheckedFile, name: str, given: Mapping[str, int]) -> None:
        self.checked, self.name, self.given = checked, name, given
        self.found: list[Launch] = []
        self.exchanges: list[Exchange] = []

    def run(self, program: CheckedProgram, values: Mapping[str, IntExpr], times: IntExpr) -> tuple[Step, ...]:
        """All launches of a program whose parameters have these values; the checker bounds how deep this goes."""
        numbers = {n: v.value for n, v in values.items() if isinstance(v, Const)}
        return self.steps(program, program.tree.body, Integers(program.source, numbers), values, times)

    def steps(
        self,
        program: CheckedProgram,
        steps: Sequence[tree.Step],
        integers: Integers,
        values: Mapping[str, IntExpr],
        times: IntExpr,
    ) -> tuple[Step, ...]:
        found: list[Step] = []
        for step in steps:
            if isinstance(step, tree.Repeat):
                count = integers.lower(step.count).substitute(values)
                found.append(Repeated(count, self.steps(program, step.body, integers, values, mul(times, count))))
                continue
            if isinstance(step, tree.Collective):
                dims = tuple(integers.lower(d).substitute(values) for d in step.dims)
                devices = integers.lower(step.devices).substitute(values)
                kind = TYPES[step.type.text]
                self._room()
                self.exchanges.append(Exchange(step, program.source, kind, dims, devices, times))
                continue
            name = step.kernel.text
            arguments = [integers.lower(a).substitute(values) for a in step.args]
            if name in self.checked.programs:
                inner = self.checked.programs[name]
                found += self.run(inner, _bound(inner.tree.parameters, arguments), times)
            else:
                found.append(len(self.found))
                self.launch(step, arguments, times)
        return tuple(found)

    def launch(self, step: tree.Run, arguments: Sequence[IntExpr], times: IntExpr) -> None:
        self._room()
        checked = self.checked.kernels[step.kernel.text]
        values = _bound(checked.tree.parameters, arguments)
        constants: dict[str, int] = {}
        decided: list[tuple[str, frozenset[str]]] = []
        for parameter in checked.tree.parameters:
            if not parameter.const:
                continue
            value = values.pop(parameter.name.text)
            missing = value.symbols() - self.given.keys()
            if missing:
                message = (
                    f"the kernel `{step.kernel.text}` needs a number for its `const` parameter `{parameter.name.text}`"
                )
                raise CommandError(message, f"give the program's `{min(missing)}` with --set {min(missing)}=2")
            constants[parameter.name.text] = value.evaluate(self.given)
            decided.append((parameter.name.text, value.symbols()))
        self.found.append(Launch(lower(checked, constants), tuple(values.items()), times, step, tuple(decided)))

    def _room(self) -> None:
        if len(self.found) + len(self.exchanges) == MAX_RUNS:
            message = f"program {self.name} has more than {MAX_RUNS:,} `run` and `collective` lines in total"
            raise CommandError(message, "write `repeat N:` around the repeated lines")


def _bound(parameters: Sequence[tree.Parameter], arguments: Sequence[IntExpr]) -> dict[str, IntExpr]:
    """Parameters with their arguments by position; those left out at the end have their defaults."""
    rest = [Const(default_of(p) or 1) for p in parameters[len(arguments) :]]
    return {p.name.text: value for p, value in zip(parameters, [*arguments, *rest], strict=True)}
