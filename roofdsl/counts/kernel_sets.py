"""The integer sets of one kernel from which its closed forms are counted; each is computed once, on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.computed_once import AT_CACHE, COMPULSORY, PLATEAUS, NoClosedForm, form_within, settled
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.work_record import StatementOperations
from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Const, Sym
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.transform import apply
from roofdsl.sets.access_sets import AccessSets, build
from roofdsl.sets.compulsory import compulsory
from roofdsl.sets.facts import Fact, RowsAligned, at_least
from roofdsl.sets.library import MAX_OPERATIONS
from roofdsl.sets.misses import Residencies
from roofdsl.sets.plateaus import Growth, exact_domains, growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse, reuse

T = TypeVar("T")

LEAST = 4
"""Closed forms of Q(Z) are stated for symbolic sizes of at least this; more if loop bounds contain numbers other than
0.
"""


class KernelSets:
    """The sets of `kernel` (with its directives not yet applied), with some parameters given as numbers.

    `operations` limits the integer-set operations of each quantity. Raises what `numbers`, `check_cache` and `apply`
    raise. Properties raise NoClosedForm, also when they exceed the operation limit.
    """

    def __init__(
        self,
        kernel: Kernel,
        given: Mapping[str, int],
        line_bytes: int | None = None,
        operations: int = MAX_OPERATIONS,
    ) -> None:
        self._limit = operations
        self.given = numbers(kernel, given, complete=False)
        check_cache(kernel, None, line_bytes)
        self.kernel = apply(kernel)
        self.line_bytes = line_bytes
        self.operations: tuple[StatementOperations, ...] = operation_counts(self.kernel)

    @settled
    def element_sets(self) -> AccessSets:
        """All accesses, each to an element."""
        return self.guard(lambda: build(self.kernel, self.given, None), "the instances")

    @settled
    def line_sets(self) -> AccessSets:
        """All accesses, each to a line if a line size is given."""
        if self.line_bytes is None:
            return self.element_sets
        return self.guard(lambda: build(self.kernel, self.given, self.line_bytes), "the instances")

    @settled
    def executed(self) -> AccessSets:
        """`element_sets`; if they cannot be built, those of the same accesses in the order without tile loops."""
        try:
            return self.element_sets
        except NoClosedForm as error:
            return self._without_tiles(None, error)

    @settled
    def touched(self) -> AccessSets:
        """`line_sets`; if they cannot be built, those of the same accesses in the order without tile loops."""
        if self.line_bytes is None:
            return self.executed
        try:
            return self.line_sets
        except NoClosedForm as error:
            return self._without_tiles(self.line_bytes, error)

    def _without_tiles(self, line_bytes: int | None, error: NoClosedForm) -> AccessSets:
        """The accesses in the order without tile loops, if that is another legal order; raises `error` if not.

        W and the compulsory traffic are the same in both orders.
        """
        from roofdsl.checks.untile import untiled

        plain = untiled(self.kernel)
        if plain is self.kernel:
            raise error
        return self.guard(lambda: build(plain, self.given, line_bytes), "the instances")

    @settled
    def residencies(self) -> tuple[Residencies, ...]:
        """The loads and stores of each array with an unbounded cache."""
        return self.guard(lambda: compulsory(self.touched), COMPULSORY)

    @cached_property
    def least(self) -> int:
        """The size from which on Q(Z) is stated."""
        loops = [loop for placed in statements(self.kernel.body) for loop in placed.loops]
        nodes = (node for loop in loops for bound in (loop.start, loop.stop) for node in bound.walk())
        largest = max((abs(node.value) for node in nodes if isinstance(node, Const)), default=0)
        return LEAST if largest == 0 else 2 * min(8, largest) + 2 * LEAST

    @settled
    def large_size_sets(self) -> AccessSets:
        """`line_sets` for symbolic sizes from `least` on."""
        return self.guard(lambda: build(self.kernel, self.given, self.line_bytes, self.least), "the instances")

    def line_sets_of(self, *, large: bool) -> AccessSets:
        """The accesses to lines, for sizes from `least` on or for all sizes."""
        return self.large_size_sets if large else self.line_sets

    @settled
    def reuses(self) -> tuple[ArrayReuse, ...]:
        """The reuse of each array for large sizes."""
        return self.guard(lambda: reuse(self.large_size_sets), AT_CACHE)

    @settled
    def pieces(self) -> tuple[ArrayReuse, ...]:
        """The reuse whose pieces form the plateaus."""
        return self.guard(lambda: exact_domains(self.reuses), PLATEAUS)

    @cached_property
    def order(self) -> Growth:
        """Which parameters are tile sizes, assumed to be far below the others."""
        loops = [loop for placed in statements(self.kernel.body) for loop in placed.loops]
        return growth(self.large_size_sets.sizes, [loop.step.name for loop in loops if isinstance(loop.step, Sym)])

    def facts(self, access_sets: AccessSets, least: int) -> tuple[Fact, ...]:
        """The assumptions of forms that hold for sizes from `least` on."""
        sizes, out = access_sets.sizes, list[Fact]()
        if least > 1:
            tiled = {n for n, _ in sizes.tiled}
            beyond = {n: sizes.beyond.get(n, 0) for n in sizes.symbols}
            out += [at_least(n, least * sizes.divided.get(n, 1) + beyond[n]) for n in sizes.symbols if n not in tiled]
            out += [at_least(n, Quasi.symbol(b) * least + beyond[n]) for n, b in sorted(sizes.tiled)]
        out += [at_least(b, low) for b, low in sizes.least_tile.items() if low > least]
        if access_sets.rows_aligned:
            out.append(RowsAligned(access_sets.rows_aligned).at(self.given))
        return tuple(out)

    def guard(self, compute: Callable[[], T], what: str, operations: int | None = None) -> T:
        """The result of `compute` within the limit. Raises NoClosedForm, as `form_within`."""
        return form_within(compute, f"{what} of kernel {self.kernel.name}", min(self._limit, operations or self._limit))
