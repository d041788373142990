"""`roofdsl collective` and `roofdsl shard`: the time of communication among devices, and of work that they share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import (
    choose_kernels,
    json_option,
    kernels_of,
    machine_option,
    network_options,
    parse_size_option,
    set_option,
    show_json,
    traffic_option,
    unit_option,
    warn,
)
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.plot.look import Look
from roofdsl.predict.collectives import KINDS, Kind, Topology, collective, network_of
from roofdsl.predict.options import Options
from roofdsl.predict.routes import collective_among
from roofdsl.predict.sharded import Result, predict_sharded, shard
from roofdsl.tell.collective import blocks as of_collective
from roofdsl.tell.sharding import blocks, of_several


@click.command("collective")
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "--bytes", "size", required=True, metavar="SIZE", callback=parse_size_option, help="The size of the whole array."
)
@machine_option
@click.option("--devices", type=click.IntRange(2), help="Number of machines like this one, joined by its link.")
@click.option(
    "--among", metavar="MEMORY,...", help="Exchange among memories of the machine itself, over all its links."
)
@network_options
@json_option
def collective_command(
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
    """Compute the time of a collective on an array that is distributed over devices."""
    machine = load_machine(machine_name)
    if (devices is None) == (among is None):
        raise click.UsageError("name the devices: --devices 8, or --among HBM0,HBM1,HBM2")
    if among is not None:
        if topology is not None or link is not None:
            raise click.UsageError("--topology and --link need --devices; --among uses the machine's links as they are")
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
    show_blocks(of_collective(kind, size, where, found, routed))


def _devices(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """`2,4,8` as numbers from 2 on. Raises click.BadParameter."""
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and 2 <= int(part) <= MOST_DEVICES for part in parts):
        raise click.BadParameter(
            f"`{value}` is not a list of numbers from 2 to {MOST_DEVICES:,}, as in 2,4,8", ctx, param
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


MOST_DEVICES = 1_000_000


@click.command("shard")
@click.argument("file")
@click.option("--split", required=True, metavar="NAME", help="The parameter that is split over the devices.")
@click.option(
    "--devices", required=True, metavar="P,...", callback=_devices, help="Number of devices, each like the machine."
)
@machine_option
@set_option
@click.option(
    "--gather",
    multiple=True,
    metavar="ARRAY",
    help="An array that each device holds only a part of but needs whole (repeatable).",
)
@click.option(
    "--result",
    type=click.Choice(["whole", "parts"]),
    default="whole",
    help="Whether each device gets the whole result or its part.",
)
@click.option("--over", metavar="NAME", help="Find the value of this parameter from which compute is the bound.")
@click.option("--plot", metavar="OUT.svg|png|pdf", help="Draw the terms over several numbers of devices.")
@look_options("plot")
@network_options
@unit_option
@traffic_option
@json_option
def shard_command(
    *,
    file: str,
    split: str,
    devices: tuple[int, ...],
    machine_name: str,
    settings: dict[str, int],
    gather: tuple[str, ...],
    result: Result,
    over: str | None,
    plot: str | None,
    look: Look,
    topology: Topology | None,
    link: str | None,
    latency: Fraction,
    unit: str | None,
    traffic: Traffic | None,
    as_json: bool,
) -> None:
    """Split a contraction over devices along one of its parameters, and compare compute with communication."""
    machine = load_machine(machine_name)
    kernels = kernels_of(choose_kernels(file, "one kernel is split at a time"), settings)
    if len(kernels) != 1:
        raise CommandError(f"`{file}` has {len(kernels)} kernels, but one is split at a time", "pick it: FILE:KERNEL")
    kernel, values = kernels[0]
    sharding = shard(kernel, split, gather=gather, result=result)
    found = []
    for p in devices:
        network = network_of(machine, p, topology=topology or "ring", link=link, latency_s=latency)
        found.append(predict_sharded(sharding, values, machine, network, Options(traffic, unit), over=over))
    if plot is not None:
        from roofdsl.plot.board import save_figure
        from roofdsl.plot.sharded import draw_sharded

        save_figure(Path(plot), draw_sharded(found, look=look))
    documents = [f.to_json() for f in found]
    if as_json:
        show_json(documents[0] if len(found) == 1 else {"schema": "roofdsl.shard/1", "shards": documents})
    else:
        show_blocks(blocks(found[0]) if len(found) == 1 else of_several(found))
    warn(*(w for f in found for w in f.device.warnings))
