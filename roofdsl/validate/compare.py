"""Compares a prediction with the measurement of the same kernel at the same size, and reaches a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import plural
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size
from roofdsl.measure.energy_counter import measured_j, measured_w
from roofdsl.measure.measurement import CORES, OTHERS, Launches, Measurement
from roofdsl.measure.other_load import BUSY, taken_by_others
from roofdsl.measure.timing import quantile
from roofdsl.predict.expected import Cause
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction
from roofdsl.predict.time_model import COMPUTE, LAUNCH

Verdict = Literal["as predicted", "slower than predicted", "faster than predicted", "above the roof", "inconclusive"]


@dataclass(frozen=True)
class Limits:
    """Which ratios of measured to predicted performance count as agreement.

    A ratio to the expected performance (where there is one, else to the bound) below 1 - tolerance is slower than
    predicted, one above 1 / (1 - tolerance) faster. The bound is an upper bound on performance, so a ratio to it above
    1 + margin contradicts the model, whatever the tolerance; the margin allows for clock noise.
    """

    tolerance: float = 0.25
    margin: float = 0.05

    def verdict(self, ratio: float, bound_ratio: float | None = None) -> Verdict:
        """The verdict on a ratio to the expected performance, and on the ratio to the bound, if that is another one."""
        if (ratio if bound_ratio is None else bound_ratio) > 1 + self.margin:
            return "above the roof"
        if bound_ratio is not None and ratio * (1 - self.tolerance) > 1:
            return "faster than predicted"
        return "slower than predicted" if ratio < 1 - self.tolerance else "as predicted"

    def judged(self, prediction: Prediction, measured_s: float) -> Verdict:
        """The verdict on a measured time."""
        bound_ratio = float(prediction.bound_s) / measured_s
        if prediction.expected is None:
            return self.verdict(bound_ratio)
        return self.verdict(float(prediction.expected.expected_s) / measured_s, bound_ratio)


DEFAULTS = Limits()

OTHERS_EXPLAIN = 0.1
"""Other programs share a core or the memory with a run, but they do not take nine tenths of either. If the ratio of
measured to predicted performance is below this, the run is slower than predicted, whatever else was running.
"""


@dataclass(frozen=True)
class LaunchComparison:
    """All launches of one kernel at one size in a program: their predicted time in total, and their measurement."""

    prediction: Prediction
    measured: Launches
    verdict: Verdict

    @property
    def ratio(self) -> float:
        """Measured over expected performance, or over that of the bound where there is no expected time."""
        return _predicted(self.prediction) / self.measured.median_s

    @property
    def bound_ratio(self) -> float:
        """Measured performance over the bound's."""
        return float(self.prediction.bound_s) / self.measured.median_s


@dataclass(frozen=True)
class Comparison:
    """A prediction, a measurement, and the verdict. `causes`: possible reasons for a measurement above the roof.

    disturbed: what disturbed the measurement (or that of the machine) and makes it inconclusive; empty if nothing did.
    For a program, `by_launch` has the same for its launches; the verdict applies to the whole program.
    """

    prediction: Prediction
    measurement: Measurement
    verdict: Verdict
    causes: tuple[str, ...] = ()
    by_launch: tuple[LaunchComparison, ...] = ()
    disturbed: str = ""

    @property
    def bound_s(self) -> float:
        """The bound: no code with these accesses is faster."""
        return float(self.prediction.bound_s)

    @property
    def expected_s(self) -> float | None:
        return None if self.prediction.expected is None else float(self.prediction.expected.expected_s)

    @property
    def measured_s(self) -> float:
        """The median of the repeats, in seconds."""
        return self.measurement.median_s

    @property
    def measured_j(self) -> float | None:
        """The measured energy of a call, in joules; None if it was not measured."""
        return measured_j(self.measurement.details)

    @property
    def measured_w(self) -> float | None:
        """The average power while it was measured, in watts; None if it was not measured."""
        return measured_w(self.measurement.details)

    @property
    def cores(self) -> int | None:
        """On how many cores it was measured, if that was asked for; the prediction is for as many."""
        asked = self.measurement.details.get(CORES)
        return asked if isinstance(asked, int) else None

    @property
    def ratio(self) -> float:
        """Measured over expected performance, that is, expected over measured time: 1 reaches the model.

        Where there is no expected time, this is `bound_ratio`.
        """
        return _predicted(self.prediction) / self.measured_s

    @property
    def bound_ratio(self) -> float:
        """Measured performance over the bound's: 1 reaches the roof."""
        return self.bound_s / self.measured_s

    @property
    def largest_cause(self) -> Cause | None:
        """The largest cause of the expected distance from the bound; None without an expected time or causes."""
        return None if self.prediction.expected is None else next(iter(self.prediction.expected.causes), None)


def _predicted(prediction: Prediction) -> float:
    """The expected time, else the bound."""
    return float(prediction.bound_s if prediction.expected is None else prediction.expected.expected_s)


def compare(
    prediction: Prediction, measurement: Measurement, machine: Machine, limits: Limits = DEFAULTS
) -> Comparison:
    """The comparison of the two. Raises CommandError if they belong to different kernels or sizes."""
    if prediction.kernel != measurement.kernel or dict(prediction.parameters) != dict(measurement.parameters):
        raise CommandError(
            f"the prediction is of {_what(prediction.kernel, prediction.parameters)}, the measurement of "
            f"{_what(measurement.kernel, measurement.parameters)}"
        )
    verdict = limits.judged(prediction, measurement.median_s)
    causes = _causes(prediction, measurement, machine) if verdict == "above the roof" else ()
    found = Comparison(prediction, measurement, verdict, causes)
    if verdict == "slower than predicted" and (why := _disturbance(prediction, measurement, limits)):
        return replace(found, verdict="inconclusive", disturbed=why)
    return found


def _disturbance(p: Prediction, m: Measurement, limits: Limits) -> str:
    """Why a measurement slower than predicted proves nothing; empty if it is conclusive."""
    if _predicted(p) / m.median_s < OTHERS_EXPLAIN:
        return ""
    others = m.details.get(OTHERS)
    if isinstance(others, (int, float)) and others >= BUSY:
        return taken_by_others(float(others))
    if m.times.noisy and limits.judged(p, m.low_s) != "slower than predicted":
        return f"its times spread by {m.times.spread:.0%}, and the shorter ones are as predicted"
    return ""


def on_doubtful_machine(found: Comparison, why: str) -> Comparison:
    """The comparison if the machine itself was disturbed while it was characterized: its roof may be too low."""
    if found.verdict != "above the roof":
        return found
    return replace(found, verdict="inconclusive", disturbed=f"when the machine was measured, {why}", causes=())


def compare_program(
    prediction: ProgramPrediction, measurement: Measurement, machine: Machine, limits: Limits = DEFAULTS
) -> Comparison:
    """Like `compare`, for a program. Raises CommandError if its launches have changed since it was measured."""
    whole = compare(prediction.total, measurement, machine, limits)
    parts = {(p.kernel, p.parameters): p for p in prediction.parts}
    launched = {(part.of.kernel, part.of.parameters): part for part in measurement.by_launch}
    now = {key: p.kernel_executions for key, p in parts.items()}
    if now != {key: part.launches for key, part in launched.items()}:
        raise CommandError(
            f"{measurement.kernel} launched other kernels or sizes when it was measured", "measure it again"
        )
    found = []
    for key, p in parts.items():
        part = launched[key]
        verdict = limits.judged(p, part.median_s)
        if whole.verdict == "inconclusive" and verdict == "slower than predicted":
            verdict = "inconclusive"
        found.append(LaunchComparison(p, part, verdict))
    return replace(whole, by_launch=tuple(found))


def _what(kernel: str, parameters: tuple[tuple[str, int], ...]) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in parameters)
    return f"{kernel} at {sizes}" if sizes else kernel


def _causes(p: Prediction, m: Measurement, machine: Machine) -> tuple[str, ...]:
    """What the two records suggest as causes of a measurement faster than the model allows, the likeliest first."""
    found = []
    caches = sum(cache.size_bytes * cache.copies for cache in machine.caches)
    touched = p.footprint_bytes or 0
    memory_bound = p.memory.name in p.bounds
    if memory_bound and machine.caches and 0 < touched <= 4 * caches:  # 0: what it touches was not counted
        found.append(
            f"part of its {show_size(touched)} of data stays in the caches ({show_size(caches)} as stated): while "
            "other cores are idle, one core can use more of a shared cache, and real caches are not strictly LRU"
        )
    if memory_bound and p.traffic == "write_allocate":
        found.append(
            "its stores may bypass the caches, so that no line is loaded for them: predict with --traffic load_store"
        )
    if machine.units is not None and m.threads > machine.units:
        cores = plural(machine.units, "core")
        found.append(f"it ran on {m.threads} threads, but {machine.name} has {cores}")
    one_way = [v for v in p.levels if v.stores_bytes and v.duplex_bytes is None and v.nearer != "registers"]
    if any(level.name in p.bounds for level in one_way):
        found.append(
            "the level may load and store at the same time, while its bandwidth is stated for both together: "
            "`characterize` measures this and writes `duplex`"
        )
    if any(level.nearer == "registers" and level.kind == "cache" and level.name in p.bounds for level in p.levels):
        found.append(
            "the code keeps more values in registers than the model assumes (a sum over an inner loop, a tile): "
            "predict with --levels memory"
        )
    if COMPUTE in p.bounds:
        found.append(
            "the hardware exceeds the stated peak, for example with a higher clock (turbo), or the compiler removed an "
            "operation or replaced it by a cheaper one"
        )
    if LAUNCH in p.bounds:
        found.append("a call of this kernel takes less than the stated launch time")
    found.append(f"the rates of {machine.name} are those of other hardware, or were measured while it was busy")
    return tuple(found)


@dataclass(frozen=True)
class Distribution:
    """The distribution of the ratios of measured to predicted performance over all runs; no run is left out."""

    count: int
    least: float
    quarter: float
    median: float
    three_quarters: float
    greatest: float


def distribution(ratios: Sequence[float]) -> Distribution:
    """Minimum, quartiles (interpolated linearly) and maximum. Raises ValueError for no ratios."""
    if not ratios:
        raise ValueError("a distribution of no runs")
    parts = (0.0, 0.25, 0.5, 0.75, 1.0)
    return Distribution(len(ratios), *(quantile(sorted(ratios), part) for part in parts))
