"""What a roofline figure shows: roofs, ceilings, ridges and points, as numbers, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log10
from typing import Literal

from roofdsl.lang.functions import MATRIX_CLASSES
from roofdsl.lang.types import TYPES
from roofdsl.machine.model import UNFUSED, Cache, ComputeCeiling, Machine, Memory, operation
from roofdsl.machine.quantities import group, show_bandwidth, show_number, show_rate
from roofdsl.predict.time import Prediction
from roofdsl.validate.compare import Comparison


@dataclass(frozen=True)
class Point:
    """A kernel on the plane.

    intensity: operations per byte, None for a kernel without work, which stands at the left edge with its
    `bytes_per_s`. flops_per_s: operations per second. error: the lowest and highest rate of a measurement.
    beside: for a measurement of a point that is predicted too, what to write at it instead of the name, which the
    predicted point of the same label and machine bears; a line joins the two. uses: the (type, class) of its
    operations, where they are known.
    """

    label: str
    intensity: float | None
    flops_per_s: float
    kind: Literal["predicted", "measured"] = "predicted"
    error: tuple[float, float] | None = None
    bytes_per_s: float | None = None
    machine: str = ""
    beside: str = ""
    uses: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Roof:
    """A horizontal line: the peak of a type, or a ceiling under it; `ridge` is where the memory roof meets it.

    name: without the rate, `f64 FMA`. operation: what is counted, "FLOP" or "OP". of: the (type, class) of operations
    that a ceiling is of, where it is of one class alone, `exp` say.
    """

    name: str
    operation: str
    rate_per_s: float
    ridge: float
    is_ceiling: bool
    of: tuple[str, str] | None = None

    @property
    def label(self) -> str:
        return f"{self.name} {show_rate(self.rate_per_s, self.operation)}"


@dataclass(frozen=True)
class Slope:
    """A line of constant bandwidth: a machine's memory, or a ceiling under it."""

    label: str
    bytes_per_s: float
    is_ceiling: bool


@dataclass(frozen=True)
class MachineRoofs:
    """The lines of one machine, each kind from the highest to the lowest."""

    name: str
    title: str
    slopes: tuple[Slope, ...]
    roofs: tuple[Roof, ...]

    @property
    def top(self) -> float:
        """The highest roof, in operations per second."""
        return max(r.rate_per_s for r in self.roofs)

    @property
    def bandwidth(self) -> float:
        """That of the memory, in bytes per second."""
        return self.slopes[0].bytes_per_s

    def without_ceilings(self) -> MachineRoofs:
        """Roofs alone, for a figure with several machines."""
        roofs = tuple(r for r in self.roofs if not r.is_ceiling)
        return MachineRoofs(self.name, self.title, self.slopes[:1], roofs)


def operation_of(roofs: Sequence[Roof]) -> str:
    """What the axis of a figure counts: "OP" where a roof is one of integers."""
    return "OP" if any(r.operation == "OP" for r in roofs) else "FLOP"


Ceilings = Literal["few", "all", "none"]
"""Which ceilings a figure shows: `few` are those that say something about what is shown, and can be told apart."""

APART, MOST_SLOPES = 1.25, 2
"""Of ceilings of bandwidth, a figure shows those that are a factor apart, and not more than so many."""


def with_ceilings(machine: MachineRoofs, which: Ceilings, points: Sequence[Point] = ()) -> MachineRoofs:
    """The lines that a figure of these points shows: all, no ceilings, or few of them.

    Few: a ceiling of one class of operations only where a point has such operations; of bandwidths that lie close to
    one another the highest.
    """
    if which == "all":
        return machine
    if which == "none":
        return machine.without_ceilings()
    used = frozenset().union(*(p.uses for p in points))
    roofs = tuple(r for r in machine.roofs if r.of is None or r.of in used)
    return replace(machine, roofs=roofs, slopes=(machine.slopes[0], *told_apart(machine.slopes[0], machine.slopes[1:])))


def told_apart(roof: Slope, ceilings: Sequence[Slope]) -> list[Slope]:
    """Of ceilings of bandwidth under a roof, from the highest to the lowest, those that a figure shows."""
    kept: list[Slope] = []
    last = roof.bytes_per_s
    for slope in ceilings:
        if last >= APART * slope.bytes_per_s and len(kept) < MOST_SLOPES:
            kept.append(slope)
            last = slope.bytes_per_s
    return kept


def with_launches(roofs: MachineRoofs, predictions: Sequence[Prediction]) -> tuple[MachineRoofs, list[str]]:
    """The launches of these kernels and programs as ceilings W / T_launch, and what to say of those above the roof.

    Time-Based Roofline, section II.A: a further term of the minimum that the roofline is. Equal ones are one line.
    """
    found: dict[float, list[str]] = {}
    above: list[str] = []
    for p in predictions:
        if not p.launch_s or not p.work:
            continue
        rate = float(p.work / p.launch_s)
        name = f"{p.kernel}, {p.launches} launch{'es' if p.launches > 1 else ''}"
        if rate >= roofs.top:
            above.append(f"{name}: {show_rate(rate, p.operation)}, above the roof, and not drawn")
        elif name not in found.setdefault(rate, []):
            found[rate].append(name)
    unit = operation_of(roofs.roofs)
    ceilings = [Roof("; ".join(names), unit, rate, rate / roofs.bandwidth, True) for rate, names in found.items()]
    lines = tuple(sorted((*roofs.roofs, *ceilings), key=lambda r: -r.rate_per_s))
    return replace(roofs, roofs=lines), list(dict.fromkeys(above))


BELOW = Fraction(9, 10)
"""Share of the roof above it under which a point's label says what keeps it there."""


def explained_point(prediction: Prediction, label: str | None = None) -> Point:
    """The predicted point; where neither memory nor peak of the figure is its bound, the label ends in the bound."""
    point, peak, memory = point_of(prediction, label), prediction.machine_peak_per_s, prediction.memory
    intensity = prediction.intensity
    if intensity is None or peak is None:
        return point
    roof = min(intensity * memory.rate_bytes_per_s, peak)
    return (
        replace(point, label=f"{point.label} ({prediction.bound})") if prediction.rate_per_s < BELOW * roof else point
    )


def point_of(prediction: Prediction, label: str | None = None) -> Point:
    """The predicted point of a kernel; its sizes are part of the label unless one is given."""
    sizes = sizes_text(prediction.parameters)
    text = label if label is not None else f"{prediction.kernel} {sizes}".rstrip()
    intensity = prediction.intensity
    return Point(
        text,
        None if intensity is None else float(intensity),
        float(prediction.rate_per_s),
        bytes_per_s=float(prediction.bytes_per_s),
        machine=prediction.machine,
        uses=frozenset((part.type, part.cls) for part in prediction.parts),
    )


def sizes_text(parameters: Sequence[tuple[str, int]]) -> str:
    """`n=20,000,000, b=48`."""
    return ", ".join(f"{n}={group(v)}" for n, v in parameters)


def overlay(comparison: Comparison) -> tuple[Point, Point]:
    """The predicted point and the measured one above or below it, from the 10th to the 90th percentile."""
    predicted = point_of(comparison.prediction)
    measured_s, m = comparison.measured_s, comparison.measurement
    amount = comparison.prediction.work or comparison.prediction.memory.bytes
    rate, low, high = (amount / s for s in (measured_s, m.high_s, m.low_s))
    measured = replace(
        predicted,
        kind="measured",
        flops_per_s=rate,
        bytes_per_s=comparison.prediction.memory.bytes / measured_s,
        error=(low, high),
        beside=f"{100 * comparison.ratio:.0f} %",
    )
    return predicted, measured


def roofs_of(machine: Machine, types: Sequence[str] = (), units: Sequence[str] = ()) -> MachineRoofs:
    """The lines of `machine` for `types`; where these are empty, for all its floating-point types.

    A type shows its fused roof, or its unfused one where it has no fused multiply-add; the unfused rate is a
    ceiling under a fused roof where the type was asked for or the machine states it. Matrix roofs are those of
    `units`, all dense ones where no types are given. Roofs of the same height are one line.
    """
    memory = machine.main_memory
    slopes = list(slopes_of(memory))
    beta = slopes[0].bytes_per_s
    wanted = [t for t in types or machine.types if t in machine.types and (types or TYPES[t].kind == "float")]
    shown_units = list(units) if types else ["tensor"]
    found: dict[tuple[bool, float, str, tuple[str, str] | None], list[str]] = {}
    for type_name in wanted:
        for name, rate, is_ceiling, of in _rates(machine, type_name, shown_units, bool(types)):
            found.setdefault((is_ceiling, rate, operation(type_name), of), []).append(name)
    roofs = [
        Roof(", ".join(names), unit, rate, rate / beta, is_ceiling, of)
        for (is_ceiling, rate, unit, of), names in found.items()
    ]
    for ceiling in machine.ceilings:
        if not isinstance(ceiling, ComputeCeiling) and ceiling.level == memory.name:
            rate = float(ceiling.bandwidth_bytes_per_s)
            slopes.append(Slope(f"{ceiling.name} {show_bandwidth(rate)}", rate, True))
    return MachineRoofs(
        machine.name,
        machine.title,
        (slopes[0], *sorted(slopes[1:], key=lambda s: -s.bytes_per_s)),
        tuple(sorted(roofs, key=lambda r: -r.rate_per_s)),
    )


def slopes_of(level: Cache | Memory) -> tuple[Slope, ...]:
    """A level's bandwidth as a line. A duplex one has its roof where loads and stores cross in equal parts, at twice
    the bandwidth; one direction alone is a ceiling under it.
    """
    beta = float(level.bandwidth_bytes_per_s)
    if not level.duplex:
        return (Slope(f"{level.name} {show_bandwidth(beta)}", beta, False),)
    one_way = Slope(f"{level.name}, one way {show_bandwidth(beta)}", beta, True)
    return Slope(f"{level.name}, both ways {show_bandwidth(2 * beta)}", 2 * beta, False), one_way


_Line = tuple[str, float, bool, tuple[str, str] | None]
"""(name, operations per second, whether it is a ceiling, what it is of if of one class alone) of a roof."""


def _rates(machine: Machine, type_name: str, units: Sequence[str], asked: bool) -> list[_Line]:
    """Each line of one type."""
    found: list[_Line] = []
    for unit in units:
        if (matrix := machine.stated(type_name, unit)) is not None:
            found.append((f"{type_name} {unit.replace('_', ' ')}", float(matrix.rate_per_s), False, None))
    fused, unfused = machine.stated(type_name, "fma"), machine.stated(type_name, UNFUSED)
    if fused is not None:
        found.append((f"{type_name} FMA", float(fused.rate_per_s), False, None))
        if asked or unfused is not None:
            found.append((f"{type_name} no FMA", float(machine.rate(type_name, UNFUSED).per_s), True, None))
    elif unfused is not None:
        found.append((type_name, float(unfused.rate_per_s), False, None))
    for ceiling in machine.ceilings:
        if not isinstance(ceiling, ComputeCeiling) or ceiling.type != type_name:
            continue
        if ceiling.cls not in MATRIX_CLASSES or ceiling.cls in units:
            of = (type_name, ceiling.cls) if ceiling.cls and ceiling.cls not in units else None
            found.append((ceiling.name, float(ceiling.rate_per_s), True, of))
    return found


def ridge_label(roof: Roof) -> str:
    """`ridge 7.78`."""
    return f"ridge {show_number(roof.ridge, 3)}"


@dataclass(frozen=True)
class Window:
    """The plane's limits: intensity in operations per byte, rates in operations per second."""

    x: tuple[float, float]
    y: tuple[float, float]


def window_of(machines: Sequence[MachineRoofs], points: Sequence[Point]) -> Window:
    """Limits that show every ridge and point with room around them, at whole or half decades in x."""
    xs = [r.ridge for m in machines for r in m.roofs] + [p.intensity for p in points if p.intensity]
    left = 10 ** (floor(2 * log10(min(xs) / 3)) / 2)
    right = 10 ** (ceil(2 * log10(max(xs) * 8)) / 2)
    low = min(s.bytes_per_s for m in machines for s in m.slopes) * left
    ys = [low, *(p.flops_per_s for p in points if p.flops_per_s), *(p.error[0] for p in points if p.error)]
    ys += [p.bytes_per_s * left for p in points if p.intensity is None and p.bytes_per_s and not p.flops_per_s]
    high = max([*(m.top for m in machines), *(p.flops_per_s for p in points)])
    return Window((left, right), (min(y for y in ys if y > 0) / 1.6, high * 3))
