"""Which loops of a kernel have independent iterations, for all sizes that its assumptions allow.

A code generator may spread these over cores and threads. A reduction into one element is a dependence here: it stays
inside one thread, except where `codegen.block_sums` adds up scalars in CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial

from roofdsl.checks.legality import find_carried
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.accesses import LoopId, PlacedStatement, statements
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.transform import apply
from roofdsl.sets.library import LibraryFailure, TooHard, limited
from roofdsl.store.memo import recall

OPERATIONS = 20_000_000
"""Integer-set operations (about ten seconds) for one loop."""


def parallel_loops(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> dict[LoopId, int]:
    """The loops, of the kernel with its directives applied, whose iterations are proven independent.

    A loop is identified by the places among siblings that lead to it (`PlacedStatement.position`). The value is a depth
    d: executions that agree in the d outermost loops and differ in this one never touch one element that one of them
    writes. If d is the loop's own depth, its iterations may run at the same time; if it is 0, the loop may be moved
    outside all others around it. sizes: numbers for parameters; the answer then has to hold for these alone. Loops that
    cannot be decided are left out; so is a loop that the kernel calls parallel without a proof. Nothing is
    proven of a kernel with index arrays. Raises InputError if a directive fits no loops.
    """
    if is_indirect(kernel):
        return {}  # `codegen.data_threads` finds from the text what CUDA can run in threads
    given = None if sizes is None else tuple(sizes.items())
    return recall("parallel", kernel, (given,), lambda: _parallel_loops(kernel, sizes))


def _parallel_loops(kernel: Kernel, sizes: Mapping[str, int] | None) -> dict[LoopId, int]:
    plain = apply(kernel)
    if sizes:
        plain = with_numbers(plain, sizes)
    placed = tuple(statements(plain.body))
    members = members_of_loops(placed)
    found: dict[LoopId, int] = {}
    for loop, inside in members.items():
        outside = outside_of(loop, members, partial(proven, plain, placed, inside, len(loop) - 1))
        if outside is not None:
            found[loop] = outside
    return found


def members_of_loops(placed: tuple[PlacedStatement, ...]) -> dict[LoopId, list[int]]:
    """The statements in each loop, as places among all of them."""
    members: dict[LoopId, list[int]] = {}
    for i, statement in enumerate(placed):
        for depth in range(len(statement.loops)):
            members.setdefault(statement.position[: depth + 1], []).append(i)
    return members


def outside_of(loop: LoopId, members: Mapping[LoopId, list[int]], independent: Callable[[int], bool]) -> int | None:
    """The least depth d, from that of `outermost` on, for which the iterations of a loop are independent if the d
    outermost loops agree; None if they are not even independent within one execution of the loop.

    independent(d): whether they are if the d outermost loops agree.
    """
    depth = len(loop) - 1
    if not independent(depth):
        return None
    return next((d for d in range(outermost(loop, members), depth) if independent(d)), depth)


def outermost(loop: LoopId, members: Mapping[LoopId, list[int]]) -> int:
    """The depth of the outermost loop that has all its statements in this one."""
    return next(d for d in range(len(loop)) if members[loop[: d + 1]] == members[loop])


def proven(
    kernel: Kernel,
    placed: tuple[PlacedStatement, ...],
    members: list[int],
    depth: int,
    outside: int,
    *,
    among: Container[str] | None = None,
) -> bool:
    """Whether no dependence is found by `find_carried`, and that is certain.

    Scalars are looked at first: they take few questions, and a block of results in scalars makes all loops dependent.
    """
    asked = [a for a in kernel.arrays if among is None or a.name in among]
    scalars, others = {a.name for a in asked if not a.dims}, {a.name for a in asked if a.dims}
    try:
        with limited(f"the loops of kernel {kernel.name}", OPERATIONS):
            return all(
                find_carried(kernel, placed, members, depth, outside, among=names) == (None, None)
                for names in (scalars, others)
                if names
            )
    except (LibraryFailure, TooHard, RecursionError, InputError):
        return False
