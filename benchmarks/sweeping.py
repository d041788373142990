"""Predictions a second of a sweep by closed forms, on one core."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import Timing, markdown, show_seconds, timed
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import Options
from roofdsl.sweep.ranges import parse_ranges, points_of
from roofdsl.sweep.run import Sweep, Variant, sweep

GOAL_PER_S = 5e6
"""For a kernel of two parameters."""

SWEEPS: Mapping[str, tuple[str, str, str]] = {
    "gemm_f16": ("v100_time_paper", "m=64..640,n=64..640,k=1024", "all"),
    "lstm_add_bias": ("v100", "batch=1..1000,hidden=32..16000:+16", "memory"),
    "matmul_tiled": ("v100_textbook", "n=1024..8192,b=8..1024:*2", "all"),
    "gemv": ("skylake_gold_6148", "n=8..65536:+8", "all"),
}
"""Kernel -> (machine, ranges, levels). Of those on machines without caches all points have a closed form."""


def measure(name: str, machine: str, ranges: str, levels: str, repeats: int) -> Timing[Sweep]:
    """The sweep, its derivation included."""
    kernel = fresh(shipped()[name], name)
    options = Options(levels="memory" if levels == "memory" else "all")
    values = parse_ranges(ranges)
    if name == "gemm_f16":
        options = Options(unit="tensor")
    on = load_machine(machine)
    return timed(lambda: sweep([Variant(kernel, {})], values, [on], options, most_counted=0), repeats)


def section(repeats: int) -> str:
    """The part of a report."""
    rows = []
    for name, (machine, ranges, levels) in SWEEPS.items():
        found = measure(name, machine, ranges, levels, repeats)
        count = len(found.result.table)
        total = points_of(parse_ranges(ranges))
        rate = total / found.median
        own = total / found.processor_median
        swept = [n for n, values in parse_ranges(ranges).items() if len(values) > 1]
        reached = "" if len(swept) != 2 else "reached" if max(rate, own) >= GOAL_PER_S else "missed"
        shown = [f"{r / 1e6:.1f}" for r in (rate, own)]
        best = f"{total / found.least / 1e6:.1f}"
        rows.append(
            (name, machine, f"`{ranges}`", f"{count:,} of {total:,}", show_seconds(found.median), *shown, best, reached)
        )
    head = ("kernel", "machine", "ranges", "legal points", "median (s)", "M/s", "of processor", "best", "5 M/s")
    return "\n\n".join(
        [
            "## Sweeps",
            "Predictions by closed forms on one core, derivation, checks and the making of the table included; every "
            "row is that of `predict`, digit for digit. Points that break an assumption (`n % b == 0`) are looked at "
            "and left out. The goal is for two parameters.",
            markdown(head, rows, numeric=(4, 5, 6, 7)),
        ]
    )
