"""Closed forms of one kernel: W, compulsory traffic, Q(Z) at a cache, and the plateaus of Q(Z).

Works on integer sets only; `roofdsl.formulas.expressions` turns the results into sympy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any, TypeVar

from roofdsl.counts.counters import expanded, has_counters
from roofdsl.counts.operations import StatementOperations, operation_counts
from roofdsl.counts.setting import check_cache, numbers
from roofdsl.counts.settled import AT_CACHE, COMPULSORY, PLATEAUS, WORK, NoClosedForm, form_within, settled
from roofdsl.counts.traffic import Bytes, Regime, TermBytes
from roofdsl.loops.accesses import scalar_bytes, statements
from roofdsl.loops.integers import Const, Sym
from roofdsl.loops.model import Count, Kernel, Traffic
from roofdsl.loops.transform import apply
from roofdsl.sets.cases import Case, Cases, closed_form
from roofdsl.sets.compulsory import compulsory
from roofdsl.sets.count import count_symbolic
from roofdsl.sets.facts import CACHE, CacheMultiple, Fact, Row, RowsAligned, at_least
from roofdsl.sets.library import MAX_OPERATIONS, cardinality
from roofdsl.sets.misses import Fresh, Residencies, exceeding, residencies
from roofdsl.sets.plateaus import Growth, PlateauLines, exact_domains, growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse, reuse
from roofdsl.sets.roots import large_sizes
from roofdsl.sets.stream import Stream, build

if TYPE_CHECKING:
    from roofdsl.counts.regimes import Plateaus

T = TypeVar("T")

LEAST = 4
"""Symbolic sizes from which a closed form of Q(Z) is stated, at least; larger where offsets are."""


__all__ = ["Bytes", "ClosedForms", "NoClosedForm", "Regime"]

CAPACITY = "Z_lines"
"""The symbol of a cache's capacity in the smallest lines while sets are counted."""


class ClosedForms:
    """The closed forms of `kernel` (directives not yet applied) with some parameters given as numbers.

    `operations` limits the integer-set operations of each quantity. Raises what `numbers` and `check_cache` raise;
    properties and methods raise NoClosedForm, beyond the operation limit too.
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

    # ---- W ----

    @settled
    def _stream(self) -> Stream:
        return self._guard(lambda: build(self.kernel, self.given, None), "the instances")

    @settled
    def _executions(self) -> list[Any]:
        return self._guard(lambda: [cardinality(d.executions) for d in self._stream.domains], WORK)

    def weighted(self, weights: Iterable[int]) -> Cases:
        """The sum over statements (textual order) of executions times weight."""
        stream = self._stream

        def total() -> Cases:
            found: Any = None
            for count, weight in zip(self._executions, weights, strict=True):
                if weight:
                    part = count.scale_val(weight)
                    found = part if found is None else found.add(part)
            if found is None:
                return Cases(())
            return closed_form(found, stream.context, stream.sizes.meaning(), self._facts(stream, 1))

        return self._guard(total, WORK)

    @settled
    def work(self) -> Cases:
        """W, all classes and types together."""
        return self.weighted(s.total for s in self.operations)

    def counters(self) -> dict[str, Cases]:
        """The totals of the kernel's `count` statements, in order of the text."""
        if not has_counters(self.kernel.body):
            return {}

        def totals() -> dict[str, Cases]:
            stream = build(expanded(self.kernel), self.given, None)
            found: dict[str, Any] = {}
            for domain in stream.domains:
                statement = domain.placed.statement
                if isinstance(statement, Count):
                    part = cardinality(domain.executions).scale_val(statement.amount.evaluate(self.given))
                    found[statement.name] = part.add(found[statement.name]) if statement.name in found else part
            meaning, assumes = stream.sizes.meaning(), self._facts(stream, 1)
            return {name: closed_form(part, stream.context, meaning, assumes) for name, part in found.items()}

        return self._guard(totals, "the closed forms of counters")

    # ---- traffic ----

    @settled
    def _line_stream(self) -> Stream:
        if self.line_bytes is None:
            return self._stream
        return self._guard(lambda: build(self.kernel, self.given, self.line_bytes), "the instances")

    @property
    def rows_aligned(self) -> tuple[Row, ...]:
        """The rows that are taken to start on line boundaries."""
        return self._line_stream.rows_aligned

    @settled
    def _compulsory(self) -> tuple[Residencies, ...]:
        return self._guard(lambda: compulsory(self._line_stream), COMPULSORY)

    def compulsory(self, convention: Traffic) -> Bytes:
        """The traffic of a cache without bound."""
        stream = self._line_stream

        def total() -> Bytes:
            return self._bytes(stream, self._compulsory, convention, {}, self._facts(stream, 1))

        return self._guard(total, COMPULSORY)

    def by_array(self) -> dict[str, Cases]:
        """Bytes of distinct lines (elements where no line size is given) of each array."""
        stream = self._line_stream
        lines = self._compulsory

        def forms() -> dict[str, Cases]:
            assumes = self._facts(stream, 1)
            return {
                r.array: _form(_sum([(count_symbolic([r.begun]), r.bytes)]), 0, stream, stream.sizes.meaning(), assumes)
                for r in lines
            }

        return self._guard(forms, "the closed forms of the arrays' bytes")

    @cached_property
    def _least(self) -> int:
        loops = [loop for placed in statements(self.kernel.body) for loop in placed.loops]
        nodes = (node for loop in loops for bound in (loop.start, loop.stop) for node in bound.walk())
        largest = max((abs(node.value) for node in nodes if isinstance(node, Const)), default=0)
        return LEAST if largest == 0 else 2 * min(8, largest) + 2 * LEAST

    @settled
    def _large(self) -> Stream:
        return self._guard(lambda: build(self.kernel, self.given, self.line_bytes, self._least), "the instances")

    @settled
    def _reuse(self) -> tuple[ArrayReuse, ...]:
        return self._guard(lambda: reuse(self._large), AT_CACHE)

    @settled
    def pieces(self) -> tuple[ArrayReuse, ...]:
        """The reuse whose pieces make up the plateaus."""
        return self._guard(lambda: exact_domains(self._reuse), PLATEAUS)

    def at_cache(self, cache_bytes: int, convention: Traffic, operations: int | None = None) -> Bytes:
        """The traffic of a cache of `cache_bytes`, within `operations`, by default all there are.

        Raises CommandError for a cache smaller than a line.
        """
        check_cache(self.kernel, cache_bytes, self.line_bytes)
        large: list[Quasi] = []
        return self._through(Quasi.constant(cache_bytes), {}, convention, large, operations=operations)

    def at_any_cache(self, convention: Traffic) -> Bytes:
        """Q(Z): the traffic in the kernel's parameters and `Z`, the bytes of the cache, a multiple of the smallest
        line and no smaller than the largest, as `assumes` says.
        """
        largest = self._largest_line()
        unit = gcd(*(self._large.line_bytes[a.name] for a in self.kernel.arrays if not a.is_scalar)) or 1
        known = f"{CAPACITY} >= {-(-largest // unit)}"
        meaning = {CAPACITY: Quasi.symbol(CACHE) * Fraction(1, unit)}
        multiple = (CacheMultiple(unit),) if unit > 1 else ()
        found = self._through(Quasi.symbol(CAPACITY) * unit, meaning, convention, None, known)
        return found.assuming((*multiple, at_least(CACHE, largest)))

    def at_every_cache(
        self, convention: Traffic, cache_bytes: int | None = None, operations: int | None = None
    ) -> TermBytes:
        """Q(Z) for any number of bytes `Z`, or for `cache_bytes`, as a sum of terms, each where its condition holds:
        for kernels of which `at_any_cache`, or `at_cache`, finds no cases that hold together.
        """
        from roofdsl.counts.every_cache import at_every_cache

        check_cache(self.kernel, cache_bytes, self.line_bytes)
        largest = self._largest_line() if cache_bytes is None else 0
        limit = Quasi.symbol(CACHE) if cache_bytes is None else Quasi.constant(cache_bytes)
        stream, found = self._large, self._reuse
        assumes = (*self._facts(stream, self._least), *([at_least(CACHE, largest)] if largest else []))
        return self._guard(lambda: at_every_cache(stream, found, limit, convention, assumes), AT_CACHE, operations)

    def _largest_line(self) -> int:
        """Of the arrays, in bytes. Raises NoClosedForm where Z cannot stand for the cache."""
        if any(p.name == CACHE for p in self.kernel.parameters):
            raise NoClosedForm(f"{CACHE}, the size of the cache, is also a parameter of the kernel")
        return max((self._large.line_bytes[a.name] for a in self.kernel.arrays if not a.is_scalar), default=1)

    def _through(
        self,
        cache: Quasi,
        meaning: Mapping[str, Quasi],
        convention: Traffic,
        large: list[Quasi] | None,
        known: str = "true",
        *,
        operations: int | None = None,
    ) -> Bytes:
        """The traffic of a cache of `cache` bytes, in terms of what has a `meaning`; `known`: isl text on it."""
        stream, found = self._large, self._reuse

        def total() -> Bytes:
            import islpy as isl

            fresh = Fresh()
            rule = exceeding(cache, fresh, large)
            counted = tuple(residencies(r, rule, stores=convention != "once") for r in found)
            in_sizes = stream.sizes.meaning()
            names = {k: v.substitute(in_sizes) for k, v in fresh.meaning().items()} | dict(meaning)
            context, far = large_sizes(large or [], stream.context, stream.sizes.meaning())
            context = context.intersect(fresh.context(self._least))
            context = context.intersect(isl.Set(f"[{', '.join(meaning)}] -> {{ : {known} }}"))
            assumes = (*self._facts(stream, self._least), *far)
            return self._bytes(replace(stream, context=context), counted, convention, names, assumes)

        return self._guard(total, AT_CACHE, operations)

    @cached_property
    def order(self) -> Growth:
        """Which parameters are tile sizes, taken to be far below the others."""
        loops = [loop for placed in statements(self.kernel.body) for loop in placed.loops]
        return growth(self._large.sizes, [loop.step.name for loop in loops if isinstance(loop.step, Sym)])

    def regimes(self, convention: Traffic, given: Mapping[str, int] | None = None) -> tuple[Regime, ...]:
        """The plateaus of Q(Z), from the smallest cache to one without bound; where they differ by the remainders of
        sizes, those of the sizes `given`, or one group after the other.
        """
        return self._guard(lambda: self.plateaus(convention).regimes(given or {}), PLATEAUS)

    def plateaus(self, convention: Traffic) -> Plateaus:
        """What finds the plateaus. Raises NoClosedForm, and its methods CannotCount and what counting raises."""
        from roofdsl.counts.regimes import Plateaus

        if convention not in self._plateaus:
            self._plateaus[convention] = Plateaus(self, convention)
        return self._plateaus[convention]

    @cached_property
    def _plateaus(self) -> dict[str, Plateaus]:
        return {}

    # ---- shared ----

    def _bytes(
        self,
        stream: Stream,
        counted: tuple[Residencies, ...],
        convention: Traffic,
        more: Mapping[str, Quasi],
        assumes: tuple[Fact, ...],
    ) -> Bytes:

        lines = tuple(
            PlateauLines(
                r.array,
                r.bytes,
                count_symbolic([r.begun]),
                None if convention != "load_store" else count_symbolic([r.begun_by_read]),
                None if convention == "once" else count_symbolic(r.stored),
            )
            for r in counted
        )
        return self._lines_bytes(stream, lines, convention, more, assumes)

    def _lines_bytes(
        self,
        stream: Stream,
        lines: tuple[PlateauLines, ...],
        convention: Traffic,
        more: Mapping[str, Quasi],
        assumes: tuple[Fact, ...],
    ) -> Bytes:
        meaning = {**stream.sizes.meaning(), **more}
        scalar_loads, scalar_stores = scalar_bytes(self.kernel)
        if convention == "once":
            total = _sum((r.begun, r.bytes) for r in lines)
            return Bytes(None, None, _form(total, scalar_stores, stream, meaning, assumes))
        loads = _sum((r.begun if convention == "write_allocate" else r.begun_by_read, r.bytes) for r in lines)
        stores = _sum((r.stored, r.bytes) for r in lines)
        both = loads if stores is None else (stores if loads is None else loads.add(stores))
        return Bytes(
            _form(loads, scalar_loads, stream, meaning, assumes),
            _form(stores, scalar_stores, stream, meaning, assumes),
            _form(both, scalar_loads + scalar_stores, stream, meaning, assumes),
        )

    def _facts(self, stream: Stream, least: int) -> tuple[Fact, ...]:
        """What forms take for granted that hold for sizes of `least` and more."""
        sizes, out = stream.sizes, list[Fact]()
        if least > 1:
            tiled = {n for n, _ in sizes.tiled}
            out += [at_least(n, least * sizes.divided.get(n, 1)) for n in sizes.symbols if n not in tiled]
            out += [at_least(n, Quasi.symbol(b) * least) for n, b in sorted(sizes.tiled)]
        out += [at_least(b, low) for b, low in sizes.least_tile.items() if low > least]
        if stream.rows_aligned:
            out.append(RowsAligned(stream.rows_aligned).at(self.given))
        return tuple(out)

    def _guard(self, compute: Callable[[], T], what: str, operations: int | None = None) -> T:
        return form_within(compute, f"{what} of kernel {self.kernel.name}", min(self._limit, operations or self._limit))


def _sum(parts: Iterable[tuple[Any, int]]) -> Any:
    total: Any = None
    for count, weight in parts:
        if count is not None:
            scaled = count.scale_val(weight)
            total = scaled if total is None else total.add(scaled)
    return total


def _form(count: Any, constant: int, stream: Stream, meaning: Mapping[str, Quasi], assumes: tuple[Fact, ...]) -> Cases:
    if count is None:
        return Cases((Case((), Quasi.constant(constant)),) if constant else (), assumes)
    if constant:
        import islpy as isl

        count = count.add(isl.PwQPolynomial(f"{{ {constant} }}").intersect_params(stream.context.params()))
    return closed_form(count, stream.context, meaning, assumes)
