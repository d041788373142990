"""The floors of `sol` hold: a sample of `python -m benchmarks floors`, and what that says where one does not."""

from __future__ import annotations

import random

import pytest

from benchmarks import floors
from benchmarks.kernels import ROOT
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine

pytestmark = pytest.mark.thorough

QUICK = ("matmul", "gemv", "jacobi2d_time", "conv2d_f32", "triad", "trsv", "atax")
MACHINES = ("a100_80", "zen2_epyc_7452", "v100", "haswell_e5_2695v3")


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return floors.kernels()


@pytest.mark.parametrize("names", [QUICK[-2:], pytest.param(QUICK, marks=pytest.mark.thorough)], ids=len)
def test_nothing_is_below_its_floor(names: tuple[str, ...], kernels: dict[str, Kernel]) -> None:
    """The time as written, the expected one, and the best order found, at random sizes on random machines."""
    draw, found, many = random.Random(5), floors.Checked(), 3
    machines = [load_machine(name) for name in MACHINES]
    for name in names:
        for _ in range(many):
            sizes = floors.sizes_of(kernels[name], draw, 40)
            assert sizes is not None
            floors.compare(name, kernels[name], draw.choice(machines), sizes, found)
    assert not found.wrong and found.sizes >= many * len(names) - 2


def test_no_simulated_order_loads_less(kernels: dict[str, Kernel]) -> None:
    draw, found = random.Random(1), floors.Checked()
    for name in ("matmul", "jacobi2d_time", "trsv", "atax", "gemv"):
        for _ in range(2):
            floors.compare_orders(name, kernels[name], draw, found)
    assert not found.wrong and found.orders >= 9


def test_no_stored_measurement_is_below_its_floor() -> None:
    found = floors.Checked()
    floors.compare_measured(ROOT / "benchmarks" / "reports" / "validation-2026-11-23", found, 8)
    assert not found.wrong and found.measured >= 20


def test_a_floor_that_is_too_high_is_told(monkeypatch: pytest.MonkeyPatch, kernels: dict[str, Kernel]) -> None:
    """Every comparison fails once the floor is ten times too high."""
    from roofdsl.lang.record import replace
    from roofdsl.sol import answer

    def ten(*given: object) -> floors.Floor:
        right = floors.floor(*given)  # type: ignore[arg-type]
        return replace(right, terms=tuple(replace(t, time_s=10**6 * t.time_s) for t in right.terms))

    monkeypatch.setattr(answer, "floor", ten)
    found = floors.Checked()
    floors.compare("gemv", kernels["gemv"], load_machine("v100"), {"n": 100}, found)
    assert len(found.wrong) >= 1 and "gemv on v100 at {'n': 100}" in found.wrong[0]
    assert "as written takes" in floors.section(found)
