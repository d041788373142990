"""Collectives among identical devices: the bytes on the busiest link, the number of steps, and the time.

The costs are those of bandwidth-optimal algorithms (Chan, Heimlich, Purkayastha and van de Geijn, "Collective
communication: theory, practice, and experience", 2007, sections 3 and 4; Patarasuk and Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations", 2009, theorem 1). The additions of a reduction cost nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, get_args

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record
from roofdsl.machine.model import Link, Machine
from roofdsl.predict.time_model import link_seconds

Kind = Literal["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Topology = Literal["ring", "two-way-ring", "switch"]
TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)


class Network(Record):
    """`devices` identical devices, each with links of `bandwidth_bytes_per_s` in each of their directions.

    ring: each device sends to the next and receives from the previous one. two-way-ring: half of the data goes the
    other way, over the links' other direction (two devices have a single link between them and gain nothing). switch:
    each device has one link to a switch that accepts everything at once. latency_s: per step.
    """

    devices: int
    bandwidth_bytes_per_s: Fraction
    topology: Topology = "ring"
    latency_s: Fraction = Fraction(0)
    link: str = "link"


class Collective(Record):
    """One collective of `size_bytes` among `devices`: the bytes over the busiest link, in `direction`, and the steps.

    size_bytes: the whole array. An all-gather leaves all of it on every device. A reduce-scatter and an all-reduce take
    all of it from every device. In an all-to-all, each device holds one part before and after.
    """

    kind: Kind
    size_bytes: int
    devices: int
    algorithm: str
    link: str
    link_bytes: Fraction
    bandwidth_bytes_per_s: Fraction
    steps: int
    latency_s: Fraction = Fraction(0)
    direction: str = "one way"

    @property
    def way(self) -> str:
        """The algorithm, in words."""
        return {
            "ring": "around a ring",
            "two way ring": "both ways around a ring",
            "direct": "each device sending directly to every other",
        }[self.algorithm]

    @property
    def share(self) -> Fraction:
        """Bytes over the busiest link as a fraction of the array."""
        return self.link_bytes / self.size_bytes

    @property
    def transfer_s(self) -> Fraction:
        """Bytes over bandwidth."""
        return self._seconds(Fraction(0))

    @property
    def time_s(self) -> Fraction:
        """All steps, each with its latency, and the bytes."""
        return self._seconds(self.steps * self.latency_s)

    def _seconds(self, latency_s: Fraction) -> Fraction:
        return link_seconds(self.bandwidth_bytes_per_s).at({"bytes": self.link_bytes, "latency": latency_s})

    @property
    def break_even_bytes(self) -> Fraction | None:
        """The array size whose bytes take as long as the latencies of the steps; None without latency."""
        delay = self.steps * self.latency_s
        return delay * self.bandwidth_bytes_per_s / self.share if delay and self.share else None

    def to_json(self) -> dict[str, Any]:
        """Plain numbers in bytes, seconds, bytes per second."""
        return {
            "collective": self.kind,
            "size_bytes": self.size_bytes,
            "devices": self.devices,
            "algorithm": self.algorithm,
            "link": self.link,
            "direction": self.direction,
            "link_bytes": float(self.link_bytes),
            "share": float(self.share),
            "bandwidth_bytes_per_s": float(self.bandwidth_bytes_per_s),
            "steps": self.steps,
            "latency_s": float(self.latency_s),
            "time_s": float(self.time_s),
            "even_bytes": None if self.break_even_bytes is None else float(self.break_even_bytes),
        }


def collective(kind: Kind, size_bytes: int, network: Network) -> Collective:
    """The collective on this network. Exact."""
    share, steps = cost(kind, network.devices, network.topology)
    return Collective(
        kind,
        size_bytes,
        network.devices,
        "direct" if network.topology == "switch" else network.topology.replace("-", " "),
        network.link,
        share * size_bytes,
        network.bandwidth_bytes_per_s,
        steps,
        network.latency_s,
    )


def cost(kind: Kind, devices: int, topology: Topology = "ring") -> tuple[Fraction, int]:
    """(bytes over the busiest link, one way, as a fraction of the array; steps) among p = `devices`.

    all-gather, reduce-scatter: each device passes p - 1 parts of 1/p on, (p - 1) / p, in p - 1 steps. all-reduce: a
    reduce-scatter, then an all-gather, 2 (p - 1) / p in 2 (p - 1) steps. all-to-all: each pair exchanges 1/p^2 at a
    distance of 1 to p - 1 around the ring, (p - 1) / (2 p); over a switch, (p - 1) / p^2. Both ways around the ring,
    parts travel at most p / 2 steps: half the bytes, and for an all-to-all, whose distances halve too, 1/8 (for odd p,
    (1 - 1/p^2) / 8). A switch takes all parts in one step, or in two for an all-reduce.
    """
    p = devices
    if p == 1:
        return Fraction(0), 0
    two_ways = topology == "two-way-ring" and p > 2
    steps = p // 2 if two_ways else p - 1
    if topology == "switch":
        steps = 1
    if kind == "all-to-all":
        if topology == "switch":
            return Fraction(p - 1, p * p), steps
        if two_ways:
            return (Fraction(1, 8) if p % 2 == 0 else Fraction(p * p - 1, 8 * p * p)), steps
        return Fraction(p - 1, 2 * p), steps
    share = Fraction(p - 1, p) / (2 if two_ways else 1)
    return (2 * share, 2 * steps) if kind == "all-reduce" else (share, steps)


def network_of(
    machine: Machine,
    devices: int,
    *,
    topology: Topology = "ring",
    link: str | None = None,
    latency_s: Fraction = Fraction(0),
) -> Network:
    """`devices` machines like `machine`, joined by links like its `link` (by default, its only one).

    Raises CommandError for a machine without links, for an unknown link, if there are several links to choose from, and
    for a one-directional link if both directions are needed.
    """
    found = _link(machine, link)
    if topology != "ring" and not found.both_ways:
        raise CommandError(
            f"a {topology} sends both ways, and link {found.name} of {machine.name} leads from {found.start} to "
            f"{found.end} only",
            f"omit --topology {topology}: a one-way ring works with this link",
        )
    return Network(devices, found.bandwidth_bytes_per_s, topology, latency_s, found.name)


def _link(machine: Machine, name: str | None) -> Link:
    names = [link.name for link in machine.links]
    if not names:
        help = "give its machine file a line such as `link ring: HBM <-> peer 45 GB/s`"
        raise CommandError(f"machine {machine.name} has no links to other devices", help)
    if name is None:
        if len(names) > 1:
            raise CommandError(
                f"machine {machine.name} has {len(names)} links",
                f"choose the link between devices with --link: {', '.join(names)}",
            )
        return machine.links[0]
    found = next((link for link in machine.links if link.name == name), None)
    if found is None:
        help = did_you_mean(name, names, f"it has {', '.join(names)}")
        raise CommandError(f"machine {machine.name} has no link `{name}`", help)
    return found
