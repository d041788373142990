"""How long a launch takes whose blocks differ: they start in the order of their indices, as room becomes free.

A block that ends makes room for the next one on its multiprocessor; among several with room, the one with most room
gets it (Gilman, Ogden, Guo and Walls, "Demystifying the placement policies of the NVIDIA GPU thread block scheduler",
Performance Evaluation Review 48(3), 2020). If a multiprocessor is busy, its resident blocks have equal shares of it. If
threads only wait, each block takes its own time, as in Graham's list scheduling (1966).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

MOST_BLOCKS = 1 << 14
"""The blocks that are followed, the last of a launch. Those before them keep all multiprocessors busy."""

SAME = 1 + 1e-9
"""Times as close as this are the same time."""


def waiting_end(durations: Sequence[float], slots: int) -> float:
    """When the last block ends, if each takes its own time, and `slots` of them run at the same time."""
    early, late = _split(durations)
    ends = [0.0] * min(slots, len(late))
    last = 0.0
    for duration in late:
        end = ends[0] + duration
        heapreplace(ends, end)
        last = max(last, end)
    return early / slots + last


def busy_end(work: Sequence[float], resident: int, units: int) -> float:
    """When the last block ends, if each of `units` multiprocessors does work 1 per time for all its resident blocks."""
    early, late = _split(work)
    return early / units + _Units(resident, units, late).end()


def _split(each: Sequence[float]) -> tuple[float, Sequence[float]]:
    """(the sum of those that are not followed, the others)."""
    first = max(0, len(each) - MOST_BLOCKS)
    return sum(each[:first]), each[first:]


class _Units:
    """Multiprocessors at work. served: what each of the resident blocks has got since the launch; a block ends when
    this reaches its place in `ends`.
    """

    def __init__(self, resident: int, units: int, work: Sequence[float]) -> None:
        self._resident, self._work, self._next = resident, work, 0
        self._ends: list[list[float]] = [[] for _ in range(units)]
        self._served, self._since = [0.0] * units, [0.0] * units

    def end(self) -> float:
        now = 0.0
        self._start(list(range(len(self._ends))))
        events = [(self._next_end(m), m) for m, ends in enumerate(self._ends) if ends]
        heapify(events)
        while events:
            now, place = heappop(events)
            changed = [place]
            while events and events[0][0] <= now * SAME:
                changed.append(heappop(events)[1])
            for m in changed:
                self._finish(m, now)
            self._start(changed)
            for m in changed:
                if self._ends[m]:
                    heappush(events, (self._next_end(m), m))
        return now

    def _finish(self, m: int, now: float) -> None:
        """Serves the blocks of a multiprocessor until now, and removes those that end."""
        ends = self._ends[m]
        self._served[m] += (now - self._since[m]) / len(ends)
        self._since[m] = now
        self._served[m] = max(self._served[m], ends[0])  # it ends now, whatever was rounded
        while ends and ends[0] <= self._served[m] * SAME:
            heappop(ends)

    def _start(self, where: Sequence[int]) -> None:
        """Starts the next blocks on these multiprocessors, each on the one with most room."""
        room = [(len(self._ends[m]), m) for m in where]
        heapify(room)
        while room and room[0][0] < self._resident and self._next < len(self._work):
            running, m = room[0]
            heappush(self._ends[m], self._served[m] + self._work[self._next])
            self._next += 1
            heapreplace(room, (running + 1, m))

    def _next_end(self, m: int) -> float:
        return self._since[m] + (self._ends[m][0] - self._served[m]) * len(self._ends[m])
