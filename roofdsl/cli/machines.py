"""`roofdsl machines`: the shipped machines, one machine in full, and the rate of streams over its links."""

from __future__ import annotations

import click

from roofdsl.cli.lazy import NamingGroup
from roofdsl.cli.options import json_option, show_json
from roofdsl.cli.text import show_blocks
from roofdsl.machine.find import load_machine, shipped_machines
from roofdsl.predict.links import stream_rate
from roofdsl.tell.machine import blocks, listed, plain
from roofdsl.tell.machine import flow as told


@click.group(
    cls=NamingGroup,
    otherwise="`roofdsl machines` lists the machines, and `roofdsl machines show NAME` shows one",
    invoke_without_command=True,
)
@click.pass_context
@json_option
def machines(ctx: click.Context, as_json: bool) -> None:
    """List the shipped machines; `machines show NAME` shows one."""
    if ctx.invoked_subcommand is not None:
        return
    found = shipped_machines().values()
    if as_json:
        show_json({"schema": "roofdsl.machines/1", "machines": [plain(m) for m in found]})
        return
    show_blocks(listed(found))


@machines.command()
@click.argument("name", metavar="NAME|FILE[:NAME]")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show every number of a machine, with its source."""
    machine = load_machine(name)
    if as_json:
        show_json({"schema": "roofdsl.machine/1", **plain(machine)})
    else:
        show_blocks(blocks(machine))


@machines.command()
@click.argument("name", metavar="NAME|FILE[:NAME]")
@click.option("--from", "sources", required=True, metavar="MEMORY,...", help="The memories that hold the data.")
@click.option("--to", "destinations", required=True, metavar="MEMORY,...", help="The memories that the data go to.")
@json_option
def flow(name: str, sources: str, destinations: str, as_json: bool) -> None:
    """Compute the rate of a stream over links.

    The rate is the maximum flow from the source memories to the destinations.
    """
    rate = stream_rate(load_machine(name), _names(sources), _names(destinations))
    if as_json:
        links = {n: float(v) for n, v in rate.links}
        document = {"schema": "roofdsl.flow/1", "bytes_per_s": float(rate.bytes_per_s), "links": links}
        show_json({**document, "limited_by": list(rate.limits)})
        return
    show_blocks(told(rate))


def _names(text: str) -> list[str]:
    return [n.strip() for n in text.split(",") if n.strip()]
