"""A measured kernel's two times: docs/rules.md, rule 17."""

import pytest

from roofdsl.predict.measured_times import measured_times

PEAK, BETA = 107.479e12, 828.8e9
BALANCE = PEAK / BETA


@pytest.mark.parametrize(("work", "moved", "run"), [(1e9, 1e9, 1e-2), (1e12, 1e9, 0.5), (BALANCE * 1e9, 1e9, 1e-2)])
def test_the_times_are_those_of_the_rule(work: float, moved: float, run: float) -> None:
    intensity = work / moved
    found = measured_times(work, moved, run, PEAK, BETA)
    if intensity >= BALANCE:
        assert found.compute_s == pytest.approx(run)
        assert found.bandwidth_s == pytest.approx(run * BALANCE / intensity)
    else:
        assert found.bandwidth_s == pytest.approx(run)
        assert found.compute_s == pytest.approx(run * intensity / BALANCE)
    assert found.lost == pytest.approx(run / max(work / PEAK, moved / BETA))
    assert (found.model_compute_s, found.model_bandwidth_s) == pytest.approx((work / PEAK, moved / BETA))


def test_balanced_kernels_have_two_equal_times() -> None:
    found = measured_times(BALANCE * 1e9, 1e9, 1.0, PEAK, BETA)
    assert found.compute_s == pytest.approx(found.bandwidth_s)


def test_kernels_without_work_or_traffic() -> None:
    assert measured_times(0, 1e9, 1.0, PEAK, BETA).compute_s == 0
    assert measured_times(1e9, 0, 1.0, PEAK, BETA).bandwidth_s == 0


@pytest.mark.parametrize("numbers", [(1, 1, 0, 1, 1), (1, 1, 1, 0, 1), (1, 1, 1, 1, -1), (0, 0, 1, 1, 1)])
def test_impossible_measurements(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"positive|work or traffic"):
        measured_times(*numbers)
