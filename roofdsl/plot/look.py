"""The look of figures in one place: size, fonts, colours, symbols, limits, title, and safe handling of text."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

from roofdsl.lang.diagnostics import CommandError

Draw = TypeVar("Draw", bound=Callable[..., Any])

# Okabe and Ito: distinguishable with any colour vision. Black is for a single machine's lines.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

SIGNS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "d", "p")
"""Symbols, which identify subjects in print without colour. Their number is coprime to that of the colours, so that 66
subjects differ in at least one of the two. `>` is reserved for points without operations.
"""

DPI = 100
SMALL, NORMAL, LARGE = 8.5, 9.5, 11.5
INK, PAPER = "#222222", "#FFFFFF"
LONGEST_NAME, LEAST_NAME, MOST_TITLE_LINES = 48, 12, 4


class FigureWarning(UserWarning):
    """Something that the figure does not show as requested: characters without a glyph, points beyond the limits."""


@dataclass(frozen=True)
class Look:
    """What a person can choose for any figure.

    size_in: width and height in inches, None for the figure's own; font_scale: a factor for the usual font sizes; x, y:
    limits of the axes in their units, None if they follow from the data; title: replaces the figure's own.
    """

    size_in: tuple[float, float] | None = None
    font_scale: float = 1.0
    dark: bool = False
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None
    title: str | None = None

    # ---- colours ----

    @property
    def ink(self) -> str:
        """The colour of text and of a machine's lines."""
        return "#E8E8E8" if self.dark else INK

    @property
    def paper(self) -> str:
        """The colour of the background, and inside open symbols."""
        return "#16181D" if self.dark else PAPER

    def grey(self, hexadecimal: str) -> str:
        """A grey that was chosen for white paper, adapted to this background."""
        if not self.dark:
            return hexadecimal
        level = int(hexadecimal[1:3], 16)
        paper, ink = int(self.paper[1:3], 16), int(self.ink[1:3], 16)
        turned = round(paper + (255 - level) / (255 - 0x22) * (ink - paper))
        return "#" + f"{max(paper, min(ink, turned)):02x}" * 3

    def color(self, number: int) -> str:
        """The colour of the subject with this number, from 0 on."""
        return OKABE_ITO[number % len(OKABE_ITO)]

    def letters(self, color: str) -> str:
        """The same hue, dark enough (or on a dark background light enough) for text."""
        parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        changed = [int(c + (255 - c) * 0.35) if self.dark else int(c * 0.75) for c in parts]
        return "#" + "".join(f"{c:02x}" for c in changed)

    # ---- letters ----

    @property
    def small(self) -> float:
        return SMALL * self.font_scale

    @property
    def normal(self) -> float:
        return NORMAL * self.font_scale

    @property
    def large(self) -> float:
        return LARGE * self.font_scale

    def width_in(self, text: str, points: float | None = None) -> float:
        """The width of the longest line of a text, in inches."""
        return text_width(text, self.small if points is None else points) / 72

    def heading(self, own: str, width_in: float) -> str:
        """The title in lines of at most this width: the requested one, else the figure's own."""
        text = self.title if self.title is not None else own
        each = max(8, int(width_in * 72 / (0.56 * self.large)))
        return fitted(text, each, MOST_TITLE_LINES)

    # ---- the figure ----

    def size(self, own: tuple[float, float]) -> tuple[float, float]:
        """Width and height in inches: as requested, else the figure's own, larger with a larger font scale."""
        if self.size_in is not None:
            return self.size_in
        return own[0] * max(1.0, self.font_scale) ** 0.5, own[1] * max(1.0, self.font_scale) ** 0.5

    def figure(self, own: tuple[float, float]) -> Any:
        """An empty matplotlib Figure, not bound to any display."""
        from matplotlib.figure import Figure

        return Figure(figsize=self.size(own), dpi=DPI, facecolor=self.paper)

    def limits(self, own: tuple[float, float], axis: str, *, logarithmic: bool = True) -> tuple[float, float]:
        """The limits of an axis, "x" or "y": as requested, else its own. Raises CommandError for limits of 0 or less on
        a logarithmic axis.
        """
        asked: tuple[float, float] | None = getattr(self, axis)
        if asked is None:
            return own
        if logarithmic and asked[0] <= 0:
            raise CommandError(
                f"the {axis} axis is logarithmic, so its limits must be above 0", f"as in --{axis}lim 0.01:100"
            )
        return asked

    def dress(self, axes: Any) -> None:
        """Set the colours of background, frame and ticks; no frame lines at the top and right."""
        axes.set_facecolor(self.paper)
        axes.set_axisbelow(True)
        axes.tick_params(which="both", colors=self.ink, labelcolor=self.ink)
        for side, spine in axes.spines.items():
            spine.set_color(self.ink)
            spine.set_visible(side in ("left", "bottom"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set_color(self.ink)


USUAL = Look()


# ---- text ----


def fitted(text: str, longest: int, most_lines: int) -> str:
    """A text in lines of at most `longest` characters, broken at spaces if possible; if it does not fit into
    `most_lines`, it ends in `...`.
    """
    lines: list[str] = []
    for part in text.split("\n"):
        line = ""
        for each in part.split(" "):
            word = each
            while len(word) > longest:  # no space to break at
                room = longest - len(line) - 1 if line else longest
                if room < 8:
                    lines.append(line)
                    line, room = "", longest
                lines.append(f"{line} {word[:room]}" if line else word[:room])
                line, word = "", word[room:]
            if line and len(line) + 1 + len(word) > longest:
                lines.append(line)
                line = ""
            line = f"{line} {word}" if line else word
        lines.append(line)
    if len(lines) > most_lines:
        lines = lines[:most_lines]
        lines[-1] = lines[-1][: longest - 3].rstrip() + "..."
    return "\n".join(lines)


def named(text: str, longest: int = LONGEST_NAME) -> str:
    """A name on one line, with its middle left out if it is longer than `longest`.

    What follows a comma, such as the share of the time in `attention_exponentials, 0.32 %`, stays whole if there is
    room for a shortened name before it.
    """
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    name, comma, numbers = text.partition(", ")
    room = longest - len(comma) - len(numbers)
    if comma and LEAST_NAME <= room < len(name):
        return f"{named(name, room)}{comma}{numbers}"
    half = (longest - 3) // 2
    return f"{text[: longest - 3 - half]}...{text[-half:]}"


def text_width(text: str, points: float) -> float:
    """The width of the longest line, in points. matplotlib interprets nothing in the text."""
    return max((_line_width(line, points) for line in text.split("\n")), default=0.0)


@lru_cache(maxsize=4096)
def _line_width(line: str, points: float) -> float:
    from matplotlib.textpath import TextPath

    plain = drawable(line)[0].replace("$", r"\$")
    return 1.03 * float(TextPath((0, 0), plain, size=points).get_extents().width) if plain.strip() else 0.0


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """The installed fonts for text: matplotlib's own, then those for other scripts. A character is drawn in the first
    font that has it.
    """
    from matplotlib.font_manager import fontManager

    wanted = (
        "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "IPAGothic",
        "Droid Sans Fallback", "Noto Sans", "Noto Sans Devanagari", "Noto Emoji",
    )  # fmt: skip
    there = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in wanted if name in there))


@lru_cache(maxsize=1)
def _fonts() -> list[Any]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return [get_font(findfont(FontProperties(family=name))) for name in families()]


def drawable(text: str) -> tuple[str, str]:
    """The text as it can be drawn, and its characters that no installed font has, which are drawn as boxes.

    Control characters, and those that change the direction of text, become boxes as well.
    """
    if text.isascii() and text.isprintable():
        return text, ""
    shown, lacking = [], ""
    for letter in text:
        if letter == "\n":
            shown.append(letter)
        elif unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            shown.append(" " if letter in "\t\r" else "\u25a1")
        elif any(font.get_char_index(ord(letter)) for font in _fonts()):
            shown.append(letter)
        else:
            shown.append("\u25a1")
            lacking += letter
    return "".join(shown), lacking


# ---- drawing ----


def rc(look: Look = USUAL) -> dict[str, Any]:
    """matplotlib's settings while a figure is drawn or written. Text is plain text: no `$` begins a formula."""
    return {
        "svg.hashsalt": "roofdsl", "svg.fonttype": "path", "font.family": list(families()), "text.parse_math": False,
        "text.usetex": False, "text.color": look.ink, "legend.labelcolor": look.ink, "hatch.color": look.paper,
    }  # fmt: skip


def styled(draw: Draw) -> Draw:
    """Decorate `draw`, which returns a Figure and takes `look`, to use our settings and to clean its figure's text."""

    @wraps(draw)
    def inner(*given: Any, look: Look = USUAL, **more: Any) -> Any:
        import matplotlib as mpl

        with mpl.rc_context(rc(look)):
            figure = draw(*given, look=look, **more)
            clean(figure)
        return figure

    return inner  # type: ignore[return-value]


def clean(figure: Any) -> None:
    """Remove what cannot be drawn from every text of the figure; warn about characters that no installed font has."""
    from matplotlib.text import Text

    lacking: dict[str, None] = {}
    for text in figure.findobj(Text):
        shown, without = drawable(text.get_text())
        if shown != text.get_text():
            text.set_text(shown)
        lacking |= dict.fromkeys(without)
    if lacking:
        letters = "".join(list(lacking)[:12])
        warn_about_figure(
            f"no font on this computer has the letters {letters}: they are drawn as boxes; fonts-noto-cjk has many"
        )


def warn_about_figure(message: str) -> None:
    """Warn with a FigureWarning; the commands print it like their own warnings."""
    warnings.warn(message, FigureWarning, stacklevel=3)


def outside(count: int) -> None:
    """Warn that `count` points are beyond the requested limits; nothing if it is 0."""
    if count:
        lie = "1 point lies" if count == 1 else f"{count} points lie"
        warn_about_figure(f"{lie} outside the axis limits and {'is' if count == 1 else 'are'} not drawn")


def no_y_limits(look: Look, what: str) -> None:
    """Raise CommandError if limits are requested for an axis without numbers."""
    if look.y is not None:
        raise CommandError(f"{what} have no numbers on the y axis", "leave out --ylim")


def style_of(names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """(number of the colour, symbol) of each name, in order of first occurrence."""
    return {name: (k, SIGNS[k % len(SIGNS)]) for k, name in enumerate(dict.fromkeys(names))}
