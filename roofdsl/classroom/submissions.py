"""Reading what students submit. The files are untrusted: links are not followed, sizes are limited, and nothing that
could block, such as a pipe, is read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from roofdsl.lang.record import Record

MAX_ANSWERS_BYTES = 1 << 20
MAX_ENTRIES = 1000
MOST_MENDED = 40
_LINE = re.compile(r"at line (\d+)")
_VALUE = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=(.*)", re.DOTALL)
ANSWERS = ("answers.toml", "answers.json")


class Unreadable(Exception):
    """Raised for a submission, or a file in it, that cannot be read; the message is for the student."""


class Missing(Record):
    """Takes the place of a missing answer if something else in the submission may be meant for it."""

    text: str


class Submission(Record):
    """Answers by exercise and part. `folder` is where files that answers name are looked for; None: nowhere. outside:
    the names of answers that are in no exercise's table.
    """

    answers: Mapping[str, Mapping[str, Any]]
    folder: Path | None = None
    outside: tuple[str, ...] = ()

    def of(self, exercise: str, wanted: Mapping[str, str]) -> dict[str, Any]:
        """The answers to an exercise. An answer that names a file becomes the file's text, or the Unreadable that says
        why it cannot be read. wanted: the file name ending of each part whose answer may name a file.
        """
        found = dict(self.answers.get(exercise, {}))
        for part, ending in wanted.items():
            name = found.get(part)
            if isinstance(name, str) and name.strip().endswith(ending) and "\n" not in name.strip():
                try:
                    found[part] = self.file(name.strip())
                except Unreadable as problem:
                    found[part] = problem
        return found

    def file(self, name: str) -> str:
        """The text of a file next to the answers. Raises Unreadable."""
        name = name.removeprefix("./")
        if self.folder is None or "/" in name or "\\" in name or name.startswith("."):
            raise Unreadable(f"`{name[:80]}` is not a file next to the answers")
        return read_text(self.folder / name)


def read_text(path: Path, limit: int = MAX_ANSWERS_BYTES) -> str:
    """The text of a regular file of at most `limit` bytes. Raises Unreadable."""
    name = path.name[:80]
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        link = isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.EMLINK)
        raise Unreadable(f"`{name}` {'is a link' if link else 'cannot be read'}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"`{name}` is not a regular file")
        if status.st_size > limit:
            raise Unreadable(f"`{name}` has {status.st_size:,} bytes; the limit is {limit:,}")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"`{name}` changes while it is read")
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")  # a BOM, as editors on Windows may write
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"`{name}` is not UTF-8 text") from None


def read(path: Path) -> Submission:
    """The submission at `path`, a folder or one file of answers. Raises Unreadable."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        raise Unreadable("there is nothing to read") from None
    if stat.S_ISLNK(mode):
        raise Unreadable("it is a link, and links are not followed")
    if stat.S_ISDIR(mode):
        return _folder(path)
    if not stat.S_ISREG(mode):
        raise Unreadable("it is neither a regular file nor a folder")
    if path.suffix not in (".toml", ".json"):
        raise Unreadable("submit a folder, or answers in TOML or JSON; archives and documents are not opened")
    document = _document(path)
    # Answers outside tables belong to the exercise that the file is named after.
    alone = {n: v for n, v in document.items() if not isinstance(v, dict)}
    return Submission({**_by_exercise(document), **({path.stem: alone} if alone else {})}, path.parent)


def _folder(path: Path) -> Submission:
    names = _names(path)
    inner = [n for n in names if not n.startswith((".", "_"))]
    if len(inner) == 1 and stat.S_ISDIR(os.lstat(path / inner[0]).st_mode):  # a folder packed inside another one
        path = path / inner[0]
        names = _names(path)
    answers: dict[str, Mapping[str, Any]] = {}
    outside: list[str] = []
    for name in names:
        if name.casefold() in ANSWERS:
            document = _document(path / name)
            outside += [n for n, v in document.items() if not isinstance(v, dict)]
            _take(answers, _by_exercise(document))
    for name in names:
        stem, _, ending = name.rpartition(".")
        if ending in ("toml", "json") and name.casefold() not in ANSWERS and "." not in stem:
            try:
                document = _document(path / name)
            except Unreadable:
                if ending == "toml":
                    raise
                continue  # a result file of another kind, which an answer may name
            if document.get("schema") is None:
                alone = {n: v for n, v in document.items() if not isinstance(v, dict)}
                _take(answers, {**({stem: alone} if alone else {}), **_by_exercise(document)})
    if not answers and not outside:
        raise Unreadable("it contains no answers: no answers.toml, answers.json or EXERCISE.toml")
    return Submission(answers, path, tuple(outside))


def _take(answers: dict[str, Mapping[str, Any]], more: Mapping[str, Mapping[str, Any]]) -> None:
    for exercise, parts in more.items():
        answers[exercise] = {**answers.get(exercise, {}), **parts}


def _names(path: Path) -> list[str]:
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > MAX_ENTRIES:
                    raise Unreadable(f"the folder has more than {MAX_ENTRIES} files")
    except OSError:
        raise Unreadable("the folder cannot be read") from None
    return sorted(found)


def _document(path: Path) -> dict[str, Any]:
    text = read_text(path)
    if not text.strip():
        raise Unreadable(f"`{path.name[:80]}` is empty")
    try:
        found = _toml(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        where = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(f"`{path.name[:80]}` is not valid {path.suffix[1:].upper()}: {where[:200]}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"`{path.name[:80]}` is not a table of answers")
    return found


def _toml(text: str) -> dict[str, Any]:
    """A TOML document. A value without quotes is taken literally, so that one slip does not cost the other answers.

    Raises ValueError and RecursionError as tomllib does.
    """
    lines = text.split("\n")
    mended: set[int] = set()
    while True:
        try:
            return tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as error:
            place = _LINE.search(str(error))
            number = int(place[1]) - 1 if place else len(lines)
            value = _VALUE.fullmatch(lines[number]) if number < len(lines) else None
            if value is None or number in mended or len(mended) == MOST_MENDED:
                raise
            mended.add(number)
            plain = value[2].partition(" #")[0].strip().strip("\"'“”„‘’«»")
            lines[number] = f"{value[1]} = {json.dumps(plain)}"


def _by_exercise(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: dict(parts) for name, parts in document.items() if isinstance(parts, dict)}


def entries(folder: Path) -> Iterator[Path]:
    """The submissions in a folder, by name; hidden ones are left out."""
    with os.scandir(folder) as found:
        names = sorted(e.name for e in found if not e.name.startswith("."))
    return (folder / name for name in names)
