"""Sweeps: the points, the best of them, and the Pareto front."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from roofdsl.lang.record import Record
from roofdsl.machine.quantities import (
    group,
    show_bandwidth,
    show_bytes,
    show_number,
    show_operations,
    show_rate,
    show_size,
    show_time,
)
from roofdsl.sweep.run import Sweep
from roofdsl.sweep.table import Table, Varying, best_of, front_of, heading, keys_of, look
from roofdsl.tell.blocks import Block, Gap, Title, figures, line

MOST_ROWS = 40
"""The most rows that are printed; all points of a larger table are only in files and in JSON."""

MOST_FRONT = 20


class Views(Record):
    """The selections of a table to show: the best points by column `rated`, the Pareto front of two columns (the second
    may be one for each machine), and the columns that vary.
    """

    rated: str
    first: str
    second: tuple[str, ...]
    best: Sequence[int]
    front: Sequence[int]
    varying: frozenset[str]


def views_of(table: Table, columns: tuple[str, str, tuple[str, ...]], per: Sequence[str]) -> Views:
    """The views, in one pass. columns: of the best points, and of the front. Raises CommandError for a missing one."""
    rated, first, second = columns
    best, front, varying = best_of(table, rated, per), front_of(table, first, second, per), Varying()
    look(table, best, front, varying)
    return Views(rated, first, second, best.found((rated,)), front.found((first,), second), frozenset(varying.names))


def blocks(found: Sweep, kernel: str, views: Views) -> list[Block]:
    """The number of points, all points if they are few, the best, and the Pareto front."""
    table = found.table
    names = [n for n in table.names if n != "how" and (n in _ALWAYS or n in views.varying)]
    names = [n for n in names if n not in ("compute_s", "time_no_overlap_s")]
    closed = len(table) - found.counted
    how = [f"{group(closed)} by closed forms"] if closed else []
    how += [f"{group(found.counted)} counted one by one"] if found.counted else []
    out: list[Block] = [Title(kernel, f": {_points(len(table))}, {', '.join(how)}")]
    if len(table) <= MOST_ROWS:
        out += [Gap(), _rows(table, names)]
    out += [Gap(), line(f"best by {views.rated}:", 0), _rows(table.at(views.best[:MOST_ROWS]), names)]
    if len(views.best) > MOST_ROWS:
        out.append(line(f"and {len(views.best) - MOST_ROWS:,} more"))
    if len(views.front) > 1 and len(views.front) < len(table):
        title = f"Pareto front of {views.first} and {' or '.join(views.second)}, {_points(len(views.front))}:"
        out += [Gap(), line(title, 0), _rows(table.at(views.front[:MOST_FRONT]), names)]
        if len(views.front) > MOST_FRONT:
            out.append(line(f"and {len(views.front) - MOST_FRONT:,} more (--json has all)"))
    return out


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count:,} points"


def _rows(table: Table, names: Sequence[str]) -> Block:
    """All points of a table, by these columns."""
    # A parameter may be called `n_s` or `block_bytes`, and is still a plain number.
    plain = set(keys_of(table)) - {"cache_bytes"}
    rows = [[_cell(n, table.cell(n, k), plain) for n in names] for k in range(len(table))]
    heads = [n if n in plain else heading(n) for n in names]
    return figures(rows, heads, (k for k, n in enumerate(names) if n not in table.words))


def _cell(name: str, value: Any, plain: Container[str]) -> str:
    return str(value) if name in plain else show(name, value)


_ALWAYS = ("time_s", "flops_per_s", "bytes_per_s", "bound")


def show(name: str, value: Any) -> str:
    """A cell in readable form."""
    if value is None:
        return "-"
    if name == "cache_bytes":
        return show_size(value)
    if name == "work_flops":
        return show_operations(value)
    if name == "flops_per_s":
        return show_rate(value)
    if name == "bytes_per_s":
        return show_bandwidth(value)
    if name.endswith("_bytes"):
        return show_bytes(value)
    if name.endswith("_s"):
        return show_time(value)
    return show_number(value) if isinstance(value, float) else str(value)
