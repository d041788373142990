"""The derivation of a program as a text report, as LaTeX, and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from roofdsl.counts.derived import Quantity, Ratio, Traffics
from roofdsl.counts.program import ProgramDerivation
from roofdsl.formulas.fact_text import facts_text
from roofdsl.machine.quantities import show_number, show_size
from roofdsl.sets.plateaus import Growth
from roofdsl.tell.as_latex import to_latex as render_latex
from roofdsl.tell.blocks import Block, Equation, Equations, Heading, Math, Paragraph, Sentence, Table
from roofdsl.tell.derive_equations import closed_form, part_name
from roofdsl.tell.derive_json import SCHEMA, entry, moved_entries, work_entries
from roofdsl.tell.derive_latex import HEAD
from roofdsl.tell.equation_lines import Row, missing_lines, render
from roofdsl.tell.equations import assumptions, joined, note_of, noted_with, word
from roofdsl.tell.line_breaks import WIDTH, aligned, fitted
from roofdsl.tell.quantity_rows import Rows, work_parts
from roofdsl.tell.words import CONVENTIONS, cache_title, exact_number, is_zero, operation_name

ORDER = Growth(frozenset())
WIDE = 64
"""The most characters of a form in a table; forms with several cases are left to --json."""
LONG = "(see --json)"
COLD = "Q is a sum over launches, each of which begins with empty caches."


def to_text(d: ProgramDerivation, width: int = WIDTH) -> str:
    """Launches, W, Q and I, in total and by kernel; width: the columns of a line."""
    return "\n".join(fitted(_lines(d, width), width)) + "\n"


def _lines(d: ProgramDerivation, width: int) -> Iterator[str]:
    yield _heading(d)
    yield f"{d.convention}: {CONVENTIONS[d.convention]}" if d.convention else "each kernel in its own convention"
    yield from _notes(d)
    said: set[str] = set()
    rows = Rows(d.work, ORDER, d.values)
    yield from _section("Launches", [rows.quantity("launches", d.launches)], said)
    yield from _section("Work", list(rows.work()), said)
    if is_zero(d.work.total):
        yield "  nothing is computed"
    yield from _section("Compulsory traffic", list(rows.traffic(d.compulsory)), said)
    if d.cache_bytes is not None:
        yield from _section(cache_title(d.cache_bytes, d.line_bytes), list(rows.traffic(d.at_cache)), said)
    if not is_zero(d.work.total):
        ratios = [rows.ratio("I = W/Q", d.intensity)]
        if d.cache_bytes is not None:
            ratios.append(rows.ratio("compulsory", Ratio(d.work.total, d.compulsory.bytes, of_work=True)))
        yield from _section("Intensity", ratios, said)
    yield ""
    yield "By kernel"
    yield from _table(_head(d), _cells(d), width)
    if d.exchanges:
        yield ""
        yield "Exchanged among devices (not in W and Q)"
        yield from _table(EXCHANGED, _exchanged(d), width)


Head = tuple[tuple[str, str], ...]
"""What stands in each column, and its unit; without a name it is the number of the column before."""


def _titles(head: Head) -> tuple[str, ...]:
    return tuple(f"{name} ({unit})" if unit else name for name, unit in head)


def _table(head: Head, rows: Iterable[tuple[Quantity | Ratio | str, ...]], width: int) -> Iterator[str]:
    table = [tuple(_cell(q) for q in cells) for cells in rows]
    keep = [k for k in range(len(head)) if any(row[k] for row in table)]
    kept = [[row[k] for k in keep] for row in (_titles(head), *table)]
    if sum(max(map(len, column)) + 2 for column in zip(*kept, strict=True)) > width:
        yield from _records(head, table)
    else:
        yield from (f"  {line}" for line in aligned(kept))


def _records(head: Head, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The rows of a table that is too wide, each as a heading and a line for each quantity."""
    for row in rows:
        yield f"  {row[0]}"
        for k, (name, unit) in enumerate(head[1:], 1):
            if name and row[k] not in ("", "-"):
                has_number = k + 1 < len(head) and not head[k + 1][0]
                shown = " = ".join(part for part in (row[k], row[k + 1] if has_number else "") if part)
                yield f"    {name} = {shown} {unit}".rstrip()


def _heading(d: ProgramDerivation) -> str:
    given = ", ".join(f"{n} = {v}" for n, v in d.values.items())
    return f"program {d.name}({', '.join(d.parameters)})" + (f", at {given}" if given else "")


def _notes(d: ProgramDerivation) -> list[str]:
    numbers = ", ".join(f"{n} = {v}" for n, v in d.settled.items())
    return [COLD, *([f"The forms are at {numbers}."] if numbers else []), *d.notes]


def _section(title: str, rows: Sequence[Row], said: set[str]) -> Iterator[str]:
    yield ""
    stated = facts_text(fact for r in rows for fact in r.assumes)
    yield f"{title}, for {stated}" if stated else title
    yield from (f"  {line}" for line in render(rows))
    yield from (f"  {line}" for line in missing_lines(rows, said))


def _head(d: ProgramDerivation) -> Head:
    operation, number = operation_name(d.work), ("", "")
    columns = (("launches", ""), ("W", operation), ("Q", "B"), ("I", f"{operation}/B"))
    return (("kernel", ""), *(each for column in columns for each in (column, number)))


def _cells(d: ProgramDerivation) -> Iterator[tuple[Quantity | Ratio | str, ...]]:
    for part in d.parts:
        found: list[Quantity | Ratio | str] = [part.label]
        for q in (part.launches, part.work, part.bytes, part.intensity):
            found += [q, _number(q)]
        yield tuple(found)


EXCHANGED: Head = (("collective", ""), ("times", ""), ("", ""), ("bytes of the arrays", "B"), ("", ""))


def _exchanged(d: ProgramDerivation) -> Iterator[tuple[Quantity | Ratio | str, ...]]:
    for e in d.exchanges:
        yield (e.label, e.times, _number(e.times), e.bytes, _number(e.bytes))


def _number(q: Quantity | Ratio) -> str:
    """The value of a quantity, if it says more than the form."""
    if q.value is None:
        return ""
    text = show_number(q.value) if isinstance(q, Ratio) else exact_number(q.value)
    return "" if text.replace(",", "") == _cell(q) else text


def _cell(q: Quantity | Ratio | str) -> str:
    if isinstance(q, str):
        return q
    form = closed_form(q)
    if form is None:
        return "-"
    return form.text if len(form.text) <= WIDE and " if " not in form.text else LONG


# ---- LaTeX ----


def to_latex(derivations: Sequence[ProgramDerivation]) -> str:
    """A fragment for slides and papers; needs amsmath."""
    lines = [HEAD]
    for d in derivations:
        lines += ["", f"% {_heading(d)}", *render_latex([Heading(_heading(d)), *_blocks(d)])]
    return "\n".join(lines) + "\n"


def _blocks(d: ProgramDerivation) -> Iterator[Block]:
    yield from (Paragraph((note,)) for note in _notes(d))
    convention: Sentence = (d.convention,) if d.convention else ()
    rows = [_equation(word("launches"), d.launches)]
    for part in work_parts(d.work):
        rows.append(_equation(part_name(part), part.of, part.unit, (part.remark,) if part.remark else ()))
    rows += _moved(Math("Q", "Q"), d.compulsory, convention)
    if d.cache_bytes is not None:
        at = show_size(d.cache_bytes)
        rows += _moved(Math(f"Q({at})", f"Q(\\text{{{at}}})"), d.at_cache, convention)
    if not is_zero(d.work.total):
        unit = f"{operation_name(d.work)}/B"
        rows.append(_equation(Math("I", "I"), d.intensity, unit, convention))
        if d.cache_bytes is not None:
            compulsory = Ratio(d.work.total, d.compulsory.bytes, of_work=True)
            rows.append(_equation(Math("I", "I"), compulsory, unit, ("compulsory",)))
    yield Equations(tuple(rows))
    yield Heading("By kernel")
    yield _latex_table(_head(d), _cells(d))
    if d.exchanges:
        yield Heading("Exchanged among devices")
        yield _latex_table(EXCHANGED, _exchanged(d))


def _moved(left: Math, t: Traffics, convention: Sentence) -> list[Equation]:
    """Q in bytes, and its loads and stores if they are distinguished."""
    both = (("loads", t.loads), ("stores", t.stores)) if t.loads is not None and t.stores is not None else ()
    parts = [_equation(word(label), noted_with(q, t.bytes), "B") for label, q in both if q is not None]
    return [_equation(left, t.bytes, "B", convention), *parts]


def _latex_table(head: Head, rows: Iterable[tuple[Quantity | Ratio | str, ...]]) -> Table:
    named: tuple[Sentence, ...] = tuple((cell,) if cell else () for cell in _titles(head))
    return Table(named, tuple(tuple(_sentence(q) for q in cells) for cells in rows))


def _equation(left: Math, q: Quantity | Ratio, unit: str = "", remark: Sentence = ()) -> Equation:
    form, value = closed_form(q), _number(q)
    sides = [form] if form is not None else []
    if value:
        sides.append(Math(value, value.replace(",", "{,}")))
    note = note_of(q, form is not None)
    told = joined([part for part in (remark, assumptions(q.assumes)) if part])
    return Equation(left, tuple(sides) or (word("?"),), unit, note or told)


def _sentence(q: Quantity | Ratio | str) -> Sentence:
    if isinstance(q, str):
        return (q,) if q else ()
    form = closed_form(q)
    if form is None:
        return ("-",)
    return (LONG,) if _cell(q) == LONG else (form,)


# ---- JSON ----


def to_json(d: ProgramDerivation) -> dict[str, Any]:
    """`roofdsl.derive/1`: keys as of a kernel, and `launches`, `by_kernel` and `exchanges`; there are no plateaus."""
    return {
        "schema": SCHEMA,
        "kernel": d.name,
        "program": True,
        "parameters": dict(d.values),
        "traffic": d.convention,
        "launches": entry(d.launches),
        "work": work_entries(d.work),
        "compulsory": moved_entries(d.compulsory),
        "cache": {"size_bytes": d.cache_bytes, "line_bytes": d.line_bytes},
        **moved_entries(d.at_cache),
        "intensity": entry(d.intensity),
        "once_bytes": entry(d.once),
        "regimes": [],
        "by_kernel": [
            {
                "label": p.label,
                "kernel": p.kernel.name,
                "launches": entry(p.launches),
                "work": entry(p.work),
                "bytes": entry(p.bytes),
                "intensity": entry(p.intensity),
            }
            for p in d.parts
        ],
        "exchanges": [
            {"label": e.label, "times": entry(e.times), "devices": entry(e.devices), "array_bytes": entry(e.bytes)}
            for e in d.exchanges
        ],
        "notes": _notes(d),
    }
