"""`roofdsl exercise`: list, show and check exercises, grade a class, pack an autograder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from roofdsl.classroom.exercise_file import COURSE, course
from roofdsl.classroom.exercise_file import exercise as load_exercise
from roofdsl.classroom.isolate import Limits
from roofdsl.classroom.roster import everyone, file_names, safe
from roofdsl.classroom.submissions import Submission, Unreadable, read, read_text
from roofdsl.classroom.versions import KEY_VARIABLE, code_of, course_key, version_of
from roofdsl.cli.lazy import LazyGroup
from roofdsl.cli.options import json_option, show_json
from roofdsl.cli.progress import progress_bar
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import plural
from roofdsl.lang.record import replace
from roofdsl.store.atomic import write_whole

if TYPE_CHECKING:
    from roofdsl.classroom.exercise_file import Exercise
    from roofdsl.classroom.grade_submissions import Grade, Judging

COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("roofdsl.cli.exercise:list_exercises", "List the exercises, unit by unit."),
    "show": ("roofdsl.cli.exercise:show", "Show an exercise, with hints, solution or figure."),
    "check": ("roofdsl.cli.exercise:check", "Check answers, with a score and feedback."),
    "grade": ("roofdsl.cli.exercise:grade", "Grade the submissions of a class."),
    "autograder": ("roofdsl.cli.exercise:autograder", "Pack an autograder for Gradescope."),
    "codes": ("roofdsl.cli.exercise:codes", "Print each student's version code under a course key."),
}

folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="A folder of your own exercises, to use instead of the shipped ones.",
)
student_option = click.option(
    "--student",
    default="",
    metavar="ID",
    help="The student whose version to use, such as an e-mail address. Values vary from student to student.",
)
code_option = click.option("--code", default="", metavar="CODE", help="Your version code, if your course gave you one.")
key_option = click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="For instructors: the course key, which determines the versions. ROOFDSL_COURSE_KEY may hold it instead.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed of the random data on which kernels are compared; by default, a new one each time.",
)


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def exercise() -> None:
    """List, show, check and grade exercises, whose values vary from student to student."""


@click.command("list")
@click.option("--unit", metavar="UNIT", help="List only this unit of the course.")
@folder_option
@json_option
def list_exercises(*, unit: str | None, folder: Path | None, as_json: bool) -> None:
    """List the exercises, unit by unit."""
    from roofdsl.classroom.sheet import listing
    from roofdsl.cli.text import show_blocks

    if unit is not None and unit not in COURSE:
        raise click.BadParameter(f"there is no unit `{unit}`; there are {', '.join(COURSE)}", param_hint="--unit")
    found = [e for e in course(folder).values() if unit in (None, e.unit)]
    if as_json:
        rows = [{"id": e.id, "unit": e.unit, "level": e.level, "points": e.points, "title": e.title} for e in found]
        show_json({"schema": "roofdsl.exercise/1", "exercises": rows})
        return
    show_blocks(listing(found))


@click.command()
@click.argument("name", metavar="ID|FILE.toml")
@student_option
@code_option
@key_option
@click.option("--hint", "hints", type=click.IntRange(1), metavar="N", help="Show the first N hints of each question.")
@click.option("--solution", is_flag=True, help="Show the worked solution.")
@click.option("--template", is_flag=True, help="Print a TOML file of answers to fill in.")
@click.option("-o", "--plot", "figure", metavar="OUT.svg|png|pdf", help="Draw the figure of the exercise.")
@folder_option
@json_option
def show(
    *,
    name: str,
    student: str,
    code: str,
    key_file: Path | None,
    hints: int | None,
    solution: bool,
    template: bool,
    figure: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Show an exercise in a student's version, and on request its hints, solution and figure."""
    from roofdsl.classroom import sheet
    from roofdsl.classroom.student_version import student_version

    version = student_version(load_exercise(name, folder), version_of(student, course_key(key_file), code))
    who = sheet.Reader(student, code, name, folder)
    if figure is not None:
        from roofdsl.classroom.figures import save

        save(version, Path(figure))
    if as_json:
        show_json(sheet.document(version, hints or 0, solution=solution))
    elif template:
        click.echo(sheet.template(version, student), nl=False)
    else:
        click.echo(sheet.text(version, who, hints or 0, solution=solution))


@click.command()
@click.argument("name", metavar="ID|FILE.toml")
@click.argument("given", nargs=-1, metavar="[PART=ANSWER]...")
@click.option("--answers", type=click.Path(path_type=Path), help="A file of answers, or a folder that contains one.")
@student_option
@code_option
@key_option
@seed_option
@folder_option
@json_option
def check(
    *,
    name: str,
    given: tuple[str, ...],
    answers: Path | None,
    student: str,
    code: str,
    key_file: Path | None,
    seed: int | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Check answers to an exercise. An answer that ends in .roof or .json names a file.

    The exit status is 0 if all answers are right, 1 if one is wrong or missing, and 2 if the exercise or the answers
    cannot be read.
    """
    from roofdsl.classroom.grade_submissions import FILES, check_alone
    from roofdsl.classroom.sheet import told
    from roofdsl.classroom.student_version import fresh_seed

    chosen = load_exercise(name, folder)
    if answers is None and not given:
        raise CommandError("there are no answers to check", "give them as PART=ANSWER, or --answers FILE")
    submission = Submission({})
    try:
        if answers is not None:
            submission = read(answers)
        own = dict(submission.answers.get(chosen.id, {}))
        for text in given:
            part, equals, answer = text.partition("=")
            kind = next((p.kind for p in chosen.parts if p.id == part), None)
            if not equals or kind is None:
                parts = ", ".join(f"{p.id}=..." for p in chosen.parts)
                raise click.BadParameter(f"`{text[:40]}` is none of {parts}", param_hint="PART=ANSWER")
            is_file = kind in FILES and answer.endswith(FILES[kind]) and "\n" not in answer
            own[part] = read_text(Path(answer)) if is_file else answer
    except Unreadable as problem:
        raise CommandError(f"the answers cannot be read: {problem}") from None
    version = version_of(student, course_key(key_file), code)
    all_answers = {**submission.answers, **({chosen.id: own} if own else {})}
    whole = Submission(all_answers, submission.folder, submission.outside)
    drawn = fresh_seed() if seed is None else seed
    result = check_alone(chosen, whole, version, drawn)
    if as_json:
        show_json(result.to_json())
    else:
        click.echo(told(result))
        if any(p.kind == "kernel" and p.id in own for p in chosen.parts):
            click.echo(f"compared on random data; --seed {drawn} uses the same data again")
    return 0 if result.correct else 1


def _names(only: str | None) -> list[str]:
    return [n.strip() for n in (only or "").split(",") if n.strip()]


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The folder for grades.csv, summary.csv and each student's results.json; by default, SUBMISSIONS-results.",
)
@click.option("--only", metavar="ID,UNIT,...", help="Use only these exercises, or those of these units.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Submissions to grade at a time; by default, one per core.")
@click.option(
    "--seconds", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Time limit of one submission."
)
@click.option(
    "--gradescope",
    type=click.Path(path_type=Path),
    metavar="RESULTS.json",
    help="Grade SUBMISSIONS as a single Gradescope submission and write RESULTS.json.",
)
@click.option(
    "--metadata", type=click.Path(path_type=Path), help="Gradescope's submission metadata, which name the student."
)
@click.option("--student", metavar="ID", help="The student who submitted, for --gradescope without --metadata.")
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
    """Grade a class: SUBMISSIONS holds a folder or a file of answers for each student, named after the student's id.

    Each submission is graded in a separate process, with limits. A submission that cannot be read gets zero points and
    a message. With --gradescope, SUBMISSIONS is the submission of a single student.
    """
    from roofdsl.classroom.grade_submissions import Judging, chosen
    from roofdsl.classroom.student_version import fresh_seed

    exercises = chosen(course(folder), _names(only))
    limits = Limits(wall_s=seconds, cpu_s=int(seconds) + 1)
    judging = Judging(fresh_seed() if seed is None else seed, course_key(key_file))
    if gradescope is not None:
        from roofdsl.classroom.gradescope import grade_one

        found = grade_one(submissions, exercises, student, metadata, limits=limits, judging=judging)
        write_whole(gradescope, _document(found, exercises, judging))
        return
    if not submissions.is_dir():
        raise CommandError(
            f"`{submissions}` is not a folder", "it must contain a folder or a file of answers for each student"
        )
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
    """Grade a folder. A problem with one submission is reported at the end and costs nobody else a grade."""
    from roofdsl.classroom.grade_submissions import grade_all, summary, table

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
    count = f"{plural(len(named), 'submission')}, {plural(len(exercises), 'exercise')}"
    click.echo(f"{count}, mean {mean:.1f} of {named[0].max_score} points")
    told += [(safe(g.student), text) for g in named for text in (*filter(None, [g.problem]), *g.notes)]
    for name, text in told:
        click.echo(f"  {name}: {text}")
    if any(p.kind == "kernel" for e in exercises for p in e.parts):
        click.echo(f"kernels were compared on random data; --seed {judging.seed} uses the same data again")
    click.echo(f"written to {where}: grades.csv, summary.csv, and a results.json for each student")


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("autograder.zip"),
    show_default=True,
    help="The zip file to write.",
)
@click.option("--only", metavar="ID,UNIT,...", help="Use only these exercises, or those of these units.")
@key_option
@folder_option
def autograder(*, output: Path, only: str | None, key_file: Path | None, folder: Path | None) -> None:
    """Pack an autograder for Gradescope: a zip with this roofdsl, the exercises, setup.sh and run_autograder.

    With a course key, the zip contains the key; keep such a zip away from your students.
    """
    from roofdsl.classroom.grade_submissions import chosen
    from roofdsl.classroom.gradescope import write_zip

    exercises = chosen(course(folder), _names(only))
    count = write_zip(output, [e.id for e in exercises], folder, course_key(key_file))
    points = sum(e.points for e in exercises)
    click.echo(f"wrote {output}: {count} files, {len(exercises)} exercises, {points} points")


@click.command()
@click.argument("students", nargs=-1, metavar="[STUDENT]...")
@click.option("--roster", type=click.File("r", encoding="utf-8"), help="A file with one student per line.")
@key_option
def codes(*, students: tuple[str, ...], roster: TextIO | None, key_file: Path | None) -> None:
    """Print the version code of each student under a course key, as CSV. Give each student only their own code."""
    import csv
    import sys

    key = course_key(key_file)
    if not key:
        raise CommandError("codes need a course key", f"pass it with --key-file, or in {KEY_VARIABLE}")
    try:
        lines = [line.strip() for line in roster] if roster is not None else []
    except ValueError:
        raise CommandError("the roster is not UTF-8 text", "save it as UTF-8, a student on each line") from None
    named = [*students, *filter(None, lines)]
    if not named:
        raise CommandError("no students are given", "name them, or give --roster FILE")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["student", "code"])
    writer.writerows([student, code_of(key, student)] for student in named)
