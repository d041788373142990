"""What other programs take: made-up counters and clocks, and this machine's own once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from roofdsl.measure import other_load as others
from roofdsl.measure.other_load import BUSY, Others, seconds_of_others, taken_by_others, wait_until_calm


def one_after_another(values: Iterator[float | None]) -> Callable[[], float | None]:
    return lambda: next(values)


def counted(busy_s: tuple[float | None, float | None], lasts_s: float = 4.0) -> Others:
    clock = iter((100.0, 100.0 + lasts_s))
    return Others(one_after_another(iter(busy_s)), lambda: next(clock))


@pytest.mark.parametrize(
    ("busy_s", "cores"),
    [((10.0, 12.5), 0.625), ((10.0, 9.0), 0.0), ((10.0, 1e6), float(os.cpu_count() or 1)), ((None, None), None)],
)
def test_cores_that_others_keep_busy(busy_s: tuple[float | None, float | None], cores: float | None) -> None:
    assert counted(busy_s).cores() == cores


def test_ticks_of_ten_milliseconds_are_not_read_finely() -> None:
    assert counted((10.0, 10.1), 0.1).cores() is None


def test_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others.os, "cpu_count", lambda: 2)
    assert taken_by_others(0.8432) == "other programs took 0.8 of 2 cores"
    monkeypatch.setattr(others.os, "cpu_count", lambda: 1)
    assert taken_by_others(0.5) == "other programs took 0.5 of 1 core"


@pytest.mark.parametrize(("busy", "waited_s", "calm"), [((0.9, 0.8, 0.0), 3, True), ((1.0,) * 9, 5, False)])
def test_waiting_ends(busy: tuple[float, ...], waited_s: int, calm: bool) -> None:
    each, slept = iter(busy), []
    assert wait_until_calm(5, lambda: counted((0.0, next(each)), 1.0), slept.append) is calm
    assert sum(slept) == waited_s and BUSY < 0.8


def test_own_time_is_not_others() -> None:
    """This process keeps a core busy: what is counted as others' does not rise by that."""
    before = seconds_of_others()
    if before is None:
        pytest.skip("no /proc/stat")
    own = os.times()
    while os.times().user + os.times().system - own.user - own.system < 0.3:
        pass
    after = seconds_of_others()
    assert after is not None and after >= before - 0.05  # others are never negative beyond two ticks of each core
