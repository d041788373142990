"""The declarations of a kernel: dimensions and intents, from how arrays and scalars are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.frontends.c.context import Access, Again, Context
from roofdsl.frontends.c.index_arrays import IndexArrays
from roofdsl.frontends.c.pointers import rank
from roofdsl.frontends.c.variables import Variable
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.linear import inner_dimensions, subscripts_of
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.uses import uses
from roofdsl.frontends.whole_steps import extent
from roofdsl.lang import tree

INTENTS = ("in", "inout", "out", "temp")


def declarations(context: Context, intents: Mapping[Variable, str], indices: IndexArrays) -> list[tree.Declaration]:
    """One line for index arrays and one for each intent, names of the same type and dimensions together."""
    found: list[tree.Declaration] = []
    _apart(context)
    used = uses(context.out)
    shapes = {v: shape(context, v) for v, name in context.declared.items() if name in used}
    ordered = sorted(shapes, key=lambda v: _place(v.node))
    holds_indices = {v for v in ordered if v.key in context.learnt.limits}
    lines = [("in", holds_indices), *((intent, shapes.keys() - holds_indices) for intent in INTENTS)]
    for intent, own in lines:
        groups: dict[object, tree.Declared] = {}
        for variable in (v for v in ordered if v in own and intents[v] == intent):
            dims, span = shapes[variable], context.spans(variable.node)
            name = tree.Name(context.declared[variable], span)
            type_ = tree.Name(context.element_of(variable), span)
            below = indices.below(variable)
            key = (type_, dims, below)
            names = groups[key].names if key in groups else ()
            groups[key] = tree.Declared((*names, name), type_, dims, False, span, below)
        if groups:
            found.append(tree.Declaration(intent, tuple(groups.values()), next(iter(groups.values())).span))
    return found


def _apart(context: Context) -> None:
    """Refuses pointers that may point into arrays that are used as well."""
    used = {a.array for a in context.accesses}
    for pointer in [p for p in context.apart if p in used]:
        arrays = context.apart[pointer]
        others = {p for p, own in context.apart.items() if p is not pointer and own & arrays}
        for access in context.accesses:
            if access.array in arrays | others:
                other = access.array.name
                message = f"`{pointer.name}` was set to point into `{other}`, which is used here, too"
                if access.array in others:
                    message = f"`{other}` and `{pointer.name}` were set to point into the same array"
                raise Refused("c-pointer", message, access.node, "use the array itself")


def _place(node: Any) -> tuple[int, int]:
    return (node.coord.line, node.coord.column or 0)


def first_intents(context: Context, needed: set[Variable]) -> tuple[dict[Variable, str], dict[Variable, str]]:
    """The intents if nothing is read before it is written; and, for what is both written and read, the intents
    otherwise.
    """
    used = uses(context.out)
    first: dict[Variable, str] = {}
    otherwise: dict[Variable, str] = {}
    for variable, name in context.declared.items():
        use = used.get(name)
        if use is None:
            continue
        kept = _is_kept(variable, needed)
        if not use.assigned and not use.updated:
            first[variable] = "in" if kept or variable.place != "local" else "temp"
        elif not use.assigned:
            first[variable] = "inout"
        else:
            first[variable] = "out" if kept else "temp"
            if use.read or use.updated:
                otherwise[variable] = "inout" if kept or variable.place == "outer" else "temp"
    return first, otherwise


def _is_kept(variable: Variable, needed: set[Variable]) -> bool:
    """Whether the stored values are visible from outside."""
    if variable.type.is_plain:
        return variable.place in ("global", "member") or variable.root in needed
    return variable.place != "local"


# ---- dimensions ----


def shape(context: Context, variable: Variable) -> tuple[tree.Expr, ...]:
    """The dimensions of an array; () for a scalar. Raises Again if its subscripts must be read again."""
    if variable.type.is_plain or variable.key in context.learnt.single:
        return ()
    span = context.spans(variable.node)
    accesses = [a for a in context.accesses if a.array is variable]
    declared = context.dims.get(variable, (None,) * rank(variable))
    unit = context.units.get(variable)
    within = () if unit is None or unit.count == 1 else (Poly.number(unit.count).tree(span),)
    if rank(variable) == 1:
        inner = _linear(context, variable, accesses, declared[0])
        if inner:
            return (_outer(context, variable, accesses, inner), *(d.tree(span) for d in inner), *within)
    dims: list[tree.Expr] = []
    for k, dim in enumerate(declared):
        if dim is None:
            subscripts = [(a.subscripts[k], a) for a in accesses]
            dims.append(_extent(context, variable, subscripts))
        else:
            dims.append(dim.tree(span))
    return (*dims, *within)


def _linear(context: Context, variable: Variable, accesses: list[Access], dim: Poly | None) -> tuple[Poly, ...]:
    """The inner dimensions of an array with linear subscripts; () if there are none. Raises Again if they are new: the
    next run reads the subscripts with them.
    """
    learnt = context.learnt
    if variable.key in learnt.shapes:
        return learnt.shapes[variable.key]
    first_only = dim is None and variable.place != "local" and variable not in context.units
    if first_only and all(a.subscripts[0].value == 0 for a in accesses):
        learnt.single.add(variable.key)
        raise Again
    if all(a.subscripts[0].is_affine_in(r.var for r in a.facts.ranges) for a in accesses):
        return ()
    inner = inner_dimensions([(a.subscripts[0], a.facts) for a in accesses])
    if not inner:
        first = next(a for a in accesses if not a.subscripts[0].is_affine_in(r.var for r in a.facts.ranges))
        message = f"this subscript of `{variable.name}` is not a row times its length and a column"
        raise Refused("c-index", message, first.node, "declare the array with its dimensions, `double A[n][m]`")
    learnt.shapes[variable.key] = inner
    raise Again


def _outer(context: Context, variable: Variable, accesses: list[Access], inner: tuple[Poly, ...]) -> tree.Expr:
    """The first dimension of an array with linear subscripts."""
    rows = []
    for a in accesses:
        split = subscripts_of(a.subscripts[0], inner, a.facts)
        assert split is not None  # otherwise the run that wrote the subscripts has refused it
        rows.append((split[0], a))
    return _extent(context, variable, rows)


def _extent(context: Context, variable: Variable, subscripts: list[tuple[Poly, Access]]) -> tree.Expr:
    """One more than the largest of these subscripts."""
    span = context.spans(variable.node)
    found: list[Poly] = []
    reached: dict[Poly, set[Poly]] = {}  # what is >= 0 wherever an access with that length is executed
    for subscript, access in subscripts:
        if access.facts.not_negative(-subscript - 1):
            message = f"this lies before the beginning of `{variable.name}`"
            raise Refused("c-index", message, access.node, "begin the array at its first element")
        length = extent(access.facts, subscript)
        if length is None:
            message = f"the size of `{variable.name}` does not follow from this subscript"
            raise Refused("c-index", message, access.node, "declare the array with its dimensions, `double A[n][m]`")
        if length not in found:
            found.append(length)
        reached[length] = reached.get(length, set(access.facts.lengths())) & set(access.facts.lengths())
    facts = Facts((), tuple(context.assumed))
    largest: list[Poly] = []
    for k, p in enumerate(found):
        others = [q for j, q in enumerate(found) if j != k and facts.not_negative(q - p)]
        if not any(q != p and (not facts.not_negative(p - q) or found.index(q) < k) for q in others):
            largest.append(p)
    largest = _reached(largest, reached, context)
    written = tuple(p.tree(span) for p in largest)
    return written[0] if len(written) == 1 else tree.Call(tree.Name("max", span), written, span)


def _reached(lengths: list[Poly], reached: dict[Poly, set[Poly]], context: Context) -> list[Poly]:
    """Lengths without those that another one is at least as great as wherever they are reached: without 2 beside n, if
    only loops of more than one iteration need 2.
    """
    needed: set[Poly] = set()
    kept = list(lengths)
    for p in lengths:
        facts = Facts((), (*context.assumed, *reached[p]))
        longer = next((q for q in kept if q != p and p not in needed and facts.not_negative(q - p)), None)
        if longer is not None:
            needed.add(longer)
            kept.remove(p)
    return kept
