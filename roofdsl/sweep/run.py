"""A sweep: the product of ranges, machines and cache sizes, each point predicted as `predict` does.

Points at which closed forms are known to be exact are evaluated all at once; the others are counted one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from roofdsl.analysis.deep import require_legal
from roofdsl.analysis.growth import tile_names
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size
from roofdsl.predict.kernel import Options
from roofdsl.sweep.forms import KernelForms
from roofdsl.sweep.numeric import holds
from roofdsl.sweep.plan import Plan
from roofdsl.sweep.points import Outcome, Runner, Task, here
from roofdsl.sweep.ranges import points_of
from roofdsl.sweep.table import Table

CHUNK = 32768
"""Points evaluated at a time: few enough that the arrays in use stay in the processor's second cache, and so many that
calling numpy costs less than computing."""

MOST_POINTS = 50_000_000
MOST_GROUPS = 256
"""Combinations of tile sizes for which closed forms are looked for one by one, at most."""

WORTH_IT, WORTH_OWN = 32, 4
"""Points from which a closed form of Q(Z) is looked for, and from which forms of one tile size are."""

HOW = ("closed form", "counted")


class Variant(Record):
    """One kernel of a sweep; several where numbers are swept that shape it, which are its `constants`."""

    kernel: Kernel
    constants: Mapping[str, int]


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
        require_legal(variant.kernel)
    blocks, left_out = [], 0
    for variant in variants:
        columns, dropped = _points(variant.kernel, ranges)
        left_out += dropped * len(machines) * max(1, len(caches))
        forms: dict[tuple[tuple[str, int], ...], KernelForms] = {}
        for machine, cache in product(machines, caches or (None,)):
            own = machine if cache is None else with_cache(machine, cache)
            blocks.append(_Block(variant, own, cache, columns, options=options, forms=forms))
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


def _points(kernel: Kernel, ranges: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, Any], int]:
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


class _Block:
    """The points of one kernel on one machine."""

    def __init__(
        self,
        variant: Variant,
        machine: Machine,
        cache_bytes: int | None,
        columns: Mapping[str, Any],
        *,
        options: Options,
        forms: dict[tuple[tuple[str, int], ...], KernelForms],
    ) -> None:
        import numpy as np

        self.variant, self.machine, self.cache_bytes, self.options = variant, machine, cache_bytes, options
        self.columns, self.forms = columns, forms
        self.count = len(next(iter(columns.values()), [0]))
        self.plan = self._plan({})
        self.warnings = list(self.plan.left_out)
        self.known = np.zeros(self.count, dtype=bool)
        self.found: dict[str, Any] = {}
        self.bounds: dict[str, int] = {}
        self.too_large = 0

    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.plan.levels)

    def _plan(self, given: Mapping[str, int]) -> Plan:
        key = tuple(sorted(given.items()))
        if key not in self.forms:
            self.forms[key] = KernelForms(self.variant.kernel, given)
        return Plan(self.forms[key], self.machine, self.options)

    # ---- closed forms ----

    def evaluate(self) -> None:
        """Fills in all points at which closed forms are exact."""
        import numpy as np

        everything = range(self.count)
        if self.plan.may_be_known(try_cache=False):
            beyond = self._beyond() >= WORTH_IT and self.plan.may_be_known(try_cache=True)
            self._fill(self.plan, everything, try_cache=beyond)
        else:
            self._evaluate_tiles()
            left = np.flatnonzero(~self.known)
            if len(left) >= WORTH_IT and self.plan.may_be_known(try_cache=True):
                self._fill(self.plan, left, try_cache=True)
        self._weigh()
        if self.too_large:
            memory = self.machine.main_memory
            self.warnings.append(
                f"at {_count_words(self.too_large)} more is touched than {self.machine.name}'s {memory.name} holds "
                f"({show_size(memory.size_bytes)}); the times there are as if it did"
            )

    def _beyond(self) -> int:
        """How many points are known only if Q(Z) has a form, which takes time to find; counted up to WORTH_IT."""
        found = 0
        for start in range(0, self.count if self.plan.has_caches else 0, CHUNK):
            own = {n: c[start : start + CHUNK] for n, c in self.columns.items()}
            found += int((~self.plan.held(own, min(CHUNK, self.count - start))).sum())
            if found >= WORTH_IT:
                break
        return found

    def _evaluate_tiles(self) -> None:
        """With forms of each tile size, where they are few."""
        import numpy as np

        groups = self._by_tiles()
        if not groups:
            return
        order = np.concatenate(groups)  # points of one group side by side, until all is done
        columns, tiles = self.columns, tile_names(self.variant.kernel)
        self.columns = {n: c[order] for n, c in columns.items()}
        start = 0
        for places in groups:
            given = {n: int(c[places[0]]) for n, c in columns.items() if n in tiles}
            plan = self._plan(given)
            if len(places) >= WORTH_OWN and plan.may_be_known(try_cache=False):
                self._fill(plan, range(start, start + len(places)), try_cache=False)
            start += len(places)
        self.columns = columns
        back = np.empty_like(order)
        back[order] = np.arange(self.count)
        self.known = self.known[back]
        spare: dict[Any, Any] = {}  # memory that was written to before is quicker
        for name, column in self.found.items():
            self.found[name] = np.take(column, back, out=spare.get(column.dtype), mode="clip")
            spare[column.dtype] = column

    def _by_tiles(self) -> list[Any]:
        """Ascending places of the points that have the same tile sizes, for each of them; none where they are many."""
        import numpy as np

        tiles = sorted(tile_names(self.variant.kernel) & self.columns.keys())
        if not tiles:
            return []
        which: Any = 0
        for name in tiles:
            values, place = _places_of(self.columns[name])
            if len(values) > MOST_GROUPS:
                return []
            which = which * len(values) + place
        if len(tiles) > 1:
            groups, which = _places_of(which)
            if len(groups) > MOST_GROUPS:
                return []
        by_group = np.argsort(which.astype(np.int16), kind="stable")  # by its bytes, which needs no comparisons
        return np.split(by_group, np.cumsum(np.bincount(which))[:-1])

    def _fill(self, plan: Plan, places: Any, *, try_cache: bool) -> None:
        """The points at `places` (ascending) that `plan` knows."""
        import numpy as np

        for start in range(0, len(places), CHUNK):
            part = places[start : start + CHUNK]
            whole = len(part) == part[-1] - part[0] + 1
            cut = slice(part[0], part[-1] + 1) if whole else part
            own = {n: c[cut] for n, c in self.columns.items()}
            found = plan.values(own, len(part), try_cache=try_cache)
            if not found.known.any():
                continue
            keep: Any = slice(None)
            target: Any = cut
            if not found.known.all():
                keep = np.flatnonzero(found.known)
                target = np.asarray(part)[keep]
            self.known[target] = True
            rate = "bytes_per_s" if plan.moves_only else "flops_per_s"
            numbers = {
                "work_flops": found.work,
                **{f"{n}_bytes": v for n, v in found.levels.items()},
                "compute_s": found.compute_s,
                "time_s": found.time_s,
                "time_no_overlap_s": found.no_overlap_s,
                rate: found.rate_per_s,
                "intensity": found.intensity,
            }
            for name, values in numbers.items():
                self._put(name, target, values[keep], whole=not name.endswith("_s") and name != "intensity")
            self._put("bound", target, self._codes(plan, found.bound[keep]), whole=True)

    def _weigh(self) -> None:
        """How many points touch more than the memory holds, as far as that has a form."""
        for start in range(0, self.count if self.plan.footprint is not None else 0, CHUNK):
            own = {n: c[start : start + CHUNK] for n, c in self.columns.items()}
            touched = self.plan.touched(own, min(CHUNK, self.count - start))
            self.too_large += int((touched > self.machine.main_memory.size_bytes).sum())

    def _codes(self, plan: Plan, codes: Any) -> Any:
        """Numbers of the words in `bounds`, new ones added."""
        import numpy as np

        most = int(codes.max())
        each = np.flatnonzero(np.bincount(codes)) if most < CHUNK else np.unique(codes)
        own = [self.bounds.setdefault(plan.bound(int(c)), len(self.bounds)) for c in each]
        if most >= CHUNK:
            return np.array(own, dtype=np.int16)[np.searchsorted(each, codes)]
        numbers = np.zeros(most + 1, dtype=np.int16)
        numbers[each] = own
        return numbers[codes]

    def _put(self, name: str, target: Any, values: Any, *, whole: bool) -> None:
        small = name == "bound"
        self.found[name] = put(self.found.get(name), self.count, target, values, whole=whole, small=small)

    # ---- points one by one ----

    def tasks(self, offset: int) -> list[Task]:
        """The points that are left. Their numbers begin at `offset`."""
        import numpy as np

        names = [p.name for p in self.variant.kernel.parameters]
        return [
            Task(
                offset + int(k),
                self.variant.kernel,
                tuple((n, int(self.columns[n][k])) for n in names),
                self.machine,
                self.options,
            )
            for k in np.flatnonzero(~self.known)
        ]


def _places_of(column: Any) -> tuple[Any, Any]:
    """(the values of a column of integers, ascending; the place of each cell's value in them)."""
    import numpy as np

    most = int(column.max())
    if most > 1 << 20:
        values, places = np.unique(column, return_inverse=True)
        return values, places.reshape(-1)
    values = np.flatnonzero(np.bincount(column))  # no sorting
    table = np.zeros(most + 1, dtype=np.int64)
    table[values] = np.arange(len(values))
    return values, table[column]


def _count_words(count: int) -> str:
    """`1 point`, `3 points`."""
    return "1 point" if count == 1 else f"{count:,} points"


def _offsets(blocks: Sequence[_Block]) -> Iterator[tuple[_Block, int]]:
    offset = 0
    for block in blocks:
        yield block, offset
        offset += block.count


def put(column: Any, count: int, target: Any, values: Any, *, whole: bool, small: bool = False) -> Any:
    """`column` (made where it is None, without values) with `values` at `target`; Python integers where int64 ends."""
    import numpy as np

    if column is None:
        kind: Any = np.float64 if not whole else np.int16 if small else np.int64
        if isinstance(target, slice) and target.start == 0:  # what comes in order is written once
            column = np.empty(count, dtype=kind)
            column[target.stop :] = -1 if whole else np.nan
        else:
            column = np.full(count, -1 if whole else np.nan, dtype=kind)
    if whole and column.dtype != object and np.size(values) and abs(np.asarray(values).max()) >= 2**63:
        column = column.astype(object)
    column[target] = values
    return column


def _assembled(
    blocks: Sequence[_Block],
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
    measured = ["work_flops", *(f"{n}_bytes" for n in levels), "compute_s", "time_s", "time_no_overlap_s"]
    measured += [n for n in ("flops_per_s", "bytes_per_s") if any(n in b.found for b in blocks)] + ["intensity"]
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
        whole = name.endswith(("_bytes", "_flops"))
        columns[name] = [b.found.get(name, put(None, b.count, slice(0), [], whole=whole)) for b in blocks]
    columns["bound"] = [_translated(b, bounds) for b in blocks]
    columns["how"] = [(~b.known).astype(np.int8) for b in blocks]
    return Table(
        {n: parts[0] if len(parts) == 1 else np.concatenate(parts) for n, parts in columns.items()},
        {"machine": machines, "bound": bounds, "how": HOW},
    )


def _translated(block: _Block, bounds: Sequence[str]) -> Any:
    import numpy as np

    own = block.found.get("bound", np.full(block.count, -1))
    table = np.array([bounds.index(word) for word in block.bounds] + [-1], dtype=np.int16)
    return table[own]


def _add_counted(block: _Block, offset: int, outcomes: Mapping[int, Outcome]) -> None:
    import numpy as np

    places = [k for k in np.flatnonzero(~block.known) if (o := outcomes.get(offset + int(k))) and o.row is not None]
    rows = [outcomes[offset + int(k)].row or {} for k in places]
    if not rows:
        return
    for name in block.level_names():
        if lacking := sum(f"{name}_bytes" not in row for row in rows):
            block.warnings.append(
                f"{name} is left out at {_count_words(lacking)} where its exact traffic takes too long"
            )
    for name in dict.fromkeys(n for row in rows for n in row):
        here_ = [(k, row[name]) for k, row in zip(places, rows, strict=True) if name in row]
        values: list[Any] = [v for _, v in here_]
        if name == "bound":
            values = [block.bounds.setdefault(v, len(block.bounds)) for v in values]
        whole = name == "bound" or name.endswith(("_bytes", "_flops"))
        array = np.array(values, dtype=object if whole else np.float64)
        block.found[name] = put(block.found.get(name), block.count, [k for k, _ in here_], array, whole=whole)
