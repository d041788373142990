"""Loops in assembly that are measured together; results are in cycles per round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from roofdsl.measure.assembled import features, loops, page_from
from roofdsl.measure.shared_core import epoch, tries
from roofdsl.measure.stopwatch import Reading, Stopwatch

REPEATS = 24
ROTATED = 12
PASSES = 4
"""The most times that a loop is measured, each time after all others, until nobody shares the core during it."""

EVERY, FAST = 3, 1.02
"""The times that every loop is measured, and how much slower than the fastest clock a fast one may be."""

PAIRS_S, _COMPARED = 0.01, 10_000
"""The seconds in which two loops are compared, and about the cycles of one run of either."""

_BUFFER = 1 << 16


def operands(a: int, b: int, wide: bool = False) -> tuple[str, ...]:
    """Sets vector register 14 to copies of the 64 bits `a`, and the others to copies of `b`; 512 bits if `wide`."""
    letter = "z" if wide else "y"
    others = (f"vmovapd %{letter}mm15, %{letter}mm{k}" for k in range(14))
    return (
        f"movabsq ${b}, %rax", "vmovq %rax, %xmm15", f"vbroadcastsd %xmm15, %{letter}mm15", *others,
        f"movabsq ${a}, %rax", "vmovq %rax, %xmm14", f"vbroadcastsd %xmm14, %{letter}mm14", "xorl %eax, %eax",
    )  # fmt: skip


ONE = {"f64": 0x3FF0000000000000, "f32": 0x3F8000003F800000}
MANTISSAS = {"f64": (0x3FF9B7E151628AED, 0x3FF5A3C1E2D4B697), "f32": (0x3FDCDBF13FDCDBF1, 0x3FB5A3C13FB5A3C1)}
"""Numbers between 1 and 2 with as many digits as the type has: with few digits, some processors divide faster."""

_MASKS = ("kxnorw %k1, %k1, %k1", "kxnorw %k2, %k2, %k2")


class Bench:
    """Texts that are assembled together, and the buffer that they work on."""

    def __init__(self, runs: int) -> None:
        import numpy as np

        self.has = features()
        self.block: Any = np.zeros(_BUFFER + 8192, np.uint8)
        self.address = page_from(self.block.ctypes.data)
        self.texts: dict[str, list[str]] = {}
        self.before: dict[str, Sequence[str]] = {}
        self.lengths: dict[str, float] = {}
        self.compared: dict[str, str] = {}
        self.runs = runs

    @property
    def setup(self) -> tuple[str, ...]:
        wide = "avx512f" in self.has
        return (*operands(ONE["f64"], ONE["f64"], wide), *(_MASKS if wide else ()))

    def add(self, name: str, text: Sequence[str], cycles: float, before: Sequence[str] = ()) -> None:
        """Adds a loop; `cycles` is about what one round takes."""
        self.texts[name], self.lengths[name] = list(text), cycles
        self.before[name] = (*self.setup, *before)

    def compare(self, name: str, other: str) -> None:
        """Makes the result for a loop its time as a multiple of that of `other`, whose rounds are like its own."""
        self.compared[name] = other

    def measure(self, tell: Callable[[float, str], None]) -> dict[str, float]:
        """Cycles of one round of each loop (a multiple for those of `compare`); `shared` counts those that were never
        measured on a core of their own.

        All loops are measured EVERY times, seconds apart. Of the readings with a fast clock, which need hardly any
        correction, the one with the fewest cycles counts, since others on the core only make a loop slower. Loops that
        shared the core, as far as is known by then, are measured again after all others.
        """
        watch = Stopwatch(loops(self.texts, self.before), self.address, self.runs)
        single = [name for name in self.texts if name not in self.compared]
        calm: dict[str, list[tuple[int, Reading]]] = {name: [] for name in single}
        every: dict[str, list[Reading]] = {name: [] for name in single}
        names = single
        for number in range(PASSES):
            for k, name in enumerate(names):
                tell(k / len(names), name.replace("_", " "))
                (reading,), is_calm = tries(partial(watch.read, name, self.lengths[name]), 0.0)
                every[name].append(reading)
                if is_calm:
                    calm[name].append((epoch(), reading))
            alone = {name: [r for at, r in calm[name] if at == epoch()] for name in single}
            names = [name for name in single if number + 1 < EVERY or not alone[name]]
        self.hertz, self.usual_hertz, self.shared = watch.hertz(), watch.usual_hertz(), len(names)
        found = {name: _fewest(watch, alone[name] or every[name]) for name in single}
        for name, other in self.compared.items():
            rounds = max(1, round(_COMPARED / self.lengths[other]))
            found[name] = watch.times_as_long((name, rounds), (other, rounds), PAIRS_S)
        return found


def _fewest(watch: Stopwatch, readings: Sequence[Reading]) -> float:
    """The fewest cycles of the readings with about the fastest clock among them."""
    fastest = min(r.steady_ns for r in readings)
    return min(watch.in_cycles(r) for r in readings if r.steady_ns <= FAST * fastest)


Tried = TypeVar("Tried")
Mixture = TypeVar("Mixture")


def best_fit(tried: Iterable[Tried], time: Callable[[Mixture, Tried], float], times: Mapping[Mixture, float]) -> Tried:
    """The first value with which `time` comes closest to all measured times, by the sum of squared relative errors."""
    return min(tried, key=lambda value: sum((time(of, value) / t - 1) ** 2 for of, t in times.items()))


def rounded(cycles: float) -> Fraction:
    """The value rounded to hundredths, or to a whole, half or third of a cycle that is within two percent."""
    for whole in (round(cycles), round(2 * cycles) / 2, round(3 * cycles) / 3):
        if whole and abs(cycles / whole - 1) < 0.02:
            return Fraction(round(1000 * whole), 1000)
    return max(Fraction(round(cycles * 100), 100), Fraction(1, 100))
