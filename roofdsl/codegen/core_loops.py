"""Which loops of a kernel the cores of a CPU share, and the scalars of which each iteration then has its own.

    for i in range(n):
        s = 0
        for j in range(m):
            s += A[i, j]
        y[i] = s

The generated code (`target.OneFunction`) and predictions for several cores (`predict.divided_loops`) both ask here.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.codegen.data_threads import data_threads, scalars_set
from roofdsl.codegen.function_parts import positions
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Array, For, Kernel
from roofdsl.loops.private_loops import PrivateLoop


class CoreLoop(Record):
    """A loop that cores share. own: the scalars of which each iteration has its own."""

    loop: For
    own: tuple[Array, ...]


def core_loops(
    kernel: Kernel, free: Mapping[LoopId, int], private: Mapping[LoopId, PrivateLoop]
) -> tuple[CoreLoop, ...]:
    """The outermost loops that cores may share, of a kernel with its directives applied.

    free, private: the loops that are proven or declared parallel, without copies and with them (`generate`); those with
    copies of arrays are left out, since the code for CPUs has none. Of a kernel with index arrays, whose dependences
    are not analyzed, the text shows which loops are independent.
    """
    by_data = is_indirect(kernel)
    independent = data_threads(kernel, free, atomic=False).free if by_data else free
    chosen: dict[LoopId, CoreLoop] = {}
    for position, loop in positions(kernel.body):  # outer loops come before inner ones
        if any(position[:depth] in chosen for depth in range(1, len(position))):
            continue
        scalars = scalars_set(loop)
        is_independent = position in independent and (by_data or not scalars)  # `data_threads` looked at the scalars
        is_with_own = position in private and set(private[position].copied) == {array.name for array in scalars}
        if is_independent or is_with_own:
            chosen[position] = CoreLoop(loop, tuple(array for array in kernel.arrays if array in scalars))
    return tuple(chosen.values())
