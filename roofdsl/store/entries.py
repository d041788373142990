"""Entries of the cache as files: whole or absent, verified by a checksum, limited in number and size.

An entry that is damaged, truncated, unreadable or of another format counts as absent. If nothing can be written,
nothing is kept. Only `clear` raises an error because of what it finds on disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from roofdsl.lang.record import Record

FORMAT = "derivations-1"
"""The name of the folder of all entries; a new layout gets a new name."""

MAGIC = b"roofdsl derivation 1\n"

MOST_BYTES, MOST_ENTRIES = 256 * 2**20, 32_000
"""Limits for the whole cache. The least recently used entries are removed first."""

MOST_BYTES_OF_ENTRY = 4 * 2**20

SHARDS = 16
"""The number of folders that share the limits evenly; a folder is checked whenever it gets an entry."""

STALE_S = 3600.0
"""The age from which a half-written file is considered abandoned by its process."""

_NAME = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"\.[0-9a-f]{64}\.\w+\.part")


def get(root: Path, key: str) -> Any:
    """The JSON value that was put under `key` (a SHA-256 in hexadecimal); None if there is no whole entry."""
    path = _path(root, key)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES_OF_ENTRY + 1)
    except OSError:
        return None
    found = _content(data)
    with suppress(OSError):
        if found is None:
            path.unlink()
        else:
            os.utime(path)  # mark as used now
    return found


def put(root: Path, key: str, content: object) -> bool:
    """Keep `content`, a JSON value, under `key` in one step; False if it is too long or cannot be written."""
    import json
    import tempfile

    try:
        text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError:  # an integer of thousands of digits
        return False
    data = b"".join((MAGIC, _checksum(text), b"\n", text))
    if len(data) > MOST_BYTES_OF_ENTRY:
        return False
    path = _path(root, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{key}.", suffix=".part", dir=path.parent)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            return False
        raise
    _trim(path.parent)
    return True


def _path(root: Path, key: str) -> Path:
    return root / FORMAT / key[0] / key


def _checksum(data: bytes) -> bytes:
    from hashlib import sha256

    return sha256(data).hexdigest().encode("ascii")


def _content(data: bytes) -> Any:
    """The JSON value in an entry's bytes; None if they are not what `put` wrote."""
    import json

    head = len(MAGIC) + 64
    text = data[head + 1 :]
    if len(data) > MOST_BYTES_OF_ENTRY or not data.startswith(MAGIC) or data[head : head + 1] != b"\n":
        return None
    if data[len(MAGIC) : head] != _checksum(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# ---- all of them ----


class Kept(Record):
    """The number of entries and their bytes."""

    entries: int
    bytes: int


def kept(root: Path) -> Kept:
    """The contents of the cache; zero if it cannot be read."""
    found = [size for shard in _shards(root) for _, size, path in _files(shard) if _NAME.fullmatch(path.name)]
    return Kept(len(found), sum(found))


def clear(root: Path) -> Kept:
    """Remove every entry and half-written file, and no other file; returns the number of entries and all bytes removed.
    Raises OSError if a file cannot be removed.
    """
    removed = [0, 0]
    for shard in _shards(root):
        for _, size, path in _files(shard):
            path.unlink(missing_ok=True)
            removed = [removed[0] + bool(_NAME.fullmatch(path.name)), removed[1] + size]
    return Kept(*removed)


def _shards(root: Path) -> Iterator[Path]:
    for digit in "0123456789abcdef":
        yield root / FORMAT / digit


def _files(shard: Path) -> list[tuple[float, int, Path]]:
    """(last use, bytes, path) of the entries and half-written files of a folder; of no other file."""
    found = []
    with suppress(OSError), os.scandir(shard) as listing:
        for each in listing:
            if _NAME.fullmatch(each.name) or _PART.fullmatch(each.name):
                with suppress(OSError):  # another process may just have removed it
                    about = each.stat(follow_symlinks=False)
                    found.append((about.st_mtime, about.st_size, Path(each.path)))
    return found


def _trim(shard: Path) -> None:
    import time

    files = sorted(_files(shard), reverse=True)
    entries = size = 0
    for used, length, path in files:
        half = path.name.startswith(".")
        entries, size = entries + 1, size + length
        too_many = entries > MOST_ENTRIES // SHARDS or size > MOST_BYTES // SHARDS
        if too_many or (half and time.time() - used > STALE_S):
            with suppress(OSError):
                path.unlink()
