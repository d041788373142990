"""The benchmark of answers in a warm process: its figures, and the answers about one kernel."""

from __future__ import annotations

from benchmarks.answers import MACHINES, SIZES, Answer, measure_all, most_of, section


def _made_up(seconds: float, *, first: bool = False) -> Answer:
    return Answer("gemv", MACHINES[0], {"n": 8}, seconds, first, cut=False)


def test_the_answers_about_one_kernel() -> None:
    found = measure_all(["gemv"])
    assert len(found) == SIZES * len(MACHINES)
    assert [a.first for a in found] == [True] + [False] * (len(found) - 1)
    assert {a.machine for a in found} == set(MACHINES) and all(a.seconds > 0 for a in found)


def test_no_kernel_is_begun_after_the_time_limit() -> None:
    assert measure_all(seconds=-1) == []
    assert "No answer was found." in section([])


def test_95_percent_of_the_answers() -> None:
    assert most_of([k / 100 for k in range(1, 101)]) == 0.95
    assert most_of([1.0, 2.0]) == 2.0


def test_the_section_says_whether_the_goals_are_reached() -> None:
    quick = [_made_up(0.5, first=True), *[_made_up(0.05)] * 40]
    told = section(quick)
    assert "are reached" in told and "| first answers | 1 | 0.500 |" in told and "| later answers | 40 |" in told
    assert "are not reached" in section([*quick, *[_made_up(2.0)] * 3])
