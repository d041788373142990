"""From a path to kernels: reading files, checking them, and lowering the kernels in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from roofdsl.lang.check import check
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.parse import MAX_BYTES
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source, Span
from roofdsl.loops.lower import lower
from roofdsl.loops.model import Kernel

READERS: dict[str, Callable[[str, str | None], CheckedFile]] = {}
"""Front ends for files of other languages, by suffix: from a path and the name of a definition, or None, to a file."""


def read_source(path: str | os.PathLike[str]) -> Source:
    """The text of a file. Raises CommandError if it cannot be read, InputError if it is not UTF-8 text."""
    return decode(_read(Path(path)), os.fspath(path))


def decode(data: bytes, name: str) -> Source:
    """Bytes (of standard input, for example) as a source. Raises InputError if they are not UTF-8 text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        source = Source(name, data.decode("utf-16", "replace"))
        message = "this text is in UTF-16, as some Windows programs write it"
        raise InputError(source, [Diagnostic("file-encoding", message, Span(1, 1, 1, 2), "save the file as UTF-8")])
    try:
        text = data.decode("utf-8-sig")
        return Source(name, text if "\n" in text else text.replace("\r", "\n"))  # lines may end in \r alone
    except UnicodeDecodeError as error:
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        before = data[:start].decode("utf-8-sig", "replace")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        message = f"the byte 0x{data[start]:02x} is not part of a UTF-8 text"
        source = Source(name, data.decode("utf-8-sig", "replace"))
        span = Span(line, column, line, column + 1)
        raise InputError(source, [Diagnostic("file-encoding", message, span, "save the file as UTF-8")]) from None


def standard_input() -> Source:
    """The content of standard input, cut off just above the size that a file may have.

    Raises InputError if it is not UTF-8 text, CommandError if standard input is closed.
    """
    if sys.stdin is None:
        raise CommandError("there is no standard input", "give the name of a file")
    return decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>")


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise CommandError(f"`{path}` is a directory, not a .roof file")
    if path.exists() and not path.is_file():
        raise CommandError(f"`{path}` is not a regular file")
    data = read_limited(path, MAX_BYTES, "a .roof file")
    if path.suffix == ".json" and data.lstrip()[:1] in (b"{", b"["):
        raise CommandError(f"`{path}` is JSON, not a .roof file", "stored results are read by `--results FILE.json`")
    return data


def _load_used(path: str) -> str:
    return read_source(path).text


def load_file(path: str | os.PathLike[str] | Source) -> CheckedFile:
    """The checked file of a path or of a text; files that it uses are looked up next to it.

    Raises CommandError if the file cannot be read, InputError with all errors of its text.
    """
    return check(path if isinstance(path, Source) else read_source(path), _load_used)


def kernels(checked: CheckedFile, settings: Mapping[str, int] | None = None) -> dict[str, Kernel]:
    """The kernels that the file itself defines, in order; those it imports if it consists of `use` lines alone.

    `settings` gives numbers to `const` parameters. Raises what `lower` raises.
    """
    names = checked.own_kernels or (() if checked.own else tuple(checked.kernels))
    return {name: lower(checked.kernels[name], settings or {}) for name in names}


def kernel(checked: CheckedFile, name: str | None, settings: Mapping[str, int] | None = None) -> Kernel:
    """The kernel of that name, defined here or imported; without a name, the only one of the file.

    Raises CommandError for an unknown name, and without a name if there are several kernels or none; also what `lower`
    raises.
    """
    if name is None:
        own = checked.own_kernels or (() if checked.own else tuple(checked.kernels))
        if len(own) != 1:
            what = "several kernels" if own else "no kernel"
            help = f"pick one, such as {checked.source.name}:{own[0]} (it has {', '.join(own[:8])})" if own else ""
            raise CommandError(f"`{checked.source.name}` has {what}", help)
        name = own[0]
    if name not in checked.kernels:
        known = ", ".join(list(checked.kernels)[:8])
        help = did_you_mean(name, checked.kernels, f"it has {known}" if known else "")
        raise CommandError(f"`{checked.source.name}` has no kernel `{name}`", help)
    return lower(checked.kernels[name], settings or {})
