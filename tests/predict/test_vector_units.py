"""`pipes units`: compute time by sets of vector units, against the best way to deal operations out to units."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import InputError
from roofdsl.machine.model import Machine
from roofdsl.machine.vector_units import units_of
from roofdsl.page.time_function import rates_of, seconds_function
from roofdsl.predict.compute import compute_time
from tests.page.javascript import evaluate
from tests.predict.machines import machine, work

G = 10**9
RATES = (
    "peak f64 fma 48 GFLOP/s", "peak f64 24 GFLOP/s", "peak f64 min 24 GFLOP/s", "peak f64 div 2 GFLOP/s",
    "peak f64 sqrt 1 GFLOP/s", "peak f64 exp 1 GFLOP/s", "peak f32 fma 96 GFLOP/s", "peak f32 48 GFLOP/s",
    "peak f16 fma 96 GFLOP/s", "peak f16 48 GFLOP/s", "peak i32 70 GOP/s",
)  # fmt: skip
CORE = (
    "clock 3 GHz", "core dispatch 6, window 512, waiting 90",
    "instruction load 256 bits, latency 7 cycles, throughput 0.5 cycles",
    *(
        f"instruction {cls} {t} {bits} bits, latency 4 cycles, throughput 0.5 cycles, {units}"
        for t in ("f64", "f32")
        for bits in (128, 256)
        for cls, units in (("add", "p1, p2"), ("mul", "p0, p1"), ("fma", "p0, p1"), ("max", "p0, p1"))
    ),
    *(
        f"instruction {cls} f64 512 bits, latency 4 cycles, throughput 0.5 cycles, p0, p2"
        for cls in ("add", "mul", "fma", "max")
    ),
    "instruction div f64 256 bits, latency 13 cycles, throughput 8 cycles",
)  # fmt: skip
GOLDEN_COVE = machine("pipes units", *RATES, *CORE)
IN_TURN = machine(*RATES, *CORE)


def least_seconds(units: dict[str, frozenset[int]], each: dict[str, int], unit_per_s: int) -> Fraction:
    """The least time in which whole operations `each` can be dealt out to units that do so many a second: all ways
    are tried.
    """
    ways = []
    for name, count in each.items():
        places = sorted(units[name])
        splits = [s for s in itertools.product(range(count + 1), repeat=len(places)) if sum(s) == count]
        ways.append([dict(zip(places, s, strict=True)) for s in splits])
    loads = []
    for way in itertools.product(*ways):
        loads.append(max(sum(part.get(u, 0) for part in way) for u in range(4)))
    return Fraction(min(loads), unit_per_s)


def test_time_is_that_of_the_best_way_to_deal_operations_out() -> None:
    draw = random.Random(5)
    units = {"mul": frozenset({0, 1}), "add": frozenset({1, 2}), "min": frozenset({0, 1})}
    for _ in range(25):
        counts = {name: 6 * draw.randrange(3) for name in units}  # multiples of 2 and 3 can be dealt out evenly
        least = least_seconds(units, counts, 12 * G)
        assert compute_time(work(**counts), GOLDEN_COVE).time_s == least


@pytest.mark.parametrize(
    ("counts", "slots"),
    [
        (work(add=12), Fraction(12, 2)),
        (work(mul=12), Fraction(12, 2)),
        (work(add=12, mul=12), Fraction(24, 3)),
        (work(add=12, mul=3), Fraction(12, 2)),
        (work(pairs=12, add=12), Fraction(24, 3)),
        (work(pairs=12), Fraction(12, 2)),
    ],
)
def test_additions_run_beside_products(counts: WorkAt, slots: Fraction) -> None:
    """By hand: two units multiply, two add, and one of them is the same."""
    assert compute_time(counts, GOLDEN_COVE).time_s == slots / (12 * G)


def test_types_share_units_and_storage_formats_those_of_f32() -> None:
    both = WorkAt({("f64", "mul"): 12, ("f32", "add"): 24}, {})
    assert compute_time(both, GOLDEN_COVE).time_s == Fraction(12 + 12, 3 * 12 * G)
    half = WorkAt({("f64", "mul"): 12, ("f16", "add"): 24}, {})
    assert compute_time(half, GOLDEN_COVE).time_s == Fraction(12 + 12, 3 * 12 * G)


def test_the_divider_and_functions_and_unknown_classes_run_beside_units() -> None:
    counts = WorkAt({("f64", "mul"): 24, ("f64", "div"): 3, ("i32", "add"): 7}, {})
    assert compute_time(counts, GOLDEN_COVE).time_s == Fraction(3, 2 * G)
    assert compute_time(counts, IN_TURN).time_s == Fraction(G + Fraction(3, 2) * G + Fraction(7, 70) * G, G * G)
    roots = WorkAt({("f64", "div"): 3, ("f64", "special"): 2}, {}, functions={("f64", "sqrt"): 2})
    assert compute_time(roots, GOLDEN_COVE).time_s == Fraction(3, 2 * G) + Fraction(2, G)
    exps = WorkAt({("f64", "div"): 3, ("f64", "special"): 2}, {}, functions={("f64", "exp"): 2})
    assert compute_time(exps, GOLDEN_COVE).time_s == Fraction(2, G)


def test_no_machine_is_slower_by_its_units_than_with_everything_in_turn() -> None:
    draw = random.Random(6)
    for _ in range(60):
        counts = {c: draw.randrange(40) for c in ("add", "mul", "min", "div") if draw.random() < 0.7}
        counts["add"] = counts.get("add", 0) + 1
        pairs = draw.randrange(20)
        found, in_turn = (compute_time(work(pairs=pairs, **counts), m).time_s for m in (GOLDEN_COVE, IN_TURN))
        assert 0 < found <= in_turn


def test_the_width_with_most_units_counts() -> None:
    """At 512 bits, additions and products have the same two units, which code at 256 bits would beat."""
    assert units_of(GOLDEN_COVE, "f64", "add") == {1, 2} and units_of(GOLDEN_COVE, "f64", "fma") == {0, 1}
    assert units_of(GOLDEN_COVE, "i32", "add") == frozenset() == units_of(GOLDEN_COVE, "f64", "div")


def test_pages_and_their_javascript_find_the_same() -> None:
    counts = work(pairs=7, add=12, mul=5, min=3, div=1)
    keys = frozenset({("f64", c) for c in ("pair", "add_left", "mul_left", "min", "div")})
    of = rates_of(GOLDEN_COVE, keys, None).compute
    assert of is not None
    at = {"f64 pair": 7, "f64 add_left": 12, "f64 mul_left": 5, "f64 min": 3, "f64 div": 1}
    assert of.at(at) == compute_time(counts, GOLDEN_COVE).time_s
    ((_, seconds),) = evaluate(
        (seconds_function((("compute", of),)),), "FUNCTIONS[0]((name) => COUNTS[name])", COUNTS=at
    )
    assert seconds == pytest.approx(float(compute_time(counts, GOLDEN_COVE).time_s), rel=1e-12)


def test_the_line_is_read_and_others_are_refused() -> None:
    assert isinstance(GOLDEN_COVE, Machine) and GOLDEN_COVE.pipes_by_unit and not GOLDEN_COVE.one_sequence
    assert IN_TURN.one_sequence
    with pytest.raises(InputError, match="or by `units`"):
        machine("pipes unit", *RATES, *CORE)
