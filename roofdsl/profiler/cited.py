"""Numbers from documents, kept as citations: drawn as the authors' numbers, never compared with a model."""

from __future__ import annotations

from pathlib import Path

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.machine.find import models_folder
from roofdsl.profiler.measured_points import Points, load_points

_LOOKED_AT = 4096  # in bytes; the schema is the first field in the file


def cited_files() -> dict[str, Path]:
    """The files under models/cited by name, without the suffix."""
    return {p.stem: p for p in sorted((models_folder() / "cited").glob("*.json"))}


def holds_points(text: str) -> bool:
    """Whether `text` names a document of points, even a damaged one, or is no file and can only name a citation."""
    if "/" not in text and not text.endswith(".json") and not Path(text).is_file():
        return True
    try:
        with Path(text).open("rb") as file:
            return b'"roofdsl.points/' in file.read(_LOOKED_AT)
    except (OSError, ValueError):
        return False  # the reader of the file reports the problem


def points_named(text: str) -> Points:
    """The points that a `--measured-file` argument refers to: a document of points, or the name of a shipped citation.

    Raises CommandError if there is neither, InputError for a damaged document.
    """
    if "/" in text or text.endswith(".json") or Path(text).is_file():
        return load_points(Path(text))
    files = cited_files()
    if text not in files:
        help = did_you_mean(text, files, f"citations are {', '.join(files)}; a file ends in .json")
        raise CommandError(f"there is no file or citation named `{text}`", help)
    return load_points(files[text])
