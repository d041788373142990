"""A kernel's loops as in its generated CUDA: those that become threads are outermost, and marked parallel.

`codegen.threads` decides which loops these are, so that a prediction is about the code that runs.
"""

from __future__ import annotations

from roofdsl.lang.record import replace
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.transform import apply
from roofdsl.store.in_process import in_process


@in_process(64)
def as_launched(kernel: Kernel) -> Kernel | str:
    """`kernel` with the loops of its threads outermost, the one along x last; or the reason why the loops run as
    written.

    A kernel that begins with `parallel for` stays as it is. Otherwise, the loops with independent iterations are found
    by proof, for all sizes. A nest that only adds up scalars has independent iterations except for its sums.
    """
    plain = apply(kernel)
    root = _only_nest(plain)
    if root is None:
        return "more than one loop nest, so more than one launch"
    if root.parallel:
        return kernel

    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.codegen.block_sums import may_be_spread, sums_of
    from roofdsl.codegen.generate import with_declared
    from roofdsl.codegen.threads import loops_of_threads, plan_nest

    nest = plan_nest(plain, root, (0,), with_declared(parallel_loops(kernel), plain.body))
    if nest is None and sums_of(root):
        nest = plan_nest(plain, root, (0,), may_be_spread((0,), root))
    if nest is None:
        return "no loop of the nest has independent iterations, so one thread runs it"
    return replace(plain, body=(loops_of_threads(nest),))


def declares_threads(kernel: Kernel) -> bool:
    """Whether `kernel` begins with `parallel for`, so that its loops are launched as written."""
    root = _only_nest(apply(kernel))
    return root is not None and root.parallel


def _only_nest(plain: Kernel) -> For | None:
    """The loop that is the whole body; None for any other body."""
    return plain.body[0] if len(plain.body) == 1 and isinstance(plain.body[0], For) else None
