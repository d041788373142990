"""A prediction as sums of known forms: what `predict` computes at one point, computed at many points.

Every number is the same as in `predict`: counts are exact integers, and times and rates are rounded once from exact
values. A point at which a form is not known to be exact is left to `predict` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from roofdsl.counts.check_cache import check_cache
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import BandwidthCeiling, Cache, ComputeCeiling, Machine, Memory
from roofdsl.predict.boundary import Boundary, boundary_behind, memory_boundary
from roofdsl.predict.compute import statement_seconds
from roofdsl.predict.contraction import check_unit
from roofdsl.predict.given_counts import no_ceiling
from roofdsl.predict.kernel_launches import is_spread, may_be_several
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.time_model import (
    LAUNCH,
    LAUNCHES,
    Largest,
    capped_bandwidth,
    level_seconds,
    terms_of_a_launch,
    whole_weights,
)
from roofdsl.sweep.exact_forms import KernelForms, Known, LevelForms, Part
from roofdsl.sweep.numeric import Points, TooLarge, combined
from roofdsl.sweep.rounding import OverOne, Term, ordered, quotient, ratio, total_time, words

T = TypeVar("T")


class Values(Record):
    """Predictions at some points, as arrays. `known`: at which of them they are exact.

    levels: name -> bytes. rate_per_s: operations, or bytes for a kernel without any (rule 16). Integers are float64
    below 2**53, or Python's. `Plan.bound` decodes `bound`. launches: for a program.
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
    """The quantities that determine times: bytes of each level, and the terms of the time. `known`: an array, True or
    False.
    """

    known: Any
    work: Any
    levels: Mapping[str, Any]
    terms: list[Term]


class Bytes:
    """The bytes of one level, or of one direction: either of accesses (`known` and `constant`), or behind a cache.

    twice: the bytes of two launches in a row, if those of the second one are wanted.
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
        """Whether there can be points at which the bytes are known."""
        if self.through is None:
            return self.known is not None
        both = (self.through, self.twice) if self.twice is not None else (self.through,)
        return all(forms.may_be_known(try_cache=try_cache) for forms in both)

    def held(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where the bytes are known without Q(Z): an array, True or False. Raises TooLarge."""
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
    """A level of the hierarchy. `directions`: loads and stores separately, if both cross at the same time."""

    name: str
    bandwidth_bytes_per_s: Fraction
    total: Bytes
    directions: tuple[Bytes, ...] = ()

    @property
    def crossing(self) -> tuple[tuple[str, Bytes], ...]:
        """The quantities counted at its boundary, with their names in `predict.time_model`."""
        return (("bytes", self.total), *zip(("loads", "stores"), self.directions, strict=False))

    @property
    def seconds(self) -> Largest:
        """Its time in terms of these counts."""
        return level_seconds(self.name, self.bandwidth_bytes_per_s, duplex=bool(self.directions))


class Plan:
    """The prediction of the kernel of `forms` on `machine`. Raises CommandError if `predict` does at all sizes.

    left_out: warnings about levels that are not shown.
    """

    def __init__(self, forms: KernelForms, machine: Machine, options: Options) -> None:
        kernel = forms.kernel
        self.forms, self.machine, self.options, self.kernel = forms, machine, options, kernel
        unit = options.unit or kernel.unit
        check_unit(unit, kernel)
        self.left_out: list[str] = []
        plain = replace(
            options, traffic=None, unit=None, ceilings=(), levels="all", warm=False, accesses="written", conflicts=False
        )
        self._point_by_point = plain != DEFAULTS  # other options are not supported here
        self._caps = _asked(machine, options.ceilings)
        self.levels = self._levels()
        self.terms, weights = self._terms(unit)
        self.work = forms.weighted([s.total for s in forms.operations()])
        self.moves_only = not any(s.total for s in forms.operations())
        self.times = {name: forms.weighted(each) for name, each in weights.items()}
        self.footprint = forms.compulsory(None, "once")
        self.names = tuple(term.name for term in self.terms)

    def may_be_known(self, *, try_cache: bool) -> bool:
        """Whether there can be points at which everything is known."""
        if self.work is None or self.footprint is None or None in self.times.values() or self._point_by_point:
            return False
        return all(part.may_be_known(try_cache=try_cache) for part in self._parts())

    @property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels)

    @property
    def has_footprint(self) -> bool:
        """Whether the touched bytes have a form."""
        return self.footprint is not None

    @property
    def may_need_cache_forms(self) -> bool:
        """Whether the known points may depend on Q(Z)."""
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
        """What bounds the kernel, in words."""
        return words(code, self.names)

    # ---- parts ----

    def _levels(self) -> tuple[Level, ...]:
        """As in `predict.level_traffic.nearer_levels` and `predict.kernel`."""
        kernel, machine = self.kernel, self.machine
        spread = machine.multiprocessor is not None and is_spread(kernel)
        self._point_by_point |= spread and self.options.warm  # the forms of two launches are in loop order
        # the forms have one launch
        self._point_by_point |= machine.multiprocessor is not None and bool(machine.caches) and may_be_several(kernel)
        found: list[Level] = []
        for place, cache in enumerate(machine.caches if self.options.levels == "all" else ()):
            self._point_by_point |= cache.takes_turns  # levels take turns then
            if place == 0:
                if is_first_level(cache):
                    # by warps, or without what stays in registers
                    self._point_by_point |= machine.multiprocessor is not None or self.options.accesses == "compiled"
                    found.append(self._level(cache, None, spread))
                continue
            at = boundary_behind(kernel, machine, place - 1, self.options.traffic)
            try:
                check_cache(kernel, at.cache_bytes, at.line_bytes)
            except CommandError as error:
                self.left_out.append(f"{cache.name} is left out: {error.message}")
                continue
            self._point_by_point |= spread and machine.caches[place - 1].copies > 1
            found.append(self._level(cache, at, spread))
        at = memory_boundary(kernel, machine, self.options.traffic)
        check_cache(kernel, at.cache_bytes, at.line_bytes)
        last = machine.last_cache
        self._point_by_point |= spread and last is not None and last.copies > 1
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
        caps = [c for c in self._caps if isinstance(c, BandwidthCeiling)]
        rate = capped_bandwidth(level.name, level.bandwidth_bytes_per_s, caps)
        return Level(level.name, rate, part("total"), (part("loads"), part("stores")) if apart else ())

    def _terms(self, unit: str | None) -> tuple[list[OverOne], dict[str, tuple[int, ...]]]:
        """The terms of the time; and, by name, those of their counts that are statement executions times integers.

        One closed form is made for each whole sum over statements, which takes less time than one for each class of
        operation.
        """
        caps = [c for c in self._caps if isinstance(c, ComputeCeiling)]
        operations, costs = self.forms.operations(), {name: Fraction(value) for name, value in self.kernel.costs}
        every = statement_seconds(operations, self.machine, unit=unit, costs=costs, ceilings=caps)
        weights, sums = {}, []
        for k, one in enumerate(every.sums):
            weights[f"sum {k}"], below = whole_weights(one, map(str, range(len(operations))))
            sums.append(((f"sum {k}", Fraction(1, below)),))
        levels = [(level.name, level.seconds) for level in self.levels]
        terms = terms_of_a_launch(Largest(tuple(sums)), levels, self.machine)
        return [OverOne(*term) for term in terms if term[0] != LAUNCH or self.machine.launch_s], weights

    # ---- values ----

    def values(self, columns: Mapping[str, Any], count: int, *, try_cache: bool) -> Values:
        """The predictions at `count` points; `columns` are arrays of int64 or Python integers."""
        return _exactly(lambda points: self._values(points, columns, try_cache=try_cache), columns, count)

    def operations(self, columns: Mapping[str, Any], count: int) -> Any:
        """W, which has a form."""
        assert self.work is not None
        return _exactly(self.work.values, columns, count)

    def touched(self, columns: Mapping[str, Any], count: int) -> Any:
        """Bytes of distinct elements touched; 0 where their form does not hold."""
        import numpy as np

        form = self.footprint
        assert form is not None
        return _exactly(lambda at: np.where(form.assumed.mask(at, columns), form.values(at), 0), columns, count)

    def counts(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> Counts:
        """The exact integers at the points. Raises TooLarge."""
        assert self.work is not None
        work = self.work.values(points)
        known = self.work.assumed.mask(points, columns)
        amounts: dict[str, Any] = {LAUNCHES: 1}
        for name, form in self.times.items():
            assert form is not None
            amounts[name] = form.values(points)
        for level in self.levels:
            for what, part in level.crossing:
                amounts[f"{level.name} {what}"], here = part.values(points, columns, try_cache=try_cache)
                known = known & here
        terms = [term.at(amounts, points) for term in self.terms]
        return Counts(known, work, {level.name: amounts[f"{level.name} bytes"] for level in self.levels}, terms)

    def _values(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> Values:
        import numpy as np

        found = self.counts(points, columns, try_cache=try_cache)
        work, terms = found.work, found.terms
        times = [quotient(top, below) for _, top, below in terms]
        time_s, largest, bound = ordered(terms, times)
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


def _exactly(compute: Callable[[Points], T], columns: Mapping[str, Any], count: int) -> T:
    """The result of `compute` at the points, with integers of any size where machine words are too small."""
    try:
        return compute(Points(columns, count))
    except TooLarge:
        return compute(Points(columns, count, exact=True))


def _asked(machine: Machine, names: Sequence[str]) -> list[ComputeCeiling | BandwidthCeiling]:
    """The ceilings of these names. Raises CommandError for an unknown one."""
    for name in names:
        if all(c.name != name for c in machine.ceilings):
            raise no_ceiling(machine, name)
    return [c for c in machine.ceilings if c.name in names]


def intensity(work: Any, moved: Any) -> Any:
    """work / moved, nan if either is 0."""
    import numpy as np

    found = ratio(work, 1, moved)
    found[np.asarray((work == 0) | (moved == 0), dtype=bool)] = np.nan
    return found


def _rates(amount: Any, terms: Sequence[Term], largest: Any) -> Any:
    """amount / time, 0 if that time is 0."""
    import numpy as np

    found = np.zeros(len(amount))
    for k, (_, top, below) in enumerate(terms):
        here = (largest == k) & (top > 0).astype(bool)
        if here.all():
            return ratio(amount, below, top)
        if here.any():
            found[here] = ratio(amount[here], below, top[here])
    return found
