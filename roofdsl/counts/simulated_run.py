"""A kernel sent through caches: the counts of each level, and miss curves beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from roofdsl.loops.model import Kernel, Traffic
from roofdsl.simulate.cache_levels import CacheLevel

if TYPE_CHECKING:
    from roofdsl.simulate.distances import MissCurve


@dataclass(frozen=True)
class LevelRow:
    """One reported level; loads and stores in units of `unit_bytes` (None: each array's element)."""

    name: str
    level: CacheLevel | None
    size_bytes: int
    unit_bytes: int | None
    hits: int
    misses: int
    loads: int
    stores: int
    load_bytes: int
    store_bytes: int


@dataclass(frozen=True)
class SimulatedRun:
    """One simulated kernel, with its miss curve if that was requested."""

    kernel: str
    parameters: Mapping[str, int]
    machine: str | None
    accesses: int = 0
    register_bytes: int | None = None
    scalar_load_bytes: int = 0
    scalar_store_bytes: int = 0
    streamed_bytes: int = 0
    levels: tuple[LevelRow, ...] = ()
    curve: MissCurve | None = None
    convention: Traffic = "load_store"
    data: tuple[str, ...] = ()
    """Where the values of index arrays are from."""
    best: MissCurve | None = None
    bypass: bool = False

    def through(
        self,
        kernel: Kernel,
        values: Mapping[str, int],
        cache_bytes: int | None,
        levels: Sequence[CacheLevel] | None,
        *,
        convention: Traffic,
        progress: Callable[[int], None],
        skip: bool = True,
    ) -> SimulatedRun:
        """The run with its results, through `levels` or, without levels, through one cache with lines of all sizes."""
        if levels is None:
            return self._through_elements(kernel, values, cache_bytes, convention, progress, skip)
        from roofdsl.simulate.hierarchy import simulate

        found = simulate(kernel, values, levels, progress=progress, skip=skip)
        through_registers = found.register_bytes
        if through_registers is None:
            through_registers = _register_bytes(kernel, values)
        moved = [(found.load_bytes(k), found.store_bytes(k)) for k in range(len(levels))]
        rows = tuple(
            LevelRow(
                t.name, level, level.size_bytes, t.unit_bytes, t.hits, t.misses, t.loads, t.stores + t.passed, *both
            )
            for level, t, both in zip(levels, found.levels, moved, strict=True)
        )
        return replace(
            self,
            accesses=found.accesses,
            register_bytes=through_registers,
            scalar_load_bytes=found.scalar_load_bytes,
            scalar_store_bytes=found.scalar_store_bytes,
            streamed_bytes=found.streamed_bytes,
            levels=rows,
        )

    def _through_elements(  # noqa: PLR0917
        self,
        kernel: Kernel,
        values: Mapping[str, int],
        cache_bytes: int | None,
        convention: Traffic,
        progress: Callable[[int], None],
        skip: bool,
    ) -> SimulatedRun:
        from roofdsl.simulate.lru_traffic import simulate_lru

        found = simulate_lru(kernel, values, cache_bytes, progress=progress, skip=skip)
        begun = found.misses
        written = 0 if convention == "write_allocate" else sum(a.begun_with_write for a in found.arrays)
        row = LevelRow(
            "cache", None, cache_bytes or 0, None, found.accesses - begun, begun, begun - written,
            sum(a.stored for a in found.arrays), found.loads(convention) or 0, found.stores(convention) or 0,
        )  # fmt: skip
        return replace(
            self,
            accesses=found.accesses,
            scalar_load_bytes=found.scalar_load_bytes,
            scalar_store_bytes=found.scalar_store_bytes,
            streamed_bytes=found.streamed_bytes,
            levels=(row,),
        )

    def with_curve(self, curve: MissCurve, convention: Traffic) -> SimulatedRun:
        return replace(self, accesses=curve.accesses, curve=curve, convention=convention)

    def beside_best(self, best: MissCurve, *, bypass: bool) -> SimulatedRun:
        """With the curve of the best replacement beside that of LRU."""
        return replace(self, best=best, bypass=bypass)


def _register_bytes(kernel: Kernel, values: Mapping[str, int]) -> int | None:
    """The bytes of all accesses of arrays, each at its element's size; None if they are too hard to count."""
    from roofdsl.counts.sector_traffic import register_bytes_at
    from roofdsl.loops.accesses import scalar_bytes
    from roofdsl.sets.library import TooHard

    try:
        return sum(register_bytes_at(kernel, values)) - sum(scalar_bytes(kernel))
    except TooHard:
        return None
