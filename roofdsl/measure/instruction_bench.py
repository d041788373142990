"""Loops in assembly that are measured together; results are in cycles per round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from roofdsl.measure.assembled import Stopwatch, features, loops
from roofdsl.measure.shared_core import undisturbed

REPEATS = 24
ROTATED = 12
MOST_S = 15.0
"""Loops are measured again while somebody shares the core, for so long in all."""
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
        """The cycles of one round of each loop."""
        found = {}
        until = time.monotonic() + MOST_S
        watch = Stopwatch(loops(self.texts, self.before), self.address, self.runs)
        for k, name in enumerate(self.texts):
            tell(k / len(self.texts), name.replace("_", " "))
            found[name] = undisturbed(partial(watch.cycles, name, self.lengths[name]), until)
        self.hertz = watch.hertz()
        return found


def rounded(cycles: float) -> Fraction:
    """The value rounded to hundredths, or to a half or whole cycle that is within two percent."""
    for whole in (round(cycles), round(2 * cycles) / 2, round(3 * cycles) / 3):
        if whole and abs(cycles / whole - 1) < 0.02:
            return Fraction(round(1000 * whole), 1000)
    return max(Fraction(round(cycles * 100), 100), Fraction(1, 100))
