"""A plain simulator of cache hierarchies: lists and dictionaries, one element of one access after the other.

Written from the words of `roofdsl/simulate/cache_levels.py`, not from its code. Every level is a list of sets; a set of
LRU or FIFO is a list of lines, oldest first; a set of tree-PLRU is a list of ways and a dictionary of its tree's bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from roofdsl.loops.model import Kernel
from roofdsl.simulate.cache_levels import CacheLevel
from tests.oracle.enumerate import run
from tests.oracle.lru import address


@dataclass
class Line:
    """A line in a cache: its first byte, and the first bytes of its sectors that are valid and dirty."""

    start: int
    valid: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)


class Cache:
    """One level; `below` is None above the memory."""

    def __init__(self, level: CacheLevel, above: list[Cache]) -> None:
        self.level = level
        self.above = above
        self.below: Cache | None = None
        self.ways = level.ways or level.size_bytes // level.line_bytes
        self.number_of_sets = level.size_bytes // level.line_bytes // self.ways
        self.queues: dict[int, list[Line]] = {}
        self.trees: dict[int, tuple[list[Line | None], dict[tuple[int, int], bool]]] = {}
        self.hits = self.misses = self.loads = self.stores = self.passed = self.passed_bytes = 0

    # ---- sets ----

    def start(self, byte: int) -> int:
        return byte - byte % self.level.line_bytes

    def sector(self, byte: int) -> int:
        return byte - byte % self.level.sector

    def set_number(self, byte: int) -> int:
        return byte // self.level.line_bytes % self.number_of_sets

    def everything(self) -> list[Line]:
        lines = [line for queue in self.queues.values() for line in queue]
        return lines + [line for ways, _ in self.trees.values() for line in ways if line is not None]

    def tree(self, byte: int) -> tuple[list[Line | None], dict[tuple[int, int], bool]]:
        return self.trees.setdefault(self.set_number(byte), ([None] * self.ways, {}))

    def queue(self, byte: int) -> list[Line]:
        return self.queues.setdefault(self.set_number(byte), [])

    def lookup(self, byte: int) -> Line | None:
        lines = self.tree(byte)[0] if self.level.policy == "plru" else self.queue(byte)
        return next((line for line in lines if line is not None and line.start == self.start(byte)), None)

    def point_away(self, byte: int, way: int) -> None:
        """Halve the ways again and again; each half remembers to send the next victim to the other one."""
        low, high = 0, self.ways
        while high - low > 1:
            middle = (low + high) // 2
            self.tree(byte)[1][low, high] = way < middle  # True: the victim is to the right
            low, high = (low, middle) if way < middle else (middle, high)

    def used(self, line: Line) -> None:
        if self.level.policy == "lru":
            self.queue(line.start).remove(line)
            self.queue(line.start).append(line)
        elif self.level.policy == "plru":
            self.point_away(line.start, self.tree(line.start)[0].index(line))

    def put(self, line: Line) -> Line | None:
        """Takes a line in; the one that had to go."""
        if self.level.policy != "plru":
            queue = self.queue(line.start)
            queue.append(line)
            return queue.pop(0) if len(queue) > self.ways else None
        ways, bits = self.tree(line.start)
        if None in ways:
            way = ways.index(None)
        else:
            low, high = 0, self.ways
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if bits.get((low, high), False) else (low, middle)
            way = low
        gone, ways[way] = ways[way], line
        self.point_away(line.start, way)
        return gone

    def drop(self, line: Line) -> None:
        if self.level.policy == "plru":
            ways, _ = self.tree(line.start)
            ways[ways.index(line)] = None
        else:
            self.queue(line.start).remove(line)

    # ---- requests ----

    def read(self, byte: int) -> bool:
        """The sector of `byte` is asked for; whether what a victim level gave up was dirty."""
        line = self.lookup(byte)
        if line is not None and self.sector(byte) in line.valid:
            self.hits += 1
            if self.level.inclusion == "exclusive":
                self.drop(line)
                return bool(line.dirty)
            self.used(line)
            return False
        self.misses += 1
        dirty = self.fetch(byte)
        if self.level.inclusion != "exclusive":
            self.take(byte, dirty)
        return False

    def fetch(self, byte: int) -> bool:
        self.loads += 1
        return self.below.read(byte) if self.below is not None else False

    def write(self, byte: int, size: int, evicted: bool) -> None:
        """`size` bytes from above: an access, one that was passed on, or (`evicted`) a sector that is written back."""
        line = self.lookup(byte)
        present = line is not None and self.sector(byte) in line.valid
        if not evicted:
            self.hits += present
            self.misses += not present
        through = self.level.write == "through"
        if present and line is not None:
            if not through:
                line.dirty.add(self.sector(byte))
            self.used(line)
        elif self.level.inclusion == "exclusive" or self.level.write_miss == "around":
            through = True
        else:
            dirty = False
            if self.level.write_miss == "allocate" and not (evicted and size >= self.level.sector):
                dirty = self.fetch(byte)
            self.take(byte, dirty or not through)
        if through:
            self.passed += 1
            self.passed_bytes += size
            if self.below is not None:
                self.below.write(byte, size, evicted)

    def take(self, byte: int, dirty: bool) -> None:
        """Bring a sector in, and send away what has to go for it."""
        if self.below is not None and self.below.level.inclusion == "exclusive":
            copy = self.below.lookup(byte)
            if copy is not None:
                self.below.drop(copy)
                dirty = dirty or bool(copy.dirty)
        line = self.lookup(byte)
        gone = None
        if line is None:
            line = Line(self.start(byte))
            line.valid.add(self.sector(byte))
            if dirty:
                line.dirty.add(self.sector(byte))
            gone = self.put(line)
        else:
            line.valid.add(self.sector(byte))
            if dirty:
                line.dirty.add(self.sector(byte))
            self.used(line)
        if gone is not None:
            self.evict(gone)

    def evict(self, gone: Line) -> None:
        if self.level.inclusion == "inclusive":
            self.pull_down(gone)
        if self.below is not None and self.below.level.inclusion == "exclusive":
            self.stores += 1
            victim = Line(gone.start, {gone.start}, {gone.start} if gone.dirty else set())
            pushed = self.below.put(victim)
            if pushed is not None:
                self.below.evict(pushed)
            return
        for sector in sorted(gone.dirty):
            self.stores += 1
            if self.below is not None:
                self.below.write(sector, self.level.sector, evicted=True)

    def pull_down(self, gone: Line) -> None:
        """Empty the levels above of the bytes of a line; what they hold dirty crosses all boundaries down to here."""
        dirty: set[int] = set()  # bytes
        inside = range(gone.start, gone.start + self.level.line_bytes)
        for cache in self.above:
            for line in [x for x in cache.everything() if x.start in inside]:
                for sector in line.dirty:
                    dirty |= set(range(sector, sector + cache.level.sector))
                cache.drop(line)
            cache.stores += len({cache.sector(b) for b in dirty})
        gone.dirty |= {self.sector(b) for b in dirty}


def simulate(kernel: Kernel, params: Mapping[str, int], levels: Sequence[CacheLevel]) -> tuple[int, list[Cache]]:
    """(accesses, the levels with their counts) of one execution, flushed at the end."""
    caches: list[Cache] = []
    for level in levels:
        caches.append(Cache(level, list(caches)))
    for upper, lower in pairwise(caches):
        upper.below = lower
    arrays = {a.name: a for a in kernel.arrays if not a.is_scalar}
    longest = max(level.line_bytes for level in levels)
    bases, end = {}, 0
    for a in arrays.values():
        bases[a.name] = end
        size = a.type.bytes
        for d in a.dims:
            size *= d.evaluate(params)
        end += -(-size // longest) * longest
    accesses = 0
    for execution in run(kernel, params):
        for access in execution.accesses:
            array = arrays[access.array]
            byte = bases[array.name] + address(array, access.index, params)
            accesses += 1
            if access.is_write:
                caches[0].write(byte, array.type.bytes, evicted=False)
            else:
                caches[0].read(byte)
    names = sorted(arrays, key=lambda n: bases[n])
    dirty: set[int] = set()
    for cache in caches:
        for line in cache.everything():
            for sector in line.dirty:
                owner = [n for n in names if bases[n] <= sector][-1]
                if arrays[owner].intent != "temp":
                    dirty |= set(range(sector, sector + cache.level.sector))
        cache.stores += len({cache.sector(b) for b in dirty})
    return accesses, caches
