"""Loops in blocks, such as `for (i = 0; i < n; i += b)` around `y[i] ... y[i + b - 1]`: n is a multiple of b where the
code otherwise leaves its arrays.
"""

from __future__ import annotations

from roofdsl.frontends.assumptions import assumption, names_in
from roofdsl.frontends.c.context import Access, Context
from roofdsl.frontends.c.pointers import rank
from roofdsl.frontends.c.variables import Variable
from roofdsl.frontends.integer_facts import Range
from roofdsl.frontends.linear import subscripts_of
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.whole_steps import fills_blocks, missing, reduced
from roofdsl.lang import tree


def need_whole_steps(context: Context) -> None:
    """Raises Again if lengths of loops have to be multiples of their steps, and this is not known yet. An array without
    a declared length is taken to end with the last block.
    """
    for array in {a.array: None for a in context.accesses}:
        accesses = [a for a in context.accesses if a.array is array]
        for k, dim in enumerate(_dimensions(context, array)):
            places = [(_subscript(context, a, k), a) for a in accesses]
            for subscript, access in places:
                within = [subscript] if dim is None else [subscript, dim - 1 - subscript]
                for value in within:
                    context.learn_whole_steps(missing(access.facts, value), access)
            if dim is None:
                _end_with_blocks(context, places)


def assumed(context: Context, items: tuple[tree.Item, ...]) -> list[tree.Item]:
    """The assumptions about the sizes that statements and declarations name."""
    used = names_in(items)
    differences = {p: node for p, node in context.assumed.items() if p.names <= used}
    multiples = {s: node for s, node in context.learnt.whole_steps.items() if s[0].names | s[1].names <= used}
    return assumption(differences, multiples, context.spans)


def _dimensions(context: Context, array: Variable) -> tuple[Poly | None, ...]:
    """The dimensions of an array; None for a dimension that is open. The inner ones of an array with linear subscripts
    are proven to hold where it is read.
    """
    if array.key in context.learnt.shapes:
        return (None,)
    return context.dims.get(array, (None,) * rank(array))


def _subscript(context: Context, access: Access, k: int) -> Poly:
    inner = context.learnt.shapes.get(access.array.key)
    if inner is None:
        return access.subscripts[k]
    split = subscripts_of(access.subscripts[0], inner, access.facts)
    assert split is not None  # otherwise the run that wrote the subscripts has refused it
    return split[0]


def _leaves_room(start: Poly, length: Poly, step: Poly) -> bool:
    """Whether a loop stops early so that its last block is complete, as `i + 3 < n` and `i <= n - 4` do in steps of 4:
    the end of the last block that may begin has a simpler form than the stop.
    """
    stop = start + length
    return len((stop + step - 1).terms) < len(stop.terms)


def _end_with_blocks(context: Context, places: list[tuple[Poly, Access]]) -> None:
    """For a dimension that is open. Raises Again for a loop that goes through it in blocks, none of whose subscripts
    leaves its block, if no other access shows that the array is longer.
    """
    loops: dict[Range, list[tuple[tuple[bool, bool], Poly, Access]]] = {}
    for subscript, access in places:
        for k, r in enumerate(access.facts.ranges):
            found = None if r.steps is None or access.guarded else fills_blocks(access.facts, subscript, k)
            if found is not None:
                loops.setdefault(r, []).append((found, subscript, access))
    for r, own in loops.items():
        if r.steps is None or _leaves_room(r.lowers[0], *r.steps):
            continue
        # `x[n + 3] = 0` elsewhere shows that the array goes beyond the last block, cut off or not.
        others = [(s, a) for s, a in places if all(a is not mine for _, _, mine in own)]
        tops = [a.facts.greatest(s) for s, a in others]
        longer = any(t is not None and all(a.facts.not_negative(t - s) for _, s, a in own) for t in tops)
        all_in_block = all(stays for (stays, _), _, _ in own)
        some_at_its_end = any(last for (_, last), _, _ in own)
        if not longer and all_in_block and some_at_its_end:
            context.learn_whole_steps((reduced(*r.steps),), own[0][2])
