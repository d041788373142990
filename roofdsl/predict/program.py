"""The prediction of a program: the sum over its launches, each starting cold (docs/rules.md, rule 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from roofdsl.counts.operations import operation_counts
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import require_affine_program
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.energy import with_energy
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.told_apart import told_apart

if TYPE_CHECKING:
    from roofdsl.loops.program_at_sizes import ProgramAt


class KernelTotal(Record):
    """All launches of one kernel in a program, whatever their sizes, or all collectives of one kind and array.

    total: their sum. share: their fraction of the program's time at the bound. bounds: theirs, largest time first.
    """

    total: Prediction
    share: Fraction
    bounds: tuple[str, ...]

    @property
    def collectives(self) -> int:
        """The number of collectives; 0 for a kernel."""
        return sum(link.collectives for link in self.total.links)

    def to_json(self) -> dict[str, Any]:
        intensity = self.total.intensity
        return {
            "kernel": self.total.kernel,
            "launches": self.total.launches,
            **({"collectives": self.collectives} if self.collectives else {}),
            "work_flops": self.total.work,
            "bytes": self.total.memory.bytes,
            "intensity": None if intensity is None else float(intensity),
            "unit": self.total.unit,
            "time_s": float(self.total.bound_s),
            "expected_s": None if self.total.expected is None else float(self.total.expected.expected_s),
            "share": float(self.share),
            "bounds": list(self.bounds),
            **({} if self.total.energy is None else {"energy_j": float(self.total.energy.total_j)}),
        }


class ProgramPrediction(Record):
    """A program as the sum of its launches and collectives; `parts` are the sums over equal ones."""

    total: Prediction
    parts: tuple[Prediction, ...]

    @property
    def by_kernel(self) -> tuple[KernelTotal, ...]:
        """The kernels, the slowest first."""
        named: dict[str, list[Prediction]] = {}
        for part in self.parts:
            named.setdefault(part.kernel, []).append(part)
        whole = self.total.bound_s
        rows = []
        for parts in named.values():
            total = _summed(parts)
            bounds = dict.fromkeys(p.bound for p in sorted(parts, key=lambda p: -p.bound_s))
            rows.append(KernelTotal(total, total.bound_s / whole if whole else Fraction(0), tuple(bounds)))
        return tuple(sorted(rows, key=lambda row: -row.total.bound_s))

    @property
    def time_by_bound(self) -> tuple[tuple[str, Fraction], ...]:
        """Seconds spent in launches with each bound, the longest first."""
        found: dict[str, Fraction] = {}
        for part in self.parts:
            found[part.bound] = found.get(part.bound, Fraction(0)) + part.bound_s
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
    """All launches of program `name` in sequence on `machine`.

    Bounds and expected times are added, and so are W, Q, launches and each term of the time. `options.unit` applies
    to the launches that can use it, contractions in a type for which the machine has the unit; the assumptions name the
    others. Raises CommandError for a parameter that is missing or unknown, and what `predict` raises.
    """
    from roofdsl.loops.program_at_sizes import program_at

    return predict_at(program_at(checked, name, settings), machine, options)


def predict_at(at: ProgramAt, machine: Machine, options: Options = DEFAULTS) -> ProgramPrediction:
    """As `predict_launches`, for a program whose parameters are numbers.

    `parts` are in the order of `at.launched`, then `at.exchanges`; the time of a collective is added like that of a
    launch.

    With `options.warm`, the program is executed repeatedly, each kernel at each size has separate arrays, and a cache
    still holds the arrays of a launch if the launches since then touched no more than it holds. The result is exact if
    they touched nothing, or more than the cache holds. Otherwise it assumes the most that can be left, so the time is a
    lower bound. Raises CommandError for a kernel with index arrays, and what `predict` raises.
    """
    require_affine_program(at.name, (part.kernel for part in at.launched))
    if at.exchanges:
        from roofdsl.predict.exchanges import exchange, network

        for e in at.exchanges:
            network(e, machine)  # errors in links are reported at once, not after all launches are counted
    units = Units(machine, options.unit)
    cold = replace(options, warm=False)
    launches = [
        predict(part.kernel, dict(part.arguments), machine, replace(cold, unit=units.of(part.kernel)))
        for part in at.launched
    ]
    if options.warm:
        from roofdsl.predict.repeated_program import steady_parts

        parts = steady_parts(at, launches, machine, options, units.of)
    else:
        parts = tuple(p * part.times for p, part in zip(launches, at.launched, strict=True))
    if at.exchanges:
        kernels = _summed(parts)
        exchanged = [exchange(e, machine, kernels, options.step_s) for e in at.exchanges]
        parts += tuple(with_energy(p, machine) if options.energy else p for p in exchanged)
    total = replace(_summed(parts), kernel=at.name, parameters=at.parameters)
    notes, warnings = units.notes(), units.warnings(at.name)
    assumed = told_apart([(p.kernel, p.assumptions) for p in parts if not p.links])
    sent = dict.fromkeys(text for p in parts if p.links for text in p.assumptions)  # each says which link it is about
    total = replace(total, assumptions=(*notes, *assumed, *sent), warnings=(*warnings, *total.warnings))
    return ProgramPrediction(total, parts)


def _summed(parts: Sequence[Prediction]) -> Prediction:
    return reduce(add, parts)


class Units:
    """Which launches run on the requested unit, and which do not, in words (rule 14).

    A launch that does not run on it runs on the unit that the kernel states, if any.
    """

    def __init__(self, machine: Machine, unit: str | None) -> None:
        self.machine, self.unit = machine, unit
        self.taken = False
        self.left: dict[str, list[str]] = {}

    def of(self, kernel: Kernel) -> str | None:
        """The requested unit if this launch can use it; None otherwise."""
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
            why += f"; `unit {kernel.unit}` of the kernel applies" if kernel.unit else ""
        names = self.left.setdefault(why or "no contraction", [])
        if kernel.name not in names:
            names.append(kernel.name)
        return None

    def notes(self) -> tuple[str, ...]:
        """The kernels that do not run on the requested unit, and why."""
        return tuple(f"not on {self.unit} units: {', '.join(names)} ({reason})" for reason, names in self.left.items())

    def warnings(self, program: str) -> tuple[str, ...]:
        """A warning if no launch runs on the unit."""
        return (f"no launch of {program} runs on {self.unit} units",) if self.left and not self.taken else ()
