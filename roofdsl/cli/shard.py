"""`roofdsl shard`: a contraction shared by several devices, its compute against its communication."""

from __future__ import annotations

from collections.abc import Sequence
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
from roofdsl.cli.predict_text import terms_rows
from roofdsl.cli.text import bold, columns
from roofdsl.cli.threshold_text import answer, threshold_rows
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.quantities import show_bandwidth, show_bytes, show_number, show_rate, show_time
from roofdsl.plot.look import Look
from roofdsl.predict.collectives import Topology, network_of
from roofdsl.predict.kernel import Options
from roofdsl.predict.sharded import Result, ShardedPrediction, predict_sharded, shard


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
        click.echo(describe(found[0]) if len(found) == 1 else describe_several(found))
    for message in dict.fromkeys(w for f in found for w in f.device.warnings):
        warn(message)


def describe_several(found: Sequence[ShardedPrediction]) -> str:
    """A row for each number of devices: the terms of one device, the bounds, and how much of each device is of use.

    The last is the time that compute alone would take over the lower bound.
    """
    first = found[0]
    memory, s = first.device.memory.name, first.sharding
    values = first.parameters
    at = ", ".join(f"{n} = {v}" for n, v in values.items())
    head = ("devices", "compute", memory, first.link, "all overlapped", "no overlap", "computing", "bound")
    rows: list[tuple[str, ...]] = [head]
    for f in found:
        times = (f.compute_s, f.device.memory.time_s, f.communication_s, f.expected_s, f.no_overlap_s)
        share = f"{show_number(100 * f.compute_s / f.expected_s, 3)} %"
        rows.append((str(f.network.devices), *map(show_time, times), share, " and ".join(f.bounds)))
    lines = [bold(f"{s.kernel.name} shared along {s.parameter} by several {first.device.machine}") + f", {at}", ""]
    lines += [f"  {line}" for line in columns(_who(first, steps=False))]
    lines += ["", *(f"  {line}" for line in columns(rows, right=range(7)))]
    if first.break_evens:
        lines += ["", "  compute takes as long as"]
        each = [(str(f.network.devices), b.term, answer(b, values)) for f in found for b in f.break_evens]
        lines += [f"    {line}" for line in columns([("devices", "", ""), *each], right=(0,))]
    return "\n".join(lines)


def describe(found: ShardedPrediction) -> str:
    """What each device has, the terms of its time, the bounds on it, and the break_evens asked for."""
    s, device = found.sharding, found.device
    p, name = found.network.devices, s.parameter
    values = found.parameters
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
        sizes = [row for b in found.break_evens for row in threshold_rows(b, values)]
        lines += [f"    {line}" for line in columns(sizes)]
    return "\n".join(lines)


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
