"""Whether a cache delivers its own data while lines from farther away pass through it: two streams at once are compared
with each alone.

The loop sums up an array in a farther level and, element by element with it, a short array that stays in the cache in
question. If the levels overlap, the loop takes as long as the slower stream; if they take turns, the times add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofdsl.measure.bandwidth_curve import LOAD, Beside
from roofdsl.measure.microkernels import beside, stream
from roofdsl.measure.multicore_timing import PIECE, Effort, Rate, rate, rate_in_pieces

Blocks = Sequence[Any]
"""One numpy array of f64 for each core, from which the two arrays are cut."""

SHARES = (8, 4)
"""The short array takes up 1/8 or 1/4 of the cache, or twice that including the data that streams through between two
reads of a line.
"""

LEAST_CONTRAST = 0.1
"""The time in turn must exceed the time with overlap by this part for the two cases to be told apart."""

SIDE_BY_SIDE = 0.25
"""Up to this part of the way from full overlap to taking turns, the levels count as overlapping."""

LEAST_ADDED = 0.02
"""Hits that add less than this part of the time of the lines beside them cannot be told from hits that add nothing."""

ATTEMPTS = 3
"""Measurements at most, while the result is not plausible."""


@dataclass(frozen=True)
class Place:
    """A level as seen by one core of a team: its share of the capacity, and loads from it in bytes/s of all cores."""

    name: str
    share_bytes: int
    loads_per_s: float


def farther(places: Sequence[Place], near: int, first: int | None = None) -> int | None:
    """The level from `first` on (the one behind `near`) for which the two cases differ most; None if they cannot be
    told apart for any level.
    """
    contrasts = {}
    for far in range(near + 1 if first is None else first, len(places)):
        side, turn = side_by_side(places[near], places[far].loads_per_s), in_turn(places[near], places[far].loads_per_s)
        contrasts[far] = turn / side - 1
    best = max(contrasts, key=lambda far: contrasts[far], default=None)
    return best if best is not None and contrasts[best] >= LEAST_CONTRAST else None


def side_by_side(near: Place, far_per_s: float) -> float:
    """Seconds for one byte of each stream with overlap: all bytes cross the near level's boundary, half of them the far
    one's.
    """
    return max(2 / near.loads_per_s, 1 / far_per_s)


def in_turn(near: Place, far_per_s: float) -> float:
    """Seconds for one byte of each stream if one stream waits for the other."""
    return 1 / near.loads_per_s + 1 / far_per_s


def judged(near: Place, far: str, far_per_s: float, both_per_s: float, *, overlap: bool = False) -> Beside | None:
    """The result of a measurement: `far_per_s` of the farther stream alone, `both_per_s` of it together with the near
    one.

    None if the two overlap, or cannot be told apart. The rate is the one at which the near level's part adds to the
    time of the far level's. Its `bytes_per_s` is never lower than that of the near level alone, since taking turns is
    always possible. If the measurement is not plausible, the levels count as taking turns, each at its rate alone.
    overlap: levels that overlap have a rate, too; the near part then adds at least LEAST_ADDED of the far part's time.
    """
    side, turn, took = side_by_side(near, far_per_s), in_turn(near, far_per_s), 1 / both_per_s
    if turn < (1 + LEAST_CONTRAST) * side:
        return None
    if took - side <= SIDE_BY_SIDE * (turn - side):
        adds = max(1 / far_per_s * LEAST_ADDED, took - 1 / far_per_s)
        return Beside(far, max(1 / adds, near.loads_per_s), 1 / adds) if overlap else None
    measured = 1 / (took - 1 / far_per_s) if is_plausible(far_per_s, both_per_s) else near.loads_per_s
    return Beside(far, max(measured, near.loads_per_s), measured)


def is_plausible(far_per_s: float, both_per_s: float) -> bool:
    """Whether the near stream added less time than if its lines had come from the far level, too.

    If it added more, something else took the time, such as another program on the core.
    """
    return 1 / both_per_s <= 2 / far_per_s


def short_arrays(places: Sequence[Place], near: int) -> list[int]:
    """The bytes of the short array: with the streamed data, well inside its level and well outside the previous one."""
    below = places[near - 1].share_bytes if near else 0
    sizes = [places[near].share_bytes // part // 4096 * 4096 for part in SHARES]
    return [size for size in sizes if size >= 4096 and 2 * size >= 1.5 * below]


def measure_pair(
    places: Sequence[Place], near: int, team: Sequence[int], blocks: Blocks, effort: Effort
) -> tuple[Beside | None, Beside | None]:
    """The rates of level `near` together with the next level, and with one behind that: `beside` and `beside_far`.

    The second is None if nothing shows a difference there, or if the level overlaps with the next one, which shows a
    difference best. A core may wait for the lines of the next level and yet overlap with those of the memory (Zen 5).
    """
    shows = farther(places[: near + 2], near) is not None
    following = measure(places, near, team, blocks, effort, far=near + 1) if shows else None
    behind = farther(places, near, near + 2)
    if behind is None or (following is None and farther(places, near) == near + 1):
        return following, None
    return following, measure(places, near, team, blocks, effort, far=behind, overlap=following is not None)


def measure(
    places: Sequence[Place],
    near: int,
    team: Sequence[int],
    blocks: Blocks,
    effort: Effort,
    *,
    far: int | None = None,
    overlap: bool = False,
) -> Beside | None:
    """The rate of level `near` together with level `far`, or, if `far` is None, with the level that shows the
    difference best, on all cores of `team`; `overlap` and None as in `judged`.
    """
    far = farther(places, near) if far is None else far
    sizes = short_arrays(places, near)
    if far is None or not sizes:
        return None
    room = min(block.nbytes for block in blocks) - max(sizes) - (1 << 13)
    last = far == len(places) - 1
    long_bytes = room if last else min(room, 3 * places[far].share_bytes // 8)
    sizes = [size for size in sizes if size <= long_bytes]
    if not sizes:
        return None
    streamed = [long_bytes // size * size for size in sizes]
    alone, both = [stream_rate(blocks, streamed[-1], 0, team, effort).per_s], list[float]()
    for _ in range(ATTEMPTS):
        pairs = zip(streamed, sizes, strict=True)
        both += [stream_rate(blocks, length, size, team, effort).per_s for length, size in pairs]
        alone.append(stream_rate(blocks, streamed[-1], 0, team, effort).per_s)  # a shared memory's rate changes
        if is_plausible(max(alone), max(both)):
            break
    return judged(places[near], places[far].name, max(alone), max(both), overlap=overlap)


def stream_rate(blocks: Blocks, long_bytes: int, short_bytes: int, team: Sequence[int], effort: Effort) -> Rate:
    """The bytes of the long array per second, on all cores, read together with the short one or (if that has 0 bytes)
    alone.
    """
    loop: Callable[..., float] = beside() if short_bytes else stream(LOAD)
    unit = short_bytes or 4096
    count = max(1, min(long_bytes // PIECE, long_bytes // unit))  # a piece is at least as long as the short array
    length = long_bytes // count // unit * unit // 8
    pieces = []
    for k in range(count):
        arguments: list[tuple[Any, ...]] = []
        for block, _ in zip(blocks, team, strict=False):
            start = (-block.ctypes.data // 8) % 8
            short = block[start : start + short_bytes // 8]
            first = start + short_bytes // 8 + 40 + k * length  # five lines further, so that low address bits differ
            long = block[first : first + length]
            arguments.append((long, short) if short_bytes else (long, 1.0))
        pieces.append(arguments)
    amount = 8.0 * length * len(team)
    if count > 1:
        return rate_in_pieces(loop, pieces, amount, team, effort)
    return rate(loop, pieces[0], amount, team, effort)
