"""Files that are always whole: either the complete old content or the complete new content."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from roofdsl.lang.diagnostics import CommandError


def write_whole(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Replace the file at `path` by `content` (text in UTF-8, or pieces of it) in one step.

    A reader, or a crash of this process, finds either the old file or the new one. Raises CommandError if the file
    cannot be written.

    The content goes to a temporary file in the same folder, is flushed to disk, and is then renamed (POSIX rename is
    atomic). If `path` is a link, its target is replaced. Anything that is not a regular file, such as /dev/stdout, is
    written to directly.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    data = (p if isinstance(p, bytes) else p.encode("utf-8") for p in pieces)
    if path.exists() and not path.is_file():
        _write_to(path, data)
        return
    path = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise _cannot(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException as error:
        _forget(name)
        if isinstance(error, OSError):
            raise _cannot(path, error) from None
        raise
    _sync_folder(path.parent)


def _write_to(path: Path, data: Iterable[bytes]) -> None:
    """Write to a device or a pipe."""
    try:
        with path.open("wb") as file:
            file.writelines(data)
    except OSError as error:
        raise _cannot(path, error) from None


def check_writable(path: Path) -> None:
    """Check before a long measurement that its file can be written. Raises CommandError if not."""
    folder = path.parent
    if path.is_dir():
        raise CommandError(f"`{path}` is a directory", "name a file")
    if not folder.is_dir():
        raise CommandError(f"`{path}` cannot be written: there is no directory `{folder}`")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"`{path}` cannot be written: nothing can be created in `{folder}`")


def _cannot(path: Path, error: OSError) -> CommandError:
    return CommandError(f"`{path}` cannot be written: {error.strerror or error}")


def _mode(path: Path) -> int:
    """The permissions of the old file; without one, those of any new file (mkstemp would give 0600)."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _forget(name: str) -> None:
    try:
        os.unlink(name)
    except FileNotFoundError:
        return


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk as well; not all file systems support this, but the file itself is whole by then."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)
