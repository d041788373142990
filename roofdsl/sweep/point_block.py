"""The points of one kernel or program on one machine: their columns, and everything that closed forms give for them.

A block is the points that are in memory at the same time. Searches that are worthwhile only for many points are decided
over all blocks of a strip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.counts.growth import tile_names
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size
from roofdsl.predict.options import Options
from roofdsl.sweep.exact_forms import KernelForms
from roofdsl.sweep.grid import Grid
from roofdsl.sweep.program import ProgramPlan, SweptProgram
from roofdsl.sweep.single_points import Task
from roofdsl.sweep.time_terms import Plan

CHUNK = 32768
"""Points evaluated at a time: few enough that the arrays in use stay in the processor's second-level cache, and enough
that calling numpy costs less than computing.
"""

MOST_GROUPS = 256
"""The maximum number of tile-size combinations for which closed forms are sought one by one."""

WORTH_IT, WORTH_OWN = 32, 4
"""The least number of points for which a form of Q(Z) is sought, and for which forms of one set of tile sizes are."""

LARGE = 100_000_000
"""The least number of operations of a point that alone makes the search for that form worthwhile."""


class Variant(Record):
    """One kernel or program of a sweep. A sweep over `const` parameters has a variant for each combination of their
    values, `constants`.
    """

    kernel: Kernel | SweptProgram
    constants: Mapping[str, int]


class Strip:
    """One kernel or program on one machine at all points of a grid; its blocks follow one another.

    bounds: the names of the bounds that occur in the whole sweep, with their numbers. settled: all blocks were
    evaluated once, and another evaluation gives the same.
    """

    def __init__(
        self,
        variant: Variant,
        machine: Machine,
        cache_bytes: int | None,
        grid: Grid,
        *,
        options: Options,
        forms: dict[Any, KernelForms],
        bounds: dict[str, int],
    ) -> None:
        self.variant, self.machine, self.cache_bytes, self.options = variant, machine, cache_bytes, options
        self.grid, self.forms, self.bounds = grid, forms, bounds
        self._plans: dict[Any, Plan | ProgramPlan] = {}
        self.plan = self.plan_of({})
        self.settled = False
        self.beyond, self.worth_cache = 0, False
        self.tiles: set[tuple[int, ...]] = set()
        self.too_large = 0

    def plan_of(self, given: Mapping[str, int]) -> Plan | ProgramPlan:
        """The prediction with these parameters as numbers."""
        key = tuple(sorted(given.items()))
        if key not in self._plans:
            self._plans[key] = self._plan(key)
        return self._plans[key]

    def _plan(self, given: tuple[tuple[str, int], ...]) -> Plan | ProgramPlan:
        if isinstance(self.variant.kernel, SweptProgram):
            return ProgramPlan(self.variant.kernel, self.machine, self.options, self.forms)
        if given not in self.forms:
            self.forms[given] = KernelForms(self.variant.kernel, dict(given))
        return Plan(self.forms[given], self.machine, self.options)

    def block(self, window: tuple[int, int]) -> Block | None:
        """The points of a window, evaluated; None if none satisfies the kernel's assumptions."""
        columns, count = self.grid.columns(window, self.variant.kernel.assumptions)
        if not count:
            return None
        found = Block(self, columns, count)
        found.evaluate()
        return found

    def warnings(self) -> list[str]:
        """Warnings about the points."""
        found = list(self.plan.left_out)
        if self.too_large:
            memory = self.machine.main_memory
            found.append(
                f"at {count_words(self.too_large)}, the data exceed {self.machine.name}'s {memory.name} "
                f"({show_size(memory.size_bytes)}); the times assume that they fit"
            )
        return found


class Block:
    """Points of a strip."""

    def __init__(self, strip: Strip, columns: Mapping[str, Any], count: int) -> None:
        import numpy as np

        self.strip, self.columns, self.count = strip, columns, count
        self.plan = strip.plan
        self.known = np.zeros(self.count, dtype=bool)
        self.found: dict[str, Any] = {}

    # ---- closed forms ----

    def evaluate(self) -> None:
        """Fill in the points at which closed forms are known to be exact."""
        import numpy as np

        everything = range(self.count)
        if self.plan.may_be_known(try_cache=False):
            beyond = self._worth_cache() and self.plan.may_be_known(try_cache=True)
            self._fill(self.plan, everything, try_cache=beyond)
        elif isinstance(self.plan, Plan):
            self._evaluate_tiles()
            left = np.flatnonzero(~self.known)
            if self._many(len(left)) and self.plan.may_be_known(try_cache=True):
                self._fill(self.plan, left, try_cache=True)
        if not self.strip.settled:
            self._weigh()

    def _worth_cache(self) -> bool:
        """Whether enough points, or large enough ones, need a form of Q(Z) for the search to be worth its time."""
        if self.strip.settled or self.strip.worth_cache:
            return self.strip.worth_cache
        for start in range(0, self.count if self.plan.may_need_cache_forms else 0, CHUNK):
            own = {n: c[start : start + CHUNK] for n, c in self.columns.items()}
            count = min(CHUNK, self.count - start)
            beyond = ~self.plan.held(own, count)
            if self._many(int(beyond.sum())):
                return True
            if isinstance(self.plan, Plan) and bool((beyond & (self.plan.operations(own, count) >= LARGE)).any()):
                self.strip.worth_cache = True
                return True
        return False

    def _many(self, beyond: int) -> bool:
        """Whether, with that many more points beyond the caches, the strip has enough of them to search for a form."""
        if not self.strip.settled:
            self.strip.beyond += beyond
            self.strip.worth_cache |= self.strip.beyond >= WORTH_IT
        return self.strip.worth_cache

    def _evaluate_tiles(self) -> None:
        """Evaluate with forms for each combination of tile sizes, if there are few."""
        import numpy as np

        groups = self._by_tiles()
        if not groups:
            return
        order = np.concatenate(groups)  # points of one group next to each other, until all is done
        columns, tiles = self.columns, self._tile_names()
        self.columns = {n: c[order] for n, c in columns.items()}
        start = 0
        for places in groups:
            given = {n: int(c[places[0]]) for n, c in columns.items() if n in tiles}
            plan = self.strip.plan_of(given)
            if len(places) >= WORTH_OWN and plan.may_be_known(try_cache=False):
                self._fill(plan, range(start, start + len(places)), try_cache=False)
            start += len(places)
        self.columns = columns
        back = np.empty_like(order)
        back[order] = np.arange(self.count)
        self.known = self.known[back]
        spare: dict[Any, Any] = {}  # memory that was written to before is faster
        for name, column in self.found.items():
            self.found[name] = np.take(column, back, out=spare.get(column.dtype), mode="clip")
            spare[column.dtype] = column

    def _tile_names(self) -> frozenset[str]:
        kernel = self.strip.variant.kernel
        return frozenset() if isinstance(kernel, SweptProgram) else tile_names(kernel) & self.columns.keys()

    def _by_tiles(self) -> list[Any]:
        """For each combination of tile sizes, the ascending places of its points; empty if there are too many
        combinations.
        """
        import numpy as np

        tiles = sorted(self._tile_names())
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
        by_group = np.argsort(which.astype(np.int16), kind="stable")  # int16 is sorted by radix, without comparisons
        found = np.split(by_group, np.cumsum(np.bincount(which))[:-1])
        if not self.strip.settled:
            self.strip.tiles.update(tuple(int(self.columns[n][places[0]]) for n in tiles) for places in found)
        return found if len(self.strip.tiles) <= MOST_GROUPS else []

    def _fill(self, plan: Plan | ProgramPlan, places: Any, *, try_cache: bool) -> None:
        """Fill in those points of `places` (ascending) that `plan` knows."""
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
            if found.launches is not None:
                numbers["launches"] = found.launches
            for name, values in numbers.items():
                self._put(name, target, values[keep], whole=is_whole(name))
            self._put("bound", target, self._codes(plan, found.bound[keep]), whole=True)

    def _weigh(self) -> None:
        """Count the points that touch more than fits into memory, as far as that has a form."""
        for start in range(0, self.count if self.plan.has_footprint else 0, CHUNK):
            own = {n: c[start : start + CHUNK] for n, c in self.columns.items()}
            touched = self.plan.touched(own, min(CHUNK, self.count - start))
            self.strip.too_large += int((touched > self.strip.machine.main_memory.size_bytes).sum())

    def _codes(self, plan: Plan | ProgramPlan, codes: Any) -> Any:
        """The numbers of the words in `bounds`; new words are added."""
        import numpy as np

        bounds = self.strip.bounds
        most = int(codes.max())
        each = np.flatnonzero(np.bincount(codes)) if most < CHUNK else np.unique(codes)
        own = [bounds.setdefault(plan.bound(int(c)), len(bounds)) for c in each]
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

        strip = self.strip
        names = [p.name for p in strip.variant.kernel.parameters]
        return [
            Task(
                offset + int(k),
                strip.variant.kernel,
                tuple((n, int(self.columns[n][k])) for n in names),
                strip.machine,
                strip.options,
            )
            for k in np.flatnonzero(~self.known)
        ]


def _places_of(column: Any) -> tuple[Any, Any]:
    """(the values of a column of integers, ascending; for each cell the place of its value among them)."""
    import numpy as np

    most = int(column.max())
    if most > 1 << 20:
        values, places = np.unique(column, return_inverse=True)
        return values, places.reshape(-1)
    values = np.flatnonzero(np.bincount(column))  # no need to sort
    table = np.zeros(most + 1, dtype=np.int64)
    table[values] = np.arange(len(values))
    return values, table[column]


def count_words(count: int) -> str:
    """`1 point`, `3 points`."""
    return "1 point" if count == 1 else f"{count:,} points"


def put(column: Any, count: int, target: Any, values: Any, *, whole: bool, small: bool = False) -> Any:
    """`column` (created without values if it is None) with `values` at `target`; Python integers if int64 overflows."""
    import numpy as np

    if column is None:
        integer: Any = np.int16 if small else np.int64
        kind = integer if whole else np.float64
        if isinstance(target, slice) and target.start == 0:  # points in order are written at once
            column = np.empty(count, dtype=kind)
            column[target.stop :] = -1 if whole else np.nan
        else:
            column = np.full(count, -1 if whole else np.nan, dtype=kind)
    if whole and column.dtype != object and np.size(values) and abs(np.asarray(values).max()) >= 2**63:
        column = column.astype(object)
    column[target] = values
    return column


def is_whole(name: str) -> bool:
    """Whether a column that is computed holds integers."""
    return name in ("bound", "launches") or name.endswith(("_bytes", "_flops"))
