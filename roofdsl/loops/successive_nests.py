"""The loop nests of a kernel that are executed one after the other: the statements of its body, with what is beside
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.loops.model import For, If, Let, Node


def successive_nests(body: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The body in parts that have one outermost loop each; no parts if the body has no loop, or a local value, which
    several loops may use.

    Statements outside of loops belong to the loop after them, and the last ones to the last loop.
    """
    return () if any(isinstance(node, Let) for node in body) else loops_apart(body)


def loops_apart(body: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The same, with local values among the statements: they belong to the loop after them, too."""
    parts, waiting = list[tuple[Node, ...]](), list[Node]()
    for node in body:
        waiting.append(node)
        if _has_loop([node]):
            parts.append(tuple(waiting))
            waiting = []
    if not parts:
        return ()
    return (*parts[:-1], (*parts[-1], *waiting))


def _has_loop(nodes: Sequence[Node]) -> bool:
    return any(isinstance(node, For) or _has_loop(tuple(_inside(node))) for node in nodes)


def _inside(node: Node) -> Iterator[Node]:
    if isinstance(node, If):
        yield from node.then
        yield from node.orelse
