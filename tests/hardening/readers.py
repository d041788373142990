"""What every reader promises, whatever bytes it is given: it reads them, or refuses them in its own words.

Shared by the random tests of CI and by the coverage-guided ones (`python -m tests.hardening.guided`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from roofdsl.classroom import exercise_file as exercises
from roofdsl.classroom import submissions
from roofdsl.classroom.answer_language import names_in, parse_condition, show
from roofdsl.classroom.answer_language import parse as parse_formula
from roofdsl.classroom.formula_errors import FormulaError
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.lang.units import UnitError, parse_size, parse_time
from roofdsl.loops.load import load_file
from roofdsl.measure.measurement import parse as parse_results
from roofdsl.profiler.measured_points import parse_points
from roofdsl.profiler.tables import parse as parse_table
from roofdsl.store import codec, entries
from roofdsl.sweep.ranges import parse_ranges
from tests.cli.conftest import ROOT
from tests.lang import test_fuzz as front_end
from tests.measure.examples import EXAMPLE

Reader = Callable[[bytes], None]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def kernels(data: bytes) -> None:
    """A `.roof` file, through checks and models of its kernels and programs."""
    front_end.run(data)


def layout(data: bytes) -> None:
    """What `fmt` writes means the same, and is laid out already."""
    front_end.run_format(data)


def machines(data: bytes) -> None:
    try:
        load_file(Source("m.roof", _text(data)))
    except InputError as refused:
        assert refused.diagnostics and "m.roof:" in str(refused)
    except CommandError as refused:  # `use` of a file that is not there
        assert b"use" in data or refused.message


def quantities(data: bytes) -> None:
    """Sizes, times and ranges of the command line."""
    text = _text(data)
    for parse in (parse_size, parse_time):
        try:
            assert parse(text) >= 0
        except UnitError as refused:
            assert refused.code
    try:
        assert all(v > 0 for values in parse_ranges(text).values() for v in values)
    except CommandError as refused:
        assert refused.message


def results(data: bytes) -> None:
    """Result files of `measure`."""
    try:
        parse_results(Source("r.json", _text(data)))
    except InputError as refused:
        assert refused.diagnostics and "r.json:" in str(refused)


def points(data: bytes) -> None:
    """Documents of measured points."""
    try:
        parse_points(Source("p.json", _text(data)))
    except InputError as refused:
        assert refused.diagnostics and "p.json:" in str(refused)


def reports(data: bytes) -> None:
    """Profilers' CSV."""
    try:
        parse_table(Source("r.csv", _text(data)))
    except InputError as refused:
        assert refused.diagnostics and "r.csv:" in str(refused)


def answers(data: bytes) -> None:
    """A student's formula: what is shown of it can be read, and shown again it is the same."""
    text = _text(data)
    for parse in (lambda t: parse_formula(t, ("n", "b")), lambda t: parse_condition(t, ("n", "b"))):
        try:
            found = parse(text)
        except FormulaError as refused:
            assert str(refused)
            continue
        assert names_in(found) <= {"n", "b"}
        try:
            shown = show(parse(show(found)))
            assert show(parse(shown)) == shown
        except FormulaError as refused:  # parentheses that show what a long row of signs means
            assert "deep" in str(refused) or "characters" in str(refused)


def _in_a_file(data: bytes, suffix: str, read: Callable[[Path], object], refusals: tuple[type[Exception], ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"answers{suffix}"
        path.write_bytes(data)
        try:
            read(path)
        except refusals as refused:
            assert str(refused) or getattr(refused, "message", "")


def handed_in(data: bytes) -> None:
    """Submissions in TOML and in JSON."""
    for suffix in (".toml", ".json"):
        _in_a_file(data, suffix, submissions.read, (submissions.Unreadable,))


def exercise_files(data: bytes) -> None:
    exercises.load.cache_clear()
    _in_a_file(data, ".toml", exercises.load, (CommandError,))


def kept_entries(data: bytes) -> None:
    """The cache of derivations: the bytes as a file, and as the content of one with a good checksum."""
    assert entries._content(data) is None or data.startswith(entries.MAGIC)
    checksum = hashlib.sha256(data).hexdigest().encode()
    content = entries._content(b"".join((entries.MAGIC, checksum, b"\n", data)))
    try:
        codec.read(content, {"kernel": None})
    except codec.Damaged as refused:
        assert str(refused)


READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "kernels": (kernels, ("models/kernels/*.roof", "tests/lang/bad/*.roof")),
    "layout": (layout, ("models/kernels/*.roof", "tests/lang/good/*.roof")),
    "machines": (machines, ("models/machines/*.roof",)),
    "quantities": (quantities, ()),
    "results": (results, ()),
    "points": (points, ("models/cited/*.json",)),
    "reports": (reports, ("tests/profiler/data/*.csv",)),
    "answers": (answers, ()),
    "submissions": (handed_in, ("models/exercises/*.toml",)),
    "exercises": (exercise_files, ("models/exercises/*.toml",)),
    "cache": (kept_entries, ()),
}
"""Readers by name, each with files that coverage-guided fuzzing begins with."""

SHORT = {
    "results": (json.dumps(EXAMPLE.to_json()).encode(),),
    "quantities": (b"32 KiB", b"1.5us", b"n=1..4096:*2,b=8,16", b"n=8..64:+8"),
    "answers": (b"2*n**2 + 3*n/4 - floor(n/b)", b"min(n, 8) >= 2 n", b"n^2", b"sqrt(n)*(b-1)"),
    "cache": (
        b'{"classes":[["roofdsl.sets.quasi","Quasi","terms"]],"nodes":[["tuple"],["record",0,[0]]],"root":[1]}',
        b'{"classes":[],"nodes":[["ratio",1,3],["dict","a",[0]],["known","kernel"]],"root":[1]}',
    ),
}


def seeds(name: str) -> list[bytes]:
    """What coverage-guided fuzzing of a reader begins with."""
    found = [path.read_bytes() for pattern in READERS[name][1] for path in sorted(ROOT.glob(pattern))]
    return [*found, *SHORT.get(name, ())]
