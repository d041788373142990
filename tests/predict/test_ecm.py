"""The Execution-Cache-Memory model against its papers: transfer terms, volumes and predictions.

Stengel, Treibig, Hager, Wellein, ICS 2015; Hammer, Hager, Eitzinger, Wellein, PMBS 2015, table 5 (2d-5pt at N = 6000,
Kahan dot); kerncraft 0.8.18's layer conditions for the volumes. In-core terms are inputs: the papers had them from
Intel's IACA. All terms are cycles for one cache line of work, 8 iterations in double precision.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.predict.expected import Expected
from roofdsl.predict.expected_level_times import combined
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.prediction import Prediction
from tests.predict.machines import kernel_of

FIVE_POINTS = kernel_of("""
kernel five_points(m, n):
    in s: f64, a: f64[m, n]
    out b: f64[m, n]
    for j in range(1, m - 1), i in range(1, n - 1):
        b[j, i] = (a[j, i - 1] + a[j, i + 1] + a[j - 1, i] + a[j + 1, i]) * s
""")
SEVEN_POINTS = kernel_of("""
kernel seven_points(l, m, n):
    in s: f64, a: f64[l, m, n]
    out b: f64[l, m, n]
    for k in range(1, l - 1), j in range(1, m - 1), i in range(1, n - 1):
        let in_plane = a[k, j, i - 1] + a[k, j, i + 1] + a[k, j - 1, i] + a[k, j + 1, i]
        b[k, j, i] = (a[k, j, i] + in_plane + a[k - 1, j, i] + a[k + 1, j, i]) * s
""")
KAHAN = kernel_of("""
kernel kahan(n):
    in a, b: f64[n]
    inout total, c: f64
    for i in range(n):
        let y = a[i] * b[i] - c
        let t = total + y
        c = (t - total) - y
        total = t
""")
SNB, HSW = "sandy_bridge_e5_2680", "haswell_e5_2695v3"

# kernel, machine, (T_OL, T_nOL), transfer terms of L2, L3 and memory as printed, (prediction, measured)
PUBLISHED = [
    (FIVE_POINTS, SNB, (9.5, 8), (10, 6, 12.7), (36.7, 36.4)),
    (FIVE_POINTS, HSW, (9.4, 8), (5, 6, 16.7), (35.7, 30.0)),
    (KAHAN, SNB, (96, 8), (4, 4, 7.8), (96.0, 101.1)),
    (KAHAN, HSW, (96, 8), (2, 4, 9.1), (96.0, 98.0)),
]
SIZES = {"five_points": {"m": 6000, "n": 6000}, "kahan": {"n": 1 << 23}}
CLOCK = {SNB: 2.7e9, HSW: 2.3e9}


def modeled(
    kernel: Kernel, sizes: dict[str, int], machine: str, terms: tuple[float, float]
) -> tuple[Prediction, Expected, float]:
    """The prediction and the expected time with these in-core terms, and the lines of work of one launch."""
    prediction = predict(kernel, sizes, load_machine(machine))
    lines = prod(n - 2 for n in sizes.values()) / 8 if kernel is not KAHAN else sizes["n"] / 8
    core, loads = (cycles * lines / CLOCK[machine] for cycles in terms)
    in_core = InCore("IACA, as published", (Step("in-core terms", "", core, loads),), 0.0)
    found = composed(prediction, in_core, load_machine(machine))
    assert found.expected is not None
    return found, found.expected, lines


@pytest.mark.parametrize(("kernel", "machine", "core", "transfers", "cycles"), PUBLISHED)
def test_published_terms_and_predictions(
    kernel: Kernel,
    machine: str,
    core: tuple[float, float],
    transfers: tuple[float, float, float],
    cycles: tuple[float, float],
) -> None:
    prediction, found, lines = modeled(kernel, SIZES[kernel.name], machine, core)
    per_line = [float(time) * CLOCK[machine] / lines for _, time in found.transfers]
    assert [name for name, _ in found.transfers] == ["L2", "L3", "DRAM"]
    assert [round(term, 1) for term in per_line] == list(transfers)
    predicted = float(found.expected_s) * CLOCK[machine] / lines
    published, measured = cycles
    assert predicted == pytest.approx(published, rel=0.02)
    assert predicted == pytest.approx(measured, rel=0.2)  # as far as the paper's own is
    # the causes are all of the distance from the bound
    assert sum(c.share_s for c in found.causes) == found.expected_s - prediction.bound_s
    assert all(c.share_s > 0 for c in found.causes)


# loads and stores of 8 iterations across L1-L2, L2-L3 and L3-memory, on an Ivy Bridge of 32 KiB, 256 KiB and 25 MiB
VOLUMES = [
    (FIVE_POINTS, {"m": 6000, "n": 6000}, ((256, 64), (128, 64), (128, 64))),
    (SEVEN_POINTS, {"l": 300, "m": 300, "n": 300}, ((256, 64), (256, 64), (128, 64))),
]


@pytest.mark.parametrize(("kernel", "sizes", "volumes"), VOLUMES)
def test_volumes_of_the_layer_conditions(
    kernel: Kernel, sizes: dict[str, int], volumes: tuple[tuple[int, int], ...]
) -> None:
    """Of an inner line of work, without the edges: what one more line, row and plane add together, which is exact."""
    steps = dict.fromkeys(sizes, 1) | {"n": 8}
    found = [[0, 0] for _ in volumes]
    for far in product((0, 1), repeat=len(sizes)):
        at = {name: size + k * steps[name] for (name, size), k in zip(sizes.items(), far, strict=True)}
        sign = (-1) ** (len(sizes) - sum(far))
        levels = predict(kernel, at, load_machine("ivy_bridge_e5_2660v2")).levels
        for sums, level in zip(found, levels[1:], strict=True):
            assert level.loads_bytes is not None and level.stores_bytes is not None
            sums[0] += sign * level.loads_bytes
            sums[1] += sign * level.stores_bytes
    assert [tuple(sums) for sums in found] == list(volumes)


def test_the_rules_between_serial_and_overlap() -> None:
    times = [Fraction(3), Fraction(5), Fraction(2)]
    assert combined(times, Fraction(0)) == 10
    assert combined(times, Fraction(1)) == combined(times, None) == 5
    assert combined(times, Fraction(2, 5)) == 5 + Fraction(3, 5) * 5
