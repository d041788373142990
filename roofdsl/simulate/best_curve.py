"""Q of caches of all sizes under the best replacement (`best_replacement.py`), in one pass over the accesses.

The caches of all sizes are one stack, as for LRU, with the line of the latest next use pushed down in place of the one
whose last use is longest ago (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM
Systems Journal 9(2), 1970). A cache hits a line at a depth up to its number of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.simulate.distances import MissCurve, curve_of
from roofdsl.simulate.lru_traffic import DEFAULT_MEMORY_BYTES, Progress
from roofdsl.simulate.trace import CHUNK, Trace, trace_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BYTES_PER_LINE = 96
"""A stack and a tree over it, places, last writes, a histogram of four columns and its copy."""


LEAST_PART, PART_S = 1 << 12, 0.2
"""Accesses that are simulated without a look at the budget: at least so many, for about so many seconds."""


def line_of_elements(kernel: Kernel) -> int | None:
    """The size of a line if each element is one; None if elements have several sizes.

    If lines have several sizes, choosing which to keep is a knapsack problem, and caches of all sizes form no stack.
    """
    sizes = {a.type.bytes for a in kernel.arrays if not a.is_scalar}
    if not sizes:
        return 8
    return sizes.pop() if len(sizes) == 1 else None


def best_curve(
    kernel: Kernel,
    params: Mapping[str, int],
    line_bytes: int | None = None,
    *,
    sets: int = 1,
    bypass: bool = False,
    progress: Progress | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> MissCurve:
    """The curve of `kernel`, with its directives applied, at `params`; one-element lines if `line_bytes` is None.

    The caches have `sets` sets of any number of ways; with `bypass`, an access may go past the cache. Raises
    CommandError as `trace_of` does, and for elements of several sizes without a line.
    """
    import numpy as np

    if sets < 1:
        raise CommandError(f"a cache cannot have {sets} sets", "give a number from 1 on, such as --sets 64")
    line = line_bytes or line_of_elements(kernel)
    if line is None:
        raise CommandError(
            "the best replacement is defined for lines of one size, and the kernel has elements of several",
            "give a --line",
        )
    trace = trace_of(
        kernel, params, line, sets=sets, bytes_per_line=BYTES_PER_LINE, memory_bytes=memory_bytes, progress=progress
    )
    histogram, dropped = _one_pass(trace, sets, bypass=bypass, progress=progress)
    accesses = len(trace.accesses)
    assert int(np.sum(histogram[:, 0])) == accesses
    return curve_of(
        kernel,
        params,
        histogram,
        dropped,
        line,
        accesses=accesses,
        line_bytes=line_bytes,
        sets=sets,
        largest=line if trace.lines else 1,
    )


def _one_pass(
    trace: Trace, sets: int, *, bypass: bool, progress: Progress | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(histogram, dropped) by depth; the last row is what no cache holds."""
    import numpy as np

    from roofdsl.simulate.compiled_best import run_stack
    from roofdsl.simulate.stack import NEVER as NOT_WRITTEN
    from roofdsl.simulate.walk import first_call

    most = -(-trace.lines // sets)
    size = 1 << most.bit_length()  # of the leaves; places are counted from 1
    histogram = np.zeros((most + 2, 4), dtype=np.int64)
    dropped = np.zeros(most + 2, dtype=np.int64)
    tree = np.full(2 * size, -1, dtype=np.int64)
    stack = np.zeros(most + 1, dtype=np.int64)
    place_of = np.zeros(trace.lines, dtype=np.int64)
    written = np.full(trace.lines, NOT_WRITTEN, dtype=np.int64)
    temporary = trace.temporary()
    for s in range(sets):
        first, end = int(trace.starts[s]), int(trace.starts[s + 1])
        held = 0
        for start, stop in _parts(first, end):
            with first_call(run_stack):
                held = run_stack(
                    trace.accesses, trace.next_use, start, stop, int(bypass), tree, stack, place_of, written, held,
                    histogram,
                )  # fmt: skip
            if progress is not None:
                progress(len(trace.accesses))
        lines = stack[1 : held + 1]
        # A cache drops a dirty line of a `temp` array that it still holds at the end. These are the caches of at least
        # the line's depth that have also held it since its last write.
        own = temporary[lines] & (written[lines] != NOT_WRITTEN)
        np.add.at(dropped, np.maximum(np.arange(1, held + 1)[own], written[lines[own]]), 1)
        _clear(tree, size, held)
    return histogram, dropped


def _parts(first: int, end: int) -> Iterator[tuple[int, int]]:
    """The accesses in parts of about PART_S, since nothing can end compiled code in between.

    The time of an access grows with the number of lines that it moves down the stack: from none to all of them.
    """
    size = LEAST_PART
    while first < end:
        stop = min(first + size, end)
        begun = budget.processor_s()
        yield first, stop
        size = max(LEAST_PART, size // 2) if budget.processor_s() - begun > PART_S else min(2 * size, CHUNK)
        first = stop


def _clear(tree: NDArray[np.int64], size: int, held: int) -> None:
    """Empty the first `held` places, and all above them."""
    low, high = size, size + held + 1
    while low:
        tree[low:high] = -1
        low, high = low // 2, (high - 1) // 2 + 1
