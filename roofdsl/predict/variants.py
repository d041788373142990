"""The accesses of a variant of the generated code that makes them in another order than the kernel."""

from __future__ import annotations

from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.predict.in_core_time import Code


def in_its_order(kernel: Kernel, code: Code | None) -> Kernel:
    """The kernel in the order in which the variant of `code` executes it: `grouped` computes sums together.

    Raises CommandError for `grouped` if the kernel has no such sums.
    """
    if code is None or code.variant == "loops":
        return kernel
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.codegen.grouped_sums import grouped, nothing_to_group

    plain = apply(kernel)
    found = grouped(plain, parallel_loops(kernel))
    if not found.loops:
        raise nothing_to_group(kernel)
    return replace(plain, body=found.body, arrays=(*plain.arrays, *found.held), directives=())
