"""Costs of collectives against the algorithms themselves, run chunk by chunk, and against published numbers."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.predict.collectives import KINDS, TOPOLOGIES, Kind, Network, Topology, collective, cost, network_of
from tests.predict.machines import machine

Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class Wires:
    """Moves arrays between devices; counts what every link carries each way, and the longest chain of steps."""

    def __init__(self, devices: int, topology: Topology) -> None:
        self.p, self.topology = devices, topology
        self.carried: dict[tuple[int | str, int | str], int] = defaultdict(int)
        self.steps = 0

    def move(self, size: int, start: int, end: int) -> None:
        """`size` elements on the way that the topology has for them; of two equally short ways half on each."""
        p = self.p
        ahead, back = (end - start) % p, (start - end) % p
        if self.topology == "switch":
            self.carried[start, "switch"] += size
            self.carried["switch", end] += size
            self.steps = max(self.steps, 1)
        elif self.topology == "ring" or p == 2 or ahead < back:
            self._round(size, start, ahead, 1)
        elif back < ahead:
            self._round(size, start, back, -1)
        else:
            self._round(size // 2, start, ahead, 1)
            self._round(size - size // 2, start, back, -1)

    def _round(self, size: int, start: int, hops: int, step: int) -> None:
        for k in range(hops):
            a = (start + step * k) % self.p
            self.carried[a, (a + step) % self.p] += size
        self.steps = max(self.steps, hops)

    def arcs(self, root: int) -> list[tuple[int, int, bool]]:
        """(from, to, whole or half) of the links over which one array gets from `root` to all others of a ring."""
        p = self.p
        if self.topology == "ring" or p == 2:
            return [((root + k) % p, (root + k + 1) % p, True) for k in range(p - 1)]
        near = (p - 1) // 2
        found = [((root + s * k) % p, (root + s * (k + 1)) % p, True) for s in (1, -1) for k in range(near)]
        if p % 2 == 0:  # to the one opposite, half from each side
            opposite = (root + p // 2) % p
            found += [((opposite - s) % p, opposite, False) for s in (1, -1)]
        return found

    def spread(self, values: Array, root: int) -> list[Array]:
        """What each device has after an array went from `root` to all."""
        if self.topology == "switch":
            for end in set(range(self.p)) - {root}:
                self.move(len(values), root, end)
            return [values] * self.p
        held: dict[int, Array] = {root: values}
        after = {root: 0}
        for a, b, whole in self.arcs(root):
            self.carried[a, b] += len(values) if whole else len(values) // 2
            held[b], after[b] = held[a], after[a] + 1
        self.steps = max(self.steps, *after.values())
        return [held[k] for k in range(self.p)]

    def collect(self, values: list[Array], root: int) -> Array:
        """The sum of one array of each device, at `root`: sums pass on the arcs of `spread`, backwards."""
        if self.topology == "switch":
            for start in set(range(self.p)) - {root}:
                self.move(len(values[start]), start, root)
            return np.sum(values, axis=0)
        sums = {k: v.astype(float) for k, v in enumerate(values)}
        one_way = self.topology == "ring"
        for a, b, whole in reversed(self.arcs(root)):
            # a one-way ring turns the other way round: the mirror image of its arcs, seen from the root
            start, end = ((2 * root - b) % self.p, (2 * root - a) % self.p) if one_way else (b, a)
            self.carried[start, end] += len(values[0]) if whole else len(values[0]) // 2
            sums[end] = sums[end] + (sums[start] if whole else sums[start] / 2)
        self.steps = max(self.steps, self.p // 2 if not one_way and self.p > 2 else self.p - 1)
        return sums[root]


def run(kind: Kind, p: int, topology: Topology) -> tuple[Fraction, int]:
    """(busiest link's share of the array, steps) of a run with data, whose result is checked."""
    size = 2 * p * p
    rng = np.random.default_rng(p)
    wires = Wires(p, topology)
    parts = size // p
    if kind == "all-to-all":
        held = rng.integers(0, 99, (p, p, parts // p))  # device, destination, chunk
        got = np.zeros_like(held)
        for a in range(p):
            got[a, a] = held[a, a]
            for b in set(range(p)) - {a}:
                wires.move(parts // p, a, b)
                got[b, a] = held[a, b]
        assert (got == held.transpose(1, 0, 2)).all()
        return Fraction(max(wires.carried.values()), size), wires.steps
    held = rng.integers(0, 99, (p, size))
    wanted = held.sum(axis=0)
    pieces = [slice(k * parts, (k + 1) * parts) for k in range(p)]
    mine = [wanted[piece] for piece in pieces]  # what an all-gather starts from
    steps = 0
    if kind != "all-gather":
        mine = [wires.collect([held[k, piece] for k in range(p)], root) for root, piece in enumerate(pieces)]
        assert all((got == wanted[piece]).all() for got, piece in zip(mine, pieces, strict=True))
        steps, wires.steps = wires.steps, 0
    if kind != "reduce-scatter":
        everywhere = [wires.spread(values, root) for root, values in enumerate(mine)]
        assert all((np.concatenate([e[k] for e in everywhere]) == wanted).all() for k in range(p))
        steps += wires.steps
    return Fraction(max(wires.carried.values()), size), steps


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_those_of_the_algorithms(kind: Kind, topology: Topology) -> None:
    for p in (2, 3, 4, 5, 6, 9):
        assert cost(kind, p, topology) == run(kind, p, topology), p


def test_one_device_sends_nothing() -> None:
    assert all(cost(kind, 1, topology) == (0, 0) for kind in KINDS for topology in TOPOLOGIES)


def test_the_courses_ring() -> None:
    """How to Scale Your Model, "Sharded Matrices": V / W both ways round for large p, an all-to-all a quarter of it."""
    w = Fraction(45 * 10**9)
    two_way = Network(1024, w, "two-way-ring")
    volume = 2**30
    gather = collective("all-gather", volume, two_way)
    assert float(gather.time_s) == pytest.approx(volume / (2 * float(w)), rel=1e-3)
    assert collective("all-reduce", volume, two_way).time_s == 2 * gather.time_s
    assert float(collective("all-to-all", volume, two_way).time_s) == pytest.approx(float(gather.time_s) / 4, rel=1e-3)


def test_latency_is_paid_each_step() -> None:
    found = collective("all-reduce", 1000, Network(8, Fraction(10**9), latency_s=Fraction(1, 10**6)))
    assert found.steps == 14
    assert found.time_s == Fraction(1750, 10**9) + Fraction(14, 10**6)
    assert found.break_even_bytes is not None
    even = collective(
        "all-reduce", int(found.break_even_bytes), Network(8, Fraction(10**9), latency_s=Fraction(1, 10**6))
    )
    assert even.transfer_s == even.steps * even.latency_s
    assert collective("all-reduce", 1000, Network(8, Fraction(10**9))).break_even_bytes is None


def test_a_machines_link() -> None:
    tpu = network_of(load_machine("tpu_v5e"), 2)
    assert (tpu.bandwidth_bytes_per_s, tpu.link, tpu.devices) == (45 * 10**9, "ICI", 2)
    with pytest.raises(CommandError, match="has 7 links"):
        network_of(load_machine("summit"), 2)
    assert network_of(load_machine("summit"), 2, link="XBus").bandwidth_bytes_per_s == 64 * 10**9
    with pytest.raises(CommandError, match="no link `Xbus`"):
        network_of(load_machine("summit"), 2, link="Xbus")
    with pytest.raises(CommandError, match="no links"):
        network_of(load_machine("v100_deck"), 2)
    one_way = machine("peak f64 1 TFLOP/s", "memory A 1 GB, 1 TB/s", "memory B 1 GB, 1 TB/s", "link up: B -> A 5 GB/s")
    assert network_of(one_way, 4).bandwidth_bytes_per_s == 5 * 10**9
    with pytest.raises(CommandError, match="sends both ways"):
        network_of(one_way, 4, topology="two-way-ring")
