"""The report of a validation: its figures in words, how far expected times are off, every run, what was not run.

Every sentence is made of the figures of the run at hand. Where the bandwidth of memory was measured beside a run, its
bound and expected time are by that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmarks.kernel_class import CLASSES
from benchmarks.measure import markdown
from benchmarks.validation_reasons import REASONS
from benchmarks.validation_runs import CLOSE, DISTURBED, Errors, Ran, Refusal, Report, errors, groups, is_above
from roofdsl.machine.model import Cache
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_size, show_time
from roofdsl.measure.timing import median
from roofdsl.validate.compare import distribution

LEAST_SHARE = 0.01
"""A cause with a smaller share of the expected time is not named."""

_PLACE = re.compile(r" \(line \d+ of the assembly\)")
"""Where in its assembly a kernel has no expected time: another place in every kernel, for the same reason."""


def section(report: Report, what: str = "one core") -> str:
    """The report as Markdown."""
    machine = report.machine
    beta = show_bandwidth(float(machine.main_memory.bandwidth_bytes_per_s))
    head = (
        f"{machine.title}: f64 {show_rate(float(machine.peak('f64').per_s))} fused, memory {beta}; "
        f"{len(report.runs)} runs, {len(report.refusals)} refusals"
        f"{f', in {report.seconds:.0f} s' if report.seconds else ''}"
        f"{f', {report.taken_up} of the runs taken up from before an interruption' if report.taken_up else ''}. "
        "`bound` is the time that no code with these accesses can beat, `expected` what the code should take."
    )
    parts = [f"## Predicted and measured on {what}", head, *report.notes, " ".join(in_words(report))]
    if report.expected:
        parts += ["### Error of the expected times", _errors(report)]
        parts += ["### Error by class and by where the data lie", _classes(report)]
        parts += [f"### Expected times off by more than {CLOSE:.0%}", _outside(report)]
    if report.above:
        parts += ["### Above the bound", _above(report)]
    parts += ["### Measured rate over the bound's", _distributions(report)]
    if len(report.expected) < len(report.runs):
        parts += ["### Without an expected time", _without(report)]
    parts += ["### Every run", _runs(report)]
    if report.refusals:
        parts += ["### Not run", _refusals(report.refusals)]
    return "\n\n".join(parts)


def in_words(report: Report) -> list[str]:
    """What the figures say, in sentences."""
    found = [_error_in_words(report), _above_in_words(report)]
    beside = [per_s for run in report.runs for per_s in run.memory_per_s or ()]
    if beside:
        found.append(
            f"Memory was measured right before and after each run with data there, at {show_bandwidth(min(beside))} to "
            f"{show_bandwidth(max(beside))}; bounds and expected times of these runs use the higher of the two."
        )
    busy = [(run, run.others) for run in report.runs if run.others is not None]
    if busy:
        text = f"Other programs kept {median([cores for _, cores in busy]):.0%} of a core busy meanwhile in the median"
        disturbed = [run.kernel for run, cores in busy if cores > DISTURBED]
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(disturbed))
        of = f", and more than {DISTURBED:.0%} in {_runs_in_words(len(disturbed))} (of {names})"
        found.append(f"{text}{of if names else ''}.")
    turns = [c for c in report.machine.caches if c.takes_turns]
    if turns:
        names = " and ".join(f"{c.name} ({_beside(c)})" for c in turns)
        found.append(f"Levels that take turns with those behind them, as characterized: {names}.")
    return found


def _beside(cache: Cache) -> str:
    """The rates of its hits beside the next level and beside farther ones, where they were measured apart."""
    near, far = cache.beside_bytes_per_s, cache.beside_far_bytes_per_s
    rates = [
        "" if near is None else show_bandwidth(float(near)),
        "" if far is None else f"{show_bandwidth(float(far))} beside farther ones",
    ]
    return ", ".join(r for r in rates if r)


def _runs_in_words(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def _error_in_words(report: Report) -> str:
    found = errors(report.runs)
    if found is None:
        return f"None of the {_runs_in_words(len(report.runs))} has an expected time."
    return (
        f"Of {_runs_in_words(len(report.runs))} {found.count} have an expected time. Its error, |expected / measured - "
        f"1|, is {found.median:.1%} in the median; {_share(found.close, found)} are within {CLOSE:.0%}, and "
        f"{_share(found.within_two, found)} within a factor of two."
    )


def _share(count: int, of: Errors) -> str:
    return f"{count} ({count / of.count:.0%})"


def _above_in_words(report: Report) -> str:
    text = (
        f"{_runs_in_words(len(report.above))} of {len(report.runs)} {_are(len(report.above))} above the bound by more"
    )
    text += " than 5 %."
    medians = [median([again.of_bound for again in run.repeats]) for run in report.above if run.repeats]
    if not medians:
        return text
    stay = sum(map(is_above, medians))
    times = " or ".join(str(n) for n in sorted({len(run.repeats) for run in report.above if run.repeats}))
    return (
        f"{text} {'It was' if len(medians) == 1 else f'{len(medians)} were'} made again at once, {times} times; "
        f"by the median of the repeats, above it again: {stay}, no longer: {len(medians) - stay}."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _errors(report: Report) -> str:
    """A row for each group of runs."""
    rows = []
    for name, runs in groups(report):
        found = errors(runs)
        if found is not None:
            numbers = (
                f"{found.median:.1%}",
                f"{found.close / found.count:.0%}",
                f"{found.within_two / found.count:.0%}",
            )
            spread = (f"{found.least:.2f}", f"{found.middle:.2f}", f"{found.greatest:.2f}")
            rows.append((name, str(found.count), *numbers, *spread))
    head = ("", "runs", "median error", f"within {CLOSE:.0%}", "within a factor of two")
    ratios = ("expected/measured, least", "median", "greatest")
    named = {run.kind for run in report.expected}
    classes = "; ".join(f"{name}: {text}" for name, text in CLASSES.items() if name in named)
    words = (
        "The error of a run is |expected / measured - 1|. A run is on a core that was shared if at least as many of "
        "its samples were disturbed as not, or if they spread by more than 25%. Kernels are in half A or B by the last "
        "bit of the SHA-256 of their names; reasons of errors were looked for in A only. A run counts under its first "
        "bound where several are within a tenth of each other, and under the first class that fits its kernel's "
        f"deepest loops. Classes: {classes}."
    )
    return f"{words}\n\n{markdown((*head, *ratios), rows)}"


def _classes(report: Report) -> str:
    """The median error of every class in every level, with the number of runs."""
    rows = []
    for kind in CLASSES:
        own = [run for run in report.expected if run.kind == kind]
        if own:
            cells = [_median_error(run for run in own if report.level_of(run) == level) for level in report.levels]
            rows.append((kind, *cells))
    return f"The median error, with the number of runs in parentheses.\n\n{markdown(('', *report.levels), rows)}"


def _median_error(runs: Iterable[Ran]) -> str:
    found = errors(runs)
    return "" if found is None else f"{found.median:.0%} ({found.count})"


def _outside(report: Report) -> str:
    """Every run whose expected time is not close, the furthest off first, with its largest cause."""
    far = sorted((run for run in report.expected if not run.is_close), key=_distance, reverse=True)
    rows = []
    for run in far:
        name = (run.kernel, run.math, run.sizes, run.kind, report.level_of(run))
        why = run.shared or REASONS.get(run.kernel, "")
        rows.append((*name, *_times(run), *_ratios(run), run.compared.prediction.bound, _largest_cause(run), why))
    head = (
        "kernel",
        "math",
        "size",
        "class",
        "in",
        *_TIMES,
        *_RATIOS,
        "bound by",
        "largest cause, with its share of the expected time",
        "likely reason of the error",
    )
    shared = sum(bool(run.shared) for run in far)
    words = (
        f"{_runs_in_words(len(far))}, the furthest off first, each with the largest cause of its distance from the "
        f"bound. During {shared} of them, somebody else's thread or program shared the core, as the samples show."
    )
    return f"{words}\n\n{markdown(head, rows)}" if rows else "None."


def _largest_cause(run: Ran) -> str:
    """With its share of the expected time; nothing where that is at the bound."""
    cause, expected_s = run.compared.largest_cause, run.expected_s
    if cause is None or expected_s is None or cause.share_s < LEAST_SHARE * expected_s:
        return "none, expected at the bound"
    return f"{cause.cause} ({float(cause.share_s) / expected_s:+.0%})"


def _distance(run: Ran) -> float:
    """How far the expected time is off, as a factor."""
    ratio = run.of_expected or 1
    return max(ratio, 1 / ratio)


_TIMES = ("bound", "expected", "measured")
_RATIOS = ("expected/measured", "bound/measured")


def _times(run: Ran) -> tuple[str, str, str]:
    expected = "" if run.expected_s is None else show_time(run.expected_s, 3)
    return show_time(run.bound_s, 3), expected, show_time(run.measured_s, 3)


def _ratios(run: Ran) -> tuple[str, str]:
    return "" if run.of_expected is None else f"{run.of_expected:.2f}", f"{run.of_bound:.2f}"


def _above(report: Report) -> str:
    """Every run above the bound and all its repeats, then what may explain the run."""
    rows, lines = [], []
    for run in report.above:
        for k, own in enumerate((run, *run.repeats)):
            rates = ("", "") if own.memory_per_s is None else tuple(map(show_bandwidth, own.memory_per_s))
            name = (run.kernel, run.math, run.sizes, run.compared.prediction.bound) if k == 0 else ("",) * 4
            rows.append((*name, "the run" if k == 0 else f"repeat {k}", f"{own.of_bound:.2f}", *rates))
        causes = run.compared.causes or (
            "the bound's rates were measured while the processor or its memory was slower",
        )
        lines.append(f"- `{run.kernel}` {run.sizes}{_again(run)}. Likely causes: {'; '.join(causes)}.")
    head = ("kernel", "math", "size", "bound by", "", "bound/measured", "memory before", "after")
    return markdown(head, rows) + "\n\n" + "\n".join(lines)


def _again(run: Ran) -> str:
    """What became of one run when it was made again."""
    ratios = [again.of_bound for again in run.repeats]
    if not ratios:
        return ""
    what = "stays above the bound" if is_above(median(ratios)) else "does not stay above the bound"
    return f" {what}: {median(ratios):.2f} in the median of {len(ratios)} repeats"


def _distributions(report: Report) -> str:
    """Quartiles of each group."""
    rows = []
    for name, runs in groups(report):
        d = distribution([run.of_bound for run in runs])
        numbers = (d.least, d.quarter, d.median, d.three_quarters, d.greatest)
        rows.append((name, str(d.count), *(f"{x:.2f}" for x in numbers), str(sum(run.is_above for run in runs))))
    head = ("", "runs", "least", "1/4", "median", "3/4", "greatest", "above the bound")
    return f"1 reaches the bound; over 1.05 is above it.\n\n{markdown(head, rows)}"


def _without(report: Report) -> str:
    """The runs without an expected time, by the reason, with what the bound says of them."""
    reasons: dict[str, list[Ran]] = {}
    for run in report.runs:
        if run.expected_s is None:
            why = _PLACE.sub("", run.compared.prediction.no_expected) or "not asked for"
            reasons.setdefault(why, []).append(run)
    rows = []
    for reason, runs in sorted(reasons.items(), key=lambda item: -len(item[1])):
        names = ", ".join(dict.fromkeys(run.kernel for run in runs))
        rows.append((reason, str(len(runs)), f"{median([run.of_bound for run in runs]):.2f}", names))
    return markdown(("why", "runs", "median bound/measured", "kernels"), rows)


def _runs(report: Report) -> str:
    rows = []
    order = sorted(report.runs, key=lambda r: (r.kernel, r.math, r.compared.prediction.footprint_bytes or 0))
    for run in order:
        p, m = run.compared.prediction, run.compared.measurement
        rate = show_rate(m.rate_per_s, p.operation) if p.work else ""
        data = show_size((p.footprint_bytes or 0) >> 10 << 10) if (p.footprint_bytes or 0) > 1 << 10 else "< 1 KiB"
        busy = "" if run.others is None else f"{run.others:.0%}"
        memory = "" if run.memory_per_s is None else show_bandwidth(max(run.memory_per_s))
        name = (run.kernel, m.variant, run.math, run.kind, run.sizes, data, report.level_of(run))
        times = (*_times(run), f"{m.times.spread:.0%}", rate)
        rows.append((*name, *times, *_ratios(run), run.compared.prediction.bound, memory, busy))
    head = ("kernel", "variant", "math", "class", "size", "data", "in", *_TIMES, "spread", "rate")
    return markdown((*head, *_RATIOS, "bound by", "memory beside it", "others"), rows)


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
