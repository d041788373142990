"""The traffic of a kernel whose index arrays have values: every access through a fully associative LRU cache."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.loops.model import Kernel, Traffic
from roofdsl.simulate.lru_traffic import SimulatedTraffic, simulate_lru


class ExactTraffic:
    """Simulated traffic at the sizes `values`, each cache once; without data, or without all sizes, there is none."""

    def __init__(self, kernel: Kernel, values: Mapping[str, int], line_bytes: int | None) -> None:
        self.kernel, self.values, self.line_bytes = kernel, values, line_bytes
        self._found: dict[int | None, SimulatedTraffic] = {}

    @property
    def is_known(self) -> bool:
        return self.kernel.data is not None and all(p.name in self.values for p in self.kernel.parameters)

    def at(self, cache_bytes: int | None) -> SimulatedTraffic:
        """Through a cache of that size (None: one that holds everything)."""
        if cache_bytes not in self._found:
            self._found[cache_bytes] = simulate_lru(self.kernel, self.values, cache_bytes, self.line_bytes)
        return self._found[cache_bytes]

    def moved(self, cache_bytes: int | None, convention: Traffic) -> dict[str, Fraction | None]:
        """The bytes in each direction and in all: "loads", "stores" and "bytes"; None where they have no value."""
        if not self.is_known:
            return dict.fromkeys(("loads", "stores", "bytes"))
        found = self.at(cache_bytes)
        loads, stores = found.loads(convention), found.stores(convention)
        return {
            "loads": None if loads is None else Fraction(loads),
            "stores": None if stores is None else Fraction(stores),
            "bytes": Fraction(found.bytes(convention)),
        }

    def of_array(self, name: str, cache_bytes: int | None) -> Fraction | None:
        """The bytes of the lines of an array that come into the cache, once for each residency."""
        if not self.is_known:
            return None
        found = next(a for a in self.at(cache_bytes).arrays if a.array.name == name)
        return Fraction(found.residencies * found.line_bytes)
