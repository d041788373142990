"""Expected time: the largest of compute, memory and launch time, and which it is (rules 15, 16 and 18)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import operation

_SAME = Fraction(9, 10)  # terms within 10 % of the largest are named with it


class LevelTime(Record):
    """Bytes across the boundary of one memory level, and what they take at its bandwidth."""

    name: str
    bytes: int
    bandwidth_bytes_per_s: Fraction

    @property
    def time_s(self) -> Fraction:
        return self.bytes / self.bandwidth_bytes_per_s

    def intensity(self, work: int) -> Fraction | None:
        """W over this level's bytes, in operations per byte; None where either is 0."""
        return Fraction(work, self.bytes) if work and self.bytes else None


class Prediction(Record):
    """What the model expects of a kernel, or of several launches together (they add and multiply).

    work: W, in operations of `type` and others together. compute_s: T_comp. launch_s: all launches together.
    expected_s: the maximum of the terms of each launch, summed over launches; no_overlap_s: their sum.
    machine_peak_per_s: the machine's highest rate for `type`. All times are exact seconds.
    counters: totals of the kernel's own `count` names, whose rates are predicted too.
    """

    kernel: str
    machine: str
    parameters: tuple[tuple[str, int], ...]
    work: int
    type: str | None
    compute_s: Fraction
    levels: tuple[LevelTime, ...]
    launches: int
    launch_s: Fraction
    expected_s: Fraction
    no_overlap_s: Fraction
    machine_peak_per_s: Fraction | None = None
    traffic: str = ""
    cache_bytes: int | None = None
    line_bytes: int | None = None
    footprint_bytes: int | None = None
    unit: str | None = None
    counters: tuple[tuple[str, int], ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    # ---- rates ----

    @property
    def operation(self) -> str:
        """FLOP, or OP where an integer type dominates (rule 7)."""
        return operation(self.type) if self.type is not None else "FLOP"

    @property
    def rate_per_s(self) -> Fraction:
        """W over the expected time, in operations per second; 0 where there are none."""
        return self._over(self.work, self.expected_s)

    @property
    def memory(self) -> LevelTime:
        """The last level."""
        return self.levels[-1]

    @property
    def bytes_per_s(self) -> Fraction:
        """Bytes across the memory boundary over the expected time: what a kernel without work is judged by."""
        return self._over(self.memory.bytes, self.expected_s)

    @property
    def intensity(self) -> Fraction | None:
        """I = W / Q at the memory boundary; None where W = 0 (rule 16) or nothing moves."""
        return self.memory.intensity(self.work)

    @property
    def peak_per_s(self) -> Fraction | None:
        """The effective peak W / T_comp (rule 13); None where W = 0."""
        return self.work / self.compute_s if self.compute_s else None

    @property
    def ridge(self) -> Fraction | None:
        """The intensity from which this kernel's effective peak, not memory, is the bound."""
        return self._balance(self.peak_per_s)

    @property
    def machine_balance(self) -> Fraction | None:
        """B_tau = P_peak / beta with the machine's own peak for the type, in operations per byte."""
        return self._balance(self.machine_peak_per_s)

    def _balance(self, peak: Fraction | None) -> Fraction | None:
        return None if peak is None else peak / self.memory.bandwidth_bytes_per_s

    @staticmethod
    def _over(amount: int, time_s: Fraction) -> Fraction:
        return amount / time_s if time_s else Fraction(0)

    # ---- what bounds it ----

    @property
    def terms(self) -> tuple[tuple[str, Fraction], ...]:
        """The terms of rule 15 by name: compute, each level, launch."""
        return (
            ("compute", self.compute_s),
            *((level.name, level.time_s) for level in self.levels),
            ("launch", self.launch_s),
        )

    @property
    def bounds(self) -> tuple[str, ...]:
        """The largest term, and those within 10 % of it, largest first."""
        largest = max(t for _, t in self.terms)
        near = [(name, t) for name, t in self.terms if t and t >= _SAME * largest]
        return tuple(name for name, _ in sorted(near, key=lambda item: -item[1]))

    @property
    def bound(self) -> str:
        """The name of the bound; `HBM and compute` where two are within 10 %; `nothing` where nothing is done."""
        return " and ".join(self.bounds) or "nothing"

    # ---- several launches ----

    def __add__(self, other: Prediction) -> Prediction:
        """Both, one after the other (rule 18: expected times add, and so do the terms). Same machine's levels."""
        if [(a.name, a.bandwidth_bytes_per_s) for a in self.levels] != [
            (b.name, b.bandwidth_bytes_per_s) for b in other.levels
        ]:
            raise ValueError(f"predictions for different machines do not add: {self.machine}, {other.machine}")
        major = self if self.compute_s >= other.compute_s else other
        counters = dict(self.counters)
        for name, value in other.counters:
            counters[name] = counters.get(name, 0) + value
        return Prediction(
            kernel=self.kernel if self.kernel == other.kernel else f"{self.kernel} + {other.kernel}",
            machine=self.machine,
            parameters=self.parameters if self.parameters == other.parameters else (),
            work=self.work + other.work,
            type=major.type,
            compute_s=self.compute_s + other.compute_s,
            levels=tuple(replace(a, bytes=a.bytes + b.bytes) for a, b in zip(self.levels, other.levels, strict=True)),
            launches=self.launches + other.launches,
            launch_s=self.launch_s + other.launch_s,
            expected_s=self.expected_s + other.expected_s,
            no_overlap_s=self.no_overlap_s + other.no_overlap_s,
            machine_peak_per_s=major.machine_peak_per_s,
            traffic=self.traffic if self.traffic == other.traffic else "mixed",
            cache_bytes=self.cache_bytes,
            line_bytes=self.line_bytes,
            footprint_bytes=max(self.footprint_bytes or 0, other.footprint_bytes or 0) or None,
            unit=major.unit,
            counters=tuple(counters.items()),
            assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            warnings=tuple(dict.fromkeys(self.warnings + other.warnings)),
        )

    def __mul__(self, times: int) -> Prediction:
        """The same launch `times` over (at least once), each of them cold."""
        if times < 1:
            raise ValueError(f"a launch is repeated at least once, not {times} times")
        return replace(
            self,
            work=self.work * times,
            compute_s=self.compute_s * times,
            levels=tuple(replace(level, bytes=level.bytes * times) for level in self.levels),
            launches=self.launches * times,
            launch_s=self.launch_s * times,
            expected_s=self.expected_s * times,
            no_overlap_s=self.no_overlap_s * times,
            counters=tuple((name, value * times) for name, value in self.counters),
        )

    __rmul__ = __mul__

    # ---- machine-readable ----

    def to_json(self) -> dict[str, Any]:
        """The document `roofdsl.predict/1` (contract.md): plain numbers in bytes, seconds, operations per second."""
        return {
            "schema": "roofdsl.predict/1",
            "kernel": self.kernel,
            "machine": self.machine,
            "parameters": dict(self.parameters),
            "work_flops": self.work,
            "operation": self.operation,
            "type": self.type,
            "unit": self.unit,
            "peak_flops": _plain(self.peak_per_s),
            "machine_peak_flops": _plain(self.machine_peak_per_s),
            "time_s": float(self.expected_s),
            "time_no_overlap_s": float(self.no_overlap_s),
            "compute_s": float(self.compute_s),
            "flops_per_s": float(self.rate_per_s),
            "bytes_per_s": float(self.bytes_per_s),
            "intensity": _plain(self.intensity),
            "bound": self.bound,
            "bounds": list(self.bounds),
            "balance": _plain(self.ridge),
            "machine_balance": _plain(self.machine_balance),
            "ridge": _plain(self.ridge),
            "levels": [
                {
                    "name": level.name,
                    "bytes": level.bytes,
                    "bandwidth_bytes_per_s": float(level.bandwidth_bytes_per_s),
                    "intensity": _plain(level.intensity(self.work)),
                    "time_s": float(level.time_s),
                }
                for level in self.levels
            ],
            "launches": self.launches,
            "launch_s": float(self.launch_s),
            "traffic": self.traffic,
            "cache": {"size_bytes": self.cache_bytes, "line_bytes": self.line_bytes},
            "footprint_bytes": self.footprint_bytes,
            "counters": {
                name: {"total": value, "per_s": float(self._over(value, self.expected_s))}
                for name, value in self.counters
            },
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
        }


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
