"""The students who submitted, from the names in a folder: everybody is graded, whatever the names are."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence
from pathlib import Path

from roofdsl.classroom.submissions import entries
from roofdsl.lang.record import Record

RESERVED = ("grades.csv", "summary.csv")
"""The names of the files with the results of a class, which lie next to the folders of the students."""

LONGEST_NAME = 180
"""The maximum length of a file name in bytes: file systems allow 255, and a hash and an ending are added."""


class Entry(Record):
    """One submission. student: whose version it answers; name: what the results are called, unlike any other.

    note: what is odd about it, for the instructor.
    """

    student: str
    name: str
    path: Path
    note: str = ""


def everyone(folder: Path) -> list[Entry]:
    """The submissions in a folder, by name. If two name the same student, both are listed, each with a note."""
    paths = list(entries(folder))
    students = [path.name if _is_folder(path) else _without_ending(path) for path in paths]
    found = []
    for student, path in zip(students, paths, strict=True):
        same = [p.name for s, p in zip(students, paths, strict=True) if s == student]
        if len(same) == 1:
            found.append(Entry(student, student, path))
        else:
            note = f"{len(same)} submissions are from this student ({', '.join(same)}); each is graded separately"
            found.append(Entry(student, path.name, path, note))
    return found


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _without_ending(path: Path) -> str:
    return path.stem if path.suffix in (".toml", ".json") else path.name


def file_names(names: Sequence[str]) -> list[str]:
    """A file name for each name. No two are the same on any file system, and none is in RESERVED."""
    taken = set(RESERVED)
    found = []
    for name in names:
        plain = safe(name)
        if plain.casefold() in taken:
            plain = f"{plain}-{_hash(name)}"
        taken.add(plain.casefold())
        found.append(plain)
    return found


def safe(name: str) -> str:
    """A name that is safe as a file name and on a terminal; a hash distinguishes names that had to be changed."""
    plain = "".join(c if c.isalnum() or c in "@._+-= " else "_" for c in name)
    plain = plain.encode("utf-8")[:LONGEST_NAME].decode("utf-8", "ignore")
    return plain if plain == name else f"{plain}-{_hash(name)}"


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
