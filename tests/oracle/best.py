"""The best replacement by brute force: Belady's rule with lists and dictionaries, and every replacement there is.

Written from docs/simulate.md, not from the code that it checks. A trace comes from walking the loops
(`tests/oracle/enumerate`); arrays stand one after another, each from the start of a line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roofdsl.loops.model import Kernel
from tests.oracle.enumerate import run
from tests.oracle.lru import address


@dataclass(frozen=True)
class Access:
    """One access; `dropped`: of a `temp` array, whose lines are not stored at the end."""

    line: int
    is_write: bool
    dropped: bool


@dataclass(frozen=True)
class Counts:
    """Of one execution, in lines; `begun_by_write` of the misses."""

    accesses: int
    misses: int
    begun_by_write: int
    stored: int


def trace(kernel: Kernel, params: Mapping[str, int], line_bytes: int) -> list[Access]:
    """Every access in order."""
    arrays = {a.name: a for a in kernel.arrays if not a.is_scalar}
    first, end = {}, 0
    for a in arrays.values():
        first[a.name] = end
        size = a.type.bytes
        for d in a.dims:
            size *= d.evaluate(params)
        end += -(-size // line_bytes)
    found = []
    for execution in run(kernel, params):
        for access in execution.accesses:
            array = arrays[access.array]
            line = first[array.name] + address(array, access.index, params) // line_bytes
            found.append(Access(line, access.is_write, array.intent == "temp"))
    return found


def belady(accesses: Sequence[Access], ways: int, *, sets: int = 1, bypass: bool = False) -> Counts:
    """In each set, the line whose next use is latest leaves; of those without one, the one used last.

    With `bypass`, the line of the access itself may be the one that leaves, after all others that are not used again.
    """
    times: dict[int, list[int]] = {}
    for t, a in enumerate(accesses):
        times.setdefault(a.line, []).append(t)
    held: list[dict[int, tuple[bool, int, bool]]] = [{} for _ in range(sets)]  # line -> dirty, last use, dropped
    misses = begun_by_write = stored = 0

    def latest(line: int, now: int, rank: int) -> tuple[bool, int]:
        later = bisect_right(times[line], now)
        return (False, times[line][later]) if later < len(times[line]) else (True, rank)

    for t, a in enumerate(accesses):
        own = held[a.line % sets]
        if a.line in own:
            own[a.line] = (own[a.line][0] or a.is_write, t, a.dropped)
            continue
        misses += 1
        begun_by_write += a.is_write
        own[a.line] = (a.is_write, t, a.dropped)
        if len(own) > ways:
            victims = own if bypass else own.keys() - {a.line}
            victim = max(victims, key=lambda line: latest(line, t, 0 if line == a.line else own[line][1] + 1))
            stored += own.pop(victim)[0]
    stored += sum(dirty and not dropped for own in held for dirty, _, dropped in own.values())
    return Counts(len(accesses), misses, begun_by_write, stored)


def fewest_misses(accesses: Sequence[Access], ways: int, *, bypass: bool = False) -> int:
    """The fewest misses of any replacement in one set: all that a cache may hold after each access, one by one."""
    reached: dict[frozenset[int], int] = {frozenset(): 0}
    for a in accesses:
        after: dict[frozenset[int], int] = {}

        def reach(held: frozenset[int], misses: int, after: dict[frozenset[int], int] = after) -> None:
            after[held] = min(misses, after.get(held, misses))

        for held, misses in reached.items():
            if a.line in held:
                reach(held, misses)
                continue
            if bypass:
                reach(held, misses + 1)
            if len(held) < ways:
                reach(held | {a.line}, misses + 1)
            else:
                for victim in held:
                    reach(held - {victim} | {a.line}, misses + 1)
        reached = after
    return min(reached.values())
