"""The visits of a sweep: which lines each reference of an innermost loop comes to, and when. Imports numba.

A reference that moves by less than a line visits neighboring lines, each for the same number of iterations. One that
moves by more visits a line in each iteration; if its stride is not a whole number of lines, every p-th of its lines are
in equal steps, and it counts as p visitors. One that does not move visits one line. References that visit the same
lines at the same iterations are one visitor.
"""

from __future__ import annotations

from roofdsl.simulate.walk import FOR_EVER, Ints, inlined, internal, stays

# Columns of a visitor. Visit v is to line LINE + v STEP, from iteration max(0, BEGIN + v EVERY) on, for LONGER more
# iterations but not beyond the sweep. VISITS: how many there are. FIRST and LAST: the references that come first and
# last in an iteration, and WRITES_FIRST, WRITES: whether the first one writes, and whether any does. OF: the reference
# that it was made for; LOW, HIGH: its smallest and largest line; FOUND: how many of its lines are in the list;
# INVERSE: of its STEP. SEARCHING: not of this visitor; the first rows have the numbers of those that search a part of
# the list.
ARRAY, LINE, STEP, VISITS, BEGIN, EVERY, LONGER, FIRST, LAST, WRITES_FIRST, WRITES, OF, LOW, HIGH = range(14)
FOUND, SEARCHING, INVERSE = range(14, 17)
VISITOR = 24  # columns
MOST_VISITORS = 192


def _add(  # noqa: PLR0917
    visitors: Ints,
    n: int,
    array: int,
    line: int,
    step: int,
    visits: int,
    begin: int,
    every: int,
    longer: int,
    r: int,
    write: int,
) -> int:
    """Adds the visits of reference r to the visitors; returns the new number of visitors."""
    for x in range(n):
        if (
            visitors[x, LINE] == line
            and visitors[x, ARRAY] == array
            and visitors[x, STEP] == step
            and visitors[x, VISITS] == visits
            and visitors[x, BEGIN] == begin
            and visitors[x, EVERY] == every
            and visitors[x, LONGER] == longer
        ):
            visitors[x, LAST] = r
            visitors[x, WRITES] |= write
            return n
    if n == visitors.shape[0]:
        return n + 1
    x = n
    visitors[x, ARRAY], visitors[x, LINE], visitors[x, STEP], visitors[x, VISITS] = array, line, step, visits
    visitors[x, BEGIN], visitors[x, EVERY], visitors[x, LONGER] = begin, every, longer
    visitors[x, FIRST] = visitors[x, LAST] = visitors[x, OF] = r
    visitors[x, WRITES_FIRST] = visitors[x, WRITES] = write
    return n + 1


add = inlined(_add)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


gcd = inlined(_gcd)


def _all_visitors(  # noqa: PLR0917
    visitors: Ints, references: Ints, places: Ints, flat: Ints, stride: Ints, first: int, count: int, iterations: int
) -> int:
    """The visitors of a sweep over `count` references; returns their number, -1 if their visits are not even or they
    are too many.
    """
    n = 0
    for r in range(count):
        array, write = references[first + r, 1], references[first + r, 2]
        start, per, shift = places[array, 0], places[array, 1], places[array, 2]
        at, step = flat[r], stride[r]
        end = at + step * (iterations - 1)
        line = start + (at >> shift if shift >= 0 else at // per)
        last = start + (end >> shift if shift >= 0 else end // per)
        if iterations == 1 or (abs(step) < per and line == last):
            n = add(visitors, n, array, line, 1, 1, 0, FOR_EVER, iterations - 1, r, write)
        elif abs(step) < per:
            if per % step:
                return -1
            every = per // abs(step)
            begin = stays(at, step, per, shift) - every
            side = 1 if step > 0 else -1
            n = add(visitors, n, array, line, side, abs(last - line) + 1, begin, every, every - 1, r, write)
        else:
            # Lines that are visited `phases` iterations apart are in equal steps.
            common = gcd(abs(step), per)
            phases = per // common
            for phase in range(min(phases, iterations)):
                here = at + step * phase
                line = start + (here >> shift if shift >= 0 else here // per)
                visits = (iterations - phase + phases - 1) // phases
                n = add(visitors, n, array, line, step // common, visits, phase, phases, 0, r, write)
                if n > visitors.shape[0]:
                    return -1
        if n > visitors.shape[0]:
            return -1
    return n


all_visitors = internal(_all_visitors)


def _ranges(visitors: Ints, n: int) -> None:
    """Sets LOW and HIGH, the smallest and the largest line of each visitor, and FOUND to 0."""
    for x in range(n):
        one = visitors[x, LINE]
        other = one + visitors[x, STEP] * (visitors[x, VISITS] - 1)
        visitors[x, LOW], visitors[x, HIGH], visitors[x, FOUND] = min(one, other), max(one, other), 0


ranges = internal(_ranges)


def _leave_out(visitors: Ints, n: int, x: int, f: int, v: int, iterations: int) -> int:  # noqa: PLR0917
    """Leaves out visit v of x to the single line at which f stays all the time; returns the number of visitors, -1 if
    there are too many.

    Visits to this line count as f's: it is in the cache all the time.
    """
    begin = max(0, visitors[x, BEGIN] + v * visitors[x, EVERY])
    end = min(iterations - 1, visitors[x, BEGIN] + v * visitors[x, EVERY] + visitors[x, LONGER])
    if begin == 0 and visitors[x, FIRST] < visitors[f, FIRST]:
        visitors[f, FIRST], visitors[f, WRITES_FIRST] = visitors[x, FIRST], visitors[x, WRITES_FIRST]
    if end == iterations - 1:
        visitors[f, LAST] = max(visitors[f, LAST], visitors[x, LAST])
    visitors[f, WRITES] |= visitors[x, WRITES]
    after = visitors[x, VISITS] - v - 1
    if after > 0:
        y = x
        if v > 0:
            if n == visitors.shape[0]:
                return -1
            for column in range(visitors.shape[1]):
                visitors[n, column] = visitors[x, column]
            y, n = n, n + 1
            visitors[x, VISITS] = v
        visitors[y, LINE] += visitors[y, STEP] * (v + 1)
        visitors[y, BEGIN] += visitors[y, EVERY] * (v + 1)
        visitors[y, VISITS] = after
    else:
        visitors[x, VISITS] = v
    return n


leave_out = internal(_leave_out)


def _apart(visitors: Ints, n: int, iterations: int) -> int:
    """Makes the visitors' lines disjoint; returns the number of visitors, -1 if that is impossible.

    A line at which one visitor stays all the time is left out of the others.
    """
    f = 0
    while f < n:
        if visitors[f, EVERY] == FOR_EVER:
            line = visitors[f, LINE]
            x = 0
            while x < n:
                if x != f and visitors[x, ARRAY] == visitors[f, ARRAY] and visitors[x, EVERY] != FOR_EVER:
                    v = (line - visitors[x, LINE]) // visitors[x, STEP]
                    if 0 <= v < visitors[x, VISITS] and visitors[x, LINE] + v * visitors[x, STEP] == line:
                        n = leave_out(visitors, n, x, f, v, iterations)
                        if n < 0:
                            return -1
                x += 1
        f += 1
    ranges(visitors, n)
    for x in range(n):
        for y in range(x):
            if (
                visitors[x, LOW] <= visitors[y, HIGH]
                and visitors[y, LOW] <= visitors[x, HIGH]
                and visitors[x, ARRAY] == visitors[y, ARRAY]
                and visitors[x, VISITS] > 0
                and visitors[y, VISITS] > 0
                # phases of one reference, and parts of one visitor, share no line
                and visitors[x, OF] != visitors[y, OF]
                and (visitors[x, LOW] - visitors[y, LOW]) % gcd(abs(visitors[x, STEP]), abs(visitors[y, STEP])) == 0
            ):
                return -1
    return n


apart = internal(_apart)


def _begun(visitors: Ints, x: int, iteration: int, r: int) -> int:
    """The number of visits of x that have begun before reference r of an iteration."""
    before = iteration if visitors[x, FIRST] < r else iteration - 1
    if before < 0:
        return 0
    return int(max(0, min(visitors[x, VISITS], (before - visitors[x, BEGIN]) // visitors[x, EVERY] + 1)))


begun = inlined(_begun)
