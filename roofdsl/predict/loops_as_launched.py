"""A kernel's loops as in its generated CUDA: those that become threads are outermost, and marked parallel.

`codegen.threads` decides which loops these are, so that a prediction is about the code that runs.
"""

from __future__ import annotations

from itertools import takewhile

from roofdsl.lang.record import replace
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.block_shape import MOST_DIMENSIONS
from roofdsl.loops.model import Count, For, Kernel
from roofdsl.loops.transform import apply
from roofdsl.store.in_process import in_process


@in_process(64)
def as_launched(kernel: Kernel) -> Kernel | str:
    """`kernel` with the loops of its threads outermost, the one along x last; or the reason why the loops run as
    written.

    A kernel that begins with `parallel for` over at most MOST_DIMENSIONS loops, or over tiles, stays as it is; of more
    loops, the outer ones are inside the threads. Otherwise, the loops with independent iterations are found by proof,
    for all sizes. A nest that only adds up scalars has independent iterations except for its sums.
    """
    from roofdsl.codegen.emitter import chain_of

    plain = apply(kernel)
    root = _only_nest(plain)
    if root is None:
        return "more than one loop nest, so more than one launch"
    alone = replace(plain, body=(root,))
    if root.parallel and len(list(takewhile(lambda loop: loop.parallel, chain_of(root)))) <= MOST_DIMENSIONS:
        return alone

    from roofdsl.codegen.block_sums import may_be_spread, sums_of
    from roofdsl.codegen.threads import loops_of_threads, plan_nest

    place = (plain.body.index(root),)
    nest = plan_nest(plain, root, place, independent_loops(kernel))
    if nest is None and sums_of(root):
        nest = plan_nest(plain, root, place, may_be_spread(place, root))
    if nest is None:
        return "no loop of the nest has independent iterations, so one thread runs it"
    return replace(alone, body=(loops_of_threads(nest),))


def independent_loops(kernel: Kernel) -> dict[LoopId, int]:
    """The loops, of the kernel with its directives applied, that are proven or declared parallel (`generate`)."""
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.codegen.generate import with_declared

    return with_declared(parallel_loops(kernel), apply(kernel).body)


def declares_threads(kernel: Kernel) -> bool:
    """Whether `kernel` begins with `parallel for`, so that its loops are launched as written."""
    root = _only_nest(apply(kernel))
    return root is not None and root.parallel


def _only_nest(plain: Kernel) -> For | None:
    """The loop that is the whole body, but for `count` statements; None for any other body."""
    nodes = [node for node in plain.body if not isinstance(node, Count)]
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0], For) else None
