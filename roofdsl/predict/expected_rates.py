"""The rates to be expected of caches and memory, where they are below the best ones, which the bound takes.

A cache rarely delivers its bandwidth: others use it too, and the pages of short arrays take longer to find and fall
into its sets by chance. A machine may state the median rate (`typical`): of a cache over working sets, of a
memory over streaming patterns. And where large working sets get another rate than small ones (`larger`), it may state
both: a Zen 5 core fetches lines from L2 faster once the data exceed a third of it.

A core fetches only a few lines of each stream ahead. One stream then gets the bytes of these lines divided by the
memory's latency (Little's law), and several streams together get more, up to the bandwidth. A machine may state the
rate of one stream (`one_stream`) and how many reach the bandwidth (`streams`); in between, the rate rises by the same
amount for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.hardware_traffic import Moved
from roofdsl.predict.level_time import LevelTime

if TYPE_CHECKING:
    from roofdsl.counts.lines_of_sets import ArrayLines

TYPICAL = "bandwidth of {} that is typical, not the best"
FEW, MORE = "bandwidth of {} that few streams get", "loops over more arrays at once"


def for_data_of(size_bytes: int, machine: Machine) -> Machine:
    """The machine whose typical rates are those for so much data, which all copies of a cache share."""
    return replace(machine, caches=tuple(_for_data_of(Fraction(size_bytes, c.copies), c) for c in machine.caches))


def for_data_on_cores(size_bytes: int, machine: Machine, cores: int) -> Machine:
    """As `for_data_of`, if this number of cores share the data: only the copies that serve them hold some. The machine
    states no other rate for larger data then, so one of its cores can stand for each of them.
    """
    units, caches = machine.units or 1, []
    for cache in machine.caches:
        copies = -(-cache.copies * cores // units)
        caches.append(replace(_for_data_of(Fraction(size_bytes, copies), cache), larger_bytes_per_s=None))
    return replace(machine, caches=tuple(caches))


def _for_data_of(size_bytes: Fraction, cache: Cache) -> Cache:
    """The cache with its rates for so much data. Those of stored lines were measured with the smaller working sets, and
    are taken to change as the typical rate does.
    """
    larger = cache.larger_bytes_per_s
    if larger is None or not (cache.larger_from_bytes or 0) <= size_bytes <= cache.size_bytes:
        return cache
    larger = min(larger, cache.bandwidth_bytes_per_s)  # nothing is expected to exceed the best
    times = larger / _expected_per_s(cache)
    stored = ("stores_bytes_per_s", "written_bytes_per_s", "written_loads_bytes_per_s")
    changed = {name: getattr(cache, name) * times for name in stored if getattr(cache, name) is not None}
    return replace(cache, typical_bytes_per_s=larger, **changed)


def with_typical_rates(machine: Machine) -> Machine:
    """The machine whose caches and main memory have the bandwidth to be expected."""
    caches = tuple(replace(cache, bandwidth_bytes_per_s=_expected_per_s(cache)) for cache in machine.caches)
    main = replace(machine.main_memory, bandwidth_bytes_per_s=_expected_per_s(machine.main_memory))
    return replace(machine, caches=caches, memories=(main, *machine.memories[1:]))


def at_expected_rates(levels: Sequence[LevelTime], streams: Fraction | None, machine: Machine) -> Iterator[Moved]:
    """The levels at typical rates, and then at the rates that `streams` streams get; each only if the machine states
    such rates. streams: as `streams_of` counts them.
    """
    farther = {part.name: part for part in machine.hierarchy[1:]}
    typical = {name: _expected_per_s(part) / part.bandwidth_bytes_per_s for name, part in farther.items()}
    few = {name: Fraction(1) if streams is None else _share_of(streams, part) for name, part in farther.items()}
    for cause, remedy, shares in ((TYPICAL, "", typical), (FEW, MORE, few)):
        slow = [level.name for level in levels if shares.get(level.name, 1) < 1 and level.bytes]
        if slow:
            levels = [v.at_bandwidth(v.bandwidth_bytes_per_s * shares[v.name]) if v.name in slow else v for v in levels]
            yield Moved(cause.format(" and ".join(slow)), remedy, tuple(levels))


def _expected_per_s(part: Cache | Memory) -> Fraction:
    """What a level typically delivers to many streams, in bytes per second."""
    return part.typical_bytes_per_s or part.bandwidth_bytes_per_s


def _share_of(streams: Fraction, part: Cache | Memory) -> Fraction:
    """The share of a level's expected rate that so many streams get."""
    if part.one_stream_bytes_per_s is None or streams >= part.streams:
        return Fraction(1)
    one = min(Fraction(1), part.one_stream_bytes_per_s / _expected_per_s(part))
    return one + (1 - one) * (streams - 1) / (part.streams - 1)


def streams_of(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> Fraction | None:
    """The number of streams of a launch: the mean over its outermost loops, weighted by their bytes. None if no level
    states a rate of one stream, if nothing moves, and if counting takes too long.

    A loaded array is a stream, and a stored one is another. Streams of different lengths count as fewer: with b bytes
    each, as (sum of b)^2 / (sum of b^2), which is their number if they are equally long. Each datum counts once.
    """
    from roofdsl.counts.traffic_at import first_touches_at

    if all(part.one_stream_bytes_per_s is None for part in machine.hierarchy):
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
    """The bytes of each stream: those loaded and those stored of every array. allocates: whether lines whose first
    access is a store are loaded, too.
    """
    found = []
    for a in arrays:
        loaded = a.begun if allocates else a.begun_by_read
        found += [loaded * a.line_bytes, a.stored * a.line_bytes]
    return found
