"""How the generated code divides a kernel's work among cores: loop by loop, in whole iterations.

Threads share the iterations of the outermost loops that are proven or declared parallel, also those whose iterations
each have their own scalars (`codegen.core_loops`). Everything outside of these loops runs on one core. Work is measured
in accesses to arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import bound_accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.integers import Compare, Const, Sym, mul, sub
from roofdsl.loops.model import For, If, Kernel
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.streams import deciding
from roofdsl.machine.quantities import show_number
from roofdsl.predict.loops_as_launched import independent_loops

UNEVEN = "cores share the work unevenly"
"""The cause of time above the bound."""


class Shared(Record):
    """A loop that cores share.

    part: its share of all work. iterations: their number; None if that varies between executions of the loop, or is not
    known. first: the accesses in the first iterations, for a number of these; None if all are alike. of_first_core: if
    the number of iterations varies, and those of one execution are alike, the share of `part` that the first of so many
    cores does; None if it is assumed to be even.
    """

    part: Fraction
    iterations: int | None
    first: Callable[[int], int] | None = None
    of_first_core: Callable[[int], Fraction] | None = None

    def busiest(self, cores: int) -> Fraction:
        """The share of all work that the core with the most of this loop does.

        Each core takes iterations in sequence, and the first cores take one more if they do not come out even. That is
        the static schedule of OpenMP, and that of numba.
        """
        if self.iterations is None or self.first is None:
            return self.if_alike(cores)
        cores = min(cores, self.iterations)  # others get none
        fewest, more = divmod(self.iterations, cores)
        until = [self.first(fewest * core + min(core, more)) for core in range(cores + 1)]
        return self.part * Fraction(max(b - a for a, b in pairwise(until)), until[-1])

    def if_alike(self, cores: int) -> Fraction:
        """The same share if all iterations were alike."""
        if self.of_first_core is not None:
            return self.part * self.of_first_core(cores)
        if self.iterations is None:
            return self.part / cores
        return self.part * Fraction(-(-self.iterations // cores), self.iterations)


class Division(Record):
    """The division of one launch's work. alone: the share of it outside of divided loops, which one core does."""

    alone: Fraction = Fraction(0)
    loops: tuple[Shared, ...] = (Shared(Fraction(1), None),)

    def most_cores(self) -> int | None:
        """The most cores that have work at the same time; None if that is not limited."""
        if any(loop.iterations is None for loop in self.loops):
            return None
        return max((loop.iterations for loop in self.loops if loop.iterations is not None), default=1)

    def phases(self, cores: int) -> tuple[tuple[Fraction, Fraction], ...]:
        """(share of all work, share that its busiest core does) of the work that one core does and of each loop."""
        if cores == 1:
            return ((Fraction(1), Fraction(1)),)
        return ((self.alone, self.alone), *((loop.part, loop.busiest(cores)) for loop in self.loops))

    def busiest(self, cores: int) -> Fraction:
        """The share of all work that the busiest core does."""
        return sum((busiest for _, busiest in self.phases(cores)), Fraction(0))

    def is_unlike(self, cores: int) -> bool:
        """Whether the busiest core has more than others because its iterations are longer, rather than because it has
        more of them: the factor by which they raise its share is the larger one of the two.
        """
        even, alike, busiest = (
            sum(shares, Fraction(0))
            for shares in zip(
                *((loop.part / cores, loop.if_alike(cores), loop.busiest(cores)) for loop in self.loops), strict=True
            )
        )
        return busiest * even > alike**2

    def remedy(self, cores: int) -> str:
        """What would divide the work evenly."""
        if not self.loops:
            return "loops whose iterations are independent"
        if self.is_unlike(cores):
            return "iterations of the same length in the loops that cores share"
        return "more iterations in the loops that cores share"


def division(kernel: Kernel, values: Mapping[str, int]) -> Division | None:
    """The division of the kernel's work at these sizes; None if no loop has iterations that are known to be
    independent. Kernels without accesses, and those with index arrays without values, count as divided evenly.
    """
    from roofdsl.counts.first_iterations import with_only
    from roofdsl.counts.traffic_at import access_count

    at = sized(kernel, values)
    divided = loops_for_cores(kernel, at.kernel)
    if not divided:
        return None
    every = 0 if is_indirect(at.kernel) and at.kernel.data is None else access_count(at)
    if not every:
        return Division()
    loops = []
    for loop in divided:
        own = access_count(replace(at, kernel=replace(at.kernel, body=with_only(at.kernel.body, loop, loop))))
        if own:
            loops.append(_shared(at, loop, own, Fraction(own, every)))
    return Division(1 - sum((loop.part for loop in loops), Fraction(0)), tuple(loops))


def loops_for_cores(kernel: Kernel, plain: Kernel) -> list[For]:
    """The loops that the generated code shares among cores. plain: the kernel with its directives applied, whose loops
    they are.
    """
    from roofdsl.checks.private_copies import private_scalar_loops
    from roofdsl.codegen.core_loops import core_loops

    return [shared.loop for shared in core_loops(plain, independent_loops(kernel), private_scalar_loops(kernel))]


def _shared(at: Sized, loop: For, accesses: int, part: Fraction) -> Shared:
    """The division of a loop that makes so many accesses, which are this part of all."""
    from roofdsl.counts.data_at import accesses_of_first_with_data
    from roofdsl.counts.first_iterations import accesses_of_first

    if bound_accesses(loop):
        return Shared(part, None)  # the data say how many iterations there are
    iterations, are_alike = _iterations(loop, at.values), loop.var not in deciding(loop.body)
    if is_indirect(at.kernel) and (iterations is None or not are_alike):
        return Shared(part, iterations, None if iterations is None else accesses_of_first_with_data(at, loop))
    if iterations is None:
        return Shared(part, None, of_first_core=_first_core_of(at, loop, accesses) if are_alike else None)
    if are_alike:
        return Shared(part, iterations)
    if any(bound.symbols() - at.values.keys() for bound in (loop.start, loop.stop)):
        return Shared(part, None)  # it moves with an outer loop
    return Shared(part, iterations, accesses_of_first(at, loop))


def _first_core_of(at: Sized, loop: For, accesses: int) -> Callable[[int], Fraction] | None:
    """The share of the loop's accesses that the first of several cores makes, with as many iterations as any other, if
    their number m depends on outer loops. Iteration i, from 0, is among its first ceil(m / cores) if cores * i < m.

    Bounds with `min` or `max`, which no such condition can have, count as divided evenly; None for loops that run
    downwards.
    """
    from roofdsl.counts.first_iterations import with_only
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.sets.sizes import NotAffine

    if not isinstance(loop.step, Const) or loop.step.value < 0:
        return None

    def share(cores: int) -> Fraction:
        done = mul(Const(cores), sub(Sym(loop.var), loop.start))
        own = If(Compare("<", done, sub(loop.stop, loop.start)), loop.body, (), loop.span)
        body = with_only(at.kernel.body, loop, replace(loop, body=(own,)))
        try:
            return Fraction(access_count(replace(at, kernel=replace(at.kernel, body=body))), accesses)
        except (CommandError, NotAffine):
            return Fraction(1, cores)

    return share


def division_if_counted(kernel: Kernel, values: Mapping[str, int]) -> Division | None:
    """The division of the kernel's work among cores, which counts as even if its accesses take too long to count; None
    if it has no loop whose iterations are known to be independent.
    """
    try:
        return division(kernel, values)
    except CommandError:
        return Division()


def division_of_nest(kernel: Kernel, values: Mapping[str, int]) -> Division:
    """The division of a loop nest of a kernel, which one core does alone if its iterations may not be independent."""
    return division_if_counted(kernel, values) or Division(Fraction(1), ())


def undivided(kernel: Kernel) -> str:
    """Why the generated code cannot share the kernel's work among cores."""
    if is_indirect(kernel):
        return f"the data decide whether iterations of {kernel.name} are independent, so its code runs on one core"
    return f"no loop of {kernel.name} is known to have independent iterations, so its code runs on one core"


def in_words(divided: Division | None, cores: int) -> tuple[str, ...]:
    """How the work is divided among several cores, for people."""
    if cores == 1 or divided is None:
        return ()
    times = cores * divided.busiest(cores)
    if show_number(times) == "1":  # also 1.0005, which would be shown as 1
        return (f"the work is divided evenly among {cores} cores",)
    found = f"the busiest of {cores} cores has {show_number(times)} times an even share of the accesses"
    if not divided.alone:
        why = (
            "the iterations that they share are not alike" if divided.is_unlike(cores) else "cores get whole iterations"
        )
        return (f"{found}, since {why}",)
    return (f"{found}: {show_number(100 * divided.alone, 3)} % are outside of the loops that cores share",)


def _iterations(loop: For, values: Mapping[str, int]) -> int | None:
    """The number of iterations of the loop; None if it depends on other loops. (Its start may: `range(t, t + n)`.)"""
    try:
        start, stop, step = (bound.evaluate(values) for bound in (loop.start, loop.stop, loop.step))
    except KeyError:
        numbers = {name: Const(value) for name, value in values.items()}
        extent, each = affine(sub(loop.stop, loop.start).substitute(numbers)), loop.step.substitute(numbers)
        if extent.terms or not isinstance(each, Const):
            return None
        start, stop, step = 0, extent.constant, each.value
    return len(range(start, stop, step)) or None
