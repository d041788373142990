"""How many array accesses the first iterations of a loop make, for loops whose iterations are not alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofdsl.counts.traffic_at import accesses_counted
from roofdsl.lang.record import replace
from roofdsl.loops.integers import Const, Sym, add, mul
from roofdsl.loops.model import For, If, Node, Parameter
from roofdsl.loops.sized import Sized


def accesses_of_first(at: Sized, loop: For) -> Callable[[int], int]:
    """The number of array accesses in the loop's first iterations, for any number of these from 0 to all.

    They come from one count of integer points, with the number of iterations as a parameter. Raises TooHard, and
    KeyError if the bounds of the loop depend on other loops.
    """
    start, step = (Const(bound.evaluate(at.values)) for bound in (loop.start, loop.step))
    iterations = "iterations"
    while iterations in at.values:
        iterations += "_"
    few = replace(loop, start=start, stop=add(start, mul(step, Sym(iterations))), step=step)
    parameters = (*at.kernel.parameters, Parameter(iterations, None, loop.span))
    kernel = replace(at.kernel, parameters=parameters, body=with_only(at.kernel.body, loop, few))
    counted = accesses_counted(kernel, tuple(at.values.items()))
    if counted is None:
        return lambda number: 0
    import islpy as isl

    sizes = isl.Point.zero(counted.domain().get_space())

    def first(number: int) -> int:
        there = sizes.set_coordinate_val(isl.dim_type.param, 0, isl.Val(number))
        return int(counted.eval(there).to_python())

    return first


def with_only(nodes: Sequence[Node], loop: For, instead: For) -> tuple[Node, ...]:
    """The nodes with `instead` in place of `loop`, without what is neither inside of it nor around it."""
    kept: list[Node] = []
    for node in nodes:
        if node is loop:
            kept.append(instead)
        elif isinstance(node, For):
            body = with_only(node.body, loop, instead)
            kept += [replace(node, body=body)] if body else []
        elif isinstance(node, If):
            then, orelse = (with_only(part, loop, instead) for part in (node.then, node.orelse))
            kept += [replace(node, then=then, orelse=orelse)] if then or orelse else []
    return tuple(kept)
