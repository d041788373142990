"""How often does the floor of `roofdsl sol` say more than a plain roofline, or than compute and compulsory traffic, and
could it say more at all?

The grid: for each kernel in FAMILIES, `SIZES` sizes at which every parameter by itself lies between 32 and 16,384
(the logarithms are a Halton sequence, so that parameters vary independently of each other), on every shipped machine
that states caches and the kernel's types.

A plain roofline takes the larger of W over the highest peak of its types and the compulsory bytes over the memory's
bandwidth. The floor is above it if the kernel's mix of operations does not run at that peak, if one launch takes
longer, or by reuse. Among the floors, three cases:

- by reuse: an argument about reuse gives the floor.
- reached: it does not, and the best order found takes at most 1 % longer than the floor. No proof can raise it.
- open: neither.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from benchmarks.floors import REUSE, kernels
from benchmarks.measure import markdown
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.find import load_machine, shipped_machines
from roofdsl.machine.model import Machine
from roofdsl.predict.time_model import LAUNCH
from roofdsl.sol.compute_floor import operations_of
from roofdsl.sol.floor import Floor, Needs, floor_on, needs
from roofdsl.sol.schedule import best

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "products": (
        "matmul",
        "gemm",
        "linear",
        "batched",
        "mm2",
        "mm3",
        "syrk",
        "syr2k",
        "symm",
        "trmm",
        "doitgen",
        "minplus",
    ),
    "convolutions": ("conv2d",),
    "stencils in time": ("_time", "jacobi_1d", "jacobi_2d", "heat_3d", "seidel_2d", "fdtd_2d"),
    "attention": ("attention",),
}
"""Parts of the names of the kernels in each family."""

SIZES = 200
SMALLEST, LARGEST = 32, 16_384
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
UNITS = (1, 8, 32, 128)
"""Sizes are rounded to multiples of the first of these that a kernel allows."""

NEAR = Fraction(101, 100)


@dataclass
class Share:
    """Floors of a family.

    tighter: those above a plain roofline; by_launch, by_reuse: those given by one launch, or by an argument about
    reuse; reached: those of the others that the best order found reaches; closest: how much of the floor the argument
    about reuse gives, for each.
    """

    floors: int = 0
    tighter: int = 0
    by_launch: int = 0
    by_reuse: int = 0
    reached: int = 0
    closest: tuple[float, ...] = ()

    def __add__(self, other: Share) -> Share:
        return Share(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def family_of(name: str) -> str | None:
    """The family of a kernel; None for kernels without reuse between operations."""
    return next((family for family, parts in FAMILIES.items() if any(part in name for part in parts)), None)


def sizes_of(kernel: Kernel, number: int) -> dict[str, int] | None:
    """The sizes of this number on the grid; None where the kernel allows none near them."""
    exact = {
        p.name: SMALLEST * (LARGEST / SMALLEST) ** _halton(number + 1, base)
        for p, base in zip(kernel.parameters, PRIMES, strict=False)
    }
    for unit in UNITS:
        try:
            return numbers(kernel, {name: max(1, round(value / unit)) * unit for name, value in exact.items()})
        except CommandError:
            continue
    return None


def _halton(number: int, base: int) -> float:
    """The digits of a number in reverse, as a fraction between 0 and 1."""
    found, scale = 0.0, 1.0
    while number:
        scale /= base
        number, digit = divmod(number, base)
        found += digit * scale
    return found


def measure_all(seconds: float, seed: int = 0) -> dict[str, Share]:
    """The shares of as much of the grid, in random order, as fits the time."""
    machines = [m for m in map(load_machine, shipped_machines()) if m.caches]
    every = {name: kernel for name, kernel in kernels().items() if family_of(name) is not None}
    grid = [(name, number) for name in every for number in range(SIZES)]
    random.Random(seed).shuffle(grid)
    found: dict[str, Share] = {}
    end = time.monotonic() + seconds
    for name, number in grid:
        if time.monotonic() > end:
            break
        sizes, family = sizes_of(every[name], number), family_of(name)
        if sizes is None or family is None:
            continue
        try:
            counted = needs(every[name], sizes)
        except (CommandError, InputError):
            continue
        for machine in machines:
            _add(found.setdefault(family, Share()), every[name], counted, machine)
    return found


def _add(share: Share, kernel: Kernel, counted: Needs, machine: Machine) -> None:
    try:
        least, plain = floor_on(machine, counted), plain_roofline(machine, counted)
    except CommandError:
        return  # the machine lacks the type
    share.floors += 1
    share.tighter += least.time_s > plain
    share.by_launch += least.by.name == LAUNCH
    share.closest = (*share.closest, of_the_floor(least))
    if least.by.argument in REUSE:
        share.by_reuse += 1
        return
    order = best(kernel, machine, least, None)
    share.reached += order is not None and order.time_s <= NEAR * least.time_s


def plain_roofline(machine: Machine, counted: Needs) -> Fraction:
    """Seconds: the longest of what matrix units may do at their rates, all other operations at the highest peaks of
    their types, and the compulsory bytes at the bandwidth of the memory.
    """
    operations = operations_of(counted.launch, machine)
    on_matrix_units = sum((part.operations / part.rate_per_s for part in operations.matrix), Fraction(0))
    by_type = operations.ordinary.by_type.items()
    others = sum((work / machine.peak(name).per_s for name, work in by_type), Fraction(0))
    bytes_s = (counted.loads + counted.stores) / machine.main_memory.bandwidth_bytes_per_s
    return max(on_matrix_units, others, bytes_s)


def of_the_floor(found: Floor) -> float:
    """The longest term by an argument about reuse, as a share of the floor; 0 if there is none."""
    longest = max((t.time_s for t in found.terms if t.argument in REUSE), default=Fraction(0))
    return float(longest / found.time_s) if found.time_s else 0.0


def section(found: Mapping[str, Share]) -> str:
    """The shares as Markdown."""
    rows = []
    for family, own in [*sorted(found.items()), ("all of these", _together(found))]:
        if own.floors:
            ranked = sorted(own.closest)
            rows.append((
                family, f"{own.floors:,}", _percent(own.tighter, own.floors), _percent(own.by_launch, own.floors),
                _percent(own.by_reuse, own.floors), _percent(own.reached, own.floors),
                _percent(own.floors - own.by_reuse - own.reached, own.floors),
                f"{100 * ranked[len(ranked) // 2]:.1f} %", f"{100 * ranked[-1]:.0f} %",
            ))  # fmt: skip
    head = (
        "kernels", "floors", "above a plain roofline", "by the launch", "by reuse", "reached", "open",
        "reuse says, of the floor", "at most",
    )  # fmt: skip
    return f"## Floors, and what they are above\n\n{markdown(head, rows)}"


def _together(found: Mapping[str, Share]) -> Share:
    return sum(found.values(), Share())


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"
