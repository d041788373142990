"""The in-core time of one launch: the time of the code with all data in the nearest cache, and why it is not at the
peak.
"""

from __future__ import annotations

from roofdsl.lang.record import Record


class Step(Record):
    """The in-core time of one launch after one more cause is taken into account; no step is shorter than the one
    before.

    cause: in the field's words ("no SIMD: the sum may not be reordered", "chain of 4-cycle adds", "division and square
    roots", "call of exp", "short inner loop of 16", "vectors split lines", ...); empty for the machine's peak. remedy:
    the legal change that would remove it ("`--math relaxed` lets sums be reordered"), or "". overlapping_s: T_OL, the
    work that overlaps with data transfers (arithmetic, chains, branches). loads_s: T_nOL, the loads and stores between
    registers and the nearest cache. Both in seconds.
    """

    cause: str
    remedy: str
    overlapping_s: float
    loads_s: float


class InCore(Record):
    """The in-core time of one launch, with all data in the nearest cache.

    steps: the first is the machine's peak, the last is the result. model: where the time comes from, "assembly of numba
    0.68.1, ...", "stated: strict compiler" or another tool. launch_s: seconds of one launch with these kinds of
    arguments, if that was measured; None if the machine's own time holds. assumptions: in words. masked: whether all
    stores to arrays leave out elements that do not change. gathered: the elements that gathers load. instructions: how
    many the core's window takes in; 0 if that is not known.
    """

    model: str
    steps: tuple[Step, ...]
    launch_s: float | None
    assumptions: tuple[str, ...] = ()
    masked: bool = False
    gathered: float = 0.0
    instructions: float = 0.0


class NoInCore(Exception):
    """Why there is no in-core time: one sentence for people (a machine without latencies, code not understood, ...)."""


class NotStated(NoInCore):
    """The machine does not state a rate that the code needs; another machine may, and a line may be added to this one.

    line: an example of that line, empty if several lines are missing.
    """

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(message)
        self.line = line
