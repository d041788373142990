"""The lines of a machine's roofline, as numbers: bandwidths of one or several levels, roofs, and their ceilings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roofdsl.incore.core_ceilings import core_ceilings
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import MATRIX_CLASSES
from roofdsl.lang.types import TYPES
from roofdsl.machine.model import UNFUSED, BandwidthCeiling, Cache, ComputeCeiling, Machine, Memory, operation
from roofdsl.machine.quantities import show_bandwidth, show_number, show_rate
from roofdsl.plot.roofline_points import Point
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.prediction import Prediction


@dataclass(frozen=True)
class Roof:
    """A horizontal line: the peak of a type, or a ceiling below it; `ridge` is where the fastest slope meets it.

    name: without the rate, `f64 FMA`. operation: what is counted, "FLOP" or "OP". of: the (type, class) of operations
    that a ceiling applies to, if it is a single class such as `exp`.
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

    @property
    def ridge_label(self) -> str:
        """`ridge 7.78`."""
        return f"ridge {show_number(self.ridge, 3)}"


@dataclass(frozen=True)
class Slope:
    """A line of constant bandwidth: that of a level, or a ceiling below it."""

    label: str
    bytes_per_s: float
    is_ceiling: bool
    level: str = ""


@dataclass(frozen=True)
class Roofs:
    """The lines of one machine: slopes of one or several levels, nearest first, each with the ceilings below it in
    descending order; roofs in descending order.
    """

    name: str
    title: str
    slopes: tuple[Slope, ...]
    roofs: tuple[Roof, ...]

    @property
    def levels(self) -> tuple[Slope, ...]:
        """The slopes that are not ceilings, one per level."""
        return tuple(s for s in self.slopes if not s.is_ceiling)

    @property
    def top(self) -> float:
        """The highest roof, in operations per second."""
        return max(r.rate_per_s for r in self.roofs)

    @property
    def bandwidth(self) -> float:
        """The bandwidth of the last level, the memory, in bytes per second."""
        return self.levels[-1].bytes_per_s

    @property
    def fastest(self) -> float:
        """The highest bandwidth, in bytes per second."""
        return max(s.bytes_per_s for s in self.levels)

    @property
    def operation(self) -> str:
        """What an axis counts: "OP" if a roof is one of integers, else "FLOP"."""
        return operation_of(self.roofs)

    def under(self, level: str, intensity: float) -> float:
        """The limit from a level and the highest roof at an intensity, in operations per second."""
        return min([self.top, *(s.bytes_per_s * intensity for s in self.levels if s.level == level)])

    def with_ceilings(self, ceilings: Iterable[Roof]) -> Roofs:
        """The same roofs with additional horizontal lines."""
        return replace(self, roofs=tuple(sorted((*self.roofs, *ceilings), key=lambda r: -r.rate_per_s)))


def operation_of(roofs: Sequence[Roof]) -> str:
    """What the axis of a figure counts: "OP" if a roof is one of integers."""
    return "OP" if any(r.operation == "OP" for r in roofs) else "FLOP"


def require_roof(roofs: Sequence[object]) -> None:
    """Raise CommandError if nothing to be drawn exists: roofs, or machines with them."""
    if not roofs:
        raise CommandError("there is no roof to draw", "the machine has no peak for the requested types")


# ---- those of a machine ----


def roofs_of(machine: Machine, types: Sequence[str] = (), units: Sequence[str] = ()) -> Roofs:
    """The lines of `machine` and its memory for `types`; without types, for all its floating-point types.

    A type shows its fused roof, or its unfused one if it has no fused multiply-add. The unfused rate is a ceiling below
    a fused roof if the type was requested or the machine states that rate. Matrix roofs are those of `units`, or all
    dense ones if no types are given. Roofs of the same height are one line.
    """
    return _lines(machine, [machine.main_memory], types, units)


def level_roofs(
    machine: Machine,
    types: Sequence[str] = (),
    units: Sequence[str] = (),
    latency: Sequence[BandwidthCeiling] = (),
) -> Roofs:
    """Like `roofs_of`, with every level whose bandwidth predictions use; `latency` has further ceilings of levels."""
    caches = machine.caches if not machine.caches or is_first_level(machine.caches[0]) else machine.caches[1:]
    return _lines(machine, [*caches, machine.main_memory], types, units, latency)


def _lines(
    machine: Machine,
    levels: Sequence[Cache | Memory],
    types: Sequence[str],
    units: Sequence[str],
    latency: Sequence[BandwidthCeiling] = (),
) -> Roofs:
    stated = [*(c for c in machine.ceilings if isinstance(c, BandwidthCeiling)), *latency]
    slopes: list[Slope] = []
    for level in levels:
        roof, *ceilings = slopes_of(level)
        for c in stated:
            if c.level == level.name:
                rate = float(c.bandwidth_bytes_per_s)
                ceilings.append(Slope(f"{c.name} {show_bandwidth(rate)}", rate, True, level.name))
        slopes += [roof, *sorted(ceilings, key=lambda s: -s.bytes_per_s)]
    fastest = max(s.bytes_per_s for s in slopes if not s.is_ceiling)
    wanted = [t for t in types or machine.types if t in machine.types and (types or TYPES[t].kind == "float")]
    shown_units = list(units) if types else ["tensor"]
    found: dict[tuple[bool, float, str, tuple[str, str] | None], list[str]] = {}
    for type_name in wanted:
        for name, rate, is_ceiling, of in _rates(machine, type_name, shown_units, bool(types)):
            found.setdefault((is_ceiling, rate, operation(type_name), of), []).append(name)
    roofs = [
        Roof(", ".join(names), unit, rate, rate / fastest, is_ceiling, of)
        for (is_ceiling, rate, unit, of), names in found.items()
    ]
    return Roofs(machine.name, machine.title, tuple(slopes), ()).with_ceilings(roofs)


def slopes_of(level: Cache | Memory) -> tuple[Slope, ...]:
    """A level's bandwidth as a line. A duplex level has its roof at twice the bandwidth, where loads and stores are
    equal; a single direction is a ceiling below it.
    """
    beta = float(level.bandwidth_bytes_per_s)
    if not level.duplex:
        return (Slope(f"{level.name} {show_bandwidth(beta)}", beta, False, level.name),)
    one_way = Slope(f"{level.name}, one way {show_bandwidth(beta)}", beta, True, level.name)
    return Slope(f"{level.name}, both ways {show_bandwidth(2 * beta)}", 2 * beta, False, level.name), one_way


_Line = tuple[str, float, bool, tuple[str, str] | None]
"""(name, operations per second, whether it is a ceiling, its single class if any) of a roof."""


def _rates(machine: Machine, type_name: str, units: Sequence[str], asked: bool) -> list[_Line]:
    """The lines of one type."""
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
    stated = {name for name, *_ in found}
    found += [(c.name, c.per_s, True, None) for c in core_ceilings(machine, type_name) if c.name not in stated]
    return found


# ---- which of them are shown ----

Ceilings = Literal["few", "all", "none"]
"""Which ceilings a figure shows: `few` are the distinguishable ones that matter for its points."""

APART, MOST_SLOPES = 1.25, 2
"""Bandwidth ceilings in a figure differ by at least this factor (APART), with at most MOST_SLOPES per level."""


def with_ceilings(roofs: Roofs, which: Ceilings, points: Sequence[Point] = ()) -> Roofs:
    """The lines in a figure of these points: all, no ceilings, or few of them.

    Few: a ceiling for one class of operations only if a point has such operations; of bandwidths close to one another,
    only the highest. Ceilings at the height of a roof are part of its line.
    """
    if which == "all":
        return replace(roofs, roofs=_lines_of_heights(roofs.roofs))
    if which == "none":
        return replace(roofs, slopes=roofs.levels, roofs=tuple(r for r in roofs.roofs if not r.is_ceiling))
    used = frozenset().union(*(p.uses for p in points))
    shown = tuple(r for r in roofs.roofs if r.of is None or r.of in used)
    return replace(roofs, roofs=_lines_of_heights(shown), slopes=tuple(_told_apart(roofs.slopes)))


def _lines_of_heights(roofs: Sequence[Roof]) -> tuple[Roof, ...]:
    """One line for each height, with the names of all that have it: roofs, then ceilings. Two would lie on each other,
    and their labels side by side.
    """
    at: dict[tuple[float, str], list[Roof]] = {}
    for roof in roofs:
        at.setdefault((roof.rate_per_s, roof.operation), []).append(roof)
    equal = (sorted(same, key=lambda r: r.is_ceiling) for same in at.values())
    return tuple(replace(same[0], name=", ".join(r.name for r in same)) for same in equal)


def _told_apart(slopes: Sequence[Slope]) -> list[Slope]:
    """The bandwidth of every level, and those ceilings of it that are far enough apart to be shown."""
    kept: list[Slope] = []
    last, count = 0.0, 0
    for slope in slopes:
        if not slope.is_ceiling:
            count = 0
        elif last < APART * slope.bytes_per_s or count == MOST_SLOPES:
            continue
        else:
            count += 1
        kept.append(slope)
        last = slope.bytes_per_s
    return kept


def with_launches(roofs: Roofs, predictions: Sequence[Prediction]) -> tuple[Roofs, list[str]]:
    """The roofs with a ceiling W / T_launch for each kernel and program, and messages about ceilings above the roof.

    Time-Based Roofline, section II.A: a further term of the roofline's minimum. Equal ceilings are one line.
    """
    found: dict[float, list[str]] = {}
    above: list[str] = []
    for p in predictions:
        if not p.launch_s or not p.work:
            continue
        rate = float(p.work / p.launch_s)
        name = f"{p.kernel}, {p.launches} launch{'es' if p.launches > 1 else ''}"
        if rate >= roofs.top:
            above.append(f"{name} ({show_rate(rate, p.operation)}) is above the roof and is not drawn")
        elif name not in found.setdefault(rate, []):
            found[rate].append(name)
    ceilings = (_ceiling(roofs, "; ".join(names), rate) for rate, names in found.items())
    return roofs.with_ceilings(ceilings), list(dict.fromkeys(above))


def with_mixes(roofs: Roofs, points: Sequence[Point]) -> Roofs:
    """The roofs with the effective peaks of the points' mixes as ceilings; mixes within 2 % of one another are one."""
    found: dict[float, list[str]] = {}
    for point in points:
        if point.ceiling is None or any(abs(r.rate_per_s / point.ceiling - 1) < 0.02 for r in roofs.roofs):
            continue
        near = next((c for c in found if abs(c / point.ceiling - 1) < 0.02), point.ceiling)
        names = found.setdefault(near, [])
        if point.label not in names:
            names.append(point.label)
    whose = {rate: ", ".join(names) if len(names) < 3 else f"{len(names)} kernels" for rate, names in found.items()}
    return roofs.with_ceilings(_ceiling(roofs, f"mix of {names}", rate) for rate, names in whose.items())


def _ceiling(roofs: Roofs, name: str, rate_per_s: float) -> Roof:
    return Roof(name, roofs.operation, rate_per_s, rate_per_s / roofs.fastest, True)
