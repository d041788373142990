"""New names for names of a kernel that have another meaning in a target language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from roofdsl.codegen.syntax import Syntax
from roofdsl.loops.model import For, If, Kernel, Let, Node

_OWN = re.compile(
    r"(floor_(div|mod)|quotient|f32_to_\w+|\w+_(index|f64|f32|i64|i32|c64|c128|trip|out|whole|rest|line|part|((sum|product|quotient|min|max|dim)\d*))|own_\w+|(from|at)_\d+|tile_\w+)$"
)
"""Names that the emitters create themselves."""


def renamed(kernel: Kernel, syntax: Syntax) -> dict[str, str]:
    """Replacements for the names that cannot be used as they are."""
    used = set(all_names(kernel))
    found: dict[str, str] = {}
    for name in sorted(used):
        if not _is_taken(name, syntax):
            continue
        new = next(s for s in _spellings(name) if s not in used and not _is_taken(s, syntax))
        found[name] = new
        used.add(new)
    return found


def _is_taken(word: str, syntax: Syntax) -> bool:
    return word.startswith("_") or syntax.is_reserved(word) or _OWN.match(word) is not None


def _spellings(name: str) -> Iterator[str]:
    """A name with more and more underscores; with a letter in front if it begins with one or if underscores do not
    suffice.
    """
    for more in count(1):
        if not name.startswith("_"):
            yield name + "_" * more
        yield "a" + name + "_" * (more - 1)


def all_names(kernel: Kernel) -> Iterator[str]:
    """The kernel's own name, its parameters, arrays, loop variables and `let`s."""
    yield kernel.name
    yield from (p.name for p in kernel.parameters)
    yield from (a.name for a in kernel.arrays)
    yield from variables(kernel.body)


def variables(nodes: Sequence[Node]) -> Iterator[str]:
    """Loop variables and `let`s of a block."""
    for node in nodes:
        match node:
            case For(var=var, body=body):
                yield var
                yield from variables(body)
            case If(_, then, orelse):
                yield from variables(then)
                yield from variables(orelse)
            case Let(name=name):
                yield name
