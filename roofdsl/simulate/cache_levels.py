"""Definition of a hierarchy of caches, and checks of its consistency.

Every level is a cache of lines in sets; each line has sectors that are loaded one by one (one sector by default). The
sector of the accessed element is looked up in the first level, whose misses are the reads of the second, and so on. The
levels below answer a request first. Then the line replaces another one, and the dirty data of that one is written back.

- `write_miss`: "allocate" reads the sector and then writes it; "claim" takes the line without reading (the residency
  that begins with a write of the convention `load_store`); "around" hands the write on and keeps nothing.
- `write`: "back" keeps what is written until it is evicted; "through" hands every write on.
- `inclusion`: "free" promises nothing; an "inclusive" level removes a line that it evicts from the levels above; an
  "exclusive" level is a victim cache, the last of the hierarchy: it holds what the level above evicted, clean or dirty,
  and gives a line up when it is requested.
- `policy` "opt" is the best replacement (`best_replacement.py`): of the lines of a set, the one whose next use is
  latest leaves. It needs the whole sequence of accesses, so it is for a single cache. With `bypass`, an access may
  bypass the cache, which then keeps what it has.

A level that gets a whole sector back from above does not read it first. At the end all levels are flushed: dirty data
crosses every boundary below it once, except for arrays that are `temp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel

Policy = Literal["lru", "fifo", "plru", "opt"]
Write = Literal["back", "through"]
WriteMiss = Literal["allocate", "claim", "around"]
Inclusion = Literal["free", "inclusive", "exclusive"]

MOST_SECTORS = 8
MOST_PARTS = 32  # of an inclusive level's line, in sectors of the first level
SMALLEST, LARGEST_LINE = 1, 1 << 24


@dataclass(frozen=True)
class CacheLevel:
    """One cache. `ways` None is fully associative; `sector_bytes` None is the whole line."""

    name: str
    size_bytes: int
    line_bytes: int
    ways: int | None = None
    policy: Policy = "lru"
    write: Write = "back"
    write_miss: WriteMiss = "allocate"
    inclusion: Inclusion = "free"
    sector_bytes: int | None = None
    bypass: bool = False

    @property
    def sector(self) -> int:
        """Bytes that are loaded and written back at a time."""
        return self.sector_bytes or self.line_bytes

    @property
    def lines(self) -> int:
        """The number of lines in the cache; for a fully associative one, as many as fit."""
        return self.size_bytes // self.line_bytes

    @property
    def sets(self) -> int:
        return 1 if self.ways is None else self.lines // self.ways


def check_levels(levels: Sequence[CacheLevel], kernel: Kernel) -> None:
    """Raise CommandError for the first problem of `levels`: alone, together or with the kernel."""
    if not levels:
        raise CommandError("there is no cache to simulate", "give one with --cache, or a machine that has caches")
    for level in levels:
        _check_level(level)
    _check_future(levels)
    for a in kernel.arrays:
        if not a.is_scalar and levels[0].sector % a.type.bytes:
            what = "sector" if levels[0].sector_bytes else "line"
            raise CommandError(
                f"a {what} of {levels[0].sector} B does not hold a whole number of elements of {a.name} ({a.type}, "
                f"{a.type.bytes} B)",
                "give a line that is a multiple of every element's size",
            )
    for k in range(1, len(levels)):
        _check_below(levels[: k + 1], is_last=k == len(levels) - 1)
    if levels[0].inclusion != "free":
        raise CommandError(
            f"{levels[0].name} is the first level and cannot be {levels[0].inclusion}", "there is no level above it"
        )


def _powers_near(value: int) -> str:
    """The powers of two below and above a size that is none, in words; only those that a line may have."""
    below = 1 << min(value, LARGEST_LINE).bit_length() - 1
    return f"{below} B" if value > LARGEST_LINE else f"{below} B or {2 * below} B"


def _check_level(level: CacheLevel) -> None:
    name, line, size = level.name, level.line_bytes, level.size_bytes
    alone = name == "cache"  # the name that `simulate --cache` gives its only level
    which, the = ("a cache", "the cache") if alone else (name, name)
    for what, value in (("line", line), ("sector", level.sector)):
        if value < SMALLEST or value & (value - 1) or value > LARGEST_LINE:
            raise CommandError(
                f"the {what} of {which} is {value} B, but must be a power of two, at most {LARGEST_LINE >> 20} MiB",
                f"use {_powers_near(value)}" if value > 0 else "",
            )
    if level.sector > line or line // level.sector > MOST_SECTORS:
        raise CommandError(
            f"a sector of {level.sector} B does not fit into a line of {line} B of {the}"
            if level.sector > line
            else f"a line of {line} B of {the} has too many sectors of {level.sector} B",
            f"a line has 1 to {MOST_SECTORS} sectors",
        )
    if size < line:
        raise CommandError(
            f"{which} of {size} B cannot hold a line of {line} B", "give a larger cache or a smaller line"
        )
    if level.ways is not None:
        if level.ways < 1:
            raise CommandError(f"{which} has {level.ways} ways", "a set has at least one")
        if size % (line * level.ways):
            raise CommandError(
                f"{which} of {size} B does not divide into sets of {level.ways} ways of {line} B lines",
                f"{_near(size, line * level.ways)} would work; without ways, the cache is fully associative",
            )
    ways = level.ways or level.lines
    if level.policy == "plru" and ways & (ways - 1):
        raise CommandError(
            f"PLRU needs a power of two as the number of ways, but {the} has {ways}", "use lru, fifo or other ways"
        )


def _check_future(levels: Sequence[CacheLevel]) -> None:
    """Check what only the best replacement needs."""
    best = next((level for level in levels if level.policy == "opt"), None)
    if best is None:
        if any(level.bypass for level in levels):
            raise CommandError("only the best replacement lets accesses bypass a cache", "give --policy opt")
        return
    if len(levels) > 1:
        raise CommandError(
            "the best replacement is simulated in a single cache, and there are "
            f"{len(levels)}: {', '.join(level.name for level in levels)}",
            "simulate one of them: --cache SIZE --line SIZE --ways N",
        )
    if best.sector != best.line_bytes or best.write != "back" or best.write_miss == "around":
        raise CommandError(
            "the best replacement is simulated only for whole lines in a write-back cache that allocates a line on a "
            "write miss",
            "leave out --sector, --write through and --around",
        )


def _near(size: int, whole: int) -> str:
    below = size // whole * whole
    return f"{below or whole} B"


def _check_below(levels: Sequence[CacheLevel], is_last: bool) -> None:
    """Check the last of `levels` below those above it."""
    *above, level = levels
    upper = above[-1]
    if level.sector < upper.sector:
        raise CommandError(
            f"{upper.name} requests {upper.sector} B at a time from {level.name}, whose sector is {level.sector} B",
            "sectors (or lines, without sectors) may not become smaller from level to level",
        )
    if level.inclusion == "inclusive":
        longest = max(above, key=lambda u: u.line_bytes)
        if longest.line_bytes > level.line_bytes:
            raise CommandError(
                f"inclusive {level.name} has lines of {level.line_bytes} B, and {longest.name} of "
                f"{longest.line_bytes} B",
                "an inclusive level needs lines at least as long as those above",
            )
        if level.line_bytes // above[0].sector > MOST_PARTS:
            raise CommandError(
                f"a line of inclusive {level.name} holds {level.line_bytes // above[0].sector} sectors of "
                f"{above[0].name}",
                f"at most {MOST_PARTS} are simulated",
            )
        claiming = next((u for u in above if u.write_miss == "claim"), None)
        if claiming is not None:
            raise CommandError(
                f"{level.name} cannot be inclusive if {claiming.name} takes lines without reading them",
                "let it allocate: --traffic write_allocate",
            )
    if level.inclusion == "exclusive":
        if not is_last:
            raise CommandError(f"{level.name} is exclusive and not the last level", "only the last level may be")
        if (level.line_bytes, level.sector) != (upper.line_bytes, upper.line_bytes) or upper.sector != upper.line_bytes:
            raise CommandError(
                f"{level.name} holds what {upper.name} evicts, and their lines or sectors differ",
                "a victim level is simulated with the lines of the level above, without sectors",
            )
