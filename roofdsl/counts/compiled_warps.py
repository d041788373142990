"""What the loads and stores of a GPU's compiled code ask of its first cache, and the rounds in which its threads load.

Compiled code keeps elements in registers that inner loops do not change, for example a sum (`registers.seen_at`). The
accesses that are left are made by warps (`warps`). In a round, a thread requests all that it loads in an iteration, and
then waits for it. Compilers unroll innermost loops, so a round has several iterations of these, unless what they load
may be what one of them stored before (`forwarded`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from roofdsl.counts.forwarded import is_early, is_forwarded
from roofdsl.counts.registers import Kept, alone, seen_at
from roofdsl.counts.warps import together
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import scalar_bytes, statements
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized, sized

UNROLLED = 4
"""The iterations of an innermost loop that nvcc puts into one round if it does not know their number: see the PTX of
the generated kernels (`tests/codegen/test_unrolled.py`). The generated code forbids it for loops over threads, but not
for a sum over the whole loop. Loads of an array that the loop also stores to may stay where they are (`forwarded`)."""

POINTER = 2
"""The instructions that add 64 bits to an address."""

CONTROL = 7
"""The instructions that end a round of an innermost loop, with a counter of 64 bits: two each to count, to subtract the
bound and to compare, and a branch. As in the machine code of `matmul` for compute capability 8.0."""


class WarpAccesses(Record):
    """The accesses of one launch, as compiled. loads, stores: those of single threads. cycles: those of the first cache
    for the accesses of all warps. rounds: those of all threads together. addressing: the instructions of innermost
    loops that compute addresses and count iterations.
    """

    loads: int
    stores: int
    cycles: Fraction
    rounds: Fraction
    addressing: Fraction


class FirstCache(Record):
    """A first cache: in a cycle, it answers an access of a warp in one of its lines, to at most `units` threads and at
    most `cycle_bytes`.
    """

    line_bytes: int
    cycle_bytes: Fraction
    units: Fraction

    def cycles(self, accesses: int, element_bytes: int, lines: int) -> Fraction:
        """The cycles of so many accesses of threads, to elements in so many lines of their warps."""
        return max(Fraction(lines), accesses / self.units, accesses * element_bytes / self.cycle_bytes)


def warp_accesses_at(  # noqa: PLR0917
    kernel: Kernel,
    params: Mapping[str, int],
    warp: int,
    cache: FirstCache,
    block: Mapping[str, int],
    summing: int | None = None,
) -> WarpAccesses:
    """The accesses of a launch of `kernel`, whose loops over threads are outermost and marked parallel.

    block: threads of a block along each of these loops, x first; nothing for a single thread. summing: the threads of a
    launch that adds up a whole loop, if this is the only loop over threads: the code lets the compiler unroll it.
    Scalars count as one access of one thread. Raises CommandError for missing or illegal sizes, and TooHard.
    """
    at = sized(kernel, params)
    loads, stores = (int(size > 0) for size in scalar_bytes(at.kernel))
    cycles, addressing = Fraction(loads + stores), Fraction(0)
    rounds, looping = dict[tuple[int, ...], Fraction](), dict[tuple[int, ...], Fraction]()
    loops = (loop for placed in statements(at.kernel.body) for loop in placed.loops)
    threads = frozenset(loop.var for loop in loops if loop.parallel) if block else frozenset()
    every = seen_at(at, threads)
    for kept in every:
        touched = _touched(at, kept, cache.line_bytes)
        lines, element_bytes = _lines(at, kept, touched, warp, block), kept.element.array.type.bytes
        body = kept.places[0].position[: kept.depth]
        own, waits, loaded = Fraction(kept.times), Fraction(kept.times), Fraction(kept.loaded)
        if summing is not None or _is_unrolled(kept, threads):
            unrolled = _unrolled(kept, touched, summing)
            own /= unrolled
            looping[body] = max(looping.get(body, Fraction(0)), own)
            addressing += POINTER * (own if _is_adjacent(kept) else kept.times)
            loaded, waits = _loaded(kept, every, unrolled)
        if kept.loaded:  # what is loaded in one body is requested together
            rounds[body] = max(rounds.get(body, Fraction(0)), waits)
        cycles += cache.cycles(kept.times, element_bytes, lines) * (loaded + kept.stored)
        loads, stores = loads + ceil(kept.times * loaded), stores + kept.times * kept.stored
    addressing += CONTROL * sum(looping.values(), Fraction(0))
    return WarpAccesses(loads, stores, cycles, sum(rounds.values(), Fraction(0)), addressing)


def _touched(at: Sized, kept: Kept, line_bytes: int) -> Any:
    """isl.Map from the counters of the loops around its load and store to the line of an element."""
    import islpy as isl

    from roofdsl.sets.access_sets import build
    from roofdsl.sets.library import limited

    with limited(f"the lines of kernel {at.name}"):
        references = build(alone(at.kernel, kept.places[0]), at.values, line_bytes).references
        touched = next(r.location for r in references if r.element == kept.element)
        inner = touched.dim(isl.dim_type.in_) - kept.depth
        return touched.project_out(isl.dim_type.in_, kept.depth, inner).set_tuple_name(isl.dim_type.in_, "T")


def _lines(at: Sized, kept: Kept, touched: Any, warp: int, block: Mapping[str, int]) -> int:
    """The number of lines that all warps touch when they load, or store, the element."""
    import islpy as isl

    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    loops = kept.places[0].loops[: kept.depth]
    with limited(f"the lines of kernel {at.name}"):
        if loops:
            places = {loop.var: depth for depth, loop in enumerate(loops)}
            along = {places[name]: threads for name, threads in block.items() if name in places}
            names, onto = [f"d{depth}" for depth in range(kept.depth)], together(at, loops, along, warp)
            touched = touched.apply_domain(isl.Map(f"{{ T[{', '.join(names)}] -> T[{', '.join(onto)}] }}"))
        return number(cardinality(touched.wrap()))


def _is_unrolled(kept: Kept, threads: Collection[str]) -> bool:
    """Whether the element is accessed in every iteration of an innermost loop that is not over threads."""
    loops = kept.places[0].loops
    return 0 < kept.depth == len(loops) and loops[-1].var not in threads


def _loaded(kept: Kept, every: Sequence[Kept], unrolled: Fraction) -> tuple[Fraction, Fraction]:
    """For an element of an innermost loop: the share of the iterations that load it, and the rounds in which they do,
    if so many iterations are one round unless a store comes between their loads.
    """
    body, array = kept.places[0].position[: kept.depth], kept.element.array.name
    stored = {k.element.array.name for k in every if k.stored and k.places[0].position[: k.depth] == body}
    each, together = Fraction(kept.times), kept.times / unrolled
    if array not in stored:
        return Fraction(kept.loaded), together
    if is_forwarded(kept, every):
        return kept.loaded / unrolled, together if stored == {array} else each
    return Fraction(kept.loaded), together if is_early(kept, every, UNROLLED) else each


def _unrolled(kept: Kept, touched: Any, entered: int | None) -> Fraction:
    """How many iterations of its innermost loop are in one round. entered: how often this loop begins, if known."""
    import islpy as isl

    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number

    if entered is None:
        entered = number(cardinality(touched.domain().project_out(isl.dim_type.set, kept.depth - 1, 1)))
    return max(Fraction(1), min(Fraction(UNROLLED), Fraction(kept.times, entered))) if entered else Fraction(1)


def _is_adjacent(kept: Kept) -> bool:
    """Whether successive iterations access elements at a distance that is known when the code is compiled, so that the
    iterations of a round share a pointer.
    """
    var, subscripts = kept.places[0].loops[-1].var, kept.element.subscripts
    fastest = 0 if kept.element.array.column_major else len(subscripts) - 1
    return all(k == fastest or var not in subscript.symbols() for k, subscript in enumerate(subscripts))
