"""The compiled hierarchy of caches, walked by a kernel's own loops.

`hierarchy.py` has the interface, and `cache_levels.py` defines what is simulated. Addresses are block numbers; a block
is a sector of the first level. Requests from one level to the next are kept on a stack, so that a request is answered
before the line that it evicts is written back. The walk (`walk.py`) also follows subscripts that read index arrays.
Imports numba.
"""

from __future__ import annotations

from roofdsl.simulate.replacement import (
    ALLOCATE,
    AROUND,
    DIRTY,
    EXCLUSIVE,
    FIRST_LINK,
    FIRST_SLOT,
    INCLUSION,
    INCLUSIVE,
    LINE,
    PLRU,
    POLICY,
    RING,
    SECTOR,
    SECTOR_BYTES,
    SECTORS,
    TAG,
    THROUGH,
    WAYS,
    WRITE_MISS,
    Sets,
    find,
    insert,
    promote,
    remove,
    set_of,
)
from roofdsl.simulate.walk import (
    COUNT,
    FIRST,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    compiled,
    inlined,
    same_blocks,
)

# Columns of the tallies of a level.
HITS, MISSES, LOADS, STORES, PASSED, PASSED_BYTES = range(6)
# Requests: (kind, level, block, bytes or 1 for dirty, whether the line is present, its set).
READ, WRITE, WRITE_BACK, INSERT = range(4)


def _back_invalidate(k: int, line: int, moved: int, tallies: Ints, sets: Sets) -> int:
    """Removes a line of level `k` from the levels above; returns the line's dirty sectors, including theirs.

    Data that are dirty in an upper level cross every boundary on their way to level k, where they count as stored.
    """
    levels, words = sets[0], sets[1]
    begin, end = line << levels[k, LINE], (line + 1) << levels[k, LINE]
    blocks = 0  # dirty blocks of the line, from all levels so far
    for j in range(k):
        level = levels[j]
        for part in range(begin >> level[LINE], end >> level[LINE]):
            where = set_of(level, part)
            slot = find(level, part, where, sets)
            if slot >= 0:
                for s in range(level[SECTORS]):
                    if words[slot] >> (DIRTY + s) & 1:
                        offset = (part << level[LINE]) + (s << level[SECTOR]) - begin
                        blocks |= ((1 << (1 << level[SECTOR])) - 1) << offset
                remove(level, slot, where, sets)
        for offset in range(0, end - begin, 1 << level[SECTOR]):
            if blocks >> offset & ((1 << (1 << level[SECTOR])) - 1):
                tallies[j, STORES] += 1
    for s in range(levels[k, SECTORS]):
        if blocks >> (s << levels[k, SECTOR]) & ((1 << (1 << levels[k, SECTOR])) - 1):
            moved |= 1 << s
    return int(moved)


back_invalidate = compiled(_back_invalidate)


def _evicted(k: int, gone: int, waiting: int, tallies: Ints, stack: Ints, sets: Sets) -> int:  # noqa: PLR0917
    """Handles a line that level `k` evicted; returns the number of requests then waiting."""
    levels = sets[0]
    level = levels[k]
    line, moved = gone >> TAG, gone >> DIRTY & 255
    if level[INCLUSION] == INCLUSIVE:
        moved = back_invalidate(k, line, moved, tallies, sets)
    first, is_last = line << level[LINE], k + 1 == levels.shape[0]
    # A victim cache is filled with what is evicted above it, including clean lines.
    if not is_last and levels[k + 1, INCLUSION] == EXCLUSIVE:
        tallies[k, STORES] += 1
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = INSERT, k + 1, first
        stack[waiting, 3], stack[waiting, 4] = 1 if moved else 0, 0
        stack[waiting, 5] = set_of(levels[k + 1], first >> levels[k + 1, LINE])
        return waiting + 1
    for s in range(level[SECTORS] - 1, -1, -1):  # the lowest sector ends up on top, and is written back first
        if moved >> s & 1:
            tallies[k, STORES] += 1
            if not is_last:
                stack[waiting, 0], stack[waiting, 1] = WRITE_BACK, k + 1
                stack[waiting, 2], stack[waiting, 3] = first + (s << level[SECTOR]), level[SECTOR_BYTES]
                waiting += 1
    return waiting


evicted = inlined(_evicted)


def _serve_request(kind: int, block: int, size: int, tallies: Ints, stack: Ints, sets: Sets) -> None:  # noqa: PLR0917
    """Serves a read, or a write of `size` bytes, and everything that follows from it."""
    levels, words = sets[0], sets[1]
    depth = levels.shape[0]
    carried = 0  # whether the line that a victim cache passes up is dirty
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = kind, 0, block, size
    waiting = 1
    while waiting:
        waiting -= 1
        kind, k, at, extra = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        level = levels[k]
        line = at >> level[LINE]
        bit = 1 << ((at >> level[SECTOR]) & (level[SECTORS] - 1))
        exclusive = level[INCLUSION] == EXCLUSIVE
        if kind == INSERT:
            # No line is both in a victim cache and in the level above it: the victim cache gives up its copy, and the
            # line above is dirty if that copy was.
            if k + 1 < depth and levels[k + 1, INCLUSION] == EXCLUSIVE:
                below = levels[k + 1]
                there = set_of(below, line)
                copy = find(below, line, there, sets)
                if copy >= 0:
                    carried |= 1 if words[copy] >> DIRTY & 255 else 0
                    remove(below, copy, there, sets)
                extra |= carried
                carried = 0
            bits = bit | bit << DIRTY if extra else bit
            where = stack[waiting, 5]
            if stack[waiting, 4]:  # the line is present, but the sector is not
                slot = find(level, line, where, sets)
                words[slot] |= bits
                promote(level, slot, where, sets)
                continue
            gone = insert(level, where, line << TAG | bits, sets)
            if gone >= 0:
                waiting = evicted(k, gone, waiting, tallies, stack, sets)
            continue
        where = set_of(level, line)
        slot = find(level, line, where, sets)
        present = slot >= 0 and words[slot] & bit != 0
        if kind == READ:
            tallies[k, HITS if present else MISSES] += 1
            if not present:
                tallies[k, LOADS] += 1
                if not exclusive:
                    # The popped row, with its level and block, becomes the insertion. The read from below goes on top
                    # of it, and is answered first.
                    stack[waiting, 0], stack[waiting, 3] = INSERT, 0
                    stack[waiting, 4], stack[waiting, 5] = slot >= 0, where
                    waiting += 1
                if k + 1 < depth:
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = READ, k + 1, at
                    waiting += 1
            elif exclusive:
                # for the insertion into the level above, which is next on the stack
                carried = 1 if words[slot] >> DIRTY & 255 else 0
                remove(level, slot, where, sets)
            else:
                promote(level, slot, where, sets)
            continue
        if kind == WRITE:
            tallies[k, HITS if present else MISSES] += 1
        enters = not present and not exclusive and level[WRITE_MISS] != AROUND
        if present:
            if not level[THROUGH]:
                words[slot] |= bit << DIRTY
            promote(level, slot, where, sets)
        if level[THROUGH] or not (present or enters):
            tallies[k, PASSED] += 1
            tallies[k, PASSED_BYTES] += extra
            if k + 1 < depth:  # goes down last, so it is below the rest of the stack
                stack[waiting, 0], stack[waiting, 1] = kind, k + 1
                waiting += 1
        if enters:
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = INSERT, k, at
            stack[waiting, 3], stack[waiting, 4], stack[waiting, 5] = 1 - level[THROUGH], slot >= 0, where
            waiting += 1
            # A write-back that overwrites a whole sector need not load it first.
            if level[WRITE_MISS] == ALLOCATE and not (kind == WRITE_BACK and extra >= level[SECTOR_BYTES]):
                tallies[k, LOADS] += 1
                if k + 1 < depth:
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = READ, k + 1, at
                    waiting += 1


serve = inlined(_serve_request)


def _run_caches(  # noqa: PLR0917
    tables: Tables, cursor: Cursor, budget: int, tallies: Ints, element_bytes: Ints, stack: Ints, sets: Sets
) -> tuple[int, int, int]:
    """Continues for about `budget` accesses or steps of the walk: (accesses, their bytes, steps)."""
    references = tables[4]
    flat, stride, left, block, control = cursor[3], cursor[4], cursor[5], cursor[6], cursor[7]
    levels, words, newest = sets[0], sets[1], sets[3]
    top = levels[0]
    listed, ring = top[POLICY] != PLRU, top[RING]  # a tree does not record which slot was the last
    base, ways, link = top[FIRST_SLOT], top[WAYS], top[FIRST_LINK]
    line_shift, sector_shift, sectors, through = top[LINE], top[SECTOR], top[SECTORS], top[THROUGH]
    accesses = touched = steps = hits = 0
    while accesses + steps < budget and control[STATUS] == RUNNING:
        if control[REMAINING] == 0:
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (budget - accesses) // count + 1)
        for r in range(count):
            left[r] = 0
            touched += n * element_bytes[references[first + r, 1]]
        done = 0
        while done < n:
            same = same_blocks(tables, cursor, first, count, n - done)
            again, quiet = same, False
            while again > 0 and not quiet:
                quiet = True
                for r in range(count):
                    write = references[first + r, 2]
                    if not (write and through):
                        line = block[r] >> line_shift
                        where = set_of(top, line)
                        bit = 1 << ((block[r] >> sector_shift) & (sectors - 1))
                        # a hit in the newest slot of a row or ring changes nothing
                        slot = newest[link + where] if ring else base + where * ways
                        if not listed or words[slot] >> TAG != line or not words[slot] & bit:
                            slot = find(top, line, where, sets)
                            slot = promote(top, slot, where, sets) if slot >= 0 and words[slot] & bit else -1
                        if slot >= 0:
                            hits += 1
                            if write:
                                words[slot] |= bit << DIRTY
                            continue
                    quiet = False
                    size = element_bytes[references[first + r, 1]]
                    serve(WRITE if write else READ, block[r], size, tallies, stack, sets)
                again -= 1
            hits += again * count  # nothing changes any more, so all of these hit
            for r in range(count):
                flat[r] += stride[r] * same
                left[r] -= same
            done += same
        accesses += n * count
        control[REMAINING] -= n
    tallies[0, HITS] += hits
    return accesses, touched, steps


run_caches = compiled(_run_caches)
