"""The text of a kernel, put together from declarations, loops and statements; all dimensions are numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from roofdsl.lang.record import Record

LOWEST = {"f64": "-1.7e308", "f32": "-3.4e38", "tf32": "-3.4e38", "bf16": "-3.3e38", "f16": "-65504"}
"""What stands for minus infinity."""


class KernelText(Record):
    """A kernel without its name. `wish`: the name it gets if that is free; `comment`: a comment for readers."""

    wish: str
    comment: str
    lines: tuple[str, ...]


class Writer:
    """Collects the lines of one kernel."""

    def __init__(self) -> None:
        self.declared: dict[str, list[str]] = {"in": [], "inout": [], "out": [], "temp": []}
        self.body: list[str] = []
        self.depth = 1

    def array(self, intent: str, name: str, type_: str, dims: Sequence[int]) -> str:
        """Declares an array, or a scalar if there are no dimensions; returns its name."""
        shown = f"[{', '.join(map(str, dims))}]" if dims else ""
        self.declared[intent].append(f"{name}: {type_}{shown}")
        return name

    def put(self, text: str) -> None:
        """A statement."""
        self.body.append("    " * self.depth + text)

    @contextmanager
    def loops(self, ranges: Sequence[tuple[str, int]]) -> Iterator[None]:
        """Loops from 0 over the given numbers, without those of one iteration."""
        kept = [(v, n) for v, n in ranges if n != 1]
        if kept:
            self.put(f"for {', '.join(f'{v} in range({n})' for v, n in kept)}:")
        self.depth += bool(kept)
        try:
            yield
        finally:
            self.depth -= bool(kept)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block such as `if c:`."""
        self.put(head)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def text(self, wish: str, comment: str) -> KernelText:
        """The kernel, each datum moved once."""
        lines = ["    traffic once"]
        for intent, names in self.declared.items():
            if names:
                lines.append(f"    {intent} {', '.join(names)}")
        return KernelText(wish, comment, (*lines, *self.body))


def element(name: str, dims: Sequence[int], subscripts: Sequence[str]) -> str:
    """`name[i, j]`, with 0 for a dimension of one element; only the name for a scalar."""
    parts = ["0" if n == 1 else s for n, s in zip(dims, subscripts, strict=True)]
    return f"{name}[{', '.join(parts)}]" if parts else name


def number(value: float) -> str:
    """A number as the language writes it; infinities become the largest numbers of f32, and NaN becomes 0."""
    if math.isnan(value):
        return "0"
    if value in (float("inf"), float("-inf")):
        return "3.4e38" if value > 0 else "-3.4e38"
    text = repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    return text
