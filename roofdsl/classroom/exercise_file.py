"""Exercises as files: what `models/exercises/ID.toml` may contain, read and checked (docs/exercises.md).

Formulas and templates remain text here; `student_version` fills them in for one student.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from roofdsl.classroom.answer_units import UNITS, value_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.reading import read_limited
from roofdsl.lang.record import Record
from roofdsl.machine.find import models_folder

COURSE: Mapping[str, str] = {
    "intensity": "Intensity of simple kernels",
    "machines": "Machines and ridges",
    "locality": "Locality and Q(Z)",
    "blocking": "Blocking",
    "semirings": "Semirings and ceilings without FMA",
    "hierarchy": "Hierarchy and strides",
    "time": "Time, overhead and applications",
}
"""The units of the course, in the order in which they are taught."""

KINDS = ("expression", "number", "choice", "kernel", "prediction", "measurement")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LARGEST_FILE = 1 << 20
MOST_OPTIONS = 8


class Mistake(Record):
    """A common wrong answer: a formula in the exercise's quantities, and what it shows about the reasoning."""

    formula: str
    why: str


class Option(Record):
    """One option of a choice. It is right if the condition `when` holds; `why` explains why it is or is not."""

    text: str
    when: str
    why: str


class Requirement(Record):
    """A condition on the counts of a submitted kernel, and the message for a kernel that does not meet it."""

    when: str
    why: str


class Part(Record):
    """One question. Which fields are used depends on `kind` (one of KINDS).

    answer: the formula of the right answer. unit: the unit that a number is asked for in. tolerance: relative.
    leading: an answer that holds to leading order is right, too. reference, solution_kernel, examples: names among the
    exercise's kernels. at, cache, line, traffic: the conditions under which a submitted kernel is counted, each a
    template.
    """

    id: str
    kind: str
    ask: str
    points: int = 1
    answer: str = ""
    unit: str = ""
    tolerance: float = 0.01
    leading: bool = False
    symbols: tuple[str, ...] | None = None
    hints: tuple[str, ...] = ()
    solution: str = ""
    mistakes: tuple[Mistake, ...] = ()
    options: tuple[Option, ...] = ()
    reference: str = ""
    solution_kernel: str = ""
    examples: tuple[str, ...] = ()
    at: Mapping[str, Any] = {}
    cache: str = ""
    line: str = ""
    traffic: str = ""
    require: tuple[Requirement, ...] = ()
    prediction: str = ""


class SymbolText(Record):
    """A parameter of the answers: its meaning for the student, and the parameter that it is a multiple of, if any."""

    name: str
    meaning: str
    multiple_of: str = ""


class Exercise(Record):
    """One exercise as read from its file. vary: the values that differ among students, as name to possible values."""

    id: str
    title: str
    unit: str
    text: str
    parts: tuple[Part, ...]
    level: int = 1
    vary: Mapping[str, tuple[Any, ...]] = {}
    symbols: tuple[SymbolText, ...] = ()
    kernels: Mapping[str, str] = {}
    quantities: Mapping[str, Mapping[str, Any]] = {}
    plot: Mapping[str, Any] = {}
    show: tuple[str, ...] = ()
    steps: str = ""
    folder: str = ""

    @property
    def points(self) -> int:
        return sum(p.points for p in self.parts)


def exercises_folder() -> Path:
    """The folder of the shipped exercises. Raises CommandError if it is missing."""
    folder = models_folder() / "exercises"
    if not folder.is_dir():
        raise CommandError("the shipped exercises are missing from this installation", "install roofdsl again")
    return folder


def course(folder: Path | None = None) -> dict[str, Exercise]:
    """All exercises of a folder by their ids, in the order of the course.

    Raises CommandError for a file with an error, and for a folder without exercises.
    """
    where = folder or exercises_folder()
    found = [load(path) for path in sorted(where.glob("*.toml"))]
    if not found:
        raise CommandError(f"`{where}` has no exercises", "an exercise is a file NAME.toml")
    units = list(COURSE)
    found.sort(key=lambda e: (units.index(e.unit), e.level, e.id))
    return {e.id: e for e in found}


def exercise(name: str, folder: Path | None = None) -> Exercise:
    """The exercise with that id, or the one in a file NAME.toml. Raises CommandError."""
    if name.endswith(".toml"):
        return load(Path(name))
    where = folder or exercises_folder()
    path = where / f"{name}.toml"
    if not _IDENTIFIER.fullmatch(name) or not path.is_file():
        help = did_you_mean(name, [p.stem for p in where.glob("*.toml")], "`roofdsl exercise list` lists them")
        raise CommandError(f"there is no exercise `{name}`", help)
    return load(path)


@cache
def load(path: Path) -> Exercise:
    """The exercise in a file; its id is the file's name. Raises CommandError that says what is wrong."""
    data = read_limited(path, _LARGEST_FILE, "an exercise")
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or a number with thousands of digits
        raise CommandError(f"`{path}` is not valid TOML: {error}") from None
    return _Reader(path.name, document).exercise(path)


class _Reader:
    """Reads the fields of a document. Raises CommandError for a field that is missing, unknown or of the wrong type."""

    def __init__(self, file: str, document: Mapping[str, Any]) -> None:
        self.file, self.document = file, document

    def fail(self, message: str, help: str = "") -> CommandError:
        return CommandError(f"exercise {self.file}: {message}", help or "docs/exercises.md describes the format")

    def known(self, table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
        for name in table:
            if name not in names:
                raise self.fail(f"{where} has an unknown key `{name}`", did_you_mean(name, names))

    def get(self, table: Mapping[str, Any], key: str, kind: type, where: str, default: Any = None) -> Any:
        if key not in table:
            if default is None:
                raise self.fail(f"{where} lacks `{key}`")
            return default
        value = table[key]
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(f"`{key}` of {where} has the wrong type, {type(value).__name__}")
        return value.strip() if isinstance(value, str) else value

    def texts(self, table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
        """A list of texts; an empty one if the field is missing."""
        found = self.get(table, key, list, where, [])
        if not all(isinstance(each, str) for each in found):
            raise self.fail(f"`{key}` of {where} is not a list of strings")
        return tuple(found)

    def exercise(self, path: Path) -> Exercise:
        table, where = self.document, "the file"
        names = ("title", "unit", "level", "text", "vary", "symbols", "kernels", "quantities", "plot", "show", "steps")
        self.known(table, (*names, "part"), where)
        if not _IDENTIFIER.fullmatch(path.stem):
            signs = "lower-case letters and digits, with single hyphens or underscores between them"
            raise self.fail(f"its name is its id: it begins with a letter, and has {signs}")
        unit = self.get(table, "unit", str, where)
        if unit not in COURSE:
            raise self.fail(f"there is no unit `{unit}`", f"the units are {', '.join(COURSE)}")
        parts = tuple(self.part(p, k) for k, p in enumerate(self.get(table, "part", list, where), 1))
        ids = [p.id for p in parts]
        if not parts or len(set(ids)) < len(ids):
            raise self.fail("it needs parts with different ids")
        found = Exercise(
            path.stem,
            self.get(table, "title", str, where),
            unit,
            self.get(table, "text", str, where, ""),
            parts,
            self.get(table, "level", int, where, 1),
            self.vary(self.get(table, "vary", dict, where, {})),
            tuple(self.symbol(n, v) for n, v in self.get(table, "symbols", dict, where, {}).items()),
            {n: self.kernel(path, str(v)) for n, v in self.get(table, "kernels", dict, where, {}).items()},
            self.get(table, "quantities", dict, where, {}),
            self.get(table, "plot", dict, where, {}),
            self.texts(table, "show", where),
            self.get(table, "steps", str, where, ""),
            str(path.parent),
        )
        self.named(found)
        return found

    def named(self, found: Exercise) -> None:
        """Checks that every kernel and every prediction that the exercise mentions exists. Raises CommandError."""
        spoken = [*found.show, found.steps]
        for p in found.parts:
            spoken += [p.reference, p.solution_kernel, *p.examples]
        missing = next((n for n in spoken if n and n not in found.kernels), None)
        if missing is not None:
            raise self.fail(f"there is no kernel `{missing}`", did_you_mean(missing, found.kernels))
        if unknown := next(
            (p for p in found.parts if p.prediction and p.prediction not in {q.id for q in found.parts}), None
        ):
            raise self.fail(f"part `{unknown.id}` refers to a part `{unknown.prediction}`, which does not exist")

    def kernel(self, path: Path, text: str) -> str:
        """The text of a kernel; `file NAME.roof` stands for a file next to the exercise's."""
        kind, _, name = text.partition(" ")
        if kind != "file":
            return text
        beside = path.parent / name
        try:
            if "/" not in name and beside.is_file():
                return beside.read_text(encoding="utf-8")
        except ValueError:  # a null character in the name, or text that is not UTF-8
            raise self.fail(f"the file `{name}` beside it is not UTF-8 text") from None
        raise self.fail(f"there is no file `{name}` beside it")

    def vary(self, table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        for name, values in table.items():
            if not isinstance(values, list) or not values:
                raise self.fail(f"`{name}` of vary is not a list of values")
        return {n: tuple(v) for n, v in table.items()}

    def symbol(self, name: str, value: Any) -> SymbolText:
        if isinstance(value, str):
            return SymbolText(name, value)
        where = f"symbol {name}"
        if not isinstance(value, dict):
            raise self.fail(f"{where} is neither a string nor a table with its `meaning`")
        self.known(value, ("meaning", "multiple_of"), where)
        return SymbolText(name, *(self.get(value, key, str, where, "") for key in ("meaning", "multiple_of")))

    def part(self, table: Any, number: int) -> Part:
        where = f"part {number}"
        if not isinstance(table, dict):
            raise self.fail(f"{where} is not a table")
        names = Part.__match_args__
        self.known(table, names, where)
        id = self.get(table, "id", str, where)
        where = f"part `{id}`"
        kind = self.get(table, "kind", str, where)
        if kind not in KINDS:
            raise self.fail(f"{where} is of the kind `{kind}`", f"the kinds are {', '.join(KINDS)}")
        if not id.isidentifier():
            raise self.fail(f"{where}: an id is a name such as W or stores")
        symbols = self.texts(table, "symbols", where) if "symbols" in table else None
        part = Part(
            id,
            kind,
            self.get(table, "ask", str, where),
            points=self.get(table, "points", int, where, 1),
            answer=self.get(table, "answer", str, where, ""),
            unit=self.get(table, "unit", str, where, ""),
            tolerance=self.get(table, "tolerance", float, where, 0.01),
            leading=self.get(table, "leading", bool, where, False),
            symbols=symbols,
            hints=self.texts(table, "hints", where),
            solution=self.get(table, "solution", str, where, ""),
            mistakes=tuple(self.pair(Mistake, m, "is", where) for m in self.get(table, "mistakes", list, where, [])),
            options=tuple(self.option(o, where) for o in self.get(table, "options", list, where, [])),
            reference=self.get(table, "reference", str, where, ""),
            solution_kernel=self.get(table, "solution_kernel", str, where, ""),
            examples=self.texts(table, "examples", where),
            at=self.get(table, "at", dict, where, {}),
            cache=self.get(table, "cache", str, where, ""),
            line=self.get(table, "line", str, where, ""),
            traffic=self.get(table, "traffic", str, where, ""),
            require=tuple(
                self.pair(Requirement, r, "when", where) for r in self.get(table, "require", list, where, [])
            ),
            prediction=self.get(table, "prediction", str, where, ""),
        )
        self.complete(part, where)
        return part

    def complete(self, part: Part, where: str) -> None:
        needed = {
            "expression": ("answer",),
            "number": ("answer",),
            "choice": ("options",),
            "kernel": ("reference", "solution_kernel", "at"),
            "prediction": ("unit",),
            "measurement": ("reference", "prediction"),
        }
        for name in needed[part.kind]:
            if not getattr(part, name):
                raise self.fail(f"{where} is of the kind {part.kind} and lacks `{name}`")
        try:
            value_of(part.unit)
        except KeyError as error:
            words = did_you_mean(str(error.args[0]), list(UNITS), "units are written as GFLOP/s, FLOP/B, kB or ms")
            raise self.fail(f"{where}: there is no unit `{part.unit[:40]}`", words) from None
        if len(part.options) > MOST_OPTIONS:
            raise self.fail(f"{where} has more than {MOST_OPTIONS} options")
        if part.points < 1 or not 0 <= part.tolerance < 1:
            raise self.fail(f"{where} has less than one point, or a tolerance outside 0 to 1")

    def pair(self, made: Any, table: Any, key: str, where: str) -> Any:
        if not isinstance(table, dict):
            raise self.fail(f"{where}: `{{ {key} = ..., why = ... }}` is expected")
        self.known(table, (key, "why"), where)
        return made(self.get(table, key, str, where), self.get(table, "why", str, where))

    def option(self, table: Any, where: str) -> Option:
        if not isinstance(table, dict):
            raise self.fail(f"{where}: an option is `{{ text = ..., when = ..., why = ... }}`")
        self.known(table, ("text", "when", "why"), where)
        return Option(*(self.get(table, key, str, where) for key in ("text", "when", "why")))
