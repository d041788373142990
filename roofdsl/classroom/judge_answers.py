"""Judges the answers to one exercise: whether each is right, by the kind of its part, with feedback on common mistakes.

Answers are untrusted: every answer, whatever it contains, gets a result with a message. `isolate` stops answers that
take too much time or memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from roofdsl.classroom.answer_language import Node
from roofdsl.classroom.answer_units import PLAIN, value_of
from roofdsl.classroom.equality import equal, leading_equal, relation
from roofdsl.classroom.exact import dimension, evaluate, holds
from roofdsl.classroom.forms_as_formulas import number
from roofdsl.classroom.formula_errors import FormulaError, UnknownNameError
from roofdsl.classroom.judge_measurements import judge_measurement
from roofdsl.classroom.kernels import judge_kernel
from roofdsl.classroom.student_version import MEASURED, StudentVersion, VersionPart, shown
from roofdsl.classroom.submissions import Missing, Unreadable
from roofdsl.classroom.typed import as_read, formulas, readings
from roofdsl.classroom.verdict import Verdict
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record, replace

_IN_PERCENT = re.compile(r"\b(?:in|how many) (?:percent|%)|percentage")
"""The words by which a question asks for percent; `to within 1 %` are not such words."""

LONGEST_MESSAGE = 1500
NO_ANSWER = "No answer yet."


class PartResult(Record):
    """What one answer is worth, and what to tell the student. `message` begins with `reading`, which says how the
    answer was read; `reading` is empty if there was nothing to interpret.
    """

    id: str
    correct: bool
    score: float
    max_score: int
    message: str
    reading: str = ""

    @property
    def is_given(self) -> bool:
        """Whether there is an answer."""
        return self.message != NO_ANSWER

    @property
    def told(self) -> str:
        """The message without its part about how this student's answer was read."""
        return self.message.removeprefix(self.reading).lstrip()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "correct": self.correct,
            "score": self.score,
            "max_score": self.max_score,
            "message": self.message,
        }


class Result(Record):
    """The results of all parts of one exercise."""

    exercise: str
    parts: tuple[PartResult, ...]

    @property
    def score(self) -> float:
        return sum(p.score for p in self.parts)

    @property
    def max_score(self) -> int:
        return sum(p.max_score for p in self.parts)

    @property
    def correct(self) -> bool:
        return all(p.correct for p in self.parts)

    def to_json(self) -> dict[str, Any]:
        """The document `roofdsl.exercise/1`."""
        return {
            "schema": "roofdsl.exercise/1",
            "exercise": self.exercise,
            "score": self.score,
            "max_score": self.max_score,
            "parts": [p.to_json() for p in self.parts],
        }


def judge(version: StudentVersion, answers: Mapping[str, Any]) -> Result:
    """Judges the answers (by part) to one student's version of an exercise.

    Raises CommandError for an error in the exercise itself, never because of an answer.
    """
    known: dict[str, Node] = {}
    results = []
    for part in version.parts:
        try:
            verdict = _judged(version, part, answers.get(part.part.id), known)
        except RecursionError:  # the other answers are judged all the same
            verdict = Verdict(False, "The answer is nested too deep, or has too many parts, to be judged.")
        known |= verdict.known
        points = part.part.points
        score = float(points if verdict.correct else 0)
        reading = _plain(verdict.reading)
        message = f"{reading} {_plain(verdict.message)}".strip()
        results.append(PartResult(part.part.id, verdict.correct, score, points, message, reading))
    return Result(version.exercise.id, tuple(results))


def _plain(message: str) -> str:
    """The message without characters that control a terminal or break a file."""
    text = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in message)
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."


def _judged(version: StudentVersion, part: VersionPart, answer: Any, known: Mapping[str, Node]) -> Verdict:
    if isinstance(answer, Missing):
        return Verdict(False, f"There is no answer to `{part.part.id}`: {answer.text}")
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return Verdict(False, NO_ANSWER)
    if isinstance(answer, Unreadable):
        return Verdict(False, f"The file that this answer names cannot be read: {answer}.")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return Verdict(False, "An answer must be a string in quotes or a number.")
    text = _digits(answer) if isinstance(answer, int) else str(answer)
    match part.part.kind:
        case "expression":
            return _expression(part, text)
        case "number":
            return _number(part, text)
        case "choice":
            return _choice(part, text, known)
        case "prediction":
            return _prediction(part, text)
        case "measurement":
            return judge_measurement(version, part, text, known)

    return judge_kernel(version, part, text)


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < 400 else "1" + "0" * 120  # longer than the language's numbers: refused


# ---- expressions ----


def _expression(part: VersionPart, text: str) -> Verdict:
    assert part.answer is not None
    reading = as_read(text)
    try:
        found = formulas(text, part.symbols, part.kind)
        reading = as_read(text, found[0])
        verdicts = [_compared(part, node) for node in found]
        right = next((k for k, v in enumerate(verdicts) if v.correct), None)
        if right is None:
            return replace(verdicts[0], reading=as_read(text, *found))
        return replace(verdicts[right], reading=as_read(text, found[right]))
    except FormulaError as error:
        return Verdict(False, _unreadable("a formula", error), reading=reading)


def _compared(part: VersionPart, found: Node) -> Verdict:
    """Whether a formula is right, and if not, feedback on a common mistake. Raises FormulaError."""
    right = part.answer
    assert right is not None
    if equal(found, right, part.symbols):
        return Verdict(True, "Right.")
    if part.part.leading and leading_equal(found, right, part.symbols):
        return Verdict(True, "Right, to leading order.")
    for mistake in part.mistakes:
        if equal(found, mistake.formula, part.symbols) or (
            part.part.leading and leading_equal(found, mistake.formula, part.symbols)
        ):
            return Verdict(False, mistake.why)
    match relation(found, right, part.symbols):
        case "proportional":
            return Verdict(False, "Not quite: it grows correctly, but a constant factor is wrong.")
        case "large":
            return Verdict(False, "Not quite: it is right for large sizes, but not for small ones.")
        case "leading":
            return Verdict(False, "Not quite: it is right for large sizes, but terms of lower order are missing.")
    return Verdict(False, _not_right(part))


# ---- numbers ----


def _number(part: VersionPart, text: str) -> Verdict:
    right = _fraction(part.value)
    tolerance = Fraction(str(part.part.tolerance))
    read = quantities(part, text)
    if isinstance(read, Verdict):
        return read
    verdicts = [replace(_number_against(part, value, right, tolerance), reading=told) for value, told in read]
    return next((v for v in verdicts if v.correct), verdicts[0])


def _number_against(part: VersionPart, given: Fraction, right: Fraction, tolerance: Fraction) -> Verdict:
    """Whether a number is right, and if not, feedback on a common mistake."""
    if _near(given, right, tolerance):
        return Verdict(True, f"Right: {_exactly(part)}." if given != right else "Right.")
    nearest: tuple[Fraction, str] | None = None
    for mistake in part.mistakes:
        wrong = _fraction(evaluate(mistake.formula, {}))
        distance = abs(given - wrong)
        if _near(given, wrong, tolerance) and (nearest is None or distance < nearest[0]):
            nearest = (distance, mistake.why)
    if nearest is not None:
        return Verdict(False, nearest[1])
    return Verdict(False, _usual_slip(given, right, tolerance) or _not_right(part))


def quantities(part: VersionPart, text: str) -> list[tuple[Fraction, str]] | Verdict:
    """The values that an answer may mean, in operations, bytes and seconds, each with how it was read; or a verdict
    that says what is wrong.

    A number without a unit is taken to be in the unit that the question asks for, and `25 %` is 0.25 if it does not
    ask for percent.
    """
    unit = part.part.unit
    factor, asked = value_of(unit)
    plain = text.strip().replace("\\%", "%").replace("percent", "%")
    reading = as_read(text)
    if plain.endswith("%"):
        plain = plain[:-1]
        if unit:
            message = f"This is a percentage, but the answer is {asked.words()}."
            return Verdict(False, message, reading=reading)
        factor = Fraction(1) if _IN_PERCENT.search(part.ask) else Fraction(1, 100)
    found, others = [], []
    try:
        for node in readings(plain, (), units=True):
            told = as_read(text, node)
            try:
                kind = dimension(node)
            except FormulaError as error:
                others.append(Verdict(False, _unreadable("a number", error), reading=told))
                continue
            if kind in (PLAIN, asked):
                found.append((_fraction(evaluate(node, {})) * (factor if kind == PLAIN else 1), told))
            else:
                wanted = f"the answer is {asked.words()}" + (f", in {unit}." if unit else ".")
                others.append(Verdict(False, f"This is {kind.words()} ({kind.unit()}), but {wanted}", reading=told))
    except UnknownNameError as error:
        if not unit:
            return Verdict(False, _unreadable("a number", error), reading=reading)
        message = f"`{error.name}` is not a unit of {asked.words()}; give a number with a unit, such as `3.5 {unit}`."
        return Verdict(False, message, reading=reading)
    except FormulaError as error:
        return Verdict(False, _unreadable("a number", error), reading=reading)
    return found or others[0]


def _unreadable(what: str, error: FormulaError) -> str:
    """Why an answer is not `what`, in sentences; the error may have a colon of its own."""
    why = str(error)
    return f"This cannot be read as {what}. {why[:1].upper()}{why[1:]}."


def _fraction(value: Any) -> Fraction:
    if isinstance(value, Fraction):
        return value
    from mpmath.libmp import to_rational

    top, bottom = to_rational(value._mpf_)
    return Fraction(int(top), int(bottom))


def _not_right(part: VersionPart) -> str:
    return "Not right. The hints lead to the answer step by step." if part.hints else "Not right."


def _near(value: Fraction, right: Fraction, tolerance: Fraction) -> bool:
    return abs(value - right) <= tolerance * abs(right)


def _exactly(part: VersionPart) -> str:
    assert part.answer is not None
    return f"more exactly, {shown(part.answer, part.part.unit)}"


def _usual_slip(given: Fraction, right: Fraction, tolerance: Fraction) -> str:
    """The message for slips that no exercise needs to list: prefixes, bits, binary prefixes, the sign."""
    if not given or not right:
        return ""
    ratio = given / right
    near = tolerance / 2
    for power in (3, 6, 9, 12):
        for factor in (Fraction(10) ** power, Fraction(10) ** -power):
            if _near(ratio, factor, near):
                return f"The digits are right, but the prefix is not: it is off by a factor of 10**{power}."
    for factor in (Fraction(8), Fraction(1, 8)):
        if _near(ratio, factor, near):
            return "Off by a factor of 8: a byte has 8 bits, and an f64 has 8 bytes. Was one left out, or used twice?"
    for power in (1, 2, 3, 4):
        for factor in (Fraction(1024, 1000) ** power, Fraction(1000, 1024) ** power):
            if _near(ratio, factor, min(near, Fraction(1, 200))):
                return "A binary prefix is the problem: 1 GiB is 2**30 B, but 1 GB is 10**9 B."
    if _near(ratio, Fraction(-1), near):
        return "The sign is wrong."
    return ""


# ---- choices ----


def _choice(part: VersionPart, text: str, known: Mapping[str, Node]) -> Verdict:
    letter = text.strip().strip("().").lower()
    chosen = next((o for o in part.options if letter == o.letter or text.strip() == o.text), None)
    if chosen is None:
        return Verdict(False, f"Answer with {listed(o.letter for o in part.options)}.")
    right = chosen.right
    if right is None:
        assert chosen.when is not None
        if "measured_time" not in known:
            return Verdict(False, "This is compared with your measurement: submit that too.")
        right = holds(chosen.when, {n: evaluate(known[n], {}) for n in MEASURED if n in known})
    return Verdict(right, f"{'Right' if right else 'No'}. {chosen.why}")


# ---- the student's own predictions ----


def _prediction(part: VersionPart, text: str) -> Verdict:
    read = quantities(part, text)
    if isinstance(read, Verdict):
        return read
    given, told = read[0]
    if given <= 0:
        return Verdict(False, "A prediction is a positive number.", reading=told)

    return Verdict(True, "Noted. Now measure.", {"prediction": number(given)}, told)
