"""Numbers that data choose: unlike other numbers, they cost what is computed from them (rule 2)."""

from __future__ import annotations

from roofdsl.loops.accesses import parts
from roofdsl.loops.model import DataCompare, Element, Expr, LetRef, ScalarRef, Select


def has_chosen_numbers(e: Expr | DataCompare) -> bool:
    """Whether an expression has a `select` of numbers, such as `select(a[i] > 0, 1, 2)`."""
    if isinstance(e, Select) and not any(map(_reads_data, (e.if_true, e.if_false))):
        return True
    return any(map(has_chosen_numbers, parts(e)))


def _reads_data(e: Expr | DataCompare) -> bool:
    """Whether an expression has a type of its own; the condition of a `select` gives it none."""
    typed = (e.if_true, e.if_false) if isinstance(e, Select) else parts(e)
    return isinstance(e, ScalarRef | Element | LetRef) or any(map(_reads_data, typed))
