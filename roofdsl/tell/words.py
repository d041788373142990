"""Words and small facts that all reports of a derivation share."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Work
from roofdsl.counts.forms import limit_of
from roofdsl.loops.integers import Condition
from roofdsl.machine.quantities import group, show_number, show_size
from roofdsl.sets.plateaus import Growth

CONVENTIONS = {
    "once": "every datum counts once, whether it is read or written",
    "load_store": "what is read before it is written is loaded, what is written is stored",
    "write_allocate": "as load_store, and what is written first is loaded too",
}

NO_PAIR = "no fused pair: at most half the fused peak"
EXACT = "exact, compulsory"
"""Of a plateau: its bytes are no leading terms, and as few as there can be."""


def has_work(d: Derivation) -> bool:
    """Whether anything is computed, as far as is known (rule 16)."""
    return d.work.total.form is None or bool(d.work.total.form.cases)


def heading(d: Derivation) -> str:
    """`gemv(n) at n = 4096`, with the kernel's assumptions."""
    given = ", ".join(f"{n} = {v}" for n, v in d.values.items())
    constants = ", ".join(f"{n} = {v}" for n, v in d.kernel.constants)
    parts = [f"{d.kernel.name}({', '.join(p.name for p in d.kernel.parameters)})"]
    if constants:
        parts.append(f"with {constants}")
    if d.kernel.assumptions:
        parts.append(f"where {', '.join(str(a) for a in d.kernel.assumptions)}")
    return " ".join(parts) + (f", at {given}" if given else "")


def operation_name(work: Work) -> str:
    """FLOP or OP; OP where only whole numbers are computed with."""
    types = list(work.by_type)
    return "OP" if types and all(t.startswith("i") for t in types) else "FLOP"


def class_name(of: str) -> str:
    """A class of operations in words: minima and maxima are one class, `min`."""
    return "min/max" if of == "min" else of


def once_differs(d: Derivation) -> bool:
    """Whether the textbook's count, each datum once, is another than the one printed (rule 11)."""
    printed = d.at_cache.bytes
    return d.convention != "once" and (d.once.form != printed.form or d.once.value != printed.value)


def ceiling(alpha: Fraction | None) -> str:
    """(2 alpha + 1 - alpha) / 2 as a percentage."""
    return "" if alpha is None else f"{show_number((1 + alpha) * 50)} %"


def fused_share(d: Derivation, order: Growth) -> Fraction | None:
    """alpha at the sizes given, else its limit for large ones where that is a number."""
    if d.work.fma_fraction.value is not None:
        return d.work.fma_fraction.value
    limit = limit_of(d.work.fma_fraction, order, d.values)
    return None if limit is None else limit.constant()


def size_order(d: Derivation, order: Growth) -> list[str]:
    """How the parameters are taken to compare in size, in words."""
    names = [p.name for p in d.kernel.parameters]
    tiles = [n for n in names if n in order.tiles]
    extents = [n for n in names if n not in order.tiles]
    words = [f"{', '.join(extents)} of about one size"] if len(extents) > 1 else []
    return words + ([f"{', '.join(tiles)} far below {', '.join(extents)}"] if tiles and extents else [])


def plateaus_by_sizes(d: Derivation) -> list[tuple[Condition | None, list[Plateau]]]:
    """The plateaus, those together that hold for the same remainders of the sizes."""
    found: dict[Condition | None, list[Plateau]] = {}
    for p in d.plateaus:
        found.setdefault(p.where, []).append(p)
    return list(found.items())


def is_zero(q: Quantity) -> bool:
    return q.form is not None and not q.form.cases


def exact_number(value: Fraction) -> str:
    """An exact count with thousands apart, or a fraction."""
    return group(int(value)) if value.denominator == 1 else show_number(value, 6)


def cache_title(cache_bytes: int, line_bytes: int | None) -> str:
    """The title of the section of Q at a cache."""
    line = "" if line_bytes is None else f" in lines of {show_size(line_bytes)}"
    return f"Traffic through a cache of {show_size(cache_bytes)}{line}"
