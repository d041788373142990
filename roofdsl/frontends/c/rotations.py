"""Arrays that a loop swaps at the end of each iteration: `t = a; a = b; b = t;`.

Which array a pointer points at follows from the number of the iteration: after as many iterations as there are arrays
in the cycle, each pointer is back where it began.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.frontends.c.context import Context, Known
from roofdsl.frontends.c.variables import Choice, Pointer, State, Swapped, Variable
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.lang import tree
from roofdsl.lang.source import Span

_MOST_TURNS = 4

Turn = dict[Variable, State]
"""What each of the pointers points at in one iteration."""


def source(end: Pointer, befores: Mapping[Variable, object], symbols: Mapping[Variable, Poly]) -> Variable | None:
    """The pointer whose place before an iteration (in `symbols`) is `end`, the place of another pointer after it."""
    for variable, before in befores.items():
        if isinstance(before, Pointer) and before.subscripts and end == before.at(symbols[variable]):
            return variable
    return None


def turns(starts: Mapping[Variable, State], befores: Mapping[Variable, object]) -> list[Turn]:
    """The first iterations until every pointer is back where it began; [] if no pointers are swapped."""
    sources = {v: s.source for v, s in starts.items() if isinstance(s, Swapped) and s.source is not None}
    moved = {v: v for v in sources if _returns(v, sources)}
    first = dict(moved)
    found: list[Turn] = []
    while moved and len(found) <= _MOST_TURNS:
        found.append({v: before for v, of in moved.items() if isinstance(before := befores[of], Pointer)})
        moved = {v: sources[of] for v, of in moved.items()}
        if moved == first:
            return found
    return []


def _returns(variable: Variable, sources: Mapping[Variable, Variable]) -> bool:
    """Whether a pointer gets back where it began. False for a `t` that is declared outside the loop: no pointer takes
    over the array at which it began.
    """
    at = variable
    for _ in sources:
        if at not in sources:
            return False
        at = sources[at]
        if at is variable:
            return True
    return False


def is_turn(count: Poly, of: int, turn: int, span: Span) -> Known:
    """The condition `count % of == turn`."""
    rest = quotient("%", count, of)
    answer = None if rest.value is None else rest.value == turn
    number = tree.Number(str(turn), turn, span)
    return Known(tree.Compare(rest.tree(span), (("==", number),), span), answer)


def after(context: Context, found: list[Turn], count: Poly, node: object, span: Span) -> Turn:
    """What the pointers point at after `count` iterations."""
    result = found[-1]
    for k in range(len(found) - 2, -1, -1):
        known = is_turn(count, len(found), k, span)
        if known.value is not None:
            result = found[k] if known.value else result
            continue
        place = context.choice_at(node, known)
        result = {v: Choice(place, known, state, result[v]) for v, state in found[k].items()}
    return result
