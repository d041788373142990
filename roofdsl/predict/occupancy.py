"""Occupancy: the number of warps resident on a multiprocessor, and the rate that their requests in flight can sustain.

Slots, registers and shared memory limit the resident warps, block by block. By Little's law, a bandwidth beta needs
latency x beta bytes in flight. With fewer, the rate is at most the bytes in flight over the latency.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.machine.model import BandwidthCeiling, Machine
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.machine.quantities import show_bytes

REGISTERS_AT_A_TIME = 8
"""Registers of a thread are allocated in multiples of eight (NVIDIA, since Kepler: 256 for a warp)."""


class Block(Record):
    """The needs of one thread block: threads, 32-bit registers per thread, and bytes of shared memory."""

    threads: int
    registers: int = 0
    shared_bytes: int = 0


class Occupancy(Record):
    """The warps and blocks resident on one multiprocessor, and what limits them (`warps`, `blocks`, ...).

    most: the most warps that the multiprocessor can hold; None if the machine does not say.
    """

    warps: int
    blocks: int
    threads: int
    limits: tuple[str, ...]
    most: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "warps": self.warps,
            "most_warps": self.most,
            "blocks": self.blocks,
            "threads": self.threads,
            "limits": list(self.limits),
        }


def occupancy(machine: Machine, block: Block) -> Occupancy:
    """The number of copies of `block` that are resident on one multiprocessor of `machine`.

    Registers are allocated to warps, and each scheduler has its share of the registers; shared memory is allocated to
    blocks. Raises CommandError if the machine does not define a multiprocessor and its limits, and for a block that
    does not fit on one.
    """
    own = machine.multiprocessor
    if own is None:
        raise CommandError(
            f"machine {machine.name} does not define a multiprocessor",
            "add a line such as `multiprocessor warp 32, warps 64, registers 65536, shared 96 KiB`",
        )
    if own.block_threads is not None and block.threads > own.block_threads:
        raise CommandError(
            f"a block of {block.threads:,} threads is more than the {own.block_threads:,} of {machine.name}",
            "use smaller blocks",
        )
    if own.thread_registers is not None and block.registers > own.thread_registers:
        raise CommandError(
            f"a thread of {machine.name} has at most {own.thread_registers} registers, not {block.registers:,}",
            f"give --registers {own.thread_registers} or fewer",
        )
    warps = -(-block.threads // own.warp)
    fits = {word: n for word, n in _limits(own, block, warps) if n is not None}
    if not fits:
        raise CommandError(
            f"machine {machine.name} does not define limits of its multiprocessors", "give `warps`, `registers`"
        )
    blocks = min(fits.values())
    limits = tuple(word for word, n in fits.items() if n == blocks)
    if not blocks:
        raise CommandError(
            f"a block of {block.threads:,} threads does not fit on a multiprocessor of {machine.name}: "
            f"it runs out of {limits[0]}",
            "use smaller blocks or fewer registers",
        )
    return Occupancy(blocks * warps, blocks, blocks * block.threads, limits, own.warps)


def _limits(own: Multiprocessor, block: Block, warps: int) -> tuple[tuple[str, int | None], ...]:
    """(the limiting resource, the number of blocks for which it suffices)."""
    by_registers = None
    if own.registers is not None and block.registers:
        each = -(-block.registers // REGISTERS_AT_A_TIME) * REGISTERS_AT_A_TIME * own.warp
        by_registers = own.registers // own.schedulers // each * own.schedulers // warps
    by_shared = None
    if own.shared_bytes is not None and block.shared_bytes:
        by_shared = own.shared_bytes // block.shared_bytes
    by_warps = None if own.warps is None else own.warps // warps
    return ("warps", by_warps), ("blocks", own.blocks), ("registers", by_registers), ("shared memory", by_shared)


def occupancy_text(found: Occupancy) -> str:
    """`8 of 64 warps per multiprocessor (2 blocks, limited by registers)`."""
    of = f" of {found.most}" if found.most is not None else ""
    blocks = f"{found.blocks} block{'s' if found.blocks > 1 else ''}"
    return f"{found.warps}{of} warps per multiprocessor ({blocks}, limited by {' and '.join(found.limits)})"


class LatencyCeiling(Record):
    """The rate of a level with `in_flight_bytes` in flight; needed_bytes would sustain its bandwidth."""

    level: str
    latency_s: Fraction
    in_flight_bytes: int
    needed_bytes: Fraction

    @property
    def bytes_per_s(self) -> Fraction:
        return self.in_flight_bytes / self.latency_s

    @property
    def binds(self) -> bool:
        """Whether the bytes in flight are too few for the whole bandwidth."""
        return self.in_flight_bytes < self.needed_bytes

    def ceiling(self) -> BandwidthCeiling:
        name = f"{self.level} latency, {show_bytes(self.in_flight_bytes)} in flight"
        return BandwidthCeiling(name, self.level, self.bytes_per_s)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers in bytes, seconds and bytes per second."""
        return {
            "level": self.level,
            "latency_s": float(self.latency_s),
            "in_flight_bytes": self.in_flight_bytes,
            "needed_bytes": float(self.needed_bytes),
            "bytes_per_s": float(self.bytes_per_s),
            "binds": self.binds,
        }


def latency_ceilings(machine: Machine, resident: Occupancy, bytes_per_thread: int) -> tuple[LatencyCeiling, ...]:
    """For every level with a latency: its rate if all resident threads have `bytes_per_thread` in flight.

    Raises CommandError if the machine does not say how many multiprocessors (`units`) it has.
    """
    if machine.units is None:
        raise CommandError(f"machine {machine.name} does not say how many multiprocessors it has", "add `units 80`")
    in_flight = machine.units * resident.threads * bytes_per_thread
    rates = {c.name: c.bandwidth_bytes_per_s for c in machine.caches}
    rates |= {m.name: m.bandwidth_bytes_per_s for m in machine.memories}
    return tuple(
        LatencyCeiling(level, latency, in_flight, latency * rates[level]) for level, latency in machine.latencies
    )
