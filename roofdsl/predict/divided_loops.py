"""How the generated code divides a kernel's work among cores: loop by loop, in whole iterations.

Threads share the iterations of the outermost loops that are proven or declared parallel. Everything outside of these
loops runs on one core. Work is measured in accesses to arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import For, If, Kernel, Node
from roofdsl.loops.sized import Sized, sized
from roofdsl.machine.quantities import show_number
from roofdsl.predict.loops_as_launched import independent_loops


class Division(Record):
    """The division of one launch's work. alone: the share of it outside of divided loops, which one core does.

    loops: for each divided loop, its share of the work and its number of iterations; None if that varies between
    executions of the loop, which is taken to be many.
    """

    alone: Fraction = Fraction(0)
    loops: tuple[tuple[Fraction, int | None], ...] = ((Fraction(1), None),)

    def busiest(self, cores: int) -> Fraction:
        """The share of all work that the busiest core does. Each loop's iterations are alike and divided evenly."""
        if cores == 1:
            return Fraction(1)
        each = (
            share * (Fraction(1, cores) if trips is None else Fraction(ceil(Fraction(trips, cores)), trips))
            for share, trips in self.loops
        )
        return self.alone + sum(each, Fraction(0))


def division(kernel: Kernel, values: Mapping[str, int]) -> Division | None:
    """The division of the kernel's work at these sizes; None if no loop has iterations that are known to be
    independent. Loops whose accesses data choose, and kernels without accesses, count as divided evenly.
    """
    from roofdsl.codegen.target import outermost

    at = sized(kernel, values)
    divided = outermost(at.kernel.body, independent_loops(kernel))
    if not divided:
        return None
    every = 0 if is_indirect(at.kernel) else _accesses(at, at.kernel.body)
    if not every:
        return Division()
    loops = []
    for loop in divided:
        own = every - _accesses(at, _without(at.kernel.body, loop))
        if own:
            loops.append((Fraction(own, every), _trips(loop, at.values)))
    return Division(1 - sum((share for share, _ in loops), Fraction(0)), tuple(loops))


def undivided(kernel: Kernel) -> str:
    """Why the generated code cannot share the kernel's work among cores."""
    return f"no loop of {kernel.name} is known to have independent iterations, so its code runs on one core"


def in_words(divided: Division | None, cores: int) -> tuple[str, ...]:
    """How the work is divided among several cores, for people."""
    if cores == 1 or divided is None:
        return ()
    times = cores * divided.busiest(cores)
    if times == 1:
        return (f"the work is divided evenly among {cores} cores",)
    found = f"the busiest of {cores} cores has {show_number(times)} times an even share of the accesses"
    if not divided.alone:
        return (f"{found}, since cores get whole iterations",)
    return (f"{found}: {show_number(100 * divided.alone, 3)} % are outside of the loops that cores share",)


def _accesses(at: Sized, body: Sequence[Node]) -> int:
    from roofdsl.counts.traffic_at import access_count

    return access_count(replace(at, kernel=replace(at.kernel, body=tuple(body)))) if body else 0


def _without(nodes: Sequence[Node], left_out: For) -> tuple[Node, ...]:
    """The nodes without this loop, and without what is then empty."""
    kept: list[Node] = []
    for node in nodes:
        if node is left_out:
            continue
        if isinstance(node, For):
            body = _without(node.body, left_out)
            kept += [replace(node, body=body)] if body else []
        elif isinstance(node, If):
            then, orelse = _without(node.then, left_out), _without(node.orelse, left_out)
            kept += [replace(node, then=then, orelse=orelse)] if then or orelse else []
        else:
            kept.append(node)
    return tuple(kept)


def _trips(loop: For, values: Mapping[str, int]) -> int | None:
    """The number of iterations of the loop; None if it depends on other loops."""
    try:
        return len(range(*(bound.evaluate(values) for bound in (loop.start, loop.stop, loop.step)))) or None
    except KeyError:
        return None
