"""`roofdsl.derive/1`: a derivation as a JSON document (docs/commands.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Ratio, Traffics, Work
from roofdsl.formulas.fact_text import facts_text

Json = dict[str, Any]

SCHEMA = "roofdsl.derive/1"
NO_WORK = "W = 0: no intensity"
NOTHING_MOVED = "Q = 0: no intensity"


def together(documents: Sequence[Json]) -> Json:
    """A single document unchanged; several under `kernels`."""
    return documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": list(documents)}


def to_json(d: Derivation) -> Json:
    """The document of one kernel."""
    moved = d.at_cache
    return {
        "schema": SCHEMA,
        "kernel": d.kernel.name,
        "parameters": dict(d.values),
        "traffic": d.convention,
        "work": work_entries(d.work),
        "counters": {name: entry(q) for name, q in d.counters.items()},
        "compulsory": {**moved_entries(d.compulsory), "by_array": {name: entry(q) for name, q in d.by_array.items()}},
        "cache": {"size_bytes": d.cache_bytes, "line_bytes": line_bytes(d)},
        **moved_entries(moved),
        "intensity": entry(d.intensity),
        "once_bytes": entry(d.once),
        "regimes": [_plateau(p) for p in d.plateaus],
        **({"any_cache": moved_entries(d.any_cache)} if d.any_cache is not None else {}),
        "notes": notes(d),
    }


def line_bytes(d: Derivation) -> int | None:
    """The given line, otherwise the size of an element if it is the same in all arrays; None if they differ."""
    sizes = {a.type.bytes for a in d.kernel.arrays if not a.is_scalar}
    return d.line_bytes if d.line_bytes is not None or len(sizes) != 1 else min(sizes)


def notes(d: Derivation) -> list[str]:
    """Notes on the derivation as a whole."""
    return [*d.notes, *([f"no plateaus: {d.plateaus_note}"] if d.plateaus_note else [])]


def work_entries(work: Work) -> Json:
    """W and its parts."""
    return {
        "total": entry(work.total),
        "by_class": {name: entry(q) for name, q in work.by_class.items()},
        "by_function": {name: entry(q) for name, q in work.by_function.items()},
        "fused_pairs": entry(work.fused_pairs),
        "fma_fraction": entry(work.fma_fraction),
        "by_type": {name: entry(q) for name, q in work.by_type.items()},
        "cmp": entry(work.cmp),
        "cast": entry(work.casts),
    }


def moved_entries(t: Traffics) -> Json:
    """Loads, stores and bytes."""
    return {"loads": _optional(t.loads), "stores": _optional(t.stores), "bytes": entry(t.bytes)}


def _plateau(p: Plateau) -> Json:
    return {
        "from_bytes": entry(p.from_bytes),
        "bytes": entry(p.bytes),
        "intensity": entry(p.intensity),
        "exact": p.exact,
        "all_bytes": entry(p.all_bytes),
        "until_bytes": _optional(p.until_bytes),
        **({} if p.where is None else {"assumes": str(p.where)}),
    }


def _optional(q: Quantity | None) -> Json | None:
    """An entry; None for a direction that the convention does not distinguish, and for anything that is missing."""
    return None if q is None else entry(q)


def entry(q: Quantity | Ratio) -> Json:
    """{"expr", "value"} and, if there are any, "assumes", "note" and "terms"."""
    out: Json = {
        "expr": q.expr,
        "value": None if q.value is None else number(q.value),
    }
    if q.assumes:
        out["assumes"] = facts_text(q.assumes)
    note = q.note or why_none(q)
    if note:
        out["note"] = note
    if isinstance(q, Quantity) and q.terms is not None:
        from roofdsl.tell.terms import terms_entry

        out["terms"] = terms_entry(q.terms)
    return out


def number(value: Fraction | int) -> int | float:
    """A JSON number, an integer if possible."""
    value = Fraction(value)
    return int(value) if value.denominator == 1 else float(value)


def why_none(q: Quantity | Ratio) -> str:
    """Why a ratio with known parts has no form: a division of 0 or by 0."""
    if not isinstance(q, Ratio) or q.numerator.form is None or q.denominator.form is None:
        return ""
    if q.of_work and not q.numerator.form.cases:
        return NO_WORK
    if not q.denominator.form.cases:
        return NOTHING_MOVED if q.of_work else "W = 0: no operations"
    return ""
