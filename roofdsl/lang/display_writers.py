"""Values that are printed for people but contain no text: `roofdsl.tell` registers how they are written.

It registers how a derivation reads as text, HTML and LaTeX, and the analyses import nothing of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofdsl.lang.record import Record


class Writers(Record):
    """How values of one type are written: as text, as HTML, and as LaTeX with display math."""

    text: Callable[[Any], str]
    html: Callable[[Any], str]
    latex: Callable[[Any], str]


_WRITERS: dict[type, Writers] = {}


def show(kind: type[Shown], writers: Writers) -> None:
    """Makes `print` and notebooks use `writers` for values of the type `kind` from now on."""
    _WRITERS[kind] = writers


class Shown(Record):
    """A record that `print` and notebooks show by its writers; without writers, like every record."""

    def __str__(self) -> str:
        writers = _WRITERS.get(type(self))
        return repr(self) if writers is None else writers.text(self)

    def _repr_html_(self) -> str | None:
        writers = _WRITERS.get(type(self))
        return None if writers is None else writers.html(self)

    def _repr_latex_(self) -> str | None:
        writers = _WRITERS.get(type(self))
        return None if writers is None else writers.latex(self)
