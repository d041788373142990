"""Options that every figure has: size, font scale, dark background, limits and title."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from roofdsl.cli.options import warn
from roofdsl.plot.look import USUAL, FigureWarning, Look

F = TypeVar("F", bound=Callable[..., Any])

_NUMBER = re.compile(r"(?P<digits>[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?)\s*(?P<prefix>[numkMGTP]?|[KMGT]i)")
_PREFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
SMALLEST_IN, LARGEST_IN = 2.0, 60.0

figure_option = click.option(
    "-o", "--output", required=True, metavar="OUT.svg|png|pdf", help="The file to write; its extension sets the format."
)
ceilings_option = click.option(
    "--ceilings", type=click.Choice(["few", "all", "none"]), default="few", show_default=True,
    help="Which ceilings to draw; few omits unused ones and those too close to another.",
)  # fmt: skip


def look_options(only_with: str | None = None, option: str = "--plot", *, bars: bool = False) -> Callable[[F], F]:
    """`--size`, `--font-scale`, `--dark`, `--xlim`, `--ylim` and `--title`; the function gets `look`.

    only_with: the parameter that requests a figure, if the command draws one only on demand; `option` is the flag that
    sets it. bars: the figure is a bar chart, whose y axis has no numbers, so there is no `--ylim`.
    Warnings about the figure are printed like the command's own.
    """

    def add(function: F) -> F:
        @wraps(function)
        def inner(**given: Any) -> Any:
            look = Look(
                given.pop("figure_size"), given.pop("font_scale"), given.pop("dark"), given.pop("xlim"),
                given.pop("ylim", None), given.pop("figure_title"),
            )  # fmt: skip
            if only_with is not None and given[only_with] is None and look != USUAL:
                raise click.UsageError(f"these options set the look of a figure: add {option} OUT.svg")
            return _telling(lambda: function(look=look, **given))

        command: Any = inner
        for each in reversed([*_FIRST, *([] if bars else [_Y_LIMITS]), _TITLE]):
            command = each(command)
        return command  # type: ignore[no-any-return]

    return add


def _telling(run: Callable[[], Any]) -> Any:
    """The result of `run`; warnings about figures are printed once each, all others are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FigureWarning)
        result = run()
    warn(*(str(w.message) for w in caught if issubclass(w.category, FigureWarning)))
    for w in caught:
        if not issubclass(w.category, FigureWarning):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return result


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """`8x5` in inches. Raises click.BadParameter."""
    if value is None:
        return None
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*[xX]\s*([0-9]+(?:\.[0-9]+)?)", value.strip())
    if parts is None:
        raise click.BadParameter(f"`{value}` is not a width and height in inches, as in 8x5", ctx, param)
    width, height = float(parts[1]), float(parts[2])
    if not all(SMALLEST_IN <= side <= LARGEST_IN for side in (width, height)):
        raise click.BadParameter(
            f"a figure is {SMALLEST_IN:g} to {LARGEST_IN:g} inches wide and high, and `{value}` is not", ctx, param
        )
    return width, height


def _limits(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """`0.01:100`, `10G:10T` as numbers. Raises click.BadParameter."""
    if value is None:
        return None
    parts = [_NUMBER.fullmatch(part.strip()) for part in value.split(":")]
    if len(parts) != 2 or not (parts[0] and parts[1]):
        raise click.BadParameter(f"`{value}` is not a pair of limits, as in 0.01:100 or 10G:10T", ctx, param)
    low, high = (float(p["digits"]) * _PREFIXES[p["prefix"]] for p in parts if p)
    if not low < high:
        raise click.BadParameter(f"the first limit of `{value}` is not below the second", ctx, param)
    if high >= 1e30:
        raise click.BadParameter(f"the second limit of `{value}` must be below 1e30", ctx, param)
    if low and high / low < 1.001:
        raise click.BadParameter(f"the limits `{value}` are too close to each other", ctx, param)
    return low, high


_FIRST: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--size",
        "figure_size",
        metavar="WxH",
        callback=_size,
        help="Width and height of the figure in inches, as in 8x5.",
    ),
    click.option(
        "--font-scale", type=click.FloatRange(0.4, 4), default=1.0, metavar="X", help="Scale all text by this factor."
    ),
    click.option("--dark", is_flag=True, help="Draw light lines on a dark background."),
    click.option("--xlim", metavar="A:B", callback=_limits, help="Limits of the x axis in its unit, as in 0.01:100."),
)
_Y_LIMITS = click.option(
    "--ylim", metavar="A:B", callback=_limits, help="Limits of the y axis, as in 10G:10T; not for bar charts."
)
_TITLE = click.option("--title", "figure_title", metavar="TEXT", help="Replace the figure's title.")
