"""The quantity of each profiler metric, and the value of its units in seconds, bytes, counts or hertz.

Only the metrics used for points have a quantity here; units of all others are never looked at. An unknown unit of such
a metric is an error, because a guessed factor would silently give a wrong time or intensity.
"""

from __future__ import annotations

import re
from typing import Literal

Quantity = Literal["time", "bytes", "count", "rate"]

LARGEST = 1e30
"""The largest number that a report may contain, in seconds, bytes, counts or hertz. No profiler counts as much, and
sums and ratios of such numbers stay finite.
"""

LEAST = 1e-30
"""The smallest number that a report may contain, except 0."""

EXPECTED: dict[Quantity, str] = {
    "time": "a time, such as `usecond`, `us` or `ms`",
    "bytes": "an amount of data, such as `byte`, `Mbyte` or `MiB`",
    "count": "a count, such as `inst`, `Minst`, `sector` or `cycle`",
    "rate": "cycles per time, such as `cycle/nsecond` or `Ghz`",
}

_QUANTITIES: tuple[tuple[str, Quantity], ...] = (
    (r"gpu__time_duration\.(sum|avg|max)", "time"),
    (r"(l1tex__t|lts__t|dram_)_bytes\w*\.sum", "bytes"),
    (r"(l1tex__t|lts__t|dram_)_sectors\w*\.sum", "count"),
    (r"sm__(sass_thread_)?inst_executed\w*\.sum", "count"),
    (r"sm__ops_path_tensor_\w+\.sum", "count"),
    (r"sm__cycles_elapsed\.avg", "count"),
    (r"sm__cycles_elapsed\.avg\.per_second", "rate"),
    (r"\w+_transactions|flop_count_(dp|sp|hp)(_(add|mul|fma))?|tensor_precision_fu_utilization", "count"),
)

_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_LARGE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_COUNTED = ("inst", "sector", "cycle", "request", "warp", "block", "thread", "transaction", "op")


def _table() -> dict[str, tuple[Quantity, float]]:
    """Every unit in its written form, with its factor."""
    found: dict[str, tuple[Quantity, float]] = {}
    for noun in ("second", "seconds", "sec", "s"):
        found |= {prefix + noun: ("time", factor) for prefix, factor in _SMALL.items()}
    for noun, seconds in (("min", 60.0), ("minute", 60.0), ("h", 3600.0), ("hour", 3600.0)):
        found[noun] = ("time", seconds)
    for noun in ("byte", "bytes", "Byte", "Bytes", "B"):
        found |= {prefix + noun: ("bytes", factor) for prefix, factor in (_LARGE | _BINARY).items()}
    for noun in _COUNTED:
        for form in (noun, noun + "s"):
            found |= {prefix + form: ("count", factor) for prefix, factor in _LARGE.items()}
    for noun in ("hz", "Hz"):
        found |= {prefix + noun: ("rate", factor) for prefix, factor in _LARGE.items()}
    return found


_UNITS = _table()


def quantity_of(metric: str) -> Quantity | None:
    """The quantity of a metric; None for one that points do not use."""
    return next((quantity for pattern, quantity in _QUANTITIES if re.fullmatch(pattern, metric)), None)


def factor(unit: str, quantity: Quantity) -> float | None:
    """The value of one unit in seconds, bytes, counts or hertz; None if it is not a unit of this quantity.

    The micro sign may be either of Unicode's two, or a `u`. A count may have no unit.
    """
    written = unit.strip().replace("\u00b5", "u").replace("\u03bc", "u")
    if not written:
        return 1.0 if quantity == "count" else None
    head, slash, per = written.partition("/")
    if slash:
        above, below = _UNITS.get(head.strip()), _UNITS.get(per.strip())
        if quantity != "rate" or above is None or below is None or (above[0], below[0]) != ("count", "time"):
            return None
        return above[1] / below[1]
    found = _UNITS.get(written)
    return found[1] if found is not None and found[0] == quantity else None
