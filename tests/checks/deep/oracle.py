"""The deep checks by running through small kernels: what leaves its array, what is reversed, what is unwritten.

Independent of the package's analyses: it walks `roofdsl.loops.model` and compares what every execution touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    DataCompare,
    Element,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Node,
    ScalarRef,
    Select,
    Unary,
)
from roofdsl.loops.transform import apply
from tests.oracle.enumerate import Statement, textual, walk

_COMMUTING = {"+=": "+", "-=": "+", "*=": "*", "/=": "*", "min=": "min", "max=": "max"}
Place = tuple[str, tuple[int, ...]]


def _operands(e: Expr | DataCompare) -> Iterator[Element | ScalarRef]:
    match e:
        case Element() | ScalarRef():
            yield e
        case Unary():
            yield from _operands(e.operand)
        case Binary() | DataCompare():
            yield from _operands(e.left)
            yield from _operands(e.right)
        case Call():
            for a in e.args:
                yield from _operands(a)
        case Select():
            yield from _operands(e.condition)
            yield from _operands(e.if_true)
            yield from _operands(e.if_false)


def touches(statement: Statement, env: Mapping[str, int]) -> list[tuple[Element | ScalarRef, Place, bool]]:
    """(text, place, whether it is written) of everything one execution touches, in order."""
    if not isinstance(statement, (Assign, Let)):
        return []
    found = [(e, False) for e in _operands(statement.value)]
    if isinstance(statement, Assign):
        found += [(statement.target, False)] if statement.op != "=" else []
        found.append((statement.target, True))
    return [(e, (e.array.name, _index(e, env)), write) for e, write in found]


def _index(e: Element | ScalarRef, env: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(s.evaluate(env) for s in e.subscripts) if isinstance(e, Element) else ()


def outside(kernel: Kernel, sizes: Mapping[str, int]) -> set[tuple[int, int]]:
    """(line, column) of every element that leaves its array at these sizes."""
    found = set()
    for statement, env in walk(kernel.body, dict(sizes)):
        for e, (_, index), _ in touches(statement, env):
            dims = [d.evaluate(env) for d in e.array.dims]
            if any(not 0 <= i < d for i, d in zip(index, dims, strict=True)):
                found.add((e.span.line, e.span.column))
    return found


def unwritten(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Of every `out` and `temp`: (line, column) of the first read of what is not yet written."""
    written: set[Place] = set()
    found: dict[str, tuple[int, int]] = {}
    for statement, env in walk(kernel.body, dict(sizes)):
        for e, place, write in touches(statement, env):
            if write:
                written.add(place)
            elif e.array.intent in ("out", "temp") and place not in written:
                found.setdefault(e.array.name, (e.span.line, e.span.column))
    return found


@dataclass(frozen=True)
class Touched:
    """What one execution does to one place: `r`, `w`, or `u+` and the like for a pure update."""

    key: tuple[int, tuple[int, ...]]
    env: Mapping[str, int]
    kind: str


def by_place(kernel: Kernel, sizes: Mapping[str, int], names: dict[int, list[str]]) -> dict[Place, list[Touched]]:
    """Every place with the executions that touch it, in order; an execution is known by the values of `names`."""
    found: dict[Place, list[Touched]] = {}
    number = {id(s): k for k, s in enumerate(textual(kernel.body))}
    for statement, env in walk(kernel.body, dict(sizes)):
        here: dict[Place, list[bool]] = {}
        for _, place, write in touches(statement, env):
            here.setdefault(place, []).append(write)
        k = number[id(statement)]
        for place, writes in here.items():
            kind = "w" if any(writes) else "r"
            if isinstance(statement, Assign) and statement.op in _COMMUTING and writes == [False, True]:
                kind = "u" + _COMMUTING[statement.op]
            found.setdefault(place, []).append(Touched((k, tuple(env[n] for n in names[k])), env, kind))
    return found


def conflict(a: Touched, b: Touched, reductions: bool) -> bool:
    """Whether the two may not change places; updates that commute only may where `reductions` do not count."""
    if a.kind == b.kind == "r":
        return False
    return reductions or a.kind != b.kind or not a.kind.startswith("u")


def _loops(body: tuple[Node, ...], outer: tuple[For, ...]) -> Iterator[tuple[Statement, tuple[For, ...]]]:
    for node in body:
        if isinstance(node, For):
            yield from _loops(node.body, (*outer, node))
        elif isinstance(node, If):
            yield from _loops(node.then, outer)
            yield from _loops(node.orelse, outer)
        else:
            yield node, outer


def order_reversed(kernel: Kernel, sizes: Mapping[str, int], reductions: bool) -> bool:
    """Whether the directives change the order of two executions that conflict."""
    names = {k: [loop.var for loop in loops] for k, (_, loops) in enumerate(_loops(kernel.body, ()))}
    after = by_place(apply(kernel), sizes, names)
    for place, executions in by_place(kernel, sizes, names).items():
        moment = {t.key: n for n, t in enumerate(after[place])}
        assert len(moment) == len(executions) == len(after[place])
        for n, a in enumerate(executions):
            for b in executions[n + 1 :]:
                if moment[b.key] < moment[a.key] and conflict(a, b, reductions):
                    return True
    return False


def dependent_loops(kernel: Kernel, sizes: Mapping[str, int]) -> set[str]:
    """The variables of parallel loops with two iterations that conflict (loop variables have different names)."""
    inside: dict[str, tuple[str, ...]] = {}
    names: dict[int, list[str]] = {}
    for k, (_, loops) in enumerate(_loops(kernel.body, ())):
        names[k] = [loop.var for loop in loops]
        for depth, loop in enumerate(loops):
            if loop.parallel:
                inside[loop.var] = tuple(other.var for other in loops[:depth])
    found = set()
    for executions in by_place(kernel, sizes, names).values():
        for var, outer in inside.items():
            under = [t for t in executions if var in t.env]
            for n, a in enumerate(under):
                for b in under[n + 1 :]:
                    same = all(a.env[v] == b.env[v] for v in outer)
                    if same and a.env[var] != b.env[var] and conflict(a, b, True):
                        found.add(var)
    return found
