"""The definition that `plot energy` and `plot power` share: curves of a machine, points predicted and measured."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.record import replace as with_fields
from roofdsl.machine.energy_roofline import Unstated, energy_roofline, require_energy
from roofdsl.machine.model import Machine, operation
from roofdsl.plot.energy_plane import Arch, Quantity, Spot, draw_energy
from roofdsl.plot.kind import Asked, Kind, Option, at_option
from roofdsl.plot.roofline_points import intensity_of, labels_of
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.prediction import Prediction

NO_INTENSITY = "it has no operations, or moves nothing"
_LARGEST_FILE = 4 << 20
_MOST = {"flop_per_byte": "1e12", "gflop_per_s": "1e15", "watt": "1e9"}
COLUMNS = tuple(_MOST)


def energy_kind(quantity: Quantity, line: str, about: str, read: Callable[[str], Spot], metavar: str) -> Kind:
    """A kind that draws this quantity. read: the reader of a measured point."""

    def figure(asked: Asked, *, measured: tuple[Spot, ...], points: tuple[str, ...]) -> Any:
        require_energy(asked.machine)
        options = with_fields(asked.options, energy=True, code=Code())
        predictions = asked.predicted(options)
        spots = [*_predicted(asked, predictions, quantity), *_results(asked, quantity), *measured]
        spots += [spot for path in points for spot in _of_file(Path(path), quantity)]
        arches = arches_of(asked.machine, asked, predictions)
        return draw_energy(quantity, arches, spots, asked.title(predictions), look=asked.look)

    return Kind(
        line,
        about,
        (
            "machine",
            "set",
            at_option("A size to draw, or a range of sizes (repeatable)."),
            "traffic",
            "unit",
            "type",
            "results of energy",
            Option("--measured", "A measured point (repeatable).", metavar, many=True, read=read),
            Option(
                "--points", f"A table of measured points: {', '.join(COLUMNS)} (repeatable).", "FILE.csv", many=True
            ),
        ),
        figure,
    )


def arches_of(machine: Machine, asked: Asked, predictions: list[Prediction]) -> list[Arch]:
    """The curves of the requested types, else of the predictions' types, else of all types whose energy is stated.

    Raises CommandError if the energy of a requested or predicted type is not stated.
    """
    wanted = [(name, asked.unit) for name in asked.types]
    wanted = wanted or list(dict.fromkeys((p.type, p.unit) for p in predictions if p.type is not None))
    found = []
    for name, unit in wanted or [(name, asked.unit) for name in machine.types]:
        try:
            of = energy_roofline(machine, name, unit)
        except Unstated as error:
            if not wanted:
                continue
            message, _, help = str(error).partition(": ")
            raise CommandError(message, help) from None
        label = f"{name} {unit.replace('_', ' ')}" if unit else name
        found.append(Arch(label, operation(name), _in_floats(of)))
    return found


def _in_floats(of: Any) -> Any:
    return type(of)(*(None if value is None else float(value) for value in (getattr(of, n) for n in of.__match_args__)))


def _predicted(asked: Asked, predictions: list[Prediction], quantity: Quantity) -> list[Spot]:
    """The points of kernels and programs that have an energy; warns about the others."""
    found = []
    for p, label in zip(predictions, labels_of(predictions), strict=True):
        if p.energy is None or p.intensity is None:
            asked.warn(f"{label} left out: {p.no_energy or NO_INTENSITY}")
            continue
        value = p.energy.per_joule(p.work) if quantity == "efficiency" else p.energy.average_w
        found.append(Spot(label, float(p.intensity), float(value)))
    return found


def _results(asked: Asked, quantity: Quantity) -> list[Spot]:
    """The points of stored results whose energy or power was measured; warns about the others."""
    compared = asked.measured(with_fields(asked.options, code=Code()))
    found = []
    for c, label in zip(compared, labels_of([c.prediction for c in compared]), strict=True):
        measured, intensity = (c.measured_j if quantity == "efficiency" else c.measured_w), c.prediction.intensity
        if measured is None:
            asked.warn(f"the result of {label} has no measured {'energy' if quantity == 'efficiency' else 'power'}")
            continue
        if intensity is None:
            asked.warn(f"the result of {label} left out: {NO_INTENSITY}")
            continue
        value = c.prediction.work / measured if quantity == "efficiency" else measured
        found.append(Spot(label, float(intensity), value, is_measured=True))
    return found


def _of_file(path: Path, quantity: Quantity) -> list[Spot]:
    """The points of a table. Raises CommandError if it cannot be read, lacks a column or has a wrong number."""
    text = read_limited(path, _LARGEST_FILE, "a table of points").decode("utf-8-sig", "replace")
    rows = list(csv.DictReader(text.splitlines(), skipinitialspace=True))
    lacking = [name for name in COLUMNS if not rows or name not in rows[0]]
    if lacking:
        raise CommandError(f"`{path}` has no column `{lacking[0]}`", f"its columns should be {', '.join(COLUMNS)}")
    found = []
    for number, row in enumerate(rows, 2):
        try:
            intensity, rate, watts = (float(row[name] or "") for name in COLUMNS)
        except ValueError:
            raise CommandError(f"`{path}`, line {number}: a number is missing or wrong") from None
        for (name, most), value in zip(_MOST.items(), (intensity, rate, watts), strict=True):
            if not 0 < value < float(most):
                raise CommandError(f"`{path}`, line {number}: `{name}` must be above 0 and below {most}")
        found.append(Spot("", intensity, rate * 1e9 / watts if quantity == "efficiency" else watts, is_measured=True))
    return found


def measured_spot(text: str, value: Callable[[str], float], form: str) -> Spot:
    """A point as `LABEL=I@VALUE`. Raises ValueError, with the `form` that the text should have."""
    label, equals, rest = text.rpartition("=")
    intensity, at, number = rest.partition("@")
    if not (label and equals and at):
        raise ValueError(f"`{text}` is not of the form {form}")
    return Spot(label, intensity_of(intensity), value(number), is_measured=True)
