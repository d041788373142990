"""The content of the figure of Q(Z): the exact curve, its plateaus with their formulas, simulated points, caches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size

if TYPE_CHECKING:
    from roofdsl.simulate.distances import MissCurve

MOST_FOR_CURVE = 300_000_000
"""Up to this many accesses (half a minute or so), every step of Q(Z) is simulated."""

MOST_FOR_POINTS = 2_000_000_000
"""Up to this many accesses, points are simulated."""

SIMULATED_AT_ONCE = 20_000_000
"""Up to this many accesses, simulation is preferred to stack distances, since it also covers the smallest caches."""

POINTS_ON_CURVE, MOST_ON_CURVE = 12, 1_000_000_000
"""The maximum number of points simulated along a curve from a closed form, and of accesses of all of them together."""

MOST_FOR_BEST, BEST_PER_SECOND = 30_000_000, 5_000_000
"""Up to MOST_FOR_BEST accesses, the curve of the best replacement is simulated, at about BEST_PER_SECOND accesses per
second."""

BY_FORM, BY_SIMULATION = "Q(Z), closed form", "Q(Z), every cache size"


@dataclass(frozen=True)
class PlateauLine:
    """A plateau of Q(Z) from its closed form, from one cache size to another; end None: it is the last plateau."""

    start_bytes: float
    end_bytes: float | None
    traffic_bytes: float
    label: str


@dataclass(frozen=True)
class TrafficPoint:
    """Q of one cache; `kind` says how it was found, for the legend: "simulated" (fully associative LRU)."""

    cache_bytes: int
    traffic_bytes: int
    kind: str


@dataclass(frozen=True)
class TrafficContent:
    """Everything that is drawn, in bytes. `curve` holds (sizes, Q from each up to the next); `bound` (sizes, least Q).

    best: like `curve`, under the best replacement; None if it was not simulated. curve_label: the description of the
    curve. note, curve_note: why there are no plateaus, or no curve, if there are none.
    """

    title: str
    subtitle: str
    curve: tuple[tuple[int, ...], tuple[int, ...]] | None
    plateaus: tuple[PlateauLine, ...]
    points: tuple[TrafficPoint, ...]
    caches: tuple[tuple[str, int], ...]
    bound: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    note: str = ""
    curve_label: str = BY_SIMULATION
    curve_note: str = ""
    best: tuple[tuple[int, ...], tuple[int, ...]] | None = None


def traffic_content(
    kernel: Kernel,
    values: Mapping[str, int],
    convention: Traffic,
    line_bytes: int | None,
    *,
    machine: Machine | None = None,
    curve: MissCurve | None = None,
    best: MissCurve | None = None,
    with_best: bool = True,
) -> TrafficContent:
    """Derive, simulate and collect for `kernel` (directives not yet applied) at `values`, all its parameters.

    Without a line size, that of the machine's last cache is used. curve, best: under LRU and the best replacement, if
    they are known already. Raises what `derive` raises.
    """
    if line_bytes is None and machine is not None and machine.last_cache is not None:
        line_bytes = machine.last_cache.line_bytes
    run = sized(kernel, values)
    accesses = _accesses(run)
    with budget.part(2):  # the curve at these sizes gets the other half
        plateaus, note = plateau_lines(kernel, values, convention, line_bytes)
    if curve is not None and curve.line_bytes != line_bytes:
        curve = None
    if curve is None:
        found = _curve(kernel, run, accesses, convention, line_bytes)
    else:
        found = _Curve(_steps(curve, convention))
    steps = found.steps
    if steps is not None:
        plateaus = tuple(_as_far_as_flat(p, steps) for p in plateaus)
    caches = tuple((c.name, c.size_bytes) for c in machine.caches) if machine is not None else ()
    points: tuple[TrafficPoint, ...] = ()
    if accesses <= _in_budget(MOST_FOR_POINTS):
        most = min(POINTS_ON_CURVE, MOST_ON_CURVE // accesses)
        more = _along(steps[0], plateaus, most) if steps and found.by_form else ()
        points = _points(run, convention, line_bytes, plateaus=plateaus, caches=caches, more=more)
    at = ", ".join(f"{n} = {v}" for n, v in values.items())
    lines = "lines of an element" if line_bytes is None else f"lines of {show_size(line_bytes)}"
    return TrafficContent(
        f"{kernel.name}, {at}" if at else kernel.name,
        f"{convention}, fully associative LRU, {lines}" + (f"; caches of {machine.name}" if caches and machine else ""),
        steps,
        plateaus,
        points,
        caches,
        _bound_if_found(kernel, values, convention, line_bytes),
        note=note,
        curve_label=BY_FORM if found.by_form else BY_SIMULATION,
        curve_note="" if steps else f"no closed form of Q(Z) is found that is exact at these sizes, {found.why}",
        best=_best(run, accesses, convention, line_bytes, best) if with_best else None,
    )


Steps = tuple[tuple[int, ...], tuple[int, ...]]
"""(cache sizes in bytes, Q from each size up to the next)."""


@dataclass(frozen=True)
class _Curve:
    """The curve of Q(Z); steps None: there is none, and `why` says why it is not simulated either."""

    steps: Steps | None
    by_form: bool = False
    why: str = ""


def _curve(kernel: Kernel, run: Sized, accesses: int, convention: Traffic, line_bytes: int | None) -> _Curve:
    """The curve of Q(Z) in the first way that leads to one: stack distances (of long runs), closed form, simulation."""
    from roofdsl.simulate.distances import miss_curve

    with budget.part(2):  # this search may fail, so it leaves time for the simulation
        if accesses > SIMULATED_AT_ONCE:
            steps = _by_distances(run, convention, line_bytes)
            if steps is not None:
                return _Curve(steps)
        steps = _by_form(kernel, run.values, convention, line_bytes)
        if steps is not None:
            return _Curve(steps, by_form=True)
    if accesses > _in_budget(MOST_FOR_CURVE):
        return _Curve(None, why=f"and they are too large to simulate every cache (limit {MOST_FOR_CURVE:,} accesses)")
    try:
        return _Curve(_steps(miss_curve(run.kernel, run.values, line_bytes), convention))
    except CommandError as error:  # not enough memory for all lines: the plateaus and points show enough
        return _Curve(None, why=f"and it is not simulated: {error.message}")


def _best(
    run: Sized, accesses: int, convention: Traffic, line_bytes: int | None, known: MissCurve | None
) -> Steps | None:
    """Q(Z) under the best replacement; None for a long run, for elements of several sizes without a line size, and if
    time or memory are not enough.
    """
    from roofdsl.simulate.best_curve import best_curve, line_of_elements

    if known is not None and known.line_bytes == line_bytes:
        return _steps(known, convention)
    most = min(MOST_FOR_BEST, budget.left_s() / 4 * BEST_PER_SECOND)
    if accesses > most or (line_bytes is None and line_of_elements(run.kernel) is None):
        return None
    what = f"the best replacement of kernel {run.kernel.name}"
    try:
        with budget.part(2), budget.region(what):  # some orders take much longer than others
            return _steps(best_curve(run.kernel, run.values, line_bytes), convention)
    except CommandError:  # not enough memory: the figure is of LRU, and shows that
        return None
    except budget.Spent:
        budget.leave_out(what)
        return None


def _steps(curve: MissCurve, convention: Traffic) -> Steps:
    sizes, moved = curve.steps(convention)
    return tuple(int(s) for s in sizes), tuple(int(v) for v in moved)


def _accesses(at: Sized) -> int:
    """The accesses of one execution; if they are not counted in time, more than are simulated.

    Raises CommandError if there are none.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.sets.library import LibraryFailure, TooHard

    try:
        found = access_count(at)
    except (TooHard, LibraryFailure):
        return MOST_FOR_POINTS + 1
    if not found:
        raise CommandError(f"kernel {at.name} touches nothing at these sizes", "give larger ones by --set")
    return found


def _in_budget(most: int) -> int:
    """The number of accesses, up to `most`, that can be simulated in the rest of the budget: at least a short run."""
    from roofdsl.counts.traffic_at import SHORT, SIMULATED_PER_SECOND

    return int(min(most, max(5 * SHORT, budget.left_s() * SIMULATED_PER_SECOND)))


def _by_form(kernel: Kernel, values: Mapping[str, int], convention: Traffic, line_bytes: int | None) -> Steps | None:
    """(cache sizes, Q there) from the closed form; None if none is found, or not in time."""
    from roofdsl.counts.traffic_at import OutOfReach
    from roofdsl.plot.traffic_form import form_curve
    from roofdsl.sets.library import TooHard

    try:
        return form_curve(kernel, values, convention, line_bytes, _ends(kernel, values, line_bytes))
    except (TooHard, OutOfReach):
        return None


def _by_distances(at: Sized, convention: Traffic, line_bytes: int | None) -> Steps | None:
    """(cache sizes, Q there) from stack distances, beginning with the smallest cache they cover; None without them."""
    from roofdsl.counts.histogram_at import NoAnswer, stack_distances
    from roofdsl.counts.traffic_at import convention_totals, lines_by_distances
    from roofdsl.plot.traffic_form import sampled
    from roofdsl.sets.library import TooHard

    def moved(caches: list[int]) -> list[int]:
        return [convention_totals(at, lines_by_distances(at, c, line_bytes), convention)[2] for c in caches]

    try:
        least = stack_distances(at, line_bytes).least_bytes
        touched = sum(a.begun * a.line_bytes for a in lines_by_distances(at, None, line_bytes))
        found = sampled(moved, least, max(least, touched))
    except (NoAnswer, TooHard):
        return None
    return None if found is None else (tuple(found), tuple(found.values()))


def _bound_if_found(
    kernel: Kernel, values: Mapping[str, int], convention: Traffic, line_bytes: int | None
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """`bound_line`, or None if it takes too long."""
    from roofdsl.counts.traffic_at import OutOfReach
    from roofdsl.sets.library import TooHard

    what = f"the I/O lower bound of kernel {kernel.name}"
    try:
        with budget.part(2), budget.region(what):  # drawing takes time too
            return bound_line(kernel, values, convention, line_bytes)
    except (TooHard, OutOfReach):
        return None
    except budget.Spent:
        budget.leave_out(what)
        return None


def _ends(kernel: Kernel, values: Mapping[str, int], line_bytes: int | None) -> tuple[int, int]:
    """The cache sizes between which Q(Z) changes: the largest line, and all lines touched. Raises CommandError."""
    from roofdsl.counts.traffic_at import traffic_at

    least = line_bytes or _largest_element(kernel)
    return least, max(least, traffic_at(kernel, values, None, line_bytes, "once").bytes)


def _largest_element(kernel: Kernel) -> int:
    return max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)


def _along(sizes: tuple[int, ...], plateaus: tuple[PlateauLine, ...], count: int) -> tuple[int, ...]:
    """Those of `count` sizes, evenly spaced on a logarithmic axis, that are not on a plateau."""
    ratio = sizes[-1] / sizes[0]
    wanted = [sizes[0] * ratio ** ((k + 0.5) / count) for k in range(count)]
    found = [sizes[bisect_right(sizes, size) - 1] for size in wanted]
    return tuple(z for z in found if not any(p.start_bytes <= z < (p.end_bytes or z + 1) for p in plateaus))


LEVEL = 0.95
"""In the figure, a plateau ends where Q(Z) falls below this fraction of its traffic."""


def _as_far_as_flat(plateau: PlateauLine, steps: tuple[tuple[int, ...], tuple[int, ...]]) -> PlateauLine:
    """The plateau, cut off where the exact curve begins to fall to the next one, which may take many sizes."""
    if plateau.end_bytes is None:
        return plateau
    sizes, moved = steps
    k = bisect_right(moved, -LEVEL * plateau.traffic_bytes, key=lambda q: -q)  # the first step that is clearly lower
    end = sizes[k] if k < len(sizes) else plateau.end_bytes
    return replace(plateau, end_bytes=min(max(float(end), plateau.start_bytes), plateau.end_bytes))


STEPS_OF_BOUND = 4
"""The number of points on the bound's line per doubling of the cache size."""


def bound_line(
    kernel: Kernel, values: Mapping[str, int], convention: Traffic, line_bytes: int | None
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """(cache sizes, least Q there) in bytes, from one line to where only compulsory traffic is left.

    This is the traffic that every order of the kernel needs: the bound on loads, counted in the kernel's smallest
    elements, plus one store for every element that is written; at least the compulsory traffic. In the convention
    `once`, where a residency costs one line, it has only the loads. None if it is the compulsory traffic at every size.
    """
    from roofdsl.bounds.bound import bound
    from roofdsl.counts.traffic_at import traffic_at

    element = min((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=0)
    if not element:
        return None
    least = traffic_at(kernel, values, None, line_bytes, convention)
    found = bound(kernel)
    sizes: list[float] = []
    moved: list[float] = []
    size = float(max(line_bytes or 0, *(a.type.bytes for a in kernel.arrays)))
    while len(sizes) < 2 or moved[-1] > least.bytes:
        loads, _ = found.at(values, int(size) // element)
        sizes.append(size)
        moved.append(max(float(least.bytes), float(loads * element + (least.stores_bytes or 0))))
        size *= 2 ** (1 / STEPS_OF_BOUND)
    sizes.append(sizes[-1] * 2**40)  # constant from here on
    moved.append(moved[-1])
    return (tuple(sizes), tuple(moved)) if moved[0] > least.bytes else None


def plateau_lines(
    kernel: Kernel, values: Mapping[str, int], convention: Traffic, line_bytes: int | None
) -> tuple[tuple[PlateauLine, ...], str]:
    """The plateaus that `derive` finds, at these sizes, with all lower orders if their conditions hold; or why there
    are none.
    """
    from fractions import Fraction

    from roofdsl.counts.derive import derive
    from roofdsl.counts.growth import growth_of
    from roofdsl.counts.readable_forms import of_quantity
    from roofdsl.formulas.writing import latex

    order = growth_of(kernel)
    derivation = derive(kernel, values, traffic=convention, line_bytes=line_bytes)
    env = {n: Fraction(v) for n, v in values.items()}
    lines: list[PlateauLine] = []
    for p in derivation.plateaus:
        if p.from_bytes.value is None or p.bytes.value is None:
            continue
        whole = p.all_bytes.form
        moved = p.bytes.value
        if whole is not None and whole.cases:
            try:
                moved = whole.evaluate(env) or moved
            except KeyError:  # a condition on a symbol that has no number here
                moved = p.bytes.value
        form = of_quantity(p.bytes, order)
        label = "" if form is None else f"${latex(form.main.expr)}$ B"
        start = float(p.from_bytes.value)
        if lines and lines[-1].start_bytes >= start:  # at these sizes, the later plateau does not begin later
            lines.pop()
        if lines:
            last = lines.pop()
            lines.append(PlateauLine(last.start_bytes, last.end_bytes or start, last.traffic_bytes, last.label))
        end = None if p.until_bytes is None else p.until_bytes.value
        lines.append(PlateauLine(start, None if end is None else max(start, float(end)), float(moved), label))
    return tuple(lines), derivation.plateaus_note


def _points(
    at: Sized,
    convention: Traffic,
    line_bytes: int | None,
    *,
    plateaus: tuple[PlateauLine, ...],
    caches: tuple[tuple[str, int], ...],
    more: tuple[int, ...] = (),
) -> tuple[TrafficPoint, ...]:
    """In the middle of every plateau, at every cache of the machine and `more`, the traffic simulated directly."""
    from roofdsl.simulate.lru_traffic import simulate_lru

    least = line_bytes or _largest_element(at.kernel)
    sizes = {size for _, size in caches if size >= least} | set(more)
    for p in plateaus:
        end = p.end_bytes if p.end_bytes is not None else 4 * p.start_bytes
        sizes.add(max(least, int(sqrt(p.start_bytes * end))))
    points = []
    for size in sorted(sizes):
        found = simulate_lru(at.kernel, at.values, size, line_bytes)
        points.append(TrafficPoint(size, found.bytes(convention), "simulated"))
    return tuple(points)
