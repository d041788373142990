"""An exercise as a student reads it: text for the terminal, a document, and a file of answers to fill in."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roofdsl.classroom.exercise_file import COURSE, Exercise, Part
from roofdsl.classroom.judge_answers import Result
from roofdsl.classroom.query import kernel_of
from roofdsl.classroom.student_version import StudentVersion, VersionPart, shown
from roofdsl.lang.record import Record
from roofdsl.tell.blocks import Block, Gap, Title, line
from roofdsl.tell.line_breaks import aligned

WIDTH = 100


class Reader(Record):
    """The student whose sheet it is: the name, and the version code if the course gave one.

    asked: what the student called the exercise, its ID or a file. folder: where the exercises are, if they are not the
    shipped ones.
    """

    student: str
    code: str = ""
    asked: str = ""
    folder: Path | None = None

    @property
    def options(self) -> str:
        """The options that a command needs to refer to the same version, each preceded by a space."""
        student = f" --student {shlex.quote(self.student)}" if self.student else ""
        folder = f" --folder {shlex.quote(str(self.folder))}" if self.folder is not None else ""
        return student + (f" --code {self.code}" if self.code else "") + folder


def listing(exercises: Sequence[Exercise]) -> list[Block]:
    """The exercises, unit by unit, and the command that shows one."""
    rows = list(aligned([[e.id, f"{e.points}", e.title] for e in exercises], width=None, right=(1,)))
    found: list[Block] = []
    for k, (unit, title) in enumerate(COURSE.items(), 1):
        own = [line(row, 1) for e, row in zip(exercises, rows, strict=True) if e.unit == unit]
        if own:
            found += [Title(f"{k}. {title} ({unit})"), *own, Gap()]
    total = sum(e.points for e in exercises)
    return [*found, line(f"{len(exercises)} exercises, {total} points. `roofdsl exercise show ID` shows one.", 0)]


def text(version: StudentVersion, who: Reader, hints: int, *, solution: bool) -> str:
    """The text that a student sees, with the requested number of hints."""
    e = version.exercise
    name = shlex.quote(who.asked) if who.asked else e.id
    whose = f", version of {who.student}" if who.student else ""
    blocks = [f"{e.title}\n{e.id}, {_points(e.points)}{whose}"]
    if version.text:
        blocks.append(_wrapped(version.text))
    blocks += [textwrap.indent(version.kernels[name].strip("\n"), "    ") for name in e.show]
    if e.plot:
        blocks.append(_wrapped(f"The figure: roofdsl exercise show {name}{who.options} -o figure.svg"))
    if version.symbols:
        rows = [f"{s.name}: {s.meaning}" for s in version.symbols.values()]
        blocks.append("Answers may use " + "; ".join(rows) + ".")
    blocks += [_part(p, hints, solution=solution) for p in version.parts]
    if solution:
        models = [p.part.solution_kernel for p in version.parts if p.part.solution_kernel]
        blocks += [textwrap.indent(version.kernels[name].strip("\n"), "    ") for name in models]
        blocks += [_steps(version)] if e.steps else []
    example = " ".join(f"{p.part.id}='...'" for p in version.parts)
    blocks.append(f"Check: roofdsl exercise check {name} {example}{who.options}")
    return "\n\n".join(blocks)


def _points(count: int) -> str:
    return f"{count} point{'s' if count > 1 else ''}"


def _wrapped(text: str, indent: str = "") -> str:
    """The text with its paragraphs wrapped; indented paragraphs are unchanged."""
    found = []
    for block in text.strip("\n").split("\n\n"):
        if block.startswith("    "):
            found.append(textwrap.indent(block, indent))
        else:
            one = " ".join(block.split())
            filled = textwrap.fill(
                one,
                WIDTH,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            found.append(filled)
    return "\n\n".join(found)


_ANSWER = {
    "expression": "a formula",
    "number": "a number",
    "choice": "a letter",
    "kernel": "a .roof file",
    "prediction": "your prediction, a number",
    "measurement": "a result file of `roofdsl measure`",
}


_USUAL_TOLERANCE = 0.01
"""The rounding that every number allows, unless the sheet says otherwise (docs/exercises.md)."""


def _how(part: Part) -> str:
    """What to answer, with the unit: `a number in GB, within 0.5 %`."""
    unit = f" in {part.unit}" if part.unit else ""
    if part.kind != "number" or part.tolerance >= _USUAL_TOLERANCE:
        return _ANSWER[part.kind] + unit
    return f"a number{unit}, within {100 * part.tolerance:g} %" if part.tolerance else f"an exact number{unit}"


def _part(p: VersionPart, hints: int, *, solution: bool) -> str:
    lines = [f"{p.part.id} ({_how(p.part)}; {_points(p.part.points)})", _wrapped(p.ask, "  ")]
    lines += [_wrapped(f"{o.letter}) {o.text}", "    ") for o in p.options]
    lines += [_wrapped(f"Hint {k}: {h}", "  ") for k, h in enumerate(p.hints[:hints], 1)]
    if solution:
        lines.append(_wrapped(f"Solution: {right_answer(p)}", "  "))
        if p.solution:
            lines.append(_wrapped(p.solution, "  "))
    return "\n".join(lines)


def right_answer(p: VersionPart) -> str:
    """The right answer as a student would write it."""
    if p.answer is not None:
        return shown(p.answer, p.part.unit)
    right = [o for o in p.options if o.right]
    if right:
        return f"{right[0].letter}. {right[0].why}"
    if p.options:
        return "it depends on your measurement."
    return "a model follows." if p.part.kind == "kernel" else "your own."


def _steps(version: StudentVersion) -> str:
    """The derivation of the exercise's kernel, step by step."""
    from roofdsl.counts.derive import derive
    from roofdsl.tell.derive_text import to_text

    return to_text(derive(kernel_of(version.kernels[version.exercise.steps]), steps=True)).rstrip("\n")


def document(version: StudentVersion, hints: int, *, solution: bool) -> dict[str, Any]:
    """The document `roofdsl.exercise/1` of one exercise."""
    e = version.exercise
    parts = []
    for p in version.parts:
        row: dict[str, Any] = {"id": p.part.id, "kind": p.part.kind, "ask": p.ask, "max_score": p.part.points}
        row |= {"unit": p.part.unit} if p.part.unit else {}
        row |= {"options": {o.letter: o.text for o in p.options}} if p.options else {}
        row |= {"hints": list(p.hints[:hints])} if hints else {}
        row |= {"solution": " ".join(filter(None, (right_answer(p), p.solution)))} if solution else {}
        parts.append(row)
    return {
        "schema": "roofdsl.exercise/1",
        "exercise": e.id,
        "title": e.title,
        "unit": e.unit,
        "max_score": e.points,
        "text": version.text,
        "kernels": {name: version.kernels[name] for name in e.show},
        "symbols": {s.name: s.meaning for s in version.symbols.values()},
        "parts": parts,
    }


def template(version: StudentVersion, student: str) -> str:
    """The table for an exercise in a file of answers, with the questions as comments."""
    e = version.exercise
    lines = [f"# {e.title}" + (f", version of {student}" if student else ""), f"[{e.id}]"]
    for p in version.parts:
        lines += textwrap.wrap(f"{p.ask} ({_how(p.part)})", 100, initial_indent="# ", subsequent_indent="# ")
        lines.append(f'{p.part.id} = ""')
    return "\n".join(lines) + "\n"


def told(result: Result) -> str:
    """The result of a check as text."""
    lines = []
    for p in result.parts:
        sign = ("right" if p.correct else "wrong") if p.is_given else "not answered"
        lines.append(f"{p.id}: {sign}, {p.score:g} of {p.max_score}")
        if p.is_given:
            lines.append(_wrapped(p.message, "  "))
    lines.append(f"{result.score:g} of {result.max_score} points")
    return "\n".join(lines)
