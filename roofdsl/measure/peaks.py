"""Arithmetic rates of the processor: measured, compared with each other, and measured again if in doubt.

A number that other programs spoiled shows in two ways: its samples spread, or it does not fit another number (f32 and
f64, fused and unfused, all cores and one).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.measure.microkernels import ARITHMETIC, INTEGER, arithmetic, largest, operands, shapes
from roofdsl.measure.multicore_timing import QUICK, Effort, Rate, rate
from roofdsl.measure.other_load import wait_until_calm
from roofdsl.measure.timing import MOST_SPREAD
from roofdsl.measure.vector_loops import vector_loops

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8"}
_FLOAT_CLASSES = ("fma", "add", "mul", "add and mul", "min", "div", "mul and div", *SPECIAL_FUNCTIONS)
_INTEGER_CLASSES = ("add", "mul", "min")

USUAL = (1.85, 2.15)
"""How many times as fast as f64 an operation on f32 is: twice as many fit into a vector. The margins are narrow,
since a core that was shared with another thread during one of the two measurements changes the ratio only a little.
"""

FASTER = 1.04
"""A peak that is at least this many times as fast when it is measured again had been disturbed."""

AGAIN = 2
"""The number of rounds in which doubtful numbers are measured again."""

Key = tuple[str, str]
"""(type, class)."""


@dataclass(frozen=True)
class Peak:
    """Operations per second of one class on one type, on one core and on all of them together."""

    type: str
    cls: str
    all_cores: Rate
    one_core: Rate

    @property
    def key(self) -> Key:
        return self.type, self.cls


@dataclass(frozen=True)
class Doubt:
    """A contradiction between peaks, or a spread that is too large, as a message."""

    keys: tuple[Key, ...]
    why: str


def wanted(types: Sequence[str]) -> list[Key]:
    """The classes that are measured for these types."""
    return [(t, c) for t in types for c in (_FLOAT_CLASSES if t.startswith("f") else _INTEGER_CLASSES)]


def measure_peak(key: Key, team: Sequence[int], effort: Effort) -> Peak:
    """One class on one core, and on all cores of `team` at once. Raises what the loop raises."""
    alone = _arithmetic(*key, team[:1], effort)
    return Peak(*key, _arithmetic(*key, team, effort) if len(team) > 1 else alone, alone)


def _arithmetic(type_name: str, cls: str, team: Sequence[int], effort: Effort) -> Rate:
    """Operations per second of one class on all cores of `team` at once: of the fastest vectors in assembly, or if
    there are none, of the compiled loop with the best shape.
    """
    vectors = vector_loops(type_name, cls)
    if vectors:
        of_each = [rate(v.loop, [(0,)] * len(team), v.amount * len(team), team, effort) for v in vectors]
        return max(of_each, key=lambda r: r.per_s)
    return _compiled(type_name, cls, team, effort)


def _compiled(type_name: str, cls: str, team: Sequence[int], effort: Effort) -> Rate:
    import numpy as np

    dtype = DTYPES[type_name]
    integer = dtype.startswith("int")
    best = Rate(0.0, 0.0)
    size = np.dtype(dtype).itemsize
    for lanes, chain in shapes(cls, integer, effort is QUICK, size):
        arguments = []
        for core in team:
            start = np.random.default_rng(core).uniform(1, 2, 2 * lanes) * (largest(dtype) / 2 if integer else 1)
            arguments.append((start.astype(dtype), *operands(cls, dtype)))
        amount = lanes * chain * (INTEGER if integer else ARITHMETIC)[cls][1] * len(team)
        found = rate(arithmetic(cls, (lanes, chain), integer), arguments, amount, team, effort)
        best = max(best, found, key=lambda r: r.per_s)
    return best


# ---- doubtful peaks ----


def doubts(peaks: Sequence[Peak], cores: int) -> tuple[Doubt, ...]:
    """Doubts about the peaks of `cores` cores: samples that spread, and numbers that do not fit each other."""
    return (*_spread(peaks, cores), *misfits_of(peaks, cores))


def misfits_of(peaks: Sequence[Peak], cores: int) -> tuple[Doubt, ...]:
    """Ratios that no processor should have; the margins allow for a clock that changes in between."""
    by_key = {p.key: p for p in peaks}
    return (*_cores_misfit(by_key, cores), *_types_misfit(by_key), *_fused_misfit(by_key))


def _spread(peaks: Sequence[Peak], cores: int) -> Iterator[Doubt]:
    for p in peaks:
        for rate_of, who in ((p.one_core, "one core"), *([(p.all_cores, f"{cores} cores")] if cores > 1 else [])):
            if rate_of.spread > MOST_SPREAD:
                yield Doubt((p.key,), f"{p.type} {p.cls}: samples of {who} spread by {rate_of.spread:.0%}")


def _cores_misfit(peaks: dict[Key, Peak], cores: int) -> Iterator[Doubt]:
    for key, p in peaks.items():
        ratio = p.all_cores.per_s / p.one_core.per_s
        if not 0.9 <= ratio <= 1.15 * cores:
            yield Doubt((key,), f"{' '.join(key)}: {cores} cores together are {ratio:.2g} times as fast as one")


def _types_misfit(peaks: dict[Key, Peak]) -> Iterator[Doubt]:
    for cls in ("fma", "add", "mul", "min"):
        double, single = peaks.get(("f64", cls)), peaks.get(("f32", cls))
        if double is not None and single is not None:
            ratio = single.one_core.per_s / double.one_core.per_s
            if not USUAL[0] <= ratio <= USUAL[1]:
                why = f"f32 {cls} is {ratio:.2g} times as fast as f64 {cls}; about 2 is usual"
                yield Doubt((double.key, single.key), why)


def _fused_misfit(peaks: dict[Key, Peak]) -> Iterator[Doubt]:
    for type_name in ("f64", "f32"):
        fused = peaks.get((type_name, "fma"))
        alone = [p for cls in ("add", "mul") if (p := peaks.get((type_name, cls))) is not None]
        if fused is not None and alone:
            faster = max(alone, key=lambda p: p.one_core.per_s)
            ratio = fused.one_core.per_s / faster.one_core.per_s
            if not 0.9 <= ratio <= 2.2:
                why = f"{type_name} fma does {ratio:.2g} times the operations of {faster.cls}; 1 to 2 is usual"
                yield Doubt((fused.key, *(p.key for p in alone)), why)


def settled(
    peaks: Sequence[Peak],
    cores: int,
    again: Callable[[Key], Peak],
    most_s: float,
    *,
    wait: Callable[[], object] = wait_until_calm,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Peak, ...]:
    """The peaks after repeating doubtful measurements, at most AGAIN times and until `most_s` is over; before each
    round, `wait` lets other programs finish.
    """
    found = {p.key: p for p in peaks}
    end = clock() + most_s
    for _ in range(AGAIN):
        doubtful = dict.fromkeys(k for doubt in doubts(tuple(found.values()), cores) for k in doubt.keys)
        if not doubtful or clock() > end:
            break
        wait()
        for key in sorted(doubtful, key=lambda key: key[1] != "fma"):  # required peaks come first
            if clock() > end:
                break
            p, q = found[key], again(key)
            found[key] = Peak(*key, truer(p.all_cores, q.all_cores), truer(p.one_core, q.one_core))
    return tuple(found.values())


def confirmed(peaks: Sequence[Peak], again: Callable[[Key], Peak], most_s: float) -> tuple[Peak, ...]:
    """The peaks after each was measured once more, some seconds later, until `most_s` is over.

    Another thread on the core slows all samples of a number alike, so they do not spread, and the number may still fit
    the others. But such a thread rarely stays for a whole characterization. The faster number counts; if the second one
    is at least FASTER times the first, a third one is measured.
    """
    found = list(peaks)
    end = time.monotonic() + most_s
    for k, p in enumerate(peaks):
        for _ in range(2):
            if time.monotonic() > end:
                return tuple(found)
            before, q = found[k], again(p.key)
            found[k] = Peak(*p.key, truer(before.all_cores, q.all_cores), truer(before.one_core, q.one_core))
            if found[k].one_core.per_s < FASTER * before.one_core.per_s:
                break
    return tuple(found)


def truer(a: Rate, b: Rate) -> Rate:
    """The faster of two rates, since other programs only make a loop slower; but a calm one if it is nearly as fast."""
    slower, faster = sorted((a, b), key=lambda r: r.per_s)
    calm = slower.spread <= MOST_SPREAD < faster.spread
    return slower if calm and slower.per_s >= (1 - MOST_SPREAD) * faster.per_s else faster


def at_least_one_core(peaks: Sequence[Peak]) -> tuple[Peak, ...]:
    """The peaks, with all cores together at least as fast as one core, since the others may idle."""
    return tuple(replace(p, all_cores=max(p.all_cores, p.one_core, key=lambda r: r.per_s)) for p in peaks)
