"""The shipped kernels and programs, under the files that define them."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from roofdsl.tell.blocks import Block, line

SUITE = "PolyBench 4.2, all 30 kernels (the standard sizes: `roofdsl models --json`)"

WIDTH = 96


def by_file(rows: Iterable[tuple[str, str, str]]) -> list[Block]:
    """The models under the files that define them, no line wider than WIDTH."""
    files: dict[str, list[tuple[str, str]]] = {}
    for name, parameters, file in rows:
        files.setdefault(file, []).append((name, parameters))
    out = []
    longest = max(len(name) for own in files.values() for name, _ in own)
    for file, own in sorted(files.items()):
        out.append(file)
        for name, parameters in own:
            indent = " " * (longest + 4)
            # `s = 2` is one word
            text = parameters.replace(" = ", "\u00a0=\u00a0").replace("const ", "const\u00a0")
            lines = wrap(text, WIDTH, initial_indent=f"  {name:{longest}}  ", subsequent_indent=indent) or [f"  {name}"]
            out += [text.replace("\u00a0", " ").rstrip() for text in lines]
    return [line(text, 0) for text in out]
