"""Whether levels run side by side: what measurements say, of levels whose behaviour is known, and briefly of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.measure import level_overlap
from roofdsl.measure.bandwidth_curve import Beside
from roofdsl.measure.level_overlap import (
    Place,
    farther,
    in_turn,
    judged,
    measure,
    measure_pair,
    short_arrays,
    side_by_side,
    stream_rate,
)
from roofdsl.measure.machine_file import to_machine
from roofdsl.measure.microkernels import beside
from roofdsl.measure.multicore_timing import PIECE, Effort
from roofdsl.measure.timing import usable_cores
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.measure.made_up import KIB, characterized

L1, L2, L3 = Place("L1", 32 * KIB, 200e9), Place("L2", 1024 * KIB, 100e9), Place("L3", 32768 * KIB, 80e9)
MEMORY = Place("DRAM", 24 << 30, 30e9)
PLACES = (L1, L2, L3, MEMORY)


def test_the_level_that_tells_most_is_taken() -> None:
    assert [farther(PLACES, k) for k in range(4)] == [1, 3, 3, None]
    # 1/50 + 1/25 against 1/25; 1/50 + 1/49 is what both would take side by side as well
    assert farther((Place("a", 1, 50.0), Place("b", 1, 49.0)), 0) is None
    assert farther((Place("a", 1, 50.0), Place("b", 1, 25.0)), 0) == 1


@pytest.mark.parametrize(("near", "far"), [(L2, MEMORY), (L3, MEMORY), (L1, L2)])
def test_what_a_measurement_says(near: Place, far: Place) -> None:
    side, turn = side_by_side(near, far.loads_per_s), in_turn(near, far.loads_per_s)

    def at(part: float) -> float | None:
        """The rate found where the two take so much of the way from side by side to in turn."""
        found = judged(near, far.name, far.loads_per_s, 1 / (side + part * (turn - side)))
        return None if found is None else found.bytes_per_s

    assert at(0.0) is None and at(-0.1) is None and at(0.2) is None
    assert at(1.0) == pytest.approx(near.loads_per_s)
    half = at(0.5)
    assert half is not None and half > near.loads_per_s
    # the time that was measured is the one that a machine with this rate predicts
    assert 1 / far.loads_per_s + 1 / half == pytest.approx(side + 0.5 * (turn - side))
    slower = judged(near, far.name, far.loads_per_s, 1 / (side + 1.5 * (turn - side)))
    assert slower is not None and slower.bytes_per_s == near.loads_per_s > slower.measured_per_s
    # Lines of the near level cannot add more than lines of the far level would: another program did.
    disturbed = judged(near, far.name, far.loads_per_s, far.loads_per_s / 3)
    assert disturbed is not None and disturbed.bytes_per_s == disturbed.measured_per_s == near.loads_per_s


def test_levels_that_overlap_have_a_rate_where_it_is_wanted() -> None:
    """A byte of L2 adds what was measured to a byte of the memory, but at least a fiftieth of its time."""
    side, far = side_by_side(L2, MEMORY.loads_per_s), MEMORY.loads_per_s
    assert judged(L2, "DRAM", far, 1 / side) is None
    alone = judged(L2, "DRAM", far, 1 / side, overlap=True)
    assert alone is not None and alone.measured_per_s == pytest.approx(50 * far)
    adds = judged(L2, "DRAM", far, 1 / (1.04 / far), overlap=True)
    assert adds is not None and adds.measured_per_s == pytest.approx(25 * far)


def test_a_level_may_overlap_with_the_memory_and_not_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Zen 5: hits in the second cache wait for lines of the third, which show it best, not for the memory's."""
    took = {"L3": in_turn(L2, L3.loads_per_s), "DRAM": side_by_side(L2, MEMORY.loads_per_s)}
    places = (L1, L2, L3, MEMORY)

    def both(of: Sequence[Place], near: int, *rest: object, far: int, overlap: bool = False) -> Beside | None:
        return judged(of[near], of[far].name, of[far].loads_per_s, 1 / took[of[far].name], overlap=overlap)

    monkeypatch.setattr(level_overlap, "measure", both)
    following, behind = measure_pair(places, 1, [0], [], Effort(1, 1e-4, 0.01))
    assert following is not None and following.measured_per_s == pytest.approx(L2.loads_per_s)
    assert behind is not None and behind.measured_per_s > 10 * L2.loads_per_s
    took["L3"] = side_by_side(L2, L3.loads_per_s)
    assert measure_pair(places, 1, [0], [], Effort(1, 1e-4, 0.01)) == (None, None)
    took["DRAM"] = in_turn(L2, MEMORY.loads_per_s)
    following, behind = measure_pair(places, 1, [0], [], Effort(1, 1e-4, 0.01))
    assert following is None and behind is not None and behind.measured_per_s == pytest.approx(L2.loads_per_s)


def test_the_short_array_is_well_inside_its_level_and_outside_the_one_before() -> None:
    assert short_arrays(PLACES, 0) == [4 * KIB, 8 * KIB]
    assert short_arrays(PLACES, 1) == [128 * KIB, 256 * KIB]
    assert short_arrays((L1, Place("L2", 64 * KIB, 100e9), MEMORY), 1) == []
    assert short_arrays((L1, Place("L2", 128 * KIB, 100e9), MEMORY), 1) == [32 * KIB]


def test_a_short_array_longer_than_a_piece_is_timed() -> None:
    short = 2 * PIECE
    block = np.zeros((9 * PIECE) // 8)
    found = stream_rate((block,), 3 * short, short, usable_cores()[:1], Effort(3, 1e-4, 0.05))
    assert found.per_s > 0


def test_the_loop_sums_up_both() -> None:
    dice = np.random.default_rng(3)
    a, b = dice.random(96), dice.random(8)
    assert beside()(a, b, 2) == pytest.approx(2 * (a.sum() + 12 * b.sum()))


def test_a_measurement_of_this_machine() -> None:
    blocks = [np.ones(1 << 18)]
    found = measure((L1, L2, MEMORY), 1, usable_cores()[:1], blocks, Effort(3, 2e-4, 0.01))
    assert found is None or (found.far == "DRAM" and found.bytes_per_s >= max(L2.loads_per_s, found.measured_per_s))
    assert measure((L1, L2), 1, usable_cores()[:1], blocks, Effort(3, 2e-4, 0.01)) is None


def test_two_streams_are_predicted_as_they_were_measured() -> None:
    """A row of B out of L2 for every row of A out of memory, on the made-up machine: 30 GB/s, and then 100 GB/s."""
    text = (
        "kernel both(m, n):\n    in A: f64[m, n], B: f64[n]\n    out s: f64\n    s = 0\n"
        "    for i in range(m), j in range(n):\n        s += A[i, j] + B[j]\n"
    )
    machine = to_machine(characterized(cores=1))
    given = kernel(load_file(Source("both.roof", text)), "both")
    m, n = 512, 2**14
    p = predict(given, {"m": m, "n": n}, machine, Options(accesses="compiled"))
    rows = 8 * m * n
    assert float(p.bound_s) == pytest.approx(rows / 30e9 + rows / 100e9, rel=0.01)
    assert p.bound == "DRAM and L2"
    slower = predict(given, {"m": m, "n": n}, machine, Options(ceilings=("L2 beside DRAM, measured",)))
    assert float(slower.bound_s) == pytest.approx(rows / 30e9 + rows / 70e9, rel=0.01)
