"""Changes of data and arithmetic: types, matrix units, streaming stores, reciprocals, layouts, ceilings."""

from __future__ import annotations

from roofdsl.advise import edits
from roofdsl.advise.candidate import Candidate, Found, Refused, Subject
from roofdsl.advise.divisions import kinds_of, with_reciprocals
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.model import Assign, Let
from roofdsl.loops.streams import why_not_past_caches
from roofdsl.loops.transform import apply
from roofdsl.predict.contraction import is_contraction

NARROWER = {"f64": ("f32",), "c128": ("f32",), "f32": ("f16", "bf16"), "c64": ()}
"""The next narrower types of each type; for complex types, those of their parts."""

INPUTS = ("bf16", "f16", "tf32")
"""The input types of matrix units that accumulate in f32."""


def types(subject: Subject) -> Found:
    """The whole kernel in a narrower type."""
    own = {a.type.name for a in subject.kernel.arrays}
    if subject.kernel.unit is not None:
        return  # on a matrix unit, factors must have its input type, and sums the type of its accumulator
    widest = "f32" if "f32" in own else ""
    if own & {"f64", "c128"}:
        widest = "f64"
    for to in NARROWER.get(widest, ()):
        what = f"{to} in place of {widest}"
        if to not in subject.case.machine.types:
            yield Refused("type", what, f"{subject.case.machine.name} has no rate for {to}")
            continue
        changed = edits.with_types(subject.syntax, {widest: to, "c128": "c64"} if to == "f32" else {widest: to})
        yield Candidate("type", what, subject.text(changed), _ROUNDED, rounding=True, precision=True)


_ROUNDED = "the same operations, rounded to fewer digits"


def tensor(subject: Subject) -> Found:
    """A contraction on matrix units: unchanged, and with its factors in the units' input types."""
    kernel, machine = subject.kernel, subject.case.machine
    have = [p.type for p in machine.peaks if p.cls == "tensor"]
    if not have or kernel.unit is not None or subject.case.options.unit is not None:
        return
    if not is_contraction(kernel):
        yield Refused("tensor", "matrix units", "they apply only to sums of products of two arrays")
        return
    unit = tree.Unit(edits.name("tensor"), edits.HERE)
    own = {a.type.name for a in kernel.arrays}
    compute = kernel.compute_type.name if kernel.compute_type is not None else ""
    if own & set(have) or compute in have:
        text = subject.text(edits.with_items(subject.syntax, [unit]))
        yield Candidate("tensor", "matrix units", text, "the same sums of products; changes rounding", rounding=True)
    stored = {
        a.element.array.name
        for s in statements(kernel.body)
        if isinstance(s.statement, Assign | Let)
        for a in accesses(s.statement)
        if a.is_write
    }
    wide = own & {"f64", "f32"}
    factors = frozenset(a.name for a in kernel.arrays if a.name not in stored and a.type.name in wide)
    for to in INPUTS:
        if to not in have or not factors or to in own:
            continue  # not an input of these units, nothing to convert, or already the unchanged kernel above
        changed = edits.with_types(subject.syntax, {"f64": to, "f32": to}, factors)
        changed = edits.with_types(edits.without(changed, tree.Compute), {"f64": "f32"})
        text = subject.text(edits.with_items(changed, [unit]))
        what = f"matrix units, factors in {to}, sums in f32"
        yield Candidate("tensor", what, text, _ROUNDED, rounding=True, precision=True)


def stores(subject: Subject) -> Found:
    """Stores that bypass the caches, on machines that load a line before writing to it (write-allocate)."""
    if subject.now.prediction.traffic != "write_allocate" or subject.case.options.traffic is not None:
        return
    what, why = "stores that bypass the caches (non-temporal stores)", why_not_past_caches(apply(subject.kernel))
    if why:
        yield Refused("stores", what, why)
        return
    text = subject.text(edits.with_streams(subject.syntax))
    yield Candidate("stores", what, text, "the same stores, without loading their lines first")


def reciprocals(subject: Subject) -> Found:
    """Divisions replaced by multiplications by a reciprocal."""
    changed = with_reciprocals(subject.syntax, kinds_of(subject.kernel))
    if changed is not None:
        because = "the same quotients, rounded twice"
        yield Candidate(
            "reciprocal", "reciprocals in place of divisions", subject.text(changed), because, rounding=True
        )
    elif any(p.cls == "div" for p in subject.now.prediction.parts):
        why = "no divisor is a number or constant in a loop, and no division is complex"
        yield Refused("reciprocal", "reciprocals in place of divisions", why)


def layouts(subject: Subject) -> Found:
    """Each array of at least two dimensions in the other layout: by columns instead of by rows, or the reverse."""
    for array in subject.kernel.arrays:
        if len(array.dims) >= 2:
            how = "rows" if array.column_major else "columns"
            text = subject.text(edits.with_layout(subject.syntax, array.name))
            because = "the elements of the array change places; code that fills or reads it must use this layout"
            yield Candidate("layout", f"{array.name} stored by {how}", text, because)


def ceilings(subject: Subject) -> Found:
    """For each ceiling of the given options: code that this ceiling does not limit."""
    own = subject.case.options.ceilings
    for ceiling in own:
        options = replace(subject.case.options, ceilings=tuple(c for c in own if c != ceiling))
        because = "the same kernel, compiled or written so that this ceiling no longer limits it"
        yield Candidate("ceiling", f'past the ceiling "{ceiling}"', "", because, options=options)
