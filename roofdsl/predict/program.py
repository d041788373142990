"""The prediction of a program: the sum over its launches, each of them cold (counting_and_time.md, rule 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.kernel import DEFAULTS, Options, predict
from roofdsl.predict.time import Prediction

if TYPE_CHECKING:
    from roofdsl.loops.programs import LoweredProgram


class KernelTotal(Record):
    """All launches of one kernel in a program, whatever their sizes.

    total: their sum. share: of the program's expected time. bounds: what bounds them, largest time first.
    """

    total: Prediction
    share: Fraction
    bounds: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        intensity = self.total.intensity
        return {
            "kernel": self.total.kernel,
            "launches": self.total.launches,
            "work_flops": self.total.work,
            "bytes": self.total.memory.bytes,
            "intensity": None if intensity is None else float(intensity),
            "unit": self.total.unit,
            "time_s": float(self.total.expected_s),
            "share": float(self.share),
            "bounds": list(self.bounds),
        }


class ProgramPrediction(Record):
    """A program as the sum of its launches. `parts` are the sums over equal launches: one kernel, one size."""

    total: Prediction
    parts: tuple[Prediction, ...]

    @property
    def by_kernel(self) -> tuple[KernelTotal, ...]:
        """The kernels, the one that takes longest first."""
        named: dict[str, list[Prediction]] = {}
        for part in self.parts:
            named.setdefault(part.kernel, []).append(part)
        whole = self.total.expected_s
        rows = []
        for parts in named.values():
            total = _summed(parts)
            bounds = dict.fromkeys(p.bound for p in sorted(parts, key=lambda p: -p.expected_s))
            rows.append(KernelTotal(total, total.expected_s / whole if whole else Fraction(0), tuple(bounds)))
        return tuple(sorted(rows, key=lambda row: -row.total.expected_s))

    @property
    def time_by_bound(self) -> tuple[tuple[str, Fraction], ...]:
        """Seconds spent in launches with each bound, the longest first."""
        found: dict[str, Fraction] = {}
        for part in self.parts:
            found[part.bound] = found.get(part.bound, Fraction(0)) + part.expected_s
        return tuple(sorted(found.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Any]:
        """The document of the sum (`roofdsl.predict/1`) with its kernels and the time by bound."""
        return self.total.to_json() | {
            "by_kernel": [row.to_json() for row in self.by_kernel],
            "time_by_bound_s": {bound: float(time) for bound, time in self.time_by_bound},
        }


def predict_program(
    checked: CheckedFile, name: str, settings: Mapping[str, int], machine: Machine, options: Options = DEFAULTS
) -> Prediction:
    """The sum over all launches of program `name`: `predict_launches(...).total`."""
    return predict_launches(checked, name, settings, machine, options).total


def predict_launches(
    checked: CheckedFile, name: str, settings: Mapping[str, int], machine: Machine, options: Options = DEFAULTS
) -> ProgramPrediction:
    """All launches of program `name` one after the other on `machine`.

    Expected times add, and so do W, Q, launches and each term of the time. `options.unit` holds for the launches that
    can take it, contractions in a type for which the machine has it; the assumptions name the others. Raises
    CommandError for a parameter that is missing or unknown, and what `predict` raises.
    """
    from roofdsl.loops.programs import program

    lowered = program(checked, name, settings)
    sizes = program_sizes(checked, lowered, settings)
    launched: dict[tuple[object, ...], tuple[Kernel, dict[str, int], int]] = {}
    for launch in lowered.launches:
        arguments = {n: e.evaluate(sizes) for n, e in launch.arguments}
        wrong = next((n for n, v in arguments.items() if v < 1), None)
        times = launch.times.evaluate(sizes)
        if wrong is not None or times < 1:
            what = f"{wrong} = {arguments[wrong]}" if wrong is not None else f"{times} repetitions"
            raise CommandError(f"program {name} runs {launch.kernel.name} with {what} at these sizes")
        key = (launch.kernel.name, launch.kernel.constants, tuple(arguments.items()))
        before = launched[key][2] if key in launched else 0
        launched[key] = (launch.kernel, arguments, before + times)
    if not launched:
        raise CommandError(f"program {name} launches nothing")
    units = Units(machine, options.unit)
    parts = tuple(
        predict(kernel, arguments, machine, replace(options, unit=units.of(kernel))) * times
        for kernel, arguments, times in launched.values()
    )
    given = tuple((n, v) for n, v in settings.items() if n not in sizes)  # numbers of `const` parameters
    total = replace(_summed(parts), kernel=name, parameters=(*sizes.items(), *given))
    notes, warnings = units.notes(), units.warnings(name)
    total = replace(total, assumptions=(*notes, *total.assumptions), warnings=(*warnings, *total.warnings))
    return ProgramPrediction(total, parts)


def program_sizes(
    checked: CheckedFile, lowered: LoweredProgram, settings: Mapping[str, int], free: str | None = None
) -> dict[str, int]:
    """Numbers of all parameters but `free`. Raises CommandError for one that is missing or that there is not."""
    known = {p.name.text for p in checked.programs[lowered.name].tree.parameters}
    unknown = sorted({*settings, *([free] if free is not None else [])} - known)
    if unknown:
        have = f"its parameters are {', '.join(sorted(known))}" if known else "it has none"
        raise CommandError(f"program {lowered.name} has no parameter `{unknown[0]}`", have)
    values = {p.name: settings.get(p.name, p.default) for p in lowered.parameters if p.name != free}
    missing = [n for n, v in values.items() if v is None]
    if missing:
        give = ",".join(f"{n}=..." for n in missing)
        raise CommandError(
            f"program {lowered.name} needs a number for {', '.join(missing)}", f"give it with --set {give}"
        )
    return {n: v for n, v in values.items() if v is not None}


def _summed(parts: Sequence[Prediction]) -> Prediction:
    return reduce(add, parts)


class Units:
    """Which launches run on the unit asked for, and in words which do not (rule 14)."""

    def __init__(self, machine: Machine, unit: str | None) -> None:
        self.machine, self.unit = machine, unit
        self.taken = False
        self.left: dict[str, list[str]] = {}

    def of(self, kernel: Kernel) -> str | None:
        """The unit for this launch; None where it stays on the ordinary pipes."""
        from roofdsl.analysis.operations import operation_counts

        if self.unit is None:
            return None
        why = ""
        if is_contraction(kernel):
            types = {name: None for cost in operation_counts(kernel) for name, _ in cost.operations}
            lacking = [t for t in types if self.machine.stated(t, self.unit) is None]
            if not lacking:
                self.taken = True
                return self.unit
            why = f"{self.machine.name} has no {self.unit} rate for {', '.join(lacking)}"
        names = self.left.setdefault(why or "no contraction", [])
        if kernel.name not in names:
            names.append(kernel.name)
        return None

    def notes(self) -> tuple[str, ...]:
        """What stays on the ordinary pipes, and why."""
        return tuple(f"not on {self.unit} units: {', '.join(names)} ({reason})" for reason, names in self.left.items())

    def warnings(self, program: str) -> tuple[str, ...]:
        """That nothing runs on the unit, where that is so."""
        return (f"no launch of {program} runs on {self.unit} units",) if self.left and not self.taken else ()
