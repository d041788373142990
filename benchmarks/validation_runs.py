"""The runs of a validation as values, and how far the expected times are from the measured ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from benchmarks.kernel_class import CLASSES
from roofdsl.machine.model import Machine
from roofdsl.measure.measurement import MATH, Measurement
from roofdsl.measure.timing import MOST_SPREAD, median
from roofdsl.validate.compare import DEFAULTS, Comparison

CLOSE = 0.25
"""A run is close where |expected / measured - 1| is no larger."""

DISTURBED = 0.1
"""Processor time of other programs, in cores, from which the report names a run as disturbed."""


@dataclass(frozen=True)
class Refusal:
    """A run that was not made, and why."""

    kernel: str
    sizes: str
    reason: str


@dataclass(frozen=True)
class Ran:
    """One run beside its prediction.

    kind: the class of the kernel, of `kernel_class.CLASSES`. memory_per_s: the bandwidth of memory measured right
    before and after the run, None for data in caches; the prediction is by the higher one. others: cores that other
    programs kept busy meanwhile. repeats: of a run above the bound, made right after it.
    """

    compared: Comparison
    kind: str
    memory_per_s: tuple[float, float] | None = None
    others: float | None = None
    repeats: tuple[Ran, ...] = ()

    @property
    def kernel(self) -> str:
        return self.compared.prediction.kernel

    @property
    def sizes(self) -> str:
        return ", ".join(f"{n}={v}" for n, v in self.compared.prediction.parameters)

    @property
    def math(self) -> str:
        """What the compiler of CPU code was allowed to do: "relaxed", "strict", or nothing where it does not apply."""
        return str(self.compared.measurement.details.get(MATH, ""))

    @property
    def measured_s(self) -> float:
        return self.compared.measured_s

    @property
    def bound_s(self) -> float:
        return self.compared.bound_s

    @property
    def expected_s(self) -> float | None:
        return self.compared.expected_s

    @property
    def of_bound(self) -> float:
        """The measured rate over the bound's: at most 1 if the bound is one."""
        return self.compared.bound_ratio

    @property
    def of_expected(self) -> float | None:
        """Expected over measured time: below 1 the code is slower than expected, above it faster."""
        return None if self.expected_s is None else self.expected_s / self.measured_s

    @property
    def shared(self) -> str:
        """How somebody else's thread on the core, or another program, shows in the samples; empty if hardly."""
        return shared(self.compared.measurement)

    @property
    def is_close(self) -> bool:
        return self.of_expected is not None and abs(self.of_expected - 1) <= CLOSE

    @property
    def is_above(self) -> bool:
        """Whether it is faster than the bound allows."""
        return is_above(self.of_bound)


def shared(m: Measurement) -> str:
    """How somebody else's thread on the core, or another program, shows in the samples; empty if hardly."""
    aside = m.details.get("disturbed_s", ())
    alone = len(set(m.times_s) - set(aside))
    if len(aside) >= alone:
        return f"the core was shared during {len(aside)} of {len(aside) + alone} samples"
    spread = m.times.spread
    return f"the samples spread by {spread:.0%}" if spread > MOST_SPREAD else ""


def is_above(of_bound: float) -> bool:
    """Whether a measured rate over the bound's contradicts the bound."""
    return of_bound > 1 + DEFAULTS.margin


@dataclass(frozen=True)
class Report:
    """All runs of one session, and what was refused.

    taken_up: how many runs are of an earlier, interrupted process; `seconds` are of the last one. notes: what else is
    to be said of where the measurements come from.
    """

    machine: Machine
    runs: tuple[Ran, ...]
    refusals: tuple[Refusal, ...]
    seconds: float = 0.0
    taken_up: int = 0
    notes: tuple[str, ...] = ()

    @property
    def above(self) -> tuple[Ran, ...]:
        return tuple(run for run in self.runs if run.is_above)

    @property
    def expected(self) -> tuple[Ran, ...]:
        """The runs that have an expected time."""
        return tuple(run for run in self.runs if run.expected_s is not None)

    @property
    def levels(self) -> tuple[str, ...]:
        """Where data can lie, nearest first."""
        return (*(cache.name for cache in self.machine.caches), self.machine.main_memory.name)

    def level_of(self, run: Ran) -> str:
        """The nearest cache that holds the data; memory where none does."""
        held = run.compared.prediction.footprint_bytes or 0
        caches = self.machine.caches
        return next((c.name for c in caches if held <= c.kept_bytes), self.machine.main_memory.name)


@dataclass(frozen=True)
class Errors:
    """How far expected times are from measured ones, over some runs.

    median: of |expected / measured - 1|. close, within_two: how many are within CLOSE, and within a factor of two.
    least, middle, greatest: of expected / measured.
    """

    count: int
    median: float
    close: int
    within_two: int
    least: float
    middle: float
    greatest: float


def errors(runs: Iterable[Ran]) -> Errors | None:
    """Over the runs that have an expected time; None where none has."""
    ratios = [run.of_expected for run in runs if run.of_expected is not None]
    if not ratios:
        return None
    off = [abs(ratio - 1) for ratio in ratios]
    return Errors(
        len(ratios),
        median(off),
        sum(error <= CLOSE for error in off),
        sum(0.5 <= ratio <= 2 for ratio in ratios),
        min(ratios),
        median(ratios),
        max(ratios),
    )


def groups(report: Report) -> list[tuple[str, tuple[Ran, ...]]]:
    """All runs, and those of each group: by math, by where the data lie, by the first bound, by class."""
    runs = report.runs

    def by(label: str, names: Sequence[str], of: Callable[[Ran], str]) -> list[tuple[str, tuple[Ran, ...]]]:
        return [(f"{label}{name}", tuple(run for run in runs if of(run) == name)) for name in names]

    maths = sorted({run.math for run in runs} - {""})
    found = [("all runs", runs)]
    found += by("", (CALM, SHARED), lambda run: SHARED if run.shared else CALM)
    found += by("half ", HALVES, lambda run: half_of(run.kernel))
    if len(maths) > 1:
        found += by("math ", maths, lambda run: run.math)
    found += by("data in ", report.levels, report.level_of)
    found += by("bound by ", first_bounds(report), first_bound)
    found += by("", tuple(CLASSES), lambda run: run.kind)
    return [(name, own) for name, own in found if own]


CALM, SHARED = "on a core of its own", "on a core that was shared"
HALVES = ("A", "B")


def half_of(kernel: str) -> str:
    """A or B, by the last bit of the SHA-256 of its name."""
    return HALVES[sha256(kernel.encode()).digest()[-1] & 1]


def first_bound(run: Ran) -> str:
    """What takes longest by the bound; the first where several are within a tenth of each other."""
    return next(iter(run.compared.prediction.bounds), "nothing")


def first_bounds(report: Report) -> tuple[str, ...]:
    """Launch, compute, levels from the nearest to memory, then what else there is."""
    found = dict.fromkeys(["launch", "compute", *report.levels])
    return tuple(found | dict.fromkeys(map(first_bound, report.runs)))
