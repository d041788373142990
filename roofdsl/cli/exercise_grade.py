"""`roofdsl exercise grade` and `autograder`: a class, and one submission inside Gradescope."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from roofdsl.cli.exercise import folder_option, key_option, seed_option
from roofdsl.cli.progress import progress_bar
from roofdsl.lang.diagnostics import CommandError

if TYPE_CHECKING:
    from roofdsl.classroom.data import Exercise
    from roofdsl.classroom.grading import Grade, Judging
    from roofdsl.classroom.isolate import Limits


def _names(only: str | None) -> list[str]:
    return [n.strip() for n in (only or "").split(",") if n.strip()]


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for grades.csv and a results.json each.")
@click.option("--only", metavar="ID,UNIT,...", help="Only these exercises, or those of these units.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Submissions at a time; by default one for each core.")
@click.option(
    "--seconds", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Time of one submission."
)
@click.option("--gradescope", type=click.Path(path_type=Path), metavar="RESULTS.json", help="SUBMISSIONS is one.")
@click.option("--metadata", type=click.Path(path_type=Path), help="Gradescope's file of who handed in.")
@click.option("--student", metavar="ID", help="Who handed in, with --gradescope and without --metadata.")
@seed_option
@key_option
@folder_option
def grade(
    *,
    submissions: Path,
    output: Path | None,
    only: str | None,
    jobs: int | None,
    seconds: float,
    gradescope: Path | None,
    metadata: Path | None,
    student: str | None,
    seed: int | None,
    key_file: Path | None,
    folder: Path | None,
) -> None:
    """Grade a folder with a folder or a file of answers for each student, named by the student's id.

    Every submission is graded in a process of its own, with limits; one that cannot be read gets zero points and the
    reason. With --gradescope, SUBMISSIONS is the submission of one student.
    """
    from roofdsl.classroom.data import course
    from roofdsl.classroom.grading import Judging, chosen
    from roofdsl.classroom.isolate import Limits
    from roofdsl.classroom.student_version import fresh_seed
    from roofdsl.classroom.versions import course_key
    from roofdsl.measure.atomic import write_whole

    exercises = chosen(course(folder), _names(only))
    limits = Limits(wall_s=seconds, cpu_s=int(seconds) + 1)
    judging = Judging(fresh_seed() if seed is None else seed, course_key(key_file))
    if gradescope is not None:
        from roofdsl.classroom.gradescope import grade_one

        found = grade_one(submissions, exercises, student, metadata, limits=limits, judging=judging)
        write_whole(gradescope, _document(found, exercises, judging))
        return
    if not submissions.is_dir():
        raise CommandError(f"`{submissions}` is no folder", "each student's answers are a folder or a file in it")
    _grade_class(submissions, output, exercises, jobs, limits=limits, judging=judging)


def _document(grade: Grade, exercises: Sequence[Exercise], judging: Judging) -> str:
    from roofdsl.classroom.gradescope import results

    return json.dumps(results(grade, {e.id: e.title for e in exercises}, judging.seed), indent=1) + "\n"


def _grade_class(
    submissions: Path,
    output: Path | None,
    exercises: Sequence[Exercise],
    jobs: int | None,
    *,
    limits: Limits,
    judging: Judging,
) -> None:
    """Grades everybody in a folder; what is odd about one costs nobody else a grade and is said at the end."""
    from roofdsl.classroom.grading import grade_all, summary, table
    from roofdsl.classroom.roster import everyone, file_names, safe
    from roofdsl.lang.record import replace
    from roofdsl.measure.atomic import write_whole

    found = everyone(submissions)
    if not found:
        raise CommandError(f"`{submissions}` has no submissions")
    where = output or submissions.parent / f"{submissions.resolve().name}-results"
    where.mkdir(parents=True, exist_ok=True)
    files = file_names([e.name for e in found])
    told = [(safe(e.name), e.note) for e in found if e.note]

    def write(index: int, grade: Grade) -> None:
        own = where / files[index]
        try:
            own.mkdir(exist_ok=True)
            write_whole(own / "results.json", _document(grade, exercises, judging))
        except (OSError, CommandError) as error:
            reason = error.message if isinstance(error, CommandError) else error.strerror
            told.append((files[index], f"graded, but the results.json is not written: {reason}"))

    with progress_bar(f"grading {len(found)}") as tell:
        pairs = [(e.student, e.path) for e in found]
        grades = grade_all(pairs, exercises, jobs=jobs, limits=limits, judging=judging, tell=tell, done=write)
    named = [replace(g, student=e.name) for g, e in zip(grades, found, strict=True)]
    write_whole(where / "grades.csv", table(named, exercises))
    write_whole(where / "summary.csv", summary(named))
    mean = sum(g.score for g in named) / len(named)
    count = f"{len(named)} submissions, {len(exercises)} exercises"
    click.echo(f"{count}, mean {mean:.1f} of {named[0].max_score} points")
    told += [(safe(g.student), text) for g in named for text in (*filter(None, [g.problem]), *g.notes)]
    for name, text in told:
        click.echo(f"  {name}: {text}")
    if any(p.kind == "kernel" for e in exercises for p in e.parts):
        click.echo(f"kernels were compared on random data; --seed {judging.seed} draws the same again")
    click.echo(f"written to {where}: grades.csv, summary.csv, and a results.json for each student")


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("autograder.zip"), show_default=True)
@click.option("--only", metavar="ID,UNIT,...", help="Only these exercises, or those of these units.")
@key_option
@folder_option
def autograder(*, output: Path, only: str | None, key_file: Path | None, folder: Path | None) -> None:
    """Pack a zip that Gradescope takes as an autograder: this roofdsl, the exercises, setup.sh and run_autograder.

    With a course key, the zip has it too: keep the zip from your students.
    """
    from roofdsl.classroom.data import course
    from roofdsl.classroom.gradescope import write_zip
    from roofdsl.classroom.grading import chosen
    from roofdsl.classroom.versions import course_key

    exercises = chosen(course(folder), _names(only))
    count = write_zip(output, [e.id for e in exercises], folder, course_key(key_file))
    points = sum(e.points for e in exercises)
    click.echo(f"wrote {output}: {count} files, {len(exercises)} exercises, {points} points")


@click.command()
@click.argument("students", nargs=-1, metavar="STUDENT...")
@click.option("--roster", type=click.File("r", encoding="utf-8"), help="A file with a student on each line.")
@key_option
def codes(*, students: tuple[str, ...], roster: TextIO | None, key_file: Path | None) -> None:
    """Print the version code of each student under a course key, as CSV. Give each student the own code only."""
    import csv
    import sys

    from roofdsl.classroom.versions import KEY_VARIABLE, code_of, course_key

    key = course_key(key_file)
    if not key:
        raise CommandError("codes need a course key", f"give it by --key-file, or in {KEY_VARIABLE}")
    try:
        lines = [line.strip() for line in roster] if roster is not None else []
    except ValueError:
        raise CommandError("the roster is no text in UTF-8", "save it as UTF-8, a student on each line") from None
    everyone = [*students, *filter(None, lines)]
    if not everyone:
        raise CommandError("there are no students to make codes for", "name them, or give --roster FILE")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["student", "code"])
    writer.writerows([student, code_of(key, student)] for student in everyone)
