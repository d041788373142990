"""How many mispredicted branches a core remembers from one launch to the next, when it repeats them.

A loop takes as many pseudo-random branches as its length and then begins again with the same ones. A short loop costs
what branches cost that are always foretold, a long one what branches cost that never repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from roofdsl.measure.assembled import loops, page_from
from roofdsl.measure.out_of_order_core import random_branch
from roofdsl.measure.stopwatch import Stopwatch

LENGTHS = tuple(1 << k for k in range(9, 19))
"""The branches of a loop. The longest has more than any core remembers."""

RUNS = {True: 6, False: 16}
_TIMES = 4
"""How often a loop repeats its branches in each run."""
_CYCLES = 12
"""About the cycles of a branch."""


def remembered_branches(quick: bool) -> int | None:
    """Measures the core that the caller is pinned to; None if even its longest loops repeat at no cost."""
    import numpy as np

    texts = {f"repeated_{n}": _repeated(n, "testl $0x40000000, %eax") for n in LENGTHS}
    texts |= {"foretold": _repeated(LENGTHS[0], "testl $0, %eax")}
    block = np.zeros(8192, np.uint8)
    watch = Stopwatch(loops(texts, {}), page_from(block.ctypes.data), RUNS[quick])
    each = {n: watch.cycles(f"repeated_{n}", _CYCLES * n, _TIMES * _CYCLES * n) / n for n in LENGTHS}
    foretold = watch.cycles("foretold", _CYCLES * LENGTHS[0]) / LENGTHS[0]
    return remembered_of(each, foretold)


def _repeated(length: int, test: str) -> list[str]:
    return ["movl $1, %eax", f"movl ${length}, %edx", "78:", *random_branch(test), "decl %edx", "jnz 78b"]


def remembered_of(each: Mapping[int, float], foretold: float) -> int | None:
    """The mispredictions that a core remembers, from the cycles of one branch by the number of branches in the loop.

    foretold: the cycles of a branch that is always predicted. A core that remembers C of M mispredictions avoids the
    share C / M, and half of the branches are mispredicted if it remembers nothing. So where the loop avoids half of
    what the longest one loses, it has four times as many branches as the core remembers. Between two lengths, the share
    is taken to fall with the logarithm of the length.
    """
    lengths = sorted(each)
    most = each[lengths[-1]] - foretold
    if most < 1:
        return None
    avoided = {n: 1 - (each[n] - foretold) / most for n in lengths}
    beyond = next(k for k, n in enumerate(lengths) if avoided[n] < 0.5)
    if beyond == 0:
        return 1  # hardly any: a machine file states positive numbers
    a, b = lengths[beyond - 1], lengths[beyond]
    part = (avoided[a] - 0.5) / (avoided[a] - avoided[b])
    return round(2 ** (log2(a) + part * log2(b / a)) / 4)
