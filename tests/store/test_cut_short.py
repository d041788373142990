"""Results that a limit of time cuts short are remembered under that limit, and found anew with more time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofdsl import budget
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.predict import kernel as prediction
from roofdsl.sol import answer
from roofdsl.sol.answer import speed_of_light
from roofdsl.store import cut_short, memo
from roofdsl.store.cut_short import AGAIN, Ended, Limit, recall_within
from tests.oracle.loading import kernel_of

TEXT = """\
kernel add(n):
    in a: f32[n]
    out c: f32[n]
    for i in range(n):
        c[i] = 2 * a[i]
"""
KERNEL = kernel_of(TEXT)
SHORT, WHOLE, CHANCE = Ended(2.0), Ended(), Ended(2.0, again=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, which keeps everything, and a process that remembers nothing yet."""
    monkeypatch.setenv("ROOFDSL_CACHE", "on")
    monkeypatch.setenv("ROOFDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(memo, "LEAST_S", 0.0)
    monkeypatch.setattr(cut_short, "_cut", {})
    yield


class Attempts:
    """Gives 1, 2, 3, ..., which all ended in the same way."""

    def __init__(self, ended: Ended) -> None:
        self.ended, self.times = ended, 0

    def __call__(self) -> tuple[int, Ended]:
        self.times += 1
        return self.times, self.ended

    def within(self, seconds: float, *named: object, kernel: Kernel = KERNEL) -> int:
        return recall_within("number", kernel, (1,), Limit(seconds, named), self)


def test_a_whole_result_is_found_once_whatever_the_limit() -> None:
    attempts = Attempts(WHOLE)
    assert [attempts.within(2.0), attempts.within(200.0), attempts.within(0.1, "20 s")] == [1, 1, 1]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_result_cut_short_is_found_anew_only_with_more_time(forgets: bool) -> None:
    attempts = Attempts(SHORT)
    for seconds, found in ((2.0, 1), (2.0, 1), (0.5, 1), (2.0 * AGAIN - 0.01, 1), (2.0 * AGAIN, 2)):
        assert attempts.within(seconds) == found
        if forgets:  # then the disk has it, as for another process
            cut_short._cut.clear()


def test_a_result_cut_short_is_given_only_under_its_limit_and_for_its_kernel() -> None:
    attempts = Attempts(SHORT)
    assert attempts.within(2.0, 20.0) == 1
    assert attempts.within(2.0, 30.0) == 2
    assert attempts.within(2.0, 20.0, kernel=kernel_of(TEXT.replace("2 *", "3 *"))) == 3
    assert attempts.within(2.0, 20.0) == 1


def test_a_whole_result_replaces_one_cut_short() -> None:
    attempts = Attempts(SHORT)
    assert attempts.within(2.0) == 1
    attempts.ended = WHOLE
    assert attempts.within(20.0) == 2
    assert attempts.within(2.0) == 2


def test_what_another_attempt_may_improve_is_not_kept() -> None:
    attempts = Attempts(CHANCE)
    assert [attempts.within(2.0), attempts.within(2.0)] == [1, 2]


def test_what_took_little_time_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "LEAST_S", 1000.0)
    for ended in (SHORT, WHOLE):
        attempts = Attempts(ended)
        assert [attempts.within(2.0), attempts.within(2.0)] == [1, 2]


def test_without_the_disk_a_process_remembers_what_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFDSL_CACHE", "off")
    short, whole = Attempts(SHORT), Attempts(WHOLE)
    assert [short.within(2.0), short.within(2.0), short.within(9.0)] == [1, 1, 2]
    other = recall_within("another", KERNEL, (1,), Limit(2.0), whole)
    assert other + recall_within("another", KERNEL, (1,), Limit(2.0), whole) == 3


def test_the_disk_keeps_it_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(SHORT)
    assert attempts.within(2.0) == 1
    cut_short._cut.clear()
    now = time.time()
    monkeypatch.setattr(memo.time, "time", lambda: now + memo.CLOCK_S + 1)
    assert attempts.within(2.0) == 2


# ---- the speed of light ----


def test_an_answer_is_the_same_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("v100", "zen2_epyc_7452", "haswell_e5_2695v3"):
        machine = load_machine(name)
        first = speed_of_light(KERNEL, {"n": 5000}, machine)
        with monkeypatch.context() as patch:
            patch.setattr(answer, "floor", None)  # nothing is found anew
            again = speed_of_light(kernel_of(TEXT), {"n": 5000}, machine, first.floor.time_s / 2)
            assert (again.floor, again.written, again.best) == (first.floor, first.written, first.best)
            assert again.claim is not None and again.claim.verdict == "impossible" and first.claim is None
            with pytest.raises(TypeError):
                speed_of_light(KERNEL, {"n": 5001}, machine)


def test_the_text_of_the_kernel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_machine("v100")
    speed_of_light(KERNEL, {"n": 5000}, machine)
    monkeypatch.setattr(answer, "floor", None)
    with pytest.raises(TypeError):
        speed_of_light(kernel_of(TEXT.replace("    for", "    # a comment\n    for")), {"n": 5000}, machine)


def test_counting_that_ran_out_of_time_is_not_tried_again_in_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, tried = load_machine("v100"), []

    def endless(*args: object) -> None:
        tried.append(args)
        raise budget.Spent

    monkeypatch.setattr(answer, "predict", endless)
    answers = []
    for seconds in (20.0, 20.0, 60.0, 60.0):
        with budget.beginning(seconds, budget.DEFAULT_BYTES, whole=True) as own:
            answers.append(speed_of_light(KERNEL, {"n": 5000}, machine))
            assert list(own.left_out) == [answer.WRITTEN]
        cut_short._cut.clear()
    assert len(tried) == 2
    assert answers[0] == answers[1] and "20 s" in answers[0].why_not
    assert answers[2] == answers[3] and "60 s" in answers[2].why_not
    monkeypatch.setattr(answer, "predict", prediction.predict)
    with budget.beginning(600.0, budget.DEFAULT_BYTES, whole=True):
        assert speed_of_light(KERNEL, {"n": 5000}, machine).written is not None


def test_where_the_own_compiler_decides_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_machine("zen2_epyc_7452")
    monkeypatch.setattr(answer, "is_here", lambda machine: True)
    speed_of_light(KERNEL, {"n": 5000}, machine)
    monkeypatch.setattr(answer, "floor", None)
    with pytest.raises(TypeError):
        speed_of_light(KERNEL, {"n": 5000}, machine)
