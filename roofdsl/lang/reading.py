"""Reading a file that a user names."""

from __future__ import annotations

from pathlib import Path

from roofdsl.lang.diagnostics import CommandError


def read_limited(path: Path, most_bytes: int, what: str) -> bytes:
    """The content of a file. Raises CommandError if it cannot be read, or is larger than `what` may be."""
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a null character in the path
        raise CommandError(f"the path cannot be read: {error}") from None
    if len(data) > most_bytes:
        raise CommandError(f"`{path}` is larger than {what} can be ({most_bytes >> 20} MiB)")
    return data
