"""Files of the cache: whole or absent, whatever happens to them and however many processes write."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofdsl.lang.cache_folder import folder
from roofdsl.store import entries

KEY = "ab" * 32
CONTENT = {"meaning": "a kernel", "result": {"root": 12345, "nodes": [["tuple", 1]], "classes": []}}


def file_of(root: Path, key: str = KEY) -> Path:
    (found,) = root.rglob(key)
    return found


def test_what_was_put_is_got(tmp_path: Path) -> None:
    assert entries.get(tmp_path, KEY) is None
    assert entries.put(tmp_path, KEY, CONTENT)
    assert entries.get(tmp_path, KEY) == CONTENT
    assert entries.kept(tmp_path) == entries.Kept(1, file_of(tmp_path).stat().st_size)
    assert entries.put(tmp_path, KEY, 7)
    assert entries.get(tmp_path, KEY) == 7


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_damaged_entry_is_absent_and_away(tmp_path: Path, data: st.DataObject) -> None:
    entries.put(tmp_path, KEY, CONTENT)
    path = file_of(tmp_path)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1), "at")
    kind = data.draw(st.sampled_from(["another byte", "cut", "more", "twice", "gone"]), "kind")
    other = data.draw(st.integers(1, 255), "other")
    path.write_bytes(
        {
            "another byte": whole[:at] + bytes([whole[at] ^ other]) + whole[at + 1 :],
            "cut": whole[:at],
            "more": whole + bytes([other]),
            "twice": whole + whole,
            "gone": whole[:at] + whole[at + 1 :],
        }[kind]
    )
    assert entries.get(tmp_path, KEY) is None
    assert not path.exists()
    entries.put(tmp_path, KEY, CONTENT)
    assert entries.get(tmp_path, KEY) == CONTENT


def test_what_is_too_long_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not entries.put(tmp_path, KEY, 10**5000)  # json reads no such number
    monkeypatch.setattr(entries, "MOST_BYTES_OF_ENTRY", 1000)
    assert not entries.put(tmp_path, KEY, "x" * 1000)
    assert entries.put(tmp_path, KEY, "x" * 500)
    assert list(tmp_path.rglob(".*.part")) == []
    monkeypatch.setattr(entries, "MOST_BYTES_OF_ENTRY", 400)
    assert entries.get(tmp_path, KEY) is None


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_BYTES", 16 * 3000)
    keys = [f"a{k:063x}" for k in range(4)]
    for age, key in zip((50, 40, 30), keys, strict=False):
        entries.put(tmp_path, key, "x" * 850)
        os.utime(file_of(tmp_path, key), (time.time() - age,) * 2)
    assert entries.get(tmp_path, keys[0]) is not None  # used just now
    entries.put(tmp_path, keys[3], "x" * 850)
    assert [entries.get(tmp_path, k) is not None for k in keys] == [True, False, True, True]
    monkeypatch.setattr(entries, "MOST_ENTRIES", 16 * 2)
    entries.put(tmp_path, keys[1], "x")
    assert entries.kept(tmp_path).entries == 2


def test_only_entries_are_cleared_or_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries.put(tmp_path, KEY, CONTENT)
    shard = file_of(tmp_path).parent
    mine = [tmp_path / "thesis.tex", shard / "notes.txt"]
    for path in mine:
        path.write_text("mine")
        os.utime(path, (0, 0))
    half = shard / f".{KEY}.abc_1.part"
    half.write_text("half")
    os.utime(half, (0, 0))
    monkeypatch.setattr(entries, "MOST_BYTES", 0)
    entries.put(tmp_path, KEY[:-1] + "c", CONTENT)
    assert entries.kept(tmp_path).entries == 0
    assert not half.exists()
    monkeypatch.undo()
    entries.put(tmp_path, KEY, CONTENT)
    assert entries.clear(tmp_path).entries == 1
    assert [path.read_text() for path in mine] == ["mine", "mine"]
    assert entries.get(tmp_path, KEY) is None


@pytest.mark.skipif(os.name == "nt", reason="folders and files of another kind")
def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for root in (in_the_way, tmp_path / "no" / ("x" * 300), Path("/proc/roofdsl"), Path("/dev/full")):
        assert not entries.put(root, KEY, CONTENT)
        assert entries.get(root, KEY) is None
        assert entries.kept(root) == entries.Kept(0, 0)


def test_a_full_disk_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not entries.put(tmp_path, KEY, CONTENT)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_an_interrupt_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        entries.put(tmp_path, KEY, CONTENT)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


RACE = """
import sys
from pathlib import Path
from roofdsl.store import entries
root, own = Path(sys.argv[1]), int(sys.argv[2])
entries.MOST_ENTRIES = 16 * 3
for k in range(300):
    key = f"a{k % 5:063x}"
    entries.put(root, key, [k % 5] * 50)
    found = entries.get(root, f"a{(k * own) % 5:063x}")
    assert found is None or found == [(k * own) % 5] * 50, found
"""


def test_two_processes_at_once_never_see_half_an_entry(tmp_path: Path) -> None:
    racing = [subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path), str(own)]) for own in (2, 3)]
    assert [p.wait(60) for p in racing] == [0, 0]
    assert entries.kept(tmp_path).entries <= 4  # both may have looked before the other was done
    assert list(tmp_path.rglob(".*.part")) == []


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/home/a"}, "/home/a/.cache/roofdsl"),
        ("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "/var/c"}, "/var/c/roofdsl"),
        ("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, "/home/a/.cache/roofdsl"),
        ("darwin", {"HOME": "/Users/a", "XDG_CACHE_HOME": "/var/c"}, "/Users/a/Library/Caches/roofdsl"),
        ("win32", {"LOCALAPPDATA": "/Users/a/AppData/Local"}, "/Users/a/AppData/Local/roofdsl/Cache"),
        ("win32", {}, None),
        ("linux", {"HOME": "/home/a", "ROOFDSL_CACHE_DIR": "/tmp/x"}, "/tmp/x"),
        ("win32", {"ROOFDSL_CACHE_DIR": "/tmp/x"}, "/tmp/x"),
    ],
)
def test_the_platforms_own_folder(platform: str, environment: dict[str, str], expected: str | None) -> None:
    found = folder(environment, platform)
    assert (None if found is None else found.as_posix()) == expected


def test_no_other_layout_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries.put(tmp_path, KEY, CONTENT)
    change: Callable[[str, object], None] = lambda name, value: monkeypatch.setattr(entries, name, value)  # noqa: E731
    change("FORMAT", "derivations-2")
    assert entries.get(tmp_path, KEY) is None
