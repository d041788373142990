"""Files that users name: read whole up to a size, refused in one sentence otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.reading import read_limited


def test_files_are_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\0" * (1 << 20))
    assert read_limited(path, 1 << 20, "a result") == path.read_bytes()
    path.write_bytes(b"\0" * ((1 << 20) + 1))
    with pytest.raises(CommandError, match=r"a\.json` is larger than a result can be \(1 MiB\)"):
        read_limited(path, 1 << 20, "a result")


@pytest.mark.parametrize(
    ("name", "message"), [("", "cannot be read: Is a directory"), ("no", "No such file"), ("a\0b", "the path cannot")]
)
def test_what_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        read_limited(tmp_path / name, 1, "a result")
