"""`roofdsl shard`: a contraction shared by several devices, its compute against its communication."""

from __future__ import annotations

from fractions import Fraction

import click

from roofdsl.cli.break_even_text import break_even_rows
from roofdsl.cli.collective import describe_algorithm
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
from roofdsl.cli.predict_text import terms_rows
from roofdsl.cli.text import bold, columns
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_number, show_rate, show_time
from roofdsl.predict.collectives import Topology, network_of
from roofdsl.predict.kernel import Options
from roofdsl.predict.sharded import Result, ShardedPrediction, predict_sharded, shard


@click.command("shard")
@click.argument("file")
@click.option("--split", required=True, metavar="NAME", help="The parameter that the devices share.")
@click.option("--devices", required=True, type=click.IntRange(2), help="How many, each like the machine.")
@machine_option
@set_option
@click.option("--gather", multiple=True, metavar="ARRAY", help="An array of which each holds a part and needs all.")
@click.option(
    "--result", type=click.Choice(["whole", "parts"]), default="whole", help="What of the result each is to have."
)
@click.option("--over", metavar="NAME", help="From which value of this parameter on compute is the bound.")
@network_options
@unit_option
@traffic_option
@json_option
def command(
    *,
    file: str,
    split: str,
    devices: int,
    machine_name: str,
    settings: dict[str, int],
    gather: tuple[str, ...],
    result: Result,
    over: str | None,
    topology: Topology | None,
    link: str | None,
    latency: Fraction,
    unit: str | None,
    traffic: Traffic | None,
    as_json: bool,
) -> None:
    """Share a contraction among devices along one of its parameters: T_math against T_comms."""
    machine = load_machine(machine_name)
    network = network_of(machine, devices, topology=topology or "ring", link=link, latency_s=latency)
    kernels = kernels_of(choose(file), settings)
    if len(kernels) != 1:
        raise CommandError(f"`{file}` has {len(kernels)} kernels, and one is shared at a time", "pick it: FILE:KERNEL")
    kernel, values = kernels[0]
    sharding = shard(kernel, split, gather=gather, result=result)
    found = predict_sharded(sharding, values, machine, network, Options(traffic, unit), over=over)
    if as_json:
        show_json(found.to_json())
    else:
        click.echo(describe(found))
    for message in found.device.warnings:
        warn(message)


def describe(found: ShardedPrediction) -> str:
    """What each device has, the terms of its time, the bounds on it, and the break_evens asked for."""
    s, device = found.sharding, found.device
    p, name = found.network.devices, s.parameter
    values = dict(device.parameters) | {name: dict(device.parameters)[name] * p}
    at = ", ".join(f"{n} = {v}" for n, v in values.items())
    lines = [bold(f"{s.kernel.name} shared along {name} by {p} of {device.machine}") + f", {at}", ""]
    lines += [f"  {line}" for line in columns(_who(found))]
    head, *rows = terms_rows(device, found.bounds)
    terms = columns([("each device", *head[1:]), *rows, *_links(found)], right=(1, 2, 3, 4))
    lines += ["", *(f"  {line}" for line in terms)]
    rate = f"{show_rate(found.rate_per_s, device.operation)} together"
    outcome = [
        ("all overlapped", show_time(found.expected_s), f"{rate}, bound by {' and '.join(found.bounds)}"),
        ("no overlap", show_time(found.no_overlap_s), ""),
    ]
    lines += ["", *(f"  {line}" for line in columns(outcome))]
    if found.break_evens:
        lines += ["", "  compute takes as long as"]
        sizes = [row for b in found.break_evens for row in break_even_rows(b, values)]
        lines += [f"    {line}" for line in columns(sizes)]
    return "\n".join(lines)


def _who(found: ShardedPrediction) -> list[tuple[str, str]]:
    s = found.sharding
    rows = [
        ("a part each", ", ".join(s.parts)),
        ("whole on each", ", ".join(s.whole)),
        ("sums on each", ", ".join(s.sums)),
    ]
    rows = [row for row in rows if row[1]]
    for name, c in found.communication:
        what = f"{c.kind} of {name} ({show_bytes(c.size_bytes)}), {describe_algorithm(c)} in {c.steps} steps"
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
