"""Q(Z) in cache lines as closed forms, by both methods of `counts.lines`: the histogram of stack distances for symbolic
sizes.

Rows of arrays begin on lines, and sizes that count elements along a row belong to one residue class. The results hold
for all sizes from some least ones on (`symbolic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from math import lcm, prod
from typing import Any, cast

from roofdsl.counts.computed_once import NoClosedForm
from roofdsl.counts.lines.distance_records import DROPPED, READ, STORED, WRITTEN, Between, Histogram
from roofdsl.counts.lines.distance_terms import DistanceTerms, traffic
from roofdsl.counts.lines.operand_histogram import Operands
from roofdsl.counts.lines.symbolic import FAR, Growing, Sizes, Undecided, is_positive
from roofdsl.counts.lines.uniform import NotUniform, uniform
from roofdsl.counts.lines.uniform_histogram import histogram
from roofdsl.counts.streamed import streamed_form
from roofdsl.counts.traffic_form_records import Bytes, PlateauBytes, TermBytes
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import scalar_bytes, statements
from roofdsl.loops.integers import Compare, Condition, Const, Mod, Sym, all_of
from roofdsl.loops.model import Array, Kernel, Traffic
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import apply
from roofdsl.loops.used_parameters import used_parameters
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import CACHE, Compared, Fact, Remainders, Row, RowsAligned, at_least
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi

NONE = Quasi.constant(0)


class Crossed(NoClosedForm):
    """Some distances of one loop fit in a cache at the given sizes, in a way that no closed form expresses."""


class DistanceForms:
    """Closed forms in lines of `line_bytes`, for sizes with the remainders of those `given`, otherwise for whole lines.

    Raises NoClosedForm for kernels that this method does not handle, and for those without reuse from row to row, which
    other methods handle better.
    """

    def __init__(self, kernel: Kernel, given: Mapping[str, int], line_bytes: int, *, every: bool = False) -> None:
        """every: also find short distances, which matter only for small caches."""
        self.kernel = apply(kernel)
        self.given, self.line_bytes = given, line_bytes
        self.names = used_parameters(self.kernel)
        arrays = [a for a in self.kernel.arrays if not a.is_scalar]
        self.step = lcm(*(line_bytes // a.type.bytes for a in arrays))
        if self.step == 1:
            raise NoClosedForm("lines of one element")
        self.rests = {n: given.get(n, 0) % self.step for n in self.names if n in self._along_rows(arrays)}
        self._compute(every=every)

    def _compute(self, *, every: bool) -> None:
        """Sets `found`, its `parts`, and the `sizes` and `values` in terms of which they are stated. Raises
        NoClosedForm.

        any_order: whether the method for operands with loops in any order was used.
        """
        reason = "no reuse from row to row"
        for self.any_order in (True,) if every else (False, True):
            self.sizes = Sizes(len(self.names))
            self.values = {n: self._value(k, n) for k, n in enumerate(self.names)}
            at = Sized(self.kernel, cast("Mapping[str, int]", self.values))
            try:
                if self.any_order:
                    self.found: Histogram = Operands(at, self.line_bytes, self.sizes, padded=True).histogram(
                        every=every
                    )
                else:
                    self.found = histogram(uniform(at, self.line_bytes, padded=True))
                self.parts = tuple(_parts(self.found))
                self.least = self.sizes.settle()
                if any(kind for a in self.found.arrays for kind in a.rest) or self.found.between:
                    return
            except (NotUniform, Undecided) as error:
                reason = str(error)
        raise NoClosedForm(reason)

    def _along_rows(self, arrays: Iterable[Array]) -> frozenset[str]:
        """The parameters that count elements along rows."""
        found = {n for a in arrays for n in (a.dims[0] if a.column_major else a.dims[-1]).symbols()}
        for placed in statements(self.kernel.body):
            for loop in placed.loops[-1:]:
                found |= loop.start.symbols() | loop.stop.symbols()
        return frozenset(found)

    def _value(self, number: int, name: str) -> Growing:
        symbol = self.sizes.symbol(number)
        return cast(Growing, symbol * self.step + self.rests[name]) if name in self.rests else symbol

    # ---- results ----

    @cached_property
    def where(self) -> Condition | None:
        """The residue class."""
        return all_of([Compare("==", Mod(Sym(n), Const(self.step)), Const(rest)) for n, rest in self.rests.items()])

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The assumptions of all forms."""
        return (*(at_least(n, low) for n, low in self._from().items() if low > 1), *self._others())

    def _from(self) -> dict[str, int]:
        """The least value of each parameter."""
        return {n: self._at(self.values[n], self.least) for n in self.names}

    def _others(self) -> tuple[Fact, ...]:
        rows = []
        for a in self.kernel.arrays:
            if len(a.dims) > 1:
                length = a.dims[0] if a.column_major else a.dims[-1]
                per_line = self.line_bytes // a.type.bytes
                if length.evaluate(cast("Mapping[str, int]", self.values)) % per_line:
                    rows.append(Row(a.name, length, per_line))
        remainders = () if self.where is None else (Remainders(self.where),)
        return (*remainders, *((RowsAligned(tuple(rows)),) if rows else ()))

    def at_cache(self, cache_bytes: int, convention: Traffic) -> Bytes:
        """The traffic of a cache of `cache_bytes`, for sizes like the given ones if there are any, otherwise for large
        ones.

        Raises NoClosedForm.
        """
        if cache_bytes < self.found.least_bytes:
            raise NoClosedForm(f"stack distances are known only for caches of at least {self.found.least_bytes} B")
        at = self._near()
        known = self.sizes.mark()
        missing, held = list[Between](), list[Between]()
        try:
            for part in self.parts:
                ends = [self._at(end, at) > cache_bytes for end in (part.low, part.high)]
                if ends[0] == ends[1]:
                    (missing if ends[0] else held).append(part)
                    continue
                if part.beyond is None:
                    raise NoClosedForm("stack distances that grow along a row, some of which fit")
                more = part.beyond(cache_bytes)
                # their ends do not show which of them exceed the cache; `least` says for which sizes the result holds
                missing.append(replace(part, low=cache_bytes + 1, high=cache_bytes + 1, count=more))
            if any(p.beyond for p in missing):
                self.least = self.sizes.settle()
                self._near(Crossed)
            facts = self._between([p.low for p in missing], [p.high for p in held], cache_bytes)
            return self._bytes(missing, convention, facts)
        except Undecided as error:
            raise Crossed(str(error)) from error
        finally:
            self.least = self.sizes.back_to(known)

    def at_any_cache(self, convention: Traffic) -> TermBytes:
        """The traffic of a cache of Z bytes, from `least_bytes` on. Raises NoClosedForm."""
        self._near()  # the sizes given must be large enough
        found = DistanceTerms(self.found, self.quasi, self._is_positive)
        always = {kind: self.quasi(lines) for kind, lines in self._counted(()).items()}
        facts = (*self.facts, at_least(CACHE, self.found.least_bytes))
        return traffic(
            self.kernel, found, always, convention, facts, line_bytes=self.line_bytes, streamed=self._streamed
        )

    def plateau_forms(self, convention: Traffic, order: Growth) -> tuple[PlateauBytes, ...]:
        """The plateaus of Q(Z), as from `ClosedForms.plateau_forms`, from `least_bytes` on. Raises NoClosedForm."""
        self._near()  # the sizes given must be large enough
        groups: dict[Quasi, list[Between]] = {}
        spread: list[tuple[Any, Any, Between]] = []  # (class of the least distance, of the largest, part)
        for part in self.parts:
            if not isinstance(part.high, Growing) and part.high <= self.found.least_bytes:
                continue  # it fits in every cache for which results are known
            low = part.low if self._is_positive(part.low) else self.found.least_bytes
            first, final = (order.leading(self.quasi(end)) for end in (low, part.high))
            groups.setdefault(final, [])
            if first == final:
                groups[final].append(part)
            else:
                spread.append((order.key(first), order.key(final), part))
        starts = sorted(groups, key=order.key)
        rows: list[PlateauBytes] = []
        start, missing = Quasi.constant(self.found.least_bytes), [p for each in groups.values() for p in each]
        # On plateau k, the first k classes of distances fit, and all others miss.
        for k in range(len(starts) + 1):
            last = k == len(starts)
            keys = order.key(starts[k - 1]) if k else None, None if last else order.key(starts[k])
            surely = missing + [p for low, _, p in spread if keys[1] is not None and low >= keys[1]]
            # Some of their distances fit before the plateau ends, but not all of them where it begins.
            maybe = [
                p
                for low, high, p in spread
                if (keys[1] is None or low < keys[1]) and (keys[0] is None or high > keys[0])
            ]
            whole = self._bytes(surely, convention, self.facts).total
            moved = whole.single or Quasi.constant(0)
            leading = order.leading(moved)
            if maybe:
                most = self._bytes(surely + maybe, convention, self.facts).total.single or Quasi.constant(0)
                if order.leading(most) != leading:
                    raise NoClosedForm("stack distances that grow along a row")
            if rows and rows[-1].bytes == leading:
                rows[-1] = PlateauBytes(
                    rows[-1].from_bytes, leading, False, None, None, self.where
                )  # the traffic changes along the plateau
            elif maybe:
                rows.append(PlateauBytes(start, leading, False, None, None, self.where))
            else:
                lows = [] if last else [p.low for p in groups[starts[k]]]
                least = self._extreme(lows, lambda a, b: a - b) or lows
                end = min(map(self.quasi, least), key=order.key, default=None)
                rows.append(PlateauBytes(start, moved if last else leading, last, whole, None, self.where, end))
            if not last:
                gone = {id(p) for p in groups[starts[k]]}
                missing = [p for p in missing if id(p) not in gone]
                start = starts[k]
        return tuple(rows)

    # ---- counting ----

    @cached_property
    def _streamed(self) -> Quasi:
        """The bytes of stores that bypass the caches. Raises NoClosedForm."""
        return streamed_form(self.kernel)

    def _bytes(self, missing: Iterable[Between], convention: Traffic, facts: tuple[Fact, ...]) -> Bytes:
        loads_scalars, stores_scalars = scalar_bytes(self.kernel)
        counted = self._counted(missing)
        begun = counted[READ] + counted[WRITTEN]
        line, past = self.line_bytes, self._streamed

        def form(lines: Any, more: int, streamed: Quasi = NONE) -> Cases:
            value = self.quasi(lines * line + more) + streamed
            return Cases((Case((), value),) if value else (), facts)

        if convention == "once":
            return Bytes(None, None, form(begun, stores_scalars, past))
        loaded = begun if convention == "write_allocate" else counted[READ]
        return Bytes(
            form(loaded, loads_scalars),
            form(counted[STORED], stores_scalars, past),
            form(loaded + counted[STORED], loads_scalars + stores_scalars, past),
        )

    def _counted(self, missing: Iterable[Between]) -> dict[int, Any]:
        """The lines of first visits, and of those that are missing, by kind."""
        counted: dict[int, Any] = {READ: 0, WRITTEN: 0, STORED: 0}
        for kind in counted:
            counted[kind] += sum(a.cold[kind] for a in self.found.arrays)
        # lines of a temp array that are in the cache at the end are not stored
        counted[STORED] -= sum(part.count for part in self.parts if part.kind == DROPPED)
        for part in missing:
            counted[STORED if part.kind == DROPPED else part.kind] += part.count
        return counted

    def _between(self, above: list[Any], below: list[Any], cache_bytes: int) -> tuple[Fact, ...]:
        """`facts`, and the facts that the distances `above` do not fit while those `below` do."""
        least, others = self._from(), list[Compared]()
        for distance in self._extreme(above, lambda a, b: a - b):
            known = self._first(distance, cache_bytes)
            if known is None:
                others.append(Compared(self.quasi(distance), ">", Quasi.constant(cache_bytes)))
            else:
                least[known[0]] = max(least[known[0]], known[1])
        for distance in self._extreme(below, lambda a, b: b - a):
            known = self._first(distance, cache_bytes)
            if known is None:
                others.append(Compared(self.quasi(distance), "<", Quasi.constant(cache_bytes + 1)))
            else:
                others.append(Compared(Quasi.symbol(known[0]), "<", Quasi.constant(known[1])))
        return (*(at_least(n, low) for n, low in least.items() if low > 1), *others, *self._others())

    def _extreme(self, distances: list[Any], beyond: Callable[[Any, Any], Any]) -> list[Growing]:
        """The growing distances without redundant ones; beyond(a, b) >= 0 means that b makes a redundant."""
        kept: list[Growing] = []
        for distance in dict.fromkeys(d for d in distances if isinstance(d, Growing)):
            if any(self._is_positive(beyond(distance, k) + 1) for k in kept):
                continue
            kept = [k for k in kept if not self._is_positive(beyond(k, distance) + 1)]
            kept.append(distance)
        return kept

    def _is_positive(self, value: Any) -> bool:
        return is_positive(value, self.least) if isinstance(value, Growing) else value > 0

    def _first(self, distance: Growing, cache_bytes: int) -> tuple[str, int] | None:
        """(parameter, its first value) from which on a distance exceeds the cache; None if it depends on several
        parameters, or does not always grow with its only one.
        """
        involved = {k for monomial in distance.terms for k in monomial}
        if len(involved) != 1:
            return None
        (k,) = involved
        if not self._is_positive(distance - self._at(distance, self.least) + 1):
            return None
        low, high = self.least[k], FAR

        def exceeds(value: int) -> bool:
            return self._at(distance, [value] * len(self.names)) > cache_bytes

        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if exceeds(middle) else (middle + 1, high)
        return self.names[k], self._at(self.values[self.names[k]], [low] * len(self.names))

    # ---- numbers ----

    def _near(self, error: type[NoClosedForm] = NoClosedForm) -> list[int]:
        """The symbols at the given sizes; those without a number get large ones. Raises `error` for small sizes."""
        at = []
        for name, least in zip(self.names, self.least, strict=True):
            value = self.given.get(name, FAR)
            # n = step*symbol + rest for sizes of a residue class
            at.append(value // self.step if name in self.rests and name in self.given else value)
            if at[-1] < least:
                raise error("closed forms hold for larger sizes")
        return at

    @staticmethod
    def _at(value: Any, at: list[int]) -> int:
        return value.at(at) if isinstance(value, Growing) else int(value)

    def quasi(self, value: Any) -> Quasi:
        """A number of the histogram in the kernel's parameters."""
        if not isinstance(value, Growing):
            return Quasi.constant(value)
        total = Quasi.constant(value.constant)
        for monomial, factor in value.terms.items():
            term = Quasi.constant(factor)
            for k in monomial:
                term = term * self._symbols[k]
            total = total + term
        return total

    @cached_property
    def _symbols(self) -> list[Quasi]:
        """What each symbol is: (n - rest) / step, or n."""
        found = []
        for name in self.names:
            quasi = Quasi.symbol(name)
            if name in self.rests:
                quasi = (quasi - self.rests[name]) * (Quasi.constant(1).constant_value() / self.step)
            found.append(quasi)
        return found


def _parts(found: Histogram) -> Iterator[Between]:
    """The histogram without the first visits."""
    yield from found.between
    for number, array in enumerate(found.arrays):
        for kind in (READ, WRITTEN, STORED, DROPPED):
            for (first, steps), weight in array.rest[kind].items():
                low = high = first
                for step, count in steps:
                    end = step * (count - 1)
                    low, high = (low, high + end) if step > 0 else (low + end, high)
                yield Between(number, kind, low, high, weight * prod(count for _, count in steps))
