"""Q(Z) for every Z as a sum of conditional terms, for kernels with too many cases for a partition of all sizes."""

from __future__ import annotations

from typing import Any

from roofdsl.counts.streamed import executions_past_caches
from roofdsl.counts.term_sums import Names, TermSum
from roofdsl.counts.traffic_form_records import TermBytes
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Traffic
from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.crossings import Crossings, Longest
from roofdsl.sets.facts import Fact
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse
from roofdsl.sets.terms import MADE, Terms
from roofdsl.sets.write_backs import stored


def terms_at_any_cache(
    access_sets: AccessSets,
    reuses: tuple[ArrayReuse, ...],
    limit: Quasi,
    convention: Traffic,
    assumes: tuple[Fact, ...],
) -> TermBytes:
    """The traffic of a cache of `limit` bytes (a symbol or a number). Raises CannotCount and TooHard."""
    if any(p.name.startswith(MADE) for p in access_sets.kernel.parameters):
        raise CannotCount(f"parameter names that begin with {MADE} are reserved")
    crossings = Crossings(access_sets.context, limit, max((r.bytes for r in reuses), default=1))
    scalar_loads, scalar_stores = scalar_bytes(access_sets.kernel)
    loads, stores = TermSum(0 if convention == "once" else scalar_loads), TermSum(scalar_stores)
    for reuse in reuses:
        by_read = convention == "load_store"
        begun: list[tuple[Any, Longest]] = [(reuse.cold, ()), *((domain, (d,)) for domain, d in reuse.distances)]
        for domain, distances in begun:
            chosen = domain.intersect(reuse.reading) if by_read else domain
            loads.add(crossings.terms(chosen, distances), reuse.bytes)
        if convention != "once":
            for domain, distances in stored(reuse):
                stores.add(crossings.terms(domain, distances), reuse.bytes)
    past = TermSum(scalar_stores)
    for executions, size in executions_past_caches(access_sets):
        for into in (stores, past):
            into.add(crossings.terms(executions, ()), size)
    names = Names(access_sets.sizes.meaning(), limit)

    def made(*sums: TermSum) -> Terms:
        return names.terms(sums, crossings.definitions).assuming(assumes)

    if convention == "once":
        return TermBytes(None, None, made(loads, past))
    total = made(loads, stores)  # first: names are numbered as they appear in it
    return TermBytes(made(loads), made(stores), total)
