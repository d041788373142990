"""The speed of a kernel over the number of cores, with the number at which a shared level is saturated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace as with_fields
from roofdsl.loops.model import Kernel
from roofdsl.machine.quantities import show_number
from roofdsl.plot.board import frame_of
from roofdsl.plot.chosen_measurements import with_state
from roofdsl.plot.kind import Asked, Kind, Option, at_option
from roofdsl.plot.look import SIGNS, USUAL, Look, styled
from roofdsl.plot.roofline_points import common_sizes, labels_of
from roofdsl.plot.ticks import even_ticks, set_ticks
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.on_cores import Scaling, scaling
from roofdsl.predict.options import Options
from roofdsl.validate.compare import Comparison

Parameters = tuple[tuple[str, int], ...]

MOST_CORES = 1024
USUAL_CORES = 8


@styled
def draw_scaling(
    found: Sequence[Scaling],
    labels: Sequence[str],
    title: str,
    measured: Sequence[Mapping[int, float]] = (),
    *,
    look: Look = USUAL,
) -> Any:
    """The matplotlib Figure: the speedup over one core for each kernel, and a mark where it saturates.

    measured: for each kernel the measured speedups by number of cores, drawn hollow. Raises CommandError without a
    kernel.
    """
    if not found:
        raise CommandError("there is no kernel to draw", "give FILEs, and a machine that states its instructions")
    most = max(s.cores[-1] for s in found)
    speeds = [[float(s.times_s[0] / t) for t in s.times_s] for s in found]
    top = max(max(each) for each in (*speeds, *(own.values() for own in measured if own)))
    key = [_key(s, label) for s, label in zip(found, labels, strict=True)]
    frame = frame_of(look, title, [show_number(top, 3)], key=key)
    axes = frame.axes
    x = look.limits((0.6, max(2.0, float(most)) + 0.4), "x", logarithmic=False)
    y = look.limits((0.0, 1.08 * top), "y", logarithmic=False)
    axes.plot([1, most], [1, most], color=look.grey("#999999"), linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
    for k, (s, speed, text) in enumerate(zip(found, speeds, key, strict=True)):
        # Of curves that coincide, the later ones have gaps and smaller symbols, so that all colours are seen.
        below = sum(_coincide(speed, earlier) for earlier in speeds[:k])
        _curve(axes, s, (speed, text), look.color(k), SIGNS[k % len(SIGNS)], paper=look.paper, below=below)
        seen = measured[k] if measured else {}
        axes.plot(
            list(seen), list(seen.values()), SIGNS[k % len(SIGNS)], color=look.paper, markeredgecolor=look.color(k),
            markersize=8, markeredgewidth=1.4, zorder=5, linestyle="none",
        )  # fmt: skip
    axes.set_xlim(x)
    axes.set_ylim(y)
    set_ticks(axes.xaxis, [t for t in even_ticks(*x, 9) if t == int(t)], lambda t: str(int(t)), minor=False)
    set_ticks(axes.yaxis, even_ticks(*y, 7), lambda t: show_number(t, 3), minor=False)
    axes.set_xlabel("Cores", fontsize=look.normal + look.font_scale)
    axes.set_ylabel("Speedup over one core", fontsize=look.normal + look.font_scale)
    axes.grid(True, color=look.grey("#E4E4E4"), linewidth=0.7)
    axes.tick_params(labelsize=look.normal)
    look.dress(axes)
    width = frame.figure.get_size_inches()[0]
    left = frame.rectangle[0] + frame.rectangle[2] + frame.key_at_in / width
    legend = frame.figure.legend(
        loc="upper left", bbox_to_anchor=(left, frame.rectangle[1] + frame.rectangle[3]), frameon=False,
        fontsize=look.small, borderaxespad=0,
    )  # fmt: skip
    for entry in legend.get_texts():
        entry.set_color(look.ink)
    return frame.figure


def _curve(
    axes: Any, found: Scaling, shown: tuple[Sequence[float], str], color: str, sign: str, *, paper: str, below: int
) -> None:
    """The speedups of one kernel (shown: these, and its label), and a ring where it saturates.

    below: how many equal curves are drawn already.
    """
    speed, label = shown
    axes.plot(
        found.cores, speed, marker=sign, color=color, markersize=max(2.0, 5 - 1.5 * below),
        linewidth=1.6, zorder=4, linestyle=(0, (4, 4 * below)) if below else "-", label=label,
    )  # fmt: skip
    if found.saturation is not None and found.saturation in found.cores:
        at = speed[found.cores.index(found.saturation)]
        axes.plot(
            [found.saturation], [at], "o", color=paper, markeredgecolor=color, markersize=11, markeredgewidth=1.8,
            zorder=3,
        )  # fmt: skip


def _coincide(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two curves cannot be told apart in a figure."""
    return all(abs(a - b) < 0.01 * max(a, b) for a, b in zip(one, other, strict=False))


def _key(found: Scaling, label: str) -> str:
    name, transfers_s = found.shared
    if not transfers_s:
        return f"{label}: uses no shared level"
    if found.saturation is None:
        few = "only one core has work" if found.most == 1 else f"at most {found.most} cores have work"
        return f"{label}: {few}"
    return f"{label}: n_s = {found.saturation} ({name})"


# ---- the command ----


def _figure(asked: Asked, cores: int | None, warm: bool | None) -> Any:
    machine = asked.machine
    most = cores or max(machine.units or 1, USUAL_CORES)
    if most > MOST_CORES:
        raise CommandError(f"{most} cores are too many for a figure", f"give at most {MOST_CORES}")
    options = with_fields(asked.options, code=Code("stated"), accesses="compiled", warm=bool(warm))
    times = _measured_times(asked, options)
    found, measured = [], []
    for subject, sizes in asked.subjects:
        if not isinstance(subject, Kernel):
            asked.warn(f"{subject.name} is left out: the figure shows single launches")
            continue
        found.append(scaling(subject, sizes, machine, range(1, most + 1), options))
        single = found[-1].single
        measured.append(_speedups(times.get((single.kernel, single.parameters), []), asked, warm=bool(warm)))
    labels = labels_of([s.single for s in found])
    models = dict.fromkeys(s.single.expected.model for s in found if s.single.expected is not None)
    title = "\n".join(filter(None, [machine.title or machine.name, common_sizes([s.single for s in found]), *models]))
    return draw_scaling(found, labels, title, measured if any(measured) else (), look=asked.look)


def _measured_times(asked: Asked, options: Options) -> dict[tuple[str, Parameters], list[Comparison]]:
    """The stored results that state their number of cores, by kernel and sizes."""
    times: dict[tuple[str, Parameters], list[Comparison]] = {}
    for compared in asked.measured(options):
        if compared.cores is not None:
            p = compared.prediction
            times.setdefault((p.kernel, p.parameters), []).append(compared)
    return times


def _speedups(runs: Sequence[Comparison], asked: Asked, *, warm: bool) -> dict[int, float]:
    """Measured speedups over one core, by the number of cores; none if one core was not measured."""
    if not runs:
        return {}
    runs = with_state(runs, warm=warm)
    seconds = {c.cores: c.measured_s for c in runs if c.cores is not None}
    kernel = runs[0].prediction.kernel
    if 1 not in seconds:
        asked.warn(f"{kernel} was not measured on one core, so its speedups are left out")
        return {}
    if (runs[0].measurement.state == "warm") != warm:
        state, other, option = ("cold", "warm", "omit --warm") if warm else ("warm", "cold", "add --warm")
        asked.warn(f"{kernel} was measured with {state} caches, but the curve is for {other} ones: {option}")
    return {n: seconds[1] / s for n, s in sorted(seconds.items())}


KIND = Kind(
    "Draw the expected speedup over the number of cores.",
    "Draw the expected speedup of kernels over the number of cores (ECM model): proportional until a level that all "
    "cores share is saturated, which a circle marks. Measured speedups, from `measure --cores 1,2`, are hollow.",
    (
        "machine",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable)."),
        "results",
        "traffic",
        Option(
            "--cores",
            f"The largest number of cores; by default, the machine's, but at least {USUAL_CORES}.",
            "N",
            takes="count",
        ),
        Option("--warm", "Start with the caches as a previous launch left them.", takes="nothing"),
    ),
    _figure,
    files="FILE...",
)
