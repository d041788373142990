"""Loops that numpy may run as an array axis, found from the loop's text alone, independently of the dependence
analyses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import elements
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Const, Sym, sub
from roofdsl.loops.model import Array, Assign, Element, For, If, Let, Node, ScalarRef


def independent(loop: For) -> bool:
    """Whether the text shows that no two iterations touch the same element if one of them writes it.

    Every array that is written has a dimension in which all its subscripts are the loop's variable plus the same rest;
    no scalar is written.
    """
    uses: dict[str, list[Element]] = {}
    written: set[str] = set()
    for node in leaf_statements(loop.body):
        for e in elements(node.value):
            uses.setdefault(e.array.name, []).append(e)
        if isinstance(node, Assign):
            if isinstance(node.target, ScalarRef):
                return False
            uses.setdefault(node.target.array.name, []).append(node.target)
            written.add(node.target.array.name)
    inside = set(_variables(loop.body))
    return all(own_places(uses[name], loop.var, inside) is not None for name in written)


def own_places(uses: Sequence[Element], var: str, inside: set[str]) -> frozenset[str] | None:
    """The symbols of what all subscripts in one dimension add to a loop's variable; None if there is no dimension in
    which they are the variable plus the same rest. inside: the variables that vary in an iteration of the loop.
    """
    for d in range(len(uses[0].subscripts)):
        rests = {_rest(e, d, var, inside) for e in uses}
        rest = rests.pop()
        if rest is not None and not rests:
            return frozenset(rest.hidden() | rest.coefficients().keys())
    return None


def _rest(e: Element, dimension: int, var: str, inside: set[str]) -> Affine | None:
    """What a subscript adds to the variable; None if its coefficient is not 1, or the rest depends on loops inside."""
    form = affine(e.subscripts[dimension])
    rest = Affine(form.constant, tuple((t, c) for t, c in form.terms if t != Sym(var)))
    symbols = rest.hidden() | rest.coefficients().keys()
    return rest if form.coefficients().get(var) == 1 and not symbols & (inside | {var}) else None


def runs_once(loop: For) -> bool:
    """Whether a loop certainly has at most one iteration."""
    lengths = (sub(stop, start) for stop in loop.stops for start in loop.starts)
    return loop.step == Const(1) and any(isinstance(n, Const) and n.value <= 1 for n in lengths)


def single_update(loop: For) -> Assign | None:
    """The update that is all a loop does (after `let`s), if its target is the same in every iteration; otherwise None.

    The `let`s do not read the target's array; the value may, unless the target is a scalar.
    """
    *lets, last = loop.body
    if not isinstance(last, Assign) or last.op not in ("+=", "-=", "min=", "max="):
        return None
    if not all(isinstance(node, Let) for node in lets):
        return None
    if isinstance(last.target, ScalarRef):
        name = last.target.array.name
        return None if any(name in mentioned(node.value) for node in leaf_statements(loop.body)) else last
    if any(loop.var in s.symbols() for s in last.target.subscripts):
        return None
    array = last.target.array.name
    read = [e for node in lets if isinstance(node, Let) for e in elements(node.value)]
    return None if any(e.array.name == array for e in read) else last


def mentioned(part: object) -> Iterator[str]:
    """The scalars that occur in a value, or in the statements of a tuple."""
    if isinstance(part, ScalarRef):
        yield part.array.name
    elif type(part) is tuple:
        for p in part:
            yield from mentioned(p)
    elif isinstance(part, Record) and not isinstance(part, Array):
        for name in part.__match_args__:
            yield from mentioned(getattr(part, name))


def leaf_statements(nodes: Sequence[Node]) -> Iterator[Assign | Let]:
    """The statements that compute, in the order of the text."""
    for node in nodes:
        match node:
            case For(body=body):
                yield from leaf_statements(body)
            case If(_, then, orelse):
                yield from leaf_statements(then)
                yield from leaf_statements(orelse)
            case Assign() | Let():
                yield node


def _variables(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        match node:
            case For(var=var, body=body):
                yield var
                yield from _variables(body)
            case If(_, then, orelse):
                yield from _variables(then)
                yield from _variables(orelse)
