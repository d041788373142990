"""Predictions against measurements on this computer: every shipped kernel, at sizes from the first cache to memory.

One core is characterized, then every kernel is measured on it as generated (variant `loops`), warm, and predicted
warm: a launch right after another. All runs are in the report, none is left out or repeated until it looks better.

On a computer that others share, the bandwidth of its memory moves by a fifth between minutes. Runs whose data lie in
memory therefore have the streams of the characterization measured again right before and after them; the report gives
both ratios, the one by the machine file and the one by the better of these two.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import markdown
from benchmarks.sizes import accesses_at, is_legal, sizes_for
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_size, show_time
from roofdsl.measure.characterize_cpu import Buffers, Characterization, characterize_cpu, run_sweep, working_sets
from roofdsl.measure.machine_file import machine_text, save_machine, to_machine
from roofdsl.measure.results import save
from roofdsl.measure.sweep import bandwidth
from roofdsl.measure.team import FULL
from roofdsl.measure.timing import usable_cores
from roofdsl.validate.compare import Comparison, distribution
from roofdsl.validate.run import How, Run, compare_all, measure_runs

MOST_ACCESSES = 300_000_000
"""Of one launch: more would take too long to verify and to repeat."""

STREAMS = ("triad", "vector_add", "copy", "scale", "daxpy", "dot_f64", "gemv", "jacobi2d")
"""Kernels with long rows, which memory bounds out of cache; expected between 0.75 and 1.05 of the prediction there.

Those in half precision are not among them: a processor without its arithmetic spends the time on conversions.
"""

FIRST = (
    *STREAMS,
    "matmul",
    "matmul_blocked",
    "minplus",
    "jacobi3d",
    "stencil27",
    "transpose",
    "trsv",
    "lu",
    "cholesky",
    "dot",
    "dot_bf16",
)
"""Kernels that are run before the others, which may be left out for want of time."""


@dataclass(frozen=True)
class Refusal:
    """A run that was not made, and why."""

    kernel: str
    sizes: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All comparisons of one session, and what was refused."""

    machine: Machine
    comparisons: tuple[Comparison, ...]
    refusals: tuple[Refusal, ...]
    seconds: float
    beside: tuple[tuple[Comparison, Comparison], ...] = ()
    """Runs with data in memory, and the same by the bandwidth of memory that was measured beside them."""

    def ratio_beside(self, comparison: Comparison) -> float | None:
        return next((other.ratio for run, other in self.beside if run is comparison), None)


def targets(machine: Machine) -> list[int]:
    """Bytes of data: half of every cache, and four times the last one."""
    halves = [cache.size_bytes // 2 for cache in machine.caches]
    return [*halves, 4 * machine.caches[-1].size_bytes] if machine.caches else [1 << 28]


def run_all(
    folder: Path, names: Sequence[str] = (), quick: bool = False, tell: bool = False, seconds: float = inf
) -> Report:
    """Characterizes one core, measures and compares; machine and results are kept in `folder`.

    Once `seconds` are over no more kernels are begun, and the report says which; FIRST come first.
    """
    begun = time.monotonic()
    found: Characterization = characterize_cpu(quick, 1, None)
    machine = to_machine(found)
    folder.mkdir(parents=True, exist_ok=True)
    save_machine(folder / "machine.roof", machine_text(found))
    comparisons: list[Comparison] = []
    refusals: list[Refusal] = []
    beside: list[tuple[Comparison, Comparison]] = []
    streams = MemoryStreams(found)
    every = shipped()
    for name in [*FIRST, *(n for n in every if n not in FIRST)]:
        if names and name not in names:
            continue
        if time.monotonic() - begun > seconds:
            refusals.append(Refusal(name, "", "the time given was over"))
            continue
        kernel = fresh(every[name], name)
        done: set[tuple[tuple[str, int], ...]] = set()
        for target in targets(machine):
            sizes = sizes_for(kernel, target)
            if sizes is None or tuple(sizes.items()) in done:
                continue
            done.add(tuple(sizes.items()))
            text = ", ".join(f"{n}={v}" for n, v in sizes.items())
            if not is_legal(kernel, sizes):
                refusals.append(Refusal(name, text, "its assumptions do not allow such sizes"))
                continue
            if (count := accesses_at(kernel, sizes)) > MOST_ACCESSES:
                refusals.append(Refusal(name, text, f"{count:,} accesses: it would take too long"))
                continue
            in_memory = target > machine.caches[-1].size_bytes if machine.caches else True
            rates = [streams.bytes_per_s()] if in_memory else []
            try:
                measured = measure_runs([Run(kernel, sizes, "loops")], How(budget_s=1.0))
                compared = compare_all([kernel], measured, machine)
                if in_memory:
                    rates.append(streams.bytes_per_s())
                    by_now = compare_all([kernel], measured, with_memory(machine, max(rates)))
                    beside += zip(compared, by_now, strict=True)
                comparisons += compared
            except (CommandError, InputError) as error:
                refusals.append(Refusal(name, text, str(error).split("\n")[0]))
                continue
            if tell:
                last = comparisons[-1]
                now = f", {beside[-1][1].ratio:.2f} by the memory beside it" if in_memory else ""
                print(f"{name} {text}: {last.ratio:.2f} of {last.prediction.bound}{now}", flush=True)
    if comparisons:
        save(folder / "results.json", [c.measurement for c in comparisons])
    return Report(machine, tuple(comparisons), tuple(refusals), time.monotonic() - begun, tuple(beside))


class MemoryStreams:
    """The streams of a characterization on one core, out of cache, to be measured again at any time."""

    def __init__(self, found: Characterization) -> None:
        self.memory = found.levels[-1].one_core
        sizes = working_sets(found.cpu, 1, 1)
        self.core = usable_cores()[:1]
        self.size = sizes[-1]
        self.buffers = Buffers(self.size + (1 << 16), 1)

    def bytes_per_s(self) -> float:
        """The fastest of them, as the characterization counts."""
        sweep = run_sweep(self.core, [self.size], self.buffers, FULL, lambda part, what: None)
        return bandwidth(sweep.points, self.memory.counts).bytes_per_s


def with_memory(machine: Machine, bytes_per_s: float) -> Machine:
    """The machine with another bandwidth of its main memory."""
    main = replace(machine.main_memory, bandwidth_bytes_per_s=Fraction(bytes_per_s))
    return replace(machine, memories=(main, *machine.memories[1:]))


def level_of(comparison: Comparison, machine: Machine) -> str:
    """The nearest cache that holds the data; memory where none does."""
    held = comparison.prediction.footprint_bytes or 0
    return next((c.name for c in machine.caches if held <= c.size_bytes), machine.main_memory.name)


def section(report: Report, what: str = "one core") -> str:
    """The report as Markdown: distributions first, then every run, then what was not run."""
    machine = report.machine
    beta = show_bandwidth(float(machine.main_memory.bandwidth_bytes_per_s))
    lines = [
        f"## Predicted and measured on {what}",
        "",
        f"{machine.title}: f64 {show_rate(float(machine.peak('f64').per_s))} fused, memory {beta}; "
        f"{len(report.comparisons)} runs, {len(report.refusals)} refusals"
        f"{f', in {report.seconds:.0f} s' if report.seconds else ''}. "
        "Ratio: measured over predicted performance.",
        "",
        _distributions(report),
        "",
        _runs(report),
    ]
    if report.refusals:
        rows = [(r.kernel, r.sizes, r.reason) for r in report.refusals]
        lines += ["", "Not run:", "", markdown(("kernel", "size", "why"), rows)]
    return "\n".join(lines)


def _distributions(report: Report) -> str:
    """Quartiles by what bounds a run and where its data are."""
    groups: dict[str, list[float]] = {}
    for c in report.comparisons:
        level = level_of(c, report.machine)
        groups.setdefault("all runs", []).append(c.ratio)
        groups.setdefault(f"data in {level}", []).append(c.ratio)
        groups.setdefault(f"bound by {c.prediction.bound}", []).append(c.ratio)
        if c.prediction.kernel in STREAMS and level == report.machine.main_memory.name:
            groups.setdefault("streams out of cache", []).append(c.ratio)
            if (now := report.ratio_beside(c)) is not None:
                groups.setdefault("streams out of cache, by the memory beside them", []).append(now)
    rows = []
    for name, ratios in groups.items():
        d = distribution(ratios)
        above = sum(r > 1.05 for r in ratios)
        numbers = (d.least, d.quarter, d.median, d.three_quarters, d.greatest)
        rows.append((name, str(d.count), *(f"{x:.2f}" for x in numbers), str(above)))
    return markdown(("", "runs", "least", "1/4", "median", "3/4", "greatest", "above 1.05"), rows)


def _runs(report: Report) -> str:
    rows = []
    for c in sorted(report.comparisons, key=lambda c: (c.prediction.kernel, c.prediction.footprint_bytes or 0)):
        p, m = c.prediction, c.measurement
        sizes = ", ".join(f"{n}={v}" for n, v in p.parameters)
        rate = show_rate(m.rate_per_s, p.operation) if p.work else ""
        data = show_size((p.footprint_bytes or 0) >> 10 << 10) if (p.footprint_bytes or 0) > 1 << 10 else "< 1 KiB"
        times = (show_time(c.predicted_s, 3), show_time(c.measured_s, 3), f"{m.times.spread:.0%}")
        where = level_of(c, report.machine)
        now = report.ratio_beside(c)
        ratios = (f"{c.ratio:.2f}", "" if now is None else f"{now:.2f}")
        rows.append((p.kernel, m.variant, sizes, data, where, *times, rate, p.bound, *ratios))
    head = ("kernel", "variant", "size", "data", "in", "predicted", "measured", "spread", "rate", "bound", "ratio")
    return markdown((*head, "by the memory beside it"), rows)


def draw(report: Report, path: Path) -> None:
    """Every run's ratio against the size of its data, one colour for each bound."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from roofdsl.plot.roofline import INK, OKABE_ITO

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.8), dpi=100)
        axes = figure.add_axes((0.09, 0.12, 0.88, 0.78))
        bounds = list(dict.fromkeys(c.prediction.bound for c in report.comparisons))
        for k, bound in enumerate(bounds):
            some = [c for c in report.comparisons if c.prediction.bound == bound]
            xs, ys = [c.prediction.footprint_bytes for c in some], [c.ratio for c in some]
            axes.plot(xs, ys, "o", color=OKABE_ITO[k % 6], markersize=5, alpha=0.75, label=bound)
        axes.axhline(1, color=INK, linewidth=1.2)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for cache in report.machine.caches:
            axes.axvline(cache.size_bytes, color="#999999", linewidth=0.9, linestyle=(0, (3, 2)))
            axes.annotate(
                cache.name, (cache.size_bytes, 0.99), xycoords=("data", "axes fraction"), ha="right", va="top"
            )
        ticks = [float(t) for t in axes.get_xticks()]
        low, high = axes.get_xlim()
        axes.set_xticks([t for t in ticks if low <= t <= high], [_size(t) for t in ticks if low <= t <= high])
        axes.set_xlim(low, high)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("Data touched")
        axes.set_ylabel("Measured / predicted performance")
        axes.set_title(f"{report.machine.title}: every run", loc="left", color=INK)
        axes.legend(title="bound", frameon=False, fontsize=8.5)
        axes.grid(True, color="#E4E4E4", linewidth=0.7)
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _size(value: float) -> str:
    return show_size(int(value))
