"""Numbers that data choose: unlike other numbers, they cost what is computed from them (rule 2)."""

from __future__ import annotations

from roofdsl.loops.model import Binary, Call, Element, Expr, LetRef, ScalarRef, Select, Unary


def has_chosen_numbers(e: Expr) -> bool:
    """Whether an expression has a `select` of numbers, such as `select(a[i] > 0, 1, 2)`."""
    match e:
        case Select():
            plain = not any(map(_reads_data, (e.if_true, e.if_false)))
            return plain or any(map(has_chosen_numbers, _parts(e)))
        case _:
            return any(map(has_chosen_numbers, _parts(e)))


def _reads_data(e: Expr) -> bool:
    """Whether an expression has a type of its own; the condition of a `select` gives it none."""
    parts = (e.if_true, e.if_false) if isinstance(e, Select) else _parts(e)
    return isinstance(e, ScalarRef | Element | LetRef) or any(map(_reads_data, parts))


def _parts(e: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    match e:
        case Unary():
            return (e.operand,)
        case Binary():
            return (e.left, e.right)
        case Call():
            return e.args
        case Select():
            return (e.condition.left, e.condition.right, e.if_true, e.if_false)
        case _:
            return ()
