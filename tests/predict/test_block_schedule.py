"""When the blocks of a launch end, compared with schedules that are followed in exact numbers, one event at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from roofdsl.predict import block_schedule
from roofdsl.predict.block_schedule import busy_end, waiting_end


def followed(work: Sequence[int], resident: int, units: int, *, is_shared: bool) -> Fraction:
    """Every block in turn goes to the multiprocessor with most room, and waits while there is none. All running blocks
    advance until the first of them ends: each at rate 1, or all of a multiprocessor together.
    """
    waiting, now = list(work), Fraction(0)
    running: list[list[Fraction]] = [[] for _ in range(units)]
    while True:
        while waiting:
            least = min(running, key=len)
            if len(least) == resident:
                break
            least.append(Fraction(waiting.pop(0)))
        times = [left * (len(each) if is_shared else 1) for each in running for left in each]
        if not times:
            return now
        step = min(times)
        now += step
        for m, each in enumerate(running):
            rest = [left - step / (len(each) if is_shared else 1) for left in each]
            running[m] = [left for left in rest if left > 0]


@pytest.mark.spread(60)
@pytest.mark.parametrize("seed", range(300))
def test_blocks_that_differ(seed: int) -> None:
    draw = random.Random(seed)
    resident, units, blocks = draw.randint(1, 5), draw.randint(1, 7), draw.randint(1, 60)
    most = draw.choice((1, 3, 1000))
    work = [draw.randint(1, most) for _ in range(blocks)]
    if draw.random() < 0.5:
        work.sort(reverse=draw.random() < 0.5)
    assert busy_end(work, resident, units) == pytest.approx(float(followed(work, resident, units, is_shared=True)))
    alone = followed(work, resident, units, is_shared=False)
    assert waiting_end(work, resident * units) == pytest.approx(float(alone))


def test_blocks_without_work() -> None:
    assert busy_end([0, 0, 0], 1, 2) == waiting_end([0, 0, 0], 2) == 0


@pytest.mark.parametrize("backward", [False, True])
def test_only_the_last_blocks_are_followed(backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep all multiprocessors busy. What this leaves out is less than the longest block."""
    work = sorted((k % 97 + k for k in range(600)), reverse=backward)
    whole = busy_end(work, 3, 5), waiting_end(work, 15)
    monkeypatch.setattr(block_schedule, "MOST_BLOCKS", 200)
    assert (busy_end(work, 3, 5), waiting_end(work, 15)) != whole
    assert busy_end(work, 3, 5) == pytest.approx(whole[0], abs=3 * max(work))
    assert waiting_end(work, 15) == pytest.approx(whole[1], abs=max(work))
