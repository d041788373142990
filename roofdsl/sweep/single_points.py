"""Predictions at single points, in this process, on the cores of this machine, or on a cluster, with the same results.

A point that fails because its worker died is tried again. A point that the analyses refuse is not; it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from roofdsl import budget
from roofdsl.counts.operations import operation_counts
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.overtime import forking
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_at

if TYPE_CHECKING:
    from roofdsl.sweep.program import SweptProgram

TRIES = 3
"""How often a point is tried if its worker dies."""

FEW = 4
"""Up to this many points, other processes are not worthwhile."""

LEAST_POINT_S = 1.0
"""Processor time that a point gets at least, even if others have spent much in vain."""

ANSWER_S = 5
"""Seconds in which a scheduler must answer: at first, and whenever nothing came from it for that long."""

Row = dict[str, Any]
"""Column -> number or word; a missing column has no value."""


class Task(Record):
    """One point. `values`: numbers for all parameters."""

    index: int
    kernel: Kernel | SweptProgram
    values: tuple[tuple[str, int], ...]
    machine: Machine
    options: Options


class Outcome(Record):
    """The row of a task, or the reason why there is none. `final`: another attempt would give the same. `complete`:
    nothing was left out of the row to stay within the budget.
    """

    index: int
    row: Row | None
    failure: str = ""
    final: bool = True
    complete: bool = True


Runner = Callable[[Sequence[Task]], Iterator[Outcome]]


def row_of(prediction: Prediction, *, moves_only: bool, launches: bool = False) -> Row:
    """The columns of one prediction; times and rates are rounded once. `launches`: include the number of launches."""
    p = prediction
    row: Row = {
        **({"launches": p.launches} if launches else {}),
        "work_flops": p.work,
        **{f"{level.name}_bytes": level.bytes for level in p.levels},
        "compute_s": float(p.compute_s),
        "time_s": float(p.bound_s),
        "time_no_overlap_s": float(p.no_overlap_s),
        "bytes_per_s" if moves_only else "flops_per_s": float(p.bytes_per_s if moves_only else p.rate_per_s),
        "bound": p.bound,
    }
    if p.intensity is not None:
        row["intensity"] = float(p.intensity)
    return row


class _InVain:
    """Processor time in seconds that a sweep has spent without a complete row: on the search for closed forms, and on
    points that failed or for which something was left out. All processes that work for the sweep count.
    """

    def __init__(self, seconds: Any, workers: int) -> None:
        self.seconds, self.workers = seconds, workers  # processes may share seconds.value

    def allowed(self, whole_s: float) -> float:
        """The processor time that the next point may take of a budget of `whole_s`."""
        spent: float = self.seconds.value
        return max(LEAST_POINT_S, (whole_s - spent) / self.workers)


_in_vain = _InVain(SimpleNamespace(value=0.0), 1)


def begin(spent_s: float) -> None:
    """Start counting points, after a search for closed forms that took that long."""
    _work_for(_InVain(SimpleNamespace(value=spent_s), 1))


def _work_for(in_vain: _InVain) -> None:
    global _in_vain  # noqa: PLW0603
    _in_vain = in_vain


def solve(task: Task) -> Outcome:
    """The outcome of one task; no error is raised.

    A point may take the rest of the command's budget, or its share of it if several processes count. Only the time of
    points that fail, or for which something was left out, counts: a sweep may last as long as it succeeds, and soon
    ends if it cannot.
    """
    own = budget.current()
    if own is None:
        return _solved(task)
    known, own.left_out = own.left_out, {}
    begun = own.spent()
    complete = False
    try:
        with budget.anew(_in_vain.allowed(own.seconds)):
            found = _solved(task)
        complete = found.row is not None and not own.left_out
        return replace(found, complete=not own.left_out)
    finally:
        if not complete:
            _in_vain.seconds.value += own.spent() - begun
        own.left_out = {**known, **own.left_out}


def _solved(task: Task) -> Outcome:
    from roofdsl.sweep.program import SweptProgram

    try:
        if isinstance(task.kernel, SweptProgram):
            at = task.kernel.of.at(dict(task.kernel.constants) | dict(task.values))
            total = predict_at(at, task.machine, task.options).total
            return Outcome(task.index, row_of(total, moves_only=task.kernel.moves_only, launches=True))
        found = predict(task.kernel, dict(task.values), task.machine, task.options)
    except (CommandError, InputError) as error:
        return Outcome(task.index, None, str(error).split("\n")[0])
    except budget.Spent:
        return Outcome(task.index, None, f"the point is {budget.leave_out('a point')}")
    except Exception as error:
        return Outcome(task.index, None, f"{type(error).__name__}: {error}", final=False)
    moves_only = not any(s.total for s in operation_counts(apply(task.kernel)))
    return Outcome(task.index, row_of(found, moves_only=moves_only))


def here(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """Solve one task after another in this process."""
    return map(solve, tasks)


def _insisting(one_round: Runner, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """The outcomes of up to TRIES rounds: tasks that are missing or not final in one round go to the next."""
    left = {task.index: task for task in tasks}
    failures: dict[int, Outcome] = {}
    for _ in range(TRIES):
        for outcome in one_round(list(left.values())):
            if outcome.row is None and not outcome.final:
                failures[outcome.index] = outcome
            elif left.pop(outcome.index, None) is not None:
                yield outcome
        if not left:
            return
    for index in left:
        yield failures.get(index, Outcome(index, None, f"its process ended {TRIES} times"))


def on_cores(jobs: int) -> Runner:
    """A runner that spreads tasks over `jobs` processes of this machine, if there are more than a few."""

    def run(tasks: Sequence[Task]) -> Iterator[Outcome]:
        if jobs == 1 or len(tasks) <= FEW:
            return here(tasks)
        return _insisting(lambda left: _pool(left, jobs), tasks)

    return run


THREAD_ENDS_S = 1
"""The thread of a pool of processes ends in much less time than this once the processes have ended."""


def _pool(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """The outcomes of one round; those of processes that die are missing."""
    import multiprocessing
    import threading
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    kind = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    before, threads = set(multiprocessing.active_children()), set(threading.enumerate())
    context, workers = multiprocessing.get_context(kind), min(jobs, len(tasks))
    shared = _InVain(context.Value("d", _in_vain.seconds.value), workers)
    pool = ProcessPoolExecutor(workers, context, _begin_worker, (shared,))
    try:
        with forking():
            futures = [pool.submit(solve, task) for task in tasks]
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                continue
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        # Python writes to the pool's pipe as it exits. After an interrupt, the pool's thread may be closing it by then.
        for thread in set(threading.enumerate()) - threads:
            if not thread.daemon:  # daemons, such as that of a progress bar, go on
                thread.join(THREAD_ENDS_S)


def _begin_worker(in_vain: _InVain) -> None:
    """Ignore Ctrl-C, which reaches all processes of a terminal; the parent process ends the others. All workers share
    `in_vain`.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work_for(in_vain)


_one_at_a_time = Lock()
"""The integer-set library does not support several threads, but a worker of a cluster may have them."""


def _on_worker(task: Task) -> Outcome:
    with _one_at_a_time:
        return solve(task)


class ConnectionLost(CommandError):
    """The scheduler of a cluster ended, or no longer responds. `done`: points whose outcomes had arrived."""

    def __init__(self, address: str, done: int, asked: int) -> None:
        super().__init__(
            f"the scheduler at `{address}` no longer responds; {done:,} of {asked:,} points were done by then"
        )
        self.done = done


def on_cluster(address: str) -> Runner:
    """A runner that spreads tasks over the workers of a dask.distributed scheduler.

    It raises CommandError if there is none, and ConnectionLost if it ends: a new scheduler at its address knows nothing
    of our points.
    """

    def run(tasks: Sequence[Task]) -> Iterator[Outcome]:
        try:
            from distributed import Client
        except ImportError:
            raise CommandError("--scheduler needs dask's distributed", "install it: pip install distributed") from None
        done = 0
        with _quiet():
            try:
                client = Client(address, timeout=ANSWER_S, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                raise CommandError(f"no scheduler answers at `{address}`", str(error).split("\n")[0]) from None
            try:
                for outcome in _insisting(lambda left: _cluster_round(client, left), tasks):
                    done += 1
                    yield outcome
            except _Lost:
                raise ConnectionLost(address, done, len(tasks)) from None
            finally:
                client.close(timeout=ANSWER_S)

    return run


class _Lost(Exception):
    """The connection to the scheduler is lost."""


def _cluster_round(client: Any, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """One round on a cluster. The scheduler moves the tasks of a dead worker to another one; what still fails is not
    final.

    Raises _Lost.
    """
    done: Queue[Any] = Queue()
    _require(client)
    futures = [client.submit(_on_worker, task, pure=False) for task in tasks]
    index_of = {future.key: task.index for future, task in zip(futures, tasks, strict=True)}
    for future in futures:
        future.add_done_callback(done.put)
    for _ in futures:
        future = _waiting(client, lambda seconds: done.get(timeout=seconds))
        try:
            # waits again if the result was lost with its worker
            yield _waiting(client, future.result)
        except _Lost:
            raise
        except Exception as error:
            if future.status == "cancelled":  # we cancel nothing: the client does when its connection breaks
                raise _Lost from None
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            yield Outcome(index_of[future.key], None, why, final=False)


def _waiting(client: Any, wait: Callable[[float], Any]) -> Any:
    """The result of `wait(seconds)`, however often it times out; in between, the scheduler is asked to answer.

    Raises _Lost.
    """
    while True:
        try:
            return wait(ANSWER_S)
        except (TimeoutError, Empty):
            _require(client)


def _require(client: Any) -> None:
    """Raise _Lost if the scheduler does not answer."""
    if client.status != "running":
        raise _Lost
    try:
        client.sync(client.scheduler.ncores, callback_timeout=ANSWER_S)
    except Exception:
        raise _Lost from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the client from printing messages about broken connections, which we report ourselves."""
    import logging

    names = [n for n in logging.root.manager.loggerDict if n.split(".")[0] in {"distributed", "tornado", "asyncio"}]
    logs = [(log, log.level) for log in map(logging.getLogger, names)]
    for log, _ in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in logs:
            log.setLevel(level)
