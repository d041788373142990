"""`roofdsl collective`: the time of an all-gather, reduce-scatter, all-reduce or all-to-all over links."""

from __future__ import annotations

from fractions import Fraction

import click

from roofdsl.cli.options import json_option, machine_option, network_options, parse_size_option, show_json
from roofdsl.cli.text import show_blocks
from roofdsl.machine.find import load_machine
from roofdsl.predict.collectives import KINDS, Kind, Topology, collective, network_of
from roofdsl.predict.routes import collective_among
from roofdsl.tell.collective import blocks


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
    show_blocks(blocks(kind, size, where, found, routed))
