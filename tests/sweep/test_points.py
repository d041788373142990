"""Points counted one by one: on cores whose processes die, with a journal that is damaged, on a cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sweep import single_points
from roofdsl.sweep.journal import Journal, journaled, meaning_of
from roofdsl.sweep.single_points import TRIES, Outcome, Task, here, on_cluster, on_cores, solve
from tests.models.shipped import model
from tests.sweep.machines import machine


def tasks_at(sizes: Sequence[int]) -> list[Task]:
    on = machine("bare")
    return [Task(k, model("gemv"), (("n", n),), on, Options()) for k, n in enumerate(sizes)]


def rows(outcomes: Any) -> list[Any]:
    return [o.row for o in sorted(outcomes, key=lambda o: o.index)]


def test_cores_say_what_one_process_says() -> None:
    tasks = tasks_at(range(3, 13))
    assert rows(on_cores(2)(tasks)) == rows(here(tasks))


def test_what_the_analyses_refuse_is_said_and_not_tried_again() -> None:
    wrong = Task(0, model("gemv"), (("m", 4),), machine("bare"), Options())
    (outcome,) = on_cores(2)([wrong])
    assert outcome.row is None and outcome.final and "no parameter `m`" in outcome.failure


def _dying(task: Task, folder: Path, times: int) -> Outcome:
    """Kills its process at n = 5, as often as `times` says; else `solve`."""
    if dict(task.values)["n"] == 5:
        done = len(list(folder.iterdir()))
        if done < times:
            (folder / str(done)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return solve(task)


@pytest.mark.spread(1)
@pytest.mark.parametrize("times", [1, TRIES + 5])
def test_a_process_that_dies(times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its points are tried again; what kills every process is reported, and nothing else is lost for good."""
    tasks = tasks_at(range(1, 9))
    expected = rows(here(tasks))
    monkeypatch.setattr(single_points, "solve", _Dying(tmp_path, times))
    found = sorted(on_cores(2)(tasks), key=lambda o: o.index)
    assert [o.index for o in found] == list(range(8))
    if times == 1:
        assert rows(found) == expected
    else:
        assert found[4].row is None and "3 times" in found[4].failure
        for outcome, row in zip(found, expected, strict=True):
            assert outcome.row in (None, row)


class _Dying:
    """`_dying` as what a pool can send to its processes."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def __call__(self, task: Task) -> Outcome:
        return _dying(task, self.folder, self.times)


# ---- the journal ----


def test_a_journal_goes_on_where_it_was_left(tmp_path: Path) -> None:
    tasks = tasks_at((4, 5, 6))
    expected = rows(here(tasks))
    journal = Journal(tmp_path / "j")
    run = journaled(here, journal)(tasks)
    next(run), next(run)
    journal.close()
    again = Journal(tmp_path / "j")
    assert len(again.rows) == 2 and not again.damaged
    asked: list[int] = []

    def runner(left: Sequence[Task]) -> Any:
        asked.extend(t.index for t in left)
        return here(left)

    assert rows(journaled(runner, again)(tasks)) == expected
    assert asked == [2]
    again.close(remove=True)
    assert not (tmp_path / "j").exists()


def test_a_row_from_which_something_was_left_out_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a larger budget, the same sweep counts it again."""
    tasks = tasks_at((4, 5))

    def without(*of: Any) -> Any:
        if of[1]["n"] == 5:
            budget.leave_out("L1")
        return predict(*of)

    monkeypatch.setattr(single_points, "predict", without)
    journal = Journal(tmp_path / "j")
    with budget.beginning(60, 1 << 40, whole=False):
        found = list(journaled(here, journal)(tasks))
    assert all(o.row is not None for o in found) and [o.complete for o in found] == [True, False]
    assert journal.written == 1 and list(journal.rows) == []
    journal.close()
    assert list(Journal(tmp_path / "j").rows) == [meaning_of(tasks[0])]


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    """Every byte of a journal changed, and every length it may be cut to: known rows are right, others are gone."""
    path = tmp_path / "j"
    tasks = tasks_at((4, 5))
    journal = Journal(path)
    expected = {meaning_of(o_t): o.row for o_t, o in zip(tasks, journaled(here, journal)(tasks), strict=True)}
    journal.close()
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for cut in range(head, len(whole), 7):
        path.write_bytes(whole[:cut])
        found = Journal(path)
        assert found.rows.items() <= expected.items()
        found.append("new", {"time_s": 1.0})
        found.close()
        assert Journal(path).rows == {**found.rows, "new": {"time_s": 1.0}}
    for place in range(head, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = Journal(path)
        assert found.rows.items() <= expected.items() and (found.damaged or found.rows == expected)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="not a journal"):
        Journal(path)


def test_meanings_differ_where_the_question_does() -> None:
    first, other = tasks_at((4, 5))
    on = Task(0, first.kernel, first.values, machine("three"), Options())
    unit = Task(0, first.kernel, first.values, first.machine, Options(traffic="once"))
    assert len({meaning_of(t) for t in (first, other, on, unit)}) == 4
    assert meaning_of(Task(9, first.kernel, first.values, first.machine, Options())) == meaning_of(first)


# ---- a cluster ----


@pytest.fixture(scope="module")
def cluster() -> Any:
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.worker.daemon": False, "distributed.comm.timeouts.connect": "20s"}),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as found,
    ):
        yield found


@pytest.mark.thorough
def test_a_cluster_one_of_whose_workers_is_killed(cluster: Any) -> None:
    """Three worker processes, one killed once the first point is done: all rows are there, and the same."""
    tasks = tasks_at(range(100, 140))
    expected = rows(here(tasks))
    victim = next(iter(cluster.workers.values())).pid
    found = []
    for outcome in on_cluster(cluster.scheduler_address)(tasks):
        found.append(outcome)
        if len(found) == 1:
            os.kill(victim, signal.SIGKILL)
    assert rows(found) == expected
    assert len({o.index for o in found}) == len(tasks)
    deadline = time.monotonic() + 30  # another process takes its place
    while victim in [w.pid for w in cluster.workers.values()] and time.monotonic() < deadline:
        time.sleep(0.2)
    assert victim not in [w.pid for w in cluster.workers.values()]


@pytest.mark.thorough
def test_no_scheduler_answers() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(CommandError, match="no scheduler answers"):
        list(on_cluster("tcp://127.0.0.1:1")(tasks_at((4,))))
    with pytest.raises(CommandError, match="no scheduler answers"):
        list(on_cluster("nonsense://x")(tasks_at((4,))))
