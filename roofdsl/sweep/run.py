"""A sweep: the product of ranges, machines and cache sizes, with each point predicted as by `predict`.

Points at which closed forms are known to be exact are evaluated together; the others are counted one by one. Beyond
MOST_KEPT points, memory use grows only with the points that are counted: the blocks of a long table are created when
they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from roofdsl import budget
from roofdsl.checks.deep import require_legal
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import Machine
from roofdsl.predict.options import Options
from roofdsl.sweep.exact_forms import KernelForms
from roofdsl.sweep.grid import Grid
from roofdsl.sweep.point_block import Block, Strip, Variant, count_words, is_whole, put
from roofdsl.sweep.program import SweptProgram, require_legal_launches
from roofdsl.sweep.ranges import points_of, require_few
from roofdsl.sweep.single_points import Outcome, Runner, Task, begin, here
from roofdsl.sweep.table import COMPUTED, LongTable, Table, joined

HOW = ("closed form", "counted")

MOST_KEPT = 1 << 19
"""The maximum number of points of a table that is kept: 80 MB. For more points, a block is evaluated again whenever it
is read.
"""


class Sweep(Record):
    """The result of a sweep. failures: (columns of the point, reason); left_out: points that violate an assumption.

    warnings: messages. counted: points that were counted one by one, including those that failed.
    """

    table: Table
    failures: tuple[tuple[Mapping[str, Any], str], ...] = ()
    left_out: int = 0
    counted: int = 0
    warnings: tuple[str, ...] = ()


def with_cache(machine: Machine, size_bytes: int) -> Machine:
    """The machine with another size of its last cache. Raises CommandError if it has none."""
    if not machine.caches:
        raise CommandError(
            f"machine {machine.name} has no cache to give a size to", "omit --cache, or choose another machine"
        )
    return replace(machine, caches=(*machine.caches[:-1], replace(machine.caches[-1], size_bytes=size_bytes)))


def sweep(
    variants: Sequence[Variant],
    ranges: Mapping[str, Sequence[int]],
    machines: Sequence[Machine],
    options: Options,
    *,
    caches: Sequence[int] = (),
    runner: Runner = here,
    most_counted: int = 100_000,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Sweep:
    """The predictions of `variants` at all points of `ranges`, on all `machines` with all sizes of the last cache.

    ranges: values of every parameter of the kernels. `runner` counts points that have no closed form, at most
    `most_counted`; `tell` is called with the number of those done. Raises CommandError as `predict` does if no point
    could be predicted, CommandError for too many points, and InputError for an illegal kernel.
    """
    total = points_of(ranges) * len(variants) * len(machines) * max(1, len(caches))
    require_few(total)
    _require_other_names([*ranges, *(n for v in variants for n in v.constants)], machines)
    for variant in variants:
        if isinstance(variant.kernel, SweptProgram):
            require_legal_launches(variant.kernel)
        else:
            require_legal(variant.kernel)
    grid = Grid(ranges)
    bounds: dict[str, int] = {}
    strips = []
    for variant in variants:
        forms: dict[Any, KernelForms] = {}
        for machine, cache in product(machines, caches or (None,)):
            own = machine if cache is None else with_cache(machine, cache)
            strips.append(Strip(variant, own, cache, grid, options=options, forms=forms, bounds=bounds))
    keeps = total <= MOST_KEPT
    with budget.part(2):  # the rest is for points without a closed form
        places, tasks = _evaluated(strips, (keeps, most_counted, total), tell)
    begin(budget.spent_s())
    outcomes: dict[int, Outcome] = {}
    tell(0, len(tasks))
    for outcome in runner(tasks) if tasks else ():
        outcomes[outcome.index] = outcome
        tell(len(outcomes), len(tasks))
    table = _table(strips, places, outcomes, ranges, (keeps, bool(caches)))
    failures = tuple((_where(task, caches), o.failure) for task, o in _failed(tasks, outcomes))
    warnings = dict.fromkeys(w for k, strip in enumerate(strips) for w in _warnings(strip, k, places, outcomes))
    return Sweep(table, failures, total - len(table), len(tasks), tuple(warnings))


def _require_other_names(parameters: Sequence[str], machines: Sequence[Machine]) -> None:
    """Raise CommandError for a parameter with the name of another column, which would take its place in the table."""
    levels = [*(c.name for m in machines for c in m.caches), *(v.name for m in machines for v in m.memories)]
    others = {"cache_bytes", *COMPUTED, *(f"{name}_bytes" for name in levels)}
    taken = next((n for n in parameters if n in others), None)
    if taken is not None:
        raise CommandError(
            f"parameter `{taken}` has the name of another column of the table", "rename it in the kernel"
        )


class Place(Record):
    """The position of a block: the number of its strip, its window of the grid, the number of its first point.

    count: of its points; counted: those of them that are counted one by one; names: its columns; wide: those with
    integers beyond int64. block: the block itself, if it is kept.
    """

    strip: int
    window: tuple[int, int]
    offset: int
    count: int
    counted: Any
    names: frozenset[str]
    wide: frozenset[str]
    block: Block | None


def _evaluated(
    strips: Sequence[Strip], asked: tuple[bool, int, int], tell: Callable[[int, int], None]
) -> tuple[list[Place], list[Task]]:
    """(all blocks that have points, the points that remain to be counted). Raises CommandError for too many."""
    import numpy as np

    keeps, most_counted, total = asked
    found: list[Place] = []
    tasks: list[Task] = []
    offset = done = open_points = 0
    for k, strip in enumerate(strips):
        begun = len(found)
        for window in strip.grid.windows():
            block = strip.block(window)
            done += window[1] - window[0]
            if block is not None:
                counted = np.flatnonzero(~block.known)
                open_points += len(counted)
                if open_points <= most_counted:
                    tasks += block.tasks(offset)
                else:
                    tasks, counted = [], counted[:0]  # refused below, once all are known
                names = frozenset(block.found)
                wide = frozenset(n for n, c in block.found.items() if c.dtype == object)
                kept = block if keeps else None
                found.append(Place(k, window, offset, block.count, counted, names, wide, kept))
                offset += block.count
            if not keeps:
                tell(done, total)
        strip.settled = True
        if len(found) == begun:
            kernel = strip.variant.kernel
            assumed = ", ".join(map(str, kernel.assumptions))
            raise CommandError(f"no point of the sweep meets the assumptions of kernel {kernel.name}: {assumed}")
    if open_points > most_counted:
        raise CommandError(
            f"{open_points:,} of {total:,} points have no closed form and would be counted one by one "
            f"(at most {most_counted:,})",
            "use fewer points, `--levels memory`, sizes that fill whole cache lines, or raise --most-counted",
        )
    return found, tasks


def _failed(tasks: Sequence[Task], outcomes: Mapping[int, Outcome]) -> Iterator[tuple[Task, Outcome]]:
    return ((t, outcomes[t.index]) for t in tasks if outcomes[t.index].row is None)


def _where(task: Task, caches: Sequence[int]) -> dict[str, Any]:
    cache = {"cache_bytes": task.machine.caches[-1].size_bytes} if caches else {}
    return {"machine": task.machine.name, **cache, **dict(task.kernel.constants), **dict(task.values)}


def _warnings(strip: Strip, k: int, places: Sequence[Place], outcomes: Mapping[int, Outcome]) -> list[str]:
    """Warnings about the k-th strip."""
    own = [o for p in places if p.strip == k for i in p.counted if (o := outcomes.get(p.offset + int(i))) is not None]
    rows = [o.row for o in own if o.row is not None]
    found = strip.warnings()
    for name in strip.plan.level_names:
        if lacking := sum(f"{name}_bytes" not in row for row in rows):
            found.append(
                f"{name} is left out at {count_words(lacking)}, where its exact traffic takes too long to compute"
            )
    return found


def _table(
    strips: Sequence[Strip],
    places: Sequence[Place],
    outcomes: Mapping[int, Outcome],
    ranges: Mapping[str, Sequence[int]],
    asked: tuple[bool, bool],
) -> Table:
    """All blocks as one table; for many points, one that evaluates each block again when it is read."""
    keeps, cached = asked
    rows = [o.row for o in outcomes.values() if o.row is not None]
    there = frozenset[str]().union(*(p.names for p in places), *(row.keys() for row in rows))
    wide = frozenset[str]().union(*(p.wide for p in places))
    wide |= {n for row in rows for n, v in row.items() if is_whole(n) and n != "bound" and v >= 2**63}
    names = _computed(dict.fromkeys(n for strip in strips for n in strip.plan.level_names), there)
    constants = dict.fromkeys(n for strip in strips for n in strip.variant.constants)
    machines = tuple(dict.fromkeys(strip.machine.name for strip in strips))
    bounds = strips[0].bounds
    for row in rows:
        bounds.setdefault(row["bound"], len(bounds))
    words = {"machine": machines, "bound": tuple(bounds), "how": HOW}

    def part(k: int) -> Table:
        import numpy as np

        place = places[k]
        strip = strips[place.strip]
        block = place.block or strip.block(place.window)
        assert block is not None
        _add_counted(block, place, outcomes)
        columns = {"machine": np.full(block.count, machines.index(strip.machine.name), dtype=np.int16)}
        if cached:
            columns["cache_bytes"] = np.full(block.count, strip.cache_bytes, dtype=np.int64)
        for name in constants:
            columns[name] = np.full(block.count, strip.variant.constants[name], dtype=np.int64)
        columns |= {name: block.columns[name] for name in ranges}
        for name in names:
            small, whole = name == "bound", is_whole(name)
            column = block.found.get(name)
            if column is None:
                column = put(None, block.count, slice(0), [], whole=whole, small=small)
            columns[name] = column.astype(object) if name in wide else column
        how = np.zeros(block.count, dtype=np.int8)
        how[place.counted] = 1
        return Table({**columns, "how": how}, words)

    if keeps:
        return joined([part(k) for k in range(len(places))])
    all_names = ("machine", *(("cache_bytes",) if cached else ()), *constants, *ranges, *names, "how")
    return LongTable(all_names, words, [p.count for p in places], part)


def _computed(levels: Iterable[str], there: Container[str]) -> list[str]:
    """The computed columns in order. The launches of programs and one of the two rates are only in some tables."""
    in_some = {"launches", "flops_per_s", "bytes_per_s"}
    names = [n for n in COMPUTED if n != "how" and (n not in in_some or n in there)]
    after_work = names.index("work_flops") + 1
    return [*names[:after_work], *(f"{n}_bytes" for n in levels), *names[after_work:]]


def _add_counted(block: Block, place: Place, outcomes: Mapping[int, Outcome]) -> None:
    """Write the rows of the points that were counted into the block's columns; failed points have no values."""
    import numpy as np

    found = [(int(k), outcomes.get(place.offset + int(k))) for k in place.counted]
    rows = [(k, o.row) for k, o in found if o is not None and o.row is not None]
    for name, column in block.found.items():  # a form that was found later may have known them
        column[place.counted] = -1 if is_whole(name) else np.nan
    bounds = block.strip.bounds
    for name in dict.fromkeys(n for _, row in rows for n in row):
        here_ = [(k, row[name]) for k, row in rows if name in row]
        values: list[Any] = [bounds[v] if name == "bound" else v for _, v in here_]
        whole = is_whole(name)
        array = np.array(values, dtype=object if whole else np.float64)
        block.found[name] = put(
            block.found.get(name), block.count, [k for k, _ in here_], array, whole=whole, small=name == "bound"
        )
