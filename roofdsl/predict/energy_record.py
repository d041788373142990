"""The record of a launch's energy: joules by cause, average power, energy-delay product, the machine's balances.

Records can be added and multiplied. `predict.energy` makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from roofdsl.lang.record import Record, replace

EXPECTED, BOUND = "expected time", "bound"


class Balances(Record):
    """The balances of a type on a machine, in operations per byte of its memory: B_tau, B_eps, and the intensity at
    which an operation takes twice the least energy (`EnergyRoofline`).
    """

    type: str
    time: Fraction
    energy: Fraction
    half: Fraction


class Energy(Record):
    """The energy of one launch, or of several (they can be added and multiplied).

    time_s: how long it lasts, including what a power cap adds; uncapped_s: the same without a cap. of: which time that
    is, EXPECTED, BOUND or both for a program in which only some launches have an expected time. operations, levels:
    joules by type and by level. all_balances: the different ones of the launches that have operations.
    """

    time_s: Fraction
    uncapped_s: Fraction
    of: str
    constant_w: Fraction
    cap_w: Fraction | None
    operations: tuple[tuple[str, Fraction], ...]
    levels: tuple[tuple[str, Fraction], ...]
    all_balances: tuple[Balances, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def balances(self) -> Balances | None:
        """The balances of all launches that have operations; None if they differ in them, or if none has any."""
        return self.all_balances[0] if len(self.all_balances) == 1 else None

    @property
    def constant_j(self) -> Fraction:
        """The constant power for the whole time."""
        return self.constant_w * self.time_s

    @property
    def total_j(self) -> Fraction:
        return self.constant_j + total_of(self.operations) + total_of(self.levels)

    @property
    def average_w(self) -> Fraction:
        """The average power; the constant one if nothing takes time."""
        return self.total_j / self.time_s if self.time_s else self.constant_w

    @property
    def delay_js(self) -> Fraction:
        """The energy-delay product, in joule seconds."""
        return self.total_j * self.time_s

    @property
    def is_capped(self) -> bool:
        """Whether the power cap lengthens the time."""
        return self.time_s > self.uncapped_s

    def per_joule(self, work: int) -> Fraction:
        """Operations per joule, which equals operations per second per watt."""
        return work / self.total_j if self.total_j else Fraction(0)

    @property
    def by_cause(self) -> tuple[tuple[str, Fraction], ...]:
        """Joules by what takes them; they add up to the total."""
        return (
            ("constant power", self.constant_j),
            *((f"{name} operations", joules) for name, joules in self.operations),
            *((f"{name} bytes", joules) for name, joules in self.levels),
        )

    def __add__(self, other: Energy) -> Energy:
        """Both, one after the other on the same machine."""
        return Energy(
            self.time_s + other.time_s,
            self.uncapped_s + other.uncapped_s,
            self.of if self.of == other.of else f"{EXPECTED} or {BOUND} of each launch",
            self.constant_w,
            self.cap_w,
            joined(self.operations + other.operations),
            joined(self.levels + other.levels),
            tuple(dict.fromkeys(self.all_balances + other.all_balances)),
            tuple(dict.fromkeys(self.assumptions + other.assumptions)),
        )

    def __mul__(self, times: int) -> Energy:
        """The same `times` over."""
        return replace(
            self,
            time_s=self.time_s * times,
            uncapped_s=self.uncapped_s * times,
            operations=tuple((name, joules * times) for name, joules in self.operations),
            levels=tuple((name, joules * times) for name, joules in self.levels),
        )

    def to_json(self, work: int) -> dict[str, Any]:
        """The keys for energy in the document of a prediction of this much work (docs/energy.md): joules, watts,
        seconds.
        """
        balances = self.balances
        return {
            "energy_j": float(self.total_j),
            "average_power_w": float(self.average_w),
            "energy_by": [{"cause": cause, "energy_j": float(joules)} for cause, joules in self.by_cause],
            "energy_time_s": float(self.time_s),
            "energy_time": self.of,
            "power_capped": self.is_capped,
            "flops_per_j": float(self.per_joule(work)),
            "energy_delay_js": float(self.delay_js),
            "energy_balance": None if balances is None else float(balances.energy),
            "half_energy_intensity": None if balances is None else float(balances.half),
            "energy_missing": None,
        }


def no_energy_json(why: str) -> dict[str, Any]:
    """The same keys for a prediction without an energy."""
    found = dict.fromkeys(("energy_j", "average_power_w", "energy_by", "energy_time_s", "energy_time", "power_capped"))
    found |= dict.fromkeys(("flops_per_j", "energy_delay_js", "energy_balance", "half_energy_intensity"))
    return {**found, "energy_missing": why}


def total_of(parts: Iterable[tuple[str, Fraction]]) -> Fraction:
    """The sum, in joules."""
    return sum((joules for _, joules in parts), Fraction(0))


def joined(parts: Iterable[tuple[str, Fraction]]) -> tuple[tuple[str, Fraction], ...]:
    """The parts with equal names added, in the order in which the names first occur."""
    total: dict[str, Fraction] = {}
    for name, joules in parts:
        total[name] = total.get(name, Fraction(0)) + joules
    return tuple(total.items())
