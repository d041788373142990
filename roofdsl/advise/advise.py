"""Find the changes that make a kernel faster, and rank them by their predicted speedup."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import cast

from roofdsl import budget
from roofdsl.advise import data_changes, loop_changes
from roofdsl.advise.candidate import Candidate, Found, Refused, Subject
from roofdsl.advise.evaluate import (
    Case,
    Estimate,
    estimate_exactly,
)
from roofdsl.advise.kernel_text import checked
from roofdsl.advise.outcomes import LEAST_GAIN, judge, outcomes_of
from roofdsl.advise.workers import run_all
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.streams import require_ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import Prediction

LEAST_STEP = Fraction(21, 20)
"""A further change joins a chain only if it brings at least this speedup."""

MOST_STEPS = 4
EFFORT_S = 2.0

NOT_FOUND = "its exact time was not found within --effort"
"""The reason for refusing a change whose time is unknown."""

FINDERS: Mapping[str, Callable[[Subject], Found]] = {
    "order": loop_changes.orders,
    "tile": loop_changes.tiles,
    "registers": loop_changes.registers,
    "parallel": loop_changes.threads,
    "type": data_changes.types,
    "tensor": data_changes.tensor,
    "stores": data_changes.stores,
    "reciprocal": data_changes.reciprocals,
    "layout": data_changes.layouts,
    "ceiling": data_changes.ceilings,
}

Progress = Callable[[float, str], None]


class Lift(Record):
    """A term that bounds the kernel now: its seconds and bytes (None for compute and launch) before and after.

    at_most: the values after the change are upper bounds.
    """

    name: str
    before_s: Fraction
    after_s: Fraction
    before_bytes: int | None
    after_bytes: int | None
    at_most: bool


class Advice(Record):
    """A change that helps. steps: the changes it consists of (one, unless it is a chain)."""

    steps: tuple[Candidate, ...]
    estimate: Estimate
    gain: Fraction
    lifts: tuple[Lift, ...]

    @property
    def what(self) -> str:
        return "; then ".join(step.what for step in self.steps)

    @property
    def kind(self) -> str:
        return self.steps[0].kind if len(self.steps) == 1 else "chain"

    @property
    def text(self) -> str:
        """The changed kernel as text; empty if the kernel stays as it is."""
        return next((step.text for step in reversed(self.steps) if step.text), "")

    @property
    def rounding(self) -> bool:
        return any(step.rounding for step in self.steps)

    @property
    def precision(self) -> bool:
        """Whether the change computes in a narrower type, so that results have fewer digits."""
        return any(step.precision for step in self.steps)

    @property
    def because(self) -> str:
        return "; ".join(dict.fromkeys(step.because for step in self.steps))


class Advised(Record):
    """What would help a kernel: `advice` by falling gain, then a chain of several changes; and what does not help.

    Changes that reduce the precision of the results come after all others, again with their chain at the end. now: the
    kernel as it is.
    """

    kernel: str
    now: Estimate
    advice: tuple[Advice, ...]
    refused: tuple[Refused, ...]
    compulsory: bool = False
    """Whether the level that bounds the kernel moves each line of data only once. Checked only if no change helps that
    keeps the precision.
    """


def advise(
    given: CheckedKernel,
    kernel: Kernel,
    parameters: Mapping[str, int],
    machine: Machine,
    options: Options = DEFAULTS,
    *,
    keep_rounding: bool = False,
    effort_s: float = EFFORT_S,
    progress: Progress = lambda part, step: None,
) -> Advised:
    """Find changes of `kernel` (lowered from `given`) at `parameters` on `machine`, each proven legal and predicted.

    keep_rounding: refuse changes that affect rounding. effort_s: processor seconds for the exact time of one change; if
    they do not suffice, a proven upper bound takes its place. Raises what `predict` raises for the kernel as it is.
    """
    require_ordinary(kernel, "advice")
    case = Case(numbers(kernel, parameters), machine, options)
    progress(0.0, "the kernel as it is")
    now = estimate_exactly(kernel, case)
    subject = Subject(given, kernel, dict(kernel.constants), case, now)
    found, refused = _found(subject, keep_rounding, lambda step: progress(0.05, step))
    reports = outcomes_of(found, subject, effort_s, lambda share: progress(0.3 + 0.5 * share, "predicting"))
    good: list[Advice] = []
    for candidate, outcome in zip(found, reports, strict=True):
        verdict = _verdict(candidate, outcome, now)
        if isinstance(verdict, Refused):
            refused.append(verdict)
        else:
            good.append(verdict)
    good = _one_of_each(sorted(good, key=lambda a: (-a.gain, a.estimate.prediction.no_overlap_s)), refused)
    progress(0.85, "changes together")
    keeping = [a for a in good if not a.precision]
    changing = [a for a in good if a.precision]
    chain = _in_budget(lambda: _chain(subject, keeping, keep_rounding, effort_s, keep_precision=True))
    begun = [chain] if chain is not None and good[0] is keeping[0] else good  # the steps are known already
    keeping += [chain] if chain is not None else []
    if changing:
        chain = _in_budget(lambda: _chain(subject, begun, keep_rounding, effort_s))
        changing += [chain] if chain is not None and chain.precision else []
    compulsory = not keeping and _moves_once(kernel, case, now.prediction)
    return Advised(kernel.name, now, (*keeping, *changing), tuple(refused), compulsory)


_TOGETHER = "changes together"


def _in_budget(find: Callable[[], Advice | None]) -> Advice | None:
    """The chain that `find` finds; None if the budget is spent. The single changes are known by then."""
    from roofdsl.sets.library import OverBudget

    try:
        with budget.region(_TOGETHER):
            return find()
    except (budget.Spent, OverBudget):
        budget.leave_out(_TOGETHER)
        return None


def _moves_once(kernel: Kernel, case: Case, now: Prediction) -> bool:
    """Whether the kernel is bound by the memory, and no cache, however large, would reduce the bytes it moves."""
    level = next((level for level in now.levels if level.name in now.bounds), None)
    caches = case.machine.caches
    if level is None:
        return False
    if not caches:
        return True  # predicted with compulsory traffic only
    if level.name != case.machine.main_memory.name or caches[-1].line_bytes is None:
        return False
    try:
        least = traffic_at(kernel, case.values, None, caches[-1].line_bytes, cast(Traffic, now.traffic))
    except CommandError:
        return False
    return level.bytes <= least.bytes


def _found(
    subject: Subject, keep_rounding: bool, tell: Callable[[str], None], without: Collection[str] = ()
) -> tuple[list[Candidate], list[Refused]]:
    """The changes that the finders propose, and those they refuse; the kinds in `without` are not searched."""
    found: list[Candidate] = []
    refused: list[Refused] = []
    for kind, find in FINDERS.items():
        tell(f"looking for changes: {kind}")
        for change in find(subject) if kind not in without else ():
            if isinstance(change, Refused):
                refused.append(change)
            elif change.rounding and keep_rounding:
                refused.append(Refused(change.kind, change.what, "it changes rounding"))
            else:
                found.append(change)
    return found, refused


def _verdict(candidate: Candidate, outcome: object, now: Estimate) -> Advice | Refused:
    if isinstance(outcome, Refused):
        return outcome
    if not isinstance(outcome, Estimate):
        return Refused(candidate.kind, candidate.what, NOT_FOUND)
    gain = gain_of(now, outcome)
    if gain >= LEAST_GAIN:
        return Advice((candidate,), outcome, gain, tuple(lifts_of(now.prediction, outcome)))
    if not outcome.exact:
        return Refused(
            candidate.kind,
            candidate.what,
            f"no gain is proven: its time is known only to be at most {_x(gain)} the present one",
        )
    if abs(gain - 1) < LEAST_GAIN - 1:
        return Refused(candidate.kind, candidate.what, f"no gain: the bound stays {now.prediction.bound}")
    return Refused(
        candidate.kind, candidate.what, f"it takes {_x(gain)} the present time, bound by {outcome.prediction.bound}"
    )


def _x(gain: Fraction) -> str:
    return f"{float(1 / gain):.3g} times" if gain else "many times"


def gain_of(now: Estimate, then: Estimate) -> Fraction:
    """The speedup of `then` over `now`; 1 if `then` takes no time."""
    return now.time_s / then.time_s if then.time_s else Fraction(1)


def lifts_of(now: Prediction, then: Estimate) -> Iterator[Lift]:
    """How the terms that bound the kernel now change."""
    after = dict(then.prediction.terms)
    before_bytes = {level.name: level.bytes for level in now.levels}
    after_bytes = {level.name: level.bytes for level in then.prediction.levels}
    for name, seconds in now.terms:
        if name in now.bounds:
            yield Lift(
                name,
                seconds,
                after.get(name, Fraction(0)),
                before_bytes.get(name),
                after_bytes.get(name),
                name in then.at_most,
            )


def _one_of_each(advice: Sequence[Advice], refused: list[Refused]) -> list[Advice]:
    """Keep the best order of each nest, and the best of several ways to assign loops to threads, or results to their
    registers; refuse the others.

    advice: single changes, the best first.
    """
    groups: dict[object, list[Advice]] = {}
    for one in advice:
        groups.setdefault(_group(one), []).append(one)
    # of blocks that are equally fast, the smallest one leaves registers for other things
    best = {key: min(own, key=lambda a: (-a.gain, a.steps[0].block or ())) for key, own in groups.items()}
    kept: list[Advice] = []
    for one in advice:
        chosen = best[_group(one)]
        if one is chosen:
            kept.append(one)
            continue
        why = f"no faster than {chosen.what}"
        if one.gain < chosen.gain:
            why = f"{float(one.gain):.3g} times as fast; {chosen.what} is {float(chosen.gain):.3g} times as fast"
        refused.append(Refused(one.kind, one.what, why))
    return kept


def _group(advice: Advice) -> object:
    """Equal for changes of which only one is advised."""
    (step,) = advice.steps
    if step.block is not None:
        return step.kind, step.block[0]
    return (step.kind, frozenset(step.loops)) if step.kind in ("order", "parallel") else step.what


def _chain(
    subject: Subject, good: Sequence[Advice], keep_rounding: bool, effort_s: float, *, keep_precision: bool = False
) -> Advice | None:
    """The first change of `good` (or the chain there), then the best change of the result, and so on.

    None if no further change helps.
    """
    if not good:
        return None
    steps, estimate = good[0].steps, good[0].estimate
    here: Subject | None = subject
    for done in steps:
        here = _after(here, done, estimate) if here is not None else None
    while len(steps) < MOST_STEPS and here is not None:
        more = _found(here, keep_rounding, lambda step: None, {step.kind for step in steps})[0]
        more = [c for c in more if not (keep_precision and c.precision)]
        reports = run_all([partial(judge, c, here, False) for c in more], effort_s, lambda done: None, _TOGETHER)
        times = [(o.time_s, k) for k, o in enumerate(reports) if isinstance(o, Estimate)]
        if not times:
            break
        _, k = min(times)
        step = more[k]
        (exact,) = run_all([partial(judge, step, here, True)], effort_s, lambda done: None, _TOGETHER)
        if not isinstance(exact, Estimate) or gain_of(estimate, exact) < LEAST_STEP:
            break
        steps, estimate = (*steps, step), exact
        here = _after(here, step, exact)
    if len(steps) == len(good[0].steps):
        return None
    return Advice(steps, estimate, gain_of(subject.now, estimate), tuple(lifts_of(subject.now.prediction, estimate)))


def _after(subject: Subject, step: Candidate, estimate: Estimate) -> Subject | None:
    """The subject after a change, whose time is `estimate`."""
    case = subject.case if step.options is None else replace(subject.case, options=step.options)
    if not step.text:
        return replace(subject, case=case, now=estimate)
    given = checked(step.text, subject.kernel.name)
    return replace(subject, given=given, kernel=subject.lowered(step.text), case=case, now=estimate)
