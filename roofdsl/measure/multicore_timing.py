"""The same loop on several cores at once, each with its own data: the rate of all cores together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from roofdsl.measure.shared_core import pooled_watch
from roofdsl.measure.timing import LEAST_REPEATS, MOST, Switches, Watch, median, pin, pinned, quantile, switches


@dataclass(frozen=True)
class Effort:
    """How much time a characterization takes: samples of each number, and the seconds that a sample lasts.

    most_s: after this many seconds, no further rounds of a number are made, and no more than LEAST samples per round,
    so that a busy machine is characterized in bounded time (and noted as noisy).
    """

    samples: int
    sample_s: float
    most_s: float


ROUNDS = 4
"""The maximum number of rounds of samples while they spread by more than CALM."""

CALM = 0.1

SKEW = 0.15
"""The cores of a sample must begin and end within this part of it; otherwise they did not run together."""

LEAST = 5

REPRODUCED = 3
"""If at least this many samples are undisturbed, only they count."""

PIECE = 32 << 20
"""A sample of a longer working set streams at least this many of its bytes per core, in about a millisecond."""

FULL = Effort(9, 4e-3, 0.25)
QUICK = Effort(LEAST_REPEATS, 2e-3, 0.1)


@dataclass(frozen=True)
class Rate:
    """The median rate of all cores together, and (high - low) / median of the samples."""

    per_s: float
    spread: float


def rate(
    loop: Callable[..., object],
    arguments: Sequence[tuple[Any, ...]],
    amount: float,
    cores: Sequence[int],
    effort: Effort,
) -> Rate:
    """`amount` per second, if core k runs `loop(*arguments[k], count)` and all cores together do `amount` per count.

    The count is raised until a sample lasts effort.sample_s. `loop` is compiled and releases the interpreter's lock. A
    sample lasts from the first start to the last end. While samples spread, further rounds are made, and the one with
    the highest median counts: other work on the machine only makes a loop slower.
    """
    loop(*arguments[0], 1)
    count = count_for(loop, arguments[0], cores[0], effort.sample_s)
    watch = watch_of(cores)
    return _best_round(lambda: together(loop, arguments, count, cores, watch), amount * count, effort)


def rate_in_pieces(
    loop: Callable[..., object],
    pieces: Sequence[Sequence[tuple[Any, ...]]],
    amount: float,
    cores: Sequence[int],
    effort: Effort,
) -> Rate:
    """Like `rate`, for work that is too long for one sample: each sample runs the next piece once, and the pieces start
    over after the last. Each piece does `amount`.

    A core shared with another program is taken away every few milliseconds; a shorter sample is sometimes undisturbed.
    """
    for piece in pieces:  # warm-up: on the first pass the caches hold other data
        together(loop, piece, 1, cores, Switches())
    turns = cycle(pieces)
    longer = Effort(2 * effort.samples, effort.sample_s, effort.most_s)
    watch = watch_of(cores)
    return _best_round(lambda: together(loop, next(turns), 1, cores, watch), amount, longer)


def watch_of(cores: Sequence[int]) -> Watch:
    """The watch for all samples of one number: whether a core is calm is only known if it runs alone."""
    if len(cores) > 1:
        return Switches()
    with pinned(cores):
        return pooled_watch()


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
    """Seconds of `wanted` undisturbed samples; of all samples if fewer than REPRODUCED are undisturbed."""
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
    return calm if len(calm) >= REPRODUCED else every


def count_for(loop: Callable[..., object], arguments: tuple[Any, ...], core: int, wanted_s: float) -> int:
    """The number of rounds for which the loop lasts that long.

    The shortest of three runs counts. A run that lost its core would lead to samples that are far too short, in which
    stores have not left the core when the clock is read.
    """
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


def _alone(loop: Callable[..., object], arguments: tuple[Any, ...], count: int, watch: Watch) -> tuple[float, bool]:
    """The seconds of one sample on the core that this thread is pinned to, and whether nothing disturbed it."""
    watch.wait()
    before = watch.lost()
    taken = _seconds(loop, arguments, count)
    return taken, watch.lost() == before


def together(
    loop: Callable[..., object],
    arguments: Sequence[tuple[Any, ...]],
    count: int,
    cores: Sequence[int],
    watch: Watch | None = None,
) -> tuple[float, bool]:
    """The seconds of one sample, and whether nothing disturbed it: all cores began and ended at about the same time, or
    as `watch` says for a single core.
    """
    if len(arguments) == 1:
        with pinned([cores[0]]):
            return _alone(loop, arguments[0], count, watch or pooled_watch())
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
        except BaseException as error:  # raised again by the caller below; it would be lost in the thread
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
