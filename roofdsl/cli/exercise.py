"""`roofdsl exercise`: list, show and check exercises, grade a class, pack an autograder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from roofdsl.cli.lazy import LazyGroup
from roofdsl.cli.options import json_option, show_json
from roofdsl.lang.diagnostics import CommandError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("roofdsl.cli.exercise:list_exercises", "List the exercises, unit by unit."),
    "show": ("roofdsl.cli.exercise:show", "Show an exercise, its hints, its solution, its figure."),
    "check": ("roofdsl.cli.exercise:check", "Check answers: score and feedback at once."),
    "grade": ("roofdsl.cli.exercise_grade:grade", "Grade the submissions of a class."),
    "autograder": ("roofdsl.cli.exercise_grade:autograder", "Pack a zip for Gradescope."),
    "codes": ("roofdsl.cli.exercise_grade:codes", "Print each student's version code under a course key."),
}

folder_option = click.option(
    "--folder", type=click.Path(path_type=Path), help="Exercises of your own, instead of the shipped ones."
)
student_option = click.option(
    "--student", default="", metavar="ID", help="Whose version: each student has other values (an e-mail address, say)."
)
code_option = click.option(
    "--code", default="", metavar="CODE", help="Your version code, where your course gave you one."
)
key_option = click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="The course key, for instructors: versions follow from it. Also read from the variable ROOFDSL_COURSE_KEY.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Of the random data on which kernels are compared; by default another one each time.",
)


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def exercise() -> None:
    """Exercises that grade themselves, a version for every student."""


@click.command("list")
@click.option("--unit", metavar="UNIT", help="Only this unit of the course.")
@folder_option
@json_option
def list_exercises(*, unit: str | None, folder: Path | None, as_json: bool) -> None:
    """List the exercises, unit by unit."""
    from roofdsl.classroom.data import COURSE, course
    from roofdsl.cli.text import bold
    from roofdsl.tell.lines import aligned

    if unit is not None and unit not in COURSE:
        raise click.BadParameter(f"there is no unit `{unit}`; there are {', '.join(COURSE)}", param_hint="--unit")
    found = [e for e in course(folder).values() if unit in (None, e.unit)]
    if as_json:
        rows = [{"id": e.id, "unit": e.unit, "level": e.level, "points": e.points, "title": e.title} for e in found]
        show_json({"schema": "roofdsl.exercise/1", "exercises": rows})
        return
    table = aligned([[e.id, f"{e.points}", e.title] for e in found], width=None, right=(1,))
    lines = dict(zip([e.id for e in found], table, strict=True))
    blocks = []
    for k, (name, title) in enumerate(COURSE.items(), 1):
        own = [f"  {lines[e.id]}" for e in found if e.unit == name]
        if own:
            blocks.append("\n".join([bold(f"{k}. {title} ({name})"), *own]))
    total = sum(e.points for e in found)
    click.echo("\n\n".join([*blocks, f"{len(found)} exercises, {total} points. `roofdsl exercise show ID` shows one."]))


@click.command()
@click.argument("name", metavar="ID|FILE.toml")
@student_option
@code_option
@key_option
@click.option("--hint", "hints", type=click.IntRange(1), metavar="N", help="The first N hints of each question.")
@click.option("--solution", is_flag=True, help="The worked solution.")
@click.option("--template", is_flag=True, help="A file of answers to fill in, as TOML.")
@click.option("-o", "--plot", "figure", metavar="OUT.svg|png|pdf", help="Draw the figure that it asks about.")
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
    """Show an exercise in a student's version: the question, and on demand hints, solution and figure."""
    from roofdsl.classroom import sheet
    from roofdsl.classroom.data import exercise as load_exercise
    from roofdsl.classroom.student_version import settled
    from roofdsl.classroom.versions import course_key, version_of

    version = settled(load_exercise(name, folder), version_of(student, course_key(key_file), code))
    who = sheet.Reader(student, code)
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
@click.option("--answers", type=click.Path(path_type=Path), help="A file of answers, or a folder with one.")
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

    Exit status 0 where all are right, 1 where one is not.
    """
    from roofdsl.classroom.data import exercise as load_exercise
    from roofdsl.classroom.grading import FILES, check_alone
    from roofdsl.classroom.sheet import told
    from roofdsl.classroom.student_version import fresh_seed
    from roofdsl.classroom.submissions import Submission, Unreadable, read, read_text
    from roofdsl.classroom.versions import course_key, version_of

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
            click.echo(f"compared on random data; --seed {drawn} draws the same again")
    return 0 if result.correct else 1
