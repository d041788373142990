"""Closed forms in which some parameters are numbers, derived with symbols first.

With a symbolic tile size, the loops over tiles stay affine (docs/rules.md, step S6). So reuse is derived with symbols,
and the numbers are inserted into its distances before misses are counted. For example, 16*b*n is a product of two
unknown sizes; at b = 16 it becomes 256*n, and a cache of a given size then has a closed form in n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.computed_once import AT_CACHE
from roofdsl.counts.plateau_forms import Plateaus
from roofdsl.formulas.fact_text import facts_text
from roofdsl.lang.record import replace as replace_record
from roofdsl.loops.model import Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.facts import Compared, Fact, decided, fixed
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse
from roofdsl.sets.sizes import Sizes


class FixedForms(ClosedForms):
    """Q(Z) of a kernel with numbers for some parameters that are symbols in `base`.

    Compulsory traffic, W and counters are those of `base`, in symbols. Q(Z) raises NoClosedForm if the numbers are
    smaller than the sizes from which the forms of `base` hold, or if one of them is for a size that is known to be a
    multiple of a number.
    """

    def __init__(self, base: ClosedForms, fixed: Mapping[str, int]) -> None:
        super().__init__(base.kernel, base.given, base.line_bytes)
        self._base = base
        values = numbers(base.kernel, {**base.given, **fixed}, complete=False)
        self._values = {n: v for n, v in values.items() if n not in base.given}

    @cached_property
    def _names(self) -> dict[str, int]:
        sizes = self._base.large_size_sets.sizes
        if sizes.divided.keys() & self._values.keys():
            raise NoClosedForm("a size that is a multiple of a number is given")
        return {sizes.symbol_text(n): v for n, v in self._values.items()}

    @cached_property
    def _here(self) -> Any:
        import islpy as isl

        names = self._names
        return isl.Set(f"[{', '.join(names)}] -> {{ : {' and '.join(f'{n} = {v}' for n, v in names.items())} }}")

    @cached_property
    def large_size_sets(self) -> AccessSets:
        access_sets = self._base.large_size_sets
        context = access_sets.context.intersect(self._here)
        facts = self._base.facts(access_sets, self._base.least)
        if context.is_empty() or any(decided(fact.at(self._values)) is False for fact in facts):
            raise NoClosedForm(f"closed forms hold for {facts_text(facts)}")
        return replace(access_sets, context=context, sizes=self._sizes(access_sets.sizes))

    def _sizes(self, sizes: Sizes) -> Sizes:
        put = {n: Quasi.constant(v) for n, v in self._values.items()}
        known = sizes.numbers, sizes.symbols, sizes.divided, sizes.tiled, sizes.least_tile, sizes.beyond
        return _FixedSizes(*known, put)

    def plateaus(self, convention: Traffic) -> Plateaus:
        """The plateaus of Q(Z) with symbols for all parameters; they are leading terms for sizes far apart."""
        return self._base.plateaus(convention)

    @cached_property
    def reuses(self) -> tuple[ArrayReuse, ...]:
        put = {n: Quasi.constant(v) for n, v in self._names.items()}
        return self.guard(lambda: tuple(_restricted(r, self._here, put) for r in self._base.reuses), AT_CACHE)

    def facts(self, access_sets: AccessSets, least: int) -> tuple[Fact, ...]:
        if least == 1:
            return super().facts(access_sets, least)
        here = (fact.at(self._values) for fact in super().facts(access_sets, least))
        left = (f for f in here if not (isinstance(f, Compared) and decided(f)))
        return (*(fixed(n, v) for n, v in self._values.items()), *left)


@dataclass(frozen=True)
class _FixedSizes(Sizes):
    """Sizes in which isl parameters stand for numbers, if these are given."""

    fixed: Mapping[str, Quasi] = field(default_factory=dict)

    def meaning(self) -> dict[str, Quasi]:
        return {name: value.substitute(self.fixed) for name, value in super().meaning().items()}


def _restricted(reuse: ArrayReuse, here: Any, put: Mapping[str, Quasi]) -> ArrayReuse:
    """`reuse` on the parameters `here` (isl parameter set), which have the numbers of `put` there."""

    def within(pieces: tuple[tuple[Any, Quasi], ...]) -> tuple[tuple[Any, Quasi], ...]:
        cut = ((domain.intersect_params(here), value.substitute(put)) for domain, value in pieces)
        return tuple((domain, value) for domain, value in cut if not domain.is_empty())

    return replace_record(
        reuse,
        touch=reuse.touch.intersect_params(here),
        all=reuse.all.intersect_params(here),
        writes=reuse.writes.intersect_params(here),
        reading=reuse.reading.intersect_params(here),
        previous=reuse.previous.intersect_params(here),
        cold=reuse.cold.intersect_params(here),
        distances=within(reuse.distances),
        end_distances=None if reuse.end_distances is None else within(reuse.end_distances),
    )
