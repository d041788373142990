"""A point that is counted has what is left of the command's budget, and what leads to a row does not count; each kernel
of a suite has the whole budget.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from roofdsl import budget
from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError
from roofdsl.predict.kernel import predict
from roofdsl.suite.rows import _within
from roofdsl.sweep import single_points
from roofdsl.sweep.single_points import begin, here, on_cores
from tests.sweep.test_points import rows, tasks_at

SECONDS = 0.6


def _busily(*args: Any) -> Any:
    """`predict`, after analyses that take more than half of the budget."""
    with budget.region("much"):
        end = time.process_time() + 0.6 * SECONDS
        while time.process_time() < end:
            pass
    return predict(*args)


@pytest.fixture(autouse=True)
def _nothing_in_vain() -> None:
    begin(0.0)


@pytest.mark.thorough
def test_each_point_has_the_whole_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four points that take more than half of it each: all have their rows, and the whole has what it had before."""
    tasks = tasks_at((4, 5, 6, 7))
    expected = rows(here(tasks))
    monkeypatch.setattr(single_points, "predict", _busily)
    with budget.beginning(SECONDS, 1 << 40, whole=False) as own:
        found = list(here(tasks))
        assert own.deadline == SECONDS
    assert [o.failure for o in found] == [""] * 4 and rows(found) == expected


def test_a_point_has_no_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*args: Any) -> Any:
        with budget.region("no end"):
            while True:
                pass

    monkeypatch.setattr(single_points, "predict", endless)
    with budget.beginning(0.2, 1 << 40, whole=False):
        (found,) = here(tasks_at((4,)))
    assert found.row is None and found.final and "0.2 s of processor time" in found.failure


@pytest.mark.parametrize(("error", "counts"), [(CommandError("no"), True), (ValueError("no"), True), (None, False)])
def test_only_points_that_fail_count(error: Exception | None, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        with budget.region("much"):
            end = time.process_time() + 0.1
            while time.process_time() < end:
                pass
        if error is not None:
            raise error
        return predict(*args)

    monkeypatch.setattr(single_points, "predict", refused)
    with budget.beginning(5.0, 1 << 40, whole=False):
        list(here(tasks_at((4, 5))))
    assert (single_points._in_vain.seconds.value >= 0.199) is counts  # two points of 0.1 s, rounded


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", [1, 2])
def test_points_in_vain_share_the_budget(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten points without an end spend one budget, and each a little more, not ten budgets; so do they in processes."""

    def endless(*args: Any) -> Any:
        with budget.region("no end"):
            while True:
                pass

    monkeypatch.setattr(single_points, "predict", endless)
    monkeypatch.setattr(single_points, "LEAST_POINT_S", 0.05)
    runner = here if jobs == 1 else on_cores(jobs)
    with budget.beginning(1.0, 1 << 40, whole=False):
        begin(0.4)  # a search
        used = os.times()
        found = list(runner(tasks_at(tuple(range(4, 14)))))
        now = os.times()
    spent = sum(now[:4]) - sum(used[:4])
    assert all(o.row is None and "of processor time" in o.failure for o in found) and len(found) == 10
    assert spent < 3  # ten budgets would be ten seconds


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    ("options", "seconds"),
    [((), 20.0), (("--budget", "7s"), 7.0), (("--limit", "3"), 3.0), (("--budget", "7s", "--limit", "3"), 3.0),
     (("--budget", "none"), 24 * 3600.0)],
)  # fmt: skip
def test_a_kernel_of_a_suite_has_the_budget(
    options: tuple[str, ...], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def told(tasks: Sequence[object], each_s: float, progress: Callable[[int], None]) -> list[object]:
        asked.append(each_s)
        return [None for _ in tasks]

    monkeypatch.setattr("roofdsl.suite.rows.run_all", told)
    assert run(["suite", "gemv", "--machine", "v100_deck", "--set", "n=8", *options]) == 0
    assert asked == [seconds]


def test_what_a_suite_runs_knows_its_time() -> None:
    from roofdsl.advise.workers import run_all

    def task(tell: Callable[[Any], None]) -> None:
        tell(budget.left_s())

    with budget.beginning(1000.0, 1 << 40, whole=False):
        (left,) = run_all([lambda tell: _within(30.0, task, tell)], 30.0, lambda done: None)
    assert 20 < left <= 30


def test_of_many_names_a_few_are_told(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"p{k}" for k in range(300)]
    text = (
        f"kernel many({', '.join(names)}):\n    inout x: f64[p0]\n    for i in range(p0):\n        x[i] = x[i] + 1.0\n"
    )
    path = tmp_path / "many.roof"
    path.write_text(text)
    assert run(["predict", str(path), "--machine", "v100_deck", "--set", "p0=4"]) == 2
    told = capsys.readouterr().err
    assert "needs numbers for p1, p2, p3, p4, p5, p6, p7, p8 and 291 more" in told and len(told) < 300
    assert "--set p1=...,p2=..." in told
    assert run(["predict", str(path), "--machine", "v100_deck", "--set", "q=4"]) == 2
    told = capsys.readouterr().err
    assert "no parameter `q`" in told and "p7 and 292 more" in told and len(told) < 300
