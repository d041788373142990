"""Schemas of what is generated, simulated and measured: `emit`, `simulate`, `measure`, `validate` and `import ncu`."""

from __future__ import annotations

from roofdsl.codegen.generated import Role
from roofdsl.loops.model import Traffic
from roofdsl.measure.verified import STATUS
from roofdsl.profiler.measured_points import ORIGINS
from roofdsl.simulate.cache_levels import Inclusion, Policy, Write, WriteMiss
from roofdsl.tell.schemas.parts import (
    AMOUNT,
    BYTES,
    BYTES_PER_S,
    COUNT,
    FLAG,
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
from roofdsl.tell.schemas.predictions import PARAMETERS
from roofdsl.validate.baseline import Verdict as BaselineVerdict
from roofdsl.validate.compare import Verdict
from roofdsl.validate.compare_points import Amount

# ---- emit ----

_ARGUMENT = record(
    {"name": TEXT, "role": one_of(Role), "type": TEXT, "shape": many(TEXT), "written": FLAG},
    {
        "order": one_of(["row-major", "column-major"]),
        "work_bytes": said(COUNT, "of memory for the threads' copies of an array: the most bytes it may take"),
    },
)
_LAUNCH = record({
    "function": TEXT, "grid": many(WHOLE), "block": many(WHOLE), "shared_bytes": BYTES, "values": many(WHOLE),
})  # fmt: skip
_CODE: dict[str, Schema] = {
    "kernel": TEXT,
    "target": TEXT,
    "variant": TEXT,
    "function": said(TEXT, "the name of the function"),
    "arguments": many(_ARGUMENT, "in the order of the call"),
    "parallel": many(TEXT, "the loops over cores or threads"),
    "sizes": table(WHOLE, "parameters that are numbers in the code"),
    "notes": many(TEXT),
    "source": TEXT,
}
_LAUNCHES = {"launches": many(_LAUNCH, "in order, the first 1000")}
_EMIT = {"schema": exactly("roofdsl.emit/1")}
EMIT = either(
    record(_EMIT | _CODE, _LAUNCHES, "the code of a kernel"),
    record({**_EMIT, "kernels": many(record(_CODE, _LAUNCHES))}),
)

# ---- simulate ----

_SIMULATED_LEVEL = record({
    "name": TEXT,
    "loads": said(COUNT, "lines that cross the boundary behind the level"),
    "stores": said(COUNT, "lines that cross the boundary behind the level"),
    "hits": COUNT, "misses": COUNT, "bytes": BYTES, "load_bytes": BYTES, "store_bytes": BYTES,
    "unit_bytes": said(maybe(COUNT), "what loads and stores count; null: each element is its own line"),
    "size_bytes": BYTES, "line_bytes": maybe(BYTES), "ways": maybe(COUNT), "policy": one_of(Policy),
    "bypass": said(FLAG, "an access may go past the cache (only with the policy opt)"),
    "write": one_of(Write), "write_miss": maybe(one_of(WriteMiss)), "inclusion": one_of(Inclusion),
})  # fmt: skip
_STEPS: dict[str, Schema] = {
    "traffic": one_of(Traffic), "line_bytes": maybe(BYTES), "sets": COUNT,
    "cache_bytes": many(BYTES, "the sizes at which Q changes"), "bytes": many(BYTES), "misses": many(COUNT),
}  # fmt: skip
_CURVE = record(_STEPS, about="Q(Z) at every size at which it changes, under LRU")
_BEST_CURVE = record(
    {"policy": exactly("opt"), "bypass": FLAG, **_STEPS},
    about="Q(Z) under the best replacement, with --policy opt",
)
SIMULATION = record(
    {
        "schema": exactly("roofdsl.simulate/1"), "kernel": TEXT, "machine": maybe(TEXT), "parameters": PARAMETERS,
        "accesses": COUNT, "register_bytes": maybe(BYTES), "scalar_load_bytes": BYTES, "scalar_store_bytes": BYTES,
        "levels": many(_SIMULATED_LEVEL, "from the registers outwards"),
    },
    {
        "curve": _CURVE, "best_curve": _BEST_CURVE,
        "streamed_bytes": said(BYTES, "of stores that bypass the caches"),
        "data": said(many(TEXT), "where the values of index arrays are from"),
    },
    "every access of a kernel through caches",
)  # fmt: skip

# ---- measure ----

_OF_THE_BACKEND: Schema = {"type": "object", "description": "what the back end reports; the keys depend on it"}
_VERIFIED = record({
    "status": one_of(STATUS.values()), "against": TEXT, "max_error": AMOUNT,
    "of_allowed": said(AMOUNT, "the error over what rounding allows"),
    "unverified": said(AMOUNT, "the share of results that is not compared"),
    "parameters": PARAMETERS, "unverifiable": many(TEXT),
})  # fmt: skip
_RUN: dict[str, Schema] = {
    "kernel": TEXT,
    "parameters": PARAMETERS,
    "variant": TEXT,
    "repeats": COUNT,
    "calls_per_repeat": COUNT,
    "state": one_of(["warm", "cold", "rotated"]),
    "threads": COUNT,
    "pinned": FLAG,
    "compiler": TEXT,
    "times_s": many(AMOUNT, "seconds per call, one for each repeat"),
    "median_s": SECONDS,
    "low_s": said(AMOUNT, "the 10th percentile, in seconds"),
    "high_s": said(AMOUNT, "the 90th percentile, in seconds"),
    "work_flops": OPERATIONS,
    "operation": TEXT,
    "flops_per_s": OPERATIONS_PER_S,
    "footprint_bytes": maybe(BYTES),
    "counters": table(WHOLE),
    "verified": _VERIFIED,
    "source": TEXT,
    "source_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "generated_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "warnings": many(TEXT),
    "details": _OF_THE_BACKEND,
}
_SHARED: dict[str, Schema] = {
    "schema": exactly("roofdsl.measurement/1"),
    "backend": one_of(["cpu", "gpu"]),
    "device": _OF_THE_BACKEND,
    "software": table(TEXT, "names and versions"),
    "when": said(TEXT, "in UTC"),
}
MEASUREMENT = record(
    _SHARED | _RUN,
    {"by_launch": many(record({"launches": COUNT, **_RUN}), "for a program: the launches of each kernel and size")},
    "the times of a kernel or program",
)

# ---- validate ----

_COMPARED: dict[str, Schema] = {
    "kernel": TEXT,
    "parameters": PARAMETERS,
    "predicted_s": said(AMOUNT, "the bound on the time, in seconds"),
    "expected_s": maybe(SECONDS),
    "measured_s": said(AMOUNT, "the median, in seconds"),
    "ratio": said(AMOUNT, "measured over expected performance"),
    "bound_ratio": said(AMOUNT, "measured performance over that of the bound"),
    "bound": TEXT,
    "verdict": one_of(Verdict),
}
_COMPARISON = record(
    {
        **_COMPARED, "machine": TEXT, "low_s": SECONDS, "high_s": SECONDS, "causes": many(TEXT),
        "disturbed": said(maybe(TEXT), "why the measurement is inconclusive"),
        "prediction": either(ref("prediction"), ref("program_prediction")), "measurement": ref("measurement"),
    },
    {"by_launch": many(record({**_COMPARED, "variant": TEXT, "launches": COUNT}))},
)  # fmt: skip
_POINT_LEVEL = record({
    "name": TEXT, "predicted_bytes": AMOUNT, "measured_bytes": AMOUNT, "measured_over_predicted": NUMBER,
    "verdict": one_of(Amount),
})  # fmt: skip
_POINT_CHECK = record({
    "kernel": TEXT, "machine": TEXT, "parameters": PARAMETERS, "point": TEXT, "origin": TEXT, "source": TEXT,
    "executions": COUNT, "predicted_s": SECONDS, "measured_s": maybe(SECONDS), "ratio": maybe(AMOUNT), "bound": TEXT,
    "verdict": maybe(one_of(Verdict)), "predicted_work_flops": OPERATIONS, "measured_work_flops": maybe(AMOUNT),
    "levels": many(_POINT_LEVEL), "not_measured": many(TEXT), "not_predicted": many(TEXT), "missing": many(TEXT),
})  # fmt: skip
_BASELINE_RUN: dict[str, Schema] = {"kernel": TEXT, "parameters": PARAMETERS, "variant": TEXT, "state": TEXT}
_BASELINE = record({
    "file": TEXT,
    "allowed": said(AMOUNT, "how much slower a run may be, as a fraction"),
    "level": said(AMOUNT, "how probable a false alarm may be, of all runs together"),
    "runs": many(record({
        **_BASELINE_RUN, "machine": TEXT, "baseline_s": maybe(SECONDS), "measured_s": SECONDS,
        "slower_by": said(maybe(NUMBER), "as a fraction"), "p": maybe(AMOUNT), "verdict": one_of(BaselineVerdict),
        "why": maybe(TEXT),
    })),
    "missing": many(record(_BASELINE_RUN), "runs of the baseline that were not measured now"),
})  # fmt: skip
VALIDATION = record(
    {"schema": exactly("roofdsl.validate/1"), "comparisons": many(_COMPARISON)},
    {"points": many(_POINT_CHECK, "a profiler's points"), "baseline": _BASELINE},
    "predictions and measurements",
)

# ---- import ----

_WORK = record({"type": TEXT, "add": AMOUNT, "mul": AMOUNT, "pairs": AMOUNT, "other": AMOUNT})
_MOVED = record({"name": TEXT, "bytes": AMOUNT, "intensity": maybe(AMOUNT), "bytes_per_s": maybe(BYTES_PER_S)})
POINTS = record(
    {
        "schema": exactly("roofdsl.points/1"), "origin": one_of(ORIGINS), "source": TEXT, "notes": many(TEXT),
        "points": many(record({
            "kernel": TEXT, "label": TEXT, "launches": COUNT, "time_s": maybe(SECONDS), "work": maybe(many(_WORK)),
            "work_flops": maybe(AMOUNT), "flops_per_s": maybe(OPERATIONS_PER_S), "fma_fraction": maybe(AMOUNT),
            "levels": many(_MOVED), "missing": many(TEXT),
        })),
    },
    about="kernels as a profiler measured them",
)  # fmt: skip

DEFINITIONS: dict[str, Schema] = {
    "simulation": SIMULATION, "measurement": MEASUREMENT,
}  # fmt: skip
