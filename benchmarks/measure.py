"""Timing and Markdown tables, shared by all benchmarks."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from roofdsl import budget

T = TypeVar("T")

ENOUGH_S = 8.0
"""Once so many seconds were measured, no more than LEAST_RUNS are made."""

LEAST_RUNS = 3

TOO_MUCH_S = 40.0
"""Once so many seconds were measured, no more runs are made."""

WARM_S = 1.0
"""A first run shorter than this warms up and is not counted; of a longer one imports are no part worth hiding."""


@dataclass(frozen=True)
class Timing(Generic[T]):
    """Seconds of every counted run, on the clock and of the processor, and what the last one returned."""

    seconds: tuple[float, ...]
    processor: tuple[float, ...]
    result: T

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def processor_median(self) -> float:
        return median(self.processor)


def timed(compute: Callable[[], T], repeats: int) -> Timing[T]:
    """Runs `compute` once to warm up, then up to `repeats` times (LEAST_RUNS where one takes long)."""
    runs: list[tuple[float, float]] = []
    first, result = _once(compute)
    if first[0] >= WARM_S:
        runs.append(first)
    spent = first[0]
    while len(runs) < repeats and spent < (ENOUGH_S if len(runs) >= LEAST_RUNS else TOO_MUCH_S):
        taken, result = _once(compute)
        runs.append(taken)
        spent += taken[0]
    return Timing(tuple(wall for wall, _ in runs), tuple(cpu for _, cpu in runs), result)


def _once(compute: Callable[[], T]) -> tuple[tuple[float, float], T]:
    gc.collect()
    start, used = time.perf_counter(), budget.processor_s()
    result = compute()
    return (time.perf_counter() - start, budget.processor_s() - used), result


def show_seconds(value: float) -> str:
    """Seconds with three digits at most, never in exponents."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """A Markdown table; the columns in `numeric` are set to the right."""
    rule = ["---:" if k in numeric else "---" for k in range(len(head))]
    lines = [head, rule, *([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
