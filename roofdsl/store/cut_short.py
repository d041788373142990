"""`recall_within`: as `recall`, for results that a limit of time may cut short.

A result that its limit cut short is remembered in this process, and on disk for a day. It is given again under the same
limit, and found anew once there is a quarter more time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from roofdsl import reproducibility
from roofdsl.lang.record import Record
from roofdsl.store import memo
from roofdsl.store.codec import NotStorable, meaning

T = TypeVar("T")

AGAIN = 1.25
"""A result that was cut short is found anew if there is this many times as much time as it had."""

MOST = 256
"""The maximum number of results cut short that a process remembers."""


class Limit(Record):
    """The time that is left for a result, in seconds. named: what messages in the result say of the limit."""

    seconds: float
    named: tuple[object, ...] = ()


class Ended(Record):
    """How a result came about. seconds: the time that it had, if that cut it short; again: whether another attempt may
    improve it for other reasons, so that it is not kept.
    """

    seconds: float | None = None
    again: bool = False


_cut: dict[str, tuple[float, object]] = {}
"""Results cut short in this process, by their questions, with the time that they had."""


def recall_within(
    what: str,
    kernel: Record,
    options: tuple[object, ...],
    limit: Limit,
    compute: Callable[[], tuple[T, Ended]],
    *,
    further: tuple[str, ...] = (),
) -> T:
    """The result of `compute`, which depends only on the meaning of `kernel`, on `options` and, if it is cut short, on
    `limit`. Raises what `compute` raises.

    further: the packages outside `memo.STAGES` whose source determines the result.
    """
    whole = memo.question(what, kernel, options, further)
    found = None if whole is None else memo.find(whole)
    if found is not None:
        return found[0]  # type: ignore[return-value]
    name, under = f"{what}, cut short", (*options, limit.named)
    cut = memo.question(name, kernel, under, further)
    own = _meant(name, kernel, under)
    known = _cut.get(own) or (_stored(cut) if cut is not None else None)
    if known is not None and limit.seconds < AGAIN * known[0]:
        reproducibility.decided_by_clock()
        return known[1]  # type: ignore[return-value]
    begun = memo.spent_s()
    result, ended = compute()
    if ended.again or memo.spent_s() - begun < memo.LEAST_S:
        return result
    if ended.seconds is None:
        if whole is not None:
            memo.keep(whole, result, for_a_day=False)
        return result
    if len(_cut) >= MOST:
        del _cut[next(iter(_cut))]
    if own:
        _cut[own] = ended.seconds, result
    if cut is not None:
        memo.keep(cut, (ended.seconds, result), for_a_day=True)
    return result


def _stored(cut: memo.Question) -> tuple[float, object] | None:
    """The time that a stored result had, and the result."""
    match memo.find(cut):
        case ((float(seconds), result),):
            return seconds, result
    return None


def _meant(what: str, kernel: Record, options: tuple[object, ...]) -> str:
    """The question as text; empty if it cannot be written down."""
    try:
        return "\n".join((what, meaning(options), memo.meaning_of(kernel)))
    except (NotStorable, RecursionError):
        return ""
