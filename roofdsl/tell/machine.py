"""Machines: the shipped ones in a table, one in full, and the rate of a stream over its links."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from roofdsl.machine.attribute_text import attribute_numbers, numbers, options, settings
from roofdsl.machine.model import UNFUSED, ComputeCeiling, Machine, operation
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_size, show_time
from roofdsl.predict.links import StreamRate
from roofdsl.tell.blocks import Block, Gap, Title, figures, line


def listed(machines: Iterable[Machine]) -> list[Block]:
    """Each machine with its highest peak and the bandwidth of its memory."""
    rows = []
    for m in machines:
        best = max(m.peaks, key=lambda p: p.rate_per_s)
        peak = f"{best.type} {best.cls} {show_rate(best.rate_per_s, operation(best.type))}"
        rows.append((m.name, peak, show_bandwidth(m.main_memory.bandwidth_bytes_per_s), m.title))
    return [figures(rows, ("name", "peak", "memory", ""), depth=0)]


def flow(rate: StreamRate) -> list[Block]:
    """The rate of a stream, its limit, and the share of each link and memory."""
    limits = f", limited by {', '.join(rate.limits)}" if rate.limits else ": no link leads there"
    used = [(n, show_bandwidth(v)) for n, v in (*rate.links, *rate.memories) if v]
    return [Title(show_bandwidth(rate.bytes_per_s), limits), figures(used, right=(1,))]


def blocks(m: Machine) -> list[Block]:
    """A machine, with one line for every number."""
    rows: list[tuple[str, str, str]] = [("processor", m.processor, m.source_of("processor"))] if m.processor else []
    for p in m.peaks:
        cls = "" if p.cls == UNFUSED else f" {p.cls}"
        rows.append((f"peak {p.type}{cls}", options(p, "peak", show_rate(p.rate_per_s, operation(p.type))), p.source))
    if m.pipes_separate:
        what = "separate adder, multiplier and divider" if m.divider_separate else "separate adder and multiplier"
        rows.append(("pipes", what, m.source_of("pipes")))
    if m.pipes_by_unit:
        rows.append(("pipes", "classes compete for the units of their instructions", m.source_of("pipes")))
    if m.transfer_overlap is not None:
        rows.append(("transfers", _overlap(m.transfer_overlap), m.source_of("transfers")))
    for c in m.caches:
        about = (show_size(c.size_bytes), show_bandwidth(c.bandwidth_bytes_per_s))
        rows.append((f"cache {c.name}", options(c, "cache", *about), c.source))
    for mem in m.memories:
        about = (show_size(mem.size_bytes), show_bandwidth(mem.bandwidth_bytes_per_s))
        rows.append((f"memory {mem.name}", options(mem, "memory", *about), mem.source))
    for ceiling in m.ceilings:
        if isinstance(ceiling, ComputeCeiling):
            cls = f" {ceiling.cls}" if ceiling.cls else ""
            what = f"{ceiling.type}{cls} {show_rate(ceiling.rate_per_s, operation(ceiling.type))}"
        else:
            what = f"{ceiling.level} {show_bandwidth(ceiling.bandwidth_bytes_per_s)}"
        rows.append((f'ceiling "{ceiling.name}"', what, ceiling.source))
    for link in m.links:
        arrow = "<->" if link.both_ways else "->"
        what = f"{link.start} {arrow} {link.end} {show_bandwidth(link.bandwidth_bytes_per_s)}"
        rows.append((f"link {link.name}", what, link.source))
    rows += settings(m)
    if m.multiprocessor is not None:
        rows.append(("multiprocessor", options(m.multiprocessor, "multiprocessor"), m.multiprocessor.source))
    if m.core is not None:
        rows.append(("core", options(m.core, "core"), m.core.source))
    for i in m.instructions:
        type_name = f" {i.type}" if i.type else ""
        rows.append((f"instruction {i.cls}{type_name} {i.bits} bits", options(i, "instruction"), i.source))
    rows += [(row := f"latency {level}", show_time(time), m.source_of(row)) for level, time in m.latencies]
    for s in m.sustained:
        rate = show_bandwidth(s.bandwidth_bytes_per_s)
        rows.append((f"sustained {s.level} {s.direction}", options(s, "sustained", rate), s.source))
    rows += [(row := f"cost {cls}", f"{float(value):g}", m.source_of(row)) for cls, value in m.costs]
    source: list[Block] = [line(f"source: {m.source}", 0)] if m.source else []
    return [Title(m.name, f"  {m.title}" if m.title else ""), *source, Gap(), figures(_narrow(rows))]


def _narrow(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The rows, with long values on several lines: a measured cache has 500 characters of options."""
    found = []
    for name, value, source in rows:
        first, *more = _lines(value.split(", "))
        found += [(name, first, source), *(("", rest, "") for rest in more)]
    return found


def _lines(parts: Iterable[str]) -> list[str]:
    """The parts, separated by commas, in as few lines as they need."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) < WIDEST:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return [*(f"{text}," for text in lines[:-1]), lines[-1]]


WIDEST = 72
"""The most characters of a machine's value in one line."""


def _overlap(share: Fraction) -> str:
    """How the transfers of all levels combine, as a file states it."""
    if share in (0, 1):
        return "overlap" if share else "serial"
    return f"overlap {float(share):g}"


def plain(m: Machine) -> dict[str, Any]:
    """A machine for JSON: bytes, bytes/s, operations/s, seconds."""
    return {
        "name": m.name,
        "title": m.title,
        "source": m.source,
        "peaks": [
            {"type": p.type, "class": p.cls, "rate_flops": float(p.rate_per_s), **attribute_numbers(p, "peak")}
            | {"source": p.source}
            for p in m.peaks
        ],
        "caches": [numbers(c) for c in m.caches],
        "memories": [numbers(memory) for memory in m.memories],
        "ceilings": [
            {"name": c.name, "type": c.type, "class": c.cls, "rate_flops": float(c.rate_per_s), "source": c.source}
            if isinstance(c, ComputeCeiling)
            else {
                "name": c.name,
                "level": c.level,
                "bandwidth_bytes_per_s": float(c.bandwidth_bytes_per_s),
                "source": c.source,
            }
            for c in m.ceilings
        ],
        "links": [
            {
                "name": k.name,
                "from": k.start,
                "to": k.end,
                "both_ways": k.both_ways,
                "bandwidth_bytes_per_s": float(k.bandwidth_bytes_per_s),
                "source": k.source,
            }
            for k in m.links
        ],
        **attribute_numbers(m, "machine"),
        "multiprocessor": None if m.multiprocessor is None else numbers(m.multiprocessor),
        "core": None if m.core is None else numbers(m.core),
        "instructions": [numbers(i) for i in m.instructions],
        "latencies_s": {level: float(time) for level, time in m.latencies},
        "processor": m.processor,
        "transfer_overlap": None if m.transfer_overlap is None else float(m.transfer_overlap),
        "sustained": [numbers(s) for s in m.sustained],
        "pipes_separate": m.pipes_separate,
        "divider_separate": m.divider_separate,
        "pipes_by_unit": m.pipes_by_unit,
        "costs": {cls: float(value) for cls, value in m.costs},
        "line_sources": dict(m.line_sources),
    }
