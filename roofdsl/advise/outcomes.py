"""What is found out about candidate changes: the time of each one's text, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from roofdsl.advise.candidate import Candidate, Refused, Subject
from roofdsl.advise.evaluate import Estimate, Illegal, estimate_at_most, estimate_exactly, require_legal_change
from roofdsl.advise.workers import Tell, run_all
from roofdsl.counts.traffic_at import OutOfReach
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.machine.quantities import show_time
from roofdsl.predict.time_model import COMPUTE, LAUNCH

LEAST_GAIN = Fraction(101, 100)
"""A change with a smaller speedup is not advised."""

AT_ONCE = 16
"""Blocks of at most this many results for each thread of a GPU are tried together with all other changes."""

_TIMES = "the time of some changes"


def outcomes_of(
    found: Sequence[Candidate], subject: Subject, effort_s: float, progress: Callable[[float], None]
) -> list[object]:
    """What is found out about each candidate: an Estimate, Refused, or None.

    Texts with large blocks of results take long to predict. They come last, by size, and only where smaller blocks do
    not reach what no block changes.
    """
    outcomes: list[object] = [None] * len(found)
    results = [c.block[1] if c.block is not None and c.block[1] > AT_ONCE else 0 for c in found]
    done = 0
    for size in sorted(set(results)):
        these = [k for k, own in enumerate(results) if own == size]
        for k in these:
            outcomes[k] = _needless(found[k], found, outcomes)
        tasks = {k: partial(judge, found[k], subject, True) for k in these if outcomes[k] is None}
        reports = run_all(list(tasks.values()), effort_s, _share_of(progress, done, len(found)), _TIMES)
        outcomes = [dict(zip(tasks, reports, strict=True)).get(k, own) for k, own in enumerate(outcomes)]
        done += len(these)
    return outcomes


def _share_of(progress: Callable[[float], None], done: int, total: int) -> Callable[[int], None]:
    return lambda more: progress((done + more) / total)


def _needless(candidate: Candidate, others: Sequence[Candidate], outcomes: Sequence[object]) -> Refused | None:
    """Why a block of results need not be tried: a smaller one takes as long as the operations or the launch."""
    for other, outcome in zip(others, outcomes, strict=True):
        if candidate.block is None or other.block is None or candidate.block[0] != other.block[0]:
            continue
        if isinstance(outcome, Estimate) and outcome.exact and {COMPUTE, LAUNCH} >= set(outcome.prediction.bounds):
            return Refused(candidate.kind, candidate.what, f"no faster than {other.what}")
    return None


def judge(candidate: Candidate, subject: Subject, exactly: bool, tell: Tell) -> None:
    """Report an upper bound on the time, if one is found, and then the exact time; or why the change is refused.

    exactly: whether to look for the exact time at all.
    """
    case = subject.case if candidate.options is None else replace(subject.case, options=candidate.options)
    try:
        kernel = subject.lowered(candidate.text) if candidate.text else subject.kernel
        require_legal_change(kernel)
        found = estimate_at_most(kernel, case)
        if found is not None:
            tell(found)
            name, least = found.sure
            if not found.exact and subject.now.time_s < LEAST_GAIN * least:
                tell(Refused(candidate.kind, candidate.what, f"no gain: {name} alone takes {show_time(least)}"))
                return
            if found.exact:
                return
        if exactly:
            tell(estimate_exactly(kernel, case))
    except Illegal as error:
        tell(Refused(candidate.kind, candidate.what, str(error), illegal=True))
    except InputError as error:
        tell(Refused(candidate.kind, candidate.what, error.diagnostics[0].message, illegal=True))
    except OutOfReach:
        pass  # the upper bound stands
    except CommandError as error:
        tell(Refused(candidate.kind, candidate.what, error.message))
