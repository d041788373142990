"""Answers as students would write them: the engine's, spelled in other ways, made mechanically."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy

from roofdsl.classroom.answer_language import Node, show
from roofdsl.classroom.answer_units import UNITS, value_of
from roofdsl.classroom.equality import to_sympy
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.exercise_file import Exercise
from roofdsl.classroom.student_version import StudentVersion, VersionPart


def versions(exercise: Exercise) -> Iterator[StudentVersion]:
    """Every version that a student may get."""
    for values in itertools.product(*exercise.vary.values()):
        yield StudentVersion(exercise, dict(zip(exercise.vary, values, strict=True)), "")


def in_unit(node: Node, unit: str) -> float:
    """The value of a formula in a unit."""
    return float(evaluate(node, {}) / value_of(unit)[0])


def expressions(node: Node, part: VersionPart) -> set[str]:
    """A formula as it is, expanded, factored, over one denominator, reordered, and without spaces."""
    names = {n: sympy.Symbol(n, integer=True, positive=True) for n in part.symbols}
    made = to_sympy(node, names)
    forms = {show(node), show(node).replace(" ", "")}
    forms |= {str(f(made)) for f in (sympy.expand, sympy.factor, sympy.together, sympy.cancel)}
    forms.add(" + ".join(reversed([f"({term})" for term in sympy.Add.make_args(sympy.expand(made))])))
    forms.add("*".join(reversed([f"({factor})" for factor in sympy.Mul.make_args(sympy.factor(made))])))
    forms.add(f"({show(node)})*3/3")
    return forms


def numbers(node: Node, unit: str) -> set[str]:
    """A number in the unit asked for, without one, in plain units, and with another prefix."""
    exact = evaluate(node, {})
    forms = {repr(in_unit(node, unit)), f"{in_unit(node, unit):.12e}"}
    if unit:
        first, _, below = unit.partition("/")
        rest = f"/{below}" if below else ""
        kind = UNITS[first][1]
        for name, (_, other) in UNITS.items():
            if other == kind and name in ("FLOP", "MFLOP", "TFLOP", "B", "kB", "MiB", "s", "ns", "ms"):
                forms.add(f"{in_unit(node, name + rest)!r} {name}{rest}")
    if isinstance(exact, Fraction):
        ratio = exact / value_of(unit)[0]
        forms.add(f"{ratio.numerator}/{ratio.denominator}" if ratio.denominator < 10**15 else repr(float(ratio)))
        forms.add(f"2*{float(ratio) / 2!r}")
    elif not unit:
        forms.add(show(node))
    return forms


def choices(part: VersionPart) -> set[str]:
    """The right letter, as it is written on paper, or the option's own words."""
    (right,) = [o for o in part.options if o.right]
    return {right.letter, f" {right.letter.upper()}) ", f"({right.letter})", right.text}


def kernels(text: str) -> set[str]:
    """A kernel as it is, under another name, with comments and blank lines, and with other loop variables."""
    commented = re.sub(r"(?m)^(    for .*)$", r"    # the loops\n\n\1", text)
    renamed = re.sub(r"\bi\b", "row", text)
    return {text, re.sub(r"kernel \w+", "kernel mine", text), commented, renamed}


def right_answers(part: VersionPart, version: StudentVersion) -> set[str]:
    """Every spelling of the right answer; empty for what only a measurement decides."""
    if part.part.kind == "expression":
        assert part.answer is not None
        return expressions(part.answer, part)
    if part.part.kind == "number":
        assert part.answer is not None
        return numbers(part.answer, part.part.unit)
    if part.part.kind == "kernel":
        return kernels(version.kernels[part.part.solution_kernel])
    if part.options and any(o.right for o in part.options):
        return choices(part)
    return set()


def wrong_answers(part: VersionPart, version: StudentVersion) -> list[tuple[str, list[str]]]:
    """(answer, what may be told) for every usual mistake, wrong option and wrong kernel of a part."""
    found: list[tuple[str, list[str]]] = []
    for m in part.mistakes:
        text = show(m.formula) if part.part.kind == "expression" else repr(in_unit(m.formula, part.part.unit))
        found.append((text, [m.why]))
    found += [(o.letter, [o.why]) for o in part.options if o.right is False]
    for name in part.part.examples:
        told = ["It does not compute the same", *(version.fill(r.why) for r in part.part.require)]
        found.append((version.kernels[name], told))
    return found


def one(version: StudentVersion, part: VersionPart, answer: Any) -> Any:
    """The result of one answer to one part."""
    from roofdsl.classroom.judge_answers import judge

    results = judge(version, {part.part.id: answer})
    return next(p for p in results.parts if p.id == part.part.id)
