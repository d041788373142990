"""Points from a profiler or a document compared with predictions: time, operations, and bytes level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean, plural
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import launches_by_function
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.profiler.measured_points import MeasuredPoint, Points
from roofdsl.validate.compare import DEFAULTS, Limits, Verdict

Amount = Literal["as predicted", "more than predicted", "less than predicted"]


@dataclass(frozen=True)
class LevelCheck:
    """Bytes of one execution across a boundary; `level` is its name in the prediction."""

    level: str
    predicted_bytes: int
    measured_bytes: float
    verdict: Amount

    @property
    def ratio(self) -> float:
        """Measured over predicted bytes."""
        return self.measured_bytes / self.predicted_bytes


@dataclass(frozen=True)
class PointCheck:
    """A prediction and the point that measures it, per execution: the point's launches are divided among the
    executions.

    executions: the number of executions of the kernel that the point covers. verdict: on the time, None if the point
    has none. not_measured, not_predicted: levels known to only one of the two.
    """

    prediction: Prediction
    point: MeasuredPoint
    origin: str
    source: str
    executions: int
    verdict: Verdict | None
    levels: tuple[LevelCheck, ...]
    not_measured: tuple[str, ...]
    not_predicted: tuple[str, ...]

    @property
    def bound_s(self) -> float:
        return float(self.prediction.bound_s)

    @property
    def measured_s(self) -> float | None:
        """Seconds of one execution."""
        return None if self.point.time_s is None else self.point.time_s / self.executions

    @property
    def measured_work(self) -> float | None:
        """Operations of one execution, as the profiler counts them."""
        return None if self.point.work_flops is None else self.point.work_flops / self.executions

    @property
    def ratio(self) -> float | None:
        """Measured performance over the bound's, as `compare.Comparison.bound_ratio`."""
        return None if not self.measured_s else self.bound_s / self.measured_s

    @property
    def agrees(self) -> bool:
        return self.verdict in (None, "as predicted") and all(x.verdict == "as predicted" for x in self.levels)


def compare_points(
    kernels: Sequence[tuple[Kernel, Mapping[str, int]]],
    documents: Sequence[Points],
    names: Mapping[str, str],
    machine: Machine,
    *,
    options: Options | None = None,
    limits: Limits = DEFAULTS,
) -> list[PointCheck]:
    """Compare every point of these kernels, at the sizes given with them, with its prediction on `machine`.

    A point belongs to a kernel if it has its name, as in code that `emit` writes, or the name that `names` gives for
    it. Raises CommandError if a name is missing on either side, for a kernel at several sizes (points do not state
    sizes), and whatever `check_point` raises.
    """
    held = list(dict.fromkeys(name for d in documents for p in d.points for name in (p.label, p.kernel)))
    asked = [kernel.name for kernel, _ in kernels]
    for whose, label in names.items():
        if whose not in asked:
            known = ", ".join(dict.fromkeys(asked))
            raise CommandError(f"there is no kernel `{whose}` for the point `{label}`", f"the kernels are {known}")
        if label not in held:
            help = did_you_mean(label, held, points_held(documents))
            raise CommandError(f"the results contain no point `{label}`", help)
    found = []
    for kernel, sizes in kernels:
        own = [
            (d, p) for d in documents for p in d.points if names.get(kernel.name, kernel.name) in (p.label, p.kernel)
        ]
        if own and asked.count(kernel.name) > 1:
            raise CommandError(
                f"a point states no sizes, but {kernel.name} is to be compared at {asked.count(kernel.name)} sizes",
                "give the sizes of the profiled run, with --set",
            )
        found += [check_point(kernel, sizes, d, p, machine, options=options, limits=limits) for d, p in own]
    return found


def points_held(documents: Sequence[Points]) -> str:
    """`they hold axpy, gemm`."""
    labels = dict.fromkeys(p.label for d in documents for p in d.points)
    return f"they hold {', '.join(labels) or 'no points'}"


def check_point(
    kernel: Kernel,
    sizes: Mapping[str, int],
    document: Points,
    point: MeasuredPoint,
    machine: Machine,
    *,
    options: Options | None = None,
    limits: Limits = DEFAULTS,
) -> PointCheck:
    """Compare the point with the prediction at `sizes`, which a point does not state.

    A level is compared with the one of the same name, and what a profiler calls HBM with the machine's memory. Raises
    what prediction raises, CommandError if the point has neither time nor bytes, and what `_executions` raises.
    """
    p = predict(kernel, sizes, machine, options or Options())
    executions = point.launches if document.origin == "cited" else _executions(kernel, dict(p.parameters), point)
    if point.time_s is None and not point.levels:
        raise CommandError(f"{point.label} has neither a time nor bytes to compare", "; ".join(point.missing))
    measured = {p.memory.name if x.name == "HBM" else x.name: x.bytes / executions for x in point.levels}
    predicted = {x.name: x.bytes for x in p.levels}
    levels = tuple(
        LevelCheck(name, predicted[name], measured[name], _amount(measured[name] / predicted[name], limits))
        for name in predicted
        if predicted[name] and name in measured
    )
    verdict = None if not point.time_s else limits.verdict(float(p.bound_s) / (point.time_s / executions))
    not_measured = tuple(name for name in predicted if name not in measured)
    not_predicted = tuple(name for name in measured if name not in predicted)
    return PointCheck(
        p, point, document.origin, document.source, executions, verdict, levels, not_measured, not_predicted
    )


def _executions(kernel: Kernel, sizes: Mapping[str, int], point: MeasuredPoint) -> int:
    """How many executions of the kernel the launches of a point make up.

    If the host runs loops around the only function of the generated code, an execution is several launches. Other
    code is taken to launch its own function as often, or once if the generated code has several functions.

    Raises CommandError if the launches do not make up a whole number of executions, and for one of several functions
    of the generated code.
    """
    made = launches_by_function(kernel, sizes)
    if len(made) > 1 and made.keys() & {point.label, point.kernel}:
        raise CommandError(
            f"{point.label} is one of the {len(made)} functions that {kernel.name} launches",
            "compare a kernel with only the loops of this function",
        )
    each = next(iter(made.values())) if len(made) == 1 else 1
    if point.launches % each:
        raise CommandError(
            f"{point.label} has {plural(point.launches, 'launch', 'launches')}, but one execution of {kernel.name} "
            f"makes {each}",
            "import a report of complete executions",
        )
    return point.launches // each


def _amount(ratio: float, limits: Limits) -> Amount:
    if ratio > 1 + limits.tolerance:
        return "more than predicted"
    return "less than predicted" if ratio < 1 - limits.tolerance else "as predicted"
