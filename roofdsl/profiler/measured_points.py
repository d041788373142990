"""Measured points: kernels with time, operations and bytes per level, and the documents `roofdsl.points/1`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source, Span
from roofdsl.store.atomic import write_whole

SCHEMA = "roofdsl.points/1"
ORIGINS = ("ncu", "nvprof", "cited")
_LARGEST_FILE = 64 << 20
_LARGEST = 1e100  # far beyond any sum or rate that profilers count (metric_units.LARGEST); derived numbers stay finite


@dataclass(frozen=True)
class TypeWork:
    """Operations of one type: additions and multiplications outside fused pairs, fused pairs (2 operations each), and
    all others. `other` also has operations of which only the number is known: matrix units, totals of a document.
    """

    type: str
    add: float = 0.0
    mul: float = 0.0
    pairs: float = 0.0
    other: float = 0.0

    @property
    def total(self) -> float:
        return self.add + self.mul + 2 * self.pairs + self.other


@dataclass(frozen=True)
class LevelBytes:
    """Bytes moved between a level and the one nearer to the arithmetic, in both directions."""

    name: str
    bytes: float


@dataclass(frozen=True)
class MeasuredPoint:
    """A kernel, all its launches together. Anything not measured is None or left out, and listed in `missing`.

    time_s: seconds of all launches. work: by type, None if nothing was measured. `label` is short, for figures.
    """

    kernel: str
    label: str
    launches: int
    time_s: float | None
    work: tuple[TypeWork, ...] | None
    levels: tuple[LevelBytes, ...]
    missing: tuple[str, ...] = ()

    @property
    def work_flops(self) -> float | None:
        return None if self.work is None else sum(w.total for w in self.work)

    @property
    def flops_per_s(self) -> float | None:
        """Operations per second (Yang et al., Hierarchical Roofline, equation 3)."""
        work = self.work_flops
        return None if work is None or not self.time_s else work / self.time_s

    @property
    def fma_fraction(self) -> float | None:
        """alpha: fused pairs over all instructions (equation 6 there); None if none or some are of unknown kind."""
        if self.work is None or any(w.other for w in self.work):
            return None
        pairs = sum(w.pairs for w in self.work)
        lone = sum(w.add + w.mul for w in self.work)
        return pairs / (pairs + lone) if pairs + lone else None

    def intensity(self, level: str) -> float | None:
        """Operations per byte of that level (equation 2 there); None if either was not measured."""
        moved = next((x.bytes for x in self.levels if x.name == level), 0.0)
        work = self.work_flops
        return work / moved if work is not None and moved else None


@dataclass(frozen=True)
class Points:
    """A document: `origin` is ncu, nvprof or cited (a document's numbers: drawn as the authors', never a model's)."""

    origin: str
    source: str
    points: tuple[MeasuredPoint, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain numbers in bytes, seconds, operations."""
        return {
            "schema": SCHEMA,
            "origin": self.origin,
            "source": self.source,
            "notes": list(self.notes),
            "points": [_plain(p) for p in self.points],
        }


def _plain(p: MeasuredPoint) -> dict[str, Any]:
    work = None
    if p.work is not None:
        work = [{"type": w.type, "add": w.add, "mul": w.mul, "pairs": w.pairs, "other": w.other} for w in p.work]
    levels = [
        {
            "name": x.name,
            "bytes": x.bytes,
            "intensity": p.intensity(x.name),
            "bytes_per_s": x.bytes / p.time_s if p.time_s else None,
        }
        for x in p.levels
    ]
    return {
        "kernel": p.kernel,
        "label": p.label,
        "launches": p.launches,
        "time_s": p.time_s,
        "work": work,
        "work_flops": p.work_flops,
        "flops_per_s": p.flops_per_s,
        "fma_fraction": p.fma_fraction,
        "levels": levels,
        "missing": list(p.missing),
    }


def save_points(path: Path, points: Points) -> None:
    """Write the document in one step. Raises CommandError."""
    write_whole(path, json.dumps(points.to_json(), indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def load_points(path: Path) -> Points:
    """A document that `save_points` wrote. Raises CommandError if it cannot be read, InputError if it is damaged."""
    data = read_limited(path, _LARGEST_FILE, "a document of points")
    return parse_points(Source(str(path), data.decode("utf-8-sig", "replace")))


def parse_points(source: Source) -> Points:
    """The points of a text. Raises InputError."""
    try:
        document = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise _wrong(source, f"this is not a whole document: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(source, f"this is not a document of points: {error}") from None
    reader = _Reader(source)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _wrong(source, f"this is not a document of the schema `{SCHEMA}`")
    origin = reader.text(document, "origin")
    if origin not in ORIGINS:
        raise _wrong(source, f"`origin` is `{origin[:40]}`, and should be one of {', '.join(ORIGINS)}")
    points = tuple(reader.point(p) for p in reader.items(document, "points"))
    return Points(origin, reader.text(document, "source"), points, reader.texts(document, "notes"))


def _wrong(source: Source, message: str, line: int = 1) -> InputError:
    help = "create it again with `roofdsl import ncu`"
    return InputError(source, [Diagnostic("profile-damaged", message, Span(line, 1, line, 2), help)])


class _Reader:
    """Takes a document apart; a missing field or one of the wrong kind is an InputError."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def field(self, table: Any, key: str) -> Any:
        if not isinstance(table, dict) or key not in table:
            raise _wrong(self.source, f"the field `{key}` is missing")
        return table[key]

    def text(self, table: Any, key: str) -> str:
        value = self.field(table, key)
        if not isinstance(value, str):
            raise _wrong(self.source, f"`{key}` is not a string")
        return value

    def items(self, table: Any, key: str) -> list[Any]:
        value = self.field(table, key)
        if not isinstance(value, list):
            raise _wrong(self.source, f"`{key}` is not a list")
        return value

    def texts(self, table: Any, key: str) -> tuple[str, ...]:
        values = self.items(table, key)
        if not all(isinstance(v, str) for v in values):
            raise _wrong(self.source, f"`{key}` is not a list of strings")
        return tuple(values)

    def amount(self, table: Any, key: str) -> float:
        value = self.field(table, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LARGEST:
            raise _wrong(self.source, f"`{key}` is not a number from 0 to {_LARGEST:g}")
        if 0 < value < 1 / _LARGEST:
            raise _wrong(self.source, f"`{key}` is {value}, which is too small to be measured")
        return float(value)

    def point(self, p: Any) -> MeasuredPoint:
        launches, time = self.amount(p, "launches"), self.field(p, "time_s")
        if launches != int(launches) or launches < 1:
            raise _wrong(self.source, "`launches` is not a positive integer")
        work = None
        if self.field(p, "work") is not None:
            work = tuple(
                TypeWork(self.text(w, "type"), *(self.amount(w, key) for key in ("add", "mul", "pairs", "other")))
                for w in self.items(p, "work")
            )
        found = MeasuredPoint(
            self.text(p, "kernel"),
            self.text(p, "label"),
            int(launches),
            None if time is None else self.amount(p, "time_s"),
            work,
            tuple(LevelBytes(self.text(x, "name"), self.amount(x, "bytes")) for x in self.items(p, "levels")),
            self.texts(p, "missing"),
        )
        self.consistent(p, found)
        return found

    def consistent(self, p: Any, found: MeasuredPoint) -> None:
        """Check that derived numbers follow from the others; if they do not, the document was changed by hand."""
        derived = {"work_flops": found.work_flops, "flops_per_s": found.flops_per_s}
        for key, value in derived.items():
            stated = self.field(p, key)
            if (stated is None) != (value is None) or (
                value is not None and abs(self.amount(p, key) - value) > 1e-9 * value
            ):
                raise _wrong(self.source, f"`{key}` of {found.label} does not follow from the other numbers")
