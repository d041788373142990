"""`roofdsl.derive/1`: a derivation as a JSON document (docs/commands.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Ratio, Share, Traffics, Work
from roofdsl.formulas.fact_text import facts_text
from roofdsl.loops.indirect import is_indirect

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
        **({"any_cache": _any_cache(d)} if d.any_cache is not None else {}),
        **({"data": share_entries(d)} if is_indirect(d.kernel) else {}),
        "notes": notes(d),
    }


def _any_cache(d: Derivation) -> Json:
    """Q(Z) with a symbolic Z; between bounds where the data decide."""
    assert d.any_cache is not None
    found = dict(moved_entries(d.any_cache))
    if d.between is not None:
        found["from_bytes"] = d.between.from_bytes
        found["shares"] = [_share(s) for s in d.between.shares]
        found["interval"] = _interval(d.interval(d.any_cache.bytes, d.between.shares))
        found["compulsory_from"] = entry(d.between.whole)
    return found


def share_entries(d: Derivation) -> Json:
    """What the data decide: the shares of indirect accesses, and between what the results lie."""
    at_cache = {"cache_shares": [_share(s) for s in d.cache_shares]} if d.cache_bytes is not None else {}
    return {
        "shares": [_share(s) for s in d.shares],
        **at_cache,
        "compulsory_bytes": _interval(d.interval(d.compulsory.bytes, d.shares)),
        "bytes": _interval(d.interval(d.at_cache.bytes, d.shares_at_cache)),
        "intensity": _interval(d.intensities()),
    }


def _share(share: Share) -> Json:
    return {
        "name": share.name,
        "array": share.array,
        "references": list(share.references),
        "accesses": entry(share.accesses),
        "element_bytes": share.element_bytes,
        "least": {"expr": extreme_expr("Max", share.least), "value": _optional_number(share.low)},
        "most": {"expr": extreme_expr("Min", share.most), "value": _optional_number(share.high)},
        "stated": _optional_number(share.stated),
        "value": _optional_number(share.value),
    }


def extreme_expr(kind: str, ratios: Sequence[Ratio]) -> str | None:
    """The bound of a share as text that sympy reads; None if a form is missing."""
    parts = [r.expr for r in ratios]
    if any(p is None for p in parts):
        return None
    return parts[0] if len(parts) == 1 else f"{kind}({', '.join(map(str, parts))})"


def _interval(ends: tuple[Fraction, Fraction] | None) -> Json | None:
    return None if ends is None else {"least": number(ends[0]), "most": number(ends[1])}


def _optional_number(value: Fraction | None) -> int | float | None:
    return None if value is None else number(value)


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
