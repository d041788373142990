"""The number of launches that the host makes of each function, where their sizes differ from iteration to iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import IntExpr

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import HostLoop, Step


def number_of_launches(name: str, steps: Sequence[Step], env: Mapping[str, int]) -> int:
    """The number of launches of kernel `name`. Raises CommandError if the budget does not suffice to count them."""
    what = f"the number of launches of kernel {name}"
    try:
        with budget.region(what):
            return launch_counts(steps, env).total()
    except budget.Spent:
        raise CommandError(
            f"counting the launches of kernel {name} takes too long ({budget.leave_out(what)})",
            "on a GPU, loops that depend on each other run on the host, which launches what is inside them again and "
            "again; use smaller sizes",
        ) from None


def launch_counts(steps: Sequence[Step], env: Mapping[str, int]) -> Counter[str]:
    """The number of launches of each function, of those that are launched."""
    return Counter({function: count for function, count in _calls_at(steps, env).items() if function != SKIPPED})


SKIPPED = ""
"""Stands for the functions of launches that are not made because their grids are empty."""


def _calls_at(steps: Sequence[Step], env: Mapping[str, int]) -> Counter[str]:
    """Like `launch_counts`, with launches that are skipped."""
    from roofdsl.codegen.launch_grids import HostIf, HostLoop, launch_with_grid

    total: Counter[str] = Counter()
    for step in steps:
        if isinstance(step, HostIf):
            total.update(_calls_at(step.then if step.condition.holds(env) else step.orelse, env))
        elif isinstance(step, HostLoop):
            values = range(step.start.evaluate(env), step.stop.evaluate(env), step.step.evaluate(env))
            if step.var in host_symbols(step.body):
                for value in values:
                    total.update(_calls_at(step.body, {**env, step.var: value}))
            elif values:
                total.update(_over(step, values, env))
        else:
            total[SKIPPED if launch_with_grid(step, env) is None else step.function] += 1
    return total


def _over(loop: HostLoop, values: range, env: Mapping[str, int]) -> Counter[str]:
    """The calls of all iterations of a host's loop on which only grids depend.

    A grid with linear bounds that is not empty at two values is not empty between them.
    """
    first, last = (_calls_at(loop.body, {**env, loop.var: value}) for value in (values[0], values[-1]))
    depends = [s for s in _grid_bounds(loop.body) if loop.var in s.symbols()]
    linear = all(loop.var not in affine(s).hidden() for s in depends)
    if not depends or (linear and SKIPPED not in first | last):
        return Counter({function: len(values) * count for function, count in first.items()})
    if len(values) <= 2:
        return first + last if len(values) == 2 else first
    half = len(values) // 2
    return _over(loop, values[:half], env) + _over(loop, values[half:], env)


def _grid_bounds(steps: Sequence[Step]) -> Iterator[IntExpr]:
    from roofdsl.codegen.launch_grids import HostIf, HostLoop

    for step in steps:
        if isinstance(step, HostLoop):
            yield from _grid_bounds(step.body)
        elif isinstance(step, HostIf):
            yield from _grid_bounds((*step.then, *step.orelse))
        else:
            for grid in (step, *([] if step.parts is None else [step.parts])):
                yield from (bound for dim in grid.dims for bound in (dim.start, dim.stop))


def host_symbols(steps: Sequence[Step]) -> frozenset[str]:
    """The symbols in what the host evaluates."""
    from roofdsl.codegen.launch_grids import HostIf, HostLoop

    found: frozenset[str] = frozenset()
    for step in steps:
        if isinstance(step, HostLoop):
            found |= step.start.symbols() | step.stop.symbols() | step.step.symbols() | host_symbols(step.body)
        elif isinstance(step, HostIf):
            found |= step.condition.symbols() | host_symbols(step.then) | host_symbols(step.orelse)
    return found
