"""What the numbers of a cache or memory of a machine block contradict: in their own line, or in a line before it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedMachine
from roofdsl.lang.findings import Report

ONE_CORE = "one core, "
"""How the name of a ceiling begins that states what a single core gets from a level."""


def check_level(
    line: tree.MachineLine, size: int, bandwidth: Fraction, values: Mapping[str, Any], report: Report
) -> None:
    """Report options of a cache or memory that contradict its size in bytes, its bandwidth in bytes per second, or
    each other. values: the options by the fields of the machine model.
    """

    def wrong(message: str, help: str = "") -> None:
        report.error("machine-option", message, line.span, help)

    if "one_stream_bytes_per_s" in values and "streams" not in values:
        wrong("`one_stream` does not tell how many streams reach the bandwidth", "add `streams 6`")
    if ("larger_bytes_per_s" in values) != ("larger_from_bytes" in values):
        wrong("`larger` and `larger_from` state a rate together: one of them is missing", _LARGER)
    for word in ("typical", "stores"):
        if values.get(f"{word}_bytes_per_s", bandwidth) > bandwidth:
            help = f"state the best rate as the bandwidth, or leave out `{word}`"
            wrong(f"`{word}` is above the bandwidth, which is the best rate of the level", help)
    if values.get("holds_bytes", size) > size:
        wrong("`holds` is more than the size of the cache", "leave it out if the code has the whole cache")
    for word in ("line", "sector"):
        own = values.get(f"{word}_bytes", 1)
        if line.keyword == "cache" and own & (own - 1):
            below = 1 << own.bit_length() - 1
            message = f"a {word} of {own} bytes is no power of two, so the cache cannot be simulated"
            help = f"write `{word} {below} B` or `{word} {2 * below} B`"
            report.warning("machine-line", message, line.span, help)
    length = values.get("line_bytes")
    if length is None:
        if "sector_bytes" in values:
            wrong("a sector is a part of a line, but no line is stated", "add `line 128 B`")
        return
    if length > size:
        wrong(f"a line of {length} bytes does not fit into {size} bytes")
    if length % values.get("sector_bytes", length):
        wrong(f"a line of {length} bytes is not a whole number of sectors of {values['sector_bytes']} bytes")
    ways = values.get("ways")
    if ways and size % (length * ways):
        message = (
            f"{size:,} bytes do not divide into sets of {ways} ways of {length} bytes, so the cache cannot be simulated"
        )
        report.warning("machine-ways", message, line.span, "state another size or number of ways, or leave out `ways`")


_LARGER = "write both, as in `larger 270 GB/s, larger_from 352 KiB`"


def check_one_core(line: tree.MachineLine, levels: Mapping[str, object], report: Report) -> None:
    """Report a ceiling such as `"one core, DRAM"` that is of another level, or that spells its level otherwise."""
    label = line.label.text if line.label else ""
    level, named = line.names[0].text, label.removeprefix(ONE_CORE)
    if named in (label, level):
        return
    if named in levels or named.lower() == level.lower():
        message = f"the name says what one core gets from `{named}`, but the ceiling is of `{level}`"
        report.error("name-unknown", message, line.span, f'write `ceiling "{ONE_CORE}{level}" {level}`')


def check_order(machine: CheckedMachine, report: Report) -> None:
    """Report a cache such as L1 after one such as L2: predictions take the first cache to be the nearest. Warn of a
    cache that is smaller than the nearer one.
    """
    named = [(cache, cache.fields["name"]) for cache in machine.all_of("cache")]
    numbered = [(cache, name) for cache, name in named if name[:1] == "L" and name[1:].isdecimal()]
    for (_, before), (cache, name) in pairwise(numbered):
        if int(name[1:]) < int(before[1:]):
            message = f"`{name}` stands after `{before}`, but caches are listed from the nearest to the farthest"
            report.error("machine-order", message, cache.line.span, f"move the line of `{name}` up")
            return
    for (nearer, before), (cache, name) in pairwise(named):
        if cache.fields["size_bytes"] < nearer.fields["size_bytes"]:
            message = (
                f"`{name}` is smaller than `{before}`; the bytes behind it are counted as if there were no `{before}`"
            )
            report.warning("machine-smaller", message, cache.line.span, "give the size of one copy of each cache")
