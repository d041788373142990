"""The fit of powers: laws that are known come back, and published powers are described as well as the model can."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.machine.find import load_machine
from roofdsl.measure.energy_fit import PowerPoint, fit_power, power_cap

# te42kyfo/gpu-benches, gpu-roofline: GB/s, GFLOP/s in f32, MHz and W at some of its intensities, of the first cards.
PUBLISHED = {
    "gh200_96": (
        (3759, 940, 1980, 572), (3735, 15874, 1980, 650), (2029, 28920, 1980, 526), (1578, 38276, 1980, 519),
        (1155, 39570, 1980, 479), (910, 40254, 1980, 455), (761, 41269, 1980, 440), (642, 41232, 1980, 428),
        (566, 42006, 1980, 414), (500, 42103, 1980, 408), (447, 42092, 1980, 402),
    ),
    "a100_40": (
        (1372, 343, 1410, 227), (1284, 13166, 1410, 284), (850, 17204, 1410, 250), (554, 17863, 1410, 224),
        (418, 18481, 1410, 209), (311, 18718, 1410, 196), (278, 18944, 1410, 195), (231, 19020, 1410, 188),
        (206, 19008, 1410, 188), (175, 18899, 1410, 184), (156, 19077, 1410, 180),
    ),
    "a40": (
        (679, 170, 1740, 206), (679, 4242, 1740, 231), (675, 12327, 1740, 282), (655, 19816, 1665, 300),
        (502, 21211, 1650, 301), (406, 22001, 1665, 302), (338, 22391, 1680, 300), (289, 22640, 1695, 300),
        (255, 23026, 1695, 300), (227, 23192, 1710, 299), (205, 23405, 1725, 299), (187, 23607, 1725, 299),
    ),
}  # fmt: skip


def points(device: str) -> list[PowerPoint]:
    return [
        PowerPoint(watts, {"bytes": gb * 1e9, "f32": gflop * 1e9}, mhz * 1e6)
        for gb, gflop, mhz, watts in PUBLISHED[device]
    ]


def test_a_law_comes_back() -> None:
    dice, law = Random(3), {"f64": 20e-12, "f32": 9e-12, "L2": 30e-12, "DRAM": 400e-12}
    made = []
    for _ in range(12):
        rates = {name: dice.uniform(0, 1e12 if name.startswith("f") else 1e11) for name in law}
        made.append(PowerPoint(50 + sum(law[name] * rate for name, rate in rates.items()), rates))
    found = fit_power(made)
    assert found.constant_w == pytest.approx(50)
    assert dict(found.energies_j) == pytest.approx(law)
    assert found.greatest_error < 1e-9 and found.points == 12
    assert found.watts(made[0].rates_per_s) == pytest.approx(made[0].watts)


def test_nothing_takes_less_than_no_energy() -> None:
    """Powers that fall with the second rate: it is taken to cost nothing, and the first is fitted without it."""
    made = [PowerPoint(10 + 2 * x - 0.1 * y, {"a": x, "b": y}) for x in (1.0, 2.0, 3.0) for y in (1.0, 2.0)]
    found = fit_power(made)
    assert found.energies_j["b"] == 0
    assert found.energies_j["a"] == pytest.approx(2)
    assert found.constant_w == pytest.approx(10 - 0.15)


def test_what_cannot_be_told_apart() -> None:
    with pytest.raises(ValueError, match="2 points cannot tell the constant power and 2 energies apart"):
        fit_power([PowerPoint(1, {"a": 1, "b": 2}), PowerPoint(2, {"a": 2, "b": 1})])
    with pytest.raises(ValueError, match="too much alike"):
        fit_power([PowerPoint(10 + x, {"a": x, "b": 3 * x}) for x in (1.0, 2.0, 3.0, 4.0)])
    with pytest.raises(ValueError, match="above 0"):
        fit_power([PowerPoint(10 + x, {"a": x, "b": 0}) for x in (1.0, 2.0, 3.0, 4.0)])


@pytest.mark.parametrize(("device", "mean"), [("gh200_96", 0.01), ("a100_40", 0.03), ("a40", 0.03)])
def test_published_powers(device: str, mean: float) -> None:
    """The shipped machine has the numbers of the fit to all published points; these are a few of them."""
    found, machine = fit_power(points(device)), load_machine(device)
    assert found.mean_error <= mean
    (peak,) = [p for p in machine.peaks if (p.type, p.cls) == ("f32", "fma")]
    assert machine.constant_power_w is not None and peak.energy_j is not None
    stated = machine.main_memory.energy_j_per_byte
    assert stated is not None
    for p in points(device):
        rates = p.rates_per_s
        watts = float(machine.constant_power_w + peak.energy_j * int(rates["f32"]) + stated * int(rates["bytes"]))
        assert watts == pytest.approx(p.watts, rel=0.06)


def test_the_cap_is_where_clocks_are_lowered() -> None:
    assert power_cap(points("gh200_96")) is None
    assert power_cap(points("a40")) == 300
    assert power_cap([PowerPoint(100, {"a": 1})]) is None
