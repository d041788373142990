"""The sizes from which one term of the time takes as long as another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.formulas.quotients import Quotient
from roofdsl.formulas.writing import sides, text
from roofdsl.machine.quantities import group, show_number
from roofdsl.predict.break_even import BreakEven
from roofdsl.predict.time_forms import Terms
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.blocks import Block, Gap, Table, Title, figures
from roofdsl.tell.titles import sizes

Found = tuple[Terms, BreakEven]
"""The terms of a launch, and where two of them are equal."""

LONGEST = 90
"""Characters up to which a form is shown; longer ones are in the JSON."""


def blocks(
    title: str, found: Sequence[Found], total: Found | None, others: Mapping[str, int], values: Mapping[str, int]
) -> list[Block]:
    """The sizes and the formula of a kernel; of a program the sizes of its launches and of all together (`total`).

    others: the sizes given, without the parameter that grows; values: all that are known.
    """
    given = sizes(others.items())
    return [Title(title, f" (at {given})" if given else ""), Gap(), _table(found, total, values)]


def _table(found: Sequence[Found], total: Found | None, values: Mapping[str, int]) -> Table:
    if total is None:
        return figures(threshold_rows(found[0][1], values))
    rows = [(t.label, answer(c, values), _limit(c)) for t, c in found]
    head = ("", "", "limit (all other sizes large)") if any(limit for _, _, limit in rows) else ()
    return figures([*rows, ("all together", answer(total[1], values), "")], head)


def _limit(found: BreakEven) -> str:
    """What the threshold of one launch tends to, if it has a limit."""
    return "" if found.first is None or found.limit is None or found.limit <= 0 else show_number(found.limit)


def threshold_rows(found: BreakEven, values: Mapping[str, int]) -> list[tuple[str, str]]:
    """(term, result): first the value, then the formula and its limit."""
    rows = [(found.term, answer(found, values))]
    constant = None if found.form is None else found.form.constant()
    if found.form is not None and (constant is None or constant >= 1):
        decimals = "" if constant is None or constant.denominator == 1 else f" = {show_number(constant, 6)}"
        signs = {c > 0 for _, c in found.slope}
        shown = f"{found.parameter} {'<=' if signs == {False} else '>='} {text(found.form)}{decimals}"
        others = ", ".join(sorted(found.form.names()))
        if len(shown) <= LONGEST:
            rows.append(("", shown))
            if len(signs) == 2:
                more, less = sides(found.slope)
                rows.append(("", f"where {text(more)} > {text(less)}, else never"))
        if others and found.limit is not None and found.limit > 0:
            rows.append(("", f"{found.parameter} -> {show_number(found.limit)} as {others} grow{_s(others)}"))
    return rows


def _s(names: str) -> str:
    return "" if "," in names else "s"


def answer(found: BreakEven, values: Mapping[str, int]) -> str:
    """`from B = 276 on`, `never`, `at every B`; or what is missing if it is undecided."""
    name = found.parameter
    if found.intervals is None:
        missing = sorted((_names(found.form) | found.slope.names()) - values.keys() - {name})
        return f"give {', '.join(missing)} to get a number" if missing else "undecided: not a polynomial"
    if not found.intervals:
        return "never"
    parts = []
    for first, last in found.intervals:
        if first == last:
            parts.append(f"at {name} = {group(first)} only")
        elif last is None:
            parts.append(f"at every {name}" if first == 1 else f"from {name} = {group(first)} on")
        else:
            until = f"up to {name} = {group(last)}"
            parts.append(f"{until} only" if first == 1 else f"from {name} = {group(first)} {until}")
    return ", ".join(parts)


def _names(form: Quotient | None) -> frozenset[str]:
    return form.names() if form is not None else Quasi.constant(0).names()
