"""The rate of a stream over a machine's links: the maximum flow (docs/rules.md, rule 19)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from fractions import Fraction

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.machine.model import Link, Machine

_SOURCE, _SINK = "<source>", "<sink>"  # no names of the language


class StreamRate(Record):
    """The rate of a stream, and the share of each link and memory in it, in bytes per second.

    limits: the links and memories that together limit the stream, a minimum cut.
    """

    bytes_per_s: Fraction
    links: tuple[tuple[str, Fraction], ...]
    memories: tuple[tuple[str, Fraction], ...]
    limits: tuple[str, ...]


def stream_rate(machine: Machine, sources: Iterable[str], destinations: Iterable[str]) -> StreamRate:
    """The maximum flow from the `sources` together to the `destinations` together.

    Every memory on the way is used once, at its own bandwidth, and every link once in each of its directions. A node of
    a link that is not a memory of this machine (another machine) passes on what it receives. Exact. Raises CommandError
    for a name that is neither a memory nor an end of a link, and for one that is both a source and a destination.
    """
    start, end = tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(destinations))
    check_ends(machine, (*start, *end))
    shared = set(start) & set(end)
    if shared:
        raise CommandError(f"{', '.join(sorted(shared))} is both a source and a destination of the stream")
    capacity = _network(machine, start, end)
    flow = dict.fromkeys(capacity, Fraction(0))
    total = _max_flow(flow, capacity)
    carried: dict[Carrier, Fraction] = {}
    for (_, _, carrier), value in flow.items():
        if carrier is not None:
            carried[carrier] = carried.get(carrier, Fraction(0)) + value
    names = [m.name for m in machine.memories]
    return StreamRate(
        total,
        tuple((link.name, carried.get(("link", link.name), Fraction(0))) for link in machine.links),
        tuple((name, carried.get(("memory", name), Fraction(0))) for name in names),
        _minimum_cut(flow, capacity),
    )


def check_ends(machine: Machine, names: Iterable[str]) -> None:
    """Raises CommandError for a name that is neither a memory of `machine` nor an end of a link."""
    known = {m.name for m in machine.memories} | {n for link in machine.links for n in (link.start, link.end)}
    for name in names:
        if name not in known:
            raise CommandError(
                f"machine {machine.name} has no memory or link end named {name}", f"it has {', '.join(sorted(known))}"
            )


Carrier = tuple[str, str]  # "memory" or "link", and its name
Edge = tuple[str, str, Carrier | None]  # from, to, what it stands for (None for the ends of the stream)


def _network(machine: Machine, start: tuple[str, ...], end: tuple[str, ...]) -> dict[Edge, Fraction]:
    """Splits each node in two. The edge between the halves has the node's bandwidth, which then limits all paths
    through it together. All capacities are finite.
    """
    everything = sum((link.bandwidth_bytes_per_s for link in machine.links), Fraction(1)) * 2
    edges: dict[Edge, Fraction] = {}
    memories = {m.name: m.bandwidth_bytes_per_s for m in machine.memories}
    nodes = dict.fromkeys([*memories, *(n for link in machine.links for n in (link.start, link.end))])
    for node in nodes:
        edges[(f"{node}.in", f"{node}.out", ("memory", node))] = memories.get(node, everything)
    for link in machine.links:
        for a, b in directions(link):
            edges[(f"{a}.out", f"{b}.in", ("link", link.name))] = link.bandwidth_bytes_per_s
    for node in start:
        edges[(_SOURCE, f"{node}.in", None)] = everything
    for node in end:
        edges[(f"{node}.out", _SINK, None)] = everything
    return edges


def directions(link: Link) -> tuple[tuple[str, str], ...]:
    """(from, to) for each direction of a link."""
    forward = (link.start, link.end)
    return (forward, forward[::-1]) if link.both_ways else (forward,)


def _max_flow(flow: dict[Edge, Fraction], capacity: dict[Edge, Fraction]) -> Fraction:
    """Edmonds and Karp: shortest augmenting paths until there is none. Fills `flow`, returns its value."""
    total = Fraction(0)
    while path := _augmenting_path(flow, capacity):
        room = min(capacity[e] - flow[e] if forward else flow[e] for e, forward in path)
        for edge, forward in path:
            flow[edge] += room if forward else -room
        total += room
    return total


def _minimum_cut(flow: dict[Edge, Fraction], capacity: dict[Edge, Fraction]) -> tuple[str, ...]:
    """The edges that leave the set of nodes that more could still reach. They are full, and together carry the whole
    flow.
    """
    reached = _reached(flow, capacity)
    cut = [carrier for a, b, carrier in capacity if a in reached and b not in reached]
    return tuple(dict.fromkeys(carrier[1] for carrier in cut if carrier is not None))


def _augmenting_path(flow: dict[Edge, Fraction], capacity: dict[Edge, Fraction]) -> list[tuple[Edge, bool]]:
    """The edges (and whether each is taken forward) of a shortest path with room left; empty if there is none."""
    reached = _reached(flow, capacity)
    path = []
    node = _SINK
    while step := reached.get(node):
        path.append(step)
        edge, forward = step
        node = edge[0] if forward else edge[1]
    return path[::-1]


def _reached(flow: dict[Edge, Fraction], capacity: dict[Edge, Fraction]) -> dict[str, tuple[Edge, bool] | None]:
    """Every node to which more can be sent (up to the sink), and the edge that reaches it first."""
    reached: dict[str, tuple[Edge, bool] | None] = {_SOURCE: None}
    queue = deque([_SOURCE])
    while queue and _SINK not in reached:
        node = queue.popleft()
        for edge, room in capacity.items():
            a, b, _ = edge
            if a == node and b not in reached and flow[edge] < room:
                reached[b] = (edge, True)
                queue.append(b)
            elif b == node and a not in reached and flow[edge] > 0:
                reached[a] = (edge, False)
                queue.append(a)
    return reached
