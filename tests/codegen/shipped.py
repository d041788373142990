"""The shipped kernels, and sizes that are multiples of nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.integers import Compare, Sym
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.private_loops import PrivateLoop

FOLDER = Path(__file__).parents[2] / "models" / "kernels"
RAGGED = {"n": 13, "b": 5, "m": 11, "k": 9, "steps": 3, "batch": 2, "h": 9, "w": 11, "c": 3, "f": 5, "r": 3}
CONSTANTS = {"h": 9, "w": 11, "r": 3, "s": 2, "bm": 5, "bo": 3}
"""Numbers for `const` parameters."""


@cache
def shipped() -> dict[str, Kernel]:
    """Every shipped kernel by name, but for those that need data."""
    found: dict[str, Kernel] = {}
    for path in sorted(FOLDER.glob("*.roof")):
        found |= kernels(load_file(path), CONSTANTS)
    return {name: kernel for name, kernel in found.items() if not is_indirect(kernel)}


def ragged(kernel: Kernel) -> dict[str, int]:
    """Sizes that are prime or odd, as far as the kernel's assumptions allow."""
    sizes = {p.name: RAGGED.get(p.name, 7) for p in kernel.parameters}
    rng = Random(1)
    for _ in range(100_000):
        if all(v > 0 for v in sizes.values()) and all(c.holds(sizes) for c in kernel.assumptions):
            return sizes
        sizes = {p.name: rng.choice((3, 5, 7, 9, 11, 15, 2, 4, 6, 8, 10, 12)) for p in kernel.parameters}
        for condition in kernel.assumptions:
            match condition:
                case Compare("==", Sym(name), other) | Compare("==", other, Sym(name)):
                    sizes[name] = other.evaluate(sizes)
    raise AssertionError(f"no small sizes meet the assumptions of {kernel.name}")


@cache
def free(name: str) -> dict[tuple[int, ...], int]:
    """Which loops of a shipped kernel have independent iterations."""
    return parallel_loops(shipped()[name])


@cache
def private(name: str) -> dict[tuple[int, ...], PrivateLoop]:
    """Which loops of a shipped kernel copies of temps make independent."""
    return private_loops(shipped()[name])
