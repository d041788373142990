"""Lines no wider than the terminal: where to break a formula, a condition or a row of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest

WIDTH = 100
"""Columns of a report that goes to no terminal."""

LONG = 46
"""A longer expression, in characters, does not decide where the columns beside it begin."""

NARROW = 50
"""The fewest columns to which `fitted` breaks lines: no reader is served by ten characters a line."""

LEAST_COLUMN = 16
"""Columns of characters below which the columns of a table are not made narrower."""

HANG = 4
"""Columns by which the later lines of a broken line are indented."""

BREAKS = (
    (r" {2,}(?=\S)", 0),  # between columns
    (r" (?=(or|if|summed) )", 0),
    (r" (?=and )|(?<=[,;:]) ", 0),
    (r" (?=[+-] )", 0),
    (r" (?=(=|<=|>=|<|->) )", 0),
    (r" ", 0),
    (r" (?=and )|(?<=[,;]) | (?=[+-] )", 1),  # within one pair of brackets
    (r"(?<=[^*]\*)(?=[^*])", 1),  # within a product, but not within **
    (r" |(?<=[^*]\*)(?=[^*])", 9),
)
"""Where a line may be broken, the best places first, and within how many brackets at most."""


def aligned(
    rows: Sequence[Sequence[str]], gap: str = "  ", width: int | None = WIDTH, right: Collection[int] = ()
) -> Iterator[str]:
    """The rows in aligned columns; the columns whose number is in `right` are aligned to the right.

    If the rows are wider than `width`, long cells take several lines. If that is not enough, the cells of a row follow
    one another. Without a width, the rows are as wide as they are.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = sum(widths) if width is None else width - len(gap) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > LEAST_COLUMN:
        widths[widths.index(max(widths))] -= 1
    if sum(widths) > room:
        yield from (gap.join(row).rstrip() for row in rows)  # no table any more; `fitted` breaks its lines
        return
    for row in rows:
        cells = [list(_broken("", cell, w)) for cell, w in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            sides = [
                p.rjust(w) if k in right else p.ljust(w) for k, (p, w) in enumerate(zip(parts, widths, strict=True))
            ]
            yield gap.join(sides).rstrip()


def fitted(lines: Iterable[str], width: int = WIDTH) -> Iterator[str]:
    """The lines; a line that is too long becomes several, the later ones indented. Only spaces change."""
    width = max(width, NARROW)
    for line in lines:
        if len(line) <= width:
            yield line
            continue
        margin = len(line) - len(line.lstrip())
        yield from _broken(line[:margin], re.sub(r" {3,}(?!=)", "   ", line[margin:]), width)


def _broken(margin: str, rest: str, width: int) -> Iterator[str]:
    hang = margin + " " * min(HANG, width // 8)
    while len(margin) + len(rest) > width:
        found = _place(rest, width - len(margin))
        if found is None:
            break
        yield margin + rest[:found].rstrip()
        rest, margin = rest[found:].lstrip(), hang
    yield margin + rest


def _place(text: str, room: int) -> int | None:
    """Where to break: the last of the best places with at most `room` in front, and at least a third of it if possible;
    None if there is no place.
    """
    depths = _depths(text)
    for share in (3, 100):
        for k, (pattern, most) in enumerate(BREAKS):
            least = max(HANG + 1, room // (share if k else 2 * share))  # a short first column is a fine place
            places = [m.start() for m in re.finditer(pattern, text) if least <= m.start() <= room]
            places = [k for k in places if depths[k] <= most]
            if places:
                return places[-1]
    return None


def _depths(text: str) -> list[int]:
    out, depth = [], 0
    for character in text:
        depth -= character in ")]"
        out.append(depth)
        depth += character in "(["
    return out
