"""`--fused`: elementwise operators on elements of the same shape, together where their order allows it."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.frontends.tensors.elementwise import is_elementwise
from roofdsl.frontends.tensors.graph import Graph, Node


def groups(graph: Graph, fused: bool) -> list[tuple[Node, ...]]:
    """The launches, in an executable order: single operators, or groups if `fused` is set."""
    if not fused:
        return [(node,) for node in graph.nodes]
    place = {t.id: k for k, node in enumerate(graph.nodes) for t in node.outputs}
    before = _before(graph.nodes, place)
    group = list(range(len(graph.nodes)))  # the group of each operator, by the number of its first one

    def members(own: int) -> set[int]:
        return {k for k, g in enumerate(group) if g == own}

    for k, node in enumerate(graph.nodes):
        if not is_elementwise(node):
            continue
        for tensor in node.tensors:
            producer = place.get(tensor.id)
            if producer is None or group[producer] == group[k] or not tensor.whole:
                continue
            other = graph.nodes[producer]
            if not is_elementwise(other) or other.outputs[0].shape != node.outputs[0].shape:
                continue
            if tensor.stored != node.outputs[0].shape:
                continue
            # a + b, a product that reads it, and an operator on both: the two outer ones cannot be one launch, since
            # the product has to run between them.
            joined = members(group[producer]) | members(group[k])
            if _is_closed(joined, graph.nodes, place, before):
                for member in joined:
                    group[member] = min(joined)
    return _ordered(graph.nodes, group, place)


def _before(nodes: Sequence[Node], place: dict[int, int]) -> list[set[int]]:
    """The operators that must be executed before each one."""
    found: list[set[int]] = []
    for node in nodes:
        own: set[int] = set()
        for tensor in node.tensors:
            producer = place.get(tensor.id)
            if producer is not None:
                own |= {producer} | found[producer]
        found.append(own)
    return found


def _is_closed(joined: set[int], nodes: Sequence[Node], place: dict[int, int], before: list[set[int]]) -> bool:
    """Whether nothing outside must run between members: no input from outside depends on a member, and no member reads
    another one through a view.
    """
    for k in joined:
        for tensor in nodes[k].tensors:
            producer = place.get(tensor.id)
            if producer is None:
                continue
            if producer in joined:
                if not tensor.whole or tensor.shape != nodes[producer].outputs[0].shape:
                    return False
            elif before[producer] & joined:
                return False
    return True


def _ordered(nodes: Sequence[Node], group: list[int], place: dict[int, int]) -> list[tuple[Node, ...]]:
    """The groups, each after those whose results it reads."""
    found: list[tuple[Node, ...]] = []
    done: set[int] = set()
    pending = list(dict.fromkeys(group))
    while pending:
        for own in pending:
            members = [k for k, g in enumerate(group) if g == own]
            needs = {group[place[t.id]] for k in members for t in nodes[k].tensors if t.id in place} - {own}
            if needs <= done:
                found.append(tuple(nodes[k] for k in members))
                done.add(own)
                pending.remove(own)
                break
        else:
            raise AssertionError("groups that wait for each other are not closed")
    return found
