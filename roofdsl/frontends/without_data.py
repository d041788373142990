"""A kernel with index arrays as an affine one, to show that an array is written before it is read.

- A loop whose bounds read index arrays runs over `range(t)` with a new parameter t. What is shown for every t holds for
  every number of iterations, and also if there are none: a store `=` to a candidate becomes an update there, which has
  to find an earlier store itself.
- Subscripts that read index arrays become 0. Nothing is shown for the arrays that they belong to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from roofdsl.frontends.free_names import free_name
from roofdsl.lang import tree
from roofdsl.lang.record import Record, replace


def affine(kernel: tree.Kernel, candidates: Collection[str]) -> tree.Kernel:
    """The kernel itself, if it is affine. candidates: the arrays and scalars that something is to be shown for."""
    if not any(_reads_arrays(part) for part in _parts(kernel.body)):
        return kernel
    taken = {n for part in _parts(kernel.body) for n in _names(part)} | {p.name.text for p in kernel.parameters}
    trips = free_name("t", taken)
    body = _Rewriter(trips, candidates).items(
        [i for i in kernel.body if not isinstance(i, tree.DataFact)], inside=False
    )
    new = tree.Parameter(tree.Name(trips, kernel.span), None, False, kernel.span)
    return replace(kernel, parameters=(*kernel.parameters, new), body=body)


def chosen_by_data(items: Any) -> set[str]:
    """The arrays that have subscripts with elements of index arrays."""
    return {p.name.text for p in _parts(items) if isinstance(p, tree.Index) and _reads_arrays(p)}


class _Rewriter:
    def __init__(self, trips: str, candidates: Collection[str]) -> None:
        self.trips, self.candidates = trips, candidates

    def items(self, items: Sequence[tree.Item], *, inside: bool) -> tuple[tree.Item, ...]:
        return tuple(self.item(item, inside=inside) for item in items)

    def item(self, item: tree.Item, *, inside: bool) -> tree.Item:
        """inside: of a loop whose bounds read index arrays."""
        match item:
            case tree.Declaration(groups=groups):
                return replace(item, groups=tuple(replace(g, below=None) for g in groups))
            case tree.For(clauses, body=body):
                inside = inside or any(map(_reads_arrays, clauses))
                return replace(item, clauses=tuple(map(self.clause, clauses)), body=self.items(body, inside=inside))
            case tree.If(branches, orelse):
                new = tuple(replace(b, body=self.items(b.body, inside=inside)) for b in branches)
                return replace(item, branches=new, orelse=self.items(orelse, inside=inside))
            case tree.Assign(target, op, value):
                name = target.name.text if isinstance(target, tree.Index) else target.name
                updates = inside and op == "=" and name in self.candidates
                new_op = "+=" if updates else op
                return replace(item, target=_without(target), op=new_op, value=_without(value))
            case tree.Let(value=value):
                return replace(item, value=_without(value))
            case _:
                return item

    def clause(self, clause: tree.Clause) -> tree.Clause:
        return replace(clause, args=(tree.Ref(self.trips, clause.span),)) if _reads_arrays(clause) else clause


def _without(e: Any) -> Any:
    """An expression with 0 for subscripts that read index arrays."""
    match e:
        case tree.Index(name, subscripts):
            zero = tree.Number("0", 0, e.span)
            return tree.Index(name, tuple(zero if _indexes(s) else s for s in subscripts), e.span)
        case Record():
            return replace(e, **{f: _without(getattr(e, f)) for f in e.__match_args__ if f != "span"})
        case tuple():
            return tuple(map(_without, e))
        case _:
            return e


def _reads_arrays(part: Any) -> bool:
    """Whether a subscript, or a loop, reads index arrays."""
    if isinstance(part, tree.Index):
        return any(map(_indexes, part.subscripts))
    return isinstance(part, tree.Clause) and any(map(_indexes, part.args))


def _indexes(e: Any) -> bool:
    return any(isinstance(p, tree.Index) for p in _parts(e))


def _parts(of: Any) -> list[Any]:
    """Everything in a part of a kernel, and the part itself."""
    found: list[Any] = []
    pending = [of]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple | list):
            pending += part
        elif isinstance(part, Record):
            found.append(part)
            pending += [getattr(part, f) for f in part.__match_args__ if f != "span"]
    return found


def _names(part: Any) -> list[str]:
    return [part.text] if isinstance(part, tree.Name) else [part.name] if isinstance(part, tree.Ref) else []
