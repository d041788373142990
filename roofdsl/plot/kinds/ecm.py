"""The parts of the expected time: the core's work and the transfers of each level, and which of them overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roofdsl.incore.lines_of_work import lines_of_work
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace as with_fields
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_number, show_time
from roofdsl.plot.chosen_measurements import by_size, fastest
from roofdsl.plot.kind import Asked, Kind, Option, at_option
from roofdsl.plot.look import OKABE_ITO, USUAL, Look, fitted, no_y_limits, styled
from roofdsl.plot.roofline_points import labels_of, sizes_of_all
from roofdsl.plot.ticks import even_ticks, set_ticks
from roofdsl.predict.expected import Expected
from roofdsl.predict.in_core_time import Code, without_in_core
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.some_cores import some_cores
from roofdsl.validate.compare import Comparison

WIDTH_IN, ROW_IN, PANEL_IN = 8.0, 0.27, 0.62
CALL, CORE, LOADS = "call", "arithmetic", "loads, stores"
ROUNDS = 60
SEEN = 0.004
"""The share of the width below which a bar is hardly seen."""


@dataclass(frozen=True)
class Bar:
    """One part of the time of a loop nest: when it begins, and how long it takes, in the figure's unit."""

    name: str
    start: float
    length: float


@dataclass(frozen=True)
class Panel:
    """One kernel at one size. measured: (low, median, high), if it was measured; all in the figure's unit."""

    label: str
    bars: tuple[Bar, ...]
    expected: float
    bound: float
    measured: tuple[float, float, float] | None = None

    @property
    def rows(self) -> dict[str, list[Bar]]:
        """The bars of each part, from top to bottom; loop nests that follow each other share the rows."""
        found: dict[str, list[Bar]] = {}
        for bar in self.bars:
            found.setdefault(bar.name, []).append(bar)
        return found


def bars_of(found: Expected, scale: float) -> tuple[Bar, ...]:
    """The parts as they run, loop nest by loop nest."""
    begin = float(found.launch_s) * scale
    bars = [Bar(CALL, 0.0, begin)] if begin else []
    for own in [nest.expected for nest in found.nests] or [found]:
        bars += _bars_of_nest(own, begin, scale)
        begin += float(own.expected_s - own.launch_s) * scale
    return tuple(bars)


def _bars_of_nest(found: Expected, begin: float, scale: float) -> Iterator[Bar]:
    """Levels that overlap begin together, and levels that take turns run one after the other.

    Levels that partly overlap begin so early that the last one ends at the time found for loads and transfers together.
    """
    data = [(LOADS, float(found.loads_s) * scale), *((name, float(t) * scale) for name, t in found.transfers)]
    data = [(name, t) for name, t in data if t > 0]
    end = float(found.data_s) * scale
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        part = (low + high) / 2
        low, high = (part, high) if _last(data, part) < end else (low, part)
    if found.core_s:
        yield Bar(CORE, begin, float(found.core_s) * scale)
    for name, length in data:
        yield Bar(name, begin, length)
        begin += length * high


def _last(data: Sequence[tuple[str, float]], part: float) -> float:
    """The time at which the last part ends, if each begins after the fraction `part` of all those before it."""
    before, last = 0.0, 0.0
    for _, length in data:
        last = max(last, before + length)
        before += length * part
    return last


@styled
def draw_ecm(panels: Sequence[Panel], title: str, unit: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure: a panel for each kernel, a row for each part of its time, and lines for the whole.

    Raises CommandError without a panel, and if the panels do not fit into the requested size.
    """
    if not panels:
        raise CommandError("there is no expected time to draw", "`plot ecm` is for CPUs that state their instructions")
    no_y_limits(look, "bars")
    scale = look.font_scale
    width = look.size((WIDTH_IN, 1.0))[0]
    heading = look.heading(title, width - 0.3)
    above = (0.12 + 0.2 * (heading.count("\n") + 1)) * scale
    below = 0.95 * scale
    heights = [(PANEL_IN + ROW_IN * len(p.rows)) * scale for p in panels]
    whole = above + sum(heights) + below
    height = look.size_in[1] if look.size_in else whole
    stretch = (height - above - below) / sum(heights)
    if stretch < 0.5:
        raise CommandError(f"{len(panels)} kernels do not fit into {height:g} inches", "use a larger --size")
    figure = Look(dark=look.dark, size_in=(width, height)).figure((width, height))
    names = list(dict.fromkeys(bar.name for p in panels for bar in p.bars))
    colors = {name: OKABE_ITO[k % len(OKABE_ITO)] for k, name in enumerate(names)}
    left = 0.2 + max(look.width_in(name, look.normal) for name in names)
    most = max(max(p.expected, p.bound, *(p.measured or (0.0,))) for p in panels)
    limits = look.limits((0.0, 1.12 * most), "x", logarithmic=False)
    top = height - above
    for k, (panel, own) in enumerate(zip(panels, heights, strict=True)):
        tall = own * stretch
        rows = tall - 0.36 * scale
        axes = figure.add_axes((left / width, (top - tall) / height, 1 - (left + 0.25) / width, rows / height))
        _panel(axes, panel, colors, limits, look)
        is_last = k == len(panels) - 1
        ticks = even_ticks(*limits, max(2, min(9, int((width - left) / 0.7))))
        set_ticks(axes.xaxis, ticks, lambda t: show_number(t, 3), minor=False)
        axes.tick_params(axis="x", labelbottom=is_last)
        if is_last:
            axes.set_xlabel(unit, fontsize=look.normal + look.font_scale)
        top -= tall
    figure.text(0.1 / width, 1 - 0.1 / height, heading, fontsize=look.large, color=look.ink, va="top")
    _legend(figure, panels, look, (0.1 / width, 0.04 / height))
    return figure


def _panel(axes: Any, panel: Panel, colors: dict[str, str], limits: tuple[float, float], look: Look) -> None:
    rows = panel.rows
    for y, (name, bars) in enumerate(rows.items()):
        for bar in bars:
            axes.barh(
                y, bar.length, left=bar.start, height=0.72, color=colors[name], edgecolor=look.paper, linewidth=0.6,
                zorder=3,
            )  # fmt: skip
        seen = [bar for bar in bars if bar.length > SEEN * (limits[1] - limits[0])] or bars
        end = seen[-1].start + seen[-1].length
        if end <= limits[1]:
            gap = 0.006 * (limits[1] - limits[0])
            axes.text(
                end + gap, y, show_number(sum(bar.length for bar in bars), 3), fontsize=look.small, color=look.ink,
                va="center", zorder=6, bbox={"facecolor": look.paper, "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
            )  # fmt: skip
    count = len(rows)
    axes.axvline(panel.bound, color=look.ink, linewidth=1.2, linestyle=(0, (2, 2)), zorder=4)
    axes.axvline(panel.expected, color=look.ink, linewidth=1.6, zorder=5)
    if panel.measured is not None:
        low, median, high = panel.measured
        middle = (count - 1) / 2
        axes.plot([low, high], [middle, middle], color=look.ink, linewidth=1.4, zorder=7)
        axes.plot(
            [median], [middle], "s", color=look.paper, markeredgecolor=look.ink, markersize=7, markeredgewidth=1.4,
            zorder=8,
        )  # fmt: skip
    axes.set_xlim(limits)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks(range(count), list(rows), fontsize=look.normal)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=look.normal)
    axes.grid(True, axis="x", color=look.grey("#E9E9E9"), linewidth=0.7)
    axes.set_title(fitted(panel.label, 80, 1), fontsize=look.normal, loc="left", color=look.ink, pad=3)
    look.dress(axes)
    axes.spines["left"].set_visible(False)


def _legend(figure: Any, panels: Sequence[Panel], look: Look, at: tuple[float, float]) -> None:
    from matplotlib.lines import Line2D

    dashes: Any = (0, (2, 2))
    handles = [
        Line2D([], [], color=look.ink, linewidth=1.6, label="expected"),
        Line2D([], [], color=look.ink, linewidth=1.2, linestyle=dashes, label="bound"),
    ]
    if any(p.measured for p in panels):
        handles.append(
            Line2D([], [], color=look.ink, marker="s", markerfacecolor=look.paper, label="measured, 10 to 90 %")
        )
    legend = figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=at, frameon=False, fontsize=look.small, ncols=len(handles),
        borderaxespad=0,
    )  # fmt: skip
    for entry in legend.get_texts():
        entry.set_color(look.ink)


# ---- the command ----


def _figure(asked: Asked, in_core: str | None, math: str | None, warm: bool) -> Any:
    if why := without_in_core(asked.machine):
        raise CommandError(why, "`plot ecm` is for CPUs that state their instructions")
    machine, warning = _of_one_core(asked.machine)
    code = Code(_one_of(in_core, "auto", ("auto", "compiled", "stated"), "--in-core"), "numba",  # type: ignore[arg-type]
                _one_of(math, "relaxed", ("relaxed", "strict"), "--math"))  # type: ignore[arg-type]  # fmt: skip
    options = with_fields(asked.options, code=code, warm=warm, accesses="compiled")
    kernels = [(kernel, sizes) for kernel, sizes in asked.subjects if isinstance(kernel, Kernel)]
    if len(kernels) < len(asked.subjects):
        asked.warn("programs are left out: the figure shows single launches")
    found = replace(asked, subjects=kernels, machines=[machine]).predicted(options)
    times = by_size(asked.measured(options))
    panels = []
    for (kernel, sizes), p, label in zip(kernels, found, _labels(found), strict=True):
        if p.expected is None:
            asked.warn(f"{label} is left out: {p.no_expected}")
            continue
        lines = lines_of_work(kernel, sizes)
        scale = 1e9 / lines if machine.clock_hz is None else float(machine.clock_hz) / lines
        measured = _drawn(times.get((p.kernel, p.parameters), []), asked, label, warm, code.math)
        m = None if measured is None else measured.measurement
        spread = () if m is None else (m.low_s, m.median_s, m.high_s)
        panels.append(_panel_of(p, label, scale, tuple(scale * t for t in spread) or None))
    if warning and panels:
        asked.warn(warning)
    unit = "ns" if machine.clock_hz is None else "cycles"
    return draw_ecm(panels, _title(machine, found), f"{unit} for a cache line of work", look=asked.look)


def _of_one_core(machine: Machine) -> tuple[Machine, str]:
    """One core of a CPU, and a warning if the bars have to be for all cores: what one of them gets is not stated."""
    if machine.multiprocessor is not None or (machine.units or 1) == 1:
        return machine, ""
    try:
        alone = some_cores(machine, 1)
    except CommandError as error:
        return machine, f"the bars are for all {machine.units} cores together: {error.message}"
    return with_fields(alone, title=f"{machine.title or machine.name}, one core"), ""


def _drawn(runs: Sequence[Comparison], asked: Asked, label: str, warm: bool, math: str) -> Comparison | None:
    """The measurement on one core that ran most like what the bars assume; warnings say how it differs."""
    alone = [c for c in runs if c.measurement.threads == 1]
    if runs and not alone:
        asked.warn(f"{label} was measured on several cores, and the bars are for one: measure it with --cores 1")
    unlike = [len(list(_unlike(c, warm, math))) for c in alone]
    best = fastest([c for c, n in zip(alone, unlike, strict=True) if n == min(unlike)], label, asked.warn)
    for how in () if best is None else _unlike(best, warm, math):
        asked.warn(f"{label} was measured {how}")
    return best


def _unlike(run: Comparison, warm: bool, math: str) -> Iterator[str]:
    """How the measured code ran differently from what the bars assume, and the option that makes them agree."""
    measured = run.measurement
    if (measured.state == "warm") != warm:
        option = "leave out --warm" if warm else "give --warm"
        yield f"with {measured.state} caches, and the bars are for {'warm' if warm else 'cold'} ones: {option}"
    ran = measured.details.get("math", math)
    if ran != math:
        yield f"with {ran} math, and the bars are for {math} math: give --math {ran}"


def _panel_of(p: Prediction, label: str, scale: float, measured: Any) -> Panel:
    assert p.expected is not None
    told = f"{label}: {show_time(p.expected.expected_s, 3)}"
    bars = bars_of(p.expected, scale)
    return Panel(told, bars, float(p.expected.expected_s) * scale, float(p.bound_s) * scale, measured)


def _labels(found: Sequence[Prediction]) -> list[str]:
    labels = labels_of(found)
    return [label if p.kernel in label else f"{p.kernel} {label}" for p, label in zip(found, labels, strict=True)]


def _title(machine: Machine, found: Sequence[Prediction]) -> str:
    models = dict.fromkeys(p.expected.model for p in found if p.expected is not None)
    return "\n".join(filter(None, [machine.title or machine.name, sizes_of_all(found), *models]))


def _one_of(given: str | None, usual: str, known: Sequence[str], flag: str) -> str:
    """The given word, or `usual` if none is given. Raises CommandError for an unknown one."""
    if given is not None and given not in known:
        raise CommandError(f"`{flag} {given}` is not known", f"use one of {', '.join(known)}")
    return given or usual


KIND = Kind(
    "Draw what the expected time is made of, level by level.",
    "Draw the parts of the expected time (ECM model) for a cache line of work: the core's arithmetic, loads and "
    "stores, and the transfers of each level, as they overlap or take turns, with the bound and measured times.",
    (
        "machine",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable); drawn in the order given."),
        "results",
        "traffic",
        Option("--in-core", "Where the in-core time comes from; by default, auto.", "auto|compiled|stated"),
        Option("--math", "What compilers may do: relaxed (the default) or strict.", "relaxed|strict"),
        Option("--warm", "Start with the caches as a previous launch left them.", takes="nothing"),
    ),
    _figure,
    files="FILE...",
    has_bars=True,
)
