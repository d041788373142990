"""The inner loops of a case that follow each other, with the bytes that each moves in one pass over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from roofdsl import budget
from roofdsl.lang.record import replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Count
from roofdsl.loops.successive_loops import SuccessiveLoops, successive_loops
from roofdsl.loops.transform import apply
from roofdsl.predict.crossings import Case
from roofdsl.predict.expected_of_inner_loops import InnerLoops
from roofdsl.predict.launch_statements import nests_alone
from roofdsl.predict.level_time import LevelTime


def inner_loops(case: Case, moved: Callable[[Case], Sequence[LevelTime]]) -> InnerLoops | None:
    """The inner loops of a launch or of one of its nests; None if there are not several, if data choose the accesses,
    or if the code makes them in an order of its own.

    moved: the levels of a case. Raises TooHard.
    """
    from roofdsl.counts.executions import statement_executions

    kernel, code = apply(case.kernel), apply(case.written)
    if is_indirect(kernel) or kernel.data is not None:
        return None
    found, compiled = successive_loops(kernel.body), successive_loops(code.body)
    if found is None or compiled is None or len(found.parts) != len(compiled.parts):
        return None
    innermost = found.around[-1].loop
    marker = Count("passes", innermost.step, innermost.span)
    once = replace(kernel, body=replace(found, parts=((marker,),)).inside())
    (passes,) = statement_executions(once, case.values)
    if passes < 1:
        return None
    apart = replace(code, body=tuple(node for nodes in compiled.alone() for node in nodes))
    kernels = nests_alone(apart)
    if len(kernels) != len(found.parts):
        return None
    return InnerLoops(kernels, passes, partial(_one_pass, case, found, moved))


def _one_pass(
    case: Case, found: SuccessiveLoops, moved: Callable[[Case], Sequence[LevelTime]]
) -> list[Sequence[LevelTime]]:
    """The levels of each inner loop in a pass in the middle of the nest, after all that is executed before it.

    Raises CommandError if its bytes cannot be counted.
    """
    kernel = apply(case.kernel)
    after = (kernel.body if case.options.warm else ()) if case.after is None else case.after
    first, parts = found.one_pass(case.values)
    after, levels = (*after, *first), list[Sequence[LevelTime]]()
    with budget.part(2):
        for nodes in parts:
            own = replace(case, kernel=replace(kernel, body=nodes), after=after, is_last=False)
            levels.append(moved(own))
            after = (*after, *nodes)
    return levels
