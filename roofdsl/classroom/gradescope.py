"""What Gradescope reads and runs: `results.json`, and the zip of an autograder.

The layout is that of Gradescope's documentation: the zip is unpacked to /autograder/source, setup.sh is run once when
the image is built, /autograder/run_autograder for every submission in /autograder/submission; it writes
/autograder/results/results.json.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import roofdsl
from roofdsl.classroom.exercise_file import Exercise
from roofdsl.classroom.grade_submissions import Grade, Judging, grade_all, nothing
from roofdsl.classroom.isolate import Limits
from roofdsl.classroom.submissions import Unreadable, read_text
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import models_folder
from roofdsl.store.atomic import write_whole

_EPOCH = (2026, 1, 1, 0, 0, 0)


def results(grade: Grade, titles: dict[str, str], seed: int) -> dict[str, Any]:
    """The results document of one submission, with a test for every part. seed: the seed of the random data on which
    kernels were compared."""
    tests = [
        {
            "name": f"{titles.get(r.exercise, r.exercise)}: {p.id}",
            "number": f"{k}.{j}",
            "score": p.score,
            "max_score": p.max_score,
            "status": "passed" if p.correct else "failed",
            "output": p.message,
            "visibility": "visible",
        }
        for k, r in enumerate(grade.results, 1)
        for j, p in enumerate(r.parts, 1)
    ]
    output = f"{grade.score:g} of {grade.max_score} points."
    if grade.problem:
        output = f"Nothing of this submission could be graded: {grade.problem}."
    output += "".join(f"\nNote: {note}{'' if note.endswith('?') else '.'}" for note in grade.notes)
    output += f"\nRandom data of kernels: seed {seed}."
    return {"score": grade.score, "output": output, "output_format": "text", "visibility": "visible", "tests": tests}


def student_of(metadata: Path) -> str:
    """The student, from Gradescope's submission_metadata.json: the e-mail address in lower case.

    Raises CommandError if the file does not name one.
    """
    try:
        document = json.loads(read_text(metadata))
        (user, *_) = document["users"]
        return str(user["email"]).strip().lower()
    except (Unreadable, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(f"`{metadata}` does not name the student ({error})", "give --student") from None


def grade_one(
    submission: Path,
    exercises: Sequence[Exercise],
    student: str | None,
    metadata: Path | None,
    *,
    limits: Limits,
    judging: Judging,
) -> Grade:
    """The grade of one submission; zero points and the reason if the submission, its author or an exercise cannot be
    read.
    """
    try:
        who = student if student is not None else ""
        if student is None and metadata is not None:
            who = student_of(metadata)
        return grade_all([(who, submission)], exercises, jobs=1, limits=limits, judging=judging)[0]
    except CommandError as error:
        return nothing("", exercises, error.message)


# ---- the zip ----

SETUP = """\
#!/usr/bin/env bash
# Run once by Gradescope while it builds the image: a Python of its own with what roofdsl needs.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
python=""
for candidate in __PYTHON__ python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" > /dev/null \\
        && "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then
        python="$candidate"
        break
    fi
done
if [ -z "$python" ]; then
    apt-get update && apt-get install -y python3.11 python3.11-venv
    python=python3.11
fi
if ! "$python" -m venv "$root/venv"; then
    apt-get update && apt-get install -y "$python-venv"
    "$python" -m venv "$root/venv"
fi
"$root/venv/bin/pip" install --quiet -r "$root/source/requirements.txt"
"$root/venv/bin/python" -m compileall -q "$root/source/roofdsl"
# The simulator's loops are compiled now, and kept, instead of in every submission.
cd "$root/source"
"$root/venv/bin/python" -m roofdsl derive gemv --set n=64 --cache 1KiB > /dev/null
"$root/venv/bin/python" -m roofdsl simulate gemv --set n=64 --cache 1KiB --line 64B --ways 4 > /dev/null
"""

RUN = """\
#!/usr/bin/env bash
# Run by Gradescope for every submission. Whatever happens, results.json is there afterwards.
root="${AUTOGRADER_ROOT:-/autograder}"
python="${AUTOGRADER_PYTHON:-$root/venv/bin/python}"
mkdir -p "$root/results"
cat > "$root/results/results.json" << 'END'
{"score": 0, "output": "The autograder stopped before it could grade this submission.", "tests": []}
END
cd "$root/source"
"$python" -m roofdsl exercise grade "$root/submission" --gradescope "$root/results/results.json" \\
    --metadata "$root/submission_metadata.json" --only "$(cat "$root/source/exercises.txt")" __OPTIONS__
exit 0
"""


def write_zip(path: Path, exercises: Sequence[str], folder: Path | None, key: str = "") -> int:
    """Writes the zip of an autograder for these exercises, and returns the number of its files.

    folder: exercises of the instructor's own, which are packed too. key: the course key, if there is one. Raises
    CommandError where it cannot be written.
    """
    options = ["--folder own"] if folder is not None else []
    options += ["--key-file course.key"] if key else []
    texts = {
        "setup.sh": SETUP.replace("__PYTHON__", f"python3.{sys.version_info.minor}"),
        "run_autograder": RUN.replace("__OPTIONS__", " ".join(options)).replace(" \n", "\n"),
        "exercises.txt": ",".join(exercises) + "\n",
        "requirements.txt": "".join(f"{line}\n" for line in requirements()),
        **({"course.key": f"{key}\n"} if key else {}),
    }
    sources = dict(_sources(folder))
    packed = io.BytesIO()  # written at the end in one step: whatever interrupts this leaves no half of a zip
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            _add(archive, name, text.encode("utf-8"), executable=name in ("setup.sh", "run_autograder"))
        for name, file in sources.items():
            try:
                _add(archive, name, file.read_bytes(), executable=False)
            except OSError as error:
                raise CommandError(f"`{file}` cannot be read: {error.strerror or error}") from None
    write_whole(path, packed.getvalue())
    return len(texts) + len(sources)


def requirements() -> list[str]:
    """The packages that roofdsl needs, in the versions installed here, so that the autograder computes the same.

    Raises CommandError if roofdsl's metadata are not there.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return [_pinned(line) for line in requires("roofdsl") or [] if "extra ==" not in line]
    except PackageNotFoundError:
        raise CommandError("roofdsl is not installed, so its requirements are unknown", "pip install it") from None


def _pinned(requirement: str) -> str:
    """A requirement with the installed version, without its local label; unchanged if the package is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    stated, semicolon, marker = requirement.partition(";")
    named = re.match(r"([\w.-]+)(\[.*?\])?", stated)
    assert named is not None, requirement
    try:
        return f"{named[0]}=={version(named[1]).partition('+')[0]}{semicolon}{marker}"
    except PackageNotFoundError:
        return requirement


def _sources(folder: Path | None) -> Iterator[tuple[str, Path]]:
    package = Path(roofdsl.__file__).parent
    for file in sorted(package.rglob("*")):
        if file.is_file() and file.suffix in (".py", ".lark", ".typed") and "_models" not in file.parts:
            yield f"roofdsl/{file.relative_to(package).as_posix()}", file
    models = models_folder()
    for file in sorted(models.rglob("*")):
        if file.is_file() and file.suffix in (".roof", ".toml", ".json"):
            yield f"models/{file.relative_to(models).as_posix()}", file
    if folder is not None:
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.suffix in (".roof", ".toml"):
                yield f"own/{file.name}", file


def _add(archive: zipfile.ZipFile, name: str, data: bytes, *, executable: bool) -> None:
    """Adds a file without dates, so that the same input gives the same zip."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    archive.writestr(info, data)
