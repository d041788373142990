"""Results on the terminal, with emphasis if possible."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from roofdsl.tell.as_text import to_text
from roofdsl.tell.blocks import Block


def bold(text: str) -> str:
    """`text` emphasized on a terminal; unchanged in a pipe, or if NO_COLOR is set."""
    terminal = sys.stdout is not None and sys.stdout.isatty()  # None: the output is closed (>&-)
    return click.style(text, bold=True) if terminal and not os.environ.get("NO_COLOR") else text


def terminal_width() -> int:
    """Characters in a line of the terminal (or COLUMNS); 0 if the output goes elsewhere."""
    from shutil import get_terminal_size

    return get_terminal_size(fallback=(0, 0)).columns


def show_blocks(*results: Sequence[Block]) -> None:
    """Print results with an empty line between any two."""
    click.echo("\n\n".join("\n".join(to_text(blocks, strong=bold)) for blocks in results))
