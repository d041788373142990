"""Which visits of a sweep hit: the number of lines touched since each line's last touch. Imports numba.

For a visit of a piece (`segment_pieces.py`), the lines touched since are those of newer frames, the later ones of its
own frame, and those that the sweep itself has touched, each counted once. All of these are counts of equal steps, so
the distance of one visit costs a few divisions.

From one visit to a later one, the distance grows by at most the lines that the sweep touches in between, and shrinks by
at most the members of the frame in between. So one distance decides many visits, and every visit is decided. If a sweep
repeats an earlier one, both bounds are small. For a piece with as many lines as its frame, let the sweep have touched
the first t, and let those from number l on be later than the line in question. Together, these are all lines except l -
t, if l > t. If both numbers grow at the same rate, l - t changes only by rounding.
"""

from __future__ import annotations

from roofdsl.simulate.segment_pieces import (
    ABOVE,
    LENGTH,
    MEMBER,
    NEWEST,
    SAME,
    SEGMENT_OF,
    VISIT,
    VISITOR,
    WAY,
    Sweep,
)
from roofdsl.simulate.segment_visits import BEGIN as BEGIN_VISITS
from roofdsl.simulate.segment_visits import EVERY, FIRST, begun
from roofdsl.simulate.segments import CAP, COUNT, DT, FRAME, TIME, later
from roofdsl.simulate.walk import Ints, inlined, internal

FRACTION = 16  # bits of a rate


def _since(sweep: Sweep, n: int, segments: Ints, p: int, found: int, w: int) -> int:  # noqa: PLR0917
    """The number of other lines touched between the last touch of a line and visit w of piece p."""
    visitors, pieces, started = sweep.visitors, sweep.pieces, sweep.started
    x, g = pieces[p, VISITOR], pieces[p, SEGMENT_OF]
    r = visitors[x, FIRST]
    iteration = max(0, visitors[x, BEGIN_VISITS] + visitors[x, EVERY] * (pieces[p, VISIT] + w))
    time = min(segments[TIME, g] + segments[DT, g] * (pieces[p, MEMBER] + pieces[p, WAY] * w), segments[CAP, g])
    # All lines of newer frames, then those of the line's own frame that were touched after it, then what the sweep
    # itself has touched before this visit.
    since = pieces[p, ABOVE]
    h, frame = pieces[p, NEWEST], segments[FRAME, g]
    while segments[FRAME, h] == frame:
        since += later(segments, h, time)
        h -= 1
    for y in range(n):
        started[0, y] = begun(visitors, y, iteration, r)
        since += started[0, y]
    # A line that the sweep has touched again was counted twice: for the sweep, and in a newer frame, where all lines
    # count, or in the frame of this line, where only later ones do.
    for q in range(pieces[p, SAME]):
        again = started[0, pieces[q, VISITOR]] - pieces[q, VISIT]
        if again > 0:
            since -= min(again, pieces[q, LENGTH])
    for q in range(pieces[p, SAME], found):
        h = pieces[q, SEGMENT_OF]
        if segments[FRAME, h] != frame:
            break
        again = min(started[0, pieces[q, VISITOR]] - pieces[q, VISIT], pieces[q, LENGTH])
        if again <= 0:
            continue
        first = segments[COUNT, h] - later(segments, h, time)  # its first member that is later
        if pieces[q, WAY] > 0:
            since -= max(0, again - max(0, first - pieces[q, MEMBER]))
        else:
            since -= max(0, min(again, pieces[q, MEMBER] - first + 1))
    return int(since)


since_touched = inlined(_since)


def _rates(sweep: Sweep, n: int, segments: Ints, p: int) -> tuple[int, int, int, int]:
    """(a, b, c, d): in v visits of a piece, the sweep touches at most a v + b lines, and passes at most c v + d members
    of the piece's frame. The units of a and c are 1 / 2**FRACTION.
    """
    visitors, pieces = sweep.visitors, sweep.pieces
    every = visitors[pieces[p, VISITOR], EVERY] << FRACTION
    touched = 0
    for y in range(n):
        touched += every // visitors[y, EVERY] + 1
    g = pieces[p, SEGMENT_OF]
    dt, frame = segments[DT, g] << FRACTION, segments[FRAME, g]
    members, parts, h = 0, 0, pieces[p, NEWEST]
    while segments[FRAME, h] == frame:
        members += dt // segments[DT, h] + 1
        parts += 1
        h -= 1
    return touched, n, members, parts


rates = inlined(_rates)


def _most_growth(sweep: Sweep, n: int, segments: Ints, p: int, found: int, time: int) -> int:  # noqa: PLR0917
    """An upper bound on the growth of the distance from a visit of piece p, whose line was touched at `time`, to any
    later visit.

    `started[0]` holds the visits that have begun before that visit.
    """
    visitors, pieces, started = sweep.visitors, sweep.pieces, sweep.started
    x, frame = pieces[p, VISITOR], segments[FRAME, pieces[p, SEGMENT_OF]]
    last = max(0, visitors[x, BEGIN_VISITS] + visitors[x, EVERY] * (pieces[p, VISIT] + pieces[p, LENGTH] - 1))
    growth = 0
    for y in range(n):
        started[1, y] = begun(visitors, y, last, visitors[x, FIRST])
        growth += started[1, y] - started[0, y]
    # Lines that were counted already are not counted again.
    for q in range(found):
        h = pieces[q, SEGMENT_OF]
        if q >= pieces[p, SAME] and segments[FRAME, h] != frame:
            break
        y, visit, length = pieces[q, VISITOR], pieces[q, VISIT], pieces[q, LENGTH]
        now = max(0, min(length, started[0, y] - visit))
        more = max(0, min(length, started[1, y] - visit)) - now
        if q < pieces[p, SAME]:
            growth -= more
        elif pieces[q, WAY] > 0:
            # Of the `more` visits that begin meanwhile, those from visit `first` on come to members later than the
            # line: counted already, with the frame.
            first = max(0, min(length, segments[COUNT, h] - later(segments, h, time) - pieces[q, MEMBER]))
            growth -= max(0, more - max(0, first - now))
    return int(growth)


most_growth = inlined(_most_growth)


def _most_shrinking(sweep: Sweep, segments: Ints, p: int, found: int, w: int, time: int) -> int:  # noqa: PLR0917
    """An upper bound on the decrease of the distance from visit w of piece p, whose line was touched at `time`, to any
    later visit; WAY is 1.

    `started[0]` holds the visits that have begun before visit w.
    """
    visitors, pieces = sweep.visitors, sweep.pieces
    x, g = pieces[p, VISITOR], pieces[p, SEGMENT_OF]
    frame, dt, every = segments[FRAME, g], segments[DT, g], visitors[x, EVERY]
    even = segments[TIME, g] + dt * (pieces[p, MEMBER] + w)
    iteration = visitors[x, BEGIN_VISITS] + every * (pieces[p, VISIT] + w)
    end = min(even + dt * (pieces[p, LENGTH] - 1 - w), segments[CAP, g])
    shrinking, h = 0, pieces[p, NEWEST]
    while segments[FRAME, h] == frame:
        shrinking += later(segments, h, time) - later(segments, h, end)
        h -= 1
    for q in range(pieces[p, SAME], found):
        h = pieces[q, SEGMENT_OF]
        if segments[FRAME, h] != frame:
            break
        if pieces[q, WAY] < 0:
            continue
        y, visit, member, length = pieces[q, VISITOR], pieces[q, VISIT], pieces[q, MEMBER], pieces[q, LENGTH]
        # Visits before `now` count for the sweep, members from `first` on for the frame: all of the piece but max(0,
        # first - now) lines. The distance shrinks only as this gap grows, to `apart` at most.
        now = max(0, min(length, sweep.started[0, y] - visit))
        first = max(0, min(length, segments[COUNT, h] - later(segments, h, time) - member))
        last = max(0, min(length, segments[COUNT, h] - later(segments, h, end) - member))
        apart = last - now
        if length > 1 and dt * visitors[y, EVERY] == segments[DT, h] * every:
            # One for rounding, one for a last line that a loop left early.
            before = iteration if visitors[y, FIRST] < visitors[x, FIRST] else iteration - 1
            begun_now = (before - visitors[y, BEGIN_VISITS]) // visitors[y, EVERY] + 1 - visit
            apart = (even - segments[TIME, h]) // segments[DT, h] + 1 - member - begun_now + 2
        least = max(0, min(last - first, max(0, apart) - max(0, first - now)))
        shrinking -= last - first - least
    return int(shrinking)


most_shrinking = inlined(_most_shrinking)


def _low_quotient(a: int, b: int) -> int:
    """The quotient of two positive numbers, rounded down; for evenly changing numbers, a lower bound of it."""
    return a // b


low_quotient = inlined(_low_quotient)


def _alike(sweep: Sweep, n: int, segments: Ints, p: int, found: int, w: int, distance: int, lines: int) -> int:  # noqa: PLR0917
    """A lower bound on the number of visits of piece p, from w on, that hit or miss like w, which has this distance."""
    pieces = sweep.pieces
    length, g = pieces[p, LENGTH] - w, pieces[p, SEGMENT_OF]
    forward, hit = pieces[p, WAY] > 0, distance < lines
    # A piece that runs backwards comes to lines that were touched ever longer ago, so its distance only grows: after a
    # miss, all of it misses.
    if length == 1 or not (forward or hit):
        return int(length)
    # A hit remains one while the distance grows by `gap` at most, a miss while it shrinks by `gap` at most.
    gap = lines - distance - 1 if hit else distance - lines
    # The bound on the whole rest of the piece comes first: if sweeps repeat each other, it is small, and one distance
    # decides the piece. Otherwise, the change per visit bounds how many visits are decided, however far apart their
    # ends are.
    if forward:
        time = min(segments[TIME, g] + segments[DT, g] * (pieces[p, MEMBER] + w), segments[CAP, g])
        if hit:
            change = most_growth(sweep, n, segments, p, found, time)
        else:
            change = most_shrinking(sweep, segments, p, found, w, time)
        if change <= gap:
            return int(length)
    # A hit may end by lines that the sweep touches, and backwards also by members that become later; a miss, by members
    # that are passed.
    touched, touched_beside, members, members_beside = rates(sweep, n, segments, p)
    if hit:
        rate, gap = touched, gap - touched_beside
    if not forward:
        rate, gap = touched + members, gap - members_beside
    if not hit:
        rate, gap = members, gap - members_beside
    if gap > 0 and rate * (length - 1) <= gap << FRACTION:
        return int(length)
    return int(1 + low_quotient(gap << FRACTION, rate) if gap > 0 else 1)


alike = internal(_alike)
