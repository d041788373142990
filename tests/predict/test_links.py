"""Streams over links: docs/rules.md, rule 19."""

from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.links import stream_rate
from roofdsl.predict.options import Options
from tests.oracle.lru import traffic
from tests.predict.machines import kernel_of, machine

NODE = load_machine("summit")
GPUS = [f"HBM{i}" for i in range(6)]


@pytest.mark.parametrize(
    ("destinations", "rate", "limits"),
    [
        (GPUS[:1], 50, {"NVLink0"}),
        (GPUS[:3], 150, {"NVLink0", "NVLink1", "NVLink2"}),
        (GPUS[3:], 64, {"XBus"}),
        (GPUS, 170, {"DRAM0"}),
        (GPUS[3:4], 50, {"NVLink3"}),
    ],
)
def test_summit(destinations: list[str], rate: int, limits: set[str]) -> None:
    found = stream_rate(NODE, ["DRAM0"], destinations)
    assert found.bytes_per_s == rate * 10**9
    assert set(found.limits) == limits


def test_six_from_one_socket_take_twenty_over_the_bus() -> None:
    found = stream_rate(NODE, ["DRAM0"], GPUS)
    links = dict(found.links)
    assert links["XBus"] == 20 * 10**9
    assert sum(links[f"NVLink{i}"] for i in range(3)) == 150 * 10**9
    assert dict(found.memories)["DRAM0"] == 170 * 10**9


def test_both_sockets_feed_all_six() -> None:
    assert stream_rate(NODE, ["DRAM0", "DRAM1"], GPUS).bytes_per_s == 300 * 10**9


def test_a_link_of_one_direction() -> None:
    m = machine("peak f64 1 TFLOP/s", "memory A 1 GB, 1 TB/s", "memory B 1 GB, 1 TB/s", "link up: B -> A 5 GB/s")
    assert stream_rate(m, ["B"], ["A"]).bytes_per_s == 5 * 10**9
    assert stream_rate(m, ["A"], ["B"]).bytes_per_s == 0
    assert stream_rate(m, ["A"], ["B"]).limits == ()


def test_names_that_are_not_there() -> None:
    with pytest.raises(CommandError, match="no memory or link end named HBM9"):
        stream_rate(NODE, ["DRAM0"], ["HBM9"])
    with pytest.raises(CommandError, match="both a source and a destination"):
        stream_rate(NODE, ["DRAM0"], ["DRAM0"])


def test_the_flow_is_the_smallest_cut_of_random_networks() -> None:
    """Max-flow is min-cut: the cuts of a small network can all be tried."""
    random = Random(7)
    for _ in range(40):
        names = "ABCDE"
        rates = {n: random.randint(1, 20) for n in names}
        links = [(a, b, random.randint(1, 9)) for a in names for b in names if a != b and random.random() < 0.5]
        lines = ["peak f64 1 TFLOP/s", *(f"memory {n} 1 GB, {rates[n]} GB/s" for n in names)]
        lines += [f"link l{i}: {a} -> {b} {r} GB/s" for i, (a, b, r) in enumerate(links)]
        # nodes in two: (n, 0) -> (n, 1) carries the memory's rate
        edges = [((n, 0), (n, 1), rates[n]) for n in names] + [((a, 1), (b, 0), r) for a, b, r in links]
        nodes = [(n, side) for n in names for side in (0, 1) if (n, side) not in {("A", 0), ("E", 1)}]
        cut = min(
            sum(r for a, b, r in edges if a in near and b not in near)
            for size in range(len(nodes) + 1)
            for some in combinations(nodes, size)
            for near in [{("A", 0), *some}]
        )
        found = stream_rate(machine(*lines), ["A"], ["E"])
        assert found.bytes_per_s == cut * 10**9
        widths = rates | {f"l{i}": r for i, (_, _, r) in enumerate(links)}
        assert sum(widths[name] for name in found.limits) == cut


def test_data_that_do_not_fit_stream_as_often_as_the_memory_misses_them() -> None:
    """The device's memory is a cache of its size for what lies on the host: here three passes over too much."""
    kernel = kernel_of(
        "kernel k(n):\n    in x: f64[n]\n    inout y: f64[n]\n"
        "    for t in range(3), i in range(n):\n        y[i] += x[i]\n"
    )
    node = machine(
        "peak f64 1 TFLOP/s", "memory HBM 1 KiB, 1 TB/s", "memory other 2 KiB, 1 TB/s", "memory DRAM 1 GB, 50 GB/s",
        "link bus: DRAM <-> HBM 10 GB/s", "link peer: HBM <-> other 1 GB/s",
    )  # fmt: skip
    for n in (60, 64, 65, 100):
        p = predict(kernel, {"n": n}, node, Options(data="DRAM"))
        link = next(level for level in p.levels if level.kind == "link")
        moved = traffic(kernel, {"n": n}, 1024, None, "load_store")
        assert link.bytes == moved.bytes and moved.loads is not None
        assert link.time_s == Fraction(moved.loads, 10**10) == p.bound_s  # stores have the other direction of the link
        assert not p.warnings
    assert link.bytes == 3 * 100 * 24  # nothing is left of the pass before
    (warning,) = predict(kernel, {"n": 1000}, node).warnings
    assert warning.endswith("the time assumes that it fits; `--data DRAM` streams it from there")


COPY = kernel_of("kernel k(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        b[i] = a[i]\n")


@pytest.mark.parametrize(("memory", "lines", "traffic_is", "ns"), [
    (50, ["link x: E <-> D 10 GB/s"], None, 800),  # 8 kB each way at the same time
    (50, ["link x: E <-> D 10 GB/s"], "once", 1600),  # which of them are stores is not known
    (12, ["link x: E <-> D 10 GB/s"], None, Fraction(16000, 12)),  # all pass through the memory of 12 GB/s
    (50, ["link x: E -> D 10 GB/s", "link y: D -> E 4 GB/s"], None, 2000),
    (50, ["link x: E <-> D 10 GB/s", "link y: E -> F 3 GB/s", "link z: F -> D 3 GB/s"], None, 800),
])  # fmt: skip
def test_loads_and_stores_have_a_direction_each(
    memory: int, lines: list[str], traffic_is: Traffic | None, ns: int | Fraction
) -> None:
    memories = ["memory D 1 KiB, 1 TB/s", f"memory E 1 GB, {memory} GB/s", "memory F 1 GB, 50 GB/s"]
    on = machine("peak f64 1 TFLOP/s", *memories, *lines)
    p = predict(COPY, {"n": 1000}, on, Options(data="E", traffic=traffic_is))
    assert p.levels[-1].bytes == 16000
    assert p.levels[-1].time_s == p.bound_s == Fraction(ns) / 10**9


def test_stores_past_the_caches_load_nothing_over_the_link() -> None:
    """8 kB each way, as for `load_store`, all through the memory of 12 GB/s; ordinary stores load 8 kB more first."""
    on = machine(
        "peak f64 1 TFLOP/s", "memory D 1 KiB, 1 TB/s", "memory E 1 GB, 12 GB/s", "link x: E <-> D 10 GB/s"
    )  # fmt: skip
    text = "kernel k(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        {}b[i] = a[i]\n"
    options = Options(data="E", traffic="write_allocate")
    found = [predict(kernel_of(text.format(word)), {"n": 1000}, on, options) for word in ("stream ", "")]
    assert [p.levels[-1].bytes for p in found] == [16000, 24000]
    assert [p.levels[-1].time_s for p in found] == [Fraction(16, 12 * 10**6), Fraction(24, 12 * 10**6)]


def test_stores_need_a_link_back() -> None:
    one_way = machine("peak f64 1 TFLOP/s", "memory D 1 KiB, 1 TB/s", "memory E 1 GB, 1 TB/s", "link x: E -> D 5 GB/s")
    with pytest.raises(CommandError, match=r"no link of machine .* leads from D to E"):
        predict(COPY, {"n": 1000}, one_way, Options(data="E"))
