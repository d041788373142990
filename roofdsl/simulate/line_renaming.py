"""What `skip_repeats.py` needs to know about a block of iterations: how its lines are renamed, and for how many blocks
no two lines get the same name.

A block's lines have shifts: the block that comes k blocks later touches line x + k s(x) where this one touches x.
Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.walk import (
    ALARM,
    COUNT,
    FIRST,
    NEVER,
    PC,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    compiled,
    stays,
)

ABSENT, ALIKE, MIXED = range(3)  # how the references of a loop move an array
ARRAY, SHIFT, LOW, HIGH, MEMBERS = range(5)  # columns of the families: lines of one array with one shift
MOST_FAMILIES = 16
CLASH = -1

Lines = NDArray[np.int32]


class Loops(NamedTuple):
    """The data on the loops that repeat, one row for each.

    notes: see `skip_repeats.py`. of_variable: the loop of a variable. moved: the lines by which a reference moves in a
    period. kinds, alike: for each array ABSENT, ALIKE or MIXED, and the lines by which it moves if ALIKE; mixed:
    whether there is a MIXED one. At the beginning of a block: entered, the variables; order and dirty, the list from
    the newest line on; counts, the tallies.
    """

    notes: Ints
    of_variable: Ints
    moved: Ints
    kinds: Ints
    alike: Ints
    mixed: Ints
    entered: Ints
    order: Lines
    dirty: NDArray[np.uint8]
    counts: Ints


class Names(NamedTuple):
    """Work space for one examination of a block; `attempt[0]` is its number.

    For each line, if the first of two fields equals the number, the second is valid: seen, shift; listed, place in the
    list. old: equals the number for lines in the top of the list before the block. found: the lines seen; families:
    these by array and shift. For places in the list: now, the lines; moves, their shifts; marks, their flags; then and
    then_marks, the lines and flags after the skipped blocks.
    """

    attempt: Lines
    seen: Lines
    shift: Lines
    listed: Lines
    place: Lines
    old: Lines
    found: Lines
    families: Ints
    now: Lines
    moves: Ints
    marks: NDArray[np.uint8]
    then: Lines
    then_marks: NDArray[np.uint8]


def _name(line: int, shift: int, known: int, names: Names) -> int:
    """Gives a line its shift; returns the number of lines with one, or CLASH if it has another shift already."""
    if names.seen[line] == names.attempt[0]:
        return known if names.shift[line] == shift else CLASH
    names.seen[line] = names.attempt[0]
    names.shift[line] = shift
    names.found[known] = line
    return known + 1


name = compiled(_name)


def _replay(  # noqa: PLR0917
    loop: int,
    v: int,
    tables: Tables,
    cursor: Cursor,
    second: Cursor,
    body: int,
    blocks: int,
    most: int,
    loops: Loops,
    names: Names,
) -> tuple[int, int]:
    """Names the lines of mixed arrays that the block touches: (lines named, or CLASH; lines examined).

    It is also a CLASH if more than `most` lines are examined.
    """
    references, places = tables[4], tables[5]
    env, stops, flat, stride, control, alarms = second[0], second[1], second[3], second[4], second[7], second[8]
    for k in range(env.shape[0]):
        env[k] = loops.entered[loop, k]
        stops[k] = cursor[1][k]
    control[PC], control[STATUS], control[REMAINING] = body, RUNNING, 0
    alarms[v, ALARM] = cursor[0][v]
    known = passed = 0
    while control[STATUS] == RUNNING and known >= 0:
        passed += advance(tables, second)
        if control[REMAINING] == 0:
            continue
        first, n = control[FIRST], control[REMAINING]
        control[REMAINING] = 0
        for r in range(control[COUNT]):
            a = references[first + r, 1]
            if loops.kinds[loop, a] != MIXED:
                continue
            per, shift = places[a, 1], places[a, 2]
            at, left = flat[r], n
            while left > 0 and known >= 0:
                line = places[a, 0] + (at >> shift if shift >= 0 else at // per)
                known = name(line, loops.moved[loop, first + r] * blocks, known, names)
                passed += 1
                same = min(left, stays(at, stride[r], per, shift))
                at += stride[r] * same
                left -= same
        if passed > most:
            known = CLASH
    alarms[v, ALARM] = NEVER
    return known, passed


replay = compiled(_replay)


def _families_of(known: int, owner: NDArray[np.uint16], names: Names) -> int:
    """Groups the lines that have a shift by array and shift; returns the number of families, CLASH if there are too
    many.
    """
    table = names.families
    n = last = 0
    for k in range(known):
        line = names.found[k]
        a, s = owner[line], names.shift[line]
        if not (n and table[last, ARRAY] == a and table[last, SHIFT] == s):
            last = 0
            while last < n and not (table[last, ARRAY] == a and table[last, SHIFT] == s):
                last += 1
            if last == table.shape[0]:
                return CLASH
            if last == n:
                n += 1
                table[last, ARRAY], table[last, SHIFT], table[last, MEMBERS] = a, s, 0
                table[last, LOW] = table[last, HIGH] = line
        table[last, LOW] = min(table[last, LOW], line)
        table[last, HIGH] = max(table[last, HIGH], line)
        table[last, MEMBERS] += 1
    return n


families_of = compiled(_families_of)


def _apart(f: Ints, g: Ints, most: int) -> int:
    """The number of blocks, at most `most`, for which the ranges of two families of one array stay apart."""
    if f[SHIFT] < g[SHIFT]:
        f, g = g, f
    if f[LOW] > g[HIGH]:
        return most  # the faster one is ahead
    if f[HIGH] < g[LOW]:
        return int(min(most, (g[LOW] - f[HIGH] - 1) // (f[SHIFT] - g[SHIFT])))
    return 0


apart = compiled(_apart)


def _until_two_meet(known: int, n: int, most: int, owner: NDArray[np.uint16], names: Names) -> int:
    """A number of blocks, at most `most`, for which no two lines get the same name."""
    table = names.families
    for i in range(n):
        for j in range(i):
            if table[i, ARRAY] != table[j, ARRAY]:
                continue
            sure = apart(table[i], table[j], most)
            if sure >= most:
                continue
            # Ranges that meet may have gaps in which lines pass each other. The lines of the smaller family are
            # followed one by one, block by block, as long as that is cheap.
            one, other = (i, j) if table[i, MEMBERS] <= table[j, MEMBERS] else (j, i)
            d = table[one, SHIFT] - table[other, SHIFT]
            low, high = table[other, LOW], table[other, HIGH]
            most = min(most, sure + 1 + 16 * known // table[one, MEMBERS])  # no more expensive than a few blocks
            for k in range(known):
                x = names.found[k]
                if names.shift[x] != table[one, SHIFT] or owner[x] != table[one, ARRAY]:
                    continue
                for b in range(sure + 1, most + 1):
                    y = x + b * d
                    if (y < low and d < 0) or (y > high and d > 0):
                        break
                    if low <= y <= high and names.seen[y] == names.attempt[0] and names.shift[y] == table[other, SHIFT]:
                        most = b - 1
                        break
    return most


until_two_meet = compiled(_until_two_meet)


def _overlap(f: Ints, g: Ints, blocks: int) -> bool:
    """Whether the ranges that two families pass through in that many blocks have a line in common."""
    low_f, high_f = f[LOW] + min(0, blocks * f[SHIFT]), f[HIGH] + max(0, blocks * f[SHIFT])
    low_g, high_g = g[LOW] + min(0, blocks * g[SHIFT]), g[HIGH] + max(0, blocks * g[SHIFT])
    return bool(low_f <= high_g and low_g <= high_f)


overlap = compiled(_overlap)


def _until_one_returns(  # noqa: PLR0917
    deepest: int, new: int, held: int, capacity: int, most: int, n: int, owner: NDArray[np.uint16], names: Names
) -> int:
    """A number of blocks, at most `most`, for which no missed line is held below the top of the list.

    The list's first `deepest` lines are the top, renamed; the next `new` lines were pushed down by the block. A later
    block pushes down the same lines by their later names; everything below sinks by `new` with each block.
    """
    attempt, table = names.attempt[0], names.families
    for i in range(n):  # lines that move in different ways are kept apart at all times
        for j in range(i):
            f, g = table[i], table[j]
            if f[ARRAY] == g[ARRAY] and f[SHIFT] != 0 and g[SHIFT] != 0:
                # Halved instead of searched: fewer blocks are skipped than possible, and the next examination skips
                # more.
                while most > 0 and overlap(f, g, most):
                    most //= 2
    for q in range(held):
        names.listed[names.now[q]] = attempt
        names.place[names.now[q]] = q
    for q in range(deepest + new):
        x = names.now[q]
        # a line of the old top: the next block finds its copy in the present top
        if names.old[x] == attempt:
            continue
        for b in range(1, min(most, (capacity - deepest) // new + 1) + 1):
            y = x + b * names.shift[x]
            if y < 0 or y >= names.listed.shape[0]:
                break
            place = names.place[y]
            # before block b, b - 1 blocks have pushed the line at `place` down
            if names.listed[y] == attempt and place >= deepest and place + (b - 1) * new < capacity:
                most = b - 1
                break
    return most


until_one_returns = compiled(_until_one_returns)
