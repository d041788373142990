"""The report of a validation: what its figures say in words, distributions, every run, and what was not run.

Every sentence is made of the figures of the run at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import markdown
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_size, show_time
from roofdsl.measure.timing import median
from roofdsl.validate.compare import DEFAULTS, Comparison, distribution

STREAMS = ("triad", "vector_add", "copy", "scale", "daxpy", "dot_f64", "gemv", "jacobi2d")
"""Kernels with long rows, which memory bounds out of cache; expected at EXPECTED of the prediction there.

Those in half precision are not among them: a processor without its arithmetic spends the time on conversions.
"""

EXPECTED = (0.75, 1.05)

DISTURBED = 0.1
"""Processor time of other programs, in cores, from which the report names a run as disturbed."""


@dataclass(frozen=True)
class Refusal:
    """A run that was not made, and why."""

    kernel: str
    sizes: str
    reason: str


@dataclass(frozen=True)
class Beside:
    """The same run by the bandwidth of memory that was measured beside it, and by that under the ceilings that were
    measured of caches beside farther levels (None where the machine has none). per_s: the memory's bandwidth before
    and after the run, of which the higher one counts.
    """

    by_memory: Comparison
    under_ceilings: Comparison | None = None
    per_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Report:
    """All comparisons of one session, and what was refused.

    beside: for runs with data in memory. others: cores that other programs kept busy meanwhile. repeats: of runs above
    the roof, which are no comparisons of their own, but have `beside` and `others` as these do. taken_up: how many
    comparisons are of an earlier, interrupted process; `seconds` are of the last one.
    """

    machine: Machine
    comparisons: tuple[Comparison, ...]
    refusals: tuple[Refusal, ...]
    seconds: float
    beside: tuple[tuple[Comparison, Beside], ...] = ()
    others: tuple[tuple[Comparison, float], ...] = ()
    repeats: tuple[tuple[Comparison, tuple[Comparison, ...]], ...] = ()
    taken_up: int = 0

    def others_of(self, comparison: Comparison) -> float | None:
        return next((cores for run, cores in self.others if run is comparison), None)

    def beside_of(self, comparison: Comparison) -> Beside | None:
        return next((found for run, found in self.beside if run is comparison), None)

    def repeats_of(self, comparison: Comparison) -> tuple[Comparison, ...]:
        return next((found for run, found in self.repeats if run is comparison), ())

    def fair_ratio(self, comparison: Comparison) -> float:
        """By the memory beside the run where that was measured."""
        found = self.beside_of(comparison)
        return comparison.ratio if found is None else found.by_memory.ratio

    @property
    def streams(self) -> tuple[Comparison, ...]:
        """The runs of STREAMS with data in memory."""
        memory = self.machine.main_memory.name
        return tuple(
            c
            for name in STREAMS
            for c in self.comparisons
            if c.prediction.kernel == name and level_of(c, self.machine) == memory
        )

    @property
    def above(self) -> tuple[Comparison, ...]:
        """The runs above the roof, by the memory beside them where that was measured."""
        return tuple(c for c in self.comparisons if is_above(self.fair_ratio(c)))


def is_above(ratio: float) -> bool:
    return DEFAULTS.verdict(ratio) == "above the roof"


def level_of(comparison: Comparison, machine: Machine) -> str:
    """The nearest cache that holds the data; memory where none does."""
    held = comparison.prediction.footprint_bytes or 0
    return next((c.name for c in machine.caches if held <= c.size_bytes), machine.main_memory.name)


def section(report: Report, what: str = "one core") -> str:
    """The report as Markdown: what the figures say, distributions, then every run, then what was not run."""
    machine = report.machine
    beta = show_bandwidth(float(machine.main_memory.bandwidth_bytes_per_s))
    parts = [
        f"## Predicted and measured on {what}",
        f"{machine.title}: f64 {show_rate(float(machine.peak('f64').per_s))} fused, memory {beta}; "
        f"{len(report.comparisons)} runs, {len(report.refusals)} refusals"
        f"{f', in {report.seconds:.0f} s' if report.seconds else ''}"
        f"{f', {report.taken_up} of the runs taken up from before an interruption' if report.taken_up else ''}. "
        "Ratio: measured over predicted performance"
        f"{'; in figure, words and distributions by the memory beside runs with data there' if report.beside else ''}.",
        " ".join(in_words(report)),
    ]
    if report.streams:
        parts += ["### Streams out of cache", _streams(report)]
    if report.above:
        parts += ["### Above the roof", _above(report)]
    parts += ["### Ratios", _distributions(report), "### Every run", _runs(report)]
    if report.refusals:
        parts += ["### Not run", _refusals(report.refusals)]
    return "\n\n".join(parts)


def in_words(report: Report) -> list[str]:
    """What the figures say, in sentences."""
    ratios = {id(c): report.fair_ratio(c) for c in report.comparisons}
    verdicts = [DEFAULTS.verdict(ratio) for ratio in ratios.values()]
    by_memory = ", by the memory beside them where their data lie there" if report.beside else ""
    found = [
        f"Of {len(verdicts)} runs {verdicts.count('as predicted')} are as predicted (ratios from "
        f"{1 - DEFAULTS.tolerance:.2f} to {1 + DEFAULTS.margin:.2f}{by_memory}), "
        f"{verdicts.count('slower than predicted')} slower, {verdicts.count('above the roof')} above the roof."
    ]
    found += _repeated(report)
    streams = [(c, ratios[id(c)]) for c in report.streams]
    if streams:
        inside = [c for c, ratio in streams if EXPECTED[0] <= ratio <= EXPECTED[1]]
        found.append(
            f"Of {len(streams)} streams out of cache {len(inside)} lie between {EXPECTED[0]} and {EXPECTED[1]}, as "
            "streams with long rows are expected to."
        )
        found += [_outside(report, c, ratio) for c, ratio in streams if not EXPECTED[0] <= ratio <= EXPECTED[1]]
    if report.others:
        busy = [(c, cores) for c in report.comparisons if (cores := report.others_of(c)) is not None]
        text = f"Other programs kept {median([n for _, n in busy]):.0%} of a core busy meanwhile in the median"
        disturbed = [c.prediction.kernel for c, cores in busy if cores > DISTURBED]
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(disturbed))
        found.append(
            text + (f", and more than {DISTURBED:.0%} in {len(disturbed)} runs (of {names})." if names else ".")
        )
    turns = [c for c in report.machine.caches if c.beside_bytes_per_s is not None]
    if turns:
        names = " and ".join(f"{c.name} ({show_bandwidth(float(c.beside_bytes_per_s or 0))})" for c in turns)
        found.append(f"Levels that take turns with those behind them, as characterized: {names}.")
    return found


def _repeated(report: Report) -> list[str]:
    """How many of the runs above the roof stay there when they are made again."""
    medians = [
        median([report.fair_ratio(again) for again in repeats])
        for c in report.above
        if (repeats := report.repeats_of(c))
    ]
    if not medians:
        return []
    stay = sum(is_above(ratio) for ratio in medians)
    what = "The run above the roof was" if len(medians) == 1 else f"The {len(medians)} runs above the roof were"
    times = " or ".join(str(n) for n in sorted({len(repeats) for _, repeats in report.repeats}))
    return [
        f"{what} made again at once, {times} times; by the median of the repeats, above it again: {stay}, "
        f"no longer: {len(medians) - stay}."
    ]


def _outside(report: Report, c: Comparison, ratio: float) -> str:
    """One stream that is not where it was expected."""
    p = c.prediction
    text = f"Not so `{p.kernel}` with {ratio:.2f}, bound by {p.bound}"
    beside = report.beside_of(c)
    if ratio < EXPECTED[0] and beside is not None and beside.under_ceilings is not None:
        text += f"; under the measured ceilings of the caches beside farther levels it reaches {_two(beside)}"
    return text + "."


def _two(beside: Beside) -> str:
    return "" if beside.under_ceilings is None else f"{beside.under_ceilings.ratio:.2f}"


def _streams(report: Report) -> str:
    """Out of cache: by the machine file, by the memory beside the run, and under the ceilings of levels in turn."""
    head = ("kernel", "size", "rate of its traffic", "bound", "ratio", "by the memory beside it", "under ceilings")
    rows = []
    for c in report.streams:
        p, beside = c.prediction, report.beside_of(c)
        sizes = ", ".join(f"{n}={v}" for n, v in p.parameters)
        rate = show_bandwidth(p.memory.bytes / c.measured_s)
        now = ("", "") if beside is None else (f"{beside.by_memory.ratio:.2f}", _two(beside))
        rows.append((p.kernel, sizes, rate, p.bound, f"{c.ratio:.2f}", *now))
    return markdown(head, rows)


def _above(report: Report) -> str:
    """Every run above the roof and all its repeats, then what may explain the run."""
    rows, lines = [], []
    for c in report.above:
        sizes = ", ".join(f"{n}={v}" for n, v in c.prediction.parameters)
        for k, run in enumerate((c, *report.repeats_of(c))):
            beside = report.beside_of(run)
            rates = ("", "") if beside is None or beside.per_s is None else map(show_bandwidth, beside.per_s)
            fair = "" if beside is None else f"{beside.by_memory.ratio:.2f}"
            name = (c.prediction.kernel, sizes, c.prediction.bound) if k == 0 else ("", "", "")
            rows.append((*name, "the run" if k == 0 else f"repeat {k}", f"{run.ratio:.2f}", fair, *rates))
        causes = c.causes or ("by the memory beside it only, which was slower than while it ran",)
        lines.append(f"- `{c.prediction.kernel}`{_again(report, c)}. Likely causes: {'; '.join(causes)}.")
    head = ("kernel", "size", "bound", "", "ratio", "by the memory beside it", "memory before", "after")
    return markdown(head, rows) + "\n\n" + "\n".join(lines)


def _again(report: Report, c: Comparison) -> str:
    """What became of one run when it was made again."""
    ratios = [report.fair_ratio(again) for again in report.repeats_of(c)]
    if not ratios:
        return ""
    what = "stays above the roof" if is_above(median(ratios)) else "does not stay above the roof"
    return f" {what}: {median(ratios):.2f} in the median of {len(ratios)} repeats"


def _distributions(report: Report) -> str:
    """Quartiles by where the data are and by the first bound, by the memory beside a run where that was measured."""
    groups: dict[str, list[float]] = {}
    fair = report.fair_ratio
    levels = [*(c.name for c in report.machine.caches), report.machine.main_memory.name]
    for c in report.comparisons:
        groups.setdefault("all runs", []).append(fair(c))
    for name in levels:
        groups[f"data in {name}"] = [fair(c) for c in report.comparisons if level_of(c, report.machine) == name]
    groups["streams out of cache"] = [fair(c) for c in report.streams]
    for bound, runs in by_first_bound(report):
        groups[f"bound by {bound}"] = [fair(c) for c in runs]
    rows = []
    for name, ratios in groups.items():
        if not ratios:
            continue
        d = distribution(ratios)
        inside = sum(DEFAULTS.verdict(r) == "as predicted" for r in ratios)
        above = sum(map(is_above, ratios))
        numbers = (d.least, d.quarter, d.median, d.three_quarters, d.greatest)
        rows.append((name, str(d.count), *(f"{x:.2f}" for x in numbers), str(inside), str(above)))
    head = ("", "runs", "least", "1/4", "median", "3/4", "greatest", "as predicted", "above the roof")
    text = "A run is under its first bound where several are within a tenth of each other."
    return f"{text}\n\n{markdown(head, rows)}"


def by_first_bound(report: Report) -> list[tuple[str, list[Comparison]]]:
    """All runs by what takes longest: launch, compute, levels from the nearest to memory, then what else there is."""
    levels = [*(c.name for c in report.machine.caches), report.machine.main_memory.name]
    groups: dict[str, list[Comparison]] = {name: [] for name in ("launch", "compute", *levels)}
    for c in report.comparisons:
        groups.setdefault(next(iter(c.prediction.bounds), "nothing"), []).append(c)
    return list(groups.items())


def _runs(report: Report) -> str:
    rows = []
    for c in sorted(report.comparisons, key=lambda c: (c.prediction.kernel, c.prediction.footprint_bytes or 0)):
        p, m = c.prediction, c.measurement
        sizes = ", ".join(f"{n}={v}" for n, v in p.parameters)
        rate = show_rate(m.rate_per_s, p.operation) if p.work else ""
        data = show_size((p.footprint_bytes or 0) >> 10 << 10) if (p.footprint_bytes or 0) > 1 << 10 else "< 1 KiB"
        times = (show_time(c.predicted_s, 3), show_time(c.measured_s, 3), f"{m.times.spread:.0%}")
        where = level_of(c, report.machine)
        beside, others = report.beside_of(c), report.others_of(c)
        ratios = (f"{c.ratio:.2f}", "" if beside is None else f"{beside.by_memory.ratio:.2f}")
        busy = "" if others is None else f"{others:.0%}"
        rows.append((p.kernel, m.variant, sizes, data, where, *times, rate, p.bound, *ratios, busy))
    head = ("kernel", "variant", "size", "data", "in", "predicted", "measured", "spread", "rate", "bound", "ratio")
    return markdown((*head, "by the memory beside it", "others"), rows)


def _refusals(refusals: Sequence[Refusal]) -> str:
    """A row for every kernel and reason; kernels without sizes, which have the reason in common, in one."""
    whole: dict[str, list[str]] = {}
    sized: dict[tuple[str, str], list[str]] = {}
    for r in refusals:
        if r.sizes:
            sized.setdefault((r.kernel, r.reason), []).append(r.sizes)
        else:
            whole.setdefault(r.reason, []).append(r.kernel)
    rows = [(kernel, "; ".join(sizes), reason) for (kernel, reason), sizes in sized.items()]
    rows += [(", ".join(dict.fromkeys(kernels)), "", reason) for reason, kernels in whole.items()]
    return markdown(("kernel", "size", "why"), rows)


def draw(report: Report, path: Path) -> None:
    """Every run's `fair_ratio` against the size of its data, one colour and sign for each first bound."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from roofdsl.plot.look import INK, OKABE_ITO

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.8, 4.8), dpi=100)
        axes = figure.add_axes((0.08, 0.12, 0.71, 0.78))
        axes.axhspan(1 - DEFAULTS.tolerance, 1 + DEFAULTS.margin, color="#EFEFEF", zorder=0, label="as predicted")
        for k, (bound, some) in enumerate(by_first_bound(report)):
            if some:
                xs, ys = [c.prediction.footprint_bytes or 0 for c in some], [report.fair_ratio(c) for c in some]
                color, sign = OKABE_ITO[k % len(OKABE_ITO)], "os^Dv"[k % 5]
                label = f"bound by {bound}"
                axes.plot(xs, ys, sign, color=color, markersize=6, alpha=0.85, mec="white", mew=0.5, label=label)
        axes.axhline(1, color=INK, linewidth=1.2)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for cache in report.machine.caches:
            axes.axvline(cache.size_bytes, color="#999999", linewidth=0.9, linestyle=(0, (3, 2)))
            axes.annotate(
                cache.name, (cache.size_bytes, 1), xycoords=("data", "axes fraction"), xytext=(-4, -4),
                textcoords="offset points", ha="right", va="top", color="#666666",
            )  # fmt: skip
        ticks = [float(t) for t in axes.get_xticks()]
        low, high = axes.get_xlim()
        axes.set_xticks([t for t in ticks if low <= t <= high], [_size(t) for t in ticks if low <= t <= high])
        axes.set_xlim(low, high)
        axes.set_ylim(top=max(1.6, 1.2 * axes.get_ylim()[1]))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("Data touched")
        axes.set_ylabel("Measured / predicted performance")
        axes.set_title(f"{report.machine.title}: every run", loc="left", color=INK)
        axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1))
        axes.grid(True, color="#E4E4E4", linewidth=0.7)
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _size(value: float) -> str:
    return show_size(int(value))
