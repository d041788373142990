"""Loads that an order of a kernel's statement executions needs at least: optimal replacement, by brute force.

Independent of the package's analyses: it walks the loops (tests/oracle), finds by remembering the last writer which
value each read reads, and counts the loads of Belady's replacement (Belady 1966: drop what is used again last). With
loads alone to be paid, as here, that is the fewest any replacement needs. A value made on chip needs no load, and a
value that nothing reads again is dropped for nothing. Scalars live in registers, as in the language; in another order
than the written one there may be more of their values at a time than there are registers, so that they take room like
others there (`scalars`), with as much more room as there are scalars.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roofdsl.checks.execution_order import uses
from roofdsl.loops.model import Count, Kernel, Let
from roofdsl.loops.transform import apply
from tests.oracle.enumerate import admissible, walk


@dataclass(frozen=True)
class Task:
    """Executions that stay together (`let`s and the assignment after them): values read in order, values made.

    before: tasks that make values this one reads (scalars included). at: its statement's line in the text, and its
    loop variables by name.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    before: frozenset[int]
    at: tuple[int, Mapping[str, int]] = field(compare=False, hash=False)


def scalars_of(kernel: Kernel) -> int:
    """How many scalars are values: those that are written."""
    return sum(not a.dims and a.intent != "in" for a in kernel.arrays)


def tasks(kernel: Kernel, params: Mapping[str, int], scalars: bool = False) -> list[Task]:
    """The execution as tasks in the written order; values are numbers, one for every version of every element.

    Scalars other than `in` ones make dependences; they are values like others only in that, or with `scalars` in all.
    """
    kernel = apply(kernel)
    numbers: dict[object, int] = {}
    version: dict[object, tuple[object, int | None]] = {}  # place -> (value's key, task that made it)
    found: list[Task] = []
    reads: list[int] = []
    before: set[int] = set()

    def value(key: object) -> int:
        return numbers.setdefault(key, len(numbers))

    if not admissible(kernel, params):
        raise ValueError(f"an assumption of {kernel.name} does not hold for {dict(params)}")
    for k, (statement, env) in enumerate(walk(kernel.body, dict(params))):
        if isinstance(statement, Count):
            continue
        writes: list[int] = []
        for use in uses(statement):
            place = (use.array.name, use.index(env))
            if not use.is_write:
                key, maker = version.get(place, (("in", place), None))
                if maker is not None and maker != len(found):
                    before.add(maker)
                if use.array.dims or (scalars and use.array.intent != "in"):
                    reads.append(value(key))
            else:
                version[place] = (("made", place, k), len(found))
                if use.array.dims or scalars:
                    writes.append(value(("made", place, k)))
        if isinstance(statement, Let):
            continue
        line = statement.span.line
        found.append(Task(tuple(reads), tuple(writes), frozenset(before), (line, env)))
        reads, before = [], set()
    return found


def random_order(found: Sequence[Task], rng: random.Random, greedy: int = 1) -> list[Task]:
    """A random order that keeps every value's maker before its readers; anti-dependences do not count, as each value
    has a place of its own. greedy > 1 tries so many candidates and takes the one whose operands were used last."""
    waiting, after = _waiting(found)
    ready = [i for i, w in enumerate(waiting) if not w]
    order: list[Task] = []
    used: dict[int, int] = {}
    while ready:
        places = {rng.randrange(len(ready)) for _ in range(greedy)}
        place = max(places, key=lambda p: sum(used.get(v, -1) for v in found[ready[p]].reads))
        ready[place], ready[-1] = ready[-1], ready[place]
        i = ready.pop()
        order.append(found[i])
        for v in (*found[i].reads, *found[i].writes):
            used[v] = len(order)
        for a in after[i]:
            waiting[a] -= 1
            if not waiting[a]:
                ready.append(a)
    assert len(order) == len(found)
    return order


def tiled_order(found: Sequence[Task], rng: random.Random) -> list[Task]:
    """A legal order that goes tile by tile as far as dependences let it: the first in its tiles of those that may come.

    Tiles are cut by random directions, skewed ones among them, and loops of one name in several nests are one loop.
    """
    names = sorted({v for t in found for v in t.at[1]})
    cuts = []
    for _ in range(rng.randint(1, 4)):
        direction = {v: rng.choice((0, 0, 1, 1, 1, 2, -1)) for v in names}
        cuts.append((direction, rng.choice((0, 0, 1)), rng.choice((1, 2, 3, 4, 6, 8))))

    def key(number: int) -> tuple[int, ...]:
        line, env = found[number].at
        places = (sum(c * env.get(v, 0) for v, c in way.items()) + lines * line for way, lines, _ in cuts)
        return (*(place // size for place, (_, _, size) in zip(places, cuts, strict=True)), number)

    waiting, after = _waiting(found)
    ready = [key(i) for i, w in enumerate(waiting) if not w]
    heapq.heapify(ready)
    order: list[Task] = []
    while ready:
        number = heapq.heappop(ready)[-1]
        order.append(found[number])
        for a in after[number]:
            waiting[a] -= 1
            if not waiting[a]:
                heapq.heappush(ready, key(a))
    assert len(order) == len(found)
    return order


def _waiting(found: Sequence[Task]) -> tuple[list[int], list[list[int]]]:
    """(how many tasks each one waits for, those that wait for it)."""
    after: list[list[int]] = [[] for _ in found]
    for i, t in enumerate(found):
        for b in t.before:
            after[b].append(i)
    return [len(t.before) for t in found], after


def loads(order: Sequence[Task], size: int) -> int:
    """Loads of optimal replacement with room for `size` values, of tasks in this order; operands come one by one."""
    accesses: list[tuple[int, bool]] = []
    for t in order:
        accesses += [(v, False) for v in t.reads] + [(v, True) for v in t.writes]
    never = len(accesses)
    following = [never] * len(accesses)
    seen: dict[int, int] = {}
    for k in range(len(accesses) - 1, -1, -1):
        v = accesses[k][0]
        following[k] = seen.get(v, never)
        seen[v] = k
    held: dict[int, int] = {}  # value -> its next use
    heap: list[tuple[int, int]] = []  # (-next use, value), stale entries allowed
    count = 0
    for k, (v, is_write) in enumerate(accesses):
        if v not in held and not is_write:
            count += 1
        held[v] = following[k]
        heapq.heappush(heap, (-following[k], v))
        if following[k] == never:
            del held[v]
        while len(held) > size:
            use, victim = heapq.heappop(heap)
            if held.get(victim) == -use:
                del held[victim]
    return count
