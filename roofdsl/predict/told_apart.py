"""Which part of a sum an assumption belongs to: a launch of a kernel, or a kernel of a program."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 3
"""If more parts share an assumption, the others are counted."""


def told_apart(parts: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """The assumptions of named parts, each once; those that not every name has begin with the names that have it.

    Example: `f, g: blocks of 256 threads` for two of three kernels.
    """
    every = dict.fromkeys(name for name, _ in parts)
    having: dict[str, dict[str, None]] = {}
    for name, assumptions in parts:
        for text in assumptions:
            having.setdefault(text, {})[name] = None
    return tuple(
        text if len(names) == len(every) else f"{_listed(list(names))}: {text}" for text, names in having.items()
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    if more < 2:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {more} others"
