"""Other ways to see a PolyBench kernel, in which others may have counted its misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from roofdsl.lang.record import replace
from roofdsl.loops.accesses import operands
from roofdsl.loops.integers import Const, IntExpr
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
    LetRef,
    Node,
    Number,
    Select,
    Unary,
)

LINE = 64  # bytes
HAYSTACK = "reads by name, rows padded"
VARIANTS = ("target first", "rows padded", "target first, rows padded", HAYSTACK, "else always")
"""Other ways to see a kernel, the likeliest first: see `target_first`, `padded`, `by_name`, `else_always`."""


def target_first(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The body with `x op= e` as `x = x op e`: the target is read before the right-hand side, as C's compilers do."""
    found: list[Node] = []
    for node in body:
        match node:
            case For():
                found.append(replace(node, body=target_first(node.body)))
            case If():
                found.append(replace(node, then=target_first(node.then), orelse=target_first(node.orelse)))
            case Assign(Element() as target, "+=" | "-=" | "*=" | "/=" as op, value):
                found.append(replace(node, op="=", value=Binary(op[0], target, value, node.span)))
            case _:
                found.append(node)
    return tuple(found)


def by_name(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The body with each statement's reads in the order of their names as texts, as Haystack takes them.

    It has the references of a program from pet, which calls them __pet_ref_0, __pet_ref_1 and so on as they stand in
    the text, scalars included, and sorts those of a statement by these names: ..._10 before ..._9. The target's name is
    the first of its statement, its read in an update has the same one, and its write comes last. That a loop's begin
    takes one name and its end two (as if its variable were set, and counted up) is inferred: no other two numbers give
    what is published for bicg, symm, syr2k and syrk.
    """
    return _by_name(body, 0, {})[0]


def _by_name(body: tuple[Node, ...], names: int, lets: dict[str, Expr]) -> tuple[tuple[Node, ...], int]:
    """(the body, how many names are taken after it); lets: what C's text has in their place."""
    found: list[Node] = []
    for node in body:
        match node:
            case For():
                inside, names = _by_name(node.body, names + 1, lets)
                names += 2
                found.append(replace(node, body=inside))
            case If():
                then, names = _by_name(node.then, names, lets)
                orelse, names = _by_name(node.orelse, names, lets)
                found.append(replace(node, then=then, orelse=orelse))
            case Let():
                lets[node.name] = _changed(node.value, LetRef, lambda part: lets[part.name])
            case Assign():
                value = _changed(node.value, LetRef, lambda part: lets[part.name])
                named: list[tuple[int, Expr]] = list(enumerate(operands(value), start=names + 1))
                after = names + 1 + len(named)
                if node.op != "=":
                    named.append((names, node.target))
                names = after
                reads = [r for _, r in sorted(named, key=lambda n: str(n[0])) if isinstance(r, Element)]
                summed: Expr = reads[0] if reads else Number(0, node.span)
                for read in reads[1:]:
                    summed = Binary("+", summed, read, node.span)
                found.append(replace(node, op="=", value=summed))
            case _:
                found.append(node)
    return tuple(found), names


def else_always(body: tuple[Node, ...], around: For | None = None) -> tuple[Node, ...]:
    """The body with each else branch executed in every iteration, as if it were the loop's first.

    So the published simulation executed nussinov's, whose branch belongs to j = i + 1 only: its number of accesses is
    larger than the program's by just these.
    """
    found: list[Node] = []
    for node in body:
        match node:
            case For():
                found.append(replace(node, body=else_always(node.body, node)))
            case If() if node.orelse and around is not None:
                first = {around.var: around.start}
                found.append(replace(node, orelse=()))
                found += _changed(node.orelse, IntExpr, methodcaller("substitute", first))
            case _:
                found.append(node)
    return tuple(found)


def padded(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """The kernel with the rows of its arrays as long as whole lines."""
    longer = {}
    for a in kernel.arrays:
        if a.dims:
            per_line = LINE // a.type.bytes
            row = -(-a.dims[-1].evaluate(dict(sizes)) // per_line) * per_line
            longer[a.name] = replace(a, dims=(*a.dims[:-1], Const(row)))
    body = _changed(kernel.body, Element, lambda part: replace(part, array=longer[part.array.name]))
    return replace(kernel, arrays=tuple(longer.get(a.name, a) for a in kernel.arrays), body=body)


def _changed(part: Any, kind: type[Any], change: Callable[[Any], Any]) -> Any:
    """A part of a kernel's body with what is of this kind changed."""
    if isinstance(part, kind):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(p, kind, change) for p in part)
    if isinstance(part, For | If | Assign | Let | Unary | Binary | Call | Select | DataCompare | Element):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n not in ("span", "op", "array")}
        return replace(part, **{n: _changed(value, kind, change) for n, value in fields.items()})
    return part


def variant(kernel: Kernel, sizes: Mapping[str, int], way: str) -> Kernel:
    """The kernel as VARIANTS says."""
    changes = {"target first": target_first, "reads by name": by_name, "else always": else_always}
    for name, change in changes.items():
        if name in way:
            kernel = replace(kernel, body=change(kernel.body))
    return padded(kernel, sizes) if "rows" in way else kernel
