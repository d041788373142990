"""Records of traffic in closed form: by cases, as a sum of terms, and of one plateau of Q(Z)."""

from __future__ import annotations

from dataclasses import replace

from roofdsl.lang.record import Record
from roofdsl.loops.integers import Condition
from roofdsl.sets.cases import Cases
from roofdsl.sets.facts import Fact
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Terms


class Bytes(Record):
    """Traffic in bytes. loads and stores are None in the convention `once`."""

    loads: Cases | None
    stores: Cases | None
    total: Cases

    def assuming(self, more: tuple[Fact, ...]) -> Bytes:
        """The same traffic under additional conditions."""

        def add(cases: Cases) -> Cases:
            return replace(cases, assumes=(*cases.assumes, *more))

        loads, stores = (None if c is None else add(c) for c in (self.loads, self.stores))
        return Bytes(loads, stores, add(self.total))


class TermBytes(Record):
    """Traffic in bytes as sums of terms. loads and stores are None in the convention `once`."""

    loads: Terms | None
    stores: Terms | None
    total: Terms


class PlateauBytes(Record):
    """One plateau of Q(Z): from a cache of `from_bytes` on, the traffic is `bytes` (leading terms unless exact).

    all_bytes: the traffic with every access of the plateau counted exactly, including lower-order terms; None if these
    change all along the plateau. until_bytes: where the plateau ends, if that is before the next one begins; in
    between, Q(Z) falls gradually. where: the sizes for which all this holds, by their remainders (None: all sizes).
    end_bytes: where `all_bytes` ends, at or before `until_bytes`; None if it holds from here on.
    """

    from_bytes: Quasi
    bytes: Quasi
    exact: bool
    all_bytes: Cases | None
    until_bytes: Quasi | None = None
    where: Condition | None = None
    end_bytes: Quasi | None = None
