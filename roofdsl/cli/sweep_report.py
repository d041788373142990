"""What `roofdsl sweep` prints and writes: tables for people, CSV, JSON and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

from roofdsl.cli.text import bold, columns
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import group, show_bandwidth, show_bytes, show_number, show_rate, show_size, show_time
from roofdsl.sweep.run import Sweep
from roofdsl.sweep.table import Table

FORMATS = ("csv", "json", "parquet")
SCHEMA = "roofdsl.sweep/1"
MOST_ROWS = 40
"""Rows that are printed; a table with more is written to a file."""

MOST_FRONT = 20


def check_output(path: Path) -> None:
    """Says before anything is computed that the table could not be written. Raises CommandError."""
    from roofdsl.measure.atomic import check_writable

    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(f"`{path}` is no csv, json or parquet", "end its name in .csv")
    if kind == "parquet":
        _parquet()
    check_writable(path)


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CommandError(
            "Parquet files need pyarrow", "install it (pip install 'roofdsl[parquet]'), or write .csv"
        ) from None
    return pyarrow


def write_table(path: Path, found: Sweep) -> None:
    """The whole table at `path`, in the format of its ending. Raises CommandError."""
    from roofdsl.measure.atomic import write_whole

    kind = path.suffix.lstrip(".").lower()
    if kind == "csv":
        write_whole(path, to_csv(found.table))
    elif kind == "json":
        import json

        write_whole(path, json.dumps(plain(found.table), allow_nan=False) + "\n")
    else:
        _write_parquet(path, found.table)


def _write_parquet(path: Path, table: Table) -> None:
    """int64 and float64, words as dictionaries, and decimals without digits behind the point for larger integers."""
    import os

    pyarrow = _parquet()
    part = path.with_name(f".{path.name}.part")
    columns = {name: _arrow(pyarrow, table, name) for name in table.names}
    try:
        written = pyarrow.table(columns).replace_schema_metadata({"schema": SCHEMA})
        pyarrow.parquet.write_table(written, part)
        os.replace(part, path)
    except (OSError, pyarrow.ArrowException) as error:
        part.unlink(missing_ok=True)
        raise CommandError(f"`{path}` cannot be written: {str(error).splitlines()[0]}") from None


def _arrow(pyarrow: Any, table: Table, name: str) -> Any:
    """A column as Arrow has it, null where there is no value. Raises CommandError for integers beyond 76 digits."""
    column = table.columns[name]
    if name in table.words:
        return pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(column, mask=column < 0), pyarrow.array(table.words[name])
        )
    if column.dtype == float:
        return pyarrow.array(column, mask=column != column)  # noqa: PLR0124 - nan is not
    if column.dtype != object:
        return pyarrow.array(column, mask=column < 0)
    cells = [None if v is None else Decimal(v) for v in table.cells(name)]
    try:
        return pyarrow.array(cells, type=pyarrow.decimal256(76, 0))
    except pyarrow.ArrowException:
        raise CommandError(f"the integers of column {name} are too large for Parquet", "write .csv or .json") from None


def to_csv(table: Table) -> str:
    """One line a point behind a line of names; what has no value is empty, times have all their digits."""
    import csv

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.names)
    lists = [["" if v is None else repr(v) if isinstance(v, float) else v for v in table.cells(n)] for n in table.names]
    writer.writerows(zip(*lists, strict=True))
    return out.getvalue()


def plain(table: Table) -> dict[str, Any]:
    """The table as JSON: a list for each column, null where there is no value."""
    return {"schema": SCHEMA, "points": len(table), "columns": {n: table.cells(n) for n in table.names}}


def to_json(found: Sweep, kernel: str, best: Sequence[int], front: Sequence[int]) -> dict[str, Any]:
    """The document of `sweep --json`."""
    return {
        **plain(found.table),
        "kernel": kernel,
        "counted": found.counted,
        "left_out": found.left_out,
        "best": [found.table.row(k) for k in best],
        "pareto": [found.table.row(k) for k in front],
        "failures": [{"point": dict(where), "message": why} for where, why in found.failures],
        "warnings": list(found.warnings),
    }


# ---- for people ----


def describe(found: Sweep, kernel: str, views: tuple[str, str, str], best: Sequence[int], front: Sequence[int]) -> str:
    """How many points there are, all of them where they are few, the best, and the Pareto front."""
    table = found.table
    closed = len(table) - found.counted
    how = [f"{group(closed)} by closed forms"] if closed else []
    how += [f"{group(found.counted)} counted one by one"] if found.counted else []
    lines = [f"{bold(kernel)}: {_points(len(table))}, {', '.join(how)}"]
    if len(table) <= MOST_ROWS:
        lines += ["", *_rows(table, range(len(table)), kernel)]
    lines += ["", f"best by {views[0]}:", *_rows(table, best[:MOST_ROWS], kernel)]
    if len(best) > MOST_ROWS:
        lines.append(f"  and {len(best) - MOST_ROWS:,} more")
    if len(front) > 1 and len(front) < len(table):
        lines += ["", f"Pareto front of {views[1]} and {views[2]}, {_points(len(front))}:"]
        lines += _rows(table, front[:MOST_FRONT], kernel)
        if len(front) > MOST_FRONT:
            lines.append(f"  and {len(front) - MOST_FRONT:,} more (--json has all)")
    return "\n".join(lines)


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count:,} points"


def _rows(table: Table, places: Sequence[int], kernel: str) -> list[str]:
    """The points at `places`, without columns that are the same in the whole table."""
    names = [n for n in table.names if n != "how" and (n in _ALWAYS or _varies(table, n))]
    names = [n for n in names if n not in ("compute_s", "time_no_overlap_s")]
    rows = [[_head(n) for n in names]]
    rows += [[show(n, table.cell(n, int(k))) for n in names] for k in places]
    right = [k for k, n in enumerate(names) if n not in table.words]
    return [f"  {line}" for line in columns(rows, right)]


_ALWAYS = ("time_s", "flops_per_s", "bytes_per_s", "bound")


def _varies(table: Table, name: str) -> bool:
    """Whether a column has different values, or only some points have one."""
    column = table.columns[name]
    there = column == column  # noqa: PLR0124 - nan is not
    return bool(there.any() and ((column[there] != column[there][0]).any() or not there.all()))


def _head(name: str) -> str:
    plain_names = {"work_flops": "W", "time_s": "time", "intensity": "I", "cache_bytes": "cache"}
    plain_names |= {"flops_per_s": "rate", "bytes_per_s": "rate"}
    return plain_names.get(name, name.removesuffix("_bytes"))


def show(name: str, value: Any) -> str:
    """A cell as people read it."""
    if value is None:
        return "-"
    if name == "cache_bytes":
        return show_size(value)
    if name == "work_flops":
        return show_rate(value).removesuffix("/s")
    if name == "flops_per_s":
        return show_rate(value)
    if name == "bytes_per_s":
        return show_bandwidth(value)
    if name.endswith("_bytes"):
        return show_bytes(value)
    if name.endswith("_s"):
        return show_time(value)
    return show_number(value) if isinstance(value, float) else str(value)
