"""From a checked machine block to the machine model."""

from __future__ import annotations

from roofdsl.lang import resolved
from roofdsl.machine.model import (
    UNFUSED,
    BandwidthCeiling,
    Cache,
    ComputeCeiling,
    Link,
    Machine,
    Memory,
    Multiprocessor,
    Peak,
)


def lower(block: resolved.Machine) -> Machine:
    """The machine of a checked block; its numbers are exact and plain already (bytes, seconds, operations)."""
    entries = block.entries
    launch = next((e for e in entries if isinstance(e, resolved.Launch)), None)
    clock = next((e for e in entries if isinstance(e, resolved.Clock)), None)
    units = next((e for e in entries if isinstance(e, resolved.Units)), None)
    return Machine(
        name=block.name,
        title=block.title,
        peaks=tuple(Peak(e.type, e.cls or UNFUSED, e.rate, e.source) for e in entries if isinstance(e, resolved.Peak)),
        memories=tuple(
            Memory(e.name, e.size, e.bandwidth, e.line, e.duplex, e.source)
            for e in entries
            if isinstance(e, resolved.Memory)
        ),
        caches=tuple(_cache(e) for e in entries if isinstance(e, resolved.Cache)),
        ceilings=tuple(_ceiling(e) for e in entries if isinstance(e, resolved.Ceiling)),
        links=tuple(
            Link(e.name, e.a, e.b, e.bandwidth, e.both_ways, e.source) for e in entries if isinstance(e, resolved.Link)
        ),
        launch_s=launch.time if launch else None,
        launch_source=launch.source if launch else "",
        clock_hz=clock.frequency if clock else None,
        units=units.count if units else None,
        costs=tuple((e.cls, e.value) for e in entries if isinstance(e, resolved.Cost)),
        pipes_separate=any(isinstance(e, resolved.Pipes) for e in entries),
        divider_separate=any(isinstance(e, resolved.Pipes) and "div" in e.kinds for e in entries),
        multiprocessor=next((_multiprocessor(e) for e in entries if isinstance(e, resolved.Multiprocessor)), None),
        latencies=tuple((e.level, e.time) for e in entries if isinstance(e, resolved.Latency)),
        source="; ".join(block.sources),
        origin=block.source.name,
    )


def _multiprocessor(entry: resolved.Multiprocessor) -> Multiprocessor:
    return Multiprocessor(
        entry.warp,
        entry.warps,
        entry.blocks,
        entry.block_threads,
        entry.registers,
        entry.shared,
        entry.schedulers,
        entry.source,
    )


def _cache(entry: resolved.Cache) -> Cache:
    return Cache(
        name=entry.name,
        size_bytes=entry.size,
        bandwidth_bytes_per_s=entry.bandwidth,
        line_bytes=entry.line,
        sector_bytes=entry.sector,
        ways=entry.ways,
        copies=entry.copies,
        write_allocate=entry.write_allocate,
        duplex=entry.duplex,
        beside_bytes_per_s=entry.beside,
        source=entry.source,
    )


def _ceiling(entry: resolved.Ceiling) -> ComputeCeiling | BandwidthCeiling:
    if entry.is_level:
        return BandwidthCeiling(entry.label, entry.target, entry.rate, entry.source)
    return ComputeCeiling(entry.label, entry.target, entry.rate, entry.cls, entry.source)
