"""Totals of `count` statements: each amount becomes loops that run so often, whose executions are counted.

`count pairs i` becomes `for c in range(i): count pairs 1`, and a product of two factors becomes two such loops. For a
factor that may be negative, the executions of range(-x) are subtracted from those of range(x).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, product

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Const, IntExpr, Product, Sum, Sym, mul
from roofdsl.loops.model import Count, For, If, Kernel, Node
from roofdsl.loops.sized import sized
from roofdsl.sets.sizes import NotAffine


def counters_at(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """The total of every counter of `kernel` at `params`, in textual order.

    Raises CommandError for missing or illegal sizes, and for an amount that is not a polynomial of affine values.
    """
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number

    at = sized(kernel, params)
    totals: dict[str, int] = {}
    try:
        domains = build(expanded(at.kernel), at.values, None).domains
    except NotAffine as error:
        raise CommandError(
            f"a counter of kernel {kernel.name} cannot be totalled: {error}",
            "count sums and products of loop variables, parameters, and `//` and `%` of them by integers",
        ) from error
    for domain in domains:
        statement = domain.placed.statement
        if isinstance(statement, Count):
            amount = statement.amount.evaluate(at.values)
            totals[statement.name] = totals.get(statement.name, 0) + amount * number(cardinality(domain.executions))
    return totals


def has_counters(body: Iterable[Node]) -> bool:
    """Whether `body` contains a `count` statement."""
    return any(
        isinstance(node, Count)
        or (isinstance(node, For) and has_counters(node.body))
        or (isinstance(node, If) and (has_counters(node.then) or has_counters(node.orelse)))
        for node in body
    )


def counter_names(body: Iterable[Node]) -> list[str]:
    """The names of the counters, in textual order."""
    counts = (p.statement for p in statements(tuple(body)))
    return list(dict.fromkeys(s.name for s in counts if isinstance(s, Count)))


def expanded(kernel: Kernel) -> Kernel:
    """`kernel` with only its counters, each adding one number at a time; directives must be applied before."""
    positive = {p.name for p in kernel.parameters}
    return replace(kernel, body=tuple(_block(kernel.body, positive, (f"count {k}" for k in count()))))


def _block(body: Iterable[Node], positive: set[str], names: Iterator[str]) -> Iterator[Node]:
    for node in body:
        match node:
            case For() if has_counters(node.body):
                yield replace(node, body=tuple(_block(node.body, positive, names)))
            case If() if has_counters((node,)):
                yield replace(
                    node,
                    then=tuple(_block(node.then, positive, names)),
                    orelse=tuple(_block(node.orelse, positive, names)),
                )
            case Count():
                yield from _loops(node, positive, names)


def _loops(node: Count, positive: set[str], names: Iterator[str]) -> Iterator[Node]:
    for coefficient, factors in _terms(node.amount):
        for signs in product((1, -1), repeat=len(factors)):
            if any(s < 0 and isinstance(f, Sym) and f.name in positive for s, f in zip(signs, factors, strict=True)):
                continue
            amount = coefficient
            for s in signs:
                amount *= s
            inner: Node = replace(node, amount=Const(amount))
            for sign, factor in zip(signs, factors, strict=True):
                stop = factor if sign > 0 else mul(Const(-1), factor)
                inner = For(f"{next(names)}", Const(0), stop, Const(1), False, (inner,), node.span)
            yield inner


def _terms(amount: IntExpr) -> list[tuple[int, tuple[IntExpr, ...]]]:
    """`amount` as a sum of (number, other factors); an affine sum of several terms stays one factor."""
    match amount:
        case Const(value):
            return [(value, ())] if value else []
        case Sum(terms):
            return [t for part in terms for t in _terms(part)]
        case Product(factors):
            found: list[tuple[int, tuple[IntExpr, ...]]] = [(1, ())]
            for factor in factors:
                found = [(a * c, (*fs, *gs)) for a, fs in found for c, gs in _terms(factor)]
            return found
    return [(1, (amount,))]
