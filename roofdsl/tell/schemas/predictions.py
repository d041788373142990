"""Schemas of what the model says about time: `predict`, `sol`, `advise`, `suite`, `sweep`, `shard` and `collective`."""

from __future__ import annotations

from roofdsl.loops.model import Traffic
from roofdsl.predict.collectives import KINDS
from roofdsl.sol.claim import Verdict as ClaimVerdict
from roofdsl.tell.schemas.parts import (
    AMOUNT,
    BYTES,
    BYTES_PER_S,
    COUNT,
    FLAG,
    INTENSITY,
    JOULES,
    NUMBER,
    OPERATIONS,
    OPERATIONS_PER_S,
    SECONDS,
    TEXT,
    WHOLE,
    Schema,
    either,
    exactly,
    many,
    maybe,
    one_of,
    record,
    ref,
    said,
    table,
)  # fmt: skip

PARAMETERS = table(WHOLE, "the values of the parameters")
SHARE = said(AMOUNT, "as a fraction")

# ---- predict ----

_MIX = record({
    "type": TEXT, "class": TEXT, "operations": OPERATIONS, "rate_flops": OPERATIONS_PER_S, "time_s": SECONDS,
})  # fmt: skip
_LEVEL = {
    "name": TEXT, "bytes": BYTES, "bandwidth_bytes_per_s": BYTES_PER_S, "intensity": maybe(INTENSITY),
    "time_s": SECONDS,
}  # fmt: skip
_COUNTED = {
    "kind": one_of(["cache", "memory", "link"]),
    "nearer": said(TEXT, "the level or unit on the other side of the boundary"),
    "loads_bytes": maybe(BYTES),
    "stores_bytes": maybe(BYTES),
    "moved_bytes": said(maybe(COUNT), "bytes that cross at a time, such as a line; null: single elements"),
}
_SOMETIMES = {
    "duplex_bytes": BYTES,
    "allocated_bytes": said(BYTES, "what ordinary stores load before they write, in the expected time"),
    "streamed_bytes": said(BYTES, "the part of the stores that bypasses the caches"),
}
LEVEL = either(record(_LEVEL), record(_LEVEL | _COUNTED, _SOMETIMES))
_LINK = record({
    "name": TEXT, "collectives": COUNT, "bytes": said(AMOUNT, "in bytes"), "bandwidth_bytes_per_s": BYTES_PER_S,
    "latency_s": SECONDS, "time_s": SECONDS,
})  # fmt: skip
_OCCUPANCY = record({
    "warps": COUNT, "most_warps": maybe(COUNT), "blocks": COUNT, "threads": COUNT, "limits": many(TEXT),
})  # fmt: skip
_LATENCY = record({
    "level": TEXT, "latency_s": SECONDS, "in_flight_bytes": BYTES, "needed_bytes": said(AMOUNT, "in bytes"),
    "bytes_per_s": BYTES_PER_S, "binds": FLAG,
})  # fmt: skip
_CAUSE = record({"cause": TEXT, "share_s": said(NUMBER, "in seconds; all add up"), "remedy": TEXT})
_REMEDY = record({"remedy": TEXT, "expected_s": SECONDS, "speedup": AMOUNT})
_CORES = record({
    "count": COUNT, "n_s": maybe(COUNT), "most_cores": maybe(COUNT), "shared": maybe(TEXT), "shared_s": maybe(SECONDS),
})  # fmt: skip
_COUNTER = record({"total": WHOLE, "per_s": said(NUMBER, "per second")})

_KEYS: dict[str, Schema] = {
    "schema": exactly("roofdsl.predict/1"),
    "kernel": TEXT,
    "machine": TEXT,
    "parameters": PARAMETERS,
    "work_flops": OPERATIONS,
    "operation": said(TEXT, "what work_flops counts: FLOP or OP"),
    "type": said(maybe(TEXT), "the type that dominates the time"),
    "unit": said(maybe(TEXT), "the matrix unit that was asked for"),
    "peak_flops": maybe(said(AMOUNT, "the effective peak of this kernel, in operations per second")),
    "machine_peak_flops": maybe(OPERATIONS_PER_S),
    "fma_fraction": maybe(SHARE),
    "peak_fraction": maybe(SHARE),
    "mix": many(_MIX, "the operations by type and class"),
    "time_s": said(AMOUNT, "the bound on the time, in seconds: no code with these accesses is faster"),
    "expected_s": maybe(said(AMOUNT, "what the code should take, in seconds")),
    "expected_flops_per_s": maybe(OPERATIONS_PER_S),
    "expected_model": said(maybe(TEXT), "where the time inside the core comes from"),
    "expected_missing": said(maybe(TEXT), "why there is no expected time"),
    "causes": maybe(many(_CAUSE, "why the expected time is above the bound")),
    "remedies": many(_REMEDY),
    "time_no_overlap_s": said(AMOUNT, "the sum of all terms, in seconds"),
    "compute_s": SECONDS,
    "flops_per_s": OPERATIONS_PER_S,
    "bytes_per_s": BYTES_PER_S,
    "intensity": maybe(INTENSITY),
    "bound": said(TEXT, "the largest terms of the time, in words"),
    "bounds": many(TEXT, "the largest terms of the time, the largest first"),
    "balance": maybe(INTENSITY),
    "machine_balance": maybe(INTENSITY),
    "ridge": maybe(INTENSITY),
    "levels": many(ref("level"), "nearest first"),
    "in_turn": many(record({"name": TEXT, "time_s": SECONDS}), "levels whose times add up, farthest first"),
    "links": many(_LINK),
    "occupancy": maybe(_OCCUPANCY),
    "latency": many(_LATENCY),
    "launches": COUNT,
    "launch_s": SECONDS,
    "traffic": one_of([*one_of(Traffic)["enum"], "mixed"]),
    "cache": record({"size_bytes": maybe(BYTES), "line_bytes": maybe(BYTES)}),
    "footprint_bytes": maybe(BYTES),
    "counters": table(_COUNTER, "totals and rates of `count` names"),
    "assumptions": many(TEXT),
    "warnings": many(TEXT),
}
_BY_KERNEL = record(
    {
        "kernel": TEXT, "launches": COUNT, "work_flops": OPERATIONS, "bytes": BYTES, "intensity": maybe(INTENSITY),
        "unit": maybe(TEXT), "time_s": SECONDS, "expected_s": maybe(SECONDS), "share": SHARE, "bounds": many(TEXT),
    },
    {"collectives": COUNT, "energy_j": JOULES},
)  # fmt: skip
_WITH_ENERGY: dict[str, Schema] = {
    "energy_j": maybe(JOULES),
    "average_power_w": maybe(said(AMOUNT, "in watts")),
    "energy_by": maybe(many(record({"cause": TEXT, "energy_j": JOULES}), "all add up to energy_j")),
    "energy_time_s": maybe(said(AMOUNT, "how long it lasts, in seconds, with what a power cap adds")),
    "energy_time": said(maybe(TEXT), "which time that is: the expected time or the bound"),
    "power_capped": said(maybe(FLAG), "whether the power cap makes it slower"),
    "flops_per_j": maybe(said(AMOUNT, "operations per joule, which are operations per second and watt")),
    "energy_delay_js": maybe(said(AMOUNT, "energy times time, in joule seconds")),
    "energy_balance": maybe(INTENSITY),
    "half_energy_intensity": maybe(said(AMOUNT, "operations per byte at which one takes twice the least energy")),
    "energy_missing": said(maybe(TEXT), "why there is no energy"),
}
_ASKED_FOR = {"cores": _CORES, **_WITH_ENERGY}
PREDICTION = record(_KEYS, _ASKED_FOR, "the prediction of a kernel, or of a program without its kernels")
PROGRAM = record(
    {
        **_KEYS,
        "by_kernel": many(_BY_KERNEL, "the slowest first"),
        "time_by_bound_s": table(SECONDS, "seconds spent in launches with each bound"),
    },
    _WITH_ENERGY,
    about="the prediction of a program",
)

# ---- sol, advise ----

_CLAIM = record({
    "measured_s": SECONDS, "verdict": one_of(ClaimVerdict), "above_floor": NUMBER, "violated": many(TEXT),
    "text": TEXT,
})  # fmt: skip
_SOL: dict[str, Schema] = {
    "schema": exactly("roofdsl.sol/1"),
    "kernel": TEXT,
    "machine": TEXT,
    "parameters": PARAMETERS,
    "work_flops": OPERATIONS,
    "unit": maybe(TEXT),
    "floor_s": said(AMOUNT, "in seconds: no code for the kernel takes less"),
    "floor_by": said(TEXT, "the term that is the floor"),
    "terms": many(
        record(
            {
                "name": TEXT,
                "amount": said(AMOUNT, "operations, bytes or launches"),
                "time_s": SECONDS,
                "formula": TEXT,
                "argument": TEXT,
            }
        )
    ),
    "as_written_s": maybe(SECONDS),
    "as_written_at_most_s": maybe(said(AMOUNT, "in seconds: an upper bound, if the time as written is not known")),
    "as_written_bound": maybe(TEXT),
    "why_not": said(maybe(TEXT), "why the kernel as written is not counted exactly"),
    "expected_s": maybe(SECONDS),
    "best_found_s": maybe(SECONDS),
    "best_found": many(TEXT, "lines to add to the kernel"),
    "best_found_text": said(maybe(TEXT), "the kernel in the best order found, where lines cannot say it"),
    "best_found_what": maybe(TEXT),
    "best_found_predicted_s": said(maybe(SECONDS), "what `predict` gives the kernel with these lines, or this text"),
    "best_found_predicted_at_most_s": said(maybe(SECONDS), "where that time is known only to be at most this"),
    "headroom": maybe(said(AMOUNT, "the time as written over the floor")),
    "claim": maybe(_CLAIM),
    "notes": many(TEXT),
}
SOL = record(
    _SOL,
    {
        "program": record({
            "launches": COUNT,
            "launched_floor_s": said(AMOUNT, "in seconds: of the launches, each with its data in the memory"),
            "passed": many(record({"array": TEXT, "reader": TEXT, "bytes": BYTES}), "arrays that need not be loaded"),
            "kept": many(
                record({"array": TEXT, "writer": TEXT, "reader": TEXT, "bytes": BYTES, "saved_s": SECONDS}),
                "arrays that stay in the last cache from one launch to the next",
            ),
            "fused": many(
                record({
                    "kernels": many(TEXT), "times": COUNT, "loops": many(TEXT), "blocks": COUNT,
                    "arrays": many(TEXT), "time_s": SECONDS,
                }),
                "launches that the best order found runs as one, and what then stays in the last cache",
            ),
            "kernels": many(record({"launches": COUNT, "light": record(_SOL)})),
        }),
    },
    about="the minimum time of any code",
)  # fmt: skip

_TIMES = {"time_s": SECONDS, "flops_per_s": OPERATIONS_PER_S, "bound": TEXT}
_LIFT = record({
    "name": TEXT, "before_s": SECONDS, "after_s": SECONDS, "before_bytes": maybe(BYTES), "after_bytes": maybe(BYTES),
    "at_most": FLAG,
})  # fmt: skip
ADVICE = record(
    {
        "schema": exactly("roofdsl.advise/1"),
        "kernel": TEXT,
        "machine": TEXT,
        "parameters": PARAMETERS,
        "now": record(_TIMES),
        "advice": many(record({
            "rank": COUNT, "kind": TEXT, "change": TEXT, "steps": many(TEXT), **_TIMES, "exact": FLAG,
            "gain": said(AMOUNT, "the time now over the time then"), "lifts": many(_LIFT), "because": TEXT,
            "changes_rounding": FLAG, "changes_precision": FLAG, "text": said(maybe(TEXT), "the changed kernel"),
        })),
        "refused": many(record({"kind": TEXT, "change": TEXT, "why": TEXT, "illegal": FLAG})),
    },
    about="transformations, ranked by their predicted gain",
)  # fmt: skip

# ---- suite, sweep ----

_SUITE = {"schema": exactly("roofdsl.suite/1"), "machine": TEXT}
SUITE = record({
    **_SUITE,
    "kernels": many(record({
        "kernel": TEXT, "parameters": PARAMETERS, "traffic": maybe(one_of(Traffic)), "work_flops": maybe(OPERATIONS),
        "compulsory_bytes": maybe(BYTES), "lower_bound_bytes": maybe(BYTES), "lower_bound_by": maybe(TEXT),
        "loads_bytes": maybe(BYTES), "ratio": maybe(AMOUNT), "prediction": maybe(ref("prediction")),
        "notes": many(TEXT),
    })),
})  # fmt: skip
SUITE_FORMS = record({
    **_SUITE,
    "kernels": many(record({
        "kernel": TEXT, "work": maybe(TEXT), "compulsory_bytes": maybe(TEXT), "lower_bound_elements": maybe(TEXT),
        "notes": many(TEXT),
    })),
})  # fmt: skip

_CELL: Schema = {"type": ["number", "string", "null"]}
SWEEP = record(
    {
        "schema": exactly("roofdsl.sweep/1"),
        "points": COUNT,
        "columns": table(many(_CELL), "one list for each column, one cell for each point"),
        "kernel": TEXT,
        "counted": said(COUNT, "points that were counted one by one"),
        "left_out": COUNT,
        "best": many(table(_CELL)),
        "pareto": many(table(_CELL)),
        "failures": many(record({"point": table(_CELL), "message": TEXT})),
        "warnings": many(TEXT),
    },
    about="predictions at many points",
)

# ---- shard, collective ----

_COLLECTIVE: dict[str, Schema] = {
    "collective": one_of(KINDS),
    "size_bytes": BYTES,
    "devices": COUNT,
    "algorithm": TEXT,
    "link": TEXT,
    "direction": TEXT,
    "link_bytes": said(AMOUNT, "bytes on the busiest link"),
    "share": said(AMOUNT, "link_bytes over the size of the array"),
    "bandwidth_bytes_per_s": BYTES_PER_S,
    "steps": COUNT,
    "latency_s": SECONDS,
    "time_s": SECONDS,
    "even_bytes": maybe(said(AMOUNT, "the size at which the latencies take as long as the transfer")),
}
COLLECTIVE = record(
    {"schema": exactly("roofdsl.collective/1"), "machine": TEXT, **_COLLECTIVE},
    {"order": many(TEXT, "of the ring"), "at_least_s": maybe(SECONDS)},
    "the time of a collective",
)
SHARD = record(
    {
        "schema": exactly("roofdsl.shard/1"),
        "kernel": TEXT,
        "machine": TEXT,
        "devices": COUNT,
        "split": TEXT,
        "parts": many(TEXT, "arrays of which each device holds a part"),
        "whole": many(TEXT, "arrays that each device holds whole"),
        "sums": many(TEXT, "arrays of which each device computes a summand"),
        "topology": TEXT,
        "work_flops": OPERATIONS,
        "flops_per_s": OPERATIONS_PER_S,
        "compute_s": SECONDS,
        "communication_s": SECONDS,
        "time_s": SECONDS,
        "time_no_overlap_s": SECONDS,
        "bound": TEXT,
        "communication": many(record({"array": TEXT, **_COLLECTIVE})),
        "break_even": many(ref("break_even")),
        "device": ref("prediction"),
    },
    about="a product on several devices",
)

DEFINITIONS: dict[str, Schema] = {
    "level": LEVEL, "prediction": PREDICTION, "program_prediction": PROGRAM, "speed_of_light": SOL, "advice": ADVICE,
    "shard": SHARD,
}  # fmt: skip
