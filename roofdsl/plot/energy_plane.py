"""The rooflines of energy and of power: operations per joule, and watts, over intensity.

The curves are those of Choi, Bedard, Fowler and Vuduc, A Roofline Model of Energy (IPDPS 2013), figures 2 and 4, from
`machine.energy_roofline`. Times overlap, so the roofline of time has a corner; energies add up, so that of energy is an
arch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.energy_roofline import EnergyRoofline
from roofdsl.machine.quantities import show_number, show_power, show_rate
from roofdsl.plot.board import Board, Window, plane, roomy, symbol
from roofdsl.plot.look import USUAL, Look, named, outside, style_of, styled
from roofdsl.plot.names import Name, name_line, name_points
from roofdsl.plot.ticks import plain, prefixed

Quantity = Literal["efficiency", "power"]

CURVE_POINTS = 240

_NEARLY = 0.95
"""An arch is flat enough for a name along it where it has at least this fraction of the best efficiency."""


@dataclass(frozen=True)
class Arch:
    """The curve of one type of operations; `operation` is FLOP or OP."""

    label: str
    operation: str
    of: EnergyRoofline

    def value(self, quantity: Quantity, intensity: float) -> float:
        """Operations per joule, or watts."""
        return 1 / float(self.of.joules(intensity)) if quantity == "efficiency" else float(self.of.watts(intensity))

    @property
    def best(self) -> float:
        """The efficiency that the curve approaches as the intensity grows."""
        return 1 / float(self.of.least_j)


@dataclass(frozen=True)
class Spot:
    """A point: operations per byte, and operations per joule or watts. Without a label it is one of many."""

    label: str
    intensity: float
    value: float
    is_measured: bool = False


@dataclass(frozen=True)
class _Shown:
    quantity: Quantity
    arches: Sequence[Arch]
    spots: Sequence[Spot]
    title: str
    look: Look

    def color(self, number: int) -> str:
        """The colour of a curve: ink for a single one."""
        return self.look.color(number) if len(self.arches) > 1 else self.look.ink


@styled
def draw_energy(
    quantity: Quantity, arches: Sequence[Arch], spots: Sequence[Spot] = (), title: str = "", *, look: Look = USUAL
) -> Any:
    """The matplotlib Figure. Filled symbols are predicted, hollow ones measured.

    Raises CommandError without a curve.
    """
    if not arches:
        raise CommandError("there is no curve to draw", "the machine has no peak for the requested types")
    shown = _Shown(quantity, arches, spots, title, look)
    return roomy(lambda key: _board(shown, key))


def _board(shown: _Shown, key: bool) -> Board:
    operation = "OP" if any(a.operation == "OP" for a in shown.arches) else "FLOP"
    what = f"Energy efficiency ({operation}/J)" if shown.quantity == "efficiency" else "Average power (W)"
    if len(shown.arches) == 1:
        what += f", {shown.arches[0].label}"
    write: Callable[[float], str] = prefixed if shown.quantity == "efficiency" else plain
    labels = (f"Arithmetic intensity I ({operation}/byte)", what)
    listed = list(dict.fromkeys(s.label for s in shown.spots if s.label))
    listed = [*listed, *(str(handle.get_label()) for handle in _legend(shown, key=False))]
    board = plane(shown.look, window_of(shown), shown.title, labels, (plain, write), key=listed if key else None)
    board.points = [board.pixel(s.intensity, s.value) for s in shown.spots if board.shows(s.intensity, s.value)]
    if shown.quantity == "efficiency":
        _times(board, shown)
    else:
        _bounds(board, shown)
    for number, arch in enumerate(shown.arches):
        _curve(board, shown, arch, shown.color(number))
    if shown.quantity == "efficiency":
        _name_times(board, shown)
    board.legend(_legend(shown, key))
    names = _spots(board, shown)
    name_points(board, [*([] if key else names), *_balances(board, shown)])
    return board


def window_of(shown: _Shown) -> Window:
    """Limits that show the balances of all curves and all points, at whole or half decades in x."""
    xs = [float(x) for a in shown.arches for x in (a.of.time_balance, a.of.energy_balance, a.of.half_intensity)]
    left = min([min(xs) / 12, *(s.intensity / 1.5 for s in shown.spots)])
    right = max([max(xs) * 20, *(s.intensity * 1.5 for s in shown.spots)])
    x = 10 ** (floor(2 * log10(left)) / 2), 10 ** (ceil(2 * log10(right)) / 2)
    ys = [a.value(shown.quantity, i) for a in shown.arches for i in _intensities(*x)]
    ys += [s.value for s in shown.spots]
    if shown.quantity == "efficiency":
        return Window(x, (min(ys) / 1.5, 3 * max(ys)))
    ys += [float(a.of.constant_w) for a in shown.arches]
    return Window(x, (min(ys) / 1.4, 1.5 * max(ys)))


def _intensities(low: float, high: float, count: int = CURVE_POINTS) -> list[float]:
    return [low * (high / low) ** (k / count) for k in range(count + 1)]


def _curve(board: Board, shown: _Shown, arch: Arch, color: str) -> None:
    """The curve, with its name along its right end; for the efficiency, with a ring where it is half of the best.

    A single curve of power has no name.
    """
    ridge, (low, high) = float(arch.of.time_balance), board.window.x
    xs = sorted([*_intensities(low, high), *([ridge] if low < ridge < high else [])])
    ys = [arch.value(shown.quantity, x) for x in xs]
    board.axes.plot(xs, ys, color=color, linewidth=2.0, zorder=3, solid_capstyle="round")
    pixels = [board.pixel(x, y) for x, y in zip(xs, ys, strict=True)]
    for start, end in pairwise(pixels):
        if (seen := board.within(start, end)) is not None:
            board.cross(*seen)
    half, is_arch = float(arch.of.half_intensity), shown.quantity == "efficiency"
    if is_arch:
        board.axes.plot(
            [half], [arch.best / 2], "o", color=board.look.paper, markeredgecolor=color, markersize=5.5,
            markeredgewidth=1.4, zorder=4,
        )  # fmt: skip
        text = f"{arch.label}, at most {show_rate(arch.best, arch.operation)[:-2]}/J"
    elif len(shown.arches) > 1:
        text = arch.label
    else:
        return
    at = next((k for k, y in enumerate(ys) if y >= _NEARLY * arch.best), len(xs)) if is_arch else len(xs)
    at = min(at, int(0.6 * len(xs)))
    letters = color if color == board.look.ink else board.look.letters(color)
    name_line(board, pixels[at], pixels[-1], text, letters, prefer=0.9)


def _times(board: Board, shown: _Shown) -> None:
    """The rooflines of time, dashed, with their peaks at the best efficiency."""
    style = {"linestyle": (0, (4, 3)), "linewidth": 1.0, "zorder": 2.5}
    for number, arch in enumerate(shown.arches):
        (start, low), (ridge, best) = _slope(board, arch)
        color, right = shown.color(number), board.window.x[1]
        board.line((start, ridge), (low, best), color=color, **style)
        board.line((ridge, right), (best, best), color=color, **style)


def _slope(board: Board, arch: Arch) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of the part of a roofline of time that rises, as (intensity, efficiency)."""
    ridge = float(arch.of.time_balance)
    start = max(board.window.x[0], ridge * board.window.y[0] / arch.best)
    return (start, arch.best * start / ridge), (ridge, arch.best)


def _name_times(board: Board, shown: _Shown) -> None:
    """The name of the first roofline of time, clear of the arches, which are drawn before."""
    low, high = _slope(board, shown.arches[0])
    name_line(board, board.pixel(*low), board.pixel(*high), "roofline of time, scaled", shown.color(0), prefer=0.55)


def _bounds(board: Board, shown: _Shown) -> None:
    """The constant power and the power cap of the first curve, dashed."""
    first = shown.arches[0].of
    lines = [(float(first.constant_w), f"constant power {show_power(first.constant_w)}")]
    if first.cap_w is not None:
        lines.append((float(first.cap_w), f"power cap {show_power(first.cap_w)}"))
    for watts, text in lines:
        left, right = board.window.x
        if board.shows(left, watts):
            color = board.look.grey("#777777")
            board.line((left, right), (watts, watts), color=color, linestyle=(0, (4, 3)), linewidth=1.0, zorder=2)
            name_line(board, board.pixel(left, watts), board.pixel(right, watts), text, color, prefer=0.04)


def _balances(board: Board, shown: _Shown) -> list[Name]:
    """Dotted lines at the balances of a single curve, and their names."""
    grey, small, names = board.look.grey("#555555"), board.look.small, list[Name]()
    if len(shown.arches) > 1:
        return names
    of = shown.arches[0].of
    low = board.window.y[0]
    for balance, what in ((float(of.time_balance), "time"), (float(of.energy_balance), "energy")):
        top = shown.arches[0].value(shown.quantity, balance)
        if board.shows(balance, top):
            style = {"linestyle": (0, (1, 2)), "linewidth": 1.2, "zorder": 2}
            board.line((balance, balance), (low, top), color=grey, **style)
            at = board.pixel(balance, low * (top / low) ** (0.2 if what == "time" else 0.4))
            names.append(Name(at, f"{what} balance {show_number(balance, 3)}", grey, small, optional=True))
    return names


def _spots(board: Board, shown: _Shown) -> list[Name]:
    """The points, and their names."""
    look = board.look
    styles = style_of([s.label for s in shown.spots if s.label])
    names = []
    for spot in shown.spots:
        if not board.shows(spot.intensity, spot.value):
            continue
        number, sign = styles.get(spot.label, (0, "o"))
        color = look.color(number)
        board.axes.plot(
            [spot.intensity], [spot.value], sign, color=look.paper if spot.is_measured else color,
            markeredgecolor=color, markersize=7.5 if spot.label else 4.5, markeredgewidth=1.6 if spot.label else 1.0,
            zorder=5 if spot.label else 3.5, clip_on=False,
        )  # fmt: skip
        if spot.label:
            names.append(Name(board.pixel(spot.intensity, spot.value), spot.label, color))
    outside(sum(not board.shows(s.intensity, s.value) for s in shown.spots))
    return names


def _legend(shown: _Shown, key: bool) -> list[Any]:
    """The meaning of rings and of hollow symbols, and in a key the names of all points."""
    look, grey, found = shown.look, shown.look.grey("#777777"), []
    if shown.quantity == "efficiency":
        for number, arch in enumerate(shown.arches):
            of = f" ({arch.label})" if len(shown.arches) > 1 else ""
            text = f"half of the best: I = {show_number(arch.of.half_intensity, 3)}{of}"
            color = shown.color(number)
            found.append(symbol("o", text, face=look.paper, edge=color, size=5.5, markeredgewidth=1.4))
    kinds = {s.is_measured for s in shown.spots}
    if True in kinds:
        found += [symbol("o", "predicted", face=grey, edge=grey)] if False in kinds else []
        found.append(symbol("o", "measured", face=look.paper, edge=grey))
    if key:
        styles = style_of([s.label for s in shown.spots if s.label])
        for label, (number, sign) in styles.items():
            found.append(symbol(sign, named(label, 40), face=look.color(number), edge=look.color(number)))
    return found
