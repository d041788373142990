"""Equations and tables as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from roofdsl.counts.readable_forms import Branch, Form, condition_text
from roofdsl.formulas.fact_text import facts_text
from roofdsl.formulas.quotients import Alternatives
from roofdsl.formulas.writing import neat_text
from roofdsl.lang.record import Record, replace
from roofdsl.sets.facts import Fact
from roofdsl.tell.line_breaks import LONG
from roofdsl.tell.words import missing


class Row(Record):
    """`label = expression = value unit`, its limit, and a remark; `note` says why there is no expression."""

    label: str
    form: Form | None
    value: str = ""
    unit: str = ""
    tends: str = ""
    remark: str = ""
    assumes: tuple[Fact, ...] = ()
    note: str = ""
    equal: bool = True
    """Whether the expression gives the value. If not, since it is for other sizes, the two are on separate lines."""
    at: str = ""
    """The sizes of a value that the expression does not give."""


def render(rows: Sequence[Row], known: Collection[Alternatives] = ()) -> Iterator[str]:
    """Rows as lines with aligned equality signs; conditions in `known` are not repeated."""
    found = [part for r in rows if r.form is not None or r.value for part in _apart(r)]
    shown = [case for r in found for case in _cases(r, known)]
    label = max((len(r.label) for r in shown), default=0)
    texts = [_expression(r) for r in shown]
    width = max((len(t) for t in texts if len(t) <= LONG), default=0)
    starts = [_equation(r, t, label, width) for r, t in zip(shown, texts, strict=True)]
    tails = [_tail(r, known) for r in shown]
    # Conditions and remarks stand in a column behind the equations that are not too long; a longer one pushes only its
    # own out of that column.
    reached = [len(s) for s, tail in zip(starts, tails, strict=True) if any(tail)]
    reach = max((n for n in reached if n <= label + LONG), default=0)
    tend = max((len(tail[0]) for tail in tails if len(tail[0]) <= LONG), default=0)
    for row, start, tail in zip(shown, starts, tails, strict=True):
        yield "   ".join([start.ljust(reach), *([tail[0].ljust(tend)] if tend or tail[0] else []), tail[1]]).rstrip()
        if row.form is not None:
            yield from _more_cases(row.form.others, " " * label, row.form.main.where in known)


def missing_lines(rows: Iterable[Row], said: set[str]) -> Iterator[str]:
    """Why rows have no expression, or no value although they have one. Reasons in `said` are not repeated, and these
    are added.
    """
    for what, reason in dict.fromkeys((missing(r.form is not None), r.note) for r in rows if r.note):
        yield f"{what}, as above" if reason in said else f"{what}: {reason}"
        said.add(reason)


def _apart(row: Row) -> tuple[Row, ...]:
    """The row as it is or, if its expression holds only for other sizes, a row for the value and one for that."""
    if row.equal or not row.value or row.form is None:
        return (row,)
    label = " " * len(row.label)
    return (
        replace(
            row, form=None, tends="", remark=" ".join(t for t in (f"at {row.at}" if row.at else "", row.remark) if t)
        ),
        replace(row, label=label, value="", remark=f"for {facts_text(row.assumes)}" if row.assumes else "other sizes"),
    )


def _cases(row: Row, known: Collection[Alternatives]) -> tuple[Row, ...]:
    """A row whose form has two cases as two rows, if the conditions are to be shown and are short."""
    if row.form is None or row.form.main.where in known or len(row.form.others) != 1:
        return (row,)
    (other,) = row.form.others
    if len(condition_text(other.where)) > LONG:
        return (row,)
    label = " " * len(row.label)
    second = Row(label, replace(row.form, main=other, others=()), unit=row.unit)
    return (replace(row, form=replace(row.form, others=())), second)


def _expression(row: Row) -> str:
    return "" if row.form is None else neat_text(row.form.main.expr)


def _equation(row: Row, text: str, label: int, width: int) -> str:
    unit = f" {row.unit}" if row.unit else ""
    if not text or row.value.replace(",", "") == text:
        return f"{row.label.ljust(label)} = {row.value or text}{unit}"
    if not row.value:
        return f"{row.label.ljust(label)} = {text}{unit}"
    return f"{row.label.ljust(label)} = {text.ljust(width)} = {row.value}{unit}"


def _tail(row: Row, known: Collection[Alternatives]) -> tuple[str, str]:
    where = () if row.form is None else row.form.main.where
    condition = f"if {condition_text(where)}" if where and where not in known else ""
    return row.tends, "  ".join(t for t in (condition, row.remark) if t)


def _more_cases(others: Sequence[Branch], margin: str, hoisted: bool) -> Iterator[str]:
    if others and not hoisted:
        yield f"{margin}   and {len(others)} {'case' if len(others) == 1 else 'cases'} for other sizes (see --json)"
