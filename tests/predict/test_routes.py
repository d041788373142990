"""Collectives over the links of one machine: against uniform networks, the bound of cuts, and Summit by hand."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.collectives import KINDS, Kind, Topology, cost
from roofdsl.predict.routes import collective_among
from tests.predict.machines import machine

GB = 10**9
SUMMIT = load_machine("summit")
GPUS = [f"HBM{k}" for k in range(6)]


def joined(names: list[str], links: list[str]) -> Machine:
    return machine("peak f64 1 TFLOP/s", *(f"memory {n} 1 GB, 1000 TB/s" for n in names), *links)


def ring(p: int, arrow: str = "<->") -> tuple[Machine, list[str]]:
    names = [f"D{k}" for k in range(p)]
    return joined(names, [f"link l{k}: D{k} {arrow} D{(k + 1) % p} 10 GB/s" for k in range(p)]), names


def star(p: int) -> tuple[Machine, list[str]]:
    names = [f"D{k}" for k in range(p)]
    return joined([*names, "S"], [f"link l{k}: D{k} <-> S 10 GB/s" for k in range(p)]), names


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("built", "topology"), [(ring(5), "two-way-ring"), (ring(5, "->"), "ring"), (star(5), "switch")]
)
def test_uniform_networks_cost_what_the_formulas_say(
    built: tuple[Machine, list[str]], topology: Topology, kind: Kind
) -> None:
    found = collective_among(built[0], kind, GB, built[1])
    assert found.collective.time_s == cost(kind, 5, topology)[0] * GB / Fraction(10 * GB)
    assert found.at_least_s is not None
    assert found.at_least_s <= found.collective.time_s


def test_summit_by_hand() -> None:
    """Round a ring each GPU sends and receives (p - 1)/p of the array once; the narrowest thing on the way decides."""
    pair = collective_among(SUMMIT, "all-gather", GB, GPUS[:2]).collective
    assert (pair.link, pair.direction, pair.time_s) == ("NVLink0", "HBM0 -> DRAM0", Fraction(1, 2) / 50)
    three = collective_among(SUMMIT, "all-reduce", GB, GPUS[:3]).collective
    assert three.time_s == Fraction(4, 3) / 50
    # with six, four of the ring's six ways lead through a DRAM: 4 x 5/6 of the array at 170 GB/s, not 5/6 at 50
    six = collective_among(SUMMIT, "all-gather", GB, GPUS)
    assert (six.collective.link, six.collective.time_s) == ("DRAM0", 4 * Fraction(5, 6) / 170)
    assert six.at_least_s == Fraction(5, 6) / 50


def test_a_bad_order_of_names_costs_nothing() -> None:
    """All orders of a ring are tried: going to and fro between the sockets would take the X-Bus twice each way."""
    mixed = collective_among(SUMMIT, "all-gather", GB, ["HBM0", "HBM3", "HBM1", "HBM4"])
    sorted_ = collective_among(SUMMIT, "all-gather", GB, ["HBM0", "HBM1", "HBM3", "HBM4"])
    assert mixed.collective.time_s == sorted_.collective.time_s == Fraction(3, 4) / 50


def test_nothing_found_is_faster_than_the_bound() -> None:
    random = Random(5)
    for _ in range(30):
        names = ["A", "B", "C", "D"]
        links = [f"link {a}{b}: {a} <-> {b} {random.randint(1, 30)} GB/s" for a, b in ("AB", "BC", "CD", "DA")]
        links += [f"link x: A <-> C {random.randint(1, 30)} GB/s"] if random.random() < 0.5 else []
        built = machine(
            "peak f64 1 TFLOP/s", *(f"memory {n} 1 GB, {random.randint(20, 90)} GB/s" for n in names), *links
        )
        for kind in KINDS:
            found = collective_among(built, kind, GB, names[: random.randint(2, 4)])
            assert found.at_least_s is not None
            assert 0 < found.at_least_s <= found.collective.time_s


def test_names_that_do_not_fit() -> None:
    with pytest.raises(CommandError, match="no memory or link end named HBM9"):
        collective_among(SUMMIT, "all-gather", GB, ["HBM0", "HBM9"])
    with pytest.raises(CommandError, match="HBM0 is named twice"):
        collective_among(SUMMIT, "all-gather", GB, ["HBM0", "HBM0"])
    with pytest.raises(CommandError, match="at least two devices"):
        collective_among(SUMMIT, "all-gather", GB, ["HBM0"])
    apart = machine(
        "peak f64 1 TFLOP/s",
        *(f"memory {n} 1 GB, 1 TB/s" for n in "ABC"),
        "link a: A -> B 1 GB/s",
        "link b: C -> B 1 GB/s",
    )
    with pytest.raises(CommandError, match=r"no links of machine \w+ lead from B to A"):
        collective_among(apart, "all-gather", GB, ["A", "B"])


def test_the_better_of_two_links() -> None:
    two = joined(["A", "B"], ["link slow: A <-> B 1 GB/s", "link fast: A <-> B 5 GB/s"])
    found = collective_among(two, "all-gather", GB, ["A", "B"]).collective
    assert (found.link, found.time_s) == ("fast", Fraction(1, 10))
