"""Plain text for people: aligned columns, and emphasis where the output is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click


def bold(text: str) -> str:
    """`text` emphasized on a terminal; as it is in a pipe, or where NO_COLOR is set."""
    terminal = sys.stdout is not None and sys.stdout.isatty()  # None: nobody wants the output (>&-)
    return click.style(text, bold=True) if terminal and not os.environ.get("NO_COLOR") else text


def terminal_width() -> int:
    """Characters in a line of the terminal (or COLUMNS); 0 where the output goes elsewhere."""
    from shutil import get_terminal_size

    return get_terminal_size(fallback=(0, 0)).columns


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """The rows as lines with aligned columns; columns whose number is in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append(gap.join(cells).rstrip())
    return lines
