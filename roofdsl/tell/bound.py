"""I/O lower bounds: the arguments, a tile near the bound, and the numbers at caches; and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy

from roofdsl.bounds.bound import Bound
from roofdsl.bounds.bound_report import BoundReport, Level, NestedTiles
from roofdsl.bounds.counting import top_terms
from roofdsl.machine.quantities import group, show_number, show_size
from roofdsl.tell.blocks import Block, Gap, line
from roofdsl.tell.bound_argument import argument, short

Json = dict[str, Any]
SCHEMA = "roofdsl.bound/1"
VALID = "every legal order, all sizes the kernel allows, and all S >= 1"
NAMES = {
    "compulsory": "every element that is read before it is written is loaded once",
    "partition": "while T elements arrive in fast memory, only a limited number of executions can use what is there",
    "stencil": "a time step needs more points than it computes",
    "bottleneck": "values that are live at one moment and do not fit are loaded after it",
    "sweep": "everything that one sweep over the data leaves waits for the next",
}


def blocks(r: BoundReport, steps: bool) -> list[Block]:
    """The leading term of every argument, the result, and with `steps` the arguments themselves."""
    return [line(text, 0) if text else Gap() for text in _lines(r, steps)]


def _lines(r: BoundReport, steps: bool) -> Iterator[str]:
    b = r.bound
    names = ", ".join(p.name for p in b.kernel.parameters)
    yield f"{b.kernel.name}({names}): lower bound on the loads into a fast memory of {b.size} elements, for any order"
    yield ""
    parts = [("compulsory", b.compulsory)] + [(n, getattr(b, n)) for n, _ in b.arguments[1:]]
    for name, part in parts:
        whole = name == "compulsory" and not part.loads.has(sympy.Piecewise)
        yield f"  {name:<11} {short(part.loads if whole else part.leading)}"
        yield f"  {'':<11}   {NAMES[name]}"
    yield ""
    yield f"The largest is the bound. It is valid for {VALID.replace('S >=', f'{b.size} >=')}."
    if len(parts) > 1:
        yield "Leading terms are shown; --steps and --json have the complete formulas, which hold at every size."
    yield from _where(b)
    if len(b.arguments) == 1:
        yield _only_compulsory(b)
    if r.intensity is not None:
        per_byte = "" if r.element_bytes is None else f", {short(r.intensity / r.element_bytes)} for each byte"
        most = "1 operation" if r.intensity == 1 else f"{short(r.intensity)} operations"
        yield f"Intensity, by leading terms: at most {most} for each element loaded{per_byte}."
        if b.bottleneck is not None or b.sweep is not None or r.intensity.has(b.size):
            yield f"  ({b.size} far below the sizes; otherwise, the complete formula has the value.)"
    if steps:
        yield ""
        yield from argument(b)
    yield ""
    yield from _tile(r)
    if r.inside is not None:
        yield from _tiles_in_tiles(r.inside)
    for number, level in enumerate(r.levels):
        yield ""
        yield from _at(r, level)
        if r.inside is not None and r.inside.blocks:
            block, loads = r.inside.blocks[number], r.inside.loads[number]
            held = "" if block.steps is None else f" for {block.steps} steps"
            most = "" if r.inside.exact else "at most "
            wide = _label_width(level)
            yield f"  {'nested':<{wide}} {most}{group(loads)} loads{_times(loads, level.bound)}"
            yield f"  {'':<{wide}} (a block of {block.rows} x {block.columns}{held})"


def _where(b: Bound) -> Iterator[str]:
    """The S at which another argument begins to give more, or ceases to, by leading terms."""
    for name in ("partition", "stencil"):
        part = getattr(b, name)
        if part is None or not b.compulsory.leading:
            continue
        # The leading term is c/S**power, and falls to the compulsory loads at S = (c/loads)**(1/power).
        at_one = part.leading.subs(b.size, 1)
        power = sympy.simplify(sympy.log(at_one / part.leading) / sympy.log(b.size))
        edge = sympy.simplify((at_one / b.compulsory.leading) ** (1 / sympy.nsimplify(power)))
        if edge.free_symbols:
            yield f"The {name} argument gives more than the compulsory loads where {b.size} < {short(edge)}."
    if b.bottleneck is not None and b.sweep is not None:
        more = b.bottleneck.leading - b.sweep.leading
        often, seldom = (sum(p.moments for p in found.parts) for found in (b.bottleneck, b.sweep))
        # forms in cases, or one argument that is the larger everywhere: nothing short can be said
        if _large(more) > 0 and not (often + seldom).has(sympy.Piecewise) and _large(often - seldom) > 0:
            edge = short(more / top_terms(often - seldom))
            yield f"The sweep argument gives more than the bottleneck argument where {b.size} > {edge}."


def _large(value: Any) -> float:
    """The value of a polynomial in the parameters if all of them are large."""
    return float(value.subs(dict.fromkeys(value.free_symbols, 1 << 20)))


def _only_compulsory(b: Bound) -> str:
    if b.notes:
        return f"No more can be said: {b.notes[0]}."
    return "No argument proves more than the compulsory loads."


def _tile(r: BoundReport) -> Iterator[str]:
    b, plan = r.bound, r.plan
    if plan is None:
        yield f"No tile is suggested: {r.why_no_tile}."
        return
    sides = dict.fromkeys("b" if stride == 1 else f"{stride}*b" for stride in plan.strides[:2])
    by = f"`tile {plan.rows}, {plan.columns} by {', '.join(sides)}`"
    yield f"Tile: `order {', '.join(plan.order)}`, {by}, b = {plan.shape}:"
    loads = short(plan.loads.subs(plan.shape, sympy.Symbol("b")))
    yield f"  loads {loads}, which is the bound up to lower-order terms."
    if r.intensity is None or r.element_bytes is None:
        return
    size = sympy.Symbol("Z", positive=True)
    best = r.intensity.subs(b.size, size / r.element_bytes) / r.element_bytes
    square = best / (3 * sympy.sqrt(3) / 2)
    yield f"  In Z bytes, the intensity comes close to {short(best)}. Square blocks of all three arrays, loaded again"
    yield f"  for each step (Z = {3 * r.element_bytes}*b**2), reach {short(square)}: the tile is 2.6 times better."


def _tiles_in_tiles(inside: NestedTiles) -> Iterator[str]:
    if inside.why_not:
        yield f"No tiles in tiles: {inside.why_not}."
        return
    yield "Tiles in tiles, one for each cache, of sizes that keep the largest ratio of loads to the bound small:"
    yield from (f"  {written}" for written in inside.lines)


def _at(r: BoundReport, level: Level) -> Iterator[str]:
    at = ", ".join(f"{n} = {v}" for n, v in r.params.items())
    yield f"At {at}, {level.name} of {show_size(level.cache_bytes)}, {r.bound.size} = {group(level.elements)} elements:"
    wide = _label_width(level)
    yield f"  {'bound':<{wide}} {group(level.bound)} loads ({level.argument})"
    if level.schedule is not None:
        written = f"{group(level.schedule)} loads{_times(level.schedule, level.bound)}"
    elif r.element_bytes is None:
        written = "not compared: its arrays have elements of different sizes"
    else:
        written = "too many accesses to count exactly"
    yield f"  {'as written':<{wide}} {written}"
    if level.tile is not None and level.tiled is not None:
        yield f"  {_tile_name(level.tile):<{wide}} {group(level.tiled)} loads{_times(level.tiled, level.bound)}"


def _tile_name(tile: tuple[int, int]) -> str:
    return f"tile {tile[0]} x {tile[1]}"


def _label_width(level: Level) -> int:
    """The width of the names of a cache's rows, with one space more than the longest."""
    return max(11, 0 if level.tile is None else len(_tile_name(level.tile)) + 1)


def _times(loads: int, least: int) -> str:
    if loads == least:
        return ", the fewest possible"
    return f", {show_number(Fraction(loads, least))} times the bound" if least else ""


def document(r: BoundReport) -> Json:
    """`roofdsl.bound/1`; loads and S in elements. The numbers are of the first cache given."""
    b = r.bound
    first = r.levels[0] if r.levels else None
    tile: Json = {}
    if r.plan is not None:
        shape = first.tile if first is not None and first.tile is not None else (None, None)
        tile = {
            v: {"expr": str(stride * r.plan.shape), "value": n}
            for v, n, stride in zip((r.plan.rows, r.plan.columns), shape, r.plan.strides[:2], strict=True)
        }
    return {
        "schema": SCHEMA,
        "kernel": b.kernel.name,
        "parameters": dict(r.params),
        "size_symbol": str(b.size),
        "element_bytes": r.element_bytes,
        "lower_bound_loads": {"expr": str(b.loads), "value": None if first is None else first.bound},
        "leading": {name: str(lead) for (name, _), lead in zip(b.arguments, b.leading(), strict=True)},
        "arguments": {name: {"expr": str(value)} for name, value in b.arguments},
        "valid_when": VALID,
        "intensity": None
        if r.intensity is None
        else {"expr": str(r.intensity), "value": None, "assumes": f"{b.size} far below the sizes"},
        "tile": tile,
        "order": None if r.plan is None else list(r.plan.order),
        "tiled_loads": {
            "expr": None if r.plan is None else str(r.plan.loads),
            "value": None if first is None else first.tiled,
            **({"note": r.why_no_tile} if r.plan is None else {}),
        },
        "schedule_loads": {
            "expr": None,
            "value": None if first is None else first.schedule,
            "note": "exact under LRU at the cache and the sizes given, in lines of one element",
        },
        "ratio": {"expr": None, "value": None if first is None else first.ratio},
        "levels": [
            {
                "name": v.name, "cache_bytes": v.cache_bytes, "elements": v.elements, "lower_bound_loads": v.bound,
                "argument": v.argument, "schedule_loads": v.schedule, "tile": None if v.tile is None else list(v.tile),
                "tiled_loads": v.tiled, "ratio": v.ratio,
            }
            for v in r.levels
        ],
        "nested": None if r.inside is None else _nested_json(r.inside),
        "notes": list(b.notes),
    }  # fmt: skip


def _nested_json(inside: NestedTiles) -> Json:
    blocks = [
        {"rows": b.rows, "columns": b.columns, "steps": b.steps, "loads": n, "exact": inside.exact}
        for b, n in zip(inside.blocks, inside.loads, strict=True)
    ]
    return {"lines": list(inside.lines), "levels": blocks, **({"note": inside.why_not} if inside.why_not else {})}
