"""The boundary at which a prediction counts bytes: cache capacity, line, sector and traffic convention (rule 11)."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Cache, Machine


class Boundary(Record):
    """One boundary of a machine for traffic: what lies behind a cache.

    cache_bytes: the capacity of that cache; None on a machine without caches (then Q is compulsory). line_bytes: its
    line; None if it is not stated (then each array's line is its own element). convention: how bytes are counted;
    `because` says who chose it. moved_bytes: bytes moved at a time, a sector or a whole line; None for one element.
    allocated: of the lines whose first access is a store, the share that is loaded first, if the machine states one and
    nothing else decides the convention; only the expected time counts these loads, not the bound.
    """

    cache_bytes: int | None
    line_bytes: int | None
    convention: Traffic
    because: str
    assumptions: tuple[str, ...] = ()
    moved_bytes: int | None = None
    allocated: Fraction | None = None


def memory_boundary(kernel: Kernel, machine: Machine, traffic: Traffic | None = None) -> Boundary:
    """The boundary of `machine`'s memory; `traffic` is the command line's choice, which overrides all others."""
    return boundary_behind(kernel, machine, len(machine.caches) - 1, traffic)


def boundary_behind(kernel: Kernel, machine: Machine, place: int, traffic: Traffic | None = None) -> Boundary:
    """The boundary behind cache number `place` (0 is nearest to the registers; -1 is the machine without caches)."""
    cache = machine.caches[place] if place >= 0 else None
    convention: Traffic
    allocated: Fraction | None = None
    if traffic is not None:
        convention, because = traffic, "asked for"
    elif kernel.traffic is not None:
        convention, because = kernel.traffic, "stated by the kernel"
    elif cache is not None and isinstance(cache.write_allocate, Fraction):
        convention, allocated = "load_store", cache.write_allocate
        because = (
            f"stores can bypass {machine.name}'s {cache.name}, which loads {float(100 * allocated):g} % of their lines"
        )
    elif cache is not None and cache.write_allocate is not None:
        convention = "write_allocate" if cache.write_allocate else "load_store"
        because = f"the policy of {machine.name}'s {cache.name}"
    else:
        convention, because = "load_store", "the default"
    if cache is None:
        return Boundary(None, None, convention, because)
    notes = one_of_several(cache)
    if allocated is not None:
        share = f"{float(100 * allocated):g} % of the lines whose first access is a store"
        notes += (f"{cache.name}: {share} are loaded first in the expected time, and none in the bound",)
    moved = moved_behind(cache, machine.main_memory.line_bytes if place == len(machine.caches) - 1 else None)
    return Boundary(cache.size_bytes, cache.line_bytes, convention, because, notes, moved, allocated)


def one_of_several(cache: Cache) -> tuple[str, ...]:
    """The assumption about a cache of which there are several copies, in words."""
    if cache.copies == 1:
        return ()
    return (f"{cache.name}: bytes are counted as if one of its {cache.copies} copies served the whole kernel",)


def moved_behind(cache: Cache, memory_line: int | None) -> int | None:
    """Bytes that `cache` moves at a time across its far side; `memory_line` is that of a memory behind it.

    This is a sector if the cache has sectors, otherwise its line. A memory whose own line is longer than the sector
    moves that line, as long as it is a part of the cache's line; otherwise, the cache's line is moved. None if the
    cache states no line.
    """
    if cache.line_bytes is None:
        return None
    unit = cache.sector_bytes or cache.line_bytes
    if memory_line is not None and memory_line > unit:
        unit = memory_line if cache.line_bytes % memory_line == 0 else cache.line_bytes
    return unit
