"""The accesses of each array of a kernel with index arrays, and closed forms of how many there are and what they touch.

Some accesses are at elements that the loops determine, such as `val[k]`; others are at elements that the data choose,
such as `x[col[k]]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.closed_forms import Bytes, ClosedForms
from roofdsl.counts.derived import Quantity
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.quantity_of import quantity
from roofdsl.counts.work_record import StatementOperations
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import Access
from roofdsl.loops.integers import IntExpr
from roofdsl.loops.model import Array, Kernel, Traffic
from roofdsl.loops.summed import Nest, access_kernel, begins_kernel, execution_kernel, nests, whole_kernel
from roofdsl.sets.cases import Case, Cases, constant
from roofdsl.sets.quasi import Quasi, floor

PlacedAccesses = tuple[tuple[Nest, tuple[Access, ...]], ...]
"""Accesses, those of one nest together."""


class Group(Record):
    """The accesses of one array: `known` at elements that the loops determine, `chosen` at elements that the data
    choose.
    """

    array: Array
    known: PlacedAccesses
    chosen: PlacedAccesses

    @property
    def every(self) -> PlacedAccesses:
        return (*self.known, *self.chosen)

    @property
    def is_read(self) -> bool:
        return any(not a.is_write for _, some in self.every for a in some)

    @property
    def is_written(self) -> bool:
        return any(a.is_write for _, some in self.every for a in some)

    @property
    def is_always_written(self) -> bool:
        """Whether each statement writes whatever it accesses."""
        return all_written(self.every)

    @property
    def is_always_read(self) -> bool:
        """Whether each statement reads whatever it accesses, before it writes it if it does."""
        return all(places(some) == places(a for a in some if not a.is_write) for _, some in self.every)


def all_written(accesses: PlacedAccesses) -> bool:
    """Whether each statement writes whatever it accesses of the array."""
    return all(places(some) == places(a for a in some if a.is_write) for _, some in accesses)


def places(accesses: Iterable[Access]) -> frozenset[tuple[IntExpr, ...]]:
    """The different places of accesses of one array."""
    return frozenset(a.element.subscripts for a in accesses)


class Counted:
    """Forms of counts and bytes of one kernel; those of lines if a line size is given, else of elements."""

    def __init__(self, kernel: Kernel, given: Mapping[str, int], line_bytes: int | None) -> None:
        self.kernel, self.given, self.line_bytes = kernel, given, line_bytes
        self.nests = nests(kernel)
        self.closed = ClosedForms(execution_kernel(kernel, self.nests), {}, None)
        costs = iter(operation_counts(kernel))  # of the kernel itself, where a `let` and its use are in one block
        self.closed.operations = tuple(
            StatementOperations(n.statement, {}, {}) if n.bound else next(costs) for n in self.nests
        )
        self.groups = tuple(self._group(a) for a in kernel.arrays if not a.is_scalar)

    def _group(self, array: Array) -> Group:
        parts: dict[bool, list[tuple[Nest, tuple[Access, ...]]]] = {False: [], True: []}
        for nest in self.nests:
            own = [a for a in nest.accesses() if a.element.array.name == array.name]
            for hidden, found in parts.items():
                some = tuple(a for a in own if nest.is_hidden(a.element) == hidden)
                if some:
                    found.append((nest, some))
        return Group(array, tuple(parts[False]), tuple(parts[True]))

    # ---- numbers ----

    def accesses(self, of: PlacedAccesses) -> Quantity:
        """How often the places are accessed, in total; a statement that reads and writes one accesses it once."""
        weights = dict.fromkeys(map(id, self.nests), 0)
        for nest, some in of:
            weights[id(nest)] += len(places(some))
        return quantity(lambda: self.closed.weighted(weights.values()), self.given)

    def begins(self, nest: Nest) -> Quantity:
        """An upper limit on how often the innermost loop of a nest begins: conditions around it are not looked at."""
        forms = ClosedForms(begins_kernel(self.kernel, nest), {}, None)
        return quantity(lambda: forms.weighted([1]), self.given)

    def in_lines(self, q: Quantity) -> Quantity:
        """The bytes of the fewest lines that hold so many bytes; without a line size, the bytes themselves."""
        form, line = q.form, self.line_bytes
        if form is None or line is None:
            return q
        cases = tuple(
            Case(c.alternatives, floor((c.value + (line - 1)) * Fraction(1, line)) * line) for c in form.cases
        )
        return quantity(lambda: Cases(cases, form.assumes), self.given)

    # ---- bytes ----

    def traffic(self, of: PlacedAccesses, convention: Traffic) -> Bytes:
        """What crosses the boundary of a cache that holds everything. Raises NoClosedForm."""
        return ClosedForms(access_kernel(self.kernel, of), {}, self.line_bytes).compulsory(convention)

    def touched(self, array: Array, of: PlacedAccesses) -> Quantity:
        """The bytes of the different lines that accesses touch."""
        if self.reaches_all(array, of):
            return self.whole(array)  # without assuming that rows begin with lines
        return self._distinct(access_kernel(self.kernel, of), array, self.line_bytes)

    def touched_elements(self, array: Array, of: PlacedAccesses) -> Quantity:
        """The bytes of the different elements."""
        return self._distinct(access_kernel(self.kernel, of), array, None)

    def whole(self, array: Array) -> Quantity:
        """The bytes of all lines of an array."""
        return self.in_lines(self.whole_elements(array))

    def whole_elements(self, array: Array) -> Quantity:
        """The bytes of all elements of an array."""
        return self._distinct(whole_kernel(self.kernel, array), array, None)

    def reaches_all(self, array: Array, of: PlacedAccesses) -> bool:
        """Whether accesses reach every element of an array, as far as the forms tell."""
        return bool(of) and have_same_form(self.touched_elements(array, of), self.whole_elements(array))

    def _distinct(self, kernel: Kernel, array: Array, line_bytes: int | None) -> Quantity:
        forms = ClosedForms(kernel, {}, line_bytes)
        return quantity(lambda: forms.by_array()[array.name], self.given)

    def number(self, value: int) -> Quantity:
        """A quantity that does not depend on the sizes."""
        return quantity(lambda: constant(value) if value else Cases(()), self.given)

    def times(self, q: Quantity, factor: Quasi | int | Fraction) -> Quantity:
        """A quantity times a number or a polynomial."""
        form = q.form
        if form is None:
            return Quantity(None, None, q.note)
        cases = tuple(Case(c.alternatives, c.value * factor) for c in form.cases)
        return quantity(lambda: Cases(cases, form.assumes), self.given)


def have_same_form(a: Quantity, b: Quantity) -> bool:
    """Whether both have a form, the same one."""
    return a.form is not None and a.form == b.form


def smallest(of: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """The quantities that can be the smallest; one that is seen to be at least another one is left out."""
    kept: list[Quantity] = []
    for q in of:
        if not any(_is_multiple(q, other) for other in kept):
            kept = [*(other for other in kept if not _is_multiple(other, q)), q]
    return tuple(kept)


def _is_multiple(q: Quantity, of: Quantity) -> bool:
    """Whether `q` is seen to be at least `of`, as a product of `of`, sizes and a number of at least 1."""
    value, least = (None if x.form is None else x.form.single for x in (q, of))
    if value is None or least is None or len(value.terms) != 1 or len(least.terms) != 1:
        return False
    ((factors, number),) = (value * least**-1).terms
    return number >= 1 and all(power > 0 for _, power in factors)
