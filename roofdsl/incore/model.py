"""In-core time of one launch: the time while all data are in the nearest cache, and what makes it up."""

from __future__ import annotations

from roofdsl.lang.record import Record


class Step(Record):
    """The in-core time of one launch after one more cause is taken into account; steps never get faster.

    cause: in the field's words ("the sum may not be reordered", "chain of 4-cycle adds", "no SIMD: ...", "division",
    "call of exp", "short inner loop of 16", "vectors split lines", "scalar conversion of f16", "stride: ...").
    remedy: what legal change would remove it ("`--math relaxed` lets sums be reordered"), or "".
    overlapping_s: T_OL, what runs beside data transfers (arithmetic, chains, branches).
    loads_s: T_nOL, loads and stores between registers and L1.
    """

    cause: str
    remedy: str
    overlapping_s: float
    loads_s: float


class InCore(Record):
    """In-core time of one launch, all data in the nearest cache.

    steps: the first is the machine's peak (cause ""), the last is the result.
    model: where it comes from: "assembly of numba 0.68.1, ...", "stated: strict compiler", "osaca 0.7.1".
    launch_s: by kinds of arguments, where measured; None: the machine's own.
    assumptions: for what is shown under `assumed`.
    """

    model: str
    steps: tuple[Step, ...]
    launch_s: float | None
    assumptions: tuple[str, ...] = ()


class NoInCore(Exception):
    """Why there is no in-core time: one sentence for people (no instruction latencies, assembly not understood)."""
