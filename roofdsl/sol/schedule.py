"""The best order of a kernel that was found quickly: as written, on matrix units, or tiled for every level."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.time_model import COMPUTE, LAUNCH
from roofdsl.sol.floor import Floor
from roofdsl.sol.product_tiles import product_of, tiles


class Schedule(Record):
    """An order of the kernel and its time.

    what: a description. lines: the `.roof` lines that produce it, if it needs any. terms: its time at each level and in
    compute; the time is the longest of them.
    """

    what: str
    lines: tuple[str, ...]
    terms: tuple[tuple[str, Fraction], ...]

    @property
    def time_s(self) -> Fraction:
        return max((time for _, time in self.terms), default=Fraction(0))


def best(kernel: Kernel, machine: Machine, floor: Floor, now: Prediction) -> Schedule:
    """The fastest schedule found.

    `now` is the prediction as written. Terms of compute and launch are the floor's, since both hold for any order.
    """
    fixed = tuple((t.name, t.time_s) for t in floor.terms if t.name in (COMPUTE, LAUNCH))
    candidates = [Schedule("as written", (), now.terms)]
    if floor.unit is not None and now.unit is None:
        levels = tuple((level.name, level.time_s) for level in now.levels)
        candidates.append(Schedule(f"as written, on {floor.unit} units", (f"unit {floor.unit}",), (*fixed, *levels)))
    product = product_of(kernel, floor.parameters)
    found = None if product is None else tiles(product, machine)
    if found is not None:
        lines, times = found
        unit = () if floor.unit is None or kernel.unit else (f"unit {floor.unit}",)
        on = f", on {floor.unit} units" if floor.unit else ""
        candidates.append(Schedule(f"in tiles for every level{on}", (*lines, *unit), (*fixed, *times)))
    return min(candidates, key=lambda s: s.time_s)
