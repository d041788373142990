"""Many kernels on one machine: a table; and as CSV and JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from roofdsl.lang.findings import plural
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bytes, show_number, show_operations, show_rate, show_time
from roofdsl.suite.rows import Forms, Row
from roofdsl.tell.as_text import to_text
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line
from roofdsl.tell.titles import on

DIGITS = 3


def levels_of(machine: Machine) -> list[str]:
    """The levels that predictions of the machine can have, nearest first."""
    return [*(c.name for c in machine.caches), machine.main_memory.name]


def blocks(rows: Sequence[Row], machine: Machine, size: str | None, width: int = 0) -> list[Block]:
    """The table, and below it the reasons for empty cells. The table is split in two if lines exceed `width`, if given.

    The first part has the traffic of the kernels, the second its distance from the bound, and the times.
    """
    scale = f", size {size}" if size is not None else ""
    shown = [
        name
        for name in levels_of(machine)
        if any(r.prediction is not None and any(v.name == name for v in r.prediction.levels) for r in rows)
    ]
    head = ("kernel", "W", "compulsory", *shown, "lower bound", "ratio", "I", "rate", "time", "bound by")
    cells = [_cells(r, shown) for r in rows]
    found: list[Block] = [
        Title(f"{plural(len(rows), 'kernel')} on {on(machine)}{scale}"),
        Gap(),
        *_fitted(cells, head, len(shown) + 3, width),
        Gap(),
        items(_legend(machine, shown), 1),
    ]
    notes = [f"{r.name}: {_first(n)}" for r in rows for n in r.notes]
    if notes:
        found += [Gap(), line("notes:"), items(notes)]
    return found


def _fitted(rows: Sequence[Sequence[str]], head: Sequence[str], moved: int, width: int) -> list[Block]:
    """The table; if it is wider than `width` (0: any width), in two parts, the first of `moved` columns."""
    words = len(head) - 1  # what bounds them
    whole = figures(rows, head, range(1, words))
    if not width or max(map(len, to_text([whole]))) <= width:
        return [whole]
    first = figures([r[:moved] for r in rows], head[:moved], range(1, moved))
    rest = [[r[0], *r[moved:]] for r in rows]
    return [first, Gap(), figures(rest, (head[0], *head[moved:]), range(1, words - moved + 1))]


def _first(note: str) -> str:
    return note.split("\n", maxsplit=1)[0]


def _legend(machine: Machine, shown: Sequence[str]) -> list[str]:
    memory = machine.main_memory.name
    cache = machine.last_cache
    where = "each datum once"
    if cache is not None:
        copy = f"one of {cache.copies} copies of the {cache.name}" if cache.copies > 1 else f"the {cache.name}"
        where = f"with {copy} as fast memory"
    lines = []
    if shown:
        lines.append(f"{', '.join(shown)}: bytes that each exchanges with the nearer level")
    return [
        *lines,
        f"lower bound: loads from {memory} that every legal order needs, {where}",
        "ratio: the loads of the kernel as written over the lower bound",
        f"I: W over the bytes of {memory}",
    ]


def _cells(row: Row, shown: Sequence[str]) -> list[str]:
    p = row.prediction
    operation = p.operation if p is not None else "FLOP"
    work = "" if row.work is None else show_operations(row.work, operation, DIGITS)
    cells = [row.name, work, _bytes(row.compulsory_bytes)]
    levels = {} if p is None else {level.name: level.bytes for level in p.levels}
    cells += [_bytes(levels.get(name)) for name in shown]
    cells += [_bytes(row.lower_bound_bytes), "" if row.ratio is None else f"{show_number(row.ratio, DIGITS)}x"]
    if p is None:
        return [*cells, "", "", "", ""]
    intensity = "" if p.intensity is None else show_number(p.intensity, DIGITS)
    rate = show_rate(p.rate_per_s, p.operation, DIGITS)
    return [*cells, intensity, rate, show_time(p.bound_s, DIGITS), p.bound]


def _bytes(count: int | None) -> str:
    return "" if count is None else show_bytes(count, DIGITS)


def of_forms(one: Forms) -> list[Block]:
    """W, compulsory traffic and lower bound of a kernel as formulas."""
    bound = f"{one.lower_bound} elements (leading terms)" if one.lower_bound is not None else "-"
    table = [
        *_cases("W", one.shown_work),
        *_cases("compulsory Q (B)", one.shown_compulsory),
        ("lower bound", bound),
    ]
    return [Title(one.name), figures(table), items((f"note: {_first(n)}" for n in one.notes), 1)]


def _cases(name: str, shown: Sequence[str]) -> list[tuple[str, str]]:
    return [(name if k == 0 else "", text) for k, text in enumerate(shown or ("-",))]


def to_json(rows: Sequence[Row], machine: Machine) -> dict[str, Any]:
    """The document `roofdsl.suite/1`."""
    return {
        "schema": "roofdsl.suite/1",
        "machine": machine.name,
        "kernels": [
            {
                "kernel": row.name,
                "parameters": dict(row.parameters),
                "traffic": row.traffic or None,
                "work_flops": row.work,
                "compulsory_bytes": row.compulsory_bytes,
                "lower_bound_bytes": row.lower_bound_bytes,
                "lower_bound_by": row.lower_bound_by or None,
                "loads_bytes": row.loads_bytes,
                "ratio": row.ratio,
                "prediction": None if row.prediction is None else row.prediction.to_json(),
                "notes": list(row.notes),
            }
            for row in rows
        ],
    }


def forms_to_json(found: Sequence[Forms], machine: Machine) -> dict[str, Any]:
    """The document `roofdsl.suite/1` of closed forms."""
    return {
        "schema": "roofdsl.suite/1",
        "machine": machine.name,
        "kernels": [
            {
                "kernel": one.name,
                "work": one.work,
                "compulsory_bytes": one.compulsory,
                "lower_bound_elements": one.lower_bound,
                "notes": list(one.notes),
            }
            for one in found
        ],
    }


def to_csv(rows: Sequence[Row], machine: Machine) -> str:
    """One line for each kernel: plain numbers in operations, bytes, seconds; unknown values are empty."""
    names = levels_of(machine)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    counts = ["work", "compulsory_bytes", *(f"{n}_bytes" for n in names), "lower_bound_bytes", "loads_bytes", "ratio"]
    writer.writerow(["kernel", "parameters", *counts, "intensity", "flops_per_s", "time_s", "bound", "notes"])
    for row in rows:
        p = row.prediction
        levels = {} if p is None else {level.name: level.bytes for level in p.levels}
        plain: list[Any] = [row.name, " ".join(f"{n}={v}" for n, v in row.parameters.items()), row.work]
        plain += [
            row.compulsory_bytes,
            *(levels.get(n) for n in names),
            row.lower_bound_bytes,
            row.loads_bytes,
            row.ratio,
        ]
        if p is None:
            plain += [None] * 4
        else:
            plain += [
                None if p.intensity is None else float(p.intensity),
                float(p.rate_per_s),
                float(p.bound_s),
                p.bound,
            ]
        writer.writerow([*plain, "; ".join(map(_first, row.notes))])
    return out.getvalue()
