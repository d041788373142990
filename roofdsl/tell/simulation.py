"""Simulated caches: accesses, hits, misses and bytes of every level, and Q(Z) of a miss curve; and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofdsl.counts.simulated_run import LevelRow, SimulatedRun
from roofdsl.loops.model import Traffic
from roofdsl.machine.quantities import group, show_bytes, show_number, show_size
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line
from roofdsl.tell.titles import at
from roofdsl.tell.words import CONVENTIONS

if TYPE_CHECKING:
    from roofdsl.simulate.distances import MissCurve
    from roofdsl.simulate.lru_traffic import SimulatedTraffic

WRITES = {"back": "", "through": ", write-through"}
MISSES = {"allocate": "write-allocate", "claim": "load_store", "around": "write-around"}


def to_json(run: SimulatedRun) -> dict[str, Any]:
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


def curve_json(run: SimulatedRun) -> dict[str, Any]:
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


def blocks(run: SimulatedRun) -> list[Block]:
    """The levels as a table."""
    where = f" on {run.machine}" if run.machine else ""
    registers = (
        ""
        if run.register_bytes is None
        else f", {show_bytes(run.register_bytes)} between the registers and the first cache"
    )
    found: list[Block] = [
        Title(f"{run.kernel}{where}", at(run.parameters.items())),
        line(f"{group(run.accesses)} accesses{registers}", 0),
        *(line(f"values of {text}", 0) for text in run.data),
    ]
    if not run.levels:
        return found
    rows = []
    for r in run.levels:
        share = _share(r.misses, r.hits + r.misses)
        both = r.load_bytes + r.store_bytes
        each = show_number(both / run.accesses) if run.accesses else ""
        rows.append((r.name, group(r.hits), group(r.misses), share, group(r.loads), group(r.stores), group(both), each))
    head = ("level", "hits", "misses", "miss rate", "loads", "stores", "bytes below", "B/access")
    found += [
        figures(rows, head, range(1, 8), ruled=True),
        items((f"{r.name}: {_described(r)}" for r in run.levels), 1),
    ]
    scalars = run.scalar_load_bytes + run.scalar_store_bytes
    if scalars:
        found.append(line(f"the bytes include {scalars} B of scalars, which are in registers"))
    if run.streamed_bytes:
        last = run.levels[-1].name
        found.append(line(f"{show_bytes(run.streamed_bytes)} of stores bypass the caches, and count below {last} only"))
    return found


def of_traffic(found: SimulatedTraffic) -> list[Block]:
    """One LRU cache as `api.simulate` gives it: misses of every array, and Q in every convention."""
    share = f" ({_share(found.misses, found.accesses)})" if found.accesses else ""
    moved = []
    for convention in CONVENTIONS:
        both = found.loads(convention), found.stores(convention)
        parts = ("" if each is None else show_bytes(each) for each in both)
        moved.append((convention, show_bytes(found.bytes(convention)), *parts))
    rows = [
        (a.array.name, show_size(a.line_bytes), *map(group, (a.residencies, a.begun_with_write, a.stored)))
        for a in found.arrays
    ]
    heads = ("array", "line", "misses", "misses of stores", "lines written back")
    return [
        Title("Simulated traffic"),
        line(f"{group(found.accesses)} accesses, {group(found.misses)} misses{share}", 0),
        figures(moved, ("traffic", "Q", "loads", "stores"), range(1, 4), ruled=True),
        Gap(),
        figures(rows, heads, range(1, 5), ruled=True),
    ]


def _described(r: LevelRow) -> str:
    if r.level is None:
        return f"{show_size(r.size_bytes)}, each element its own line, fully associative, LRU"
    level = r.level
    ways = "fully associative" if level.ways is None else f"{_ways(level.ways)}, {_sets(level.sets)}"
    sectors = f" in sectors of {show_size(level.sector)}" if level.sector != level.line_bytes else ""
    inclusion = "" if level.inclusion == "free" else f", {level.inclusion}"
    policy = _best_words(level.bypass) if level.policy == "opt" else level.policy.upper()
    rule = f"{policy}, {MISSES[level.write_miss]}{WRITES[level.write]}{inclusion}"
    return f"{show_size(level.size_bytes)}, lines of {show_size(level.line_bytes)}{sectors}, {ways}, {rule}"


def _ways(count: int) -> str:
    return f"{group(count)} way{'' if count == 1 else 's'}"


def _sets(count: int) -> str:
    return f"{group(count)} set{'' if count == 1 else 's'}"


def _best_words(bypass: bool) -> str:
    return f"best replacement (Belady's MIN{' with bypass' if bypass else ''})"


def of_curve(run: SimulatedRun) -> list[Block]:
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
        caches = f"Q of LRU caches of {_sets(curve.sets)}"
        step = _ways(last // unit)
    else:
        caches = "Q(Z) of a fully associative LRU cache"
        step = f"Z = {group(last)} B"
    rows = []
    for size in sizes:
        misses, moved = curve.misses(size), curve.bytes(size, run.convention)
        ways = [group(size // unit)] if curve.sets > 1 else []
        best = _beside(run, size)
        rows.append((*ways, show_size(size), group(misses), _share(misses, run.accesses), group(moved), *best))
    beside = () if run.best is None else ("best misses", "best miss rate", "best Q")
    head = (*(["ways"] if curve.sets > 1 else []), "Z", "misses", "miss rate", "Q in bytes", *beside)
    return [
        Gap(),
        line(f"{caches} ({run.convention}, lines: {lines})", 0),
        line(f"the last step, to the compulsory traffic, is at {step}", 0),
        *([] if run.best is None else [line(f"best: {_best_words(run.bypass)}, in caches of the same size", 0)]),
        figures(rows, head, range(1, len(head)), ruled=True),
    ]


def _beside(run: SimulatedRun, size: int) -> tuple[str, ...]:
    """The cells of the best replacement in a cache of that size, if it was requested."""
    if run.best is None:
        return ()
    misses = run.best.misses(size)
    return group(misses), _share(misses, run.accesses), group(run.best.bytes(size, run.convention))


def _share(misses: int, accesses: int) -> str:
    return f"{show_number(100 * misses / accesses)} %" if accesses else ""
