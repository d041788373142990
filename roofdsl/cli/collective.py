"""`roofdsl collective`: the time of an all-gather, reduce-scatter, all-reduce or all-to-all over links."""

from __future__ import annotations

from fractions import Fraction

import click

from roofdsl.cli.options import json_option, machine_option, network_options, parse_size_option, show_json
from roofdsl.cli.text import bold, columns
from roofdsl.machine.find import load_machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_number, show_size, show_time
from roofdsl.predict.collectives import KINDS, Collective, Kind, Topology, collective, network_of
from roofdsl.predict.routes import MOST_CUTS, Routed, collective_among


@click.command("collective")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--bytes", "size", required=True, metavar="SIZE", callback=parse_size_option, help="The whole array.")
@machine_option
@click.option("--devices", type=click.IntRange(2), help="Machines like this one, joined by its link.")
@click.option("--among", metavar="MEMORY,...", help="Memories of the machine itself, over all its links.")
@network_options
@json_option
def command(
    *,
    kind: Kind,
    size: int,
    machine_name: str,
    devices: int | None,
    among: str | None,
    topology: Topology | None,
    link: str | None,
    latency: Fraction,
    as_json: bool,
) -> None:
    """The time of a collective KIND on an array, of which each of the devices has or gets a part or the whole."""
    machine = load_machine(machine_name)
    if (devices is None) == (among is None):
        raise click.UsageError("say who takes part: --devices 8, or --among HBM0,HBM1,HBM2")
    if among is not None:
        if topology is not None or link is not None:
            raise click.UsageError("--topology and --link go with --devices; --among takes the links as they are")
        names = [n.strip() for n in among.split(",") if n.strip()]
        routed = collective_among(machine, kind, size, names, latency)
        found = routed.collective
    else:
        assert devices is not None
        network = network_of(machine, devices, topology=topology or "ring", link=link, latency_s=latency)
        routed, found = None, collective(kind, size, network)
    if as_json:
        document = {"schema": "roofdsl.collective/1", "machine": machine.name, **found.to_json()}
        if routed is not None:
            bound = None if routed.at_least_s is None else float(routed.at_least_s)
            document |= {"order": list(routed.order), "at_least_s": bound}
        show_json(document)
        return
    where = f"{found.devices} devices like {machine.name}" if routed is None else f"{among} of {machine.name}"
    click.echo(bold(f"{kind} of {show_size(size)} among {where}, {found.way}"))
    rows = rows_of(found) + (_bound_rows(routed) if routed is not None else [])
    click.echo("\n".join(["", *(f"  {line}" for line in columns(rows))]))


def rows_of(c: Collective) -> list[tuple[str, str]]:
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
    if c.even_bytes is not None:
        rows.append(("latency is half", f"of the time at {show_bytes(c.even_bytes)}"))
    if c.time_s:
        rows.append(("array over time", show_bandwidth(c.size_bytes / c.time_s)))
    return rows


def _bound_rows(routed: Routed) -> list[tuple[str, str]]:
    order = [("order", " -> ".join((*routed.order, routed.order[0])))] if routed.order else []
    if routed.at_least_s is None:
        return [*order, ("at least", f"not looked for: more than {MOST_CUTS} devices")]
    return [*order, ("at least", f"{show_time(routed.at_least_s)}, whatever the algorithm")]
