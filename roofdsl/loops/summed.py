"""Kernels with index arrays as nests of affine loops, each of which runs as often in total as the loops of the kernel.

`for i in range(n): for k in range(rowptr[i], rowptr[i + 1]): S` executes S once for each k from 0 to nnz - 1, where
rowptr rises from 0 to nnz, whatever it holds in between. So S stands under `for k in range(0, nnz)` here, and the value
of `i` is one that only the data tell. Counting needs no order, so each statement gets a nest of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.lang.types import TYPES
from roofdsl.loops.accesses import Access, accesses, bound_accesses, indices, reads_in
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Condition, Const, IntExpr, Not, Sym, sub
from roofdsl.loops.model import (
    Array,
    Assign,
    Count,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    Number,
    Read,
    Rises,
)

Statement = Assign | Let | Count


class Nest(Record):
    """A statement under affine loops; `hidden` are the loop variables of the kernel that only the data tell here.

    outside: the loops that begin the innermost one, once in each of their iterations. bound: whether the statement
    stands for what the bounds of a loop read, once each time that loop begins.
    """

    statement: Statement
    loops: tuple[For, ...]
    outside: tuple[For, ...]
    conditions: tuple[Condition, ...]
    hidden: frozenset[str]
    bound: bool = False

    def accesses(self) -> tuple[Access, ...]:
        return () if isinstance(self.statement, Count) else accesses(self.statement)

    def is_hidden(self, element: Element) -> bool:
        """Whether the data decide which element that is."""
        symbols = frozenset[str]().union(*(s.symbols() for s in element.subscripts))
        return bool(symbols & self.hidden) or next(indices(element), None) is not None

    def place_without_data(self, element: Element) -> Element:
        """The element with 0 for each subscript that the data decide."""
        known = tuple(Const(0) if self._hides(s) else s for s in element.subscripts)
        return Element(element.array, known, element.span)

    def _hides(self, subscript: IntExpr) -> bool:
        return bool(subscript.symbols() & self.hidden) or next(reads_in(subscript), None) is not None

    def around(self, *inside: Statement) -> tuple[Node, ...]:
        """The loops and conditions of the nest around other statements."""
        body: tuple[Node, ...] = inside
        for condition in reversed(self.conditions):
            body = (If(condition, body, (), self.statement.span),)
        for loop in reversed(self.loops):
            body = (replace(loop, body=body, parallel=False),)
        return body


def nests(kernel: Kernel) -> tuple[Nest, ...]:
    """A nest for each statement and for what each loop bound reads, in the order of the text.

    Raises CommandError for loops whose total number of iterations is not known.
    """
    return tuple(_Walk(kernel).block(kernel.body, _Around((), (), (), frozenset())))


class _Around(Record):
    """What is around a block, as in a `Nest`."""

    loops: tuple[For, ...]
    outside: tuple[For, ...]
    conditions: tuple[Condition, ...]
    hidden: frozenset[str]


class _Walk:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.rises = {f.array: f for f in kernel.facts if isinstance(f, Rises)}

    def block(self, body: Sequence[Node], at: _Around) -> Iterator[Nest]:
        for node in body:
            match node:
                case If(condition, then, orelse):
                    self._known(condition.symbols() & at.hidden, f"the condition `{condition}`")
                    for block, held in ((then, condition), (orelse, Not(condition))):
                        yield from self.block(block, replace(at, conditions=(*at.conditions, held)))
                case For():
                    for access in bound_accesses(node):
                        let = Let("_", access.element.array.type, access.element, node.span)
                        yield Nest(let, at.loops, at.outside, at.conditions, at.hidden, bound=True)
                    yield from self.block(node.body, self._within(node, at))
                case _:
                    if isinstance(node, Count):
                        self._known(node.amount.symbols() & at.hidden, f"the counter `{node.name}`")
                    yield Nest(node, at.loops, at.outside, at.conditions, at.hidden)

    def _within(self, loop: For, at: _Around) -> _Around:
        """What is around the body of a loop, with one loop for a pair whose total number of iterations is known."""
        what = f"the loop over {loop.var}"
        self._known((loop.start.symbols() | loop.stop.symbols()) & at.hidden, what)
        if not bound_accesses(loop):
            return replace(at, loops=(*at.loops, loop), outside=at.loops)
        rows, whole = self._rows(loop, at.loops)
        others = tuple(o for o in at.loops if o is not rows)
        mention = any(rows.var in o.start.symbols() | o.stop.symbols() for o in others)
        mention = mention or any(rows.var in c.symbols() for c in at.conditions)
        self._known(frozenset({rows.var} if mention else ()), what)
        entries = replace(loop, start=whole.first, stop=whole.last)
        return _Around((*others, entries), at.loops, at.conditions, at.hidden | {rows.var})

    def _rows(self, loop: For, loops: tuple[For, ...]) -> tuple[For, Rises]:
        """The loop over all rows, and the offsets of the rows, of a loop over the entries of one row."""
        match loop.start, loop.stop:
            case Read(Element(array, (Sym(name),))), Read(Element(other, (end,))) if array == other:
                rows = next((o for o in loops if o.var == name), None)
                rises = self.rises.get(array.name)
                next_one = affine(sub(end, Sym(name))) == affine(Const(1)) and loop.step == Const(1)
                if rows is not None and rises is not None and next_one and _covers(rows, array):
                    return rows, rises
        written = f"range({loop.start}, {loop.stop})"
        raise CommandError(
            f"how often the loop over {loop.var} runs in all is not known: `{written}`",
            "it is known for `range(a[i], a[i + 1])` inside `for i in range(n)` over all of `a: i32[n + 1]`, "
            "with `assume a rises from 0 to m`",
        )

    def _known(self, hidden: frozenset[str], what: str) -> None:
        if hidden:
            name = min(hidden)
            message = f"{what} depends on `{name}`, which only the data tell inside the loop over its entries"
            raise CommandError(f"how often statements of kernel {self.kernel.name} run is not known: {message}")


def _covers(rows: For, offsets: Array) -> bool:
    """Whether a loop runs over all rows that an array of offsets has."""
    last = affine(sub(offsets.dims[0], rows.stop))
    return rows.start == Const(0) and rows.step == Const(1) and last == affine(Const(1))


# ---- the kernels to count ----


def execution_kernel(kernel: Kernel, found: Sequence[Nest]) -> Kernel:
    """A statement without accesses in each nest: each runs as often as that of the kernel. Counters stay."""

    def plain(statement: Statement) -> Statement:
        nothing = Number(0, statement.span)
        return statement if isinstance(statement, Count) else Let("_", TYPES["f64"], nothing, statement.span)

    return _kernel(kernel, [node for nest in found for node in nest.around(plain(nest.statement))])


def begins_kernel(kernel: Kernel, nest: Nest) -> Kernel:
    """A counter that is raised whenever the innermost loop of a nest begins."""
    outer = Nest(Count("_", Const(1), nest.statement.span), nest.outside, (), (), frozenset())
    return _kernel(kernel, outer.around(outer.statement))


def access_kernel(kernel: Kernel, touched: Sequence[tuple[Nest, Sequence[Access]]]) -> Kernel:
    """Only these accesses, those of one nest together."""
    return _kernel(kernel, [node for nest, some in touched if some for node in nest.around(*map(_single, some))])


def whole_kernel(kernel: Kernel, array: Array) -> Kernel:
    """A kernel that reads every element of an array once."""
    names = [f"{array.name}{d}" for d in range(len(array.dims))]
    element = Element(array, tuple(map(Sym, names)), array.span)
    loops = tuple(For(v, Const(0), d, Const(1), False, (), array.span) for v, d in zip(names, array.dims, strict=True))
    nest = Nest(Count("_", Const(1), array.span), loops, (), (), frozenset())
    return access_kernel(kernel, [(nest, [Access(element, False)])])


def _kernel(kernel: Kernel, body: Sequence[Node]) -> Kernel:
    return replace(kernel, body=tuple(body), facts=(), data=None)


def _single(access: Access) -> Assign | Let:
    element = access.element
    if access.is_write:
        return Assign(element, "=", Number(0, element.span), element.span)
    return Let("_", element.array.type, element, element.span)
