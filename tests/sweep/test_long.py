"""Sweeps of millions of points: what they say is what short ones say, and their memory does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.plot.sweep_thin import MOST_PLACES, MOST_STEPS, thinned
from roofdsl.predict.options import Options
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.program import swept_program
from roofdsl.sweep.ranges import parse_ranges
from roofdsl.sweep.run import Sweep, sweep
from roofdsl.sweep.table import LongTable, Table, best, keys_of, pareto
from roofdsl.tell.sweep import views_of
from roofdsl.tell.sweep_files import csv_pieces, json_pieces, plain, to_json, write_table
from tests.cli.conftest import ROOT
from tests.sweep.machines import machine
from tests.sweep.test_equal import written
from tests.sweep.test_programs import file

MOST_BYTES = 500 * 10**6

CASES: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "closed": ("lstm_add_bias", "bare", "batch=8..64:+8,hidden=1..5", ()),
    "counted too": ("gemv", "three", "n=60..69,700", (1 << 18, 1 << 20)),
    "tiles": ("minplus_blocked", "bare", "n=1..14,b=1,2,3,4", ()),
    "beyond int64": ("matmul", "bare", "n=3,5,262144,7,2147483648,9,11", ()),
}


def of_case(name: str) -> Sweep:
    kernel, on, ranges, caches = CASES[name]
    return sweep([Variant(written(kernel), {})], parse_ranges(ranges), [machine(on)], Options(), caches=caches)


def in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven points at a time, of which no table is kept."""
    monkeypatch.setattr("roofdsl.sweep.grid.WINDOW", 7)
    monkeypatch.setattr("roofdsl.sweep.run.MOST_KEPT", 0)


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", CASES)
def test_a_long_table_holds_the_same(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows, warnings, text and what is best: in windows as in one."""
    short = of_case(name)
    in_windows(monkeypatch)
    long = of_case(name)
    assert isinstance(long.table, LongTable) and not isinstance(short.table, LongTable)
    assert len(long.table.lengths) > 1 or name == "beyond int64"
    rows = list(short.table.rows())
    assert long.table.names == short.table.names and len(long.table) == len(rows)
    how = [row["how"] for row in rows]
    assert [{**row, "how": h} for row, h in zip(long.table.rows(), how, strict=True)] == rows
    assert [long.table.row(k) for k in range(0, len(rows), 5)] == list(long.table.at(range(0, len(rows), 5)).rows())
    assert (long.left_out, long.warnings, long.failures) == (short.left_out, short.warnings, short.failures)
    for per in ((), ("machine",), short.table.names[1:2]):
        assert best(long.table, "time_s", per) == best(short.table, "time_s", per)
        for pair in (("time_s", "work_flops"), ("time_s", "intensity"), ("intensity", "work_flops")):
            assert pareto(long.table, *pair, per) == pareto(short.table, *pair, per)
    if all(row["how"] == other for row, other in zip(rows, long.table.cells("how"), strict=True)):
        assert "".join(csv_pieces(long.table)) == "".join(csv_pieces(short.table))
    for ending in ("csv", "json", "parquet") if name != "beyond int64" else ("csv", "json"):
        if ending == "parquet":
            pytest.importorskip("pyarrow")
        write_table(tmp_path / f"long.{ending}", long)
        if ending == "parquet":
            from pyarrow import parquet

            assert parquet.read_table(tmp_path / "long.parquet").column("time_s").to_pylist() == long.table.cells(
                "time_s"
            )


@pytest.mark.thorough
def test_json_text_is_jsons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in pieces, it is what json.dumps writes of the whole."""
    in_windows(monkeypatch)
    found = of_case("counted too")
    table = found.table
    document = to_json(found, 'a "kernel"', views_of(table, ("flops_per_s", "time_s", ("DRAM_bytes",)), ()))
    whole = {**document, "columns": {n: table.cells(n) for n in table.names}}
    text = "".join(json_pieces(document, table, 2))
    assert text == json.dumps(whole, indent=2, ensure_ascii=False)
    assert json.loads(text)["best"] == [table.row(k) for k in best(table, "flops_per_s")]
    short = {**plain(table), "columns": whole["columns"]}
    assert "".join(json_pieces(plain(table), table)) == json.dumps(short)


def test_programs_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[dict[str, Any]]:
        both = swept_program(file("own"), "both", {})
        ranges = {"n": range(4, 40, 4), "steps": (1, 3)}
        return list(sweep([Variant(both, {})], ranges, [machine("bare")], Options()).table.rows())

    whole = found()
    in_windows(monkeypatch)
    assert found() == whole


# ---- ranges ----


def test_a_range_of_millions_takes_no_memory() -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        found = parse_ranges("n=1..9000000")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert found["n"] == range(1, 9_000_001)


@pytest.mark.parametrize("text", ["n=3,1..9,20..12000:+4,5,7..19,24", "n=1..20000,5,20001,20001", "n=64..9000:*2,1..9"])
def test_listed_ranges_have_each_value_once(text: str) -> None:
    values: list[int] = []
    for part in text.removeprefix("n=").split(","):
        values += parse_ranges(f"n={part}")["n"]
    assert list(parse_ranges(text)["n"]) == list(dict.fromkeys(values))


# ---- figures ----


def long_table(columns: Mapping[str, Any], words: Mapping[str, Sequence[str]], each: int) -> LongTable:
    whole = Table(columns, words)
    lengths = [min(each, len(whole) - k) for k in range(0, len(whole), each)]
    return LongTable(
        whole.names, words, lengths, lambda k: whole.at(range(k * each, k * each + lengths[k]))
    )  # fmt: skip


def test_a_thinned_curve_keeps_its_peaks() -> None:
    """Of 60,000 points a few thousand are left; in each part of the axis, for each machine, the extremes are there."""
    rng = np.random.default_rng(3)
    n, on = np.tile(np.arange(1, 30_001), 2), np.repeat(np.array([0, 1], dtype=np.int16), 30_000)
    value = rng.random(60_000)
    value[rng.integers(0, 60_000, 500)] = np.nan
    table = long_table({"machine": on, "n": n, "time_s": value}, {"machine": ("one", "two")}, 7_001)
    short, over = thinned(table, "time_s", keys_of(table), list)
    assert over == ["n"] and len(short) <= 2 * (2 * MOST_PLACES + 1) and not isinstance(short, LongTable)
    place = np.minimum(np.log(n) / np.log(30_000) * MOST_PLACES, MOST_PLACES - 1).astype(int) + MOST_PLACES * on
    kept = {
        (int(m), int(k)): v for m, k, v in zip(*(short.columns[c] for c in ("machine", "n", "time_s")), strict=True)
    }
    for each in np.unique(place):
        own = np.flatnonzero((place == each) & ~np.isnan(value))
        for k in (own[np.argmin(value[own])], own[np.argmax(value[own])]) if len(own) else ():
            assert kept[int(on[k]), int(n[k])] == value[k]


def test_a_thinned_map_is_even() -> None:
    m, n = 3 * MOST_STEPS, 40
    columns = {"n": np.repeat(np.arange(1, m + 1), n), "b": np.tile(np.arange(1, n + 1), m)}
    columns["time_s"] = columns["n"] * 100.0 + columns["b"]
    short, over = thinned(long_table(columns, {}, 1000), "time_s", ["n", "b"], list)
    assert over == ["n", "b"]
    assert sorted(set(short.columns["n"].tolist())) == list(range(1, m + 1, 3)) and len(short) == MOST_STEPS * n
    assert (short.columns["time_s"] == short.columns["n"] * 100.0 + short.columns["b"]).all()


# ---- memory ----


PEAK = """
import sys
from roofdsl.cli.main import run
status = run(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of a process")
@pytest.mark.parametrize(("share", "output"), [(1, ""), (8, "t.csv"), (8, "t.json")])
def test_millions_of_points(share: int, output: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """They stay below 500 MB and end, printed or written; ten million with --long-points 10000000."""
    points = request.config.getoption("--long-points") // share
    arguments = ["sweep", "gemv", "--machine", "v100_textbook", "--set", f"n=1..{points}"]
    out = ["-o", str(tmp_path / output)] if output else []
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments, *out],
        check=False,
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=1200,
    )
    assert done.returncode == 0
    assert int(done.stderr.splitlines()[-1]) * 1024 < MOST_BYTES
    if not output:
        assert f"{points:,} points, {points:,} by closed forms" in done.stdout
    elif output.endswith("csv"):
        assert (tmp_path / output).read_bytes().count(b"\n") == points + 1
    else:
        assert json.loads((tmp_path / output).read_text())["columns"]["n"] == list(range(1, points + 1))
