"""What figures over several memory levels show: bandwidths by level, roofs, and kernels with a symbol per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10

from roofdsl.machine.model import BandwidthCeiling, Cache, Machine, Memory
from roofdsl.machine.quantities import show_bandwidth
from roofdsl.plot.content import (
    Ceilings,
    Roof,
    Slope,
    Window,
    operation_of,
    roofs_of,
    sizes_text,
    slopes_of,
    told_apart,
)
from roofdsl.predict.levels import is_first_level
from roofdsl.predict.time import Prediction


@dataclass(frozen=True)
class LevelSlope:
    """The bandwidth of one level, and the ceilings under it from the highest to the lowest."""

    level: str
    bytes_per_s: float
    label: str
    ceilings: tuple[Slope, ...] = ()


@dataclass(frozen=True)
class LevelRoofs:
    """The lines of one machine: bandwidths nearest level first, roofs from the highest to the lowest."""

    name: str
    title: str
    slopes: tuple[LevelSlope, ...]
    roofs: tuple[Roof, ...]
    operation: str = "FLOP"

    @property
    def top(self) -> float:
        """The highest roof, in operations per second."""
        return max(r.rate_per_s for r in self.roofs)

    @property
    def fastest(self) -> float:
        """The highest bandwidth, in bytes per second."""
        return max(s.bytes_per_s for s in self.slopes)

    def under(self, level: str, intensity: float) -> float:
        """What a level and the highest roof allow at an intensity, in operations per second."""
        rates = [s.bytes_per_s for s in self.slopes if s.level == level]
        return min([self.top, *(rate * intensity for rate in rates)])


@dataclass(frozen=True)
class Kernel:
    """A kernel's performance, in operations per second, and its intensity at each level.

    origin: "predicted", "measured" or "cited" (a point of a document, drawn as its authors'). ceiling: the effective
    peak of its mix of operations, None where it is not known. bounds: what limits it, as the model says.
    """

    label: str
    rate_per_s: float
    intensities: tuple[tuple[str, float], ...]
    origin: str = "predicted"
    ceiling: float | None = None
    bounds: tuple[str, ...] = ()
    uses: frozenset[tuple[str, str]] = frozenset()


def kernel_of(prediction: Prediction, label: str | None = None) -> Kernel | None:
    """A predicted kernel; None for one without operations, which has no intensity."""
    if not prediction.work:
        return None
    sizes = sizes_text(prediction.parameters)
    text = label if label is not None else f"{prediction.kernel} {sizes}".rstrip()
    found = ((level.name, level.intensity(prediction.work)) for level in prediction.levels)
    fraction = prediction.peak_fraction
    is_mixed = fraction is not None and fraction != 1 and prediction.peak_per_s is not None
    return Kernel(
        text,
        float(prediction.rate_per_s),
        tuple((name, float(intensity)) for name, intensity in found if intensity is not None),
        ceiling=float(prediction.peak_per_s or 0) if is_mixed else None,
        bounds=prediction.bounds,
        uses=frozenset((part.type, part.cls) for part in prediction.parts),
    )


def labels_of(predictions: Sequence[Prediction]) -> list[str]:
    """What tells each of them apart: of several sizes of one kernel what differs, its name where there are others."""
    several = len({p.kernel for p in predictions}) > 1
    found = []
    for p in predictions:
        differing = differing_sizes(p, predictions)
        sizes = differing or ("" if several else sizes_text(p.parameters))
        found.append(differing if differing and not several else f"{p.kernel} {sizes}".rstrip())
    return found


def differing_sizes(p: Prediction, predictions: Sequence[Prediction]) -> str:
    """The sizes in which others of the same kernel are not equal to it: `n=8, m=4`."""
    same = [dict(o.parameters) for o in predictions if o.kernel == p.kernel]
    return sizes_text([(n, v) for n, v in p.parameters if any(o.get(n) != v for o in same)])


def kernels_of(predictions: Sequence[Prediction]) -> list[Kernel]:
    """The kernels with operations, named by what tells them apart."""
    labelled = zip(predictions, labels_of(predictions), strict=True)
    return [kernel for p, label in labelled if (kernel := kernel_of(p, label)) is not None]


def common_sizes(predictions: Sequence[Prediction]) -> str:
    """`gpp, bands=8, ngpown=64`: the kernel and sizes that all of them share; empty for one or none."""
    if len(predictions) < 2:
        return ""
    shared = set.intersection(*(set(p.parameters) for p in predictions))
    sizes = [sizes_text([(n, v)]) for n, v in predictions[0].parameters if (n, v) in shared]
    names = {p.kernel for p in predictions}
    return ", ".join([*names, *sizes] if len(names) == 1 else sizes)


def level_roofs(
    machine: Machine,
    types: Sequence[str] = (),
    units: Sequence[str] = (),
    latency: Sequence[BandwidthCeiling] = (),
) -> LevelRoofs:
    """The lines of `machine`: every level whose bandwidth predictions use, and the roofs of `types` (all if none).

    Named ceilings of levels are drawn under them, with those of `latency`.
    """
    plain = roofs_of(machine, types, units)
    caches = machine.caches if not machine.caches or is_first_level(machine.caches[0]) else machine.caches[1:]
    slopes = []
    levels: list[Cache | Memory] = [*caches, machine.main_memory]
    for level in levels:
        roof, *one_way = slopes_of(level)
        own = [c for c in machine.ceilings if isinstance(c, BandwidthCeiling) and c.level == level.name]
        own += [c for c in latency if c.level == level.name]
        ceilings = one_way + [
            Slope(f"{c.name} {show_bandwidth(float(c.bandwidth_bytes_per_s))}", float(c.bandwidth_bytes_per_s), True)
            for c in own
        ]
        ceilings.sort(key=lambda c: -c.bytes_per_s)
        slopes.append(LevelSlope(level.name, roof.bytes_per_s, roof.label, tuple(ceilings)))
    fastest = max(s.bytes_per_s for s in slopes)
    roofs = tuple(replace(r, ridge=r.rate_per_s / fastest) for r in plain.roofs)
    return LevelRoofs(machine.name, machine.title, tuple(slopes), roofs, operation_of(roofs))


def levels_with(roofs: LevelRoofs, which: Ceilings, kernels: Sequence[Kernel]) -> LevelRoofs:
    """As `content.with_ceilings`, level by level."""
    if which == "all":
        return roofs
    used = frozenset().union(*(k.uses for k in kernels))
    slopes = [
        replace(s, ceilings=() if which == "none" else tuple(told_apart(Slope("", s.bytes_per_s, False), s.ceilings)))
        for s in roofs.slopes
    ]
    shown = [r for r in roofs.roofs if not r.is_ceiling or (which == "few" and (r.of is None or r.of in used))]
    return replace(roofs, slopes=tuple(slopes), roofs=tuple(shown))


def with_mixes(roofs: LevelRoofs, kernels: Sequence[Kernel]) -> LevelRoofs:
    """The effective peaks of the kernels' mixes of operations as ceilings, those within 2 % of one another as one."""
    found: dict[float, list[str]] = {}
    for kernel in kernels:
        if kernel.ceiling is None or any(abs(r.rate_per_s / kernel.ceiling - 1) < 0.02 for r in roofs.roofs):
            continue
        near = next((c for c in found if abs(c / kernel.ceiling - 1) < 0.02), kernel.ceiling)
        names = found.setdefault(near, [])
        if kernel.label not in names:
            names.append(kernel.label)
    mixes = []
    for rate, names in found.items():
        whose = ", ".join(names) if len(names) < 3 else f"{len(names)} kernels"
        mixes.append(Roof(f"mix of {whose}", roofs.operation, rate, rate / roofs.fastest, True))
    return replace(roofs, roofs=tuple(sorted((*roofs.roofs, *mixes), key=lambda r: -r.rate_per_s)))


def window_over(roofs: LevelRoofs, kernels: Sequence[Kernel]) -> Window:
    """Limits that show every kernel and ridge with room around them, at whole or half decades in x."""
    slowest = min(s.bytes_per_s for s in roofs.slopes)
    xs = [roofs.top / slowest, roofs.roofs[-1].rate_per_s / roofs.fastest]
    xs += [x for k in kernels for _, x in k.intensities]
    left = 10 ** (floor(2 * log10(min(xs) / 2)) / 2)
    right = 10 ** (ceil(2 * log10(max(xs) * 4)) / 2)
    ys = [k.rate_per_s for k in kernels] or [slowest * left]
    low = max(min(ys) / 4, slowest * left / 3)
    return Window((left, right), (min(low, min(ys) / 1.6), roofs.top * 3))
