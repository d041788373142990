"""From a checked machine block to the machine model."""

from __future__ import annotations

from roofdsl.lang.checked import CheckedMachine, Entry
from roofdsl.lang.machine_attributes import attributes
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import (
    UNFUSED,
    BandwidthCeiling,
    Cache,
    ComputeCeiling,
    Link,
    Machine,
    Memory,
    Peak,
    Sustained,
)
from roofdsl.machine.multiprocessor import Multiprocessor


def lower(block: CheckedMachine) -> Machine:
    """The machine of a checked block; its numbers are already exact and in plain units (bytes, seconds, operations)."""
    words = ("processor", "pipes", "transfers", *attributes("machine"))
    lines = [entry for word in words for entry in block.all_of(word)]
    settings = dict(pair for entry in lines for pair in entry.fields.items())
    lines += [entry for word in ("latency", "cost") for entry in block.all_of(word)]
    units = [Multiprocessor(**e.fields, source=e.source) for e in block.all_of("multiprocessor")]
    cores = [Core(**e.fields, source=e.source) for e in block.all_of("core")]
    return Machine(
        name=block.name,
        title=block.title,
        peaks=tuple(_peak(e) for e in block.all_of("peak")),
        memories=tuple(Memory(**e.fields, source=e.source) for e in block.all_of("memory")),
        caches=tuple(Cache(**e.fields, source=e.source) for e in block.all_of("cache")),
        ceilings=tuple(_ceiling(e) for e in block.all_of("ceiling")),
        links=tuple(Link(**e.fields, source=e.source) for e in block.all_of("link")),
        costs=tuple((e.fields["cls"], e.fields["value"]) for e in block.all_of("cost")),
        multiprocessor=units[0] if units else None,
        sustained=tuple(Sustained(**e.fields, source=e.source) for e in block.all_of("sustained")),
        latencies=tuple((e.fields["level"], e.fields["time_s"]) for e in block.all_of("latency")),
        instructions=tuple(Instruction(**e.fields, source=e.source) for e in block.all_of("instruction")),
        core=cores[0] if cores else None,
        source="; ".join(block.sources),
        line_sources=tuple((_about(e), e.source) for e in lines if e.source),
        origin=block.source.name,
        **settings,
    )


def _about(entry: Entry) -> str:
    """What a line about the machine itself states: `units`, `latency L1`, `cost div`."""
    of = [entry.fields[field] for field in ("level", "cls") if field in entry.fields]
    return " ".join((entry.keyword, *of))


def _peak(entry: Entry) -> Peak:
    fields = entry.fields
    return Peak(**{**fields, "cls": fields["cls"] or UNFUSED}, source=entry.source)


def _ceiling(entry: Entry) -> ComputeCeiling | BandwidthCeiling:
    kind = BandwidthCeiling if "level" in entry.fields else ComputeCeiling
    return kind(**entry.fields, source=entry.source)
