"""What one multiprocessor of a GPU can hold at a time."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record


class Multiprocessor(Record):
    """What one of a machine's `units` can hold at a time; None for what the machine does not state.

    warp: threads that execute together; warps, blocks: the most of each that are resident; block_threads: most threads
    of one block; registers: number of 32-bit registers; thread_registers: the most of one thread; shared_bytes: shared
    memory; schedulers: the partitions to which registers and warps are assigned; load_units: load/store units, each of
    which answers one thread per cycle. tlb_bytes: the memory whose addresses
    its TLB holds; tlb_miss_s: how long a warp's request waits for an address that is not in it. Only the times of
    library operators use these two.
    """

    warp: int
    warps: int | None = None
    blocks: int | None = None
    block_threads: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    schedulers: int = 1
    tlb_bytes: int | None = None
    tlb_miss_s: Fraction | None = None
    thread_registers: int | None = None
    load_units: int | None = None
    source: str = ""
