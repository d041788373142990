"""The traffic of a kernel with data behind all caches of a machine, from one pass over its accesses."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl import budget
from roofdsl.counts.data_at import accesses_of_data
from roofdsl.counts.lines_of_sets import ArrayLines
from roofdsl.counts.sector_traffic import Transfers
from roofdsl.counts.traffic_at import LONGEST_SIMULATION, OutOfReach, TrafficAt, convention_totals
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses, indices, scalar_bytes, statements
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.sized import Sized


class Limits(Record):
    """The caches that a pass counts, all with lines of `line_bytes`, by their numbers of lines in rising order, and the
    pages of a TLB.

    pages: 0 counts no pages.
    """

    line_bytes: int
    lines: tuple[int, ...]
    pages: int = 0
    page_bytes: int = 4096


class CacheTraffic(Record):
    """What crosses the boundary behind one cache in one execution, and in two in a row (None if that was not counted).

    begun_apart: the residencies of randomly accessed lines, which data choose, in the second execution if there
    are two; stored_apart: those of them that are stored.
    """

    once: tuple[ArrayLines, ...]
    twice: tuple[ArrayLines, ...] | None
    begun_apart: int
    stored_apart: int


class DataTraffic(Record):
    """One pass: the traffic behind each cache of the limits, the accesses to pages that are not held, and the bytes of
    distinct elements with the scalars that are stored.
    """

    at: Sized
    limits: Limits
    caches: tuple[CacheTraffic, ...]
    pages: int
    footprint_bytes: int
    accesses: int

    def behind(self, lines: int) -> CacheTraffic:
        """The traffic behind a cache of so many lines, which is one of the limits."""
        return self.caches[self.limits.lines.index(lines)]

    def transfers(self, where: Transfers, convention: Traffic, *, warm: bool) -> TrafficAt | None:
        """What `transfers_at` and `warm_transfers_at` say; None for a cache that was not counted."""
        line = self.limits.line_bytes
        if where.cache_bytes is None or (where.line_bytes, where.moved_bytes) != (line, line):
            return None
        if where.cache_bytes // line not in self.limits.lines:
            return None
        found = self.behind(where.cache_bytes // line)
        once = convention_totals(self.at, found.once, convention)
        if not warm:
            return TrafficAt(*once, self.accesses, "simulation")
        if found.twice is None:
            return None
        twice = convention_totals(self.at, found.twice, convention)
        loads, stores = (None if b is None or a is None else b - a for a, b in zip(once[:2], twice[:2], strict=True))
        return TrafficAt(loads, stores, twice[2] - once[2], self.accesses, "simulation")


def chosen_arrays(kernel: Kernel) -> tuple[str, ...]:
    """The arrays of which data choose elements, in the order of their declarations."""
    found = set()
    for placed in statements(kernel.body):
        if isinstance(placed.statement, (Assign, Let)):
            touched = (access.element for access in accesses(placed.statement))
            found |= {e.array.name for e in touched if next(indices(e), None) is not None}
    return tuple(a.name for a in kernel.arrays if a.name in found)


def data_traffic_at(at: Sized, limits: Limits, *, warm: bool) -> DataTraffic:
    """One pass over the accesses of a kernel with data. warm: the second of two executions in a row counts.

    Raises CommandError for what `compile_kernel` refuses, accesses outside an array, tables that do not fit into
    memory, and more accesses than any simulation makes; TooHard beyond the budget.
    """
    from roofdsl.sets.library import limited
    from roofdsl.simulate.compiled_kernel import compile_kernel
    from roofdsl.simulate.several_caches import several_caches

    executed = accesses_of_data(at)
    if executed > LONGEST_SIMULATION:
        raise OutOfReach(at.name, "its data choose the accesses", executed, LONGEST_SIMULATION)
    with limited(f"the traffic at these sizes of kernel {at.name}"):
        program = compile_kernel(at.kernel, at.values, limits.line_bytes)
        names, memory = chosen_arrays(at.kernel), budget.available_bytes()
        found = several_caches(
            program, at.name, limits.lines, names, limits.pages, limits.page_bytes, warm=warm, memory_bytes=memory
        )
    arrays = [(a.array.name, a.line_bytes) for a in program.layouts]
    caches = []
    for c, (begun, stored) in enumerate(found.apart):
        each = [_lines(arrays, run[c].tolist()) for run in found.counts]
        caches.append(CacheTraffic(each[0], each[1] if warm else None, begun, stored))
    touched = sum(n * a.array.type.bytes for n, a in zip(found.touched, program.layouts, strict=True))
    return DataTraffic(at, limits, tuple(caches), found.pages, touched + scalar_bytes(at.kernel)[1], found.accesses)


def _lines(arrays: Sequence[tuple[str, int]], counts: Sequence[Sequence[int]]) -> tuple[ArrayLines, ...]:
    found = []
    for (name, line), (begun, written, stored) in zip(arrays, counts, strict=True):
        found.append(ArrayLines(name, line, begun, begun - written, stored))
    return tuple(found)
