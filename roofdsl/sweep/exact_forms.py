"""The closed forms of one kernel that predictions use, each with the points at which it is exact.

If predictions count in another order than that of the loops (by the thread blocks of a GPU), a form is used only if it
is the same in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import gcd
from typing import Any, Literal, TypeVar

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.kernel_forms import FOR_CASES, FOR_TERMS
from roofdsl.counts.traffic_form_records import Bytes, TermBytes
from roofdsl.counts.work_record import StatementOperations
from roofdsl.loops.accesses import Access, accesses, scalar_bytes, statements
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.streams import has_streams
from roofdsl.loops.transform import repeated
from roofdsl.sets.cases import Cases
from roofdsl.sets.facts import CACHE, CacheMultiple, whole_units
from roofdsl.sets.library import TooHard
from roofdsl.sets.sizes import NotAffine
from roofdsl.sets.terms import Terms
from roofdsl.store.memo import recall
from roofdsl.sweep.assumed import Assumed, NotUnderstood
from roofdsl.sweep.numeric import Form, Points, combined, full
from roofdsl.sweep.sums import MOST_STEPS, SumForm

T = TypeVar("T")
Part = Literal["total", "loads", "stores"]

WORK = 2_000_000
OPERATIONS: dict[object, int] = {"compulsory": WORK, "cache": 500_000, "terms": FOR_TERMS}
"""Integer-set operations for one form, by kind: what takes longer is counted point by point."""


class Known:
    """A form, times an integer, and where it holds; `cache_bytes`: the number that replaces Z in it."""

    def __init__(
        self, form: Form | SumForm, assumed: Assumed, factor: int = 1, *, cache_bytes: int | None = None
    ) -> None:
        self.form, self.assumed, self.factor, self.cache_bytes = form, assumed, factor, cache_bytes

    def values(self, points: Points) -> Any:
        """The integers at the points. Raises TooLarge."""
        return combined([(self.form.values(self._with_cache(points)), self.factor)], points)

    def mask(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where the form holds and is quick: an array, or True if that is everywhere. Raises TooLarge."""
        points = self._with_cache(points)
        found = self.assumed.mask(points, columns)
        if isinstance(self.form, SumForm) and self.form.summed:
            found = found & (self.form.steps(points) <= MOST_STEPS).astype(bool)
        return found

    def values_at(self, points: Points, where: Any) -> Any:
        """Like `values`; but if each point takes time, only where the mask is set, and 0 elsewhere. Raises TooLarge."""
        import numpy as np

        if not (isinstance(self.form, SumForm) and self.form.summed):
            return self.values(points)
        places = np.flatnonzero(np.broadcast_to(where, points.count))
        found = full(0, points)
        found[places] = self.values(points.only(places, len(places)))
        return found

    def _with_cache(self, points: Points) -> Points:
        return points if self.cache_bytes is None else points.adding(CACHE, self.cache_bytes)


class KernelForms:
    """The forms of `kernel` with the parameters in `given` as numbers; a form that is not found is None."""

    def __init__(self, kernel: Kernel, given: Mapping[str, int]) -> None:
        self.kernel, self.given = kernel, dict(given)
        self._closed: dict[tuple[int | None, int], ClosedForms | None] = {}
        self._bytes: dict[tuple[object, ...], Bytes | TermBytes | None] = {}
        self._known: dict[tuple[object, ...], Known | None] = {}

    def _forms(self, line_bytes: int | None, operations: int = WORK) -> ClosedForms | None:
        key = line_bytes, operations
        if key not in self._closed:
            if has_streams(self.kernel):  # not all levels see streamed stores; `predict` counts point by point
                self._closed[key] = None
                return None
            try:
                self._closed[key] = ClosedForms(self.kernel, self.given, line_bytes, operations)
            except (NoClosedForm, NotAffine):
                self._closed[key] = None
        return self._closed[key]

    @cached_property
    def twice(self) -> KernelForms:
        """The traffic of two launches in a row, the second of which finds in the caches what the first left."""
        return KernelForms(repeated(self.kernel, 2), self.given)

    def operations(self) -> tuple[StatementOperations, ...]:
        """The operations of each statement, in the order of the text; empty if the kernel has no closed forms."""
        forms = self._forms(None)
        return () if forms is None else forms.operations

    def weighted(self, weights: Sequence[int]) -> Known | None:
        """The sum over statements of executions times weight. Weights in the same ratio share one form."""
        factor = gcd(*weights) or 1
        least = [w // factor for w in weights]
        key = ("weighted", *least)
        if key not in self._known:
            self._known[key] = self._ready(self._tried(None, lambda forms: forms.weighted(least)))
        found = self._known[key]
        return None if found is None else Known(found.form, found.assumed, factor)

    def registers(self, part: Part) -> tuple[Known | None, int]:
        """(bytes of accesses to arrays, to scalars), as counted by `sector_traffic.register_bytes_at`."""
        forms = self._forms(None)
        if forms is None:
            return None, 0
        weights = []
        for placed in statements(forms.kernel.body):
            s = placed.statement
            each = accesses(s) if isinstance(s, (Assign, Let)) else ()
            weights.append(sum(a.element.array.type.bytes for a in each if part in ("total", _direction(a))))
        loaded, stored = scalar_bytes(forms.kernel)
        return self.weighted(weights), {"total": loaded + stored, "loads": loaded, "stores": stored}[part]

    def compulsory(self, line_bytes: int | None, convention: Traffic, part: Part = "total") -> Known | None:
        """The traffic of an unbounded cache in lines of `line_bytes`."""
        return self._part(("compulsory", convention), line_bytes, part, lambda f: f.compulsory(convention))

    def at_cache(
        self, cache_bytes: int, line_bytes: int | None, convention: Traffic, part: Part = "total"
    ) -> Known | None:
        """Q of that cache, case by case. Raises CommandError for a cache smaller than a line."""
        key = ("cache", cache_bytes, convention)
        return self._part(key, line_bytes, part, lambda f: f.at_cache(cache_bytes, convention))

    def terms_at_any_cache(
        self, cache_bytes: int | None, line_bytes: int | None, convention: Traffic, part: Part = "total"
    ) -> Known | None:
        """Q of that cache, or for a column Z, as a sum of terms: found once for all caches, and stored on disk."""

        def find(forms: ClosedForms) -> TermBytes:
            asked = self.given, line_bytes, convention, FOR_TERMS
            return recall("every_cache", self.kernel, asked, lambda: forms.terms_at_any_cache(convention))

        found = self._part(("terms", convention), line_bytes, part, find)
        return None if found is None else Known(found.form, found.assumed, cache_bytes=cache_bytes)

    def at_any_cache(self, line_bytes: int | None, convention: Traffic) -> tuple[Known, int] | None:
        """(Q(Z) case by case for a column Z, the number of bytes that must divide Z), or None; stored on disk."""

        def find(forms: ClosedForms) -> Bytes:
            asked = self.given, line_bytes, convention, FOR_CASES
            return recall("any_cache", self.kernel, asked, lambda: forms.at_any_cache(convention))

        found = self._tried(line_bytes, find, FOR_CASES)
        if found is None:
            return None
        others = tuple(f for f in found.total.assumes if not isinstance(f, CacheMultiple))
        known = self._ready(Cases(found.total.cases, others))
        return None if known is None else (known, whole_units(found.total.assumes))

    def scalar_stores(self) -> int:
        """Bytes of scalars stored: `compulsory` includes them in the convention `once`, but no cache holds them."""
        return scalar_bytes(self.kernel)[1]

    def same_in_any_order(self, convention: Traffic) -> bool:
        """Whether the compulsory traffic is known to be the same in any order of the iterations.

        It can only differ if the loads depend on whether a line is read or written first. They do not if each array is
        only read, only written, or read before every write in the same statement.
        """
        if convention != "load_store":
            return True
        first: dict[str, set[bool]] = {}
        for placed in statements(self.kernel.body):
            s = placed.statement
            for a in accesses(s) if isinstance(s, (Assign, Let)) else ():
                first.setdefault(a.element.array.name, set()).add(a.is_write)
        updated = _always_read_first(self.kernel)
        return all(len(kinds) == 1 or name in updated for name, kinds in first.items())

    def _part(
        self,
        key: tuple[object, ...],
        line_bytes: int | None,
        part: Part,
        find: Callable[[ClosedForms], Bytes | TermBytes],
    ) -> Known | None:
        where = (*key, line_bytes)
        if where not in self._bytes:
            operations = OPERATIONS[key[0]]
            self._bytes[where] = self._tried(line_bytes, find, operations)
        if (*where, part) not in self._known:
            found = self._bytes[where]
            self._known[*where, part] = self._ready(None if found is None else getattr(found, part))
        return self._known[*where, part]

    def _tried(self, line_bytes: int | None, find: Callable[[ClosedForms], T], operations: int = WORK) -> T | None:
        forms = self._forms(line_bytes, operations)
        try:
            return None if forms is None else find(forms)
        except (NoClosedForm, TooHard):
            return None

    @staticmethod
    def _ready(cases: Cases | Terms | None) -> Known | None:
        if cases is None:
            return None
        try:
            return Known(Form(cases) if isinstance(cases, Cases) else SumForm(cases), Assumed(cases.assumes))
        except NotUnderstood:
            return None


def _direction(access: Access) -> Part:
    return "stores" if access.is_write else "loads"


def _always_read_first(kernel: Kernel) -> frozenset[str]:
    """Arrays whose every write comes after a read of the same element in the same statement."""
    found: dict[str, bool] = {}
    for placed in statements(kernel.body):
        s = placed.statement
        read: list[object] = []
        for a in accesses(s) if isinstance(s, (Assign, Let)) else ():
            if a.is_write:
                name = a.element.array.name
                found[name] = found.get(name, True) and a.element in read
            else:
                read.append(a.element)
    return frozenset(name for name, always in found.items() if always)


class LevelForms:
    """The bytes across the boundary behind one cache (or without one), as counted by `sector_traffic.transfers_at`."""

    def __init__(
        self,
        forms: KernelForms,
        sizes: tuple[int | None, int | None, int | None],
        convention: Traffic,
        *,
        reordered: bool = False,
        part: Part = "total",
    ) -> None:
        """sizes: bytes of the cache (None: unbounded), of its line, and moved at a time.

        reordered: counted in another order than that of the loops.
        """
        self.forms, self.convention, self.reordered, self.part = forms, convention, reordered, part
        self.cache_bytes, self.line_bytes, self.moved_bytes = sizes
        self.least: Known | None = None
        if not reordered or forms.same_in_any_order(convention):
            self.least = forms.compulsory(self.moved_bytes, convention, part)
        self.lines = None if self.cache_bytes is None else forms.compulsory(self.line_bytes, "once")

    def may_be_known(self, *, try_cache: bool) -> bool:
        """Whether there can be points at which the bytes are known."""
        return self.least is not None or (try_cache and any(True for _ in self._through()))

    def values(self, points: Points, columns: Mapping[str, Any], *, try_cache: bool) -> tuple[Any, Any]:
        """(bytes, where they are known). Raises TooLarge."""
        import numpy as np

        known = self.held(points, columns)
        found: Any = full(0, points) if self.least is None or known is False else self.least.values(points)
        for through in self._through() if try_cache and not np.all(known) else ():
            more = through.mask(points, columns)
            if known is False:
                found = through.values_at(points, more)
            elif np.any(more):
                found = np.where(known, found, through.values_at(points, more & ~known))
            known = more | known
            if np.all(known):
                break
        return found, known

    def _through(self) -> Iterator[Known]:
        """The forms of Q(Z), each sought only on request: case by case (often only for large sizes), and as a sum."""
        if self.cache_bytes is None or self.reordered or self.moved_bytes != self.line_bytes:
            return
        for find in (self.forms.at_cache, self.forms.terms_at_any_cache):
            found = find(self.cache_bytes, self.line_bytes, self.convention, self.part)
            if found is not None:
                yield found

    def held(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where the compulsory traffic is known and all lines fit: an array, True or False. Raises TooLarge."""
        if self.least is None:
            return False
        mask = self.least.assumed.mask(points, columns)
        if self.cache_bytes is None:
            return mask
        if self.lines is None:
            return False
        # Both sides have the scalars stored, which `lines` (convention `once`) counts and the cache does not hold.
        held = self.lines.values(points) <= self.cache_bytes + self.forms.scalar_stores()
        held = held.astype(bool) & mask & self.lines.assumed.mask(points, columns)
        return held if held.any() else False
