"""The inner loops of a case that follow each other, with the bytes that each moves in one pass over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from roofdsl import budget
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Assign, Count, Kernel
from roofdsl.loops.sized import sized
from roofdsl.loops.successive_loops import SuccessiveLoops, successive_loops
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.predict.crossings import Case
from roofdsl.predict.expected_of_inner_loops import InnerLoops
from roofdsl.predict.launch_statements import nests_alone
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import step_bytes

EARLIER = 2
"""The passes before the counted one. What a pass finds in a cache is what these left there: the rows before it, as a
stencil reads them, and all that each pass uses. A cache that keeps more until the next launch keeps all, and then there
are no bytes to share out."""


def inner_loops(case: Case, moved: Callable[[Case], Sequence[LevelTime]]) -> InnerLoops | None:
    """The inner loops of a launch or of one of its nests; None if there are not several, if data choose the accesses,
    if a loop strides from line to line, or if the code makes them in an order of its own.

    moved: the levels of a case.
    """
    from roofdsl.counts.executions import statement_executions
    from roofdsl.sets.library import TooHard

    kernel, code = apply(case.kernel), apply(case.written)
    if is_indirect(kernel) or kernel.data is not None:
        return None
    found, compiled = successive_loops(kernel.body), successive_loops(code.body)
    if found is None or compiled is None or len(found.parts) != len(compiled.parts):
        return None
    if _is_strided(kernel, case.values, case.machine, len(found.around)):
        return None
    innermost = found.around[-1].loop
    marker = Count("passes", innermost.step, innermost.span)
    once = replace(kernel, body=replace(found, parts=((marker,),)).inside())
    try:
        (passes,) = statement_executions(once, case.values)
    except TooHard:
        return None
    if not passes:
        return None
    apart = replace(code, body=tuple(node for nodes in compiled.alone() for node in nodes))
    kernels = nests_alone(apart)
    if len(kernels) != len(found.parts):
        return None
    return InnerLoops(kernels, passes, partial(_one_pass, case, found, moved))


def _is_strided(kernel: Kernel, values: Mapping[str, int], machine: Machine, around: int) -> bool:
    """Whether a loop inside of `around` others takes a new line in each iteration. Such a loop moves all lines in one
    pass, and none in the next ones, so no pass stands for the others.
    """
    at, line = sized(kernel, values), machine.caches[0].line_bytes if machine.caches else None
    return line is None or any(
        abs(step_bytes(access.element, placed.loops[-1], at)) >= line
        for placed in statements(kernel.body)
        if len(placed.loops) > around and isinstance(placed.statement, Assign)
        for access in accesses(placed.statement)
    )


def _one_pass(
    case: Case, found: SuccessiveLoops, moved: Callable[[Case], Sequence[LevelTime]]
) -> list[Sequence[LevelTime]]:
    """The levels of each inner loop in a pass in the middle of the nest, after EARLIER passes.

    Raises CommandError if its bytes cannot be counted.
    """
    kernel = apply(case.kernel)
    *earlier, last = found.passes(case.values, EARLIER)
    if all(parts == last for parts in earlier):
        earlier = earlier[-1:]  # more of the same leave the same lines
    after, levels = tuple(node for parts in earlier for nodes in parts for node in nodes), list[Sequence[LevelTime]]()
    options = replace(case.options, warm=False)
    with budget.part(2):
        for nodes in last:
            own = replace(case, kernel=replace(kernel, body=nodes), after=after, is_last=False, options=options)
            levels.append(moved(own))
            after = (*after, *nodes)
    return levels
