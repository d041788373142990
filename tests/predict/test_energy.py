"""Energies against sums by hand, against the figures of the paper that the model is from, and under a power cap."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.cli.main import run
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.energy_roofline import EnergyRoofline, Unstated, energy_roofline, operation_energy
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches
from tests.predict.machines import kernel_of, machine

AXPY = kernel_of(
    "kernel axpy(n):\n    in x: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n        y[i] += 3 * x[i]\n"
)
PLAIN = ("peak f64 fma 10 GFLOP/s, energy 100 pJ/FLOP", "constant_power 10 W")
MEMORY = "memory DRAM 1 GiB, 1 GB/s, energy 500 pJ/B"
ENERGY = Options(energy=True)


def joules(kernel: Kernel, on: Machine, options: Options = ENERGY, **sizes: int) -> float:
    found = predict(kernel, sizes, on, options)
    assert found.energy is not None, found.no_energy
    return float(found.energy.total_j)


def test_the_sum_by_hand() -> None:
    """2 n operations, 24 n bytes, all of the time at 1 GB/s."""
    found = predict(AXPY, {"n": 1000}, machine(*PLAIN, MEMORY), ENERGY)
    energy = found.energy
    assert energy is not None
    seconds = 24_000 / 1e9
    parts = {"constant power": 10 * seconds, "f64 operations": 2000 * 100e-12, "DRAM bytes": 24_000 * 500e-12}
    assert {name: float(j) for name, j in energy.by_cause} == pytest.approx(parts)
    assert float(energy.total_j) == pytest.approx(sum(parts.values()))
    assert float(energy.average_w) == pytest.approx(sum(parts.values()) / seconds)
    assert float(energy.per_joule(found.work)) == pytest.approx(2000 / sum(parts.values()))
    assert float(energy.delay_js) == pytest.approx(sum(parts.values()) * seconds)
    assert (energy.of, energy.is_capped) == ("bound", False)


def test_pairs_in_a_type_of_matrix_units_alone_have_the_energy_of_these() -> None:
    """Rule 14: pairs in f8 run on matrix units, all other operations are computed in f32."""
    kernel = "kernel k(n):\n    in x: f8[n], a: f8\n    inout y: f8[n]\n    for i in range(n):\n        y[i] {}\n"
    memory = "memory HBM 1 GiB, 1 TB/s, energy 2 pJ/B"
    lines = ("peak f32 fma 60 TFLOP/s, energy 1 pJ/FLOP", "constant_power 10 W", memory)
    on = machine(*lines, "peak f8 tensor 2000 TFLOP/s, energy 0.25 pJ/FLOP")
    for statement, each in (("+= a * x[i]", 0.25e-12), ("+= x[i]", 1e-12), ("= x[i] / y[i]", 8e-12)):
        energy = predict(kernel_of(kernel.format(statement)), {"n": 1000}, on, ENERGY).energy
        assert energy is not None
        operations = 2000 if "*" in statement else 1000
        assert dict(energy.operations) == {"f8": pytest.approx(operations * each)}
    silent = machine(*lines, "peak f8 tensor 2000 TFLOP/s")
    why = predict(kernel_of(kernel.format("+= a * x[i]")), {"n": 1000}, silent, ENERGY).no_energy
    assert "states no energy of f8 tensor operations" in why


def test_levels_each_with_their_own_bytes() -> None:
    """An array of 8 KiB read 4 times through a cache of 32 KiB: once from memory, four times from the cache."""
    kernel = kernel_of(
        "kernel sums(n, m):\n    in x: f64[n]\n    inout s: f64\n    for k in range(m):\n        for i in range(n):\n"
        "            s += x[i]\n"
    )
    lines = (*PLAIN, "cache L1 32 KiB, 10 GB/s, line 64 B, energy 20 pJ/B", MEMORY)
    found = predict(kernel, {"n": 1024, "m": 4}, machine(*lines), ENERGY).energy
    assert found is not None
    bytes_of = {name: float(j) for name, j in found.levels}
    assert bytes_of["DRAM"] == pytest.approx((8192 + 16) * 500e-12)
    assert bytes_of["L1"] >= 4 * 8192 * 20e-12


def test_a_cache_without_an_energy_of_its_own_is_said() -> None:
    lines = (*PLAIN, "cache L1 32 KiB, 10 GB/s, line 64 B", MEMORY)
    found = predict(AXPY, {"n": 1000}, machine(*lines), ENERGY)
    assert "no energy of their own: bytes of L1" in found.assumptions
    assert found.energy is not None and dict(found.energy.levels).keys() == {"DRAM"}


@pytest.mark.parametrize(
    ("name", "type_name", "best", "half"),
    [("gtx_580", "f32", 5.7, 4.5), ("gtx_580", "f64", 1.2, 0.79), ("core_i7_950", "f32", 0.66, 2.1),
     ("core_i7_950", "f64", 0.34, 1.1)],
)  # fmt: skip
def test_the_figures_of_the_paper(name: str, type_name: str, best: float, half: float) -> None:
    """Choi et al., IPDPS 2013, figure 4: the best GFLOP/J, and the intensity (FLOP/B) at half of it."""
    of = energy_roofline(load_machine(name), type_name)
    assert float(f"{1e-9 / float(of.least_j):.2g}") == best
    assert float(f"{float(of.half_intensity):.2g}") == half


@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("name", ["gtx_580", "core_i7_950"])
def test_the_effective_balance_of_the_paper(name: str, type_name: str) -> None:
    """Its equation 6: B(I) = eta B_eps + (1 - eta) max(0, B_tau - I), whose fixed point is half of the best."""
    of = energy_roofline(load_machine(name), type_name)
    eta = of.operation_j / (of.operation_j + of.constant_w / of.peak_per_s)
    right = eta * of.energy_balance
    left = (right + (1 - eta) * of.time_balance) / (2 - eta)
    assert float(of.half_intensity) == pytest.approx(float(right if right >= of.time_balance else left))


positive = st.floats(1e-3, 1e3)


@given(st.tuples(*[positive] * 5), st.none() | st.floats(1.01, 10))
def test_half_of_the_best_is_where_an_operation_takes_twice_as_much(numbers: tuple[float, ...], cap: float) -> None:
    """Found by bisection of the energy over intensity. `cap`: times the constant power, or None."""
    of = EnergyRoofline(*numbers, None if cap is None else cap * numbers[2])
    low, high = 1e-15, 1e15
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if of.joules(middle) > 2 * of.least_j else (low, middle)
    assert isclose(float(of.half_intensity), low, rel_tol=1e-6)


def test_a_cap_stretches_the_time() -> None:
    """The bytes alone take 0.5 W, and the operations 0.0083 W: of a cap of 10.25 W, a quarter of a watt is left."""
    free = predict(AXPY, {"n": 1000}, machine(*PLAIN, MEMORY), ENERGY).energy
    found = predict(AXPY, {"n": 1000}, machine(*PLAIN, MEMORY, "power_cap 10.25 W"), ENERGY).energy
    assert free is not None and found is not None
    dynamic = 2000 * 100e-12 + 24_000 * 500e-12
    assert found.is_capped and float(found.time_s) == pytest.approx(dynamic / 0.25)
    assert found.uncapped_s == free.time_s
    assert float(found.average_w) == pytest.approx(10.25)
    assert float(found.total_j) == pytest.approx(10 * dynamic / 0.25 + dynamic)
    wide = predict(AXPY, {"n": 1000}, machine(*PLAIN, MEMORY, "power_cap 11 W"), ENERGY).energy
    assert wide == replace(free, cap_w=Fraction(11), all_balances=wide and wide.all_balances)


def test_the_expected_time_counts_where_there_is_one() -> None:
    stated = load_machine("haswell_e5_2695v3")
    peaks = tuple(replace(p, energy_j=Fraction(100, 10**12)) for p in stated.peaks)
    memory = replace(stated.main_memory, energy_j_per_byte=Fraction(500, 10**12))
    on = replace(stated, peaks=peaks, memories=(memory,), constant_power_w=Fraction(10))
    found = predict(AXPY, {"n": 10**6}, on, replace(ENERGY, code=Code("stated")))
    assert found.expected is not None and found.energy is not None
    assert (found.energy.of, found.energy.time_s) == ("expected time", found.expected.expected_s)
    assert found.energy.constant_j == 10 * found.expected.expected_s
    one = on_cores(AXPY, {"n": 10**6}, on, 1, replace(ENERGY, code=Code("stated")))
    assert one.energy == found.energy


def test_an_operation_takes_the_same_energy_on_some_of_the_cores() -> None:
    """A division has that of 8 operations, as in time: 80 pJ each, however many of 20 cores share the work."""
    inverse = kernel_of(
        "kernel v(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = 1 / x[i]\n"
    )
    stated = load_machine("skylake_gold_6148")
    peaks = tuple(replace(p, energy_j=Fraction(10, 10**12)) for p in stated.peaks)
    memory = replace(stated.main_memory, energy_j_per_byte=Fraction(500, 10**12))
    on = replace(stated, peaks=peaks, memories=(memory,), constant_power_w=Fraction(10))
    for cores in (1, 5, 20):
        found, bound = (
            on_cores(inverse, {"n": 1000}, on, cores, replace(ENERGY, code=code)) for code in (Code("stated"), None)
        )
        assert found.expected is not None and found.energy is not None and bound.energy is not None
        assert dict(found.energy.operations) == {"f64": Fraction(80_000, 10**12)}
        assert found.energy.balances == bound.energy.balances


PROGRAM = """\
kernel scale(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = 2 * x[i]

kernel powers(n):
    inout y: f64[n]
    for i in range(n):
        y[i] = y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i] * y[i]

program both(n):
    repeat 3:
        run scale(n)
    run powers(n)
"""


@pytest.mark.parametrize("cap", [(), ("power_cap 10.25 W",)])
def test_a_program_is_the_sum_of_its_launches(cap: tuple[str, ...]) -> None:
    """Each launch is stretched by itself: one that computes does not make up for one that does not."""
    on, checked = machine(*PLAIN, MEMORY, *cap), load_file(Source("p.roof", PROGRAM))
    found = predict_launches(checked, "both", {"n": 5000}, on, ENERGY)
    each = {k: joules(kernel_of(PROGRAM, k), on, n=5000) for k in ("scale", "powers")}
    assert found.total.energy is not None
    assert float(found.total.energy.total_j) == pytest.approx(3 * each["scale"] + each["powers"])
    assert float(sum(j for _, j in found.total.energy.by_cause)) == pytest.approx(float(found.total.energy.total_j))


@pytest.mark.parametrize("order", list(permutations(("none", "one", "other"))))
def test_a_program_has_the_balances_in_which_its_launches_agree(order: tuple[str, ...]) -> None:
    """In any order: launches without operations have no say, and those that differ leave the program without any."""
    text = "".join(
        f"kernel {name}(n):\n    in x: {type_}[n]\n    out y: {type_}[n]\n"
        f"    for i in range(n):\n        y[i] = {value}\n\n"
        for name, type_, value in (("none", "f64", "x[i]"), ("one", "f64", "2 * x[i]"), ("other", "f32", "2 * x[i]"))
    )
    on = machine(*PLAIN, "peak f32 fma 20 GFLOP/s, energy 50 pJ/FLOP", MEMORY)

    def balances(*runs: str) -> str:
        program = "program all(n):\n" + "".join(f"    run {name}(n)\n" for name in runs)
        found = predict_launches(load_file(Source("p.roof", text + program)), "all", {"n": 5000}, on, ENERGY).total
        assert found.energy is not None
        return "" if found.energy.balances is None else found.energy.balances.type

    assert balances(*order) == ""
    for of, type_name in (("one", "f64"), ("other", "f32")):
        assert balances(*(name for name in order if name in ("none", of))) == type_name


def test_divisions_take_the_energy_of_as_many_operations_as_they_take_the_time_of() -> None:
    kernel = kernel_of("kernel d(n):\n    inout y: f64[n]\n    for i in range(n):\n        y[i] = 3 / y[i]\n")
    found = predict(kernel, {"n": 1000}, machine(*PLAIN, MEMORY), ENERGY)
    assert found.energy is not None
    assert float(dict(found.energy.operations)["f64"]) == pytest.approx(8 * 1000 * 100e-12)
    assert "f64: div with the energy of 8 operations, as in time" in found.assumptions
    stated = machine(*PLAIN, "peak f64 div 1 GFLOP/s, energy 300 pJ/FLOP", MEMORY)
    own = predict(kernel, {"n": 1000}, stated, ENERGY).energy
    assert own is not None and float(dict(own.operations)["f64"]) == pytest.approx(1000 * 300e-12)


def test_what_is_not_stated_is_said() -> None:
    on = machine("peak f64 fma 10 GFLOP/s", "constant_power 10 W", MEMORY)
    found = predict(AXPY, {"n": 10}, on, ENERGY)
    assert found.energy is None
    assert found.no_energy.startswith("m states no energy of f64 operations: end its `peak` line in")
    assert found.to_json()["energy_missing"] == found.no_energy and found.to_json()["energy_j"] is None
    assert "DRAM" in predict(AXPY, {"n": 10}, machine(*PLAIN, "memory DRAM 1 GiB, 1 GB/s"), ENERGY).no_energy
    with pytest.raises(Unstated, match="f16 tensor"):
        operation_energy(machine("peak f16 tensor 1 TFLOP/s", *PLAIN, MEMORY), "f16", "tensor")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "triad", "--machine", "gtx_580", "--set", "n=1e7", "--energy"]) == 0
    out = capsys.readouterr().out
    assert "on average over 1.247 ms, the bound" in out and "energy by cause:" in out
    assert run(["predict", "triad", "--machine", "gtx_580", "--set", "n=1e7", "--energy", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert sum(part["energy_j"] for part in document["energy_by"]) == pytest.approx(document["energy_j"])
    assert document["average_power_w"] == pytest.approx(document["energy_j"] / document["energy_time_s"])
    assert run(["predict", "triad", "--machine", "gtx_580", "--set", "n=1e7", "--json"]) == 0
    assert not any("energy" in key for key in json.loads(capsys.readouterr().out))
    assert run(["predict", "triad", "--machine", "v100", "--set", "n=10", "--energy"]) == 2
    assert "v100 does not state its constant power" in capsys.readouterr().err
