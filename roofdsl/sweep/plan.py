"""A prediction as sums of known forms: what `predict` computes at one point, computed at many.

Every number is the same as that of `predict`: counts are exact integers, and times and rates are rounded once from
exact ones. A point at which a form is not known to be exact is left to `predict` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, TypeVar

from roofdsl.counts.operations import work_at
from roofdsl.counts.setting import check_cache
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.model import BandwidthCeiling, Cache, ComputeCeiling, Machine, Memory
from roofdsl.predict.boundary import Boundary, boundary_behind, memory_boundary
from roofdsl.predict.compute import ComputePart, busy_pipes, check_unit, compute_time, is_under
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.kernel import DEFAULTS, Options, no_ceiling
from roofdsl.predict.levels import is_first_level
from roofdsl.sweep.forms import KernelForms, Known, LevelForms, Part
from roofdsl.sweep.numeric import Points, TooLarge, combined, full
from roofdsl.sweep.rounding import Term, ordered, quotient, ratio, total_time, words

SAME = Fraction(9, 10)
"""Terms that are at least so large, relatively, are named with the largest (rule 15)."""


T = TypeVar("T")


class Values(Record):
    """Predictions at some points, as arrays. `known`: at which of them they are exact.

    levels: name -> bytes. rate_per_s: operations, or for a kernel without any, bytes (rule 16). Integers are float64
    below 2**53, or Python's. `bound` is read by `Plan.bound`. launches: of a program.
    """

    known: Any
    work: Any
    levels: Mapping[str, Any]
    compute_s: Any
    time_s: Any
    no_overlap_s: Any
    rate_per_s: Any
    intensity: Any
    bound: Any
    launches: Any = None


class Counts(Record):
    """What times are found from: bytes of each level, and the terms of the time. `known`: an array, True or False."""

    known: Any
    work: Any
    levels: Mapping[str, Any]
    terms: list[Term]


class Branch(Record):
    """A time in seconds: executions of the statements times integer weights, over one denominator."""

    weights: tuple[int, ...]
    below: int


class Bytes:
    """The bytes of one level, or one direction of them: of accesses (`known` and `constant`), or behind a cache.

    twice: of two launches in a row, where those of the second one are meant.
    """

    def __init__(
        self,
        through: LevelForms | None,
        known: Known | None = None,
        constant: int = 0,
        *,
        twice: LevelForms | None = None,
    ) -> None:
        self.through, self.known, self.constant, self.twice = through, known, constant, twice

    def may_be_known(self, *, try_cache: bool) -> bool:
        """Whether there can be points at which they are."""
        if self.through is None:
            return self.known is not None
        both = (self.through, self.twice) if self.twice is not None else (self.through,)
        return all(forms.may_be_known(try_cache=try_cache) for forms in both)

    def held(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where they are known without Q(Z): an array, True or False. Raises TooLarge."""
        if self.through is not None:
            found = self.through.held(points, columns)
            return found if self.twice is None else found & self.twice.held(points, columns)
        assert self.known is not None
        return self.known.assumed.mask(points, columns)

    def values(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> tuple[Any, Any]:
        """(bytes, where they are known: an array, True or False). Raises TooLarge."""
        if self.through is not None:
            found = self.through.values(points, columns, try_cache=try_cache)
            if self.twice is None:
                return found
            two, known = self.twice.values(points, columns, try_cache=try_cache)
            return combined([(two, 1), (found[0], -1)], points), found[1] & known
        assert self.known is not None
        amount = self.known.values(points)
        return amount + self.constant if self.constant else amount, self.known.assumed.mask(points, columns)


class Level(Record):
    """A level of the hierarchy. `directions`: loads and stores apart, where both cross at the same time."""

    name: str
    bandwidth_bytes_per_s: Fraction
    total: Bytes
    directions: tuple[Bytes, ...] = ()


class Plan:
    """The prediction of the kernel of `forms` on `machine`. Raises CommandError as `predict` does for all sizes.

    left_out: warnings of levels that are not shown.
    """

    def __init__(self, forms: KernelForms, machine: Machine, options: Options) -> None:
        kernel = forms.kernel
        self.forms, self.machine, self.options, self.kernel = forms, machine, options, kernel
        unit = options.unit or kernel.unit
        check_unit(unit, unit is None or is_contraction(kernel), kernel.name)
        self.left_out: list[str] = []
        plain = replace(
            options, traffic=None, unit=None, ceilings=(), levels="all", warm=False, accesses="written", conflicts=False
        )
        self._counted_apart = plain != DEFAULTS  # what else may be asked for has no part here
        self._caps = _asked(machine, options.ceilings)
        self.levels = self._levels()
        self.branches = self._branches(unit)
        self.work = forms.weighted([s.total for s in forms.operations()])
        self.moves_only = not any(s.total for s in forms.operations())
        self.times = [forms.weighted(b.weights) for b in self.branches]
        self.footprint = forms.compulsory(None, "once")
        self.launch_s = machine.launch_s or Fraction(0)
        self.names = ("compute", *(level.name for level in self.levels), *(("launch",) if self.launch_s else ()))

    def may_be_known(self, *, try_cache: bool) -> bool:
        """Whether there can be points at which all is known."""
        if self.work is None or self.footprint is None or None in self.times or self._counted_apart:
            return False
        return all(part.may_be_known(try_cache=try_cache) for part in self._parts())

    @property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels)

    @property
    def weighs(self) -> bool:
        """Whether what is touched has a form."""
        return self.footprint is not None

    @property
    def has_caches(self) -> bool:
        """Whether what is known may depend on Q(Z)."""
        return any(b.through is not None and b.through.cache_bytes is not None for b in self._parts())

    def held(self, columns: Mapping[str, Any], count: int) -> Any:
        """At which of `count` points all bytes are known without Q(Z): an array."""
        import numpy as np

        try:
            points = Points(columns, count)
            found = [part.held(points, columns) for part in self._parts()]
        except TooLarge:
            points = Points(columns, count, exact=True)
            found = [part.held(points, columns) for part in self._parts()]
        return np.broadcast_to(np.logical_and.reduce([np.broadcast_to(f, count) for f in found]), count)

    def _parts(self) -> list[Bytes]:
        return [b for level in self.levels for b in (level.total, *level.directions)]

    def bound(self, code: int) -> str:
        """What bounds, in words."""
        return words(code, self.names)

    # ---- what it is made of ----

    def _levels(self) -> tuple[Level, ...]:
        """As `predict.levels.nearer_levels` and `predict.kernel` have them."""
        kernel, machine = self.kernel, self.machine
        spread = machine.multiprocessor is not None and _starts_parallel(kernel) and not self.options.warm
        found: list[Level] = []
        for place, cache in enumerate(machine.caches if self.options.levels == "all" else ()):
            self._counted_apart |= cache.beside_bytes_per_s is not None  # then levels take turns
            if place == 0:
                if is_first_level(cache):
                    # by warps, or without what stays in registers
                    self._counted_apart |= machine.multiprocessor is not None or self.options.accesses == "compiled"
                    found.append(self._level(cache, None, spread))
                continue
            at = boundary_behind(kernel, machine, place - 1, self.options.traffic)
            try:
                check_cache(kernel, at.cache_bytes, at.line_bytes)
            except CommandError as error:
                self.left_out.append(f"{cache.name} is left out: {error.message}")
                continue
            self._counted_apart |= spread and machine.caches[place - 1].copies > 1
            found.append(self._level(cache, at, spread))
        at = memory_boundary(kernel, machine, self.options.traffic)
        check_cache(kernel, at.cache_bytes, at.line_bytes)
        last = machine.last_cache
        self._counted_apart |= spread and last is not None and last.copies > 1
        return (*found, self._level(machine.main_memory, at, spread and last is not None))

    def _level(self, level: Cache | Memory, at: Boundary | None, reordered: bool) -> Level:
        def part(which: Part) -> Bytes:
            if at is None:
                return Bytes(None, *self.forms.registers(which))
            sizes = (at.cache_bytes, at.line_bytes, at.moved_bytes)
            once = LevelForms(self.forms, sizes, at.convention, reordered=reordered, part=which)
            if not self.options.warm or at.cache_bytes is None:
                return Bytes(once)
            return Bytes(once, twice=LevelForms(self.forms.twice, sizes, at.convention, part=which))

        apart = level.duplex and (at is None or at.convention != "once")
        rates = [
            c.bandwidth_bytes_per_s for c in self._caps if isinstance(c, BandwidthCeiling) and c.level == level.name
        ]
        rate = min([level.bandwidth_bytes_per_s, *rates])
        return Level(level.name, rate, part("total"), (part("loads"), part("stores")) if apart else ())

    def _branches(self, unit: str | None) -> list[Branch]:
        """T_comp is the largest of these: each is linear in how often the statements run (rules 12 and 13)."""
        costs = {name: Fraction(value) for name, value in self.kernel.costs}
        rows = []
        for statement in self.forms.operations():
            parts = compute_time(work_at([statement], [1]), self.machine, unit=unit, costs=costs).parts
            rows.append(self._times(parts, unit))
        branches = []
        for column in zip(*rows, strict=True) if rows else [()]:
            below = lcm(*(w.denominator for w in column))
            branches.append(Branch(tuple(int(w * below) for w in column), below))
        return branches

    def _times(self, parts: Sequence[ComputePart], unit: str | None) -> list[Fraction]:
        """What `parts` take, by each of the limits that `compute_time` takes the largest of."""
        separate = self.machine.pipes_separate
        if separate and unit is None:
            times = list(busy_pipes(parts, self.machine, []).values())
        else:
            times = [sum((p.time_s for p in parts), Fraction(0))]
        for ceiling in self._caps:
            if isinstance(ceiling, ComputeCeiling):
                under = [p for p in parts if is_under(ceiling, p)]
                others = Fraction(0) if separate else sum((p.time_s for p in parts if p not in under), Fraction(0))
                times.append(sum(p.operations for p in under) / ceiling.rate_per_s + others)
        return times

    # ---- values ----

    def values(self, columns: Mapping[str, Any], count: int, *, try_cache: bool) -> Values:
        """The predictions at `count` points; `columns` are arrays of int64 or Python integers."""
        return _exactly(lambda points: self._values(points, columns, try_cache=try_cache), columns, count)

    def operations(self, columns: Mapping[str, Any], count: int) -> Any:
        """W, which has a form."""
        assert self.work is not None
        return _exactly(self.work.values, columns, count)

    def touched(self, columns: Mapping[str, Any], count: int) -> Any:
        """Bytes of distinct elements touched."""
        assert self.footprint is not None
        return _exactly(self.footprint.values, columns, count)

    def counts(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> Counts:
        """The exact integers at the points. Raises TooLarge."""
        import numpy as np

        assert self.work is not None
        work = self.work.values(points)
        known = self.work.assumed.mask(points, columns)
        amounts: dict[str, Any] = {}
        terms = [self._compute(points)]
        for level in self.levels:
            amounts[level.name], here = level.total.values(points, columns, try_cache=try_cache)
            known = known & here
            timed = amounts[level.name]
            if level.directions:
                both = [part.values(points, columns, try_cache=try_cache) for part in level.directions]
                timed = np.maximum(both[0][0], both[1][0])
                known = known & both[0][1] & both[1][1]
            rate = level.bandwidth_bytes_per_s
            terms.append((level.name, combined([(timed, rate.denominator)], points), rate.numerator))
        if self.launch_s:
            terms.append(("launch", full(self.launch_s.numerator, points), self.launch_s.denominator))
        return Counts(known, work, amounts, terms)

    def _values(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> Values:
        import numpy as np

        found = self.counts(points, columns, try_cache=try_cache)
        work, terms = found.work, found.terms
        times = [quotient(top, below) for _, top, below in terms]
        time_s, largest, bound = ordered(terms, times, SAME)
        moved = found.levels[self.levels[-1].name]
        return Values(
            np.broadcast_to(found.known, points.count),
            work,
            found.levels,
            times[0],
            time_s,
            total_time(terms),
            _rates(moved if self.moves_only else work, terms, largest),
            intensity(work, moved),
            bound,
        )

    def _compute(self, points: Points) -> Term:
        """T_comp."""
        import numpy as np

        below = lcm(*(b.below for b in self.branches))
        found: Any = None
        for known, branch in zip(self.times, self.branches, strict=True):
            assert known is not None
            top = combined([(known.values(points), below // branch.below)], points)
            found = top if found is None else np.maximum(found, top)
        return "compute", found, below


def _exactly(compute: Callable[[Points], T], columns: Mapping[str, Any], count: int) -> T:
    """What `compute` gives at the points, in whole numbers of any size where machine words are too small."""
    try:
        return compute(Points(columns, count))
    except TooLarge:
        return compute(Points(columns, count, exact=True))


def _asked(machine: Machine, names: Sequence[str]) -> list[ComputeCeiling | BandwidthCeiling]:
    """The ceilings of these names. Raises CommandError for one that there is not."""
    for name in names:
        if all(c.name != name for c in machine.ceilings):
            raise no_ceiling(machine, name)
    return [c for c in machine.ceilings if c.name in names]


def _starts_parallel(kernel: Kernel) -> bool:
    """Whether the kernel may be spread over the blocks of a GPU."""
    body = apply(kernel).body
    return len(body) == 1 and isinstance(body[0], For) and body[0].parallel


def intensity(work: Any, moved: Any) -> Any:
    """work / moved, nan where either is 0."""
    import numpy as np

    found = ratio(work, 1, moved)
    found[np.asarray((work == 0) | (moved == 0), dtype=bool)] = np.nan
    return found


def _rates(amount: Any, terms: Sequence[Term], largest: Any) -> Any:
    """amount / expected time, 0 where that is 0."""
    import numpy as np

    found = np.zeros(len(amount))
    for k, (_, top, below) in enumerate(terms):
        here = (largest == k) & (top > 0).astype(bool)
        if here.all():
            return ratio(amount, below, top)
        if here.any():
            found[here] = ratio(amount[here], below, top[here])
    return found
