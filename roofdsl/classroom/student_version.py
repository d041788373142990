"""One student's version of an exercise: values drawn, templates filled in, answers and mistakes from the engine."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

from roofdsl.classroom.answer_language import Node, Number, names_in, parse, parse_condition, replaced, show
from roofdsl.classroom.answer_units import Dimension, value_of
from roofdsl.classroom.engine import answer, machine_of, size
from roofdsl.classroom.equality import Symbol, points
from roofdsl.classroom.exact import evaluate, folded, holds, same
from roofdsl.classroom.exercise_file import Exercise, Part
from roofdsl.classroom.forms_as_formulas import number
from roofdsl.classroom.formula_errors import FormulaError
from roofdsl.classroom.formula_units import kind_of
from roofdsl.classroom.query import Query
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import group, show_bandwidth, show_bytes, show_number, show_rate, show_size, show_time

_HOLE = re.compile(r"\{(=?)([^{}|]*)(?:\|([^{}]*))?\}")
_QUERY = ("ask", "kernel", "machine", "set", "traffic", "cache", "line", "ways", "number", "which")


class VersionMistake(Record):
    """A common mistake: the answer it leads to, and the message."""

    formula: Node
    why: str


class VersionOption(Record):
    """An option in the order shown: its letter, and whether it is right (None: known only with a submission)."""

    letter: str
    text: str
    why: str
    right: bool | None
    when: Node | None = None


class VersionPart(Record):
    """A part with everything filled in. `answer` is None if there is no formula (choices, kernels). kind: for an
    expression, the kind of quantity that the answer is, such as operations or bytes; None if it is unknown.
    """

    part: Part
    ask: str
    answer: Node | None
    mistakes: tuple[VersionMistake, ...]
    options: tuple[VersionOption, ...]
    symbols: Mapping[str, Symbol]
    hints: tuple[str, ...]
    solution: str
    kind: Dimension | None = None

    @property
    def value(self) -> Any:
        """The right number, in operations, bytes and seconds."""
        assert self.answer is not None
        return evaluate(self.answer, {})


def drawn(exercise: Exercise, student: str) -> dict[str, Any]:
    """The values that a student's version has: the same on every machine, from SHA-256 of the exercise, the student and
    the name of the value.
    """
    values = {}
    for name, choices in exercise.vary.items():
        values[name] = choices[_hash(exercise.id, student, name) % len(choices)]
    return values


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()[:8], "big")


class StudentVersion:
    """An exercise for one student. Parts and texts are computed when asked for; errors in the exercise's own formulas
    and queries are CommandErrors.
    """

    def __init__(self, exercise: Exercise, values: Mapping[str, Any], order: str = "", seed: int | None = None) -> None:
        """`values`: the value of each name of `vary`; `order`: the text that determines the order of options; `seed`:
        the seed of the data on which submitted kernels are compared; a new one is drawn if it is None.
        """
        self.exercise, self.values, self.order = exercise, dict(values), order
        self.seed = fresh_seed() if seed is None else seed
        self._quantities: dict[str, Node | None] = {}

    # ---- names ----

    def plain(self, name: str) -> Any:
        """A drawn value; `machine.level` is a field of a table, `type_bytes` the size of a drawn type."""
        if name not in self.values and name in self.numbers:
            return int(evaluate(self.numbers[name], {}))
        first, *rest = name.split(".")
        value: Any = self.values[first]
        for field in rest:
            value = value[field]
        return value

    @cached_property
    def numbers(self) -> dict[str, Node]:
        """The drawn numbers by name, those of tables as `machine_cores`, and for a type its `type_bytes`."""
        found: dict[str, Node] = {}
        for name, value in self.values.items():
            for field, inner in value.items() if isinstance(value, dict) else (("", value),):
                full = f"{name}_{field}" if field else name
                if isinstance(inner, int | float) and not isinstance(inner, bool):
                    found[full] = number(Fraction(str(inner)))
                elif isinstance(inner, str) and inner in TYPES:
                    found[f"{full}_bytes"] = number(TYPES[inner].bytes)
        return found

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """The parameters in which answers may be written."""
        return {
            s.name: Symbol(s.name, self.fill(s.meaning), s.multiple_of)
            for s in self.exercise.symbols
            if s.name not in self.numbers
        }

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The texts of the exercise's kernels and machines, filled in."""
        return {name: self.fill(text) for name, text in self.exercise.kernels.items()}

    def quantity(self, name: str) -> Node:
        """A quantity of the exercise, from the engine or from a formula in other quantities. Raises CommandError."""
        if name not in self._quantities:
            self._quantities[name] = None  # its value is being computed
            table = self.exercise.quantities[name]
            is_formula = isinstance(table, str)
            self._quantities[name] = self.formula(self.fill(str(table))) if is_formula else self._asked(name, table)
        found = self._quantities[name]
        if found is None:
            raise self.fail(f"quantity {name} depends on itself")
        return found

    def _asked(self, name: str, table: Mapping[str, Any]) -> Node:
        at = dict(table.get("at", {}))
        given = self._deep({k: v for k, v in table.items() if k != "at"})
        kernel = given.get("kernel", "")
        if kernel and kernel not in self.exercise.kernels:
            raise self.fail(f"quantity {name} uses the kernel `{kernel}`, which does not exist")
        query = Query(
            given.get("ask", ""),
            self.kernels[kernel] if kernel else "",
            self.kernels.get(given.get("machine", ""), given.get("machine", "")),
            tuple((n, self.whole(v)) for n, v in given.get("set", {}).items()),
            given.get("traffic", ""),
            self.bytes(given["cache"]) if "cache" in given else None,
            self.bytes(given["line"]) if "line" in given else None,
            self.whole(given["ways"]) if "ways" in given else None,
            self.whole(given.get("number", 0)),
            given.get("which", ""),
            tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in given.items() if k not in _QUERY),
        )
        try:
            found = answer(query)
        except (CommandError, InputError, KeyError) as error:
            raise self.fail(f"quantity {name}: {error}") from None
        found = replaced(found, {n: number(self.whole(v)) for n, v in at.items()})
        return self.constant(found) if at else found

    def machine(self, name: str) -> Machine:
        """The machine that the exercise calls `name`: its own or a shipped one. Raises CommandError."""
        return machine_of(self.kernels.get(self.fill(name), self.fill(name)))

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, dict):
            return {k: self._deep(v) for k, v in value.items()}
        return [self._deep(v) for v in value] if isinstance(value, list) else value

    def whole(self, value: Any) -> int:
        """A whole number: given directly, or as a formula in quantities and drawn numbers."""
        if isinstance(value, int):
            return value
        found = self.constant(self.formula(self.fill(str(value))))
        if not isinstance(found, Number) or found.value.denominator != 1:
            raise self.fail(f"`{value}` is not a whole number")
        return int(found.value)

    def bytes(self, value: Any) -> int:
        """A size: `32 KiB`, or a formula in bytes."""
        try:
            return size(self.fill(str(value)))
        except CommandError:
            return self.whole(value)

    # ---- formulas ----

    def formula(self, text: str) -> Node:
        """A formula of the exercise with its quantities and drawn numbers inserted. Raises CommandError."""
        return self._parsed(text, lambda names: parse(text, names, units=True), ())

    def condition(self, text: str, unknown: Collection[str] = ()) -> Node:
        """A condition of the exercise with quantities inserted; names in `unknown` remain. Raises CommandError."""
        return self._parsed(text, lambda names: parse_condition(text, names), unknown)

    def _parsed(self, text: str, parsed: Callable[[set[str]], Node], unknown: Collection[str]) -> Node:
        try:
            node = parsed({*self.exercise.quantities, *self.numbers, *self.symbols, *unknown})
        except FormulaError as error:
            raise self.fail(f"`{text}`: {error}") from None
        needed = names_in(node) - set(unknown)
        values = {n: v for n, v in self.numbers.items() if n in needed}
        return replaced(node, values | {n: self.quantity(n) for n in self.exercise.quantities if n in needed})

    def constant(self, node: Node) -> Node:
        """The value of a formula whose parameters cancel out; any other formula unchanged."""
        if isinstance(node, Number):
            return node
        if names_in(node) - self.symbols.keys():
            return node
        try:
            first, *others = [evaluate(node, env) for env in islice(points(self.symbols, whole=True), 3)]
        except FormulaError as error:
            raise self.fail(f"`{show(node)}`: {error}") from None
        is_constant = isinstance(first, Fraction) and all(same(first, v) for v in others)
        return number(first) if is_constant else node

    def fail(self, message: str) -> CommandError:
        shown = ", ".join(f"{n} = {v}" for n, v in self.values.items())
        return CommandError(
            f"exercise {self.exercise.id}{f' with {shown}' if shown else ''}: {message}",
            "docs/exercises.md describes the format",
        )

    # ---- texts ----

    def fill(self, text: str) -> str:
        """The text with its holes filled: `{n}` a drawn value, `{=W/Q}` a formula, `{=P|FLOP/s}` with its unit."""
        return _HOLE.sub(self._filled, text)

    def _filled(self, match: re.Match[str]) -> str:
        is_formula, inside, unit = match[1], match[2].strip(), match[3]
        try:
            if not is_formula:
                value = self.plain(inside)
                return group(value) if unit == "," else str(value)
            node = self.formula(inside)
        except (KeyError, TypeError):
            raise self.fail(f"there is no value called `{inside}`") from None
        return shown(self.constant(node), unit)

    # ---- parts ----

    @cached_property
    def text(self) -> str:
        return self.fill(self.exercise.text)

    @cached_property
    def parts(self) -> tuple[VersionPart, ...]:
        """All parts, filled in."""
        return tuple(self.part(p) for p in self.exercise.parts)

    def part(self, part: Part) -> VersionPart:
        """One part. Raises CommandError for an error in its formulas."""
        right = self.formula(part.answer) if part.answer else None
        formulas = [self.formula(m.formula) for m in part.mistakes]
        if part.kind == "number" and right is not None:
            right, formulas = self.constant(right), [self.constant(f) for f in formulas]
        mistakes = tuple(VersionMistake(f, self.fill(m.why)) for f, m in zip(formulas, part.mistakes, strict=True))
        symbols = {n: s for n, s in self.symbols.items() if part.symbols is None or n in part.symbols}
        if part.kind == "number":
            symbols = {}
        unknown = sorted(names_in(right) - symbols.keys()) if right is not None else []
        if unknown:
            raise self.fail(f"part {part.id}: the answer has `{unknown[0]}` in it, which is not a symbol of the part")
        return VersionPart(
            part,
            self.fill(part.ask),
            right,
            mistakes,
            self._options(part),
            symbols,
            tuple(self.fill(h) for h in part.hints),
            self.fill(part.solution),
            kind_of(self.fill(part.answer), self.exercise.quantities, self.symbols | self.numbers),
        )

    def _options(self, part: Part) -> tuple[VersionOption, ...]:
        measured = MEASURED if any(p.kind == "measurement" for p in self.exercise.parts) else ()
        order = sorted(range(len(part.options)), key=lambda k: _hash(self.exercise.id, self.order, part.id, str(k)))
        found = []
        for letter, k in zip("abcdefgh", order, strict=False):
            option = part.options[k]
            when = self.condition(option.when, measured)
            unknown = bool(names_in(when) & set(measured))
            right = None if unknown else self._holds(when)
            found.append(VersionOption(letter, self.fill(option.text), self.fill(option.why), right, when))
        if found and all(o.right is not None for o in found) and sum(bool(o.right) for o in found) != 1:
            raise self.fail(f"part {part.id} has {sum(bool(o.right) for o in found)} right options, but needs one")
        return tuple(found)

    def fulfilled(self, when: str, known: Mapping[str, Node]) -> bool:
        """Whether a condition holds, given what is `known` of an answer. Raises CommandError if it has no value."""
        node = replaced(self.condition(when, known.keys()), dict(known))
        try:
            return holds(node, {})
        except (FormulaError, KeyError) as error:
            raise self.fail(f"`{when}` cannot be decided: {error}") from None

    def _holds(self, when: Node) -> bool:
        """Whether a condition holds, for all sizes if it mentions any. Raises CommandError if it holds at some sizes
        only.
        """
        try:
            found = {holds(when, env) for env in islice(points(self.symbols, whole=True), 4)}
        except (FormulaError, KeyError) as error:
            raise self.fail(f"`{show(when)}` cannot be decided: {error}") from None
        if len(found) > 1:
            raise self.fail(f"`{show(when)}` holds at some sizes only")
        return found.pop()


MEASURED = ("measured_time", "measured_rate", "measured_bandwidth", "prediction", "footprint")
"""The values of a submitted measurement that conditions may use."""


def student_version(exercise: Exercise, student: str, seed: int | None = None) -> StudentVersion:
    """The student's version of an exercise (`versions.version_of` for one under a course key)."""
    return StudentVersion(exercise, drawn(exercise, student), student, seed)


def fresh_seed() -> int:
    """A seed that nobody can know beforehand."""
    return secrets.randbits(48)


def shown(node: Node, unit: str | None) -> str:
    """A formula or number as text; a number with its unit in a fitting multiple."""
    if names_in(node):
        return show(folded(node))
    value = evaluate(node, {})
    match unit:
        case "FLOP/s" | "OP/s" | "FLOP":
            text = show_rate(value, unit.removesuffix("/s"))
            return text if unit.endswith("/s") else text.removesuffix("/s")
        case "B/s":
            return show_bandwidth(value)
        case "B":
            return show_bytes(value)
        case "size":
            return show_size(Fraction(value))
        case "s":
            return show_time(value)
        case "FLOP/B":
            return f"{show_number(value)} FLOP/B"
        case ",":
            return group(int(value))
        case None | "":
            exact = isinstance(value, Fraction) and value.denominator <= (12 if abs(value) < 10 else 1)
            return show(Number(value)) if exact and value >= 0 else show_number(value, 6)
    return f"{show_number(value / value_of(unit)[0])} {unit}"
