"""`roofdsl exercise grade` and `autograder`: a class, and one submission inside Gradescope."""

from __future__ import annotations

import json
from pathlib import Path

import click

from roofdsl.cli.exercise import folder_option
from roofdsl.cli.progress import progress_bar
from roofdsl.lang.diagnostics import CommandError


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
    folder: Path | None,
) -> None:
    """Grade a folder with a folder or a file of answers for each student, named by the student's id.

    Every submission is graded in a process of its own, with limits; one that cannot be read gets zero points and the
    reason. With --gradescope, SUBMISSIONS is the submission of one student.
    """
    from roofdsl.classroom.data import course
    from roofdsl.classroom.gradescope import results
    from roofdsl.classroom.grading import Grade, chosen, grade_all, summary, table
    from roofdsl.classroom.isolate import Limits
    from roofdsl.classroom.submissions import entries
    from roofdsl.measure.atomic import write_whole

    exercises = chosen(course(folder), _names(only))
    titles = {e.id: e.title for e in exercises}
    limits = Limits(wall_s=seconds, cpu_s=int(seconds) + 1)

    def document(grade: Grade) -> str:
        return json.dumps(results(grade, titles), indent=1) + "\n"

    if gradescope is not None:
        from roofdsl.classroom.gradescope import grade_one

        write_whole(gradescope, document(grade_one(submissions, exercises, student, metadata, limits)))
        return
    if not submissions.is_dir():
        raise CommandError(f"`{submissions}` is no folder", "each student's answers are a folder or a file in it")
    everyone = [(path.stem if path.suffix in (".toml", ".json") else path.name, path) for path in entries(submissions)]
    if not everyone:
        raise CommandError(f"`{submissions}` has no submissions")
    names = [student for student, _ in everyone]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise CommandError(f"two submissions are named `{_safe(twice)}`", "leave one for each student")
    where = output or submissions.parent / f"{submissions.resolve().name}-results"
    where.mkdir(parents=True, exist_ok=True)

    def write(grade: Grade) -> None:
        own = where / _safe(grade.student)
        own.mkdir(exist_ok=True)
        write_whole(own / "results.json", document(grade))

    with progress_bar(f"grading {len(everyone)}") as tell:
        grades = grade_all(everyone, exercises, jobs=jobs, limits=limits, tell=tell, done=write)
    write_whole(where / "grades.csv", table(grades, exercises))
    write_whole(where / "summary.csv", summary(grades))
    mean = sum(g.score for g in grades) / len(grades)
    count = f"{len(grades)} submissions, {len(exercises)} exercises"
    click.echo(f"{count}, mean {mean:.1f} of {grades[0].max_score} points")
    for g in (g for g in grades if g.problem):
        click.echo(f"  {_safe(g.student)}: {g.problem}")
    click.echo(f"written to {where}: grades.csv, summary.csv, and a results.json for each student")


def _safe(name: str) -> str:
    """A student's name as a file name and on a terminal; what had to be changed is told apart by a hash."""
    plain = "".join(c if c.isalnum() or c in "@._+-= " else "_" for c in name)[:100]
    if plain == name:
        return plain
    import hashlib

    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("autograder.zip"), show_default=True)
@click.option("--only", metavar="ID,UNIT,...", help="Only these exercises, or those of these units.")
@folder_option
def autograder(*, output: Path, only: str | None, folder: Path | None) -> None:
    """Pack a zip that Gradescope takes as an autograder: this roofdsl, the exercises, setup.sh and run_autograder."""
    from roofdsl.classroom.data import course
    from roofdsl.classroom.gradescope import write_zip
    from roofdsl.classroom.grading import chosen

    exercises = chosen(course(folder), _names(only))
    count = write_zip(output, [e.id for e in exercises], folder)
    points = sum(e.points for e in exercises)
    click.echo(f"wrote {output}: {count} files, {len(exercises)} exercises, {points} points")
