"""Kernels whose `let`s only hold an input element, `let a = A[i, k]`, with the element read at every use instead.

A `let` between two loops hides a product in tiles from `untile`, which needs a perfect nest. The lower bound may treat
the two alike if it counts one more value in registers for each `let`: whoever holds `a` in a register holds A[i, k] in
a fast memory that is one element larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.bounds.flow import with_lets
from roofdsl.checks.untile import untiled
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import statements
from roofdsl.loops.model import Assign, Element, Expr, For, If, Kernel, Let, Node
from roofdsl.loops.transform import apply


def without_tile_loops(plain: Kernel) -> tuple[Kernel, int]:
    """The kernel (directives applied) without loops over tiles where possible, and the number of `let`s that had to be
    left out for that; each of them is a register more. Otherwise the kernel itself.
    """
    simple = untiled(plain)
    if simple is not plain:
        return simple, 0
    inline, held = without_held_reads(plain)
    simple = untiled(inline)
    return (simple, held) if simple is not inline else (plain, 0)


def without_own_tiles(kernel: Kernel) -> Kernel:
    """The kernel without its directives and loops over tiles, if it has such loops; otherwise the kernel itself."""
    plain = apply(kernel)
    simple, _ = without_tile_loops(plain)
    return kernel if simple is plain else simple


def without_held_reads(kernel: Kernel) -> tuple[Kernel, int]:
    """The kernel without its `let`s of input elements, and the number of names that these had.

    Only elements of arrays that the kernel never writes are read again: any other may have changed since. A `let` of
    more than one element stays, since it holds in one register what would need several.
    """
    placed = [p.statement for p in statements(kernel.body)]
    written = {s.target.array.name for s in placed if isinstance(s, Assign)}
    names: set[str] = set()
    body = _read_in_place(kernel.body, {}, written, names)
    return (replace(kernel, body=body), len(names)) if names else (kernel, 0)


def _read_in_place(
    nodes: Sequence[Node], around: Mapping[str, Expr], written: set[str], names: set[str]
) -> tuple[Node, ...]:
    """These nodes and what is in them. around: the elements that `let`s hold there; names: those that are found."""
    held = dict(around)
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, For):
            found.append(replace(node, body=_read_in_place(node.body, held, written, names)))
        elif isinstance(node, If):
            then, orelse = (_read_in_place(part, held, written, names) for part in (node.then, node.orelse))
            found.append(replace(node, then=then, orelse=orelse))
        elif isinstance(node, Let):
            value = with_lets(node.value, held)
            held.pop(node.name, None)
            if isinstance(value, Element) and value.array.name not in written:
                held[node.name] = value
                names.add(node.name)
            else:
                found.append(replace(node, value=value))
        elif isinstance(node, Assign):
            found.append(replace(node, value=with_lets(node.value, held)))
        else:
            found.append(node)
    return tuple(found)
