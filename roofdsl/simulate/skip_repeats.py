"""Skipping iterations of a loop that repeat earlier ones on renamed lines, for an LRU list of lines of one size.

LRU does not depend on the names of lines. Let an iteration of a loop (or a block of several) be the one before it with
every line x renamed to x + s(x), and let the list before it be the list before the earlier one, renamed by the same s.
Then it hits and misses the same lines under their new names, and the list after it is the earlier one's, renamed. The
same holds for everything that follows, as long as iterations continue to be copies and no two lines get the same name.
These iterations are counted by multiplication, and the list after them is the present one renamed (Morelli and Reineke,
"Warping cache simulation of polyhedral programs", PLDI 2022, who do this for caches with sets).

Here only the top of the list has to be the same up to names, down to the deepest line that the block touches. Lines
below it no longer matter: each block pushes as many onto them as it misses, and what exceeds the cache size is evicted.
This holds as long as no missed line is among them, which is checked. If a block touches more than the cache holds, the
top is the whole list.

A line's shift s(x) is that of the references that touch it (`shifts.py`), or if none does, the difference of its places
in the two lists. Everything that is skipped has been shown to repeat; anything else is simulated. Imports numba.
"""

from __future__ import annotations

from roofdsl.simulate.line_renaming import (
    ALIKE,
    CLASH,
    Loops,
    Names,
    families_of,
    name,
    replay,
    until_one_returns,
    until_two_meet,
)
from roofdsl.simulate.lru_list import (
    ACCESSES,
    EPOCH,
    HELD_BYTES,
    MISSES,
    STEPS,
    STORED,
    TOUCHES,
    WRITTEN,
    run_lru,
)
from roofdsl.simulate.skipped_list import Cache, skip
from roofdsl.simulate.walk import (
    ALARM,
    BOUNDARY,
    CULPRIT,
    FRESH,
    NEVER,
    RUNNING,
    STATUS,
    STRIDE,
    Cursor,
    Ints,
    Tables,
    compiled,
)

# Columns of a loop's notes. The loop repeats itself after PERIOD iterations, which begin at instruction BODY. A block
# has BLOCK iterations; if it is VALID, the first KEPT of HELD lines were noted at its beginning, never more than MOST.
# SPENT is the cost of the looks and SAVED what they saved, in simulated lines. DEEPEST was the length of the top in the
# last look.
PERIOD, BODY, BLOCK, VALID, KEPT, HELD, MOST, BEGIN_EPOCH, BEGIN_ACCESSES, BEGIN_STEPS, BEGIN_TOUCHES = range(11)
SPENT, SAVED, DEEPEST, NOTES = 11, 12, 13, 14
FIRST_KEPT = 64
FREE = 4096  # lines that a loop may spend before it has saved any
TOO_FEW_KEPT = -1


def _begin_block(loop: int, cursor: Cursor, cache: Cache, loops: Loops) -> None:
    """Records the list and the counts at the boundary that a loop has reached."""
    own, links, totals = loops.notes[loop], cache.links, cache.totals
    own[HELD] = totals[HELD_BYTES] // cache.line_bytes[0]
    own[KEPT] = min(own[MOST], own[HELD])
    line = links[-1, 0]
    for q in range(own[KEPT]):
        loops.order[loop, q] = line
        loops.dirty[loop, q] = cache.flags[line] & WRITTEN
        line = links[line, 0]
    loops.order[loop, own[KEPT]] = line  # the first line that is not kept, or the end of the list
    totals[EPOCH] += 1
    cache.stamp[links[-1, 0]] = totals[EPOCH]  # touching the newest line does not stamp it again
    own[VALID], own[BEGIN_EPOCH], own[BEGIN_ACCESSES] = 1, totals[EPOCH], totals[ACCESSES]
    own[BEGIN_STEPS], own[BEGIN_TOUCHES] = totals[STEPS], totals[TOUCHES]
    for a in range(cache.tallies.shape[0]):
        for c in range(3):
            loops.counts[loop, a, c] = cache.tallies[a, c]
    for k in range(cursor[0].shape[0]):
        loops.entered[loop, k] = cursor[0][k]
    own[SPENT] += own[KEPT]


begin_block = compiled(_begin_block)


def _top_is_alike(  # noqa: PLR0917
    loop: int, deepest: int, whole: bool, blocks: int, cache: Cache, loops: Loops, names: Names
) -> bool:
    """Whether the first `deepest` lines of the list are those at the beginning of the block, up to names. Each place
    must have a line of the same array, clean or dirty as before. If all references to an array move alike, the shift of
    a line that the block touched (of any line, if the top is the `whole` list) is known beforehand and must be exactly
    that.
    """
    kinds, epoch = loops.kinds[loop], loops.notes[loop, BEGIN_EPOCH]
    for q in range(deepest - 1, -1, -1):
        x, y = loops.order[loop, q], names.now[q]
        a = cache.owner[x]
        if cache.owner[y] != a or loops.dirty[loop, q] != cache.flags[y] & WRITTEN:
            return False
        if kinds[a] == ALIKE and y - x != loops.alike[loop, a] * blocks and (whole or cache.stamp[x] >= epoch):
            return False
    return True


top_is_alike = compiled(_top_is_alike)


def _name_lines(  # noqa: PLR0917
    loop: int,
    v: int,
    deepest: int,
    new: int,
    blocks: int,
    tables: Tables,
    cursor: Cursor,
    second: Cursor,
    cache: Cache,
    loops: Loops,
    names: Names,
) -> int:
    """Gives every line of the block and of the top its shift: returns the number of lines with one, or CLASH.

    Every line that the block touches, or that is in the top, has one shift, and a renamed line has the same one.
    Otherwise, two lines could swap names on the way, and the block after the next would not be a copy.
    """
    order, now, kinds, owner = loops.order[loop], names.now, loops.kinds[loop], cache.owner
    own, touches = loops.notes[loop], cache.totals[TOUCHES]
    names.attempt[0] += 1
    attempt = names.attempt[0]
    # If references to one array move by several shifts, a line's place in the list does not show which one it has. The
    # block is walked through once more, by a separate cursor, and each line takes the shift of the reference that
    # touches it.
    known = 0
    if loops.mixed[loop]:
        most = 4 * (touches - own[BEGIN_TOUCHES]) + FREE
        known, passed = replay(loop, v, tables, cursor, second, own[BODY], blocks, most, loops, names)
        own[SPENT] += passed
    for q in range(deepest):
        if known == CLASH:
            return CLASH
        names.old[order[q]] = attempt
        known = name(order[q], now[q] - order[q], known, names)
    for q in range(deepest + new):
        if known == CLASH:
            return CLASH
        y = now[q]
        if kinds[owner[y]] == ALIKE and names.old[y] != attempt:
            known = name(y, loops.alike[loop, owner[y]] * blocks, known, names)
        elif names.seen[y] != attempt:
            return CLASH
    if known == CLASH:
        return CLASH
    # A line in the old top is renamed to the one in its place, which moves on by the same shift in the next block.
    for q in range(deepest):
        if names.shift[now[q]] != names.shift[order[q]]:
            return CLASH
    return int(known)


name_lines = compiled(_name_lines)


def _until_one_leaves(size: int, most: int, cache: Cache, names: Names) -> int:
    """The number of blocks, at most `most`, that can be skipped before a name of the first `size` lines would leave its
    array.

    Records the shifts of these lines as their moves.
    """
    for q in range(size):
        y = names.now[q]
        a = cache.owner[y]
        names.moves[q] = names.shift[y]
        if names.shift[y] > 0:
            most = min(most, (cache.bounds[a, 1] - y) // names.shift[y])
        elif names.shift[y] < 0:
            most = min(most, (y - cache.bounds[a, 0]) // -names.shift[y])
    return int(most)


until_one_leaves = compiled(_until_one_leaves)


def _count_skipped(loop: int, most: int, whole: bool, cache: Cache, loops: Loops) -> None:
    """Counts each of `most` skipped blocks like the last one.

    Stored lines depend on the lines evicted, which are not the block's own; `skip` has counted them, unless the top is
    the `whole` list.
    """
    own, tallies, totals = loops.notes[loop], cache.tallies, cache.totals
    for a in range(tallies.shape[0]):
        for c in range(3):
            if c != STORED or whole:
                tallies[a, c] += most * (tallies[a, c] - loops.counts[loop, a, c])
    totals[ACCESSES] += most * (totals[ACCESSES] - own[BEGIN_ACCESSES])
    totals[STEPS] += most * (totals[STEPS] - own[BEGIN_STEPS])
    own[SAVED] += most * (totals[TOUCHES] - own[BEGIN_TOUCHES])


count_skipped = compiled(_count_skipped)


def _look(  # noqa: PLR0917
    loop: int,
    v: int,
    remaining: int,
    tables: Tables,
    cursor: Cursor,
    second: Cursor,
    cache: Cache,
    loops: Loops,
    names: Names,
) -> int:
    """Skips blocks if the one that ends here repeats: returns the number of skipped blocks, or TOO_FEW_KEPT."""
    links, stamp, owner, tallies, totals = cache.links, cache.stamp, cache.owner, cache.tallies, cache.totals
    order, now, own = loops.order[loop], names.now, loops.notes[loop]
    capacity = names.then.shape[0]
    kept, before, epoch = own[KEPT], own[HELD], own[BEGIN_EPOCH]
    held = totals[HELD_BYTES] // cache.line_bytes[0]
    # Each miss of the block put one new line on top and pushed the others down by one.
    new = 0
    for a in range(tallies.shape[0]):
        new += tallies[a, MISSES] - loops.counts[loop, a, MISSES]
    # How far down the block reached in the old list. Deeper lines took no part in it, whatever their names.
    deepest = kept
    while deepest > 0 and stamp[order[deepest - 1]] < epoch:
        deepest -= 1
    # From the present list: the old top pushed down, the new lines, and one more to check that nothing below has moved.
    listed, line = 0, links[-1, 0]
    while listed < min(held, kept + new + 1):
        now[listed] = line
        line = links[line, 0]
        listed += 1
    own[SPENT] += listed
    # If nothing below the kept part was touched, the line there has only been pushed down.
    below = order[kept]
    complete = kept == before or (kept + new < listed and now[kept + new] == below and stamp[below] < epoch)
    # No touched line was evicted if nothing was, or if an untouched line is still held.
    whole = deepest + new > held or not (
        held == before + new or (deepest + new < listed and stamp[now[deepest + new]] < epoch)
    )
    # The relevant part is deeper than what was noted at the beginning of the block, and cannot be compared: another
    # block is simulated with more noted.
    if kept < before and (whole or not complete):
        return TOO_FEW_KEPT
    # A list that has grown is not the earlier one under other names, since a renaming keeps its length.
    if whole:
        if held != before:
            return 0
        deepest, new = held, 0
    own[DEEPEST] = deepest
    blocks = own[BLOCK] // own[PERIOD]
    if not top_is_alike(loop, deepest, whole, blocks, cache, loops, names):
        return 0
    known = name_lines(loop, v, deepest, new, blocks, tables, cursor, second, cache, loops, names)
    if known == CLASH:
        return 0
    # How long this continues: until the loop ends, until lines of different shifts would get the same name, until a
    # name would leave its array, or until an evicted line comes back. The last block is simulated, so that no access
    # outside an array is missed.
    most = remaining // own[BLOCK] - 1
    n = families_of(known, owner, names)
    own[SPENT] += 2 * known
    if n == CLASH:
        return 0
    most = until_two_meet(known, n, most, owner, names)
    most = until_one_leaves(deepest + new, most, cache, names)
    if most < 1:
        return 0
    while listed < held:  # from here on, the whole list counts, since it is rebuilt
        now[listed] = line
        line = links[line, 0]
        listed += 1
    if new:
        most = until_one_returns(deepest, new, held, capacity, most, n, owner, names)
    own[SPENT] += 2 * held
    if most < 1:
        return 0
    skip(most, deepest, new, held, whole, epoch, cache, names)
    count_skipped(loop, most, whole, cache, loops)
    return int(most)


look = compiled(_look)


def _at_boundary(tables: Tables, cursor: Cursor, second: Cursor, cache: Cache, loops: Loops, names: Names) -> None:  # noqa: PLR0917
    """The beginning of an iteration for which a loop has set its alarm: examines the block that ends, and begins
    another.
    """
    env, stops, control, alarms = cursor[0], cursor[1], cursor[7], cursor[8]
    control[STATUS] = RUNNING
    v = control[CULPRIT]
    loop = loops.of_variable[v]
    own, step, touches = loops.notes[loop], alarms[v, STRIDE], cache.totals[TOUCHES]
    remaining = (stops[v] - env[v] + step - 1) // step
    if alarms[v, FRESH]:
        alarms[v, FRESH], own[VALID] = 0, 0
        # the length from earlier executions, or a fourth of this one if that is less
        own[BLOCK] = max(1, min(own[BLOCK], remaining // 4) // own[PERIOD]) * own[PERIOD]
    if own[VALID]:
        own[VALID] = 0
        skipped = look(loop, v, remaining, tables, cursor, second, cache, loops, names)
        if skipped > 0:
            env[v] += skipped * own[BLOCK] * step
            remaining -= skipped * own[BLOCK]
            # Later looks need no more noted lines than this. A block becomes shorter if it makes more touches than the
            # number of noted lines, and longer (below) if it makes less than half as many.
            own[MOST] = min(own[MOST], max(FIRST_KEPT, 2 * own[DEEPEST]))
            if touches - own[BEGIN_TOUCHES] > own[KEPT]:
                own[BLOCK] = max(1, own[BLOCK] // own[PERIOD] // 2) * own[PERIOD]
        elif skipped == TOO_FEW_KEPT:
            own[MOST] = min(names.then.shape[0], 4 * own[MOST])
        elif 2 * (touches - own[BEGIN_TOUCHES]) < own[KEPT]:
            own[BLOCK] += own[BLOCK]
    if remaining < 3 * own[BLOCK]:  # one to examine, one to skip, one to leave
        alarms[v, ALARM] = NEVER
        return
    alarms[v, ALARM] = env[v] + own[BLOCK] * step
    # Looks may cost what they saved, an eighth of all simulated touches, and FREE.
    if own[SPENT] <= own[SAVED] + touches // 8 + FREE:
        begin_block(loop, cursor, cache, loops)


at_boundary = compiled(_at_boundary)


def _run_skipping(  # noqa: PLR0917
    tables: Tables,
    cursor: Cursor,
    second: Cursor,
    budget: int,
    line_bytes: Ints,
    cache_bytes: int,
    cache: Cache,
    loops: Loops,
    names: Names,
) -> int:
    """Like `run_lru`, but skips iterations that repeat; continues for about `budget` simulated accesses, or until looks
    at the list have cost as much. Returns the cost of these looks.
    """
    links, flags, stamp, owner, tallies, totals = cache[:6]
    control = cursor[7]
    until = totals[TOUCHES] + budget
    looked = 0
    while control[STATUS] == RUNNING and totals[TOUCHES] < until and looked < budget:
        run_lru(
            tables, cursor, budget, owner, line_bytes, cache_bytes, line_bytes[0], links, flags, stamp, tallies, totals
        )
        if control[STATUS] == BOUNDARY:
            loop = loops.of_variable[control[CULPRIT]]
            looked += 1 - loops.notes[loop, SPENT]
            at_boundary(tables, cursor, second, cache, loops, names)
            looked += loops.notes[loop, SPENT]
    return int(looked)


run_skipping = compiled(_run_skipping)
