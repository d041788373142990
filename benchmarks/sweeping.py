"""Predictions a second of a sweep by closed forms, on one core: all shipped kernels of two parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import markdown, show_seconds, timed
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.predict.options import Options
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.ranges import parse_ranges, points_of
from roofdsl.sweep.run import Sweep, sweep

GOAL_PER_S = 5e6
"""Legal points, derivation and all else included, for a kernel of two parameters."""

PLACES: Mapping[str, tuple[str, Literal["all", "memory"]]] = {
    "h100_sxm": ("a memory alone, every type", "all"),
    "v100": ("behind a cache of 6 MiB: Q(Z) where the data are larger", "memory"),
}
"""Machine -> (what there is to it, levels)."""

OTHERS: tuple[tuple[str, str, str, Options], ...] = (
    ("gemm_f16", "v100_time_paper", "m=64..1440,n=64..1440,k=1024", Options(unit="tensor")),
    ("lstm_add_bias", "skylake_gold_6148", "batch=8..16000:+8,hidden=16..16000:+16", Options()),
    ("gemv", "skylake_gold_6148", "n=8..65536:+8", Options()),
)
"""Two of three parameters, four levels, and one parameter, where forms of Q(Z) are the work."""

TILED = ("matmul_blocked", "matmul_tiled", "minplus_blocked")
VOLUMES = ("heat3d_time", "gsrb_fp", "gsrb_branch", "gsrb_stride2")
FEW = 8
"""Values of a parameter that derivation alone is timed with."""


@dataclass(frozen=True)
class Rate:
    """One sweep. points: legal ones; tried: all; derivation_s: of a sweep of few points, else as this one."""

    kernel: str
    machine: str
    ranges: str
    points: int
    tried: int
    whole_s: float
    wall_s: float
    derivation_s: float

    @property
    def whole_per_s(self) -> float:
        return self.points / (self.whole_s or self.wall_s)  # the processor's clock may be too coarse

    @property
    def evaluated_per_s(self) -> float:
        """Without what a sweep of few points takes too."""
        return self.points / max(self.whole_s - self.derivation_s, 1e-9)


def ranges_of(k: Kernel) -> str:
    """Some two million points (legal ones of tiles: half a million) whose numbers stay below 2**53."""
    first, second = (p.name for p in k.parameters)
    if k.name in TILED:
        return f"{first}=1..131072,{second}=1..16"
    if k.name in VOLUMES:
        return f"{first}=1..4000,{second}=4..1000:+2"
    if k.name == "batched_gemm":
        return f"{first}=8..8000:+8,{second}=2..4000:+2"
    return f"{first}=8..16000:+8,{second}=16..16000:+16"


def measure(name: str, machine: str, ranges: str, options: Options, repeats: int) -> tuple[Rate, Sweep]:
    """The sweep, its derivation included. Raises CommandError where points have no closed form."""
    values, on = parse_ranges(ranges), load_machine(machine)
    kernel = fresh(load_file(shipped_names("kernels")[name]), name)
    few = {n: v[:: max(1, len(v) // FEW)] for n, v in values.items()}

    def run(at: Mapping[str, tuple[int, ...]], most_counted: int = 0) -> Sweep:
        return sweep([Variant(kernel, {})], at, [on], options, most_counted=most_counted)

    whole = timed(lambda: run(values), repeats)
    try:
        derivation_s = timed(lambda: run(few), repeats).processor_median
    except CommandError:  # so few that no form of Q(Z) is looked for
        derivation_s = 0.0
    points = len(whole.result.table)
    found = Rate(name, machine, ranges, points, points_of(values), whole.processor_median, whole.median, derivation_s)
    return found, whole.result


def two_parameters(repeats: int) -> Iterator[Rate | tuple[str, str, str]]:
    """The rates of all shipped kernels of two parameters; (kernel, machine, why not) where points have no form."""
    for name, checked in shipped().items():
        k = fresh(checked, name)
        for machine, (_, levels) in PLACES.items() if len(k.parameters) == 2 else ():
            try:
                yield measure(name, machine, ranges_of(k), Options(levels=levels), repeats)[0]
            except CommandError as error:
                yield name, machine, str(error).split("\n")[0]


def section(repeats: int) -> str:
    """The part of a report."""
    every = list(two_parameters(repeats))
    parts = [
        "## Sweeps",
        "Predictions by closed forms on one core; every row is that of `predict`, digit for digit. A sweep is timed "
        "as a whole: legality, derivation, evaluation and the making of the table. Points that break an assumption "
        "(`n % b == 0`) are looked at, left out, and not counted. Seconds are of the processor. Evaluation is the "
        "rate without what a sweep of a few points takes too. The goal is for two parameters.",
    ]
    for machine, (what, _) in PLACES.items():
        own = [r for r in every if isinstance(r, Rate) and r.machine == machine]
        parts += [f"{machine} ({what}): {_summary(own)}", table(sorted(own, key=lambda r: r.whole_per_s))]
        without = [(name, why) for name, where, why in (r for r in every if isinstance(r, tuple)) if where == machine]
        if without:
            parts.append(f"Not swept by closed forms alone on {machine}:")
            parts.append(markdown(("kernel", "why"), without))
    others = [measure(name, machine, ranges, options, repeats)[0] for name, machine, ranges, options in OTHERS]
    parts += ["Others:", table(others)]
    return "\n\n".join(parts)


def _summary(rates: list[Rate]) -> str:
    """The slowest, the median, and how many reach the goal."""
    if not rates:
        return "none"
    slowest = min(rates, key=lambda r: r.whole_per_s)
    reached = sum(r.whole_per_s >= GOAL_PER_S for r in rates)
    middle, evaluated = median(r.whole_per_s for r in rates), min(r.evaluated_per_s for r in rates)
    return (
        f"{reached} of {len(rates)} kernels reach {GOAL_PER_S / 1e6:g} million a second; the slowest is "
        f"{slowest.kernel} with {slowest.whole_per_s / 1e6:.1f}, the median {middle / 1e6:.1f}, and no evaluation is "
        f"slower than {evaluated / 1e6:.1f}."
    )


def table(rates: list[Rate]) -> str:
    """One line a sweep."""
    head = ("kernel", "machine", "ranges", "legal points", "derivation (s)", "whole (s)", "on the clock (s)")
    rows = [
        (
            r.kernel,
            r.machine,
            f"`{r.ranges}`",
            f"{r.points:,} of {r.tried:,}" if r.points < r.tried else f"{r.points:,}",
            *(show_seconds(s) for s in (r.derivation_s, r.whole_s, r.wall_s)),
            *(f"{rate / 1e6:.1f}" for rate in (r.evaluated_per_s, r.whole_per_s)),
        )
        for r in rates
    ]
    return markdown((*head, "evaluation (M/s)", "whole (M/s)"), rows, numeric=(3, 4, 5, 6, 7, 8))
