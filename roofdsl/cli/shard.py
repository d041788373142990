"""`roofdsl shard`: a contraction shared by several devices, its compute against its communication."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import (
    choose,
    json_option,
    kernels_of,
    machine_option,
    network_options,
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
from roofdsl.predict.collectives import Topology, network_of
from roofdsl.predict.kernel import Options
from roofdsl.predict.sharded import Result, predict_sharded, shard
from roofdsl.tell.sharding import blocks, of_several


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
@click.option("--split", required=True, metavar="NAME", help="The parameter that the devices share.")
@click.option("--devices", required=True, metavar="P,...", callback=_devices, help="How many, each like the machine.")
@machine_option
@set_option
@click.option("--gather", multiple=True, metavar="ARRAY", help="An array of which each holds a part and needs all.")
@click.option(
    "--result", type=click.Choice(["whole", "parts"]), default="whole", help="What of the result each is to have."
)
@click.option("--over", metavar="NAME", help="From which value of this parameter on compute is the bound.")
@click.option("--plot", metavar="OUT.svg|png|pdf", help="Draw the terms over several numbers of devices.")
@look_options("plot")
@network_options
@unit_option
@traffic_option
@json_option
def command(
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
    """Share a contraction among devices along one of its parameters: T_math against T_comms."""
    machine = load_machine(machine_name)
    kernels = kernels_of(choose(file), settings)
    if len(kernels) != 1:
        raise CommandError(f"`{file}` has {len(kernels)} kernels, and one is shared at a time", "pick it: FILE:KERNEL")
    kernel, values = kernels[0]
    sharding = shard(kernel, split, gather=gather, result=result)
    found = []
    for p in devices:
        network = network_of(machine, p, topology=topology or "ring", link=link, latency_s=latency)
        found.append(predict_sharded(sharding, values, machine, network, Options(traffic, unit), over=over))
    if plot is not None:
        from roofdsl.plot.sharded import save_sharded

        save_sharded(Path(plot), found, look=look)
    documents = [f.to_json() for f in found]
    if as_json:
        show_json(documents[0] if len(found) == 1 else {"schema": "roofdsl.shard/1", "shards": documents})
    else:
        show_blocks(blocks(found[0]) if len(found) == 1 else of_several(found))
    for message in dict.fromkeys(w for f in found for w in f.device.warnings):
        warn(message)
