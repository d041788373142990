"""Content of a submission that no exercise asks for. It is reported, with what it may be meant for, and not ignored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from roofdsl.classroom.exercise_file import Exercise
from roofdsl.classroom.submissions import Missing, Submission
from roofdsl.lang.findings import did_you_mean, listed

MOST_NOTES = 8
_LONGEST = 40


@cache
def _course(folder: str) -> frozenset[str]:
    """The ids of all exercises in the folder of this one, whether or not they are graded now."""
    return frozenset(path.stem for path in Path(folder).glob("*.toml")) if folder else frozenset()


def _known(exercises: Sequence[Exercise]) -> frozenset[str]:
    return frozenset(e.id for e in exercises).union(*(_course(e.folder) for e in exercises))


def _quoted(name: str) -> str:
    plain = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST] + "..."


def _unknown_keys(submission: Submission, exercise: Exercise) -> list[str]:
    parts = [p.id for p in exercise.parts]
    return [key for key in submission.answers.get(exercise.id, {}) if key not in parts]


def _key_note(key: str, exercise: Exercise, unanswered: Collection[str]) -> str:
    parts = [p.id for p in exercise.parts]
    meant = did_you_mean(key, unanswered) or did_you_mean(key, parts)
    known = f"its parts are {listed(parts, 'and')}" if len(parts) > 1 else f"its part is `{parts[0]}`"
    return f"the table [{exercise.id}] has `{_quoted(key)}`, and {known}" + (f"; {meant}" if meant else "")


def missing(submission: Submission, exercise: Exercise) -> dict[str, Missing]:
    """For each part without an answer, what in the submission may be meant for it; empty if there is nothing."""
    given = submission.answers.get(exercise.id)
    parts = [p.id for p in exercise.parts]
    if given is not None:
        unanswered = [p for p in parts if p not in given]
        strange = _unknown_keys(submission, exercise)[:MOST_NOTES]
        notes = [_key_note(key, exercise, unanswered) for key in strange]
        return {p: Missing("; ".join(notes)) for p in unanswered} if notes else {}
    known = _known([exercise])
    for table in submission.answers:
        if table not in known and did_you_mean(table, known) == f"did you mean `{exercise.id}`?":
            text = f"there is no table [{exercise.id}] but a table [{_quoted(table)}]; did you mean [{exercise.id}]?"
            return {p: Missing(text) for p in parts}
    outside = [key for key in submission.outside if key in parts]
    if outside and not submission.answers:
        text = f"outside a table: {listed(outside, 'and')}; write [{exercise.id}] above"
        return {p: Missing(text) for p in parts}
    return {}


def strangers(submission: Submission, exercises: Sequence[Exercise]) -> tuple[str, ...]:
    """Messages about tables that name no exercise, answers outside tables, and keys that name no part, each with what
    may be meant.
    """
    known = _known(exercises)
    notes = []
    for table in submission.answers:
        if table not in known:
            meant = did_you_mean(table, known)
            notes.append(f"there is no exercise `{_quoted(table)}`" + (f"; {meant}" if meant else ""))
    notes += [
        f"`{_quoted(key)}` is outside a table; write the exercise in brackets above it" for key in submission.outside
    ]
    for exercise in exercises:
        given = submission.answers.get(exercise.id, {})
        unanswered = [p.id for p in exercise.parts if p.id not in given]
        notes += [_key_note(key, exercise, unanswered) for key in _unknown_keys(submission, exercise)]
    more = len(notes) - MOST_NOTES
    return tuple(notes[:MOST_NOTES]) + ((f"and {more} more like this",) if more > 0 else ())
