"""Collectives among the memories of one machine, over its links.

Every pair that exchanges data uses one route, with the fewest links, and of those the widest. Routes that share a link
or a memory share its bandwidth. The time is that of the busiest resource, for the best of a few algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.predict.collectives import Collective, Kind, cost
from roofdsl.predict.links import check_ends, directions, stream_rate

MOST_ORDERED = 7
"""The most devices for which every order of a ring is tried; for more, the given order is used."""

MOST_CUTS = 6
"""The most devices for which a bound on all algorithms is computed: it takes one maximum flow for each way to divide
them.
"""

Pairs = Mapping[tuple[str, str], Fraction]
Resource = tuple[str, str]  # (what it is called, in which direction)
IN_AND_OUT = "in and out"  # of a memory


class Routed(Record):
    """The collective with the fastest algorithm found. `order`: the devices around the ring; empty for direct sends.

    at_least_s: a lower bound for any algorithm: the bytes that must leave some of the devices for the others, over the
    maximum flow between them; None for more than MOST_CUTS devices. It does not include latency.
    """

    collective: Collective
    order: tuple[str, ...]
    at_least_s: Fraction | None


def collective_among(
    machine: Machine, kind: Kind, size_bytes: int, names: Sequence[str], latency_s: Fraction = Fraction(0)
) -> Routed:
    """`kind` of an array of `size_bytes` among the memories `names` of `machine`. Exact.

    Raises CommandError for an unknown name, for fewer than two names or the same one twice, and if no links lead from
    one to another.
    """
    check_ends(machine, names)
    twice = next((n for n in names if list(names).count(n) > 1), None)
    if twice is not None or len(names) < 2:
        what = f"{twice} is named twice" if twice else "a collective needs at least two devices"
        raise CommandError(what, "name each memory once, as in --among HBM0,HBM1,HBM2")
    network = _Network(machine)
    best: tuple[Fraction, Collective, tuple[str, ...]] | None = None
    for algorithm, order, pairs, steps in _algorithms(kind, size_bytes, tuple(names)):
        resource, moved = network.busiest(pairs)
        bandwidth = network.capacity[resource]
        name, direction = resource
        found = Collective(kind, size_bytes, len(names), algorithm, name, moved, bandwidth, steps, latency_s, direction)
        if best is None or found.time_s < best[0]:
            best = (found.time_s, found, order)
    assert best is not None  # direct sends are always among them
    return Routed(best[1], best[2], _at_least(machine, kind, size_bytes, names))


def _algorithms(kind: Kind, size: int, names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Pairs, int]]:
    """(name, order, bytes by pair, steps) of each algorithm that is tried."""
    p = len(names)
    if kind != "all-to-all":
        share, steps = cost(kind, p, "ring")
        orders = [(names[0], *rest) for rest in permutations(names[1:])] if p <= MOST_ORDERED else [names]
        for order in orders:
            ring = list(zip(order, (*order[1:], order[0]), strict=True))
            yield "ring", order, dict.fromkeys(ring, share * size), steps
            if p > 2:
                both = [*ring, *((b, a) for a, b in ring)]
                yield "two way ring", order, dict.fromkeys(both, share * size / 2), cost(kind, p, "two-way-ring")[1]
    each = {"all-reduce": Fraction(2 * size, p), "all-to-all": Fraction(size, p * p)}.get(kind, Fraction(size, p))
    yield "direct", (), {(a, b): each for a in names for b in names if a != b}, cost(kind, p, "switch")[1]


class _Network:
    """Routes and bandwidths of a machine's links and memories."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.capacity: dict[Resource, Fraction] = {
            (m.name, IN_AND_OUT): m.bandwidth_bytes_per_s for m in machine.memories
        }
        self.ways: dict[str, dict[str, Resource]] = {}
        for link in machine.links:
            for a, b in directions(link):
                resource = (link.name, f"{a} -> {b}")
                self.capacity[resource] = link.bandwidth_bytes_per_s
                known = self.ways.setdefault(a, {}).get(b)
                if known is None or self.capacity[known] < link.bandwidth_bytes_per_s:
                    self.ways[a][b] = resource
        self.known: dict[tuple[str, str], tuple[Resource, ...]] = {}

    def busiest(self, pairs: Pairs) -> tuple[Resource, Fraction]:
        """The resource that takes longest, and the bytes it carries."""
        load: dict[Resource, Fraction] = {}
        for (a, b), moved in pairs.items():
            for resource in self.route(a, b):
                load[resource] = load.get(resource, Fraction(0)) + moved
        return max(load.items(), key=lambda item: item[1] / self.capacity[item[0]])

    def route(self, start: str, end: str) -> tuple[Resource, ...]:
        """The links and memories from `start` to `end`, inclusive: the widest of the paths with the fewest links."""
        if (start, end) not in self.known:
            self.known[start, end] = self._search(start, end)
        return self.known[start, end]

    def _search(self, start: str, end: str) -> tuple[Resource, ...]:
        reached: dict[str, tuple[Fraction, tuple[Resource, ...]]] = {start: (Fraction(0), self._memory(start))}
        front = dict(reached)
        while front and end not in reached:
            following: dict[str, tuple[Fraction, tuple[Resource, ...]]] = {}
            for node, (_, way) in front.items():
                for there, resource in self.ways.get(node, {}).items():
                    if there in reached:
                        continue
                    longer = (*way, resource, *self._memory(there))
                    width = min(self.capacity[r] for r in longer)
                    if there not in following or following[there][0] < width:
                        following[there] = (width, longer)
            reached |= following
            front = following
        if end not in reached:
            raise CommandError(f"no links of machine {self.machine.name} lead from {start} to {end}")
        return reached[end][1]

    def _memory(self, name: str) -> tuple[Resource, ...]:
        own = (name, IN_AND_OUT)
        return (own,) if own in self.capacity else ()


def _at_least(machine: Machine, kind: Kind, size: int, names: Sequence[str]) -> Fraction | None:
    """The longest time over all divisions of the devices in two: the bytes that must cross, over the flow."""
    p = len(names)
    if p > MOST_CUTS:
        return None
    bound = Fraction(0)
    for k in range(1, p):
        must = {
            "all-gather": Fraction(k * size, p),
            "reduce-scatter": Fraction((p - k) * size, p),
            "all-reduce": Fraction(size),
            "all-to-all": Fraction(k * (p - k) * size, p * p),
        }[kind]
        for some in combinations(names, k):
            flow = stream_rate(machine, some, [n for n in names if n not in some]).bytes_per_s
            bound = max(bound, must / flow)
    return bound
