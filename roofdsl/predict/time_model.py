"""The model of time, defined once: seconds as an expression of counts and rates (docs/rules.md, rules 12 to 15).

Every term of the time is the largest of a few sums, and every sum adds counts times the seconds per count. The uses
differ in what a count is:

- integers of one launch, for `predict`: `Largest.at`, in fractions;
- arrays of integers over many sizes, for `sweep`: `sweep.rounding.OverOne`;
- closed forms in the parameters, for formulas and thresholds: `predict.time_forms`;
- numbers at the sizes of a page's sliders: `page.time_function` writes the expression as JavaScript.

Counts have names: `f64 fma` (operations, two for each fused pair), `HBM bytes`, `HBM loads`, `HBM stores`, `launches`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import UNFUSED, BandwidthCeiling, ComputeCeiling, Machine
from roofdsl.machine.vector_units import Units, units_of

SAME = Fraction(9, 10)
"""Terms of at least this share of the largest are named with it (rule 15)."""

COMPUTE, LAUNCH = "compute", "launch"
"""The terms that are named neither after a level nor after a link."""

LAUNCHES = "launches"

Sum = tuple[tuple[str, Fraction], ...]
"""Counts by name, each with the amount that one unit adds."""

Counts = Mapping[str, int | Fraction]


class Largest(Record):
    """The largest of `sums`, of which there is at least one."""

    sums: tuple[Sum, ...]

    def each(self, counts: Counts) -> tuple[Fraction, ...]:
        """The value of every sum. Raises KeyError for a count that is missing."""
        return tuple(sum((counts[name] * weight for name, weight in one), Fraction(0)) for one in self.sums)

    def at(self, counts: Counts) -> Fraction:
        """The value. Raises KeyError for a count that is missing."""
        return max(self.each(counts))

    def over(self, rate: Fraction) -> Largest:
        """The same, divided by a positive rate."""
        return Largest(tuple(tuple((name, weight / rate) for name, weight in one) for one in self.sums))

    def made_of(self, parts: Mapping[str, Mapping[str, int]]) -> Largest:
        """The same in other counts: `parts[name]` gives one unit of the new count `name` in the old counts.

        A statement, for example, stands for its operations of each class. Counts that add nothing to a sum are left out
        of it.
        """
        rows = {
            name: [sum((counts.get(n, 0) * weight for n, weight in one), Fraction(0)) for one in self.sums]
            for name, counts in parts.items()
        }
        return Largest(
            tuple(tuple((name, row[k]) for name, row in rows.items() if row[k]) for k in range(len(self.sums)))
        )

    @property
    def only(self) -> Sum:
        """The sum, if there is only one. Raises ValueError for several."""
        (one,) = self.sums
        return one


def whole_weights(one: Sum, names: Iterable[str]) -> tuple[tuple[int, ...], int]:
    """(the weights of the counts `names`, 0 for one that is not in the sum; their denominator)."""
    weights, below = dict(one), lcm(*(weight.denominator for _, weight in one))
    return tuple(int(weights.get(name, 0) * below) for name in names), below


Terms = tuple[tuple[str, Largest], ...]
"""The terms of the time by name, as in rule 15: the time is the largest of them; without overlap it is their sum."""


def terms_of_a_launch(compute: Largest, levels: Iterable[tuple[str, Largest]], machine: Machine) -> Terms:
    """Compute, levels and launch, in this order."""
    return ((COMPUTE, compute), *levels, (LAUNCH, launch_seconds(machine)))


def bounding(seconds: Sequence[Fraction]) -> list[int]:
    """The places of the terms that bound the time: the largest and those within 10 % of it, the largest first.

    Equal terms keep their order; if all are 0, none bounds.
    """
    near = [k for k, time_s in enumerate(seconds) if time_s and time_s >= SAME * max(seconds)]
    return sorted(near, key=lambda k: -seconds[k])


def bound_text(names: Iterable[str]) -> str:
    """The bound, by the names of the terms: `HBM and compute`; `nothing` if nothing is done."""
    return " and ".join(names) or "nothing"


# ---- compute ----


class ComputePart(Record):
    """Operations of one type that run at one rate. `cls` is a peak class, or "add" or "mul" for unfused ones.

    Special functions are separate if the machine or the file gives them a rate or a ceiling of their own; the others
    are "special".
    """

    type: str
    cls: str
    operations: int
    rate_per_s: Fraction

    @property
    def count(self) -> str:
        """The name of its operations as a count."""
        return f"{self.type} {self.cls}"

    @property
    def time_s(self) -> Fraction:
        return self.operations / self.rate_per_s

    def to_json(self) -> dict[str, Any]:
        """Plain numbers in operations per second and seconds."""
        return {
            "type": self.type,
            "class": self.cls,
            "operations": self.operations,
            "rate_flops": float(self.rate_per_s),
            "time_s": float(self.time_s),
        }


def compute_seconds(
    parts: Sequence[ComputePart], machine: Machine, unit: str | None, ceilings: Sequence[ComputeCeiling] = ()
) -> Largest:
    """T_comp as an expression in the counts that `parts` name, each of which occurs once; how many `operations` a part
    has is ignored.

    All parts run in sequence. With `pipes separate`, each pipe has its own sequence, and the busiest one counts, unless
    a matrix unit does everything; with `pipes units`, the busiest set of vector units counts. Under a ceiling, the
    operations that it caps run at its rate.
    """
    seconds = {part.count: 1 / part.rate_per_s for part in parts}
    sums = [tuple(seconds.items())]
    if machine.pipes_separate and unit is None:
        sums = _pipes(parts, machine)
    elif machine.pipes_by_unit and unit is None:
        sums = _units(parts, machine)
    for ceiling in ceilings:
        capped = [(part.count, 1 / ceiling.rate_per_s) for part in parts if is_under(ceiling, part)]
        others = [p.count for p in parts if machine.one_sequence and not is_under(ceiling, p)]
        sums.append((*capped, *((name, seconds[name]) for name in others)))
    return Largest(tuple(each for own in sums for each in _without_merged(own, parts)))


def _without_merged(own: Sum, parts: Sequence[ComputePart]) -> list[Sum]:
    """The sum; for each type that has both sines and cosines, once without the sines and once without the cosines.

    Compilers merge the sine and the cosine of one angle into a single call, which takes at least as long as either. So
    the larger of the two times is a bound, but their sum is not.
    """
    made = [own]
    for type_name in dict.fromkeys(p.type for p in parts):
        merged = [p.count for p in parts if p.type == type_name and p.cls in ("sin", "cos")]
        if len(merged) == 2:
            made = [tuple(term for term in each if term[0] != name) for each in made for name in merged]
    return list(dict.fromkeys(made))


def is_under(ceiling: ComputeCeiling, part: ComputePart) -> bool:
    """Whether a ceiling caps these operations."""
    special = ceiling.cls == "special" and part.cls in SPECIAL_FUNCTIONS
    return ceiling.type == part.type and (special or ceiling.cls in ("", part.cls))


# The pipes of a machine whose adder and multiplier are separate; the last one only if its divider is separate, too.
PIPES = ("add", "mul", "div")
PIPE_NAMES = {"add": "adder", "mul": "multiplier", "div": "divider"}


def _pipes(parts: Sequence[ComputePart], machine: Machine) -> list[Sum]:
    """The seconds that the adder, the multiplier and, if it is separate, the divider are busy."""
    busy: dict[str, list[tuple[str, Fraction]]] = {pipe: [] for pipe in PIPES[: 3 if machine.divider_separate else 2]}
    for part in parts:
        cost = pipe_cost(part, machine)
        each = 1 / part.rate_per_s if cost is None else cost / (machine.peak(machine.computed_in(part.type)).per_s / 2)
        busy[pipe_of(part.cls, machine)].append((part.count, each))
    return [tuple(own) for own in busy.values()]


_DIVIDER = ("div", "sqrt", "rsqrt", "rcp")


def _units(parts: Sequence[ComputePart], machine: Machine) -> list[Sum]:
    """The seconds that each set of vector units is busy with the operations that run on no other unit.

    Alone, a class runs at its rate r on all its k units, so an operation occupies one of them for k/r seconds. A set of
    s units needs at least the sum of these times over s for its own operations. Only unions of the classes' own sets of
    units need to be checked: any other set has the same own operations as a union inside it, which has fewer units. The
    divider, functions that are computed by separate code, and every class whose units are not stated are assumed to
    overlap with all of these.
    """
    own = {p: units_of(machine, p.type, p.cls) for p in parts}
    sets: set[Units] = set()
    for units in own.values():
        sets |= {units | other for other in sets} | {units}
    sums = [
        tuple((p.count, Fraction(len(u), len(every)) / p.rate_per_s) for p, u in own.items() if u and u <= every)
        for every in sorted(sets - {frozenset()}, key=sorted)
    ]
    apart: dict[str, list[tuple[str, Fraction]]] = {}
    for p, units in own.items():
        if not units:
            functions = "functions" if p.cls in ("special", *SPECIAL_FUNCTIONS) else p.count
            name = "divider" if p.cls in _DIVIDER else functions
            apart.setdefault(name, []).append((p.count, 1 / p.rate_per_s))
    return [*sums, *map(tuple, apart.values())] or [()]


def pipe_cost(part: ComputePart, machine: Machine) -> Fraction | None:
    """The cost of the class by rule 12, in unfused operations; None if the part's rate is stated and used as it is.

    Each pipe runs at half the rate of adder and multiplier together. That rate is the fused peak if the machine states
    one, otherwise the unfused one (73.6 GFLOP/s are 36.8 billion additions and 36.8 billion multiplications per
    second).
    """
    return None if _has_peak(part, machine) else machine.rate(part.type, UNFUSED).per_s / part.rate_per_s


def _has_peak(part: ComputePart, machine: Machine) -> bool:
    """Whether the part's rate is that of its own `peak` or, for a special function, that of all special functions.

    A `cost` of the kernel's file takes precedence over a peak, and gives another rate.
    """
    classes = (part.cls, "special") if part.cls in SPECIAL_FUNCTIONS else (part.cls,)
    stated = [machine.stated(machine.computed_in(part.type), cls) for cls in classes]
    return any(peak is not None and peak.rate_per_s == part.rate_per_s for peak in stated)


def pipe_of(cls: str, machine: Machine) -> str:
    """The pipe (one of PIPES) that runs a class on a machine with separate pipes.

    Minimum and maximum run on the adder. Division and special functions run on the divider if it is separate, otherwise
    on the multiplier.
    """
    if cls in ("div", "special", *SPECIAL_FUNCTIONS):
        return "div" if machine.divider_separate else "mul"
    return "mul" if cls == "mul" else "add"


# ---- levels, links, launches ----


def timed_bytes(level: str, *, duplex: bool) -> Largest:
    """The bytes over a level's boundary that determine its time.

    That is all of them, or the larger of loads and stores if these move at the same time (`duplex`).
    """
    return Largest(
        tuple(((f"{level} {what}", Fraction(1)),) for what in (("loads", "stores") if duplex else ("bytes",)))
    )


def larger_direction(duplex: bool, loads_bytes: int | None, stores_bytes: int | None) -> int | None:
    """`timed_bytes` of a duplex level; None for others, and if a convention does not distinguish loads and stores."""
    if not duplex or loads_bytes is None or stores_bytes is None:
        return None
    return int(timed_bytes("", duplex=True).at({" loads": loads_bytes, " stores": stores_bytes}))


def level_seconds(level: str, bandwidth_bytes_per_s: Fraction, *, duplex: bool) -> Largest:
    """The bytes that determine a level's time, over its bandwidth."""
    return timed_bytes(level, duplex=duplex).over(bandwidth_bytes_per_s)


def capped_bandwidth(level: str, bandwidth_bytes_per_s: Fraction, ceilings: Iterable[BandwidthCeiling]) -> Fraction:
    """A level's bandwidth under the ceilings that apply to it."""
    return min([bandwidth_bytes_per_s, *(c.bandwidth_bytes_per_s for c in ceilings if c.level == level)])


def link_seconds(bandwidth_bytes_per_s: Fraction) -> Largest:
    """A link's `bytes` over its bandwidth, and the `latency` of all steps, which is in seconds."""
    return Largest(((("bytes", 1 / bandwidth_bytes_per_s), ("latency", Fraction(1))),))


def launch_seconds(machine: Machine) -> Largest:
    """The launches, each with the launch time."""
    return Largest((((LAUNCHES, machine.launch_s or Fraction(0)),),))
