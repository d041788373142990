"""The shipped kernels as the benchmarks take them: fresh objects, and one size of each."""

from __future__ import annotations

from pathlib import Path

from roofdsl.lang.checked import CheckedFile
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models" / "kernels"

SIZES = {"n": 512, "m": 512, "k": 512, "batch": 16, "b": 32, "bq": 32, "bk": 32, "r": 3, "steps": 10}
"""Numbers for parameters without a default."""

OTHER = 64
"""For parameters without a default that are not named there."""

SMALL = {"jacobi3d": 100, "stencil27": 100, "heat3d_time": 100}
"""Kernels on n**3 points, and their n."""


def shipped() -> dict[str, CheckedFile]:
    """Name and checked file of every shipped kernel that needs no data, in alphabetical order."""
    found: dict[str, CheckedFile] = {}
    for path in sorted(MODELS.glob("*.roof")):
        checked = load_file(path)
        found |= {name: checked for name in checked.own_kernels if not is_indirect(kernel(checked, name))}
    return dict(sorted(found.items()))


def fresh(checked: CheckedFile, name: str) -> Kernel:
    """The kernel, lowered anew, so that nothing remembered with an earlier object is found again."""
    return kernel(checked, name)


def size_of(given: Kernel) -> dict[str, int]:
    """One size: the defaults of the file, SIZES or OTHER for the rest."""
    own = SIZES | ({"n": SMALL[given.name]} if given.name in SMALL else {})
    return {p.name: p.default if p.default is not None else own.get(p.name, OTHER) for p in given.parameters}
