"""Words and small facts that all reports of a derivation share."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.counts.derived import Derivation, Plateau, Quantity, Work
from roofdsl.counts.readable_forms import limit_of
from roofdsl.loops.integers import Condition
from roofdsl.loops.model import Traffic
from roofdsl.machine.quantities import group, show_number, show_size
from roofdsl.sets.plateaus import Growth

CONVENTIONS: dict[Traffic, str] = {
    "once": "every datum counts once, whether it is read or written",
    "load_store": "data that are read first are loaded, written data are stored",
    "write_allocate": "like load_store, but a write miss also loads its line",
}

NO_PAIR = "no fused pair: at most half the fused peak"
EXACT = "exact, compulsory"
"""Marks a plateau whose bytes are all terms, not only the leading ones, and the fewest possible."""


def has_work(d: Derivation) -> bool:
    """Whether anything is computed, as far as known (rule 16)."""
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
    """FLOP or OP; OP if all operations are on integers."""
    types = list(work.by_type)
    return "OP" if types and all(t.startswith("i") for t in types) else "FLOP"


def class_name(of: str) -> str:
    """A class of operations in words: minima and maxima are one class, `min`."""
    return "min/max" if of == "min" else of


def narrow_cases_text(count: int) -> str:
    """The sentence that stands for the cases of Q(Z) that are left out (see `counts.narrow_cases`)."""
    return f"{count} more cases hold only on single lines or narrow strips between these"


def once_differs(d: Derivation) -> bool:
    """Whether the textbook's count, each datum once, differs from the printed one (rule 11)."""
    printed = d.at_cache.bytes
    return d.convention != "once" and (d.once.form != printed.form or d.once.value != printed.value)


def ceiling(alpha: Fraction | None) -> str:
    """(1 + alpha) / 2 as a percentage; empty if alpha is not known."""
    return "" if alpha is None else f"{show_number((1 + alpha) * 50)} %"


def fused_share(d: Derivation, order: Growth) -> Fraction | None:
    """alpha at the given sizes, otherwise its limit for large sizes if that is a number."""
    if d.work.fma_fraction.value is not None:
        return d.work.fma_fraction.value
    limit = limit_of(d.work.fma_fraction, order, d.values)
    return None if limit is None else limit.constant()


def leading_terms(d: Derivation, order: Growth) -> str:
    """`leading terms, r = 3; h, w of about the same size`: what the plateaus assume of the parameters."""
    names = [p.name for p in d.kernel.parameters if p.name not in d.plateaus_at]
    tiles = [n for n in names if n in order.tiles]
    extents = [n for n in names if n not in order.tiles]
    assumed = [f"{name} = {value}" for name, value in d.plateaus_at.items()]
    assumed += [f"{', '.join(extents)} of about the same size"] if len(extents) > 1 else []
    assumed += [f"{', '.join(tiles)} far below {', '.join(extents)}"] if tiles and extents else []
    return f"leading terms, {'; '.join(assumed)}" if assumed else "leading terms"


def plateaus_by_sizes(d: Derivation) -> list[tuple[Condition | None, list[Plateau]]]:
    """The plateaus, grouped by the remainders of the sizes for which they hold."""
    found: dict[Condition | None, list[Plateau]] = {}
    for p in d.plateaus:
        found.setdefault(p.where, []).append(p)
    return list(found.items())


def is_zero(q: Quantity) -> bool:
    return q.form is not None and not q.form.cases


def missing(has_form: bool) -> str:
    """What the note of a quantity is about: its form, or its value at the sizes given if it has a form."""
    return "no number at these sizes" if has_form else "no closed form"


def exact_number(value: Fraction) -> str:
    """An exact count with thousands separators, or a fraction."""
    return group(int(value)) if value.denominator == 1 else show_number(value, 6)


def cache_title(cache_bytes: int, line_bytes: int | None) -> str:
    """The title of the section on Q at a cache size."""
    line = "" if line_bytes is None else f" in lines of {show_size(line_bytes)}"
    return f"Traffic through a cache of {show_size(cache_bytes)}{line}"
