"""Grading one submission or a class of them, in separate processes; results are written whatever happens."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roofdsl.classroom.exercise_file import Exercise
from roofdsl.classroom.isolate import DEFAULTS, Limits, Outcome, run_all
from roofdsl.classroom.judge_answers import PartResult, Result, judge
from roofdsl.classroom.kernels import prepare as prepare_kernels
from roofdsl.classroom.student_version import StudentVersion, drawn, fresh_seed, student_version
from roofdsl.classroom.submissions import Submission, Unreadable, read
from roofdsl.classroom.unexpected import missing, strangers
from roofdsl.classroom.versions import version_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record, replace

FILES = {"kernel": ".roof", "measurement": ".json"}
"""The file name endings that answers of each kind may have."""


class Grade(Record):
    """One student's results, in the order of the exercises. problem: why nothing could be graded. notes: content of the
    submission that belongs to no exercise.
    """

    student: str
    results: tuple[Result, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        return sum(r.score for r in self.results)

    @property
    def max_score(self) -> int:
        return sum(r.max_score for r in self.results)


class Judging(Record):
    """How a class is judged. seed: the seed of the data on which kernels are compared, which no student may know
    beforehand. key: the course key (`versions`), empty if versions follow from names alone.
    """

    seed: int
    key: str = ""


def grade_submission(path: Path, student: str, exercises: Sequence[Exercise], judging: Judging | None = None) -> Grade:
    """Grades one submission in this process. One that cannot be read gets zero points, with the reason."""
    how = judging or Judging(fresh_seed())
    try:
        submission = read(path)
    except Unreadable as problem:
        return nothing(student, exercises, str(problem))
    version = version_of(student, how.key)
    results = tuple(judge(student_version(e, version, how.seed), answers_to(submission, e)) for e in exercises)
    return Grade(student, results, "", strangers(submission, exercises))


def check_alone(exercise: Exercise, submission: Submission, version: str, seed: int) -> Result:
    """The result of one version of an exercise, judged in a process of its own with limits if the system can fork.

    Raises CommandError for an error in the exercise.
    """
    own = student_version(exercise, version, seed)
    _ = own.parts
    answers = answers_to(submission, exercise)
    if not hasattr(os, "fork"):
        return judge(own, answers)
    outcome = run_all([lambda: json.dumps(_plain(judge(own, answers)))], 1)[0]
    if outcome.text is None:
        return nothing(version, [exercise], outcome.problem).results[0]
    return _result_of(json.loads(outcome.text))


def answers_to(submission: Submission, exercise: Exercise) -> dict[str, Any]:
    """The submission's answers to an exercise. Files that answers name are read. A part without an answer gets a
    Missing if something else in the submission may be meant for it.
    """
    files = {p.id: FILES[p.kind] for p in exercise.parts if p.kind in FILES}
    return submission.of(exercise.id, files) | missing(submission, exercise)


def nothing(student: str, exercises: Sequence[Exercise], problem: str) -> Grade:
    """A grade of zero points for every exercise, with the reason."""
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
    judging: Judging | None = None,
    tell: Callable[[float, str], None] = lambda part, step: None,
    done: Callable[[int, Grade], None] = lambda index, grade: None,
) -> list[Grade]:
    """Grades submissions (student, path), several at a time, each in its own process.

    The right answers of every version in the class are derived once, before the first fork. `done` is called with each
    grade and its place as it arrives. Raises CommandError for an error in an exercise.
    """
    how = judging or Judging(fresh_seed())
    prepare(exercises, [version_of(student, how.key) for student, _ in submissions], how.seed, tell)
    grades: dict[int, Grade] = {}
    stopped: dict[int, str] = {}
    at_once = jobs or _cores()

    def keep(index: int, grade: Grade) -> None:
        grades[index] = grade
        done(index, grade)
        tell(0.2 + 0.8 * len(grades) / len(submissions), grade.student[:40])

    def finished(index: int, outcome: Outcome) -> None:
        if outcome.text is None:
            stopped[index] = outcome.problem
        else:
            keep(index, _grade_of(submissions[index][0], json.loads(outcome.text)))

    run_all([_task(*each, exercises, how) for each in submissions], at_once, limits, finished)
    for index in sorted(stopped):
        one = _one_by_one(*submissions[index], exercises, at_once, how, limits=limits, problem=stopped[index])
        keep(index, one)
    return [grades[k] for k in range(len(submissions))]


def _task(student: str, path: Path, exercises: Sequence[Exercise], how: Judging) -> Callable[[], str]:
    return lambda: json.dumps(_document(grade_submission(path, student, exercises, how)))


def _one_by_one(
    student: str,
    path: Path,
    exercises: Sequence[Exercise],
    jobs: int,
    how: Judging,
    *,
    limits: Limits,
    problem: str,
) -> Grade:
    """The grade of a submission that had to be stopped: each exercise is judged separately, so that a bad answer
    costs only its own exercise.

    All of them together get about as much time again as the whole submission had.
    """
    if len(exercises) == 1:
        return nothing(student, exercises, problem)
    each = replace(limits, wall_s=max(2.0, limits.wall_s * jobs / len(exercises)))
    outcomes = run_all([_task(student, path, [e], how) for e in exercises], jobs, each)
    found: list[Result] = []
    notes: dict[str, None] = {}
    for exercise, outcome in zip(exercises, outcomes, strict=True):
        if outcome.text is None:
            found += nothing(student, [exercise], outcome.problem).results
        else:
            grade = _grade_of(student, json.loads(outcome.text))
            found += grade.results
            notes |= dict.fromkeys(grade.notes)
    return Grade(student, tuple(found), "" if any(r.score for r in found) else problem, tuple(notes))


def prepare(
    exercises: Sequence[Exercise],
    versions: Sequence[str],
    seed: int,
    tell: Callable[[float, str], None] = lambda part, step: None,
) -> None:
    """Derives the right answers of these versions (from `versions.version_of`), so that forks inherit them."""
    done = set()
    for k, exercise in enumerate(exercises):
        tell(0.2 * k / len(exercises), exercise.id)
        for one in versions:
            values = drawn(exercise, one)
            key = (exercise.id, json.dumps(values, sort_keys=True, default=str))
            if key not in done:
                done.add(key)
                version = StudentVersion(exercise, values, "", seed)
                _ = version.parts
                for name in exercise.quantities:
                    version.quantity(name)
                if any(p.kind == "kernel" for p in exercise.parts):
                    prepare_kernels(version)
        if any(p.kind == "kernel" for p in exercise.parts):
            _warm(exercise, versions[0] if versions else "", seed)
    import sympy  # noqa: F401, imported before the forks, for those that need it


def _warm(exercise: Exercise, version: str, seed: int) -> None:
    """Judges the model solutions once, so that everything needed to judge a kernel is imported and compiled."""
    own = student_version(exercise, version, seed)
    judge(own, {p.id: own.kernels[p.solution_kernel] for p in exercise.parts if p.kind == "kernel"})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- between processes ----


def _document(grade: Grade) -> dict[str, Any]:
    return {"problem": grade.problem, "notes": grade.notes, "results": list(map(_plain, grade.results))}


def _grade_of(student: str, document: Mapping[str, Any]) -> Grade:
    results = tuple(map(_result_of, document["results"]))
    return Grade(student, results, document["problem"], tuple(document["notes"]))


def _plain(result: Result) -> dict[str, Any]:
    keys = PartResult.__match_args__
    return {"exercise": result.exercise, "parts": [[getattr(p, k) for k in keys] for p in result.parts]}


def _result_of(document: Mapping[str, Any]) -> Result:
    return Result(document["exercise"], tuple(PartResult(*p) for p in document["parts"]))


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
    """What a class found hard, as CSV: for every part, the numbers of right answers and of all answers, and the most
    frequent feedback on wrong ones. Submissions of which nothing could be graded do not count.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["exercise", "part", "right", "answers", "times", "most frequent feedback"])
    told: dict[tuple[str, str], list[PartResult]] = {}
    for g in grades:
        for r in g.results if not g.problem else ():
            for p in r.parts:
                told.setdefault((r.exercise, p.id), []).append(p)
    for (exercise, part), results in told.items():
        wrong = Counter(p.told for p in results if not p.correct and p.is_given)
        message, times = wrong.most_common(1)[0] if wrong else ("", 0)
        right, given = sum(p.correct for p in results), sum(p.is_given for p in results)
        writer.writerow([exercise, part, right, given, times, _cell(" ".join(message.split()))])
    return out.getvalue()


def _cell(text: str) -> str:
    """The text, changed if a spreadsheet would take it for a formula."""
    plain = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


def chosen(course: Mapping[str, Exercise], names: Sequence[str]) -> list[Exercise]:
    """The exercises with these ids and units, in the order of the course; all exercises if no name is given.

    Raises CommandError for a name that is neither.
    """
    units = {e.unit for e in course.values()}
    for name in names:
        if name not in course and name not in units:
            help = did_you_mean(name, [*course, *units], "`roofdsl exercise list` lists them")
            raise CommandError(f"there is no exercise or unit `{name}`", help)
    return [e for e in course.values() if not names or e.id in names or e.unit in names]
