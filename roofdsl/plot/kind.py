"""The definition of a kind of figure: its options, and how it is drawn from them (`plot.kinds` has a file for each)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.program_at_sizes import ProgramOf
from roofdsl.machine.model import Machine
from roofdsl.plot.look import USUAL, Look, warn_about_figure
from roofdsl.plot.roofline_points import common_sizes
from roofdsl.plot.roofs import Ceilings
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.validate.compare import Comparison


@dataclass(frozen=True)
class Option:
    """An option of a kind: its flag, its text in `--help`, and what it takes.

    takes: a text as it is, an integer above 0, bytes ("32KiB"), or nothing. `read` converts a text and raises
    ValueError for a wrong one. many: whether the option may be repeated; the figure then gets a tuple.
    """

    flag: str
    about: str
    metavar: str | None = None
    takes: Literal["text", "count", "size", "nothing"] = "text"
    many: bool = False
    read: Callable[[str], Any] | None = None

    @property
    def name(self) -> str:
        """The name of the argument that the figure gets."""
        return self.flag.removeprefix("--").replace("-", "_")


Shared = Literal[
    "machine",
    "machines",
    "optional machine",
    "set",
    "traffic",
    "unit",
    "type",
    "results",
    "results of energy",
    "ceilings",
]
"""Options that are the same for every kind that has them. `Asked` holds their values."""


@dataclass(frozen=True)
class Kind:
    """A kind of figure, which is named like its file.

    line: its description in the list of kinds. about: the beginning of its own help. options: in the order of its help.
    figure: a function of `Asked` and, by name, of its own options; it returns the matplotlib Figure, or raises
    CommandError if there is nothing to draw. files: its subjects: "[FILE...]", at least one "FILE...", or one kernel
    "FILE". has_bars: whether it is a bar chart, whose y axis has no numbers to be limited.
    """

    line: str
    about: str
    options: tuple[Shared | Option, ...]
    figure: Callable[..., Any]
    files: Literal["[FILE...]", "FILE...", "FILE"] = "[FILE...]"
    has_bars: bool = False


def at_option(about: str) -> Option:
    """`--at`, which gives sizes for the FILEs: `Asked` has the subjects at each of them."""
    return Option("--at", about, "n=64|n=8..64:*2", many=True)


POINTS = Option(
    "--points", "A file of measured points, or a shipped citation (repeatable).", "POINTS.json|NAME", many=True
)


@dataclass(frozen=True)
class Asked:
    """The request for a figure.

    subjects: kernels and programs with their parameters, in order. measured: compares the stored results, if any are
    given, with predictions under the given options; raises CommandError if none of them is of the subjects. warn:
    called with what is left out.
    """

    subjects: Sequence[tuple[Kernel | ProgramOf, Mapping[str, int]]]
    machines: Sequence[Machine]
    traffic: Traffic | None = None
    unit: str | None = None
    types: tuple[str, ...] = ()
    ceilings: Ceilings = "few"
    look: Look = USUAL
    measured: Callable[[Options], Sequence[Comparison]] = lambda _: ()
    warn: Callable[[str], None] = warn_about_figure

    @property
    def machine(self) -> Machine:
        """The machine, for kinds that take one."""
        return self.machines[0]

    @property
    def options(self) -> Options:
        """The options of the predictions."""
        return Options(self.traffic, self.unit)

    def launched(self, options: Options | None = None) -> list[tuple[Prediction, ProgramPrediction | None]]:
        """A prediction for every subject on every machine; for a program, with those of its launches. The warnings of
        predictions go to `warn`.
        """
        found: list[tuple[Prediction, ProgramPrediction | None]] = []
        for machine in self.machines:
            for subject, sizes in self.subjects:
                if isinstance(subject, Kernel):
                    found.append((predict(subject, sizes, machine, options or self.options), None))
                else:
                    program = predict_launches(subject.checked, subject.name, sizes, machine, options or self.options)
                    found.append((program.total, program))
        for message in dict.fromkeys(w for p, _ in found for w in p.warnings):
            self.warn(message)
        return found

    def predicted(self, options: Options | None = None) -> list[Prediction]:
        """Like `launched`, but only the totals."""
        return [p for p, _ in self.launched(options)]

    def types_of(self, predictions: Sequence[Prediction]) -> tuple[str, ...]:
        """The types whose roofs are drawn: those requested, otherwise those of the predictions."""
        return self.types or tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))

    def title(self, predictions: Sequence[Prediction]) -> str:
        """The machine, and what the predictions have in common."""
        return "\n".join(filter(None, [self.machine.title or self.machine.name, common_sizes(predictions)]))


def units_of(predictions: Sequence[Prediction]) -> tuple[str, ...]:
    """The matrix units whose roofs are drawn."""
    return tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
