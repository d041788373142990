"""The positions and labels of ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Any

from roofdsl.machine.quantities import show_time
from roofdsl.plot.look import Look

Write = Callable[[float], str]

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_ticks(low: float, high: float, most: int = 10) -> list[float]:
    """Powers of ten, at most `most`; if these are fewer than three, small multiples of them as well, or even ticks."""
    decades = range(floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9) + 1)
    each = -(-max(1, len([e for e in decades if _in(10.0**e, low, high)])) // most)
    ticks = [10.0**e for e in decades if e % each == 0 and _in(10.0**e, low, high)]
    if len(ticks) >= 3:
        return ticks
    for factors in ((1, 2, 5), (1, 2, 3, 5, 7)):
        ticks = [f * 10.0**e for e in decades for f in factors if _in(f * 10.0**e, low, high)]
        if len(ticks) >= 3:
            return ticks[:: -(-len(ticks) // most)]
    return even_ticks(low, high, min(6, most))


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, with at most `most` intervals between them."""
    step = 10.0 ** floor(log10((high - low) / most))
    step *= next(f for f in (1, 2, 5, 10, 20) if (high - low) / (f * step) <= most)
    return [float(f"{k * step:.12g}") for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _in(value: float, low: float, high: float) -> bool:
    return low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def set_ticks(axis: Any, ticks: Sequence[float], write: Write, *, minor: bool = True) -> None:
    """Set ticks at these values, labelled by `write`; with `minor`, matplotlib adds small ones without labels."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FixedFormatter([write(t) for t in ticks]))
    axis.set_minor_formatter(NullFormatter())
    if not minor:
        axis.set_minor_locator(NullLocator())


def time_axis(
    axes: Any, look: Look, limits: tuple[float, float], inches: float, name: str, *, logarithmic: bool = False
) -> None:
    """Set up the time axis of a figure of bars, whose axes are `inches` wide."""
    most = max(2, min(8, int(inches / (look.width_in("200 us", look.normal) + 0.2))))
    ticks = log_ticks(*limits, most=most) if logarithmic else even_ticks(*limits, most)
    set_ticks(axes.xaxis, ticks, lambda t: show_time(t, 3), minor=False)
    axes.set_xlabel(name, fontsize=look.normal + look.font_scale)
    axes.grid(True, axis="x", color=look.grey("#E9E9E9"), linewidth=0.7)
    axes.tick_params(axis="x", labelsize=look.normal)
    look.dress(axes)
    axes.spines["left"].set_visible(False)


def plain(value: float) -> str:
    """`0.01`, `1,000`; very small and very large numbers as powers of ten."""
    if 0.999e-3 <= abs(value) < 1e6 or value == 0:
        return f"{value:,.6g}"
    return power(value)


def power(value: float) -> str:
    """`10⁻⁶`, `2x10⁷`."""
    exponent = floor(log10(value) + 1e-9)
    digits = float(f"{value / 10.0**exponent:.6g}")  # as in `plain`: ticks may differ in the fourth digit
    ten = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return ten if digits == 1 else f"{digits:g}x{ten}"


def prefixed(value: float) -> str:
    """`10 G`, `5 m`: a number with a prefix for its unit."""
    nearly = 1 - 1e-9  # 10.0**-3 / 1e-3 and the like
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor * nearly:
            return f"{value / factor:,.6g} {prefix}"
    if value >= nearly or value == 0:
        return f"{value:g}"
    for factor, prefix in ((1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")):
        if value >= factor * nearly:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"
