"""`#pragma omp`: which loops it declares parallel. Other pragmas do not change the meaning of a program."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record

_KNOWN = frozenset(("parallel", "for", "simd", "target", "teams", "distribute", "loop"))


class Directive(Record):
    """`loops`: the number of parallel loops, starting with the next one; 0 if iterations are not declared independent.

    `parallel`: it is one of OpenMP's, and has to stand before a loop.
    """

    text: str
    node: Any
    loops: int
    parallel: bool

    def fits(self, item: Any) -> bool:
        """Whether it may stand before a statement."""
        return not self.parallel or isinstance(item, c_ast.For)


def directive(node: Any) -> Directive:
    """The meaning of a pragma. Raises Refused for one that changes what the program does."""
    text = " ".join((node.string or "").split())
    words = text.replace("(", " (").split()
    if not words or words[0] != "omp":
        return Directive(text, node, 0, False)
    named = [w for w in words[1:] if w.replace("_", "").isalpha()]
    head = []
    for word in words[1:]:
        if word not in _KNOWN:
            break
        head.append(word)
    if not head or not {"for", "simd", "distribute", "loop"} & set(head):
        message = f"`#pragma omp {' '.join(words[1:3])}` is not supported"
        raise Refused("c-pragma", message, node, "write `#pragma omp parallel for` before the loop")
    shared = {"for", "distribute", "loop"} & set(head)
    if not shared or "reduction" in named or "ordered" in named:
        return Directive(text, node, 0, True)
    return Directive(text, node, _collapse(text), True)


def _collapse(text: str) -> int:
    _, found, rest = text.partition("collapse")
    digits = rest.strip().lstrip("(").split(")")[0].strip() if found else "1"
    return int(digits) if digits.isdigit() else 1
