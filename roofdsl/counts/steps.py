"""The argument behind a derivation, as facts: what a teacher would write on the blackboard, step by step.

The facts are the executions and operations of each statement; the distinct elements of each array, and which of them
are loaded and stored; the distance of each reuse; and what each plateau of Q(Z) holds and moves. All of them come from
the analyses that produce the results; this module computes no number in a second way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derived import (
    Access,
    ArrayStep,
    LoopStep,
    Plateau,
    PlateauStep,
    Quantity,
    ReuseStep,
    StatementStep,
    Steps,
)
from roofdsl.counts.quantity_of import quantity
from roofdsl.counts.reuse_steps import ReuseFacts, element_text
from roofdsl.lang.source import Source, Span
from roofdsl.loops.accesses import scalar_bytes, statements
from roofdsl.loops.model import Assign, Count, Kernel, Traffic
from roofdsl.loops.streams import has_streams
from roofdsl.sets.access_sets import Reference
from roofdsl.sets.cases import Case, Cases, closed_form
from roofdsl.sets.count import count_symbolic
from roofdsl.sets.misses import Residencies
from roofdsl.sets.quasi import Quasi


def steps_of(
    closed: ClosedForms,
    convention: Traffic,
    plateaus: tuple[Plateau, ...],
    values: Mapping[str, int],
) -> Steps:
    """The facts behind the closed forms of `closed`, with values at `values` if those have all parameters."""
    loaded, stored = scalar_bytes(closed.kernel)
    reuses: tuple[ReuseStep, ...] = ()
    rows: tuple[PlateauStep, ...] = ()
    note = ""
    if plateaus:
        try:
            facts = ReuseFacts(closed, convention, values)
            reuses = facts.reuses()
            rows = facts.with_best(facts.plateaus(convention, plateaus, reuses))
            reuses = tuple(r for row in rows for r in row.held)
        except NoClosedForm as error:
            note = str(error)
    return Steps(
        _statements(closed, values),
        _arrays(closed, convention, values),
        (0 if convention == "once" else loaded, stored),
        reuses,
        rows,
        note,
        _streamed(closed, values),
    )


def _streamed(closed: ClosedForms, values: Mapping[str, int]) -> Quantity | None:
    if not has_streams(closed.kernel):
        return None
    each = [p.statement for p in statements(closed.kernel.body)]
    sizes = [s.target.array.type.bytes if isinstance(s, Assign) and s.stream else 0 for s in each]
    return quantity(lambda: closed.weighted(sizes), values)


# ---- operations ----


def _statements(closed: ClosedForms, values: Mapping[str, int]) -> tuple[StatementStep, ...]:
    found = []
    costs = closed.operations
    for k, (placed, cost) in enumerate(zip(statements(closed.kernel.body), costs, strict=True)):
        if isinstance(placed.statement, Count):
            continue

        def executions(k: int = k) -> Cases:
            return closed.weighted(int(k == other) for other in range(len(costs)))

        by_class: dict[str, int] = {}
        for (_, name), n in cost.operations.items():
            by_class[name] = by_class.get(name, 0) + n
        found.append(
            StatementStep(
                source_text(closed.kernel.source, placed.statement.span),
                tuple(LoopStep(loop.var, loop.start, loop.stop, loop.step) for loop in placed.loops),
                tuple(str(condition) for _, condition in placed.guards),
                quantity(executions, values),
                tuple(by_class.items()),
                sum(cost.fused_pairs.values()),
                cost.cmp,
                cost.casts,
            )
        )
    return tuple(found)


def statement_texts(kernel: Kernel) -> tuple[str, ...]:
    """The source text of each statement, as the steps quote it."""
    return tuple(source_text(kernel.source, placed.statement.span) for placed in statements(kernel.body))


def source_text(source: Source, span: Span) -> str:
    """The source text of a span, on one line."""
    lines = [source.line(n) for n in range(span.line, span.end_line + 1)]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return " ".join(" ".join(line.split("#")[0].split()) for line in lines)


# ---- compulsory traffic ----


def _arrays(closed: ClosedForms, convention: Traffic, values: Mapping[str, int]) -> tuple[ArrayStep, ...]:
    try:
        counted = {r.array: r for r in closed.residencies}
        references = _references(closed.line_sets.references)
    except NoClosedForm:
        return ()
    arrays = {a.name: a for a in closed.kernel.arrays}
    found = []
    for name, r in counted.items():

        def bytes_of(r: Residencies = r, part: str = "begun") -> Cases:
            return _compulsory_bytes(closed, r, part)

        def loads(r: Residencies = r) -> Cases:
            return _compulsory_bytes(closed, r, "begun" if convention == "write_allocate" else "begun_by_read")

        def stores(r: Residencies = r) -> Cases:
            return _compulsory_bytes(closed, r, "stored")

        touched = quantity(bytes_of, values)
        found.append(
            ArrayStep(
                name,
                references.get(name, ()),
                r.bytes,
                closed.line_bytes is not None,
                arrays[name].intent,
                _scaled(touched, r.bytes),
                touched,
                _first(closed, r),
                None if convention == "once" else quantity(loads, values),
                None if convention == "once" else quantity(stores, values),
            )
        )
    return tuple(found)


def _compulsory_bytes(closed: ClosedForms, r: Residencies, part: str) -> Cases:
    access_sets = closed.line_sets

    def form() -> Cases:
        parts = getattr(r, part)
        count = count_symbolic(parts if isinstance(parts, tuple) else [parts])
        if count is None:
            return Cases(())
        count = count.scale_val(r.bytes)
        return closed_form(count, access_sets.context, access_sets.sizes.meaning(), closed.facts(access_sets, 1))

    return closed.guard(form, "the steps")


def _scaled(q: Quantity, by: int) -> Quantity:
    if q.form is None:
        return Quantity(None, None if q.value is None else q.value / by, q.note)
    cases = tuple(Case(c.alternatives, c.value * Quasi.constant(by) ** -1) for c in q.form.cases)
    return Quantity(Cases(cases, q.form.assumes), None if q.value is None else q.value / by, q.note)


def _first(closed: ClosedForms, r: Residencies) -> Access:
    """The first kind of access to the elements of one array, and whether the other kind follows."""
    refs = [ref for ref in closed.line_sets.references if ref.array.name == r.array]
    writes = any(ref.writes for ref in refs)
    reads = any(ref.reads_first for ref in refs)
    if not writes:
        return "read"
    by_read, begun = r.begun_by_read.flat, r.begun.flat
    lines: Any = None
    for ref in refs:
        if ref.writes:
            part = ref.location.range()
            lines = part if lines is None else lines.union(part)
    if not reads:
        return "written"
    if not begun.is_subset(lines):
        return "mixed"
    if by_read.is_equal(begun):
        return "read, then written"
    if by_read.is_empty():
        return "written, then read"
    return "mixed"


def _references(references: Iterable[Reference]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for r in references:
        texts = found.setdefault(r.array.name, [])
        if element_text(r) not in texts:
            texts.append(element_text(r))
    return {name: tuple(texts) for name, texts in found.items()}
