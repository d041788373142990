"""The best order of a kernel that can be found quickly: as written, on matrix units, or in tiles."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel, Order, Tile
from roofdsl.machine.model import Machine
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.time_model import COMPUTE, LAUNCH
from roofdsl.sol.floor import Floor
from roofdsl.sol.level_times import Times
from roofdsl.sol.product_tiles import products_of, tiles
from roofdsl.sol.sweeps import sweeps_of
from roofdsl.sol.time_tile_text import tiled_text
from roofdsl.sol.time_tiles import grid, time_tiles


class Schedule(Record):
    """An order of the kernel and its time. what: in words. directives, unit: what to add to the kernel for it.

    text: the kernel in this order, if directives cannot express it. terms: the time of compute, of each level and of
    the launch; the time is the longest of them.
    """

    what: str
    terms: Times
    directives: tuple[Order | Tile, ...] = ()
    unit: str | None = None
    text: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The `.roof` lines to add to the kernel, if it needs any."""
        from roofdsl.bounds.tiles import written

        return (*map(written, self.directives), *(() if self.unit is None else (f"unit {self.unit}",)))

    @property
    def time_s(self) -> Fraction:
        return max((time for _, time in self.terms), default=Fraction(0))


def best(
    kernel: Kernel, machine: Machine, floor: Floor, now: Prediction | None, on_units: Prediction | None = None
) -> Schedule | None:
    """The fastest schedule found; None if there is none.

    `now` is the prediction as written, exactly or at most, if there is one; `on_units` the one on the floor's matrix
    units, for types that the machine runs only there. Terms of compute and launch are the floor's, since both hold for
    any order.
    """
    fixed = tuple((t.name, t.time_s) for t in floor.terms if t.name in (COMPUTE, LAUNCH))
    candidates = []
    if now is not None:
        candidates.append(Schedule("as written", now.terms))
    whole = on_units if now is None else now
    if floor.unit is not None and whole is not None and (now is None or now.unit is None):
        levels = tuple((level.name, level.time_s) for level in whole.levels)
        on = f"as written, on {floor.unit} units"
        candidates.append(Schedule(on, (*fixed, *_no_less(levels, floor)), unit=floor.unit))
    for found in in_tiles(kernel, machine, floor):
        candidates.append(replace(found, terms=(*fixed, *_no_less(found.terms, floor))))
    return min(candidates, key=lambda s: s.time_s, default=None)


def in_tiles(kernel: Kernel, machine: Machine, floor: Floor) -> list[Schedule]:
    """The orders in tiles; their only terms are the times of what the tiles move at each level."""
    found = _of_products(kernel, machine, floor), _of_sweeps(kernel, machine, floor)
    return [schedule for schedule in found if schedule is not None]


def _no_less(terms: Times, floor: Floor) -> Times:
    """The terms, none shorter than the floor's: a model of tiles may omit something, such as a bias, that the floor
    counts.
    """
    least = {t.name: t.time_s for t in floor.terms}
    return tuple((name, max(time, least.get(name, time))) for name, time in terms)


def _of_products(kernel: Kernel, machine: Machine, floor: Floor) -> Schedule | None:
    """Tiles of products for every level."""
    products = products_of(kernel, floor.parameters)
    found = None if products is None else tiles(products, machine)
    if found is None:
        return None
    unit = None if kernel.unit or not found.directives else floor.unit
    on = f", on {floor.unit} units" if floor.unit else f", sums on {floor.partly} units" if floor.partly else ""
    return Schedule(f"{found.what}{on}", found.times, found.directives, unit)


def _of_sweeps(kernel: Kernel, machine: Machine, floor: Floor) -> Schedule | None:
    """Tiles over space and time."""
    sweeps = sweeps_of(kernel)
    at = None if sweeps is None else grid(sweeps, dict(floor.parameters))
    found = None if sweeps is None or at is None else time_tiles(kernel, at, machine)
    if sweeps is None or found is None:
        return None
    sizes = "; ".join(
        f"{t.side} points and {t.steps} steps for {t.level}{', as a stream' if t.stream else ''}" for t in found.tiles
    )
    text = tiled_text(kernel, sweeps, found.tiles)
    return Schedule(f"in tiles over space and time: {sizes}", found.times, text=text)
