"""Lines that caches lose because too many of them fall into a few sets, and the share of these that is really lost.

A loop with 16 streams that are 16 KiB apart accesses 16 lines of one set of a 48 KiB cache, which has 12 ways. Under
LRU, each of them would be lost before it is accessed again. Real caches keep a part of them: which part is measured
(`characterize`) with walks over lines of one set.
"""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.loops.array_placement import places
from roofdsl.loops.sized import Sized
from roofdsl.machine.kept import found_again
from roofdsl.machine.model import Machine

FEW_SETS = 8
"""Accesses to lines in fewer sets than this wait for each other. The rates of other strided walks are measured with as
many sets.
"""


class Tight(Record):
    """Arrays whose lines some loop loses because `lines` of them fall into `sets` sets of a cache, each with `ways`
    ways.

    nearest: whether this is the first cache. buffers: the lines that loads find on their way into it, whatever the
    number of sets. stored_lines: of each set, the core keeps as many lines for stores as random replacement would with
    this many ways; None if that is not known. sets is 0 if their number is not known.
    """

    arrays: tuple[str, ...] = ()
    lines: int = 0
    sets: int = 0
    ways: int = 0
    nearest: bool = False
    buffers: int = 0
    stored_lines: int | None = None

    @property
    def in_few_sets(self) -> bool:
        return 0 < self.sets < FEW_SETS

    def lost(self) -> Fraction:
        """The share of the loads of such lines that miss.

        LRU loses all of them, and so do caches if many sets overflow. In few sets, caches replace lines less strictly
        (`machine.kept`), and loads find up to `buffers` lines on their way in.
        """
        return self._lost(self.sets * self.ways + self.buffers)

    def lost_stores(self) -> Fraction:
        """The share of the stores to such lines that miss: all of them if it is not known how many lines are found."""
        return Fraction(1) if self.stored_lines is None else self._lost(self.sets * self.stored_lines)

    def _lost(self, room: int) -> Fraction:
        """The share of the lines that is lost if the sets have room for so many."""
        if not self.in_few_sets:
            return Fraction(1)
        return 1 - Fraction(found_again(self.lines, room)).limit_denominator(10_000)


def tight_of(at: Sized, machine: Machine) -> Tight:
    """The arrays whose lines fall into too few sets of a cache in some loop. One iteration of each loop is examined."""
    from roofdsl.counts.set_conflicts import conflicts
    from roofdsl.predict.associative import sets_of

    begins = places(at.kernel, at.values)
    found = []
    for cache in machine.caches:
        sets = sets_of(cache)
        if sets is None:
            break
        found += [(w, sets, cache) for w in conflicts(at.kernel, at.values, sets, begins) if w.lost and w.array]
    if not found:
        return Tight()
    worst, of, cache = max(found, key=lambda each: each[0].lost * each[0].times)
    names = tuple(dict.fromkeys(w.array for w, *_ in found))
    nearest = cache is machine.caches[0]
    return Tight(names, worst.crowded_lines, worst.crowded_sets, of.ways, nearest, cache.buffers, cache.stored_lines)
