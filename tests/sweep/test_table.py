"""The best, the Pareto front and the groups against the definitions; what figures show."""

from __future__ import annotations

import random
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.sweep_map import Curves, Map, draw_sweep_figure, sweep_content
from roofdsl.sweep.point_block import put
from roofdsl.sweep.run import Sweep
from roofdsl.sweep.table import Table, best, groups, pareto
from roofdsl.tell.sweep_files import write_table


def _table(count: int, seed: int = 1) -> Table:
    rng = random.Random(seed)
    time_s = np.array([rng.choice((1.0, 2.0, 2.5, 3.0, float("nan"))) for _ in range(count)])
    moved = np.array([rng.choice((-1, 5, 6, 7, 8)) for _ in range(count)])
    columns = {
        "machine": np.array([rng.randrange(2) for _ in range(count)]),
        "n": np.array([rng.choice((4, 8, 16)) for _ in range(count)]),
        "b": np.array([rng.choice((1, 2, 3)) for _ in range(count)]),
        "work_flops": np.ones(count, dtype=np.int64),
        "DRAM_bytes": moved,
        "time_s": time_s,
        "flops_per_s": 1 / time_s,
        "bound": np.where(np.isnan(time_s), -1, 0),
    }
    return Table(columns, {"machine": ("one", "two"), "bound": ("DRAM",)})


@pytest.mark.parametrize("seed", range(12))
def test_pareto_is_what_none_beats(seed: int) -> None:
    table = _table(40, seed)
    rows = [(k, table.cell("time_s", k), table.cell("DRAM_bytes", k)) for k in range(40)]
    rows = [r for r in rows if r[1] is not None and r[2] is not None]
    kept = {k for k, t, q in rows if not any((u <= t and r <= q) and (u < t or r < q) for _, u, r in rows)}
    assert set(pareto(table, "time_s", "DRAM_bytes")) == kept


def test_best_in_groups() -> None:
    table = _table(60, 3)
    for per in ((), ("n",), ("machine", "n")):
        parts = groups(table, per)
        assert sorted(int(k) for part in parts for k in part) == list(range(60))
        found = best(table, "time_s", per)
        for place, part in zip(found, parts, strict=True):
            own = [t for k in part if (t := table.cell("time_s", int(k))) is not None]
            assert place in part and table.cell("time_s", place) == min(own)
        assert [table.cell("time_s", k) for k in best(table, "flops_per_s", per)] == [
            table.cell("time_s", k) for k in found
        ]


def test_cells_without_a_value() -> None:
    table = _table(30, 5)
    for row in table.rows():
        assert (row["bound"] is None) == (row["time_s"] is None)
        assert row["DRAM_bytes"] is None or row["DRAM_bytes"] >= 5
    for name in table.names:
        assert table.cells(name) == [row[name] for row in table.rows()]
    with pytest.raises(CommandError, match="no column of numbers named `time`"):
        table.numbers("time")
    with pytest.raises(CommandError, match="no column `m`"):
        groups(table, ["m"])


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    """Read back by pyarrow: numbers to the last bit, integers beyond int64, words, and nulls."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet is an extra: pip install 'roofdsl[parquet]'")
    from pyarrow import parquet

    small = _table(50, 2)
    large = np.array([2**70 + 1, -1, *range(48)], dtype=object)
    table = Table({**small.columns, "work_flops": large}, small.words)
    write_table(tmp_path / "t.parquet", Sweep(table))
    found = parquet.read_table(tmp_path / "t.parquet")
    assert tuple(found.column_names) == table.names and found.schema.metadata[b"schema"] == b"roofdsl.sweep/1"
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
    for name in table.names:
        assert found.column(name).to_pylist() == table.cells(name), name
    assert found.column("work_flops")[0].as_py() == 2**70 + 1
    assert found.schema.field("n").type == pyarrow.int64() and found.schema.field("time_s").type == pyarrow.float64()
    huge = Table({"work_flops": np.array([10**80], dtype=object)}, {})
    with pytest.raises(CommandError, match="too large for Parquet"):
        write_table(tmp_path / "u.parquet", Sweep(huge))
    with pytest.raises(CommandError, match="cannot be written"):
        write_table(tmp_path / "nowhere" / "u.parquet", Sweep(table))


def test_columns_grow_beyond_int64() -> None:
    column = put(None, 4, slice(0, 2), np.array([5.0, 7.0]), whole=True)
    assert column.dtype == np.int64
    column = put(column, 4, [3], np.array([2**70], dtype=object), whole=True)
    assert list(column) == [5, 7, -1, 2**70]


def test_curves_hold_the_tables_numbers() -> None:
    table = _table(60, 7)
    content = sweep_content(table, "time_s", ["b"])
    assert isinstance(content, Curves)
    names = {name for name, _, _ in content.curves}
    assert names == {f"{m}, n = {n}" for m in ("one", "two") for n in (4, 8, 16)}
    for name, xs, ys in content.curves:
        of = [r for r in table.rows() if f"{r['machine']}, n = {r['n']}" == name and r["time_s"] is not None]
        assert sorted(zip(xs, ys, strict=True)) == sorted((r["b"], r["time_s"]) for r in of)
        assert list(xs) == sorted(xs)


def test_maps_hold_the_tables_numbers() -> None:
    table = _table(400, 9)
    content = sweep_content(table, "time_s", [])
    assert isinstance(content, tuple) and [m.name for m in content] in (["one", "two"], ["two", "one"])
    for drawn in content:
        assert isinstance(drawn, Map) and (drawn.x, drawn.y) == ("n", "b")
        last = {(r["n"], r["b"]): r["time_s"] for r in table.rows() if r["machine"] == drawn.name}
        for row, y in zip(drawn.values, drawn.ys, strict=True):
            for value, x in zip(row, drawn.xs, strict=True):
                assert isnan(value) if last[x, y] is None else value == last[x, y]


def test_the_title_says_what_is_the_same_at_all_points() -> None:
    table = _table(60, 7)
    one = table.at([k for k, r in enumerate(table.rows()) if (r["machine"], r["n"]) == ("one", 8)])
    for drawn, title in ((one, "k on one, n = 8"), (table, "k")):
        figure = draw_sweep_figure(drawn, "time_s", ["b"], "k")
        assert title in {text.get_text() for text in figure.findobj(Text)}


def test_what_cannot_be_drawn() -> None:
    table = _table(60, 7)
    for over, value, message in (
        (["m"], "time_s", "over `m`"),
        (["n", "b", "n"], "time_s", "over"),
        (["n"], "tme_s", "no column of numbers"),
        (["n"], "bound", "no column of numbers"),
    ):
        with pytest.raises(CommandError, match=message):
            sweep_content(table, value, over)
    with pytest.raises(CommandError, match="no parameter of the sweep has several values"):
        sweep_content(Table({n: c[:1] for n, c in table.columns.items()}, table.words), "time_s", [])
