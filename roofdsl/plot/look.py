"""How figures look, in one place: size, fonts, colours, symbols, limits, title; and how text is kept from harm."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

from roofdsl.lang.diagnostics import CommandError

Draw = TypeVar("Draw", bound=Callable[..., Any])

# Okabe and Ito: told apart with any colour vision. Black is for a single machine's lines.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

SIGNS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "d", "p")
"""Symbols, which say in print without colour who is who. Their number has no divisor in common with that of the
colours, so that 66 subjects differ in one of the two. `>` is left for what has no operations."""

DPI = 100
SMALL, NORMAL, LARGE = 8.5, 9.5, 11.5
INK, PAPER = "#222222", "#FFFFFF"
LONGEST_NAME, MOST_TITLE_LINES = 48, 4


class FigureWarning(UserWarning):
    """Something that the figure does not show as it was given: letters without a glyph, points beyond the limits."""


@dataclass(frozen=True)
class Look:
    """What a person can choose about any figure.

    size_in: width and height in inches, None for the figure's own; font_scale: times the usual size of letters; x, y:
    limits of the axes in their units, None where they follow from the data; title: instead of the figure's own.
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
        """Of text and of a machine's lines."""
        return "#E8E8E8" if self.dark else INK

    @property
    def paper(self) -> str:
        """Of the background, and inside open symbols."""
        return "#16181D" if self.dark else PAPER

    def grey(self, hexadecimal: str) -> str:
        """A grey that is meant for white paper, on this one."""
        if not self.dark:
            return hexadecimal
        level = int(hexadecimal[1:3], 16)
        paper, ink = int(self.paper[1:3], 16), int(self.ink[1:3], 16)
        turned = round(paper + (255 - level) / (255 - 0x22) * (ink - paper))
        return "#" + f"{max(paper, min(ink, turned)):02x}" * 3

    def color(self, number: int) -> str:
        """Of the subject with this number, from 0 on."""
        return OKABE_ITO[number % len(OKABE_ITO)]

    def letters(self, color: str) -> str:
        """The same hue, dark enough, or on dark paper light enough, to read letters in it."""
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
        """Of the longest line of a text, in inches."""
        return text_width(text, self.small if points is None else points) / 72

    def heading(self, own: str, width_in: float) -> str:
        """The title in lines of at most that width: the one that was asked for, else the figure's own."""
        text = self.title if self.title is not None else own
        each = max(8, int(width_in * 72 / (0.56 * self.large)))
        return fitted(text, each, MOST_TITLE_LINES)

    # ---- the figure ----

    def size(self, own: tuple[float, float]) -> tuple[float, float]:
        """Width and height in inches: as asked for, else the figure's own, larger with larger letters."""
        if self.size_in is not None:
            return self.size_in
        return own[0] * max(1.0, self.font_scale) ** 0.5, own[1] * max(1.0, self.font_scale) ** 0.5

    def figure(self, own: tuple[float, float]) -> Any:
        """An empty matplotlib Figure, not bound to any display."""
        from matplotlib.figure import Figure

        return Figure(figsize=self.size(own), dpi=DPI, facecolor=self.paper)

    def limits(self, own: tuple[float, float], axis: str, *, logarithmic: bool = True) -> tuple[float, float]:
        """Those of an axis, "x" or "y": as asked for, else its own. Raises CommandError for 0 on a logarithmic axis."""
        asked: tuple[float, float] | None = getattr(self, axis)
        if asked is None:
            return own
        if logarithmic and asked[0] <= 0:
            raise CommandError(f"the {axis} axis is logarithmic: its limits are above 0", f"as in --{axis}lim 0.01:100")
        return asked

    def dress(self, axes: Any) -> None:
        """Colours of the paper, the frame and the ticks; no lines above and on the right."""
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
    """A text in lines of at most `longest` characters, broken at spaces where there are some; what does not fit into
    `most_lines` ends in `...`."""
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
    """A name on one line, its middle left out where it is longer than people read."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[: longest - 3 - half]}...{text[-half:]}"


def text_width(text: str, points: float) -> float:
    """Of the longest line, in points. Nothing in the text means anything to matplotlib."""
    return max((_line_width(line, points) for line in text.split("\n")), default=0.0)


@lru_cache(maxsize=4096)
def _line_width(line: str, points: float) -> float:
    from matplotlib.textpath import TextPath

    plain = drawable(line)[0].replace("$", r"\$")
    return 1.03 * float(TextPath((0, 0), plain, size=points).get_extents().width) if plain.strip() else 0.0


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """Fonts that letters are taken from, the first that has them: matplotlib's own, then those for other scripts."""
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
    """The text as it can be drawn, and its letters that no font here has, drawn as boxes.

    Control characters, and those that turn the direction of text, become boxes as well.
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
    """matplotlib's settings while a figure is drawn or written. Text is text: no `$` begins a formula by itself."""
    return {
        "svg.hashsalt": "roofdsl", "svg.fonttype": "path", "font.family": list(families()), "text.parse_math": False,
        "text.usetex": False, "text.color": look.ink, "legend.labelcolor": look.ink, "hatch.color": look.paper,
    }  # fmt: skip


def styled(draw: Draw) -> Draw:
    """Makes `draw`, which gives a Figure and takes `look`, draw under our settings, and cleans its figure's text."""

    @wraps(draw)
    def inner(*given: Any, look: Look = USUAL, **more: Any) -> Any:
        import matplotlib as mpl

        with mpl.rc_context(rc(look)):
            figure = draw(*given, look=look, **more)
            clean(figure)
        return figure

    return inner  # type: ignore[return-value]


def clean(figure: Any) -> None:
    """Every text of the figure without what cannot be drawn; warns of letters that no font here has."""
    from matplotlib.text import Text

    lacking: dict[str, None] = {}
    for text in figure.findobj(Text):
        shown, without = drawable(text.get_text())
        if shown != text.get_text():
            text.set_text(shown)
        lacking |= dict.fromkeys(without)
    if lacking:
        letters = "".join(list(lacking)[:12])
        tell(f"no font on this computer has the letters {letters}: they are drawn as boxes; fonts-noto-cjk has many")


def tell(message: str) -> None:
    """Warns, as a FigureWarning; the commands print it as their own."""
    warnings.warn(message, FigureWarning, stacklevel=3)


def outside(count: int, what: str = "point") -> None:
    """Warns that so many points lie beyond the limits that were asked for."""
    if count:
        tell(f"{count} {what}{'s' if count > 1 else ''} beyond the limits of the axes: not drawn")


def no_y_limits(look: Look, what: str) -> None:
    """Raises CommandError where limits are asked for an axis that has no numbers."""
    if look.y is not None:
        raise CommandError(f"{what} have no numbers on the y axis", "leave out --ylim")


def style_of(names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """(number of the colour, symbol) of each name, by its first place."""
    return {name: (k, SIGNS[k % len(SIGNS)]) for k, name in enumerate(dict.fromkeys(names))}
