"""Closed forms of one kernel: W, compulsory traffic, Q(Z) at a cache size, and the plateaus of Q(Z).

This module uses only integer sets. `roofdsl.formulas.sympy_forms` turns the results into sympy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.computed_once import AT_CACHE, COMPULSORY, PLATEAUS, WORK, NoClosedForm, settled
from roofdsl.counts.counters import expanded, has_counters
from roofdsl.counts.kernel_sets import KernelSets
from roofdsl.counts.plateau_forms import Plateaus
from roofdsl.counts.streamed import streamed
from roofdsl.counts.traffic_form_records import Bytes, PlateauBytes, TermBytes
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Count, Traffic
from roofdsl.sets.access_sets import AccessSets, build
from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.cases import Case, Cases, closed_form, closed_form_of
from roofdsl.sets.count import count_symbolic
from roofdsl.sets.facts import CACHE, CacheMultiple, Fact, Row, at_least
from roofdsl.sets.library import pieces
from roofdsl.sets.misses import Fresh, Residencies, exceeding, residencies
from roofdsl.sets.parities import joined_parities
from roofdsl.sets.plateau_counter import PlateauLines
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.roots import large_sizes

__all__ = ["Bytes", "ClosedForms", "NoClosedForm", "PlateauBytes"]

CAPACITY = "Z_lines"
"""The symbol of a cache's capacity while sets are counted, in units of the greatest common divisor of all lines."""


class ClosedForms(KernelSets):
    """The closed forms of a kernel.

    Properties and methods raise NoClosedForm, also when they exceed the operation limit.
    """

    # ---- W ----

    @settled
    def _executions(self) -> list[Any]:
        return self.guard(lambda: [cardinality(d.executions) for d in self.executed.domains], WORK)

    def weighted(self, weights: Iterable[int]) -> Cases:
        """The sum over statements (textual order) of executions times weight."""
        access_sets = self.executed

        def total() -> Cases:
            found: Any = None
            for count, weight in zip(self._executions, weights, strict=True):
                if weight:
                    part = count.scale_val(weight)
                    found = part if found is None else found.add(part)
            if found is None:
                return Cases(())
            return closed_form(found, access_sets.context, access_sets.sizes.meaning(), self.facts(access_sets, 1))

        return self.guard(total, WORK)

    @settled
    def work(self) -> Cases:
        """W, all classes and types together."""
        return self.weighted(s.total for s in self.operations)

    def counters(self) -> dict[str, Cases]:
        """The totals of the kernel's `count` statements, in textual order."""
        if not has_counters(self.kernel.body):
            return {}

        def totals() -> dict[str, Cases]:
            access_sets = build(expanded(self.kernel), self.given, None)
            found: dict[str, Any] = {}
            for domain in access_sets.domains:
                statement = domain.placed.statement
                if isinstance(statement, Count):
                    part = cardinality(domain.executions).scale_val(statement.amount.evaluate(self.given))
                    found[statement.name] = part.add(found[statement.name]) if statement.name in found else part
            meaning, assumes = access_sets.sizes.meaning(), self.facts(access_sets, 1)
            return {name: closed_form(part, access_sets.context, meaning, assumes) for name, part in found.items()}

        return self.guard(totals, "the closed forms of counters")

    # ---- traffic ----

    @property
    def rows_aligned(self) -> tuple[Row, ...]:
        """The rows that are assumed to start on line boundaries."""
        return self.line_sets.rows_aligned

    def compulsory(self, convention: Traffic) -> Bytes:
        """The traffic of an unbounded cache."""
        access_sets = self.touched

        def total() -> Bytes:
            return self._bytes(access_sets, self.residencies, convention, {}, self.facts(access_sets, 1))

        return self.guard(total, COMPULSORY)

    def by_array(self) -> dict[str, Cases]:
        """The bytes of the distinct lines of each array (of its distinct elements if no line size is given)."""
        access_sets = self.touched
        lines = self.residencies

        def forms() -> dict[str, Cases]:
            assumes = self.facts(access_sets, 1)
            return {
                r.array: _form(
                    _sum([(count_symbolic([r.begun]), r.bytes)]), 0, access_sets, access_sets.sizes.meaning(), assumes
                )
                for r in lines
            }

        return self.guard(forms, "the closed forms of the arrays' bytes")

    def at_cache(self, cache_bytes: int, convention: Traffic, operations: int | None = None) -> Bytes:
        """The traffic of a cache of `cache_bytes`, within `operations` (default: the whole limit).

        Raises CommandError for a cache smaller than a line.
        """
        check_cache(self.kernel, cache_bytes, self.line_bytes)
        large: list[Quasi] = []
        return self._through(Quasi.constant(cache_bytes), {}, convention, large, operations=operations)

    def at_any_cache(self, convention: Traffic) -> Bytes:
        """Q(Z) as cases: the traffic in the kernel's parameters and Z, the cache size in bytes.

        Z is a multiple of the greatest common divisor of all lines, and at least as large as the largest line, as
        `assumes` says.
        """
        largest = self._largest_line()
        # Z is counted in units of the lines' greatest common divisor. Distances are multiples of it, too, so a cache
        # that is a few bytes larger than a multiple holds no more.
        unit = gcd(*(self.large_size_sets.line_bytes[a.name] for a in self.kernel.arrays if not a.is_scalar)) or 1
        known = f"{CAPACITY} >= {-(-largest // unit)}"
        meaning = {CAPACITY: Quasi.symbol(CACHE) * Fraction(1, unit)}
        multiple = (CacheMultiple(unit),) if unit > 1 else ()
        found = self._through(Quasi.symbol(CAPACITY) * unit, meaning, convention, None, known)
        return found.assuming((*multiple, at_least(CACHE, largest)))

    def terms_at_any_cache(
        self, convention: Traffic, cache_bytes: int | None = None, operations: int | None = None
    ) -> TermBytes:
        """Q(Z) as a sum of conditional terms, for any number of bytes Z or for `cache_bytes`.

        For kernels for which `at_any_cache` or `at_cache` finds no cases.
        """
        from roofdsl.counts.any_cache_terms import terms_at_any_cache

        check_cache(self.kernel, cache_bytes, self.line_bytes)
        largest = self._largest_line() if cache_bytes is None else 0
        limit = Quasi.symbol(CACHE) if cache_bytes is None else Quasi.constant(cache_bytes)
        access_sets, found = self.large_size_sets, self.reuses
        assumes = (*self.facts(access_sets, self.least), *([at_least(CACHE, largest)] if largest else []))
        return self.guard(
            lambda: terms_at_any_cache(access_sets, found, limit, convention, assumes), AT_CACHE, operations
        )

    def _largest_line(self) -> int:
        """The longest line of the arrays, in bytes. Raises NoClosedForm if Z cannot stand for the cache."""
        if any(p.name == CACHE for p in self.kernel.parameters):
            raise NoClosedForm(f"{CACHE}, the size of the cache, is also a parameter of the kernel")
        return max((self.large_size_sets.line_bytes[a.name] for a in self.kernel.arrays if not a.is_scalar), default=1)

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
        """The traffic of a cache of `cache` bytes, in terms of the names that `meaning` explains; `known`: isl text of
        what holds for them.
        """
        access_sets, found = self.large_size_sets, self.reuses

        def total() -> Bytes:
            import islpy as isl

            # During the count, `large` collects lower bounds of sizes: from there on, all of a piece whose condition is
            # not affine misses. `fresh` names products of sizes. Both are known only when all arrays are counted, and
            # then narrow the sizes.
            fresh = Fresh()
            rule = exceeding(cache, fresh, large)
            counted = tuple(residencies(r, rule, stores=convention != "once") for r in found)
            in_sizes = access_sets.sizes.meaning()
            names = {k: v.substitute(in_sizes) for k, v in fresh.meaning().items()} | dict(meaning)
            context, far = large_sizes(large or [], access_sets.context, access_sets.sizes.meaning())
            context = context.intersect(fresh.context(self.least))
            context = context.intersect(isl.Set(f"[{', '.join(meaning)}] -> {{ : {known} }}"))
            # What was assumed is stated: `far` becomes the assumptions of the form.
            assumes = (*self.facts(access_sets, self.least), *far)
            return self._bytes(replace(access_sets, context=context), counted, convention, names, assumes)

        return self.guard(total, AT_CACHE, operations)

    def plateau_forms(
        self, convention: Traffic, given: Mapping[str, int] | None = None, operations: int | None = None
    ) -> tuple[PlateauBytes, ...]:
        """The plateaus of Q(Z), from the smallest cache to an unbounded one, within `operations` as in `at_cache`.

        If they depend on the remainders of the sizes, only those that agree with the sizes `given` are returned, or all
        groups, one after another.
        """
        return self.guard(lambda: self.plateaus(convention).plateau_forms(given or {}), PLATEAUS, operations)

    def plateaus(self, convention: Traffic) -> Plateaus:
        """The object that finds the plateaus.

        Raises NoClosedForm, and CannotCount, as `sets.plateaus.check_large` does. Its methods raise CannotCount, and
        what counting raises.
        """
        if convention not in self._plateaus:
            self._plateaus[convention] = Plateaus(self, convention)
        return self._plateaus[convention]

    @cached_property
    def _plateaus(self) -> dict[str, Plateaus]:
        return {}

    # ---- shared ----

    def _bytes(
        self,
        access_sets: AccessSets,
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
        return self._lines_bytes(access_sets, lines, convention, more, assumes)

    def _lines_bytes(
        self,
        access_sets: AccessSets,
        lines: tuple[PlateauLines, ...],
        convention: Traffic,
        more: Mapping[str, Quasi],
        assumes: tuple[Fact, ...],
    ) -> Bytes:
        meaning = {**access_sets.sizes.meaning(), **more}
        scalar_loads, scalar_stores = scalar_bytes(self.kernel)
        past = streamed(access_sets)
        if convention == "once":
            total = _sum([*((r.begun, r.bytes) for r in lines), *past])
            return Bytes(None, None, _form(total, scalar_stores, access_sets, meaning, assumes))
        loads = _sum((r.begun if convention == "write_allocate" else r.begun_by_read, r.bytes) for r in lines)
        stores = _sum([*((r.stored, r.bytes) for r in lines), *past])
        both = _sum((part, 1) for part in (loads, stores))
        return Bytes(
            _form(loads, scalar_loads, access_sets, meaning, assumes),
            _form(stores, scalar_stores, access_sets, meaning, assumes),
            _form(both, scalar_loads + scalar_stores, access_sets, meaning, assumes),
        )


def _sum(parts: Iterable[tuple[Any, int]]) -> Any:
    total: Any = None
    for count, weight in parts:
        if count is not None:
            scaled = count.scale_val(weight)
            total = scaled if total is None else total.add(scaled)
    return total


def _form(
    count: Any, constant: int, access_sets: AccessSets, meaning: Mapping[str, Quasi], assumes: tuple[Fact, ...]
) -> Cases:
    if count is None:
        return Cases((Case((), Quasi.constant(constant)),) if constant else (), assumes)
    if constant:
        import islpy as isl

        count = count.add(isl.PwQPolynomial(f"{{ {constant} }}").intersect_params(access_sets.context.params()))
    parts = joined_parities([(domain.params(), value) for domain, value in pieces(count)], access_sets.context)
    return closed_form_of(parts, access_sets.context, meaning, assumes)
