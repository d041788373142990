"""How long a loop continues in the same way, and the contents of its registers afterwards.

A register that grew by the same number in each of the last iterations is assumed to continue to do so. So is one whose
growth itself grew evenly (the index of a packed triangle). Anything else is unknown, and a jump that depends on it ends
the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from roofdsl.incore.state import MASKS, Flags, holds, signed
from roofdsl.lang.record import Record

_WRAP = MASKS[64] + 1
_PERIOD = 4096
Outcome = Callable[[int], "bool | None"]
"""Says whether a condition holds a given number of executions later."""


class Exit(Record):
    """A jump that may leave a loop: its condition, the compared values, and whether it was taken."""

    condition: str
    flags: Flags
    taken: bool


def advanced(values: Sequence[int | None], count: int, wide: bool = False) -> int | None:
    """The value `count` iterations later, from the values at the starts of the last (up to four) iterations; None if
    unknown.

    A single value is taken to stay. wide: a vector register, whose value is known only if it stays.
    """
    last = values[-1]
    if last is None or len(values) < 2 or any(v is None for v in values):
        return last if len(values) == 1 else None
    known = [v for v in values if v is not None]
    if all(v == last for v in known):
        return last
    if wide or len(known) < 3:
        return None
    steps = [(b - a) % _WRAP for a, b in pairwise(known)]
    # The last two steps decide: the first one may still come from the code before the loop.
    if len(set(steps[-2:])) == 1:
        return (last + steps[-1] * count) % _WRAP
    second = {(b - a) % _WRAP for a, b in pairwise(steps)}
    if len(steps) < 3 or len(second) != 1:
        return None
    # A value with steps that grow by g, as in row starts of a triangle: after s come s + g, s + 2*g, ..., which add up
    # to count*s + g*count*(count + 1)/2.
    growth = second.pop()
    return (last + steps[-1] * count + growth * (count * (count + 1) // 2)) % _WRAP


def iterations_left(exits: Sequence[Mapping[int, Exit]]) -> int:
    """The number of further iterations before one of the loop's exits changes direction; 0 if it is unknown.

    exits: of the last three iterations, each by its block.
    """
    if len(exits) < 3 or not exits[-1]:
        return 0
    found = []
    for block, now in exits[-1].items():
        before = [e.get(block) for e in exits[:-1]]
        if any(b is None or (b.condition, b.taken) != (now.condition, now.taken) for b in before):
            return 0
        history = [b.flags for b in before if b is not None] + [now.flags]
        found.append(_same_for(now, history))
    return min(found)


def _same_for(now: Exit, history: Sequence[Flags]) -> int:
    """The number of further executions for which a jump keeps its direction; 0 if it is unknown."""
    kind, a, b, bits = now.flags
    if len({(f[0], f[3]) for f in history}) != 1:
        return 0
    steps = []
    for values in ([f[1] for f in history], [f[2] for f in history]):
        apart = {signed((y - x) & MASKS[bits], bits) for x, y in pairwise(values)}
        if len(apart) != 1:
            return 0
        steps.append(apart.pop())
    da, db = steps
    if da == db == 0:
        return 1 << 62

    def outcome(k: int) -> bool | None:
        return holds(now.condition, (kind, (a + da * k) & MASKS[bits], (b + db * k) & MASKS[bits], bits))

    if kind == "and" and a != b:
        return _search(outcome, now.taken)
    limit = _until_wrap(a, da, bits, now.condition)
    limit = min(limit, _until_wrap(b, db, bits, now.condition) if kind != "and" else limit)
    if now.condition in ("e", "ne"):
        return _until_equal(now, da, db, limit)
    return _bisected(outcome, now.taken, limit)


def _until_wrap(value: int, step: int, bits: int, condition: str) -> int:
    """The number of iterations in which a growing number neither overflows nor falls below its least value."""
    if step == 0:
        return 1 << 62
    is_signed = condition in ("l", "ge", "le", "g", "s", "ns", "o", "no", "e", "ne")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, MASKS[bits])
    shown = signed(value, bits) if is_signed else value
    return (high - shown) // step if step > 0 else (shown - low) // -step


def _until_equal(now: Exit, da: int, db: int, limit: int) -> int:
    """For jumps on equality: the number of iterations before two numbers become equal, `limit` if they never do; 0 if
    they are equal now and move apart.
    """
    kind, a, b, bits = now.flags
    # apart: what the zero flag compares with 0: a - b, a + b, or the result itself
    signs = {"sub": 1, "dec": 1, "add": -1, "inc": -1}
    if kind in signs:
        apart, speed = signed((a - signs[kind] * b) & MASKS[bits], bits), da - signs[kind] * db
    else:
        apart, speed = signed(a, bits), da
    equal_now = apart == 0
    if speed == 0:
        return limit
    if equal_now:
        return 0
    meet, rest = divmod(-apart, speed)
    return meet - 1 if rest == 0 and meet > 0 else limit


def _bisected(outcome: Outcome, taken: bool, limit: int) -> int:
    """The last k up to `limit` with the same outcome, which changes at most once."""
    low, high = 0, min(limit, 1 << 62)
    if outcome(high) == taken:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if outcome(middle) == taken:
            low = middle
        else:
            high = middle
    return low


def _search(outcome: Outcome, taken: bool) -> int:
    """The same for masked numbers, whose outcomes repeat: each one is checked, up to _PERIOD."""
    return next((k - 1 for k in range(1, _PERIOD) if outcome(k) != taken), _PERIOD)
