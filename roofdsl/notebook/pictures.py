"""Figures and pages as results of a cell."""

from __future__ import annotations

import html
from pathlib import Path

from roofdsl.lang.record import Record
from roofdsl.store.atomic import write_whole

HEIGHT_PX = 760
"""The height of the frame of a page in a notebook."""


class Figure(Record):
    """A figure as SVG."""

    svg: str

    def __repr__(self) -> str:
        return f"Figure({len(self.svg)} characters of SVG; .save(PATH) writes it)"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Writes the SVG. Raises CommandError if it cannot be written."""
        write_whole(Path(path), self.svg)


class Page(Record):
    """An interactive page, in a frame of its own that may run its script and nothing else."""

    text: str

    def __repr__(self) -> str:
        return f"Page({len(self.text) // 1000} kB of HTML; .save(PATH) writes it)"

    def _repr_html_(self) -> str:
        framed = html.escape(self.text)
        style = f"width: 100%; height: {HEIGHT_PX}px; border: 1px solid #8888"
        return f'<iframe title="roofdsl explore" sandbox="allow-scripts" style="{style}" srcdoc="{framed}"></iframe>'

    def save(self, path: str) -> None:
        """Writes the page. Raises CommandError if it cannot be written."""
        write_whole(Path(path), self.text)
