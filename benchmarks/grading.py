"""Grading a class: how long 300 synthetic submissions take, with answers right, wrong, senseless and hostile.

Every student answers every exercise in the own version. Right answers are spelled differently, wrong ones are the
exercise's usual mistakes; some answers are missing, some are attempts to stop the grader, and some submissions are no
submissions at all.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import markdown
from roofdsl import budget
from roofdsl.classroom.answer_language import Node, show
from roofdsl.classroom.answer_units import value_of
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.exercise_file import Exercise, course
from roofdsl.classroom.grade_submissions import chosen, grade_all
from roofdsl.classroom.student_version import StudentVersion, VersionPart, drawn
from roofdsl.classroom.submissions import entries

STUDENTS = 300
GOAL_S = 120.0
CORES = 2

HOSTILE = ("9**9**9**9", "(" * 300, "__import__('os')", "n" * 400, "1/0", "sqrt(-1)", "\u202e2*n", "1e99999", "n**n")


def write_class(folder: Path, students: Sequence[str], exercises: Sequence[Exercise], seed: int) -> None:
    """Writes a folder of answers for each student; every tenth is a damaged one."""
    rng = random.Random(seed)
    versions: dict[str, StudentVersion] = {}
    for k, student in enumerate(students):
        own = folder / student
        own.mkdir(parents=True)
        if k % 10 == 9:
            _damaged(own, rng.randrange(4))
            continue
        answers = {}
        for exercise in exercises:
            values = drawn(exercise, student)
            key = f"{exercise.id} {json.dumps(values, sort_keys=True)}"
            if key not in versions:
                versions[key] = StudentVersion(exercise, values)
                _ = versions[key].parts
            version = (
                StudentVersion(exercise, values, student) if any(p.options for p in exercise.parts) else versions[key]
            )
            answers[exercise.id] = _answers(version, rng, own)
        (own / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def _damaged(own: Path, how: int) -> None:
    if how == 0:
        (own / "answers.toml").write_bytes(bytes(range(256)) * 100)
    elif how == 1:
        (own / "answers.json").write_text("[" * 100_000, encoding="utf-8")
    elif how == 2:
        (own / "answers.toml").symlink_to("/dev/zero")


def _answers(version: StudentVersion, rng: random.Random, own: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for p in version.parts:
        luck = rng.random()
        if luck < 0.05:
            continue
        if luck < 0.1:
            found[p.part.id] = rng.choice(HOSTILE)
        elif p.part.kind == "kernel":
            name = p.part.solution_kernel if luck < 0.7 else rng.choice(p.part.examples)
            file = f"{version.exercise.id}.roof"
            (own / file).write_text(version.kernels[name], encoding="utf-8")
            found[p.part.id] = file
        elif p.options:
            right = [o.letter for o in p.options if o.right]
            found[p.part.id] = right[0] if right and luck < 0.7 else rng.choice(p.options).letter
        elif p.answer is not None:
            wrong = rng.choice(p.mistakes).formula if p.mistakes and luck > 0.7 else p.answer
            found[p.part.id] = _spelled(p, wrong, rng)
    return found


def _spelled(p: VersionPart, node: Node, rng: random.Random) -> str:
    if p.part.kind == "expression":
        text = show(node)
        return rng.choice((text, f"2*({text})/2", f"({text}) + 0", f"-(-({text}))", text.replace(" ", "")))
    factor, _ = value_of(p.part.unit)
    return repr(float(evaluate(node, {}) / factor)) + rng.choice(("", f" {p.part.unit}" if p.part.unit else ""))


def run(students: int = STUDENTS, jobs: int = CORES, names: Sequence[str] = ()) -> Mapping[str, float]:
    """Seconds of preparation and grading together, and what came out; `names` are exercises, by default all."""
    exercises = chosen(course(), names)
    everyone = [f"student{k:03}" for k in range(students)]
    with TemporaryDirectory() as folder:
        write_class(Path(folder), everyone, exercises, 2026)
        submissions = [(path.name, path) for path in entries(Path(folder))]
        begun, used = time.perf_counter(), budget.processor_s()
        grades = grade_all(submissions, exercises, jobs=jobs)
        seconds, used = time.perf_counter() - begun, budget.processor_s() - used
    problems = sum(bool(g.problem) for g in grades)
    score = sum(g.score for g in grades if not g.problem) / max(1, students - problems)
    return {"seconds": seconds, "used": used, "problems": problems, "mean": score, "points": grades[0].max_score}


def section(students: int = STUDENTS, names: Sequence[str] = ()) -> str:
    """The result as Markdown."""
    found = run(students, names=names)
    count = "all exercises" if not names else f"{len(names)} exercises"
    rows = [
        [
            f"{students} submissions of {count}, {CORES} at a time",
            f"{found['seconds']:.1f} s",
            f"{GOAL_S:.0f} s",
            f"{found['used']:.1f} s",
            f"{1000 * found['used'] / students:.0f} ms",
            f"{found['problems']:.0f}",
            f"{found['mean']:.0f} of {found['points']:.0f}",
        ]
    ]
    head = ["class", "time", "goal", "of processors", "each", "unreadable", "mean of the others"]
    return "## Grading a class\n\n" + markdown(head, rows)
