"""Grading one submission, and a class of them: in processes apart, results written whatever happens."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roofdsl.classroom.data import Exercise
from roofdsl.classroom.isolate import DEFAULTS, Limits, Outcome, run_all
from roofdsl.classroom.judge import NO_ANSWER, PartResult, Result, judge
from roofdsl.classroom.settle import Settled, drawn, settled
from roofdsl.classroom.submissions import Submission, Unreadable, read
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace

FILES = {"kernel": ".roof", "measurement": ".json"}
"""The endings of files that answers of a kind may name."""


class Grade(Record):
    """One student's results, in the order of the exercises. problem: why nothing could be graded."""

    student: str
    results: tuple[Result, ...]
    problem: str = ""

    @property
    def score(self) -> float:
        return sum(r.score for r in self.results)

    @property
    def max_score(self) -> int:
        return sum(r.max_score for r in self.results)


def grade_submission(path: Path, student: str, exercises: Sequence[Exercise]) -> Grade:
    """Grades one submission in this process. A submission that cannot be read gets zero points and the reason."""
    try:
        submission = read(path)
    except Unreadable as problem:
        return nothing(student, exercises, str(problem))
    return Grade(student, tuple(judge(settled(e, student), answers_to(submission, e)) for e in exercises))


def check_alone(exercise: Exercise, submission: Submission, student: str) -> Result:
    """The result of one exercise, judged apart with limits where the system can fork.

    Raises CommandError for an error in the exercise.
    """
    version = settled(exercise, student)
    _ = version.parts
    answers = answers_to(submission, exercise)
    if not hasattr(os, "fork"):
        return judge(version, answers)
    outcome = run_all([lambda: json.dumps(judge(version, answers).to_json())], 1)[0]
    if outcome.text is None:
        return nothing(student, [exercise], outcome.problem).results[0]
    return _result_of(json.loads(outcome.text))


def answers_to(submission: Submission, exercise: Exercise) -> dict[str, Any]:
    """The submission's answers to an exercise, files that they name read."""
    return submission.of(exercise.id, {p.id: FILES[p.kind] for p in exercise.parts if p.kind in FILES})


def nothing(student: str, exercises: Sequence[Exercise], problem: str) -> Grade:
    """Zero points for every exercise, and why."""
    message = f"This could not be graded: {problem}."
    return Grade(
        student,
        tuple(Result(e.id, tuple(PartResult(p.id, False, 0.0, p.points, message) for p in e.parts)) for e in exercises),
        problem,
    )


def grade_all(
    submissions: Sequence[tuple[str, Path]],
    exercises: Sequence[Exercise],
    *,
    jobs: int | None = None,
    limits: Limits = DEFAULTS,
    tell: Callable[[float, str], None] = lambda part, step: None,
    done: Callable[[Grade], None] = lambda grade: None,
) -> list[Grade]:
    """Grades submissions (student, path), several at a time, each in a process of its own.

    The right answers of every version in the class are derived here first, once. `done` is told of each grade as it
    comes. Raises CommandError for an error in an exercise.
    """
    prepare(exercises, [student for student, _ in submissions], tell)
    grades: dict[int, Grade] = {}
    stopped: dict[int, str] = {}
    at_once = jobs or _cores()

    def keep(index: int, grade: Grade) -> None:
        grades[index] = grade
        done(grade)
        tell(0.2 + 0.8 * len(grades) / len(submissions), grade.student[:40])

    def finished(index: int, outcome: Outcome) -> None:
        if outcome.text is None:
            stopped[index] = outcome.problem
        else:
            keep(index, _grade_of(submissions[index][0], json.loads(outcome.text)))

    run_all([_task(*each, exercises) for each in submissions], at_once, limits, finished)
    for index in sorted(stopped):
        keep(index, _one_by_one(*submissions[index], exercises, at_once, limits=limits, problem=stopped[index]))
    return [grades[k] for k in range(len(submissions))]


def _task(student: str, path: Path, exercises: Sequence[Exercise]) -> Callable[[], str]:
    return lambda: json.dumps(_document(grade_submission(path, student, exercises)))


def _one_by_one(
    student: str, path: Path, exercises: Sequence[Exercise], jobs: int, *, limits: Limits, problem: str
) -> Grade:
    """The grade of a submission that had to be stopped: each exercise apart, so that one answer costs one exercise.

    All of them together get about as long again as the submission had.
    """
    if len(exercises) == 1:
        return nothing(student, exercises, problem)
    each = replace(limits, wall_s=max(2.0, limits.wall_s * jobs / len(exercises)))
    outcomes = run_all([_task(student, path, [e]) for e in exercises], jobs, each)
    found: list[Result] = []
    for exercise, outcome in zip(exercises, outcomes, strict=True):
        if outcome.text is None:
            found += nothing(student, [exercise], outcome.problem).results
        else:
            found += _grade_of(student, json.loads(outcome.text)).results
    return Grade(student, tuple(found), "" if any(r.score for r in found) else problem)


def prepare(
    exercises: Sequence[Exercise], students: Sequence[str], tell: Callable[[float, str], None] = lambda part, step: None
) -> None:
    """Derives the right answers of every version that these students have, so that forks find them known."""
    from roofdsl.classroom.kernels import prepare as prepare_kernels

    done = set()
    for k, exercise in enumerate(exercises):
        tell(0.2 * k / len(exercises), exercise.id)
        for student in students:
            values = drawn(exercise, student)
            key = (exercise.id, json.dumps(values, sort_keys=True, default=str))
            if key not in done:
                done.add(key)
                version = Settled(exercise, values)
                _ = version.parts
                for name in exercise.quantities:
                    version.quantity(name)
                if any(p.kind == "kernel" for p in exercise.parts):
                    prepare_kernels(version)
        if any(p.kind == "kernel" for p in exercise.parts):
            _warm(exercise, students[0] if students else "")
    import sympy  # noqa: F401, forks that need it have it


def _warm(exercise: Exercise, student: str) -> None:
    """Judges the model solutions once, so that what judging a kernel needs is imported and compiled."""
    version = settled(exercise, student)
    judge(version, {p.id: version.kernels[p.solution_kernel] for p in exercise.parts if p.kind == "kernel"})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- between processes ----


def _document(grade: Grade) -> dict[str, Any]:
    return {"problem": grade.problem, "results": [r.to_json() for r in grade.results]}


def _grade_of(student: str, document: Mapping[str, Any]) -> Grade:
    return Grade(student, tuple(map(_result_of, document["results"])), document["problem"])


def _result_of(document: Mapping[str, Any]) -> Result:
    keys = ("id", "correct", "score", "max_score", "message")
    return Result(document["exercise"], tuple(PartResult(*(p[k] for k in keys)) for p in document["parts"]))


# ---- results of a class ----


def table(grades: Sequence[Grade], exercises: Sequence[Exercise]) -> str:
    """The grades as CSV: a line for each student, a column for each exercise."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "score", "max_score", *(e.id for e in exercises), "problem"])
    for g in grades:
        scores = [f"{r.score:g}" for r in g.results]
        writer.writerow([_cell(g.student), f"{g.score:g}", g.max_score, *scores, _cell(g.problem)])
    return out.getvalue()


def summary(grades: Sequence[Grade]) -> str:
    """What a class found hard, as CSV: for every part the share of right answers, and what was told most often."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["exercise", "part", "right", "answers", "times", "told most often"])
    told: dict[tuple[str, str], list[PartResult]] = {}
    for g in grades:
        for r in g.results if not g.problem else ():
            for p in r.parts:
                told.setdefault((r.exercise, p.id), []).append(p)
    for (exercise, part), results in told.items():
        wrong = Counter(p.message for p in results if not p.correct and p.message != NO_ANSWER)
        message, times = wrong.most_common(1)[0] if wrong else ("", 0)
        right = sum(p.correct for p in results)
        writer.writerow([exercise, part, right, len(results), times, _cell(" ".join(message.split()))])
    return out.getvalue()


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    plain = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


def chosen(course: Mapping[str, Exercise], names: Sequence[str]) -> list[Exercise]:
    """The exercises of these ids and units, in the order of the course; all of them without a name.

    Raises CommandError for a name that is neither.
    """
    from roofdsl.lang.report import did_you_mean

    units = {e.unit for e in course.values()}
    for name in names:
        if name not in course and name not in units:
            help = did_you_mean(name, [*course, *units], "`roofdsl exercise list` lists them")
            raise CommandError(f"there is no exercise or unit `{name}`", help)
    return [e for e in course.values() if not names or e.id in names or e.unit in names]
