"""The same loop on several cores at once, each on data of its own: how fast all of them are together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from roofdsl.measure.timing import LEAST_REPEATS, MOST, median, pin, pinned, quantile, switches


@dataclass(frozen=True)
class Effort:
    """How long a characterization takes its time: samples of each number, and seconds that one lasts.

    most_s: after so many seconds no more rounds of one number are made, and no more than LEAST samples of a round, so
    that a busy machine is characterized in bounded time (and noted as noisy).
    """

    samples: int
    sample_s: float
    most_s: float


ROUNDS = 4
"""Rounds of samples that are taken at most, while they spread by more than CALM."""

CALM = 0.1

SKEW = 0.15
"""A sample counts where cores begin and end within this part of it: else they did not run together."""

LEAST = 5

PIECE = 32 << 20
"""Bytes of a working set, per core, that a sample streams at most: about a millisecond."""

FULL = Effort(9, 4e-3, 0.25)
QUICK = Effort(LEAST_REPEATS, 2e-3, 0.1)


@dataclass(frozen=True)
class Rate:
    """The median of what all cores did per second, and (high - low) / median of the samples."""

    per_s: float
    spread: float


def rate(
    loop: Callable[..., object],
    arguments: Sequence[tuple[Any, ...]],
    amount: float,
    cores: Sequence[int],
    effort: Effort,
) -> Rate:
    """`amount` per second, where core k runs `loop(*arguments[k], count)` and each count does `amount` in all.

    The count is raised until a sample lasts effort.sample_s. `loop` is compiled, and gives up the interpreter's lock.
    A sample lasts from the first start to the last end. While samples spread, further rounds are taken, and the one
    with the highest median counts: whatever else runs on the machine only makes a loop slower.
    """
    loop(*arguments[0], 1)
    count = _count(loop, arguments[0], cores[0], effort.sample_s)
    return _best_round(lambda: _together(loop, arguments, count, cores), amount * count, effort)


def rate_in_pieces(
    loop: Callable[..., object],
    pieces: Sequence[Sequence[tuple[Any, ...]]],
    amount: float,
    cores: Sequence[int],
    effort: Effort,
) -> Rate:
    """As `rate`, for work too long for one sample: sample after sample runs the next piece of it once, and begins anew
    after the last. Each piece does `amount`.

    A core that is shared with another program is taken away every few milliseconds; what is shorter than that is seen
    undisturbed now and then.
    """
    for piece in pieces:  # the first pass finds the caches as something else left them
        _together(loop, piece, 1, cores)
    turns = cycle(pieces)
    longer = Effort(2 * effort.samples, effort.sample_s, effort.most_s)
    return _best_round(lambda: _together(loop, next(turns), 1, cores), amount, longer)


def _best_round(take: Callable[[], tuple[float, bool]], amount: float, effort: Effort) -> Rate:
    best = Rate(0.0, 0.0)
    deadline = time.perf_counter() + effort.most_s
    for _ in range(ROUNDS):
        per_s = [amount / s for s in _samples(take, effort.samples, deadline)]
        middle = median(per_s)
        found = Rate(middle, (quantile(per_s, 0.9) - quantile(per_s, 0.1)) / middle)
        best = max(best, found, key=lambda r: r.per_s)
        if found.spread <= CALM or time.perf_counter() > deadline:
            break
    return best


def _samples(take: Callable[[], tuple[float, bool]], wanted: int, deadline: float) -> list[float]:
    """Seconds of so many samples during which no core was taken away; all of them where that happens too often."""
    calm: list[float] = []
    every: list[float] = []
    while len(calm) < wanted and len(every) < MOST * wanted:
        before = switches()
        taken, together = take()
        every.append(taken)
        if together and switches() == before:
            calm.append(taken)
        if len(every) >= LEAST and time.perf_counter() > deadline:
            break
    return calm if 2 * len(calm) >= min(wanted, len(every)) else every


def _count(loop: Callable[..., object], arguments: tuple[Any, ...], core: int, wanted_s: float) -> int:
    """How often the loop has to run to last so long. Of three runs the shortest counts: one in which the core was
    taken away would give samples far too short, in which stores have not left the core when the clock is read."""
    count = 1
    with pinned([core]):
        while True:
            taken = min(_seconds(loop, arguments, count) for _ in range(3))
            if taken >= wanted_s / 8 or count >= 1 << 40:
                return max(1, round(count * wanted_s / max(taken, 1e-9)))
            count *= 2 if taken > wanted_s / 64 else 8


def _seconds(loop: Callable[..., object], arguments: tuple[Any, ...], count: int) -> float:
    start = time.perf_counter()
    loop(*arguments, count)
    return time.perf_counter() - start


def _together(
    loop: Callable[..., object], arguments: Sequence[tuple[Any, ...]], count: int, cores: Sequence[int]
) -> tuple[float, bool]:
    """Seconds of one sample, and whether all cores began and ended at about the same time."""
    if len(arguments) == 1:
        with pinned([cores[0]]):
            return _seconds(loop, arguments[0], count), True
    barrier = threading.Barrier(len(arguments))
    spans: list[tuple[float, float]] = []
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            pin([cores[k]])
            barrier.wait()
            start = time.perf_counter()
            loop(*arguments[k], count)
            spans.append((start, time.perf_counter()))
        except BaseException as error:  # handed to the caller below; a thread's own is lost
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    starts, ends = zip(*spans, strict=True)
    whole = max(ends) - min(starts)
    return whole, max(starts) - min(starts) + max(ends) - min(ends) <= SKEW * whole
