"""Kernels whose second launch changes nothing, such as `Y[i] = max(Y[i], 0)`."""

from __future__ import annotations

from roofdsl.lang.record import replace
from roofdsl.loops.accesses import operands, statements
from roofdsl.loops.model import Assign, Call, Element, Expr, Kernel
from roofdsl.predict.level_time import LevelTime

CAUSE = "a launch after another changes no element, so its masked stores write nothing"


def changes_nothing_again(kernel: Kernel) -> bool:
    """Whether a second launch is known to store only numbers that are there already.

    That is so if every statement takes the minimum, or every one the maximum, of an element and of numbers that the
    kernel does not change.
    """
    placed = [p.statement for p in statements(kernel.body)]
    if not placed or not all(isinstance(s, Assign) and isinstance(s.target, Element) for s in placed):
        return False
    assigned = [s for s in placed if isinstance(s, Assign)]
    stored = {s.target.array.name for s in assigned}
    kinds = set()
    for statement in assigned:
        kind, others = _extremum(statement)
        kinds.add(kind)
        if any(e.array.name in stored for other in others for e in operands(other)):
            return False
    return len(kinds) == 1 and "" not in kinds


def _extremum(statement: Assign) -> tuple[str, tuple[Expr, ...]]:
    """(`min` or `max`, its operands other than the element itself); ("", ()) for other statements."""
    if statement.op in ("min=", "max="):
        return statement.op[:-1], (statement.value,)
    value = statement.value
    if statement.op == "=" and isinstance(value, Call) and value.function in ("min", "max"):
        others = tuple(a for a in value.args if a != statement.target)
        if len(others) < len(value.args):
            return value.function, others
    return "", ()


def without_stores(level: LevelTime) -> LevelTime:
    """The level's traffic if no line is changed, and so none is written back. The nearest level serves the same
    accesses.
    """
    loads = level.loads_bytes
    if loads is None or level.nearer == "registers":
        return level
    return replace(level, bytes=loads, stores_bytes=0, duplex_bytes=None if level.duplex_bytes is None else loads)
