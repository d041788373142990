"""A contraction split over several devices: compute and communication."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_number, show_rate, show_time
from roofdsl.predict.sharded import ShardedPrediction
from roofdsl.tell.blocks import Block, Gap, Title, figures, line
from roofdsl.tell.break_even import answer, threshold_rows
from roofdsl.tell.prediction import HEAD, NUMBERS, terms_rows
from roofdsl.tell.titles import sizes


def of_several(found: Sequence[ShardedPrediction]) -> list[Block]:
    """A row for each number of devices: the terms of one device, the bounds, and the computing share.

    That share is the time of compute alone over the lower bound.
    """
    first = found[0]
    memory, s = first.device.memory.name, first.sharding
    values = first.parameters
    head = ("devices", "compute", memory, first.link, "all overlapped", "no overlap", "computing", "bound")
    rows: list[tuple[str, ...]] = []
    for f in found:
        times = (f.compute_s, f.device.memory.time_s, f.communication_s, f.bound_s, f.no_overlap_s)
        share = f"{show_number(100 * f.compute_s / f.bound_s, 3)} %"
        rows.append((str(f.network.devices), *map(show_time, times), share, f.bound))
    out: list[Block] = [
        Title(f"{s.kernel.name} split along {s.parameter} over devices like {first.device.machine}", _at(first)),
        Gap(),
        figures(_who(first, steps=False)),
        Gap(),
        figures(rows, head, range(7)),
    ]
    if first.break_evens:
        each = [(str(f.network.devices), b.term, answer(b, values)) for f in found for b in f.break_evens]
        out += [Gap(), line("compute takes at least as long as"), figures(each, ("devices", "", ""), (0,), depth=2)]
    return out


def blocks(found: ShardedPrediction) -> list[Block]:
    """What each device has, the terms of its time, the bounds on it, and the requested break-evens."""
    s, device = found.sharding, found.device
    rate = f"{show_rate(found.rate_per_s, device.operation)} together"
    outcome = [
        ("all overlapped", show_time(found.bound_s), f"{rate}, bound by {' and '.join(found.bounds)}"),
        ("no overlap", show_time(found.no_overlap_s), ""),
    ]
    terms = [*terms_rows(device, found.bounds), *_links(found)]
    out: list[Block] = [
        Title(
            f"{s.kernel.name} split along {s.parameter} over {found.network.devices} devices like {device.machine}",
            _at(found),
        ),
        Gap(),
        figures(_who(found)),
        Gap(),
        figures(terms, ("each device", *HEAD[1:]), NUMBERS),
        Gap(),
        figures(outcome),
    ]
    if found.break_evens:
        rows = [row for b in found.break_evens for row in threshold_rows(b, found.parameters)]
        out += [Gap(), line("compute takes at least as long as"), figures(rows, depth=2)]
    return out


def _at(found: ShardedPrediction) -> str:
    return f", {sizes(found.parameters.items())}"


def _who(found: ShardedPrediction, *, steps: bool = True) -> list[tuple[str, str]]:
    s = found.sharding
    rows = [
        ("a part each", ", ".join(s.parts)),
        ("whole on each", ", ".join(s.whole)),
        ("sums on each", ", ".join(s.sums)),
    ]
    rows = [row for row in rows if row[1]]
    for name, c in found.communication:
        what = f"{c.kind} of {name} ({show_bytes(c.size_bytes)}), {c.way}"
        if steps:
            what += f" in {c.steps} step{'s' if c.steps > 1 else ''}"
        rows.append(("then" if name in (*s.sums, *s.parts) else "first", what))
    return rows if found.communication else [*rows, ("then", "nothing is communicated")]


def _links(found: ShardedPrediction) -> list[tuple[str, ...]]:
    if not found.communication:
        return []
    moved = sum((c.link_bytes for _, c in found.communication), Fraction(0))
    intensity = show_number(found.device.work / moved)
    mark = "<- bound" if found.link in found.bounds else ""
    rate = show_bandwidth(found.network.bandwidth_bytes_per_s)
    return [(found.link, show_bytes(moved), rate, intensity, show_time(found.communication_s), mark)]
