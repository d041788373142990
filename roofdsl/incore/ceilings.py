"""Bounds on the time of the executed instructions, one cause after another: each is a ceiling that can be drawn.

All are sums over the executed instructions. They leave out dependences, and the ends of short loops, which only the
clock (`window.py`) models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from roofdsl.incore.classes import Kind, Work
from roofdsl.incore.rates import DIVIDER, Rates
from roofdsl.incore.walk import Walked
from roofdsl.lang.record import Record

_ARITHMETIC = ("add", "mul", "fma", "max", "div", "sqrt")
_BITS = {"f64": 64, "f32": 32, "f16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8}
UNITS = 4
"""The vector units that a machine can state, p0 to p3."""


class Executed(Record):
    """One instruction of the text: its work, how often it runs, and how many of its accesses cross lines."""

    work: Work
    times: float
    splits: float


def executed(walked: Walked) -> list[Executed]:
    """Every instruction that runs."""
    found = []
    for start, times in walked.totals.blocks.items():
        block = walked.flow.blocks[start]
        found += [Executed(walked.works[k], times, walked.totals.splits[k]) for k in range(block.start, block.stop)]
    return found


def lanes(kind: Kind) -> int:
    """The number of elements that an instruction computes."""
    return max(1, kind.bits // _BITS.get(kind.type, 64))


def operations(all_executed: Iterable[Executed]) -> Counter[tuple[str, str]]:
    """Floating-point operations on elements, by class and type; a fused pair is one `fma`."""
    found: Counter[tuple[str, str]] = Counter()
    for e in all_executed:
        if e.work.kind.cls in _ARITHMETIC and e.work.kind.type.startswith("f"):
            found[e.work.kind.cls, e.work.kind.type] += e.times * lanes(e.work.kind)  # type: ignore[assignment]
    return found


def peak_cycles(found: Counter[tuple[str, str]], rates: Rates) -> float:
    """The time at the peak: all operations in fused pairs, in vectors of the fastest width."""
    total = 0.0
    for (cls, type_name), count in found.items():
        pairs = count if cls == "fma" else count / 2
        total += pairs / _per_cycle("fma", type_name, rates)
    return total


def unfused_cycles(found: Counter[tuple[str, str]], rates: Rates) -> float:
    """The time with the actual fused pairs, in vectors of the fastest width; divisions and roots count as
    multiplications.
    """
    work: list[tuple[tuple[int, ...], float]] = []
    for (cls, type_name), count in found.items():
        own = cls if cls in ("fma", "add", "max") else "mul"
        kind = _fastest(own, type_name, rates)
        cost = rates.cost(kind)
        work += cost.work(count / lanes(kind))
    return ports_cycles(work)


def _fastest(cls: str, type_name: str, rates: Rates) -> Kind:
    """The class at the stated width with the most elements per cycle."""
    own = [i for i in rates.stated.values() if i.cls == cls and i.type == type_name]
    if not own:
        return Kind(cls, type_name, _BITS.get(type_name, 64))
    best = max(own, key=lambda i: i.bits / float(i.throughput or 1))
    return Kind(cls, type_name, best.bits)


def _per_cycle(cls: str, type_name: str, rates: Rates) -> float:
    """The elements computed in a cycle."""
    kind = _fastest(cls, type_name, rates)
    cost = rates.cost(kind)
    return lanes(kind) * len(cost.ports) / cost.busy if cost.ports else 1.0


def ports_cycles(work: Iterable[tuple[tuple[int, ...], float]]) -> float:
    """The least time for pieces of work, each of which only some of the units can do.

    It is the largest, over all sets of units, of the work that only the set can do divided by the set's size (Hall's
    theorem for dividing work among units).
    """
    alone: Counter[tuple[int, ...]] = Counter()
    for units, cycles in work:
        alone[units] += cycles  # type: ignore[assignment]
    best = max((c for units, c in alone.items() if len(units) == 1), default=0.0)
    for size in range(2, UNITS + 1):
        for chosen in combinations(range(UNITS), size):
            best = max(best, sum(c for units, c in alone.items() if set(units) <= set(chosen)) / size)
    return best


def class_cycles(all_executed: Iterable[Executed], rates: Rates, wanted: Iterable[str] | None = None) -> float:
    """The time of the units that execute the compiled instructions of the wanted classes; of all classes if None."""
    classes = None if wanted is None else set(wanted)
    work: list[tuple[tuple[int, ...], float]] = []
    for e in all_executed:
        if classes is not None and e.work.kind.cls not in classes:
            continue
        work += rates.cost(e.work.kind).work(e.times)
    return ports_cycles(work)


def divider_cycles(all_executed: Iterable[Executed], rates: Rates) -> float:
    """The time for which divisions and square roots occupy the divider."""
    costs = [(rates.cost(e.work.kind), e.times) for e in all_executed if e.work.kind.cls in ("div", "sqrt")]
    return sum(c.busy * times for c, times in costs if c.ports == (DIVIDER,))


def loads_cycles(all_executed: Iterable[Executed], rates: Rates, *, split: bool, gathers: bool) -> float:
    """The time of the units that load and store. Without `split`, it is as if no access crossed a line; without
    `gathers`, gathers and scatters are left out.
    """
    loads = stores = both = together = 0.0
    for e in all_executed:
        work = e.work
        if work.lanes and not gathers:
            continue
        crossing = e.splits if split else 0.0
        if work.load is not None:
            access = rates.load(work)
            loads += access.busy * (e.times - crossing) + access.split * crossing
            together += access.every * (e.times - crossing) + access.every_split * crossing
            both += access.mix * (e.times - crossing) + access.mix_split * crossing
        if work.store is not None:
            access = rates.store(work)
            stores += access.busy * (e.times - crossing) + access.split * crossing
            together += access.every * (e.times - crossing) + access.every_split * crossing
            both += access.mix * (e.times - crossing) + access.mix_split * crossing
    return max(loads, stores, both, together)


def shared_cycles(all_executed: Iterable[Executed], rates: Rates) -> float:
    """The time of the resources that loads, stores and vector arithmetic share."""
    shared = 0.0
    for e in all_executed:
        work, within = e.work, e.times - e.splits
        shared += rates.cost(work.kind).mix * e.times
        for access in ((rates.load(work),) if work.load is not None else ()) + (
            (rates.store(work),) if work.store is not None else ()
        ):
            shared += access.mix * within + access.mix_split * e.splits
    return shared


def fastest_loads_cycles(all_executed: Iterable[Executed], rates: Rates) -> float:
    """The time of the same bytes in loads and stores of the fastest width; gathers and scatters are left out."""
    found = []
    for cls in ("load", "store"):
        own = max((i for i in rates.stated.values() if i.cls == cls), key=lambda i: i.bits / float(i.throughput or 1))
        size = sum(
            e.times * e.work.bytes
            for e in all_executed
            if (e.work.load if cls == "load" else e.work.store) is not None and not e.work.lanes
        )
        found.append(8 * size / own.bits * float(own.throughput or 1))
    return max(found)


def dispatch_cycles(all_executed: Iterable[Executed], rates: Rates) -> float:
    """The time that dispatching all instructions takes."""
    slots = sum(
        e.times * (rates.cost(e.work.kind).slots + (rates.indexed - 1 if e.work.indexed else 0))
        for e in all_executed
        if not e.work.fused
    )
    return slots / rates.dispatch
