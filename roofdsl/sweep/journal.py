"""The journal of a sweep: one line for every point that was counted, so that an interrupted sweep can continue.

Lines are only appended. Each is a checksum and then JSON. A damaged line is ignored and its point is computed again;
the last lines may be damaged or missing if the machine went down before they were on the disk.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from roofdsl import __version__
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.sweep.single_points import Outcome, Runner, Task

SCHEMA = "roofdsl.sweep-journal/1"


def meaning_of(task: Task) -> str:
    """A digest of what a task means, whatever its files are called; tasks with the same digest have the same row."""
    machine = replace(task.machine, origin="")
    asked = task.kernel if isinstance(task.kernel, Kernel) else (task.kernel.lowered, task.kernel.constants)
    text = repr((__version__, asked, sorted(task.values), machine, task.options))
    return sha256(text.encode()).hexdigest()[:32]


class Journal:
    """The file at `path`. Raises CommandError if that file cannot be read or is not a journal.

    rows: its contents, by meaning; damaged: lines that were ignored; written: points added since.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.damaged, self.written = path, 0, 0
        self.rows: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None
        if path.exists():
            if not path.is_file():
                raise CommandError(f"`{path}` is not a regular file, and a journal must be readable later")
            self._read()

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise CommandError(f"`{self.path}` cannot be read: {error.strerror or error}") from None
        lines = data.split(b"\n")
        if data and _checked(lines[0]) != {"schema": SCHEMA}:
            raise CommandError(f"`{self.path}` is not a journal of a sweep", "name another file with --journal")
        for line in lines[1:]:
            if not line:
                continue
            found = _checked(line)
            if not isinstance(found, dict) or not isinstance(found.get("row"), dict):
                self.damaged += 1
            else:
                self.rows[str(found.get("point"))] = found["row"]

    def append(self, meaning: str, row: dict[str, Any]) -> None:
        """Add one point, and hand it to the operating system at once, which writes it to the disk later. Raises
        CommandError if the file cannot be written.
        """
        try:
            if self._file is None:
                self._file = self._opened()
            self._file.write(_line({"point": meaning, "row": row}))
            self._file.flush()
            self.written += 1
        except OSError as error:
            raise CommandError(f"`{self.path}` cannot be written: {error.strerror or error}") from None

    def _opened(self) -> IO[bytes]:
        file = open(self.path, "ab")  # noqa: SIM115 - closed by `close`
        if file.tell() == 0:
            file.write(_line({"schema": SCHEMA}))
        else:
            file.write(b"\n")  # ends the last line if that was cut short
        return file

    def close(self, *, remove: bool = False) -> None:
        """Close the file; `remove`: delete it, since the sweep is done."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if remove and self.path.exists():
            os.unlink(self.path)


def _line(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32(text), text)


def _checked(line: bytes) -> Any:
    """The contents of a line; None if it is damaged."""
    check, _, text = line.partition(b" ")
    try:
        return json.loads(text) if int(check, 16) == crc32(text) else None
    except ValueError:
        return None


def journaled(runner: Runner, journal: Journal) -> Runner:
    """`runner`, with the rows that the journal already has; every new complete row is written to it. Failures are not,
    nor are rows from which something was left out: a larger budget may find it.
    """

    def run(tasks: Sequence[Task]) -> Iterator[Outcome]:
        meanings = {task.index: meaning_of(task) for task in tasks}
        new = []
        for task in tasks:
            row = journal.rows.get(meanings[task.index])
            if row is None:
                new.append(task)
            else:
                yield Outcome(task.index, row)
        for outcome in runner(new) if new else ():
            if outcome.row is not None and outcome.complete:
                journal.append(meanings[outcome.index], outcome.row)
            yield outcome

    return run
