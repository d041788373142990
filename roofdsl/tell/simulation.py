"""Simulated caches: accesses, hits, misses and bytes of every level, and Q(Z) of a miss curve; and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.quantities import group, show_bytes, show_number, show_size
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line
from roofdsl.tell.titles import at

if TYPE_CHECKING:
    from roofdsl.simulate.distances import MissCurve

WRITES = {"back": "", "through": ", write-through"}
MISSES = {"allocate": "write-allocate", "claim": "load_store", "around": "write-around"}


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
class Run:
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
    ) -> Run:
        """The run with its results, through `levels` or, without levels, through one cache with lines of all sizes."""
        if levels is None:
            return self._through_elements(kernel, values, cache_bytes, convention, progress, skip)
        from roofdsl.simulate.hierarchy import simulate

        found = simulate(kernel, values, levels, progress=progress, skip=skip)
        through_registers = found.register_bytes
        if through_registers is None:
            through_registers = _register_bytes(kernel, values)
        rows = tuple(
            LevelRow(
                t.name,
                level,
                level.size_bytes,
                t.unit_bytes,
                t.hits,
                t.misses,
                t.loads,
                t.stores + t.passed,
                found.load_bytes(k),
                found.store_bytes(k),
            )
            for k, (level, t) in enumerate(zip(levels, found.levels, strict=True))
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
    ) -> Run:
        from roofdsl.simulate.lru_traffic import simulate_lru

        found = simulate_lru(kernel, values, cache_bytes, progress=progress, skip=skip)
        begun = sum(a.residencies for a in found.arrays)
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

    def with_curve(self, curve: MissCurve, convention: Traffic) -> Run:
        return replace(self, accesses=curve.accesses, curve=curve, convention=convention)

    def beside_best(self, best: MissCurve, *, bypass: bool) -> Run:
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


def to_json(run: Run) -> dict[str, Any]:
    """The document `roofdsl.simulate/1` without a curve."""
    return {
        "schema": "roofdsl.simulate/1",
        "kernel": run.kernel,
        "machine": run.machine,
        "parameters": dict(run.parameters),
        **({"data": list(run.data)} if run.data else {}),
        "accesses": run.accesses,
        "register_bytes": run.register_bytes,
        "scalar_load_bytes": run.scalar_load_bytes,
        "scalar_store_bytes": run.scalar_store_bytes,
        **({"streamed_bytes": run.streamed_bytes} if run.streamed_bytes else {}),
        "levels": [
            {
                "name": r.name,
                "loads": r.loads,
                "stores": r.stores,
                "hits": r.hits,
                "misses": r.misses,
                "bytes": r.load_bytes + r.store_bytes,
                "load_bytes": r.load_bytes,
                "store_bytes": r.store_bytes,
                "unit_bytes": r.unit_bytes,
                "size_bytes": r.size_bytes,
                "line_bytes": r.level.line_bytes if r.level else None,
                "ways": r.level.ways if r.level else None,
                "policy": r.level.policy if r.level else "lru",
                "bypass": r.level.bypass if r.level else False,
                "write": r.level.write if r.level else "back",
                "write_miss": r.level.write_miss if r.level else None,
                "inclusion": r.level.inclusion if r.level else "free",
            }
            for r in run.levels
        ],
    }


def curve_json(run: Run) -> dict[str, Any]:
    """Q(Z) at every size at which it changes; each value holds up to the next size."""
    assert run.curve is not None
    found = {"curve": _steps_json(run.curve, run.convention)}
    if run.best is not None:
        found["best_curve"] = {"policy": "opt", "bypass": run.bypass, **_steps_json(run.best, run.convention)}
    return found


def _steps_json(curve: MissCurve, convention: Traffic) -> dict[str, Any]:
    sizes, values = curve.steps(convention)
    return {
        "traffic": convention,
        "line_bytes": curve.line_bytes,
        "sets": curve.sets,
        "cache_bytes": [int(s) for s in sizes],
        "bytes": [int(v) for v in values],
        "misses": [curve.misses(int(s)) for s in sizes],
    }


def blocks(run: Run) -> list[Block]:
    """The levels as a table."""
    where = f" on {run.machine}" if run.machine else ""
    registers = "" if run.register_bytes is None else f", {show_bytes(run.register_bytes)} through the registers"
    found: list[Block] = [
        Title(f"{run.kernel}{where}", at(run.parameters.items())),
        line(f"{group(run.accesses)} accesses{registers}", 0),
        *(line(f"values of {text}", 0) for text in run.data),
    ]
    if not run.levels:
        return found
    rows = []
    for r in run.levels:
        asked = r.hits + r.misses
        share = f"{show_number(100 * r.misses / asked)} %" if asked else ""
        both = r.load_bytes + r.store_bytes
        each = show_number(both / run.accesses) if run.accesses else ""
        rows.append((r.name, group(r.hits), group(r.misses), share, group(r.loads), group(r.stores), group(both), each))
    head = ("level", "hits", "misses", "missed", "loads", "stores", "bytes below", "B/access")
    found += [
        figures(rows, head, range(1, 8), ruled=True),
        items((f"{r.name}: {_described(r)}" for r in run.levels), 1),
    ]
    scalars = run.scalar_load_bytes + run.scalar_store_bytes
    if scalars:
        found.append(line(f"bytes with {scalars} B of scalars, which live in registers, not in lines"))
    if run.streamed_bytes:
        last = run.levels[-1].name
        found.append(line(f"{show_bytes(run.streamed_bytes)} of stores bypass the caches, and count below {last} only"))
    return found


def _described(r: LevelRow) -> str:
    if r.level is None:
        return f"{show_size(r.size_bytes)}, each element its own line, fully associative, LRU"
    level = r.level
    ways = "fully associative" if level.ways is None else f"{level.ways} ways, {group(level.sets)} sets"
    sectors = f" in sectors of {show_size(level.sector)}" if level.sector != level.line_bytes else ""
    inclusion = "" if level.inclusion == "free" else f", {level.inclusion}"
    policy = _best_words(level.bypass) if level.policy == "opt" else level.policy.upper()
    rule = f"{policy}, {MISSES[level.write_miss]}{WRITES[level.write]}{inclusion}"
    return f"{show_size(level.size_bytes)}, lines of {show_size(level.line_bytes)}{sectors}, {ways}, {rule}"


def _best_words(bypass: bool) -> str:
    return f"best replacement (Belady's MIN{' with bypass' if bypass else ''})"


def of_curve(run: Run) -> list[Block]:
    """Q(Z) at the powers of two or, for caches with several sets, at powers of two of the ways."""
    curve = run.curve
    assert curve is not None
    last = int(curve.steps(run.convention)[0][-1])
    unit = curve.smallest_bytes if curve.sets > 1 else 1
    sizes = [curve.smallest_bytes]
    while sizes[-1] < last:
        sizes.append(unit << (sizes[-1] // unit).bit_length())
    lines = "an element each" if curve.line_bytes is None else show_size(curve.line_bytes)
    if curve.sets > 1:
        caches = f"Q of LRU caches of {group(curve.sets)} sets"
        step = f"{group(last // unit)} ways"
    else:
        caches = "Q(Z) of a fully associative LRU cache"
        step = f"Z = {group(last)} B"
    rows = []
    for size in sizes:
        misses, moved = curve.misses(size), curve.bytes(size, run.convention)
        ways = [group(size // unit)] if curve.sets > 1 else []
        best = _beside(run, size)
        rows.append((*ways, show_size(size), group(misses), _share(misses, run), group(moved), *best))
    beside = () if run.best is None else ("best misses", "best missed", "best Q")
    head = (*(["ways"] if curve.sets > 1 else []), "Z", "misses", "missed", "Q in bytes", *beside)
    return [
        Gap(),
        line(f"{caches} ({run.convention}, lines: {lines})", 0),
        line(f"the last step, to the compulsory traffic, is at {step}", 0),
        *([] if run.best is None else [line(f"best: {_best_words(run.bypass)}, in caches of the same size", 0)]),
        figures(rows, head, range(1, len(head)), ruled=True),
    ]


def _beside(run: Run, size: int) -> tuple[str, ...]:
    """The cells of the best replacement in a cache of that size, if it was requested."""
    if run.best is None:
        return ()
    misses = run.best.misses(size)
    return group(misses), _share(misses, run), group(run.best.bytes(size, run.convention))


def _share(misses: int, run: Run) -> str:
    return f"{show_number(100 * misses / run.accesses)} %" if run.accesses else ""
