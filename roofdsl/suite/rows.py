"""One row for each kernel of a suite, computed in a child process within a time limit; notes explain missing values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from roofdsl import budget
from roofdsl.advise.workers import CAN_FORK, Task, Tell, run_all
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.model import Machine
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.sets.cases import Cases

Progress = Callable[[float, str], None]


class Subject(Record):
    """A kernel of the suite: the name shown, and its sizes. why: the reason, if it cannot be analyzed."""

    name: str
    kernel: Kernel | None
    sizes: Mapping[str, int]
    why: str = ""


class Row(Record):
    """The results for one kernel; values that were not found are None, with the reasons in `notes`.

    compulsory_bytes: Q with unbounded fast memory, in the convention `traffic`. lower_bound_bytes: loads from memory
    that every legal order of the kernel needs, with the last cache as fast memory, one copy of it as for Q (compulsory
    loads without caches).
    loads_bytes: loads from memory by the kernel as it is.
    """

    name: str
    parameters: Mapping[str, int]
    work: int | None = None
    compulsory_bytes: int | None = None
    traffic: str = ""
    prediction: Prediction | None = None
    lower_bound_bytes: int | None = None
    lower_bound_by: str = ""
    notes: tuple[str, ...] = ()

    @property
    def loads_bytes(self) -> int | None:
        return None if self.prediction is None else self.prediction.memory.loads_bytes

    @property
    def ratio(self) -> float | None:
        """Loads by the kernel as it is, divided by the lower bound."""
        if self.loads_bytes is None or not self.lower_bound_bytes:
            return None
        return self.loads_bytes / self.lower_bound_bytes


class Forms(Record):
    """Closed forms of one kernel as text, in bytes and operations; None if there is none (`notes` say why).

    `shown_work` and `shown_compulsory`: in a form for people, case by case if there are several.
    """

    name: str
    work: str | None = None
    compulsory: str | None = None
    shown_work: tuple[str, ...] = ()
    shown_compulsory: tuple[str, ...] = ()
    lower_bound: str | None = None
    notes: tuple[str, ...] = ()


def rows(
    subjects: Sequence[Subject], machine: Machine, options: Options, seconds: float, progress: Progress
) -> list[Row]:
    """A row for every subject, in order; each gets `seconds` of processor time."""
    tasks = [partial(_within, seconds, partial(_row, s, machine, options)) for s in subjects]
    reports = run_all(tasks, seconds, lambda n: progress(n / max(1, len(subjects)), f"{n} of {len(subjects)}"))
    return [_ended(s, found, seconds) for s, found in zip(subjects, reports, strict=True)]


def _within(seconds: float, task: Task, tell: Tell) -> None:
    """Run the task in its child process, with a budget of that many seconds."""
    if CAN_FORK:
        budget.forked(seconds)
    task(tell)


def _ended(subject: Subject, report: tuple[Row, bool] | None, seconds: float) -> Row:
    """The row as far as it was computed, with a note if time ran out."""
    row, done = report or (Row(subject.name, subject.sizes), False)
    if done:
        return row
    missing = {"operations": row.work is None, "the prediction": row.prediction is None, "the lower bound": True}
    what = next(name for name, is_missing in missing.items() if is_missing)
    return replace(row, notes=(*row.notes, f"{what} not found in {seconds:g} s"))


def _row(subject: Subject, machine: Machine, options: Options, tell: Tell) -> None:
    """Report (the row so far, whether it is complete), several times."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import traffic_at
    from roofdsl.counts.work_at import work_at

    row = Row(subject.name, subject.sizes)
    kernel = subject.kernel
    if kernel is None:
        tell((replace(row, notes=(subject.why,)), True))
        return
    try:
        require_legal(kernel)
        boundary = memory_boundary(kernel, machine, options.traffic)
        row = replace(row, work=work_at(kernel, subject.sizes).total, traffic=boundary.convention)
        once = traffic_at(kernel, subject.sizes, None, None, boundary.convention)
        row = replace(row, compulsory_bytes=once.bytes)
        tell((row, False))
        found = predict(kernel, subject.sizes, machine, options)
        row = replace(row, prediction=found, parameters=dict(found.parameters), notes=found.warnings)
        tell((row, False))
    except (CommandError, InputError) as error:
        row = replace(row, notes=(*row.notes, _message(error)))
    tell((_with_bound(row, kernel, machine), True))


def _with_bound(row: Row, kernel: Kernel, machine: Machine) -> Row:
    """The row with the lower bound on loads, or with a note that says why there is none."""
    from roofdsl.bounds.bound import bound

    sizes = [a.type.bytes for a in kernel.arrays if not a.is_scalar]
    cache = machine.last_cache
    if not sizes:
        return replace(row, notes=(*row.notes, "no lower bound: the kernel accesses no array"))
    try:
        values = numbers(kernel, row.parameters)
        found = bound(kernel)
        if cache is None:
            return replace(row, lower_bound_bytes=_compulsory(found, values) * min(sizes), lower_bound_by="compulsory")
        loads, argument = found.bytes_at(values, cache.size_bytes)
    except (CommandError, InputError) as error:
        message = _message(error)
        told = message in row.notes  # a note of the prediction says it already
        return row if told else replace(row, notes=(*row.notes, f"no lower bound: {message}"))
    if not loads:
        return replace(row, notes=(*row.notes, *(f"no lower bound: {n}" for n in found.notes)))
    return replace(row, lower_bound_bytes=loads, lower_bound_by=argument)


def _message(error: CommandError | InputError) -> str:
    return error.message if isinstance(error, CommandError) else error.diagnostics[0].message


def _compulsory(found: Any, values: Mapping[str, int]) -> int:
    from roofdsl.formulas.sympy_forms import parameter

    return int(found.compulsory.loads.subs({parameter(n): v for n, v in values.items()}))


def forms(
    subjects: Sequence[Subject], machine: Machine, traffic: Traffic | None, seconds: float, progress: Progress
) -> list[Forms]:
    """Closed forms of every subject in its parameters; each gets `seconds` of processor time."""
    tasks = [partial(_within, seconds, partial(_forms, s, machine, traffic)) for s in subjects]
    reports = run_all(tasks, seconds, lambda n: progress(n / max(1, len(subjects)), f"{n} of {len(subjects)}"))
    ended = []
    for subject, found in zip(subjects, reports, strict=True):
        form, done = found or (Forms(subject.name), False)
        ended.append(form if done else replace(form, notes=(*form.notes, f"not all found in {seconds:g} s")))
    return ended


def _forms(subject: Subject, machine: Machine, traffic: Traffic | None, tell: Tell) -> None:
    from roofdsl.bounds.bound import bound
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
    from roofdsl.formulas.sympy_forms import expression

    form = Forms(subject.name)
    if subject.kernel is None:
        tell((replace(form, notes=(subject.why,)), True))
        return
    try:
        require_legal(subject.kernel)
        closed = ClosedForms(subject.kernel, {})
        convention = memory_boundary(subject.kernel, machine, traffic).convention
        form = replace(form, work=str(expression(closed.work)), shown_work=_shown(closed.work))
        total = closed.compulsory(convention).total
        form = replace(form, compulsory=str(expression(total)), shown_compulsory=_shown(total))
    except (NoClosedForm, CommandError) as error:
        form = replace(form, notes=(*form.notes, str(error).split("\n", maxsplit=1)[0]))
    except InputError as error:
        tell((replace(form, notes=(*form.notes, _message(error))), True))
        return
    tell((form, False))
    try:
        found = bound(subject.kernel)
        leading = [str(part) for part in largest(found.leading())]
        text = f"max({', '.join(leading)})" if len(leading) > 1 else (leading or ["0"])[0]
        form = replace(form, lower_bound=text, notes=(*form.notes, *found.notes))
    except (CommandError, InputError) as error:
        form = replace(form, notes=(*form.notes, f"no lower bound: {_message(error)}"))
    tell((form, True))


def _shown(form: Cases) -> tuple[str, ...]:
    """`4*c*n  if c <= 3` for each case; 0 if there is none."""
    from roofdsl.counts.readable_forms import condition_text
    from roofdsl.formulas.writing import text

    conditions = [f"  if {condition_text(c.alternatives)}" if c.alternatives else "" for c in form.cases]
    return tuple(text(c.value) + where for c, where in zip(form.cases, conditions, strict=True)) or ("0",)


def largest(terms: Sequence[Any]) -> list[Any]:
    """The distinct nonzero expressions (sympy, in positive symbols) that are not proven to be below another at all
    sizes.
    """
    found = list(dict.fromkeys(term for term in terms if term != 0))
    return [term for term in found if not any((other - term).is_positive for other in found)]
