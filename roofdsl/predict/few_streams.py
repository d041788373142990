"""The memory's rate for launches with few streams.

A core fetches only a few lines of each stream ahead. One stream then gets what these lines hold over the memory's
latency (Little's law), and several streams together get more, up to the bandwidth. A machine may state the rate of one
stream (`one_stream`) and how many reach the bandwidth (`streams`); in between, the rate rises by the same amount for
each. Only expected times use this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.traffic_at import ArrayLines, first_touches_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime

CAUSE = "{} delivers less to few streams"
REMEDY = "loops over more arrays at once"


def streams_of(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> Fraction | None:
    """The number of streams of a launch, the mean over its outermost loops by their bytes; None if the machine does not
    ask for it, without any traffic, and if counting takes too long.

    A loaded array is a stream, and a stored one is another. Streams of different lengths count as fewer: with b bytes
    each, as (sum of b)^2 / (sum of b^2), which is their number if they are equally long. Each datum counts once.
    """
    if machine.main_memory.one_stream_bytes_per_s is None:
        return None
    allocates = machine.last_cache is not None and bool(machine.last_cache.write_allocate)
    weighed, total = Fraction(0), 0
    for loop in kernel.body:
        try:
            streams = _bytes(first_touches_at(replace(kernel, body=(loop,)), values), allocates)
        except CommandError:
            return None
        moved, squares = sum(streams), sum(b * b for b in streams)
        if squares:
            weighed, total = weighed + moved * Fraction(moved * moved, squares), total + moved
    return weighed / total if total else None


def _bytes(arrays: Sequence[ArrayLines], allocates: bool) -> list[int]:
    """The bytes of each stream: those loaded and those stored of every array. A machine that allocates lines for writes
    loads what is written first, too.
    """
    found = []
    for a in arrays:
        loaded = a.begun if allocates else a.begun_by_read
        found += [loaded * a.line_bytes, a.stored * a.line_bytes]
    return found


def with_few_streams(level: LevelTime, streams: Fraction | None, machine: Machine) -> LevelTime:
    """The level at the rate of so many streams: the memory, if the machine states that it depends on their number."""
    memory = machine.main_memory
    one, most = memory.one_stream_bytes_per_s, memory.streams
    if streams is None or one is None or level.name != memory.name or streams >= most:
        return level
    full = memory.bandwidth_bytes_per_s
    rate = one + (full - one) * max(Fraction(0), streams - 1) / (most - 1)
    return level.at_bandwidth(level.bandwidth_bytes_per_s * rate / full)  # a ceiling lowers both
