"""The caches that the options of `simulate` ask for."""

from __future__ import annotations

from typing import cast

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine
from roofdsl.simulate.levels import CacheLevel, Inclusion, Policy, Write, WriteMiss


def levels_of(
    kernel: Kernel,
    machine: Machine | None,
    cache_bytes: int | None,
    traffic: Traffic | None,
    *,
    line: int | None,
    sector: int | None,
    ways: int | None,
    policy: str,
    write: str,
    around: bool,
    last_level: str,
) -> tuple[CacheLevel, ...] | None:
    """The levels, nearest to the registers first; None for one fully associative LRU cache of lines of all sizes.

    A write that misses: as `traffic` says (the option or the kernel), else the machine, else the line is taken
    without being loaded. Raises CommandError where a line is needed and none is given.
    """
    element = _element(kernel)
    stated: WriteMiss | None = None
    if around:
        stated = "around"
    elif traffic is not None:
        stated = "allocate" if traffic == "write_allocate" else "claim"
    if machine is None:
        assert cache_bytes is not None
        plain = (sector, ways, policy, write, around) == (None, None, "lru", "back", False)
        if line is None and element is None and plain:
            return None
        own = line or element or _no_line("the cache")
        return (
            CacheLevel(
                "cache", cache_bytes, own, ways, cast(Policy, policy), cast(Write, write), stated or "claim",
                cast(Inclusion, last_level), sector,
            ),
        )  # fmt: skip
    levels = []
    for k, c in enumerate(machine.caches):
        miss: WriteMiss = stated or {True: "allocate", False: "around", None: "claim"}[c.write_allocate]  # type: ignore[assignment]
        last = k == len(machine.caches) - 1
        levels.append(
            CacheLevel(
                c.name,
                c.size_bytes,
                line or c.line_bytes or element or _no_line(f"cache {c.name} of {machine.name}"),
                ways or c.ways,
                cast(Policy, policy),
                cast(Write, write) if k == 0 else "back",
                miss,
                cast(Inclusion, last_level) if last else "free",
                sector or (c.sector_bytes if line is None else None),
            )
        )
    return tuple(levels)


def _element(kernel: Kernel) -> int | None:
    """The size of all elements, where they have one."""
    sizes = {a.type.bytes for a in kernel.arrays if not a.is_scalar}
    return sizes.pop() if len(sizes) == 1 else 8 if not sizes else None


def _no_line(what: str) -> int:
    raise CommandError(f"{what} has no line, and the kernel has elements of several sizes", "give a --line")
