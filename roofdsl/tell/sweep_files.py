"""The table of a sweep as CSV, JSON and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.store.atomic import check_writable, write_whole
from roofdsl.sweep.run import Sweep
from roofdsl.sweep.table import Table
from roofdsl.tell.sweep import Views

FORMATS = ("csv", "json", "parquet")
SCHEMA = "roofdsl.sweep/1"


def check_output(path: Path) -> None:
    """Raises CommandError before anything is computed if the table could not be written."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(f"`{path}` is not a csv, json or parquet file", "end its name in .csv")
    if kind == "parquet":
        _parquet()
    check_writable(path)


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CommandError("Parquet files need pyarrow", "install it (pip install pyarrow), or write .csv") from None
    return pyarrow


def write_table(path: Path, found: Sweep) -> None:
    """Writes the whole table to `path`, in the format of its extension. Raises CommandError."""
    kind = path.suffix.lstrip(".").lower()
    if kind == "csv":
        write_whole(path, csv_pieces(found.table))
    elif kind == "json":
        write_whole(path, chain(json_pieces(plain(found.table), found.table), "\n"))
    else:
        _write_parquet(path, found.table)


def _write_parquet(path: Path, table: Table) -> None:
    """int64 and float64, dictionaries for words, and decimals without fractional digits for larger integers."""
    import os

    pyarrow = _parquet()
    beside = path.with_name(f".{path.name}.part")
    try:
        writer = None
        for part in table.parts():
            columns = {name: _arrow(pyarrow, part, name) for name in part.names}
            written = pyarrow.table(columns).replace_schema_metadata({"schema": SCHEMA})
            writer = writer or pyarrow.parquet.ParquetWriter(beside, written.schema)
            writer.write_table(written)
        if writer is not None:
            writer.close()
        os.replace(beside, path)
    except (OSError, pyarrow.ArrowException) as error:
        raise CommandError(f"`{path}` cannot be written: {str(error).splitlines()[0]}") from None
    finally:
        beside.unlink(missing_ok=True)


def _arrow(pyarrow: Any, table: Table, name: str) -> Any:
    """A column for Arrow, null if there is no value. Raises CommandError for integers of more than 76 digits."""
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


AT_A_TIME = 1 << 14
"""Points that are turned into text at a time."""


def _pieces(table: Table, names: Sequence[str]) -> Iterator[Table]:
    """Some columns of all points."""
    for part in table.parts():
        for start in range(0, len(part), AT_A_TIME):
            cut = slice(start, start + AT_A_TIME)
            yield Table({n: part.columns[n][cut] for n in names}, part.words)


def csv_pieces(table: Table) -> Iterator[str]:
    """One line per point after a line of names; missing values are empty, times have all their digits."""
    import csv

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.names)
    for part in _pieces(table, table.names):
        writer.writerows(zip(*(part.cells(n) for n in part.names), strict=True))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def plain(table: Table) -> dict[str, Any]:
    """The table in JSON, with a place for each column, where `json_pieces` puts its list: null without a value."""
    return {"schema": SCHEMA, "points": len(table), "columns": {n: f"{_HERE}{k}" for k, n in enumerate(table.names)}}


_HERE = "\0"
"""Begins what stands for a column in a document: no name or message has it."""


def json_pieces(document: Mapping[str, Any], table: Table, indent: int | None = None) -> Iterator[str]:
    """The document as text, with the columns of `table` in the places that `plain` left for them."""
    import json
    import re

    text = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=indent is None)
    between, *rest = re.split(r'"\\u0000(\d+)"', text)
    line = "" if indent is None else "\n" + 3 * indent * " "
    yield between
    for place, behind in zip(rest[::2], rest[1::2], strict=True):
        separator = "[" + line
        name = table.names[int(place)]
        for part in _pieces(table, [name]):
            cells = json.dumps(part.cells(name), allow_nan=False, separators=(f",{line or ' '}", ":"))
            yield separator + cells[1:-1]
            separator = f",{line or ' '}"
        yield line[: -indent if indent else None] + "]" + behind


def to_json(found: Sweep, kernel: str, views: Views) -> dict[str, Any]:
    """The document of `sweep --json`, for `json_pieces`."""
    return {
        **plain(found.table),
        "kernel": kernel,
        "counted": found.counted,
        "left_out": found.left_out,
        "best": list(found.table.at(views.best).rows()),
        "pareto": list(found.table.at(views.front).rows()),
        "failures": [{"point": dict(where), "message": why} for where, why in found.failures],
        "warnings": list(found.warnings),
    }
