"""A prediction as a record: counts, the terms of the time, the bound, which is the largest of them (rules 15, 16, 18),
and the expected time.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import operation
from roofdsl.predict.energy_record import Energy, no_energy_json
from roofdsl.predict.expected import Expected
from roofdsl.predict.level_time import LevelTime, LinkTime, joined_links
from roofdsl.predict.occupancy import LatencyCeiling, Occupancy
from roofdsl.predict.time_model import COMPUTE, LAUNCH, SAME, ComputePart, bound_text, bounding

__all__ = ["LevelTime", "LinkTime", "Prediction"]


def _summed(shares: Sequence[tuple[str, Fraction]]) -> tuple[tuple[str, Fraction], ...]:
    totals: dict[str, Fraction] = {}
    for name, time in shares:
        totals[name] = totals.get(name, Fraction(0)) + time
    return tuple(totals.items())


def _turns_of_both(one: Prediction, other: Prediction) -> tuple[tuple[str, Fraction], ...]:
    """The levels that take turns in both launches together, farthest first. For a launch without such levels (its
    nearer levels may not have been found), the memory counts.
    """
    if not one.in_turn and not other.in_turn:
        return ()
    shares = _summed([t for p in (one, other) for t in p.in_turn or ((p.memory.name, p.memory.time_s),)])
    most = max(one, other, key=lambda p: len(p.levels))
    order = [level.name for level in reversed(most.levels)]
    order += [name for name, _ in shares if name not in order]
    return tuple(sorted((s for s in shares if s[1]), key=lambda s: order.index(s[0])))


class Cores(Record):
    """The number of cores that run the kernel, and the number from which a level that all of them share is saturated
    (n_s).

    shared: the level, and the seconds of its transfers for all cores together. Both are None if there is no expected
    time, or if nothing is transferred to a shared level. most: the most cores that have work; None without an expected
    time, and if that is not limited. The number that saturates is None, too, if fewer cores than that
    have work.
    """

    count: int
    saturation: int | None = None
    shared: tuple[str, Fraction] | None = None
    most: int | None = None

    def to_json(self) -> dict[str, Any]:
        name, time_s = self.shared or (None, None)
        level = {"shared": name, "shared_s": _plain(time_s)}
        return {"count": self.count, "n_s": self.saturation, "most_cores": self.most} | level


class Prediction(Record):
    """The model's prediction for one launch of a kernel, or for several (predictions can be added and multiplied).

    work: W, in operations of `type` and others together. compute_s: T_comp. launch_s: all launches together. bound_s:
    the maximum of the terms of each launch, summed over launches: no code with these accesses is faster; no_overlap_s:
    the sum of the terms. machine_peak_per_s: the machine's highest rate for `type`. All times are exact seconds.

    counters: totals of the kernel's `count` names, whose rates are predicted too. occupancy: that of the given thread
    block; latency: the rates that its requests in flight allow, by level. parts: the operations by type and class, each
    with its rate, that make up compute_s. in_turn: levels that take turns instead of running at the same time, farthest
    first, if the machine says so (`levels_in_turn`). links: the traffic of a program's collectives, by link.
    collective: the collective whose time this is, if it is one.

    expected: the time that the code should take, with the causes of its distance from the bound. It is None if there is
    no such time or if it was not requested; no_expected then gives the reason, or is empty. cores: if a number of cores
    was requested. energy: if it was requested; if it could not be found, no_energy gives the reason. executions: the
    number of kernel executions, if one of them is several launches (`predict.kernel_launches`).
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
    bound_s: Fraction
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
    parts: tuple[ComputePart, ...] = ()
    occupancy: Occupancy | None = None
    latency: tuple[LatencyCeiling, ...] = ()
    in_turn: tuple[tuple[str, Fraction], ...] = ()
    links: tuple[LinkTime, ...] = ()
    collective: str | None = None
    expected: Expected | None = None
    no_expected: str = ""
    cores: Cores | None = None
    energy: Energy | None = None
    no_energy: str = ""
    executions: int | None = None

    @property
    def kernel_executions(self) -> int:
        """How often kernels are executed: the launches, unless a kernel is several of them."""
        return self.launches if self.executions is None else self.executions

    # ---- rates ----

    @property
    def operation(self) -> str:
        """FLOP, or OP if an integer type dominates (rule 7)."""
        return operation(self.type) if self.type is not None else "FLOP"

    @property
    def rate_per_s(self) -> Fraction:
        """W over the bound on the time, in operations per second; 0 without operations."""
        return self._over(self.work, self.bound_s)

    @property
    def expected_rate_per_s(self) -> Fraction | None:
        """W over the expected time, in operations per second; None without such a time, 0 without operations."""
        return None if self.expected is None else self._over(self.work, self.expected.expected_s)

    @property
    def memory(self) -> LevelTime:
        """The level of the main memory."""
        return next(level for level in reversed(self.levels) if level.kind == "memory")

    @property
    def bytes_per_s(self) -> Fraction:
        """Bytes across the memory boundary over the bound on the time: the rate of a kernel without work."""
        return self._over(self.memory.bytes, self.bound_s)

    @property
    def intensity(self) -> Fraction | None:
        """I = W / Q at the memory boundary; None if W = 0 (rule 16) or if nothing moves."""
        return self.memory.intensity(self.work)

    @property
    def peak_per_s(self) -> Fraction | None:
        """The effective peak W / T_comp (rule 13); None if W = 0."""
        return self.work / self.compute_s if self.compute_s else None

    @property
    def fma_fraction(self) -> Fraction | None:
        """alpha = F / (F + N) of the dominant type, for F fused pairs and N other operations; None without any."""
        own = [p for p in self.parts if p.type == self.type]
        pairs = sum((Fraction(p.operations, 2) for p in own if p.cls == "fma"), Fraction(0))
        others = sum(p.operations for p in own if p.cls != "fma")
        return pairs / (pairs + others) if pairs + others else None

    @property
    def peak_fraction(self) -> Fraction | None:
        """The effective peak as a fraction of the machine's peak. It is (1 + alpha) / 2 if the unfused rate is half of
        the fused one.
        """
        return (
            None
            if self.peak_per_s is None or not self.machine_peak_per_s
            else self.peak_per_s / self.machine_peak_per_s
        )

    @property
    def ridge(self) -> Fraction | None:
        """The intensity from which this kernel's effective peak is the bound instead of memory."""
        return None if self.peak_per_s is None else self.peak_per_s / self.memory.rate_bytes_per_s

    @property
    def machine_balance(self) -> Fraction | None:
        """B_tau = P_peak / beta, with the machine's own peak for the type, in operations per byte."""
        peak = self.machine_peak_per_s
        return None if peak is None else peak / self.memory.bandwidth_bytes_per_s

    @staticmethod
    def _over(amount: int, time_s: Fraction) -> Fraction:
        return amount / time_s if time_s else Fraction(0)

    # ---- what bounds it ----

    @property
    def terms(self) -> tuple[tuple[str, Fraction], ...]:
        """The terms of rule 15 by name: compute, each level, the levels that take turns, links, and launch."""
        several = (self.in_turn_term,) if len(self.in_turn) > 1 else ()
        return (
            (COMPUTE, self.compute_s),
            *((level.name, level.time_s) for level in self.levels),
            *several,
            *((link.name, link.time_s) for link in self.links),
            (LAUNCH, self.launch_s),
        )

    @property
    def in_turn_term(self) -> tuple[str, Fraction]:
        """The levels of `in_turn` as one term, such as `DRAM + L2`, and their time."""
        return " + ".join(name for name, _ in self.in_turn), sum((t for _, t in self.in_turn), Fraction(0))

    @property
    def bounds(self) -> tuple[str, ...]:
        """The largest term and those within 10 % of it, largest first. Of levels that take turns, each that has at
        least 10 % of their time is named.
        """
        together, whole = self.in_turn_term
        shares = sorted((share for share in self.in_turn if share[1] >= (1 - SAME) * whole), key=lambda s: -s[1])
        names = [self.terms[k][0] for k in bounding([time_s for _, time_s in self.terms])]
        found = [[n for n, _ in shares] if name == together else [name] for name in names]
        return tuple(dict.fromkeys(name for names in found for name in names))

    @property
    def bound(self) -> str:
        """The name of the bound; `HBM and compute` if two are within 10 %; `nothing` if nothing is done."""
        return bound_text(self.bounds)

    # ---- several launches ----

    def __add__(self, other: Prediction) -> Prediction:
        """Both, one after the other, on the same machine: bounds are added (rule 18), and so are the terms.

        A level that could not be found for one of them is left out of the sum. Raises ValueError if the machines
        differ.
        """
        mine = [a for a in self.levels if a.kind == "memory" or a.name in {b.name for b in other.levels}]
        theirs = [b for b in other.levels if b.kind == "memory" or b.name in {a.name for a in self.levels}]
        if [(a.name, a.bandwidth_bytes_per_s) for a in mine] != [(b.name, b.bandwidth_bytes_per_s) for b in theirs]:
            raise ValueError(f"predictions for different machines cannot be added: {self.machine}, {other.machine}")
        # The peak and the unit of a sum are those of the part that computes longer.
        major = self if self.compute_s >= other.compute_s else other

        def common(mine: Any, others: Any, otherwise: Any) -> Any:
            return mine if mine == others else otherwise

        counters = dict(self.counters)
        for name, value in other.counters:
            counters[name] = counters.get(name, 0) + value
        return Prediction(
            kernel=common(self.kernel, other.kernel, f"{self.kernel} + {other.kernel}"),
            machine=self.machine,
            parameters=common(self.parameters, other.parameters, ()),
            work=self.work + other.work,
            type=major.type,
            compute_s=self.compute_s + other.compute_s,
            levels=tuple(a + b for a, b in zip(mine, theirs, strict=True)),
            launches=self.launches + other.launches,
            executions=self.kernel_executions + other.kernel_executions,
            launch_s=self.launch_s + other.launch_s,
            bound_s=self.bound_s + other.bound_s,
            no_overlap_s=self.no_overlap_s + other.no_overlap_s,
            machine_peak_per_s=major.machine_peak_per_s,
            traffic=common(self.traffic, other.traffic, "mixed"),
            cache_bytes=self.cache_bytes,
            line_bytes=self.line_bytes,
            footprint_bytes=max(self.footprint_bytes or 0, other.footprint_bytes or 0) or None,
            unit=major.unit,
            counters=tuple(counters.items()),
            assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            warnings=tuple(dict.fromkeys(self.warnings + other.warnings)),
            parts=_joined(self.parts + other.parts),
            occupancy=common(self.occupancy, other.occupancy, None),
            latency=common(self.latency, other.latency, ()),
            in_turn=_turns_of_both(self, other),
            links=joined_links(self.links + other.links),
            collective=common(self.collective, other.collective, None),
            expected=self.expected + other.expected if self.expected and other.expected else None,
            no_expected=self.no_expected or other.no_expected,
            energy=self.energy + other.energy if self.energy and other.energy else None,
            no_energy=self.no_energy or other.no_energy,
        )

    def __mul__(self, times: int) -> Prediction:
        """The same launch, `times` times (at least once), each of them cold."""
        if times < 1:
            raise ValueError(f"a launch is repeated at least once, not {times} times")
        return replace(
            self,
            work=self.work * times,
            compute_s=self.compute_s * times,
            levels=tuple(level * times for level in self.levels),
            launches=self.launches * times,
            executions=self.kernel_executions * times,
            launch_s=self.launch_s * times,
            bound_s=self.bound_s * times,
            no_overlap_s=self.no_overlap_s * times,
            counters=tuple((name, value * times) for name, value in self.counters),
            parts=tuple(replace(part, operations=part.operations * times) for part in self.parts),
            in_turn=tuple((name, time * times) for name, time in self.in_turn),
            links=tuple(link * times for link in self.links),
            expected=None if self.expected is None else self.expected * times,
            energy=None if self.energy is None else self.energy * times,
        )

    __rmul__ = __mul__

    # ---- machine-readable ----

    def to_json(self) -> dict[str, Any]:
        """The document `roofdsl.predict/1` (docs/commands.md), in bytes, seconds and operations per second."""
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
            "fma_fraction": _plain(self.fma_fraction),
            "peak_fraction": _plain(self.peak_fraction),
            "mix": [part.to_json() for part in self.parts],
            "time_s": float(self.bound_s),
            "expected_s": None if self.expected is None else float(self.expected.expected_s),
            "expected_flops_per_s": _plain(self.expected_rate_per_s),
            "expected_model": None if self.expected is None else self.expected.model,
            "expected_missing": self.no_expected or None,
            "causes": None if self.expected is None else [cause.to_json() for cause in self.expected.causes],
            "remedies": [] if self.expected is None else self.expected.remedies(),
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
            "levels": [self._level_json(level) for level in self.levels],
            "in_turn": [{"name": name, "time_s": float(time)} for name, time in self.in_turn],
            "links": [link.to_json() for link in self.links],
            "occupancy": None if self.occupancy is None else self.occupancy.to_json(),
            "latency": [found.to_json() for found in self.latency],
            "launches": self.launches,
            "launch_s": float(self.launch_s),
            "traffic": self.traffic,
            "cache": {"size_bytes": self.cache_bytes, "line_bytes": self.line_bytes},
            "footprint_bytes": self.footprint_bytes,
            "counters": {
                name: {"total": value, "per_s": float(self._over(value, self.bound_s))} for name, value in self.counters
            },
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
        } | self._asked_for()

    def _asked_for(self) -> dict[str, Any]:
        """The keys that a document has only on request."""
        found: dict[str, Any] = {} if self.cores is None else {"cores": self.cores.to_json()}
        if self.energy is not None:
            found |= self.energy.to_json(self.work)
        return found | (no_energy_json(self.no_energy) if self.no_energy else {})

    def _level_json(self, level: LevelTime) -> dict[str, Any]:
        document = {
            "name": level.name,
            "bytes": level.bytes,
            "bandwidth_bytes_per_s": float(level.bandwidth_bytes_per_s),
            "intensity": _plain(level.intensity(self.work)),
            "time_s": float(level.time_s),
        }
        if not level.nearer:  # for given counts instead of a kernel
            return document
        more = {"loads_bytes": level.loads_bytes, "stores_bytes": level.stores_bytes, "moved_bytes": level.moved_bytes}
        if level.duplex_bytes is not None:
            more["duplex_bytes"] = level.duplex_bytes
        if level.allocated_bytes:
            more["allocated_bytes"] = level.allocated_bytes
        if level.streamed_bytes:
            more["streamed_bytes"] = level.streamed_bytes
        return document | {"kind": level.kind, "nearer": level.nearer} | more


def _joined(parts: tuple[ComputePart, ...]) -> tuple[ComputePart, ...]:
    """Parts with the same type, class and rate merged."""
    total: dict[tuple[str, str, Fraction], int] = {}
    for p in parts:
        key = (p.type, p.cls, p.rate_per_s)
        total[key] = total.get(key, 0) + p.operations
    return tuple(ComputePart(type_, cls, n, rate) for (type_, cls, rate), n in total.items())


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
