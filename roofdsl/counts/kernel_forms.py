"""The closed forms of one kernel that `derive` reports. Of several methods, the first that succeeds counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeVar

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.computed_once import AT_CACHE, form_within, settled
from roofdsl.counts.fixed import FixedForms
from roofdsl.counts.growth import tile_names
from roofdsl.counts.lines.symbolic_distances import Crossed, DistanceForms
from roofdsl.counts.mirrored import MirroredForms, mirrored
from roofdsl.counts.traffic_form_records import Bytes, PlateauBytes, TermBytes
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.model import Count, Kernel, Traffic
from roofdsl.loops.streams import has_streams, ordinary
from roofdsl.sets.cases import Cases
from roofdsl.sets.library import MAX_OPERATIONS

T = TypeVar("T")

FOR_CASES, FOR_TERMS = 2_500_000, 12_000_000
"""Limits of integer-set operations: for Q(Z) by cases if a sum of terms may be found instead, and for that sum."""

QUICKLY, SOON = 60_000, 1_000_000
"""Integer-set operations (30 ms, half a second) for a form that holds for all remainders of the sizes, if there is one
by stack distances, which holds for some remainders only. The first limit is for sizes that are all given, so that only
their remainders matter; the second is for others.
"""


MOST_QUICK, MOST_QUICK_STENCIL = 10, 12
"""Integer sets are tried first for kernels with at most this many accesses, each times the loops around it; the second
number is for Q(Z) of a stencil with Z a symbol.
"""


class Forms:
    """Closed forms in all parameters. If there is none, numbers stand for as few parameters as possible."""

    def __init__(self, kernel: Kernel, given: Mapping[str, int], line_bytes: int | None) -> None:
        self.kernel, self.given, self.line_bytes = kernel, given, line_bytes
        self.notes: tuple[str, ...] = ()
        self._slow = False
        self.closed = ClosedForms(kernel, {}, line_bytes)
        # From few numbers to many: symbolic tile sizes split lines anywhere, and some kernels have no form even of W
        # unless all given parameters are numbers.
        tiles = {n: v for n, v in given.items() if n in tile_names(kernel)} if line_bytes is not None else {}
        for numbers, needed in ((tiles, self._in_lines), (given, self._work)):
            try:
                needed()
            except NoClosedForm as error:
                if numbers:
                    self.closed = ClosedForms(kernel, numbers, line_bytes)
                    shown = ", ".join(f"{n} = {v}" for n, v in numbers.items())
                    self.notes = (f"no closed form in all parameters ({error}): at {shown}",)

    def _in_lines(self) -> None:
        _ = self.closed.line_sets

    def _work(self) -> None:
        _ = self.closed.work

    def of_array(self, name: str) -> Cases:
        """The bytes of the distinct lines of an array."""
        return self._by_array[name]

    @settled
    def _by_array(self) -> Mapping[str, Cases]:
        if not has_streams(self.kernel):
            return self.closed.by_array()
        return ClosedForms(ordinary(self.kernel), self.closed.given, self.line_bytes).by_array()

    @settled
    def distances(self) -> DistanceForms:
        """The forms by stack distances in lines. Raises NoClosedForm for kernels and lines without any."""
        if self.line_bytes is None:
            raise NoClosedForm("lines of one element")
        line = self.line_bytes
        return form_within(lambda: DistanceForms(self.kernel, self.given, line), AT_CACHE, MAX_OPERATIONS)

    @settled
    def _all_distances(self) -> DistanceForms:
        """As `distances`, with short distances, for caches that `distances` does not cover. Raises NoClosedForm."""
        line = self.distances.line_bytes
        return form_within(lambda: DistanceForms(self.kernel, self.given, line, every=True), AT_CACHE, MAX_OPERATIONS)

    def at_cache(self, cache_bytes: int, convention: Traffic) -> Bytes | TermBytes:
        """Q(Z) at a cache size, in as many parameters as possible.

        Forms that hold for all remainders of the sizes come first if they are found quickly. Then come stack distances
        in lines, and forms in all parameters, with numbers for the given tile sizes, or with numbers for all given
        parameters (as long as a symbol is left). If there are no cases, Q(Z) is a sum of terms.
        """
        tries: list[Callable[[], Bytes | TermBytes]] = []
        tries += [partial(self._fixed_at_cache, values, cache_bytes, convention) for values in self._numbers()]
        tries += [
            lambda: self.closed.terms_at_any_cache(convention, cache_bytes, FOR_TERMS),
            lambda: self.closed.at_cache(cache_bytes, convention),
        ]
        tries.insert(0, lambda: self.closed.at_cache(cache_bytes, convention, FOR_CASES))
        tries.insert(0, lambda: self._told_of(cache_bytes).at_cache(cache_bytes, convention))
        if self._limit:
            tries.insert(0, lambda: self._at_once(lambda f: f.at_cache(cache_bytes, convention, self._limit)))
        try:
            return first_form(tries)
        except NoClosedForm as error:
            if self._mirrored is None:
                raise
            try:
                return self._mirrored.at_cache(cache_bytes, convention)
            except NoClosedForm:
                raise error from None

    def at_any_cache(self, convention: Traffic) -> Bytes | TermBytes:
        """Q(Z) with Z a symbol, as cases or as a sum of terms. Raises NoClosedForm.

        Stack distances come first for stencils, since integer sets take long there and seldom have a form. Small
        stencils are an exception if they have cases, which hold for all remainders of the sizes. Sums of terms for all
        remainders fill a page with floors.
        """

        def by_sets(closed: ClosedForms) -> Bytes | TermBytes:
            return first_form(
                [
                    lambda: closed.at_any_cache(convention),
                    lambda: closed.terms_at_any_cache(convention, None, FOR_TERMS),
                ]
            )

        tries: list[Callable[[], Bytes | TermBytes]] = []
        if self._is_stencil:
            if self._accesses <= MOST_QUICK_STENCIL:
                quick = ClosedForms(self.kernel, self.closed.given, self.line_bytes, SOON)
                tries.append(lambda: quick.at_any_cache(convention))
            tries.append(lambda: self.distances.at_any_cache(convention))
        return first_form([*tries, lambda: by_sets(self.closed)])

    @property
    def _is_stencil(self) -> bool:
        """Whether stack distances are found by the method for stencils."""
        try:
            return not self.distances.any_order
        except NoClosedForm:
            return False

    def _told_of(self, cache_bytes: int) -> DistanceForms:
        """The forms by stack distances that cover a cache of this size. Raises NoClosedForm."""
        return self.distances if cache_bytes >= self.distances.found.least_bytes else self._all_distances

    def plateau_forms(self, convention: Traffic) -> tuple[tuple[PlateauBytes, ...], Mapping[str, int]]:
        """The plateaus of Q(Z), for all remainders of the sizes if found quickly, otherwise by stack distances, or for
        whole lines; and the parameters that are numbers in them.

        Raises NoClosedForm.
        """
        numbers = self.closed.given
        if self._limit == SOON:
            try:
                return self._at_once(lambda forms: forms.plateau_forms(convention, self.given, SOON)), numbers
            except NoClosedForm:
                pass
        try:
            return self.distances.plateau_forms(convention, self.closed.order), {}
        except NoClosedForm:
            if self._mirrored is None:
                raise
        try:
            return self.closed.plateau_forms(convention, self.given), numbers
        except NoClosedForm:
            return self._mirrored.plateau_forms(convention), numbers

    @cached_property
    def _mirrored(self) -> MirroredForms | None:
        """The forms for whole lines of a kernel that goes through an array backwards; None for other kernels, and for
        lines of one element.
        """
        if self.line_bytes is None:
            return None
        where = mirrored(self.kernel, self.closed.given, self.line_bytes)
        return None if where is None else MirroredForms(self.kernel, self.closed.given, self.line_bytes, where)

    @cached_property
    def _limit(self) -> int:
        """The integer-set operations for forms that are tried before stack distances: 0 for stencils, for whose lines
        integer sets have no forms, for kernels with many accesses, and without stack distances.
        """
        try:
            if not self.distances.any_order or self._accesses > MOST_QUICK:
                return 0
        except NoClosedForm:
            return 0
        return QUICKLY if all(n in self.given for n in self.distances.names) else SOON

    @cached_property
    def _accesses(self) -> int:
        """The number of accesses, each times the loops around it."""
        found = 0
        for placed in statements(self.kernel.body):
            if not isinstance(placed.statement, Count):
                found += len(placed.loops) * len(accesses(placed.statement))
        return found

    def _at_once(self, compute: Callable[[ClosedForms], T]) -> T:
        """The result of `compute` if it is found quickly.

        It uses a separate ClosedForms, since those remember failures: what is not found here, `closed` may still find.
        After one failure, further calls fail at once. Raises NoClosedForm.
        """
        if self._slow:
            raise NoClosedForm("integer sets take long")
        try:
            return compute(self._quick)
        except NoClosedForm:
            self._slow = True
            raise

    @cached_property
    def _quick(self) -> ClosedForms:
        return ClosedForms(self.kernel, self.closed.given, self.line_bytes)

    def _fixed_at_cache(self, values: dict[str, int], cache_bytes: int, convention: Traffic) -> Bytes:
        return self._fixed(values).at_cache(cache_bytes, convention)

    def _numbers(self) -> list[dict[str, int]]:
        """Numbers for some parameters, from few to many; at least one parameter stays a symbol."""
        tiles = tile_names(self.kernel)
        unknown = [p.name for p in self.kernel.parameters if p.name not in self.closed.given]
        free = {n: v for n, v in self.given.items() if n in unknown}
        few = {n: v for n, v in free.items() if n in tiles}
        return [found for found in ([few] if few == free else [few, free]) if 0 < len(found) < len(unknown)]

    def _fixed(self, values: Mapping[str, int]) -> FixedForms:
        key = tuple(values.items())
        if key not in self._known:
            self._known[key] = FixedForms(self.closed, values)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[tuple[str, int], ...], FixedForms]:
        return {}


def first_form(tries: Sequence[Callable[[], Bytes | TermBytes]]) -> Bytes | TermBytes:
    """The first closed form that one of `tries` finds. Raises Crossed at once, and otherwise the NoClosedForm of the
    last one.
    """
    for way in tries[:-1]:
        try:
            return way()
        except Crossed:
            raise  # other methods have no form for such distances, either, and take long to fail
        except NoClosedForm:
            continue
    return tries[-1]()
