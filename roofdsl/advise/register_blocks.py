"""Register blocks: a block of results is kept in scalars over the reduction loops, with cache tiles around it.

They apply to a perfect nest around one update `T[i, j] op= e` in which e does not read T. The loops in the subscripts
of T are unrolled by small factors, and the other loops come innermost. In each of their iterations, an element is read
once for the whole block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from roofdsl.advise.edits import (
    HERE,
    assume_multiple,
    binary,
    is_statement,
    mapped,
    name,
    number,
    parts,
    ref,
    shifted,
    uses,
)
from roofdsl.lang import tree
from roofdsl.lang.record import Record, replace

MOST_SCALARS = 16
"""At most this many results are kept in registers: as many as an x86 core has vector registers with AVX2."""


class Nest(Record):
    """A perfect nest around one update. `clauses` are its loops, outermost first; `root` is the item in the text.

    alone: the variables that are a subscript of the target and occur in no other one, in the order of the subscripts.
    sums: the variables that do not occur in the target.
    """

    root: tree.For
    clauses: tuple[tree.Clause, ...]
    update: tree.Assign
    alone: tuple[str, ...]
    sums: tuple[str, ...]

    @property
    def block(self) -> tuple[str, ...]:
        """The loops over a block of results on cores: the last one or two, whose results are near each other."""
        return self.alone[-2:]

    def clause(self, var: str) -> tree.Clause:
        return next(c for c in self.clauses if c.var.text == var)


class Blocking(Record):
    """Unroll factors by variable, and the sizes of the surrounding tiles (empty for none), outermost first.

    apart: with a factor f, the points of a block lie an f-th of the loop's extent apart, so neighboring iterations
    still access neighboring elements, as threads of a GPU should. Otherwise they are neighbors. With tiles, `apart`
    is never set.
    """

    factors: tuple[tuple[str, int], ...]
    tiles: tuple[tuple[str, int], ...] = ()
    apart: bool = False


def nests_to_block(kernel: tree.Kernel) -> list[Nest]:
    """The nests of the kernel that this change applies to."""
    if any(isinstance(item, tree.Tile | tree.Order) for item in kernel.body):
        return []
    sizes = {p.name.text for p in kernel.parameters}
    found = [nest for root in _loops(kernel.body) if (nest := _as_nest(root)) is not None]
    return [nest for nest in found if all(uses(a) <= sizes for c in nest.clauses for a in c.args)]


def _loops(items: Sequence[tree.Item]) -> Iterator[tree.For]:
    for item in items:
        if isinstance(item, tree.For):
            yield item
            yield from _loops(item.body)
        elif isinstance(item, tree.If):
            for branch in item.branches:
                yield from _loops(branch.body)
            yield from _loops(item.orelse)


def _as_nest(root: tree.For) -> Nest | None:
    clauses: list[tree.Clause] = []
    loop: tree.Item = root
    while isinstance(loop, tree.For):
        if loop.parallel or len(loop.body) != 1:
            return None
        clauses += loop.clauses
        loop = loop.body[0]
    own = {c.var.text for c in clauses}
    if not isinstance(loop, tree.Assign) or loop.op == "=" or not isinstance(loop.target, tree.Index):
        return None
    if loop.target.name.text in uses(loop.value):
        return None
    if any(len(c.args) > 2 or any(isinstance(a, tree.Call) for a in c.args) for c in clauses):
        return None  # steps, `min` and `max`
    # C[i, j] with i and i + 1 are two elements, so a block of the iterations i, i + 1, ... holds separate sums. In
    # C[i, i + j], a variable of two subscripts would not give a block that is a box of C.
    subscripts = loop.target.subscripts
    single = [s.name for s in subscripts if isinstance(s, tree.Ref) and s.name in own]
    alone = tuple(v for v in single if sum(v in uses(s) for s in subscripts) == 1)
    named = frozenset().union(*(uses(s) for s in subscripts))
    sums = tuple(c.var.text for c in clauses if c.var.text not in named)
    return Nest(root, tuple(clauses), loop, alone, sums) if alone and sums else None


def start_of(clause: tree.Clause) -> tree.Expr:
    """The start of a clause's range."""
    return clause.args[0] if len(clause.args) > 1 else number(0)


def stop_of(clause: tree.Clause) -> tree.Expr:
    """The stop of a clause's range."""
    return clause.args[-1]


def extent_of(clause: tree.Clause) -> tree.Expr:
    """The trip count of a clause."""
    if len(clause.args) == 1:
        return clause.args[0]
    return binary("-", _operand(stop_of(clause)), _operand(start_of(clause)))


def _operand(e: tree.Expr) -> tree.Expr:
    return tree.Group(e, HERE) if isinstance(e, tree.Binary | tree.Unary) else e


def blocked(kernel: tree.Kernel, nest: Nest, how: Blocking) -> tree.Kernel:
    """The kernel with a blocked nest, and with `assume` lines: factors and tiles divide the extents."""
    taken = names_of(kernel)
    factors, tiles = dict(how.factors), dict(how.tiles)
    # Factors of 2 for i and 3 for j: points (0, 0), (0, 1), ..., (1, 2), each with a sum of its own, acc00 to acc12.
    points = list(product(*(range(f) for f in factors.values())))
    scalars = [free_name(f"acc{''.join(map(str, p))}" if points[1:] else "acc", taken) for p in points]
    shifts = [
        {v: _shift(nest.clause(v), k, factors[v], how.apart) for v, k in zip(factors, p, strict=True) if k}
        for p in points
    ]
    over = {v: free_name(v * 2, taken) for v in tiles}
    target = nest.update.target
    outer = [v for v in (c.var.text for c in nest.clauses) if v not in nest.sums]
    loops = [tree.Clause(name(over[v]), name("range"), _args(nest.clause(v), size), HERE) for v, size in tiles.items()]
    loops += [
        _share(nest.clause(v), factors.get(v, 1))
        if how.apart
        else _inner(nest.clause(v), over.get(v), tiles.get(v), factors.get(v, 1))
        for v in outer
    ]
    sums = [_inner(nest.clause(v), over.get(v), tiles.get(v), 1) for v in nest.sums]
    body: list[tree.Item] = [
        tree.Assign(ref(s), "=", shifted(target, by), HERE) for s, by in zip(scalars, shifts, strict=True)
    ]
    body.append(tree.For(tuple(sums), False, tuple(_step(nest, shifts, scalars, taken)), HERE))
    body += [tree.Assign(shifted(target, by), "=", ref(s), HERE) for s, by in zip(scalars, shifts, strict=True)]  # type: ignore[arg-type]
    new = tree.For(tuple(loops), False, tuple(body), HERE)
    made = replace(kernel, body=_put(kernel.body, nest.root, new))
    element = _type_of(kernel, nest.update)
    group = tree.Declared(tuple(name(s) for s in scalars), name(element), (), False, HERE)
    wanted = [assume_multiple(extent_of(nest.clause(v)), n) for v, n in _divisors(how).items()]
    items: list[tree.Item] = list(dict.fromkeys(wanted))
    items += [tree.Declaration("temp", (group,), HERE)]
    at = next(k for k, item in enumerate(made.body) if is_statement(item))
    return replace(made, body=(*made.body[:at], *items, *made.body[at:]))


def _divisors(how: Blocking) -> dict[str, int]:
    """The number that must divide the extent of each variable: the size of its tile, which its factor divides, or else
    its factor.
    """
    found = {v: f for v, f in how.factors if f > 1}
    return found | dict(how.tiles)


def _shift(clause: tree.Clause, k: int, factor: int, apart: bool) -> tree.Expr:
    """How far the k-th point of a block is from the first one along a loop."""
    if not apart:
        return number(k)
    share = _part(clause, factor)
    return share if k == 1 else binary("*", number(k), tree.Group(share, HERE))


def _part(clause: tree.Clause, factor: int) -> tree.Expr:
    """The factor-th part of a clause's trip count."""
    return binary("//", _operand(extent_of(clause)), number(factor))


def _share(clause: tree.Clause, factor: int) -> tree.Clause:
    """The clause for the first points of blocks whose points lie apart."""
    if factor == 1:
        return clause
    if len(clause.args) == 1:
        return replace(clause, args=(_part(clause, factor),))
    start = start_of(clause)
    return replace(clause, args=(start, binary("+", _operand(start), _part(clause, factor))))


def _args(clause: tree.Clause, step: int) -> tuple[tree.Expr, ...]:
    return (start_of(clause), stop_of(clause), number(step))


def _inner(clause: tree.Clause, over: str | None, size: int | None, step: int) -> tree.Clause:
    if over is not None and size is not None:
        args: tuple[tree.Expr, ...] = (ref(over), binary("+", ref(over), number(size)))
        return replace(clause, args=(*args, number(step)) if step > 1 else args)
    return replace(clause, args=_args(clause, step)) if step > 1 else clause


def _step(
    nest: Nest, shifts: Sequence[Mapping[str, tree.Expr]], scalars: Sequence[str], taken: set[str]
) -> Iterator[tree.Item]:
    """One iteration of the reduction: read every element once, then update the block."""
    values = [shifted(nest.update.value, by) for by in shifts]
    read: dict[tree.Expr, str] = {}
    for value in values:
        for part in parts(value):
            if isinstance(part, tree.Index) and part not in read:
                read[part] = free_name(f"{part.name.text.lower()}{len(read)}", taken)
    # An element that several points of the block use, such as A[i, k] for all j, is read once. That is what blocking
    # saves: a block of 2 by 3 reads 5 elements for 6 products, and not 12.
    used = {e: sum(v == e for value in values for v in parts(value)) for e in read}
    kept = {e: n for e, n in read.items() if used[e] > 1}
    for element, own in kept.items():
        yield tree.Let(name(own), element, HERE)

    def change(part: tree.Expr) -> tree.Expr:
        return ref(kept[part]) if part in kept else part

    for scalar, value in zip(scalars, values, strict=True):
        yield tree.Assign(ref(scalar), nest.update.op, mapped(value, change), HERE)


def _put(items: Sequence[tree.Item], old: tree.Item, new: tree.Item) -> tuple[tree.Item, ...]:
    found: list[tree.Item] = []
    for item in items:
        if item is old:
            found.append(new)
        elif isinstance(item, tree.For):
            found.append(replace(item, body=_put(item.body, old, new)))
        elif isinstance(item, tree.If):
            branches = tuple(replace(b, body=_put(b.body, old, new)) for b in item.branches)
            found.append(replace(item, branches=branches, orelse=_put(item.orelse, old, new)))
        else:
            found.append(item)
    return tuple(found)


def _type_of(kernel: tree.Kernel, update: tree.Assign) -> str:
    target = update.target
    own = target.name.text if isinstance(target, tree.Index) else target.name
    for item in kernel.body:
        if isinstance(item, tree.Declaration):
            for group in item.groups:
                if any(n.text == own for n in group.names):
                    return group.type.text
    raise ValueError(f"{own} is not declared")


def names_of(kernel: tree.Kernel) -> set[str]:
    """Every name that the kernel uses."""
    found = {p.name.text for p in kernel.parameters}

    def walk(items: Sequence[tree.Item]) -> None:
        for item in items:
            match item:
                case tree.Declaration(_, groups):
                    found.update(n.text for g in groups for n in g.names)
                case tree.For(clauses, _, body):
                    found.update(c.var.text for c in clauses)
                    walk(body)
                case tree.If(branches, orelse):
                    for branch in branches:
                        walk(branch.body)
                    walk(orelse)
                case tree.Let(own) | tree.Count(own):
                    found.add(own.text)

    walk(kernel.body)
    return found


def free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, with a number appended if the name is taken; marks the result as taken."""
    own, k = wanted, 2
    while own in taken:
        own, k = f"{wanted}_{k}", k + 1
    taken.add(own)
    return own
