"""A sweep: the product of ranges, machines and cache sizes, each point predicted as `predict` does.

Points at which closed forms are known to be exact are evaluated all at once; the others are counted one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from roofdsl.analysis.columns import holds
from roofdsl.analysis.deep import require_legal
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import Options
from roofdsl.sweep.block import Block, Variant, count_words, is_whole, put
from roofdsl.sweep.forms import KernelForms
from roofdsl.sweep.points import Outcome, Runner, Task, here
from roofdsl.sweep.programs import SweptProgram, require_legal_launches
from roofdsl.sweep.ranges import points_of
from roofdsl.sweep.table import Table

MOST_POINTS = 50_000_000

HOW = ("closed form", "counted")


class Sweep(Record):
    """What came out. failures: (row of the point's columns, why); left_out: points that break an assumption.

    warnings: in words. counted: points that were counted one by one.
    """

    table: Table
    failures: tuple[tuple[Mapping[str, Any], str], ...] = ()
    left_out: int = 0
    counted: int = 0
    warnings: tuple[str, ...] = ()


def with_cache(machine: Machine, size_bytes: int) -> Machine:
    """The machine with another size of its last cache. Raises CommandError where it has none."""
    if not machine.caches:
        raise CommandError(
            f"machine {machine.name} has no cache to give a size to", "leave --cache away, or take another"
        )
    return replace(machine, caches=(*machine.caches[:-1], replace(machine.caches[-1], size_bytes=size_bytes)))


def sweep(
    variants: Sequence[Variant],
    ranges: Mapping[str, tuple[int, ...]],
    machines: Sequence[Machine],
    options: Options,
    *,
    caches: Sequence[int] = (),
    runner: Runner = here,
    most_counted: int = 100_000,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Sweep:
    """The predictions of `variants` at all points of `ranges`, on all `machines` with all sizes of the last cache.

    ranges: values of every parameter that the kernels have. `runner` counts points that have no closed form, at most
    `most_counted`; `tell` hears how many of them are done. Raises CommandError as `predict` does where no point could
    be predicted, for too many points, and InputError for an illegal kernel.
    """
    total = points_of(ranges) * len(variants) * len(machines) * max(1, len(caches))
    if total > MOST_POINTS:
        raise CommandError(
            f"the sweep has {total:,} points, and at most {MOST_POINTS:,} are taken", "take larger steps"
        )
    for variant in variants:
        if isinstance(variant.kernel, SweptProgram):
            require_legal_launches(variant.kernel)
        else:
            require_legal(variant.kernel)
    blocks, left_out = [], 0
    for variant in variants:
        columns, dropped = _points(variant.kernel, ranges)
        left_out += dropped * len(machines) * max(1, len(caches))
        forms: dict[Any, KernelForms] = {}
        for machine, cache in product(machines, caches or (None,)):
            own = machine if cache is None else with_cache(machine, cache)
            blocks.append(Block(variant, own, cache, columns, options=options, forms=forms))
    for block in blocks:
        block.evaluate()
    open_points = sum(int((~block.known).sum()) for block in blocks)
    if open_points > most_counted:
        raise CommandError(
            f"{open_points:,} of {total:,} points have no closed form and would be counted one by one "
            f"(at most {most_counted:,})",
            "take fewer points, `--levels memory`, sizes that fill whole cache lines, or raise --most-counted",
        )
    tasks = [t for block, offset in _offsets(blocks) for t in block.tasks(offset)]
    outcomes: dict[int, Outcome] = {}
    tell(0, len(tasks))
    for outcome in runner(tasks) if tasks else ():
        outcomes[outcome.index] = outcome
        tell(len(outcomes), len(tasks))
    names = tuple(dict.fromkeys(n for block in blocks for n in block.level_names()))
    table = _assembled(blocks, names, outcomes, ranges, cached=bool(caches))
    failures = tuple((_where(task, caches), o.failure) for task, o in _failed(tasks, outcomes))
    warnings = dict.fromkeys(w for block in blocks for w in block.warnings)
    return Sweep(table, failures, left_out, len(tasks), tuple(warnings))


def _failed(tasks: Sequence[Task], outcomes: Mapping[int, Outcome]) -> Iterator[tuple[Task, Outcome]]:
    return ((t, outcomes[t.index]) for t in tasks if outcomes[t.index].row is None)


def _where(task: Task, caches: Sequence[int]) -> dict[str, Any]:
    cache = {"cache_bytes": task.machine.caches[-1].size_bytes} if caches else {}
    return {"machine": task.machine.name, **cache, **dict(task.kernel.constants), **dict(task.values)}


def _points(kernel: Kernel | SweptProgram, ranges: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, Any], int]:
    """(the columns of all points that keep the kernel's assumptions, how many do not); the last name runs fastest."""
    import numpy as np

    total = points_of(ranges)
    columns: dict[str, Any] = {}
    inner, outer = total, 1
    for name, values in ranges.items():
        inner //= len(values)
        columns[name] = np.tile(np.repeat(np.array(values, dtype=np.int64), inner), outer)
        outer *= len(values)
    keep = np.ones(total, dtype=bool)
    for condition in kernel.assumptions:
        keep &= np.asarray(holds(condition, columns), dtype=bool)
    if not keep.any():
        assumed = ", ".join(map(str, kernel.assumptions))
        raise CommandError(f"no point of the sweep keeps what kernel {kernel.name} assumes: {assumed}")
    return ({n: c[keep] for n, c in columns.items()} if not keep.all() else columns), int(total - keep.sum())


def _offsets(blocks: Sequence[Block]) -> Iterator[tuple[Block, int]]:
    offset = 0
    for block in blocks:
        yield block, offset
        offset += block.count


def _assembled(
    blocks: Sequence[Block],
    levels: Sequence[str],
    outcomes: Mapping[int, Outcome],
    ranges: Mapping[str, tuple[int, ...]],
    *,
    cached: bool,
) -> Table:
    """All blocks as one table."""
    import numpy as np

    for block, offset in _offsets(blocks):
        _add_counted(block, offset, outcomes)
    machines = tuple(dict.fromkeys(b.machine.name for b in blocks))
    bounds = tuple(dict.fromkeys(word for b in blocks for word in b.bounds))
    there = {n for b in blocks for n in b.found}
    measured = [n for n in ("launches",) if n in there] + ["work_flops", *(f"{n}_bytes" for n in levels)]
    measured += ["compute_s", "time_s", "time_no_overlap_s"]
    measured += [n for n in ("flops_per_s", "bytes_per_s") if n in there] + ["intensity"]
    columns: dict[str, Any] = {
        "machine": [np.full(b.count, machines.index(b.machine.name), dtype=np.int16) for b in blocks]
    }
    if cached:
        columns["cache_bytes"] = [np.full(b.count, b.cache_bytes, dtype=np.int64) for b in blocks]
    for name in dict.fromkeys(n for b in blocks for n in b.variant.constants):
        columns[name] = [np.full(b.count, b.variant.constants[name], dtype=np.int64) for b in blocks]
    for name in ranges:
        columns[name] = [b.columns[name] for b in blocks]
    for name in measured:
        whole = is_whole(name)
        columns[name] = [b.found.get(name, put(None, b.count, slice(0), [], whole=whole)) for b in blocks]
    columns["bound"] = [_translated(b, bounds) for b in blocks]
    columns["how"] = [(~b.known).astype(np.int8) for b in blocks]
    return Table(
        {n: parts[0] if len(parts) == 1 else np.concatenate(parts) for n, parts in columns.items()},
        {"machine": machines, "bound": bounds, "how": HOW},
    )


def _translated(block: Block, bounds: Sequence[str]) -> Any:
    import numpy as np

    own = block.found.get("bound", np.full(block.count, -1))
    table = np.array([bounds.index(word) for word in block.bounds] + [-1], dtype=np.int16)
    return table[own]


def _add_counted(block: Block, offset: int, outcomes: Mapping[int, Outcome]) -> None:
    import numpy as np

    places = [k for k in np.flatnonzero(~block.known) if (o := outcomes.get(offset + int(k))) and o.row is not None]
    rows = [outcomes[offset + int(k)].row or {} for k in places]
    if not rows:
        return
    for name in block.level_names():
        if lacking := sum(f"{name}_bytes" not in row for row in rows):
            block.warnings.append(
                f"{name} is left out at {count_words(lacking)} where its exact traffic takes too long"
            )
    for name in dict.fromkeys(n for row in rows for n in row):
        here_ = [(k, row[name]) for k, row in zip(places, rows, strict=True) if name in row]
        values: list[Any] = [v for _, v in here_]
        if name == "bound":
            values = [block.bounds.setdefault(v, len(block.bounds)) for v in values]
        whole = is_whole(name)
        array = np.array(values, dtype=object if whole else np.float64)
        block.found[name] = put(block.found.get(name), block.count, [k for k, _ in here_], array, whole=whole)
