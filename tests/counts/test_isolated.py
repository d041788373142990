"""Work in forked children: answers in order, and hangs, crashes and exceptions told apart."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial

import islpy as isl
import pytest

from roofdsl import budget
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.sets import library, native_calls
from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.child_process import Raised, Stopped, in_child, in_children
from roofdsl.sets.library import LibraryFailure, limited
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

LONG = 300_000  # characters: more than a pipe holds


def spin() -> str:
    while True:
        os.getpid()


def crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "not reached"


def busy(seconds: float) -> str:
    """Takes that much of what the limits count: time outside the system."""
    end = os.times().user + seconds
    while os.times().user < end:
        pass
    return ""


def text(k: int) -> str:
    return f"{k}: é " * (LONG if k == 3 else 1)


def test_the_answer_comes_back() -> None:
    assert in_child(partial(text, 3), 20) == text(3)


def test_answers_stand_in_the_order_of_the_tasks() -> None:
    assert in_children([partial(text, k) for k in range(30)], 20) == [text(k) for k in range(30)]


def test_every_task_runs_in_another_process() -> None:
    assert str(os.getpid()) not in in_children([lambda: str(os.getpid())] * 4, 20)


@pytest.mark.spread(1)
@pytest.mark.parametrize("task", [spin, crash])
def test_a_hang_or_a_crash_is_stopped(task: object) -> None:
    with pytest.raises(Stopped):
        in_child(task, 0.2)  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        in_children([partial(text, 1), task, partial(text, 2)], 0.2)  # type: ignore[list-item]


def test_within_a_task_of_many_no_other_process_is_started() -> None:
    def same() -> str:
        here = str(os.getpid())
        return str(in_child(lambda: str(os.getpid()), 20) == here)

    assert in_children([same] * 4, 20) == ["True"] * 4


@pytest.mark.spread(1)
@pytest.mark.parametrize("task", [spin, crash])
def test_a_hang_or_a_crash_within_one_of_many_tasks_stops_all(task: Callable[[], str]) -> None:
    began = time.monotonic()
    with pytest.raises(Stopped):
        in_children([partial(in_child, task, 0.2), partial(text, 2)], 600)
    assert time.monotonic() - began < 60


@pytest.mark.spread(1)
def test_a_limit_within_a_task_leaves_the_rest_of_the_copys_own() -> None:
    def six() -> str:
        for _ in range(6):
            in_child(partial(busy, 0.15), 0.3)
        return "done"

    assert in_children([six, six], 20) == ["done", "done"]
    with pytest.raises(Stopped):
        in_children([six, six], 0.3)


def test_an_exception_within_one_of_many_tasks_is_told() -> None:
    with pytest.raises(Raised):
        in_children([partial(in_child, lambda: str(1 // 0), 20)] * 2, 20)


def test_an_exception_of_the_task_is_told() -> None:
    with pytest.raises(Raised):
        in_child(lambda: str(1 // 0), 20)


def test_a_count_that_would_run_for_hours_is_refused() -> None:
    """Random kernel 128: seven overlapping sets with moduli, on which the counting code does not end."""
    kernel = kernel_of(random_kernel(128).text)
    with pytest.raises(NoClosedForm, match="integer-set operations"):
        ClosedForms(kernel, {}, operations=500_000).compulsory("once")


def test_a_failure_of_the_library_names_its_call_alone() -> None:
    """Not the places in its source that its text goes on with."""
    said = r"^the integer-set library failed on a set, in isl_set_read_from_str$"
    with pytest.raises(LibraryFailure, match=said), limited("a set"):
        _ = isl.Set("{ [i] : ")


def test_no_child_is_started_where_the_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would get a quarter of a second, and a child of ours may want hundreds."""
    parts = " or ".join(f"{20 * k} <= 3i + 2j <= {20 * k + 11} and 0 <= j <= n and j % 3 = 1" for k in range(5))
    many = isl.Set(f"[n] -> {{ [i, j] : {parts} }}")
    monkeypatch.setattr(native_calls, "in_child", lambda *_: pytest.fail("a child was started"))
    with budget.beginning(60, 1 << 40, whole=True) as own:
        own.deadline = 0.0
        with pytest.raises(library.OverBudget):
            cardinality(many)
