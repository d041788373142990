"""Sets of cache slots, compiled into the loops that use them: searching, ordering, emptying and replacing slots.

The slot to replace is chosen under LRU, FIFO or tree-PLRU. Two faster loops have an LRU of their own: that of caches
without special features (`plain_hierarchy`), and that of a single fully associative cache (`lru_list`).

A slot holds one word: the line number in the high bits, then a byte of dirty sectors and a byte of valid ones; -1 is an
empty slot. In a level with few ways, a set is a row of words from the newest to the oldest, which a hit shifts under
LRU. A search reads these words and nothing else, which matters for large caches. In a level with many ways, a set is a
ring of linked slots from the newest to the oldest, searched through a hash table. Under tree-PLRU, words stay in place,
with a binary tree over them. Under other policies, empty slots are at the old end.
"""

from __future__ import annotations

from typing import Any

from roofdsl.simulate.walk import Ints, inlined

# Columns of the parameters of a level. MASK is sets - 1, or -1 if the number of sets is not a power of two; LINE and
# SECTOR are logarithms of numbers of blocks. Slots, sets and hash buckets are in one array each for all levels; those
# of a level begin at FIRST_... (a set has an entry of its own only in ring levels).
(
    SETS,
    MASK,
    WAYS,
    LINE,
    SECTOR,
    SECTORS,
    SECTOR_BYTES,
    POLICY,
    THROUGH,
    WRITE_MISS,
    INCLUSION,
    FIRST_SLOT,
    RING,
    FIRST_LINK,
    FIRST_BUCKET,
    BUCKET_MASK,
    COLUMNS,
) = range(17)
LRU, FIFO, PLRU = range(3)
ALLOCATE, CLAIM, AROUND = range(3)
FREE, INCLUSIVE, EXCLUSIVE = range(3)
MOST_SCANNED = 32  # the maximum number of ways for which a set is a row
TAG, DIRTY = 16, 8  # shifts of a word's parts; its valid sectors are the lowest byte
GOLDEN = -7046029254386353131  # 2**64 / golden ratio

# (levels, words, tree, newest of each ring, newer, older, chain, buckets, lowest slot that may be empty)
Sets = tuple[Any, ...]


def _set_of(level: Ints, line: int) -> int:
    return int(line & level[MASK] if level[MASK] >= 0 else line % level[SETS])


set_of = inlined(_set_of)


def _bucket(level: Ints, line: int) -> int:
    return int(level[FIRST_BUCKET] + (((line * GOLDEN) >> 31) & level[BUCKET_MASK]))


bucket = inlined(_bucket)


def _find(level: Ints, line: int, where: int, sets: Sets) -> int:
    """The slot of a line in the set that it maps to, or -1."""
    words = sets[1]
    base = level[FIRST_SLOT] + where * level[WAYS]
    if level[RING]:
        shift = level[FIRST_LINK] - level[FIRST_SLOT]
        chain, buckets = sets[6], sets[7]
        slot = buckets[bucket(level, line)]
        while slot >= 0 and words[slot] >> TAG != line:
            slot = chain[slot + shift]
        return int(slot)
    row = words[base : base + level[WAYS]]  # counted from 0, so that indices need no check of their sign
    for s in range(row.shape[0]):
        if row[s] >> TAG == line:
            return int(base + s)
    return -1


find = inlined(_find)


def _to_front(level: Ints, slot: int, where: int, sets: Sets) -> None:
    """Makes a slot the newest of its ring."""
    newest, newer, older = sets[3], sets[4], sets[5]
    shift = level[FIRST_LINK] - level[FIRST_SLOT]
    at = level[FIRST_LINK] + where
    head = newest[at]
    if slot == head:
        return
    before, after = newer[slot + shift], older[slot + shift]
    older[before + shift] = after
    newer[after + shift] = before
    tail = newer[head + shift]
    older[tail + shift] = slot
    newer[slot + shift] = tail
    older[slot + shift] = head
    newer[head + shift] = slot
    newest[at] = slot


to_front = inlined(_to_front)


def _point_away(level: Ints, slot: int, where: int, sets: Sets) -> None:
    """Turns the bits of a set's tree on the path to `slot` away from it."""
    tree = sets[2]
    base = level[FIRST_SLOT] + where * level[WAYS]
    node = slot - base + level[WAYS]
    while node > 1:
        tree[base + (node >> 1)] = 1 - (node & 1)
        node >>= 1


point_away = inlined(_point_away)


def _promote(level: Ints, slot: int, where: int, sets: Sets) -> int:
    """Updates the order of a set after a hit; returns the slot that then holds the line."""
    if level[POLICY] == LRU:
        if level[RING]:
            to_front(level, slot, where, sets)
            return slot
        words = sets[1]
        base = level[FIRST_SLOT] + where * level[WAYS]
        row = words[base : slot + 1]
        word = row[row.shape[0] - 1]
        for s in range(row.shape[0]):
            next_word = row[s]
            row[s] = word
            word = next_word
        return int(base)
    if level[POLICY] == PLRU:
        point_away(level, slot, where, sets)
    return slot


promote = inlined(_promote)


def _unhash(level: Ints, slot: int, sets: Sets) -> None:
    words, chain, buckets = sets[1], sets[6], sets[7]
    shift = level[FIRST_LINK] - level[FIRST_SLOT]
    b = bucket(level, words[slot] >> TAG)
    at = buckets[b]
    if at == slot:
        buckets[b] = chain[slot + shift]
        return
    while chain[at + shift] != slot:
        at = chain[at + shift]
    chain[at + shift] = chain[slot + shift]


unhash = inlined(_unhash)


def _remove(level: Ints, slot: int, where: int, sets: Sets) -> None:
    """Empties a slot; it becomes the oldest of its set, or in a tree a candidate for the lowest empty way."""
    words, newest, older, lowest = sets[1], sets[3], sets[5], sets[8]
    at, shift = level[FIRST_LINK] + where, level[FIRST_LINK] - level[FIRST_SLOT]
    if level[RING]:
        unhash(level, slot, sets)
    elif level[POLICY] != PLRU:
        last = level[FIRST_SLOT] + (where + 1) * level[WAYS] - 1
        for s in range(slot, last):
            words[s] = words[s + 1]
        words[last] = -1
        return
    words[slot] = -1
    if level[RING]:
        if level[POLICY] == PLRU:
            lowest[at] = min(lowest[at], slot)
        elif slot == newest[at]:
            newest[at] = older[slot + shift]
        else:
            head = newest[at]  # the place before it is that of the oldest: slots form a ring
            to_front(level, slot, where, sets)
            newest[at] = head


remove = inlined(_remove)


def _tree_victim(level: Ints, where: int, sets: Sets) -> int:
    """The lowest empty slot of a set, or the one to which its tree points."""
    words, tree, lowest = sets[1], sets[2], sets[8]
    base = level[FIRST_SLOT] + where * level[WAYS]
    slot = base
    if level[RING]:
        slot = lowest[level[FIRST_LINK] + where]
    while slot < base + level[WAYS] and words[slot] >= 0:
        slot += 1
    if level[RING]:
        lowest[level[FIRST_LINK] + where] = slot
    if slot < base + level[WAYS]:
        return int(slot)
    node = 1
    while node < level[WAYS]:
        node = 2 * node + tree[base + node]
    return int(base + node - level[WAYS])


tree_victim = inlined(_tree_victim)


def _insert(level: Ints, where: int, word: int, sets: Sets) -> int:
    """Inserts a line that is not present into its set as the newest; returns the word that it replaced, or -1."""
    words, newest, newer, chain, buckets = sets[1], sets[3], sets[4], sets[6], sets[7]
    base = level[FIRST_SLOT] + where * level[WAYS]
    if not level[RING] and level[POLICY] != PLRU:
        row = words[base : base + level[WAYS]]
        for s in range(row.shape[0]):
            next_word = row[s]
            row[s] = word
            word = next_word
        return int(word)
    at, shift = level[FIRST_LINK] + where, level[FIRST_LINK] - level[FIRST_SLOT]
    slot = tree_victim(level, where, sets) if level[POLICY] == PLRU else newer[newest[at] + shift]
    gone = words[slot]
    if level[RING]:
        if gone >= 0:
            unhash(level, slot, sets)
        b = bucket(level, word >> TAG)
        chain[slot + shift] = buckets[b]
        buckets[b] = slot
        newest[at] = slot  # the oldest of a ring becomes the newest
    words[slot] = word
    if level[POLICY] == PLRU:
        point_away(level, slot, where, sets)
    return int(gone)


insert = inlined(_insert)
