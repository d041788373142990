"""The points of a roofline: predicted, measured or cited kernels and programs as rates and intensities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from roofdsl.machine.quantities import group
from roofdsl.predict.prediction import Prediction
from roofdsl.profiler.measured_points import Points
from roofdsl.validate.compare import Comparison
from roofdsl.validate.compare_points import PointCheck

Intensities = tuple[tuple[str, float | None], ...]
"""Operations per byte of each level, the memory last; None if nothing is computed or nothing moves."""


@dataclass(frozen=True)
class Point:
    """A kernel, a program or a measurement.

    rate_per_s: operations per second. origin: "predicted", "expected", "measured" or "cited" (a point of a document,
    attributed to its authors). error: the lowest and highest rate of a measurement. bytes_per_s: the rate at the
    memory, which places a point without work. beside: the text at a measured point that is also predicted, since the
    predicted point of the same label and machine already has the name. work: operations, if known. uses: their (type,
    class). ceiling: the effective peak of their mix. bounds: what limits the point according to the model. below: the
    same in words if the point is clearly below the roof; it is part of the text, not of the label.
    """

    label: str
    rate_per_s: float
    intensities: Intensities = ()
    origin: str = "predicted"
    error: tuple[float, float] | None = None
    bytes_per_s: float | None = None
    machine: str = ""
    beside: str = ""
    work: float | None = None
    uses: frozenset[tuple[str, str]] = frozenset()
    ceiling: float | None = None
    bounds: tuple[str, ...] = ()
    below: str = ""

    @property
    def text(self) -> str:
        """The label, and what keeps the point below the roof."""
        return f"{self.label} ({self.below})" if self.below else self.label

    @property
    def intensity(self) -> float | None:
        """The intensity at the memory."""
        return self.intensities[-1][1] if self.intensities else None

    @property
    def places(self) -> tuple[tuple[str, float], ...]:
        """(level, intensity) for each level that has one."""
        return tuple((level, x) for level, x in self.intensities if x)

    def at(self, levels: Sequence[str]) -> Point:
        """The point with its intensities at only these levels."""
        return replace(self, intensities=tuple(pair for pair in self.intensities if pair[0] in levels))

    def at_memory(self) -> Point:
        """The point with its intensity at only the memory."""
        return replace(self, intensities=self.intensities[-1:])


# ---- predicted ----


def point_of(prediction: Prediction, label: str | None = None) -> Point:
    """The predicted point of a kernel; its sizes are part of the label unless a label is given."""
    p, memory = prediction, prediction.memory
    pairs = [(level.name, level.intensity(p.work)) for level in (*(x for x in p.levels if x != memory), memory)]
    is_mixed = p.peak_fraction is not None and p.peak_fraction != 1 and p.peak_per_s is not None
    return Point(
        label if label is not None else f"{p.kernel} {sizes_text(p.parameters)}".rstrip(),
        float(p.rate_per_s),
        tuple((name, float(x) if x else None) for name, x in pairs),
        bytes_per_s=float(p.bytes_per_s),
        machine=p.machine,
        work=float(p.work),
        uses=frozenset((part.type, part.cls) for part in p.parts),
        ceiling=float(p.peak_per_s or 0) if is_mixed else None,
        bounds=p.bounds,
    )


def points_of(predictions: Sequence[Prediction]) -> list[Point]:
    """The kernels with operations, labelled by what distinguishes them."""
    return [point_of(p, label) for p, label in zip(predictions, labels_of(predictions), strict=True) if p.work]


BELOW = Fraction(9, 10)
"""If a point is below this share of the roof above it, its label says why."""


def explained_point(prediction: Prediction, label: str | None = None) -> Point:
    """The predicted point; if it is clearly below the roof of memory and peak, with what bounds it."""
    point, peak, memory = point_of(prediction, label), prediction.machine_peak_per_s, prediction.memory
    intensity = prediction.intensity
    if intensity is None or peak is None:
        return point
    is_below = prediction.rate_per_s < BELOW * min(intensity * memory.rate_bytes_per_s, peak)
    return replace(point, below=prediction.bound) if is_below else point


def sizes_text(parameters: Sequence[tuple[str, int]]) -> str:
    """`n=20,000,000, b=48`."""
    return ", ".join(f"{n}={group(v)}" for n, v in parameters)


def labels_of(predictions: Sequence[Prediction]) -> list[str]:
    """Labels that distinguish the predictions: the kernel's name if there are several kernels, and the sizes that
    `sizes_of_all` does not have, so that each size is either in the title of a figure or in a label.
    """
    several, titled = len({p.kernel for p in predictions}) > 1, dict(_shared(predictions))
    found = []
    for p in predictions:
        sizes = sizes_text([(n, v) for n, v in p.parameters if n not in titled])
        found.append(sizes if sizes and not several and len(predictions) > 1 else f"{p.kernel} {sizes}".rstrip())
    return found


def differing_sizes(p: Prediction, predictions: Sequence[Prediction]) -> str:
    """The sizes in which it differs from others of the same kernel: `n=8, m=4`."""
    same = [dict(o.parameters) for o in predictions if o.kernel == p.kernel]
    return sizes_text([(n, v) for n, v in p.parameters if any(o.get(n) != v for o in same)])


def common_sizes(predictions: Sequence[Prediction]) -> str:
    """`gpp, bands=8, ngpown=64`: the kernel of all of them, and the sizes that they share; empty for one or none."""
    names = {p.kernel for p in predictions} if len(predictions) > 1 else set()
    return ", ".join(filter(None, [*(names if len(names) == 1 else ()), sizes_of_all(predictions)]))


def sizes_of_all(predictions: Sequence[Prediction]) -> str:
    """`bands=8, ngpown=64`: the sizes that are the same in all predictions that have them; empty for one prediction."""
    return sizes_text(_shared(predictions))


def _shared(predictions: Sequence[Prediction]) -> list[tuple[str, int]]:
    """The sizes of `sizes_of_all`, with their values."""
    values: dict[str, set[int]] = {}
    for p in predictions if len(predictions) > 1 else ():
        for name, value in p.parameters:
            values.setdefault(name, set()).add(value)
    return [(name, min(own)) for name, own in values.items() if len(own) == 1]


# ---- measured and cited ----


def expected_point(predicted: Point, prediction: Prediction) -> tuple[Point, ...]:
    """The mark of a predicted point at its expected rate; none if there is no expected time."""
    if prediction.expected is None or not prediction.expected.expected_s:
        return ()
    time_s = prediction.expected.expected_s
    rate, moved = float(prediction.work / time_s), float(prediction.memory.bytes / time_s)
    return (replace(predicted, origin="expected", rate_per_s=rate, bytes_per_s=moved),)


def overlay(comparison: Comparison) -> tuple[Point, ...]:
    """The predicted point at the bound, a mark at the expected rate, if there is one, and the measured point with its
    10th to 90th percentile.
    """
    predicted = point_of(comparison.prediction)
    measured_s, m = comparison.measured_s, comparison.measurement
    amount = comparison.prediction.work or comparison.prediction.memory.bytes
    rate, low, high = (amount / s for s in (measured_s, m.high_s, m.low_s))
    measured = replace(
        predicted,
        origin="measured",
        rate_per_s=rate,
        bytes_per_s=comparison.prediction.memory.bytes / measured_s,
        error=(low, high),
        beside=f"{100 * comparison.bound_ratio:.0f} %",
    )
    return predicted, *expected_point(predicted, comparison.prediction), measured


def overlay_point(check: PointCheck) -> tuple[Point, ...]:
    """The predicted point, and the measured one if there is a time: at its own operations and bytes of memory if these
    were measured, else at those of the prediction.
    """
    predicted, p = point_of(check.prediction), check.prediction
    if check.measured_s is None or check.ratio is None:
        return (predicted,)
    work = check.measured_work if check.measured_work is not None else float(p.work)
    moved = next((x.measured_bytes for x in check.levels if x.level == p.memory.name), float(p.memory.bytes))
    measured = replace(
        predicted,
        origin="measured",
        intensities=((p.memory.name, work / moved if work and moved else None),),
        rate_per_s=work / check.measured_s,
        bytes_per_s=moved / check.measured_s,
        beside=f"{100 * check.ratio:.0f} %",
    )
    return predicted, measured


def measured_points(document: Points) -> list[Point]:
    """The points that have a rate, with their work and the intensities at the measured levels."""
    origin = "cited" if document.origin == "cited" else "measured"
    found = []
    for p in document.points:
        if p.flops_per_s:
            pairs = ((level.name, p.intensity(level.name)) for level in p.levels)
            found.append(Point(p.label, p.flops_per_s, tuple((n, x) for n, x in pairs if x), origin, work=p.work_flops))
    return found


def intensity_of(text: str) -> float:
    """The intensity of a measured point, in operations per byte. Raises ValueError."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"`{text}` is not an intensity") from None
    if not 0 < found < 1e12:
        raise ValueError(f"an intensity is above 0 and below 1e12 operations per byte, and `{text.strip()}` is not")
    return found
