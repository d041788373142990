"""Subscripts that leave their row on purpose: `p = A[0]; p[k]` for every k, or `A[i][j + m]`.

They are elements of other rows in memory, and would be counted as elements of their own.
"""

from __future__ import annotations

from roofdsl.frontends.c.context import Access, Context
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.lower import lower

_OPERATIONS = 20_000_000


def require_rows_kept(context: Context, kernel: tree.Kernel) -> None:
    """Raises Refused if a subscript passes either end of its row at every size, in an execution that happens."""
    for access in context.accesses:
        dims = context.dims.get(access.array, ())
        if access.array.key in context.learnt.shapes:
            continue  # proven to stay, if rows were found
        for subscript, dim in list(zip(access.subscripts, dims, strict=False))[1:]:
            if dim is not None and _passes(access, subscript, dim) and _is_attained(context, kernel, access):
                message = f"`{subscript}` leaves the row of `{access.array.name}`, which has {dim} elements"
                help = "use a subscript for each dimension, or one-dimensional arrays with `A[i*m + j]`"
                raise Refused("c-index", message, access.node, help)


def _passes(access: Access, subscript: Poly, dim: Poly) -> bool:
    """Whether the bounds of the surrounding loops let it leave the row at all sizes."""
    facts = access.facts
    if facts.not_negative(subscript) and facts.not_negative(dim - 1 - subscript):
        return False
    if any(len(r.uppers) > 1 or len(r.lowers) > 1 for r in facts.ranges):
        return False  # conditions on the way: the bounds may not be reached
    top, bottom = facts.greatest(subscript), facts.greatest(-subscript)
    above = top is not None and Facts().not_negative(top - dim)
    return above or (bottom is not None and Facts().not_negative(bottom - 1))


def _is_attained(context: Context, kernel: tree.Kernel, access: Access) -> bool:
    """Whether an execution at some size reaches it; steps and conditions may prevent that. True if this takes too long
    to find out.
    """
    from roofdsl.checks.subscripts import check_bounds
    from roofdsl.sets.library import LibraryFailure, TooHard, limited

    try:
        with limited(f"the rows of {access.array.name}", _OPERATIONS):
            found = check_bounds(lower(CheckedKernel(kernel, Source("", ""), None, ()), {}))
    except (LibraryFailure, TooHard, InputError, CommandError, RecursionError):
        return True
    return any(d.code == "subscript-bounds" and d.span == context.spans(access.node) for d in found)
