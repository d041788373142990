"""`simulate`: every access of a kernel through a hierarchy of caches, which `cache_levels.py` defines.

Arrays are placed one after another in the order of their declarations, each from the start of a line (of the longest).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Kernel
from roofdsl.loops.streams import streamed_bytes_at
from roofdsl.simulate.cache_levels import CacheLevel, check_levels
from roofdsl.simulate.compiled_kernel import Program, compile_kernel
from roofdsl.simulate.lru_traffic import BYTES_PER_LINE, DEFAULT_MEMORY_BYTES, Progress, check_inside, simulate_lru

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 22
"""The number of accesses between two checks for an interrupt: a tenth of a second or so."""

MOST_BLOCKS = 1 << 46  # a word contains the line number and its sectors


@dataclass(frozen=True)
class LevelTraffic:
    """Traffic across the boundary below a level, and the requests to the level.

    hits, misses: of accesses at the first level, and at other levels of requests from the level above (write-backs are
    not requests). loads, stores: sectors (lines if there are none) across the boundary below, `unit_bytes` each;
    passed: writes that are handed on as they are (write-through, write-around), passed_bytes in total.
    """

    name: str
    unit_bytes: int
    hits: int
    misses: int
    loads: int
    stores: int
    passed: int
    passed_bytes: int

    @property
    def load_bytes(self) -> int:
        return self.loads * self.unit_bytes

    @property
    def store_bytes(self) -> int:
        return self.stores * self.unit_bytes + self.passed_bytes


@dataclass(frozen=True)
class Simulated:
    """One execution through a hierarchy, with a cold start, and a flush at the end.

    Scalars cross every boundary (rule 8): `load_bytes`, `store_bytes` and `bytes` of a level include them, its traffic
    in lines does not. register_bytes: every access at its element's size (rule 10); None if arrays have elements of
    several sizes and repetitions were counted, not simulated. streamed_bytes: those of stores that bypass the caches;
    only the bytes of the last level include them.
    """

    accesses: int
    levels: tuple[LevelTraffic, ...]
    scalar_load_bytes: int
    scalar_store_bytes: int
    register_bytes: int | None
    streamed_bytes: int = 0

    def load_bytes(self, level: int) -> int:
        return self.levels[level].load_bytes + self.scalar_load_bytes

    def store_bytes(self, level: int) -> int:
        last = self.levels[level] is self.levels[-1]
        return self.levels[level].store_bytes + self.scalar_store_bytes + (self.streamed_bytes if last else 0)

    def bytes(self, level: int) -> int:
        """Bytes in both directions across the boundary below a level."""
        return self.load_bytes(level) + self.store_bytes(level)


def simulate(
    kernel: Kernel,
    params: Mapping[str, int],
    levels: Sequence[CacheLevel],
    *,
    progress: Progress | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    skip: bool = True,
    begins: Mapping[str, int] | None = None,
) -> Simulated:
    """Simulate one execution of `kernel`, with its directives applied, at `params`; the registers access the first
    level.

    A single fully associative LRU cache is simulated by `lru_traffic.py`, which skips iterations that repeat earlier
    ones, if `_is_list` allows it; this takes 15 bytes for each line of the arrays. `skip=False` simulates every access.
    The best replacement (`best_replacement.py`) keeps all accesses in memory. In all other cases, the memory needed
    depends on the caches, not on the kernel's sizes. begins: the address of each array, a multiple of the longest line;
    without it, they follow each other. Only caches with sets depend on it. `progress` is called with the number of
    accesses made so far several times a second, and an exception such as KeyboardInterrupt then ends the run. Raises
    CommandError for impossible levels, a missing parameter, a violated assumption, and caches (or accesses, for the
    best replacement) that need more than `memory_bytes`.
    """
    check_levels(levels, kernel)
    if levels[0].policy == "opt":
        return _by_future(kernel, params, levels[0], progress, memory_bytes)
    block = levels[0].sector
    program = compile_kernel(kernel, params, block)
    if skip and program.data is None and _is_list(levels, program, memory_bytes):
        return _by_list(kernel, params, levels[0], progress)
    longest = max(level.line_bytes for level in levels)
    first, end = _placed(program, longest // block) if begins is None else _begun(program, begins, longest, block)
    if end >= MOST_BLOCKS:
        raise CommandError(f"the sizes given to kernel {kernel.name} are too large to simulate")
    sets = _sets(levels, block, max(end, 1), memory_bytes)
    accesses, touched, tallies = _every_access(levels, program, first, end, sets, kernel=kernel.name, progress=progress)
    kept = [(f, f + a.count) for f, a in zip(first, program.layouts, strict=True) if a.array.intent != "temp"]
    _flush(levels, block, sets, tallies, kept)
    found = tuple(
        LevelTraffic(level.name, level.sector, *(int(x) for x in row))
        for level, row in zip(levels, tallies, strict=True)
    )
    return Simulated(accesses, found, *scalar_bytes(kernel), touched, streamed_bytes_at(kernel, params))


def _every_access(
    levels: Sequence[CacheLevel],
    program: Program,
    first: list[int],
    end: int,
    sets: tuple[NDArray[Any], ...],
    *,
    kernel: str,
    progress: Progress | None,
) -> tuple[int, int, NDArray[np.int64]]:
    """Make the accesses of a program, whose arrays begin at the blocks `first` and end at `end`, one after another.

    Returns the number of accesses, the bytes they touched, and the counts of each level; `sets` is left as after the
    last access.
    """
    import numpy as np

    from roofdsl.simulate.general_hierarchy import run_caches
    from roofdsl.simulate.plain_hierarchy import is_plain, run_plain, words_of
    from roofdsl.simulate.walk import RUNNING, STATUS, cursor_of, first_call, tables_of

    tallies = np.zeros((len(levels), 6), dtype=np.int64)
    sizes = np.array([a.array.type.bytes for a in program.layouts], dtype=np.int64)
    stack = np.zeros((64 * (len(levels) + 1), 6), dtype=np.int64)
    tables = tables_of(program, first, [a.per_line for a in program.layouts])
    cursor = cursor_of(program)
    accesses = touched = 0
    plain = np.full(len(sets[1]), -1, dtype=np.int32) if is_plain(levels, end) else None
    claims, out = int(levels[0].write_miss == "claim"), np.zeros(len(levels), dtype=np.int64)
    while cursor[7][STATUS] == RUNNING:
        if plain is None:
            with first_call(run_caches):
                made, volume, _ = run_caches(tables, cursor, CHUNK, tallies, sizes, stack, sets)
        else:
            with first_call(run_plain):
                made, volume, _ = run_plain(tables, cursor, CHUNK, tallies, sizes, claims, out, sets[0], plain)
        accesses, touched = accesses + made, touched + volume
        if progress is not None:
            progress(accesses)
    check_inside(cursor, program, kernel)
    if plain is not None:
        sets[1][:] = words_of(plain)
    return accesses, touched, tallies


MOST_LIST_BYTES = 1 << 30


def _is_list(levels: Sequence[CacheLevel], program: Program, memory_bytes: int) -> bool:
    """Whether `_by_list` can simulate these levels, and its tables are small enough."""
    level = levels[0]
    return (
        len(levels) == 1
        and level.ways is None
        and level.policy == "lru"
        and level.write == "back"
        and level.write_miss != "around"
        and level.sector == level.line_bytes
        and program.lines * BYTES_PER_LINE <= min(memory_bytes, MOST_LIST_BYTES)
    )


def _placed(program: Program, longest: int) -> tuple[list[int], int]:
    """The first block of each array and the end of the last; each array begins with a line of `longest` blocks of its
    own.
    """
    first, end = [], 0
    for layout in program.layouts:
        first.append(end)
        end = -(-(end + layout.count) // longest) * longest
    return first, end


def _begun(program: Program, begins: Mapping[str, int], longest: int, block: int) -> tuple[list[int], int]:
    """The first block of each array at these addresses, and the end of all."""
    first = [begins[layout.array.name] for layout in program.layouts]
    if any(at % longest for at in first):
        raise ValueError(f"arrays begin with a line of {longest} B")
    first = [at // block for at in first]
    ends = [at + layout.count for at, layout in zip(first, program.layouts, strict=True)]
    return first, -(-max(ends, default=0) * block // longest) * longest // block


def _by_list(kernel: Kernel, params: Mapping[str, int], level: CacheLevel, progress: Progress | None) -> Simulated:
    found = simulate_lru(kernel, params, level.lines * level.line_bytes, level.line_bytes, progress=progress)
    begun = sum(a.residencies for a in found.arrays)
    loaded = begun if level.write_miss == "allocate" else begun - sum(a.begun_with_write for a in found.arrays)
    stored = sum(a.stored for a in found.arrays)
    hits = found.accesses - begun
    traffic = LevelTraffic(level.name, level.line_bytes, hits, begun, loaded, stored, 0, 0)
    sizes = {a.array.type.bytes for a in found.arrays}
    register_bytes = found.accesses * sizes.pop() if len(sizes) == 1 else None
    scalars = found.scalar_load_bytes, found.scalar_store_bytes
    return Simulated(found.accesses, (traffic,), *scalars, register_bytes, found.streamed_bytes)


def _by_future(
    kernel: Kernel, params: Mapping[str, int], level: CacheLevel, progress: Progress | None, memory_bytes: int
) -> Simulated:
    from roofdsl.simulate.best_replacement import best_replacement

    found = best_replacement(kernel, params, level, memory_bytes=memory_bytes, progress=progress)
    loaded = found.misses - (found.begun_by_write if level.write_miss == "claim" else 0)
    hits = found.accesses - found.misses
    traffic = LevelTraffic(level.name, level.line_bytes, hits, found.misses, loaded, found.stored, 0, 0)
    streamed = streamed_bytes_at(kernel, params)
    return Simulated(found.accesses, (traffic,), *scalar_bytes(kernel), found.register_bytes, streamed)


def _sets(levels: Sequence[CacheLevel], block: int, blocks: int, memory_bytes: int) -> tuple[NDArray[Any], ...]:
    """The levels in the form of `roofdsl.simulate.replacement`, all empty."""
    import numpy as np

    from roofdsl.simulate import replacement

    table = np.zeros((len(levels), replacement.COLUMNS), dtype=np.int64)
    slots = links = buckets = 0
    rows = []
    for k, level in enumerate(levels):
        sets, ways = _shape(level, -(-blocks * block // level.line_bytes))
        ring = ways > replacement.MOST_SCANNED
        own_buckets = 1 << (2 * sets * ways - 1).bit_length() if ring else 0
        row = {
            replacement.SETS: sets,
            replacement.MASK: sets - 1 if sets & (sets - 1) == 0 else -1,
            replacement.WAYS: ways,
            replacement.LINE: (level.line_bytes // block).bit_length() - 1,
            replacement.SECTOR: (level.sector // block).bit_length() - 1,
            replacement.SECTORS: level.line_bytes // level.sector,
            replacement.SECTOR_BYTES: level.sector,
            replacement.POLICY: {"lru": replacement.LRU, "fifo": replacement.FIFO, "plru": replacement.PLRU}[
                level.policy
            ],
            replacement.THROUGH: level.write == "through",
            replacement.WRITE_MISS: {
                "allocate": replacement.ALLOCATE,
                "claim": replacement.CLAIM,
                "around": replacement.AROUND,
            }[level.write_miss],
            replacement.INCLUSION: {
                "free": replacement.FREE,
                "inclusive": replacement.INCLUSIVE,
                "exclusive": replacement.EXCLUSIVE,
            }[level.inclusion],
            replacement.FIRST_SLOT: slots,
            replacement.RING: ring,
            replacement.FIRST_LINK: links,
            replacement.FIRST_BUCKET: buckets,
            replacement.BUCKET_MASK: own_buckets - 1,
        }
        for column, value in row.items():
            table[k, column] = value
        rows.append((sets, ways, ring, slots, links))
        slots, buckets = slots + sets * ways, buckets + own_buckets
        links += sets * ways if ring else 0
    # words of 8 bytes (and of 4 more in `run_plain`) and bits of 1, five links of 8, buckets of 8
    needed = slots * 13 + links * 40 + buckets * 8
    if needed > memory_bytes:
        raise CommandError(
            f"simulating caches of {slots:,} lines takes {needed:,} B of memory",
            f"the limit is {memory_bytes:,} B; use smaller caches or longer lines",
        )
    newest, newer, older, chain, lowest = _rings(rows, links)
    words = np.full(slots, -1, dtype=np.int64)
    tree = np.zeros(slots, dtype=np.uint8)
    return table, words, tree, newest, newer, older, chain, np.full(max(1, buckets), -1, dtype=np.int64), lowest


def _rings(rows: Sequence[tuple[int, int, bool, int, int]], links: int) -> tuple[NDArray[Any], ...]:
    """The slots of each set of a level with many ways, linked in a ring: newest, newer, older, chain, lowest.

    rows: (sets, ways, whether they are linked, the first slot, the first link) of each level.
    """
    import numpy as np

    newest, newer, older, chain, lowest = (np.full(max(1, links), -1, dtype=np.int64) for _ in range(5))
    for sets, ways, ring, first, link in rows:
        if ring:
            numbers = np.arange(first, first + sets * ways).reshape(sets, ways)
            newest[link : link + sets] = lowest[link : link + sets] = numbers[:, 0]
            older[link : link + sets * ways] = np.roll(numbers, -1, axis=1).reshape(-1)
            newer[link : link + sets * ways] = np.roll(numbers, 1, axis=1).reshape(-1)
    return newest, newer, older, chain, lowest


def _shape(level: CacheLevel, lines: int) -> tuple[int, int]:
    """The numbers of sets and ways; no more of them than `lines` lines can use."""
    if level.ways is not None:
        return min(level.sets, max(lines, 1)), level.ways
    if level.policy == "plru":
        return 1, min(level.lines, 1 << max(lines - 1, 0).bit_length())
    return 1, min(level.lines, max(lines, 1))


def _flush(
    levels: Sequence[CacheLevel],
    block: int,
    sets: tuple[NDArray[Any], ...],
    tallies: NDArray[np.int64],
    arrays: Sequence[tuple[int, int]],
) -> None:
    """Counts dirty data as stored across every boundary below it; `arrays` are the blocks of arrays that are kept, in
    any order.
    """
    import numpy as np

    from roofdsl.simulate import replacement
    from roofdsl.simulate.general_hierarchy import STORES

    table, words = sets[0], sets[1]
    kept = np.array(sorted(arrays), dtype=np.int64).reshape(-1, 2)
    waiting = np.zeros(0, dtype=np.int64)  # dirty blocks of the levels so far
    ends = [int(x) for x in table[1:, replacement.FIRST_SLOT]] + [len(words)]
    for k, level in enumerate(levels):
        own = words[int(table[k, replacement.FIRST_SLOT]) : ends[k]]
        own = own[own >= 0]
        per_sector = level.sector // block
        found = [waiting]
        for s in range(level.line_bytes // level.sector):
            lines = own[own >> (replacement.DIRTY + s) & 1 == 1] >> replacement.TAG
            starts = lines * (level.line_bytes // block) + s * per_sector
            found.append((starts[:, None] + np.arange(per_sector)).reshape(-1))
        waiting = np.unique(np.concatenate(found))
        if len(kept):
            place = np.maximum(np.searchsorted(kept[:, 0], waiting, side="right") - 1, 0)
            waiting = waiting[(waiting >= kept[place, 0]) & (waiting < kept[place, 1])]
        else:
            waiting = waiting[:0]
        tallies[k, STORES] += len(np.unique(waiting // per_sector))
