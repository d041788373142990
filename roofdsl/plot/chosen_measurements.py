"""Which measurement of a kernel at its sizes a figure draws, if several are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofdsl.validate.compare import Comparison

Key = tuple[str, tuple[tuple[str, int], ...]]
"""The name of a kernel or program, and its parameters."""


def by_size(found: Sequence[Comparison]) -> dict[Key, list[Comparison]]:
    """The stored results by kernel and sizes, in the order given."""
    times: dict[Key, list[Comparison]] = {}
    for each in found:
        times.setdefault((each.measurement.kernel, each.measurement.parameters), []).append(each)
    return times


def fastest(runs: Sequence[Comparison], label: str, warn: Callable[[str], None]) -> Comparison | None:
    """The fastest of the results; `warn` is told which one it is, if there are others."""
    chosen = min(runs, key=lambda c: c.measured_s, default=None)
    if chosen is not None and len(runs) > 1:
        warn(f"{label} was measured {len(runs)} times, and only the fastest is drawn: {_how(chosen)}")
    return chosen


def with_state(runs: Sequence[Comparison], *, warm: bool) -> list[Comparison]:
    """The results measured with warm caches, or those with cold ones; all of them if there are none."""
    return [c for c in runs if (c.measurement.state == "warm") == warm] or list(runs)


def _how(run: Comparison) -> str:
    """How it was measured: `parallel on 2 threads, warm caches`."""
    m = run.measurement
    threads = f" on {m.threads} thread{'s' if m.threads > 1 else ''}" if m.backend == "cpu" else ""
    return f"{m.variant}{threads}, {m.state} caches"
