"""Loops in assembly that are measured together; results are in cycles per round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from roofdsl.measure.assembled import Reading, Stopwatch, features, loops
from roofdsl.measure.shared_core import epoch, tries

REPEATS = 24
ROTATED = 12
PASSES = 4
"""The most times that a loop is measured, each time after all others, until nobody shares the core during it."""

_BUFFER = 1 << 16
_SETUP = (
    "movq $0x3ff0000000000000, %rax", "vmovq %rax, %xmm15", "vbroadcastsd %xmm15, %ymm15", "vmovapd %ymm15, %ymm14",
    *(f"vmovapd %ymm15, %ymm{k}" for k in range(14)), "xorl %eax, %eax",
)  # fmt: skip
_SETUP_512 = ("vbroadcastsd %xmm15, %zmm15", *(f"vmovapd %zmm15, %zmm{k}" for k in range(15)), "kxnorw %k1, %k1, %k1",
              "kxnorw %k2, %k2, %k2")  # fmt: skip

SINGLES = (
    "movq $0x3f8000003f800000, %rax", "vmovq %rax, %xmm15", "vbroadcastsd %xmm15, %ymm15",
    *(f"vmovapd %ymm15, %ymm{k}" for k in range(15)), "xorl %eax, %eax",
)  # fmt: skip


class Bench:
    """Texts that are assembled together, and the buffer that they work on."""

    def __init__(self, runs: int) -> None:
        import numpy as np

        self.has = features()
        self.block: Any = np.zeros(_BUFFER + 8192, np.uint8)
        self.address = (self.block.ctypes.data + 4095) // 4096 * 4096
        self.texts: dict[str, list[str]] = {}
        self.before: dict[str, Sequence[str]] = {}
        self.lengths: dict[str, float] = {}
        self.runs = runs

    @property
    def setup(self) -> tuple[str, ...]:
        return (*_SETUP, *(_SETUP_512 if "avx512f" in self.has else ()))

    def add(self, name: str, text: Sequence[str], cycles: float, before: Sequence[str] = ()) -> None:
        """Adds a loop; `cycles` is about what one round takes."""
        self.texts[name], self.lengths[name] = list(text), cycles
        self.before[name] = (*self.setup, *before)

    def measure(self, tell: Callable[[float, str], None]) -> dict[str, float]:
        """Cycles of one round of each loop; `shared` counts those that were never measured on a core of their own.

        Loops that shared the core, as far as is known by then, are measured again after all others. The shortest time
        counts, because sharing the core only makes a loop slower.
        """
        watch = Stopwatch(loops(self.texts, self.before), self.address, self.runs)
        found: dict[str, tuple[int, Reading]] = {}
        least: dict[str, Reading] = {}
        names = list(self.texts)
        for _ in range(PASSES):
            for k, name in enumerate(names):
                tell(k / len(names), name.replace("_", " "))
                (reading,), calm = tries(partial(watch.read, name, self.lengths[name]), 0.0)
                if calm:
                    found[name] = (epoch(), reading)
                least[name] = min(reading, least.get(name, reading), key=lambda r: r.round_ns)
            names = [name for name in self.texts if name not in found or found[name][0] != epoch()]
        self.hertz, self.shared = watch.hertz(), len(names)
        return {n: watch.in_cycles(least[n] if n in names else found[n][1]) for n in self.texts}


def rounded(cycles: float) -> Fraction:
    """The value rounded to hundredths, or to a half or whole cycle that is within two percent."""
    for whole in (round(cycles), round(2 * cycles) / 2, round(3 * cycles) / 3):
        if whole and abs(cycles / whole - 1) < 0.02:
            return Fraction(round(1000 * whole), 1000)
    return max(Fraction(round(cycles * 100), 100), Fraction(1, 100))
