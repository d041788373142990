"""Q(Z) with Z a symbol, from stack distances in lines for symbolic sizes: a sum of conditional terms.

Visits at one distance miss in a cache of Z bytes if the distance is greater than Z. Of visits whose distances grow or
fall evenly, those beyond an integer root do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from roofdsl.counts.computed_once import NoClosedForm
from roofdsl.counts.lines.distance_records import DROPPED, KINDS, READ, STORED, WRITTEN, Histogram, Steps
from roofdsl.counts.lines.symbolic import same
from roofdsl.counts.term_sums import Names, TermSum
from roofdsl.counts.traffic_form_records import TermBytes
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.sets.facts import CACHE, Fact
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import MADE, Root, Span, Term, Terms


class DistanceTerms:
    """The terms of a histogram, by kind of visit: lines that miss."""

    def __init__(self, found: Histogram, quasi: Callable[[Any], Quasi], rises: Callable[[Any], bool]) -> None:
        """quasi: a number of the histogram in the kernel's parameters; rises: whether a step is positive.

        Raises NoClosedForm.
        """
        self.least_bytes, self._quasi, self._rises = found.least_bytes, quasi, rises
        self.cache = Quasi.symbol(CACHE)
        self._roots: dict[tuple[Any, ...], Root] = {}
        self._spans: dict[Quasi, Span] = {}
        self.terms: dict[int, list[Term]] = {kind: [] for kind in KINDS}
        for array in found.arrays:
            for kind in KINDS:
                for (first, steps), weight in array.rest[kind].items():
                    self.terms[kind] += self._beyond(first, steps, quasi(weight))
        for part in found.between:
            if not same(part.low, part.high):
                raise NoClosedForm("stack distances that differ in a way that no closed form expresses")
            self.terms[part.kind] += self._beyond(part.low, (), quasi(part.count))

    @property
    def definitions(self) -> tuple[Root, ...]:
        return tuple(self._roots.values())

    def _beyond(self, first: Any, steps: Steps, weight: Quasi) -> Iterator[Term]:
        """`weight` for each distance that exceeds Z, among `first` and those that the steps lead to."""
        distance = self._quasi(first)
        if not steps:
            if not distance.is_constant() or distance.constant_value() > self.least_bytes:
                yield Term(weight, (((distance - self.cache - 1, False),),))
            return
        if len(steps) > 2:
            raise NoClosedForm("stack distances that grow along three loops")
        over = None
        (step, count), *others = steps
        for slope, values in others:
            over = self._span(self._quasi(values) - 1)
            distance += self._quasi(slope) * Quasi.symbol(over.name)
        last = self._quasi(count) - 1
        root = self._root(distance, self._quasi(step), last, rises=self._rises(step))
        at = Quasi.symbol(root.name)
        yield Term(weight * (last - at if root.rises else at), (), over)

    def _span(self, last: Quasi) -> Span:
        return self._spans.setdefault(last, Span(f"{MADE}i{len(self._spans)}", Quasi.constant(0), last))

    def _root(self, first: Quasi, step: Quasi, last: Quasi, *, rises: bool) -> Root:
        """The last of the steps 0, 1, ..., `last`, counted from the small distances, at which the distance fits."""
        key = first, step, last
        if key not in self._roots:
            name = f"{MADE}r{len(self._roots)}"
            of = first + step * Quasi.symbol(name)
            self._roots[key] = Root(name, of, self.cache, Quasi.constant(0), last, rises)
        return self._roots[key]


def traffic(
    kernel: Kernel,
    found: DistanceTerms,
    always: dict[int, Quasi],
    convention: Traffic,
    facts: tuple[Fact, ...],
    *,
    line_bytes: int,
    streamed: Quasi,
) -> TermBytes:
    """The traffic of a cache of Z bytes. always: lines that miss in every cache, by kind; streamed: bytes of stores
    that bypass the caches.
    """
    if any(p.name.startswith(MADE) for p in kernel.parameters):
        raise NoClosedForm(f"parameter names that begin with {MADE} are reserved")
    if any(p.name == CACHE for p in kernel.parameters):
        raise NoClosedForm(f"{CACHE}, the size of the cache, is also a parameter of the kernel")
    names = Names({p.name: Quasi.symbol(p.name) for p in kernel.parameters}, found.cache)
    scalar_loads, scalar_stores = scalar_bytes(kernel)

    def added(kinds: tuple[int, ...], scalars: int, past: Quasi) -> TermSum:
        out = TermSum(scalars)
        out.add([Term(past)], 1)
        for kind in kinds:
            out.add([Term(always.get(kind, Quasi.constant(0))), *found.terms[kind]], line_bytes)
        return out

    def made(*sums: TermSum) -> Terms:
        return names.terms(sums, found.definitions).assuming(facts)

    nothing = Quasi.constant(0)
    if convention == "once":
        return TermBytes(None, None, made(added((READ, WRITTEN), scalar_stores, streamed)))
    loads = added((READ,) if convention == "load_store" else (READ, WRITTEN), scalar_loads, nothing)
    stores = added((STORED, DROPPED), scalar_stores, streamed)
    total = made(loads, stores)  # first: names are numbered as they appear in it
    return TermBytes(made(loads), made(stores), total)
