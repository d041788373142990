"""At which boundary a prediction takes its bytes: cache capacity, line and traffic convention (rule 11)."""

from __future__ import annotations

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine


class Boundary(Record):
    """The memory boundary of a machine as traffic sees it.

    cache_bytes: capacity of the last cache, None on a machine without caches (then Q is compulsory).
    line_bytes: its line, None where not stated (then each array's line is its own element).
    convention: how bytes are counted, and in `because` who says so.
    """

    cache_bytes: int | None
    line_bytes: int | None
    convention: Traffic
    because: str
    assumptions: tuple[str, ...] = ()


def memory_boundary(kernel: Kernel, machine: Machine, traffic: Traffic | None = None) -> Boundary:
    """The boundary of `machine`'s memory; `traffic` is the command line's choice, which goes before all others."""
    cache = machine.last_cache
    convention: Traffic
    if traffic is not None:
        convention, because = traffic, "asked for"
    elif kernel.traffic is not None:
        convention, because = kernel.traffic, "stated by the kernel"
    elif cache is not None and cache.write_allocate is not None:
        convention = "write_allocate" if cache.write_allocate else "load_store"
        because = f"the policy of {machine.name}'s {cache.name}"
    else:
        convention, because = "load_store", "the default"
    if cache is None:
        return Boundary(None, None, convention, because)
    notes: tuple[str, ...] = ()
    if cache.copies > 1:
        notes = (f"{cache.name}: Q is that of one copy of the {cache.copies} serving the whole kernel",)
    return Boundary(cache.size_bytes, cache.line_bytes, convention, because, notes)
