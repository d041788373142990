"""Collectives: the bytes on the busiest link, and the times."""

from __future__ import annotations

from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_number, show_size, show_time
from roofdsl.predict.collectives import Collective
from roofdsl.predict.routes import MOST_CUTS, Routed
from roofdsl.tell.blocks import Block, Gap, Title, figures


def blocks(kind: str, size_bytes: int, where: str, found: Collective, routed: Routed | None) -> list[Block]:
    """A collective among the devices that `where` names. routed: over the links as they are."""
    rows = _rows(found) + (_bound_rows(routed) if routed is not None else [])
    return [Title(f"{kind} of {show_size(size_bytes)} among {where}, {found.way}"), Gap(), figures(rows)]


def _rows(c: Collective) -> list[tuple[str, str]]:
    """What the busiest link carries, and the times."""
    share = f"{show_number(c.share)} of the array"
    rows = [
        (
            f"{c.link} carries",
            f"{show_bytes(c.link_bytes)} {c.direction}, {share}, at {show_bandwidth(c.bandwidth_bytes_per_s)}",
        ),
        ("steps", f"{c.steps}" + (f", {show_time(c.latency_s)} each" if c.latency_s else "")),
        ("time", show_time(c.time_s)),
    ]
    if c.break_even_bytes is not None:
        rows.append(("latency is half", f"of the time at {show_bytes(c.break_even_bytes)}"))
    if c.time_s:
        rows.append(("array over time", show_bandwidth(c.size_bytes / c.time_s)))
    return rows


def _bound_rows(routed: Routed) -> list[tuple[str, str]]:
    order = [("order", " -> ".join((*routed.order, routed.order[0])))] if routed.order else []
    if routed.at_least_s is None:
        return [*order, ("at least", f"not computed: more than {MOST_CUTS} devices")]
    return [*order, ("at least", f"{show_time(routed.at_least_s)}, whatever the algorithm")]
