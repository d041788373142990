"""A kernel's traffic in the cache lines of a machine as closed forms, and what these assume about rows of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm

from roofdsl import budget
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm, PlateauBytes
from roofdsl.counts.readable_forms import quasi_of
from roofdsl.counts.traffic_at import QUICK_OPERATIONS
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Array, Kernel, Traffic
from roofdsl.page.count_forms import Held, PlateauForm, Rows, TrafficForms, every_access, held, large_sizes, on_plateau
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.child_process import Raised, Stopped, in_child
from roofdsl.sets.facts import Row
from roofdsl.sets.quasi import Quasi, floor

MOST_LINES = 32
"""The most lines by which a parameter is made longer to find rows that are longer by whole lines."""

LONGEST_S, LEAST_S = 4.0, 0.25
"""The processor time in seconds after which plateaus in lines are given up, and the least that they get if the budget
has less left."""


def in_lines(kernel: Kernel, convention: Traffic, line_bytes: int, moved_bytes: int) -> TrafficForms:
    """The forms for lines of `line_bytes`, of which `moved_bytes` move at a time, as far as they are found quickly."""
    forms = ClosedForms(kernel, {}, line_bytes, QUICK_OPERATIONS)
    notes = []
    compulsory, lines = _all_lines(kernel, forms, convention, moved_bytes)
    if compulsory is None:
        notes.append("compulsory traffic in lines has no closed form")
    any_cache = None
    for way in (forms.at_any_cache, forms.terms_at_any_cache):
        try:
            found = way(convention)
            any_cache = held(found.total, loads=found.loads)
            break
        except NoClosedForm as error:
            notes.append(str(error))
    plateaus: list[PlateauForm] = []
    try:
        plateaus = [
            PlateauForm(r.from_bytes, on_plateau(r.all_bytes, _single(r.bytes), r.where), r.bytes, r.end_bytes, r.where)
            for r in _plateau_forms(forms, convention)
        ]
    except NoClosedForm as error:
        notes.append(str(error))
    smallest = min((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=1)
    if moved_bytes != line_bytes:
        notes.insert(0, f"sectors of {moved_bytes} B of lines of {line_bytes} B have no closed form")
    return TrafficForms(
        line_bytes,
        convention,
        any_cache,
        line_bytes,
        line_bytes,
        compulsory,
        lines,
        tuple(plateaus),
        notes[0] if notes else "",
        _rows(forms),
        every_access(forms, convention, moved_bytes),
        None if moved_bytes == line_bytes else moved_bytes,
        smallest,
        large_sizes(forms, line_bytes // smallest) if plateaus else (),
    )


def _all_lines(
    kernel: Kernel, forms: ClosedForms, convention: Traffic, moved_bytes: int
) -> tuple[Held | None, tuple[Held, ...]]:
    """Compulsory traffic in units of `moved_bytes`, and by array the bytes of all lines touched. None, () if no form is
    found.
    """
    assert forms.line_bytes is not None
    if _whole_arrays(kernel):
        moved, touched = (_whole_lines(kernel, unit) for unit in (moved_bytes, forms.line_bytes))
        stored = scalar_bytes(kernel)
        total = Quasi.constant(stored[1] if convention == "once" else sum(stored))
        loads = Quasi.constant(stored[0])
        for array, size in moved:
            loaded = convention == "write_allocate" or array.intent in ("in", "inout")
            loads += size * int(loaded)
            total += size * (1 if convention == "once" else int(loaded) + int(array.intent in ("out", "inout")))
        told = None if convention == "once" else _single(loads)
        return held(_single(total), loads=told), tuple(held(_single(size)) for _, size in touched)
    moved_forms = forms if moved_bytes == forms.line_bytes else ClosedForms(kernel, {}, moved_bytes, QUICK_OPERATIONS)
    try:
        found = moved_forms.compulsory(convention)
        return held(found.total, loads=found.loads), tuple(map(held, forms.by_array().values()))
    except NoClosedForm:
        return None, ()


def _single(value: Quasi) -> Cases:
    return Cases((Case((), value),))


def _whole_lines(kernel: Kernel, unit: int) -> list[tuple[Array, Quasi]]:
    """The bytes of all lines of `unit` bytes of each array in its memory layout, with contiguous rows."""
    return [(a, floor((_array_bytes(a) + (unit - 1)) * Fraction(1, unit)) * unit) for a in _stored(kernel)]


def _stored(kernel: Kernel) -> list[Array]:
    return [a for a in kernel.arrays if not a.is_scalar]


def _array_bytes(array: Array) -> Quasi:
    """The size of an array in bytes. Raises ValueError if it is not a quasi-polynomial."""
    total = Quasi.constant(array.type.bytes)
    for extent in array.dims:
        total = total * quasi_of(extent)
    return total


def _whole_arrays(kernel: Kernel) -> bool:
    """Whether every element of every array is found to be touched at all sizes: each element of an `in` or `inout`
    array is loaded, and each element of an `out` or `inout` array is stored. False also if no closed form shows it.
    """
    if any(a.intent == "temp" for a in _stored(kernel)):
        return False
    forms = ClosedForms(kernel, {}, None, QUICK_OPERATIONS)
    loaded, stored = scalar_bytes(kernel)
    try:
        every = forms.compulsory("load_store")
        arrays = [(a.intent, _array_bytes(a)) for a in _stored(kernel)]
        reads = sum((size for intent, size in arrays if intent in ("in", "inout")), Quasi.constant(loaded))
        writes = sum((size for intent, size in arrays if intent in ("out", "inout")), Quasi.constant(stored))
    except (NoClosedForm, ValueError):
        return False
    found = [None if f is None or f.assumes else f.single for f in (every.loads, every.stores)]
    return found == [reads, writes]


def _rows(forms: ClosedForms) -> Rows | None:
    """What the forms assume about rows of arrays; None if nothing, or if a form is missing."""
    try:
        rows = forms.rows_aligned
    except NoClosedForm:
        return None
    return Rows(tuple(row.whole_lines for row in rows), _steps(rows)) if rows else None


def _steps(rows: Sequence[Row]) -> tuple[tuple[str, int], ...] | None:
    """By how much the parameters must grow for each row to be whole lines longer; None if no steps are found."""
    try:
        lengths = [(quasi_of(row.length), row.per_line) for row in rows]
    except ValueError:  # a length with a minimum, for example
        return None
    steps: dict[str, int] = {}
    for length, per_line in lengths:
        for name in length.names():
            lines = range(per_line, MOST_LINES * per_line + 1, per_line)
            own = next((step for step in lines if _are_lines(_growth(length, {name: step}), per_line)), None)
            if own is not None:
                steps[name] = lcm(steps.get(name, 1), own)
    if not all(_are_lines(_growth(length, steps), per_line) for length, per_line in lengths):
        return None
    return tuple(sorted(steps.items()))


def _growth(length: Quasi, steps: Mapping[str, int]) -> Quasi:
    return length.substitute({name: Quasi.symbol(name) + step for name, step in steps.items()}) - length


def _are_lines(elements: Quasi, per_line: int) -> bool:
    """Whether this is visibly a whole number of lines, and at least one, at all sizes."""
    counts = [(monomial, Fraction(count) / per_line) for monomial, count in elements]
    parts = [isinstance(name, str) and power > 0 for monomial, _ in counts for name, power in monomial]
    return bool(counts) and all(parts) and all(n > 0 and n.denominator == 1 for _, n in counts)


def _plateau_forms(forms: ClosedForms, convention: Traffic) -> tuple[PlateauBytes, ...]:
    """The plateaus, computed here only after a child process has shown that they do not take long.

    Raises NoClosedForm.
    """

    def task() -> str:
        return str(len(forms.plateau_forms(convention)))

    try:
        in_child(task, min(LONGEST_S, max(LEAST_S, budget.left_s())))
    except Stopped:
        raise NoClosedForm("its plateaus take too long to find") from None
    except Raised:
        return forms.plateau_forms(convention)  # raises it in this process, with the reason
    return forms.plateau_forms(convention)
