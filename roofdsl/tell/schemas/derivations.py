"""Schemas of closed forms: `derive`, `bound`, `threshold` and `suite --symbolic`."""

from __future__ import annotations

from roofdsl.loops.model import Traffic
from roofdsl.tell.schemas.parts import (
    AMOUNT,
    BYTES,
    COUNT,
    FLAG,
    NOTHING,
    NUMBER,
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

ENTRY = record(
    {
        "expr": said(maybe(TEXT), "the closed form, which sympy can read; null if there is none"),
        "value": said(maybe(NUMBER), "the number at the given parameters; null if one of them is not given"),
    },
    {
        "assumes": said(TEXT, "what the form holds for"),
        "note": said(TEXT, "why there is no form"),
        "terms": ref("terms"),
    },
    "a quantity in closed form and as a number",
)

_ENDS = {"from": TEXT, "to": TEXT}
TERMS = record(
    {
        "sum": many(record(
            {"expr": TEXT, "if": said(maybe(TEXT), "null: the term always counts")},
            {"over": record({"name": TEXT, **_ENDS})},
        )),
        "where": many(either(
            record({"name": TEXT, "is": exactly("bounded"), "of": TEXT, **_ENDS}),
            record({"name": TEXT, "is": one_of(["greatest", "least"]), "of": TEXT, "at_most": TEXT, **_ENDS}),
        )),
    },
    about="a form that is a sum of terms, each with its condition",
)  # fmt: skip

_ENTRY = ref("entry")
_ENTRIES = table(_ENTRY)
WORK = record(
    {
        "total": _ENTRY, "by_class": _ENTRIES, "by_function": _ENTRIES, "fused_pairs": _ENTRY, "fma_fraction": _ENTRY,
        "by_type": _ENTRIES, "cmp": _ENTRY, "cast": _ENTRY,
    }
)  # fmt: skip

_NONE_UNDER_ONCE = maybe(_ENTRY)
_MOVED = {"loads": _NONE_UNDER_ONCE, "stores": _NONE_UNDER_ONCE, "bytes": _ENTRY}
_PLATEAU = record(
    {
        "from_bytes": _ENTRY, "bytes": _ENTRY, "intensity": _ENTRY, "exact": FLAG, "all_bytes": _ENTRY,
        "until_bytes": maybe(_ENTRY),
    },
    {"assumes": TEXT},
    "a plateau of Q(Z): leading terms from a size of the cache on",
)  # fmt: skip
_CACHE = record({"size_bytes": maybe(BYTES), "line_bytes": maybe(BYTES)})
_HEAD: Schema = {"schema": exactly("roofdsl.derive/1"), "kernel": TEXT}
_AT_CACHE = {"cache": _CACHE, **_MOVED, "intensity": _ENTRY, "once_bytes": _ENTRY}
_PARAMETERS = table(WHOLE, "the given values of parameters")

_BOUND = record({"expr": maybe(TEXT), "value": maybe(NUMBER)})
_INTERVAL = maybe(record({"least": NUMBER, "most": NUMBER}))
_SHARES = many(record(
    {
        "name": said(TEXT, "the symbol in the forms"), "array": TEXT, "references": many(TEXT), "accesses": _ENTRY,
        "element_bytes": BYTES, "least": _BOUND, "most": _BOUND,
        "stated": said(maybe(NUMBER), "what the kernel assumes"), "value": said(maybe(NUMBER), "for the data given"),
    },
    about="alpha: the bytes that move when an array is accessed, by the accesses and the bytes of an element",
))  # fmt: skip
_BETWEEN = {
    "from_bytes": said(BYTES, "the least Z for which it holds"), "shares": _SHARES, "interval": _INTERVAL,
    "compulsory_from": said(_ENTRY, "the Z from which on it is the compulsory traffic"),
}  # fmt: skip
_DATA = record(
    {"shares": _SHARES, "compulsory_bytes": _INTERVAL, "bytes": _INTERVAL, "intensity": _INTERVAL},
    {"cache_shares": _SHARES},
    "of a kernel with index arrays: what the data decide, and between what the results lie",
)

KERNEL = record(
    {
        **_HEAD,
        "parameters": _PARAMETERS,
        "traffic": one_of(Traffic),
        "work": ref("work"),
        "counters": said(_ENTRIES, "totals of `count` statements"),
        "compulsory": record({**_MOVED, "by_array": _ENTRIES}),
        **_AT_CACHE,
        "regimes": many(_PLATEAU),
        "notes": many(TEXT),
    },
    {"any_cache": record(_MOVED, _BETWEEN, "Q(Z) with a symbolic Z"), "data": _DATA},
    "the derivation of a kernel",
)

PROGRAM = record(
    {
        **_HEAD,
        "program": {"const": True},
        "parameters": _PARAMETERS,
        "traffic": maybe(one_of(Traffic)),
        "launches": _ENTRY,
        "work": ref("work"),
        "compulsory": record(_MOVED),
        **_AT_CACHE,
        "regimes": said(many(_PLATEAU) | {"maxItems": 0}, "empty: a program has no plateaus"),
        "by_kernel": many(record({
            "label": TEXT, "kernel": TEXT, "launches": _ENTRY, "work": _ENTRY, "bytes": _ENTRY, "intensity": _ENTRY,
        })),
        "exchanges": many(record({"label": TEXT, "times": _ENTRY, "devices": _ENTRY, "array_bytes": _ENTRY})),
        "notes": many(TEXT),
    },
    about="the derivation of a program: sums over its launches",
)  # fmt: skip

# ---- bound ----

_VALUE = maybe(AMOUNT)
_ELEMENTS = said(COUNT, "in elements")
_LEVEL = record(
    {
        "name": TEXT, "cache_bytes": BYTES, "elements": COUNT, "lower_bound_loads": _ELEMENTS, "argument": TEXT,
        "schedule_loads": maybe(_ELEMENTS), "tile": maybe(many(COUNT)), "tiled_loads": maybe(_ELEMENTS),
        "ratio": maybe(AMOUNT),
    }
)  # fmt: skip
_BLOCK = record({"rows": COUNT, "columns": COUNT, "steps": maybe(COUNT), "loads": _ELEMENTS, "exact": FLAG})
BOUND = record(
    {
        "schema": exactly("roofdsl.bound/1"),
        "kernel": TEXT,
        "parameters": _PARAMETERS,
        "size_symbol": said(TEXT, "the symbol of the fast memory's size in elements"),
        "element_bytes": maybe(BYTES),
        "lower_bound_loads": record({"expr": TEXT, "value": _VALUE}),
        "leading": table(TEXT, "leading terms by argument"),
        "arguments": table(record({"expr": TEXT})),
        "valid_when": TEXT,
        "intensity": maybe(record({"expr": TEXT, "value": NOTHING, "assumes": TEXT})),
        "tile": table(record({"expr": TEXT, "value": _VALUE}), "the size of the best tile, by loop"),
        "order": maybe(many(TEXT)),
        "tiled_loads": record({"expr": maybe(TEXT), "value": _VALUE}, {"note": TEXT}),
        "schedule_loads": record({"expr": NOTHING, "value": _VALUE, "note": TEXT}),
        "ratio": record({"expr": NOTHING, "value": _VALUE}),
        "levels": many(_LEVEL),
        "nested": maybe(record({"lines": many(TEXT), "levels": many(_BLOCK)}, {"note": TEXT})),
        "notes": many(TEXT),
    },
    about="a lower bound on the loads of any order of a kernel",
)

# ---- threshold ----

_FORM = record({"expr": maybe(TEXT), "value": NOTHING})
_BOUNDS = {
    "kernel": TEXT,
    "label": TEXT,
    "launches": said(TEXT, "their number, or its form in the parameters"),
    "work": _FORM,
    "bytes": _FORM,
    "bounds": many(record({"from": WHOLE, "to": maybe(WHOLE), "names": many(TEXT)})),
    "exact": FLAG,
    "searched_to": maybe(COUNT),
    "note": TEXT,
}
_OVER = {"schema": exactly("roofdsl.threshold/1"), "machine": TEXT, "over": TEXT, "parameters": _PARAMETERS}
THRESHOLD = record(
    {**_OVER, **_BOUNDS},
    {"by_launch": many(record(_BOUNDS))},
    "what bounds a kernel or program as one parameter grows",
)
BREAK_EVEN = record(
    {
        "term": TEXT,
        "parameter": TEXT,
        "expr": maybe(TEXT),
        "limit": maybe(NUMBER),
        "from": maybe(WHOLE),
        "intervals": maybe(many({"type": "array", "items": maybe(WHOLE), "minItems": 2, "maxItems": 2})),
    },
    about="from which value of a parameter on one term takes as long as another",
)
FORMULA = record(
    {
        **_OVER,
        "kernel": TEXT,
        "between": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2},
        "formulas": many(record({"launch": TEXT, **BREAK_EVEN["properties"]})),
        "together": maybe(ref("break_even")),
    },
    about="the sizes at which two terms take equally long, in closed form",
)

DEFINITIONS: dict[str, Schema] = {
    "entry": ENTRY, "terms": TERMS, "work": WORK, "derivation": KERNEL, "program_derivation": PROGRAM,
    "lower_bound": BOUND, "threshold": THRESHOLD, "threshold_formula": FORMULA, "break_even": BREAK_EVEN,
}  # fmt: skip
