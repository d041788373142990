"""A bound and what a command reports about it: its intensity, a tile that comes near it, and numbers at caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from roofdsl.bounds.bound import Bound
from roofdsl.bounds.counting import at_large_sizes, top_terms
from roofdsl.bounds.nested import Block, lines, most_loads, nested, nested_kernel
from roofdsl.bounds.tiles import NoTiling, Tiling, extents_at, sides_at, tiled, tiling, written
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.traffic_at import OutOfReach, traffic_at
from roofdsl.formulas.sympy_forms import polynomial
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply

FEW_EXECUTIONS = 2_000_000
"""Up to this many executions, the loads of nested tiles are simulated; beyond, an upper bound is given."""


@dataclass(frozen=True)
class Level:
    """One cache at given sizes; loads in elements. schedule: those of the kernel itself; tiled: those with `tile`, the
    sizes in a `tile` line. Both are None if they are not known, and `tile` is None if there is none.
    """

    name: str
    cache_bytes: int
    elements: int
    bound: int
    argument: str
    schedule: int | None
    tile: tuple[int, int] | None
    tiled: int | None

    @property
    def ratio(self) -> float | None:
        """Loads of the schedule divided by the bound."""
        return None if self.schedule is None or not self.bound else self.schedule / self.bound


@dataclass(frozen=True)
class NestedTiles:
    """Nested tiles for all caches: the block of each with its loads. why_not: empty if there are some.

    lines: the directives. exact: whether the loads are simulated; otherwise they are upper bounds.
    """

    blocks: tuple[Block, ...]
    lines: tuple[str, ...]
    loads: tuple[int, ...]
    exact: bool
    why_not: str = ""


@dataclass(frozen=True)
class BoundReport:
    """A bound with everything that a command reports about it.

    element_bytes: None if arrays differ; why_no_tile: empty if there is a plan; inside: None if nested tiles were not
    requested.
    """

    bound: Bound
    element_bytes: int | None
    intensity: Any
    plan: Tiling | None
    why_no_tile: str
    params: Mapping[str, int]
    levels: tuple[Level, ...]
    inside: NestedTiles | None


def report(
    bound: Bound, params: Mapping[str, int], caches: tuple[tuple[str, int], ...], with_nested: bool = False
) -> BoundReport:
    """Evaluate the bound. `caches`: (name, bytes) to evaluate at if `params` has every parameter. Raises what
    `traffic_at` raises.
    """
    _, width = _element(bound.kernel)
    plan, why = None, ""
    try:
        plan = tiling(bound)
    except NoTiling as error:
        why = str(error)
    complete = all(p.name in params for p in bound.kernel.parameters)
    levels = tuple(_level(bound, plan, params, cache) for cache in caches if complete)
    inside = None
    if with_nested:
        inside = (
            _inside(bound, plan, params, [size for _, size in caches], why) if complete else _none("no sizes are given")
        )
    return BoundReport(bound, width, _intensity(bound), plan, why, params, levels, inside)


def _none(why: str) -> NestedTiles:
    return NestedTiles((), (), (), False, why)


def _inside(bound: Bound, plan: Tiling | None, params: Mapping[str, int], caches: list[int], why: str) -> NestedTiles:
    _, width = _element(bound.kernel)
    if plan is None or width is None:
        return _none(why or "its arrays have elements of different sizes")
    try:
        blocks = nested(plan, params, [c // width for c in caches])
        kernel = nested_kernel(bound, plan, blocks)
    except (NoTiling, CommandError) as error:
        return _none(str(error))
    rows, columns, steps = extents_at(plan, params)
    if rows is None or columns is None or steps is None:
        return _none("the extents of its loops are not parameters")
    text = tuple(map(written, lines(bound, plan, blocks)))
    if rows * columns * steps > FEW_EXECUTIONS:
        return NestedTiles(blocks, text, tuple(most_loads(blocks, (rows, columns, steps))), False)
    from roofdsl.simulate.distances import miss_curve

    curve = miss_curve(apply(kernel), params, None)
    moved = [curve.loads(c, "load_store") for c in caches]
    return NestedTiles(blocks, text, tuple((m or 0) // width for m in moved), True)


def _level(bound: Bound, plan: Tiling | None, params: Mapping[str, int], named: tuple[str, int]) -> Level:
    (name, cache), (least, width) = named, _element(bound.kernel)
    elements = cache // least  # in elements of the smallest size: the cache cannot hold more of them
    value, argument = bound.at(params, elements) if elements else (0, "compulsory")
    schedule = tile = loads = None
    if width is not None:
        schedule = _loads(bound.kernel, params, cache, width)
        if plan is not None:
            best = sides_at(plan, params, elements)
            try:
                loads = _loads(tiled(bound, plan, *best), params, cache, width)
                tile = plan.sizes(*best)
            except CommandError:
                loads = None
    return Level(name, cache, elements, value, argument, schedule, tile, loads)


def _element(kernel: Kernel) -> tuple[int, int | None]:
    """(bytes of the smallest element, bytes of every element if they are equal, else None)."""
    widths = {a.type.bytes for a in kernel.arrays if not a.is_scalar} or {1}
    return min(widths), min(widths) if len(widths) == 1 else None


def _loads(kernel: Kernel, params: Mapping[str, int], cache: int, width: int) -> int | None:
    try:
        moved = traffic_at(kernel, params, cache, None, "load_store").loads_bytes
    except OutOfReach:
        return None
    return None if moved is None else moved // width


def _intensity(bound: Bound) -> Any:
    """An upper bound on operations per loaded element, by leading terms of the fastest-growing argument; None if W or
    that argument is not known or 0.
    """
    if bound.flow is None:
        return None
    try:
        work = ClosedForms(bound.plain, {}).work  # the same executions, without tiles
    except NoClosedForm:
        return None
    main = top_terms(polynomial(at_large_sizes(bound.flow, work)))
    lead = _main(bound)
    return sympy.simplify(main / lead) if main and lead else None


def _main(bound: Bound) -> Any:
    """The leading term that dominates for large sizes and moderate S."""
    at = {bound.size: 1 << 12}

    def weight(value: Any) -> float:
        return float(value.subs(at).subs({s: 1 << 20 for s in value.free_symbols if s != bound.size}))

    return max(bound.leading(), key=weight)
