"""Schemas of findings, machines, models, exercises and the cache."""

from __future__ import annotations

from inspect import get_annotations

from roofdsl.lang.machine_attributes import attributes
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Cache, Machine, Memory, Peak, Sustained
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.tell.schemas.parts import (
    AMOUNT,
    BYTES,
    BYTES_PER_S,
    COUNT,
    FLAG,
    NUMBER,
    OPERATIONS_PER_S,
    SECONDS,
    TEXT,
    WHOLE,
    Schema,
    either,
    exactly,
    many,
    maybe,
    of_record,
    of_type,
    one_of,
    record,
    ref,
    said,
    table,
)  # fmt: skip

CHECK = record({
    "schema": exactly("roofdsl.check/1"),
    "diagnostics": many(record({
        "file": TEXT, "line": COUNT, "column": COUNT, "end_line": COUNT, "end_column": COUNT,
        "severity": one_of(["error", "warning"]), "code": TEXT, "message": TEXT, "help": maybe(TEXT),
    })),
})  # fmt: skip

# ---- machines ----


def _machine() -> dict[str, Schema]:
    """What `machine.plain` writes; the settings come from the table of attributes that reads and writes them."""
    hints = get_annotations(Machine, eval_str=True)
    rate = {"type": TEXT, "class": TEXT, "rate_flops": OPERATIONS_PER_S, "source": TEXT}
    of_peak = get_annotations(Peak, eval_str=True)
    peak = rate | {a.field: of_type(of_peak[a.field]) for a in attributes("peak").values()}
    return {
        "name": TEXT,
        "title": TEXT,
        "source": TEXT,
        "peaks": many(record(peak)),
        "caches": many(of_record(Cache)),
        "memories": many(of_record(Memory)),
        "ceilings": many(either(
            record({"name": TEXT, **rate, "class": maybe(TEXT)}),
            record({"name": TEXT, "level": TEXT, "bandwidth_bytes_per_s": BYTES_PER_S, "source": TEXT}),
        )),
        "links": many(record({
            "name": TEXT, "from": TEXT, "to": TEXT, "both_ways": FLAG, "bandwidth_bytes_per_s": BYTES_PER_S,
            "source": TEXT,
        })),
        **{a.field: of_type(hints[a.field]) for a in attributes("machine").values()},
        "multiprocessor": maybe(of_record(Multiprocessor)),
        "core": maybe(of_record(Core)),
        "instructions": many(of_record(Instruction)),
        "latencies_s": table(SECONDS, "by level"),
        "processor": said(TEXT, "its name as the system reports it"),
        "transfer_overlap": said(maybe(NUMBER), "0: transfers take turns; 1: the longest counts"),
        "sustained": many(of_record(Sustained)),
        "pipes_separate": FLAG,
        "divider_separate": FLAG,
        "pipes_by_unit": FLAG,
        "costs": table(AMOUNT, "by class of operation"),
        "line_sources": table(TEXT, "by line, such as `units` or `latency L1`"),
    }  # fmt: skip


_MACHINE = _machine()
MACHINE = record({"schema": exactly("roofdsl.machine/1"), **_MACHINE})
MACHINES = record({"schema": exactly("roofdsl.machines/1"), "machines": many(ref("machine"))})
FLOW = record({
    "schema": exactly("roofdsl.flow/1"), "bytes_per_s": BYTES_PER_S, "links": table(BYTES_PER_S, "by link"),
    "limited_by": many(TEXT),
})  # fmt: skip

MODELS = record({
    "schema": exactly("roofdsl.models/1"),
    "models": many(record(
        {"name": TEXT, "parameters": TEXT, "file": TEXT, "group": TEXT},
        {"sizes": said(table(table(WHOLE)), "PolyBench's standard sizes")},
    )),
})  # fmt: skip

CACHE = record({
    "schema": exactly("roofdsl.cache/1"), "on": FLAG, "folder": maybe(TEXT), "entries": COUNT, "bytes": BYTES,
    "most_bytes": BYTES,
})  # fmt: skip

# ---- exercises ----

_EXERCISE = {"schema": exactly("roofdsl.exercise/1")}
EXERCISES = record({
    **_EXERCISE,
    "exercises": many(record({"id": TEXT, "unit": TEXT, "level": WHOLE, "points": WHOLE, "title": TEXT})),
})  # fmt: skip
EXERCISE = record({
    **_EXERCISE, "exercise": TEXT, "title": TEXT, "unit": TEXT, "max_score": WHOLE, "text": TEXT,
    "kernels": table(TEXT, "the texts of the kernels that are shown"), "symbols": table(TEXT, "their meanings"),
    "parts": many(record(
        {"id": TEXT, "kind": TEXT, "ask": TEXT, "max_score": WHOLE},
        {"unit": TEXT, "options": table(TEXT, "by letter"), "hints": many(TEXT), "solution": TEXT},
    )),
})  # fmt: skip
JUDGED = record({
    **_EXERCISE, "exercise": TEXT, "score": AMOUNT, "max_score": WHOLE,
    "parts": many(record({"id": TEXT, "correct": FLAG, "score": AMOUNT, "max_score": WHOLE, "message": TEXT})),
})  # fmt: skip

DEFINITIONS: dict[str, Schema] = {"machine": record(_MACHINE)}
