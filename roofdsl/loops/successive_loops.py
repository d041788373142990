"""The inner loops of a loop nest that follow each other in every iteration of the loops around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Const
from roofdsl.loops.model import For, Node
from roofdsl.loops.successive_nests import successive_nests


class Around(Record):
    """A loop around others, with the statements beside it."""

    before: tuple[Node, ...]
    loop: For
    behind: tuple[Node, ...]


class SuccessiveLoops(Record):
    """The loops `around` them, outermost first, and their `parts`: each an inner loop with the statements beside it."""

    around: tuple[Around, ...]
    parts: tuple[tuple[Node, ...], ...]

    def alone(self) -> tuple[tuple[Node, ...], ...]:
        """Each part in the loops around it. Statements beside these loops belong to the first part."""
        return tuple(self._in_loops(nodes, beside=k == 0) for k, nodes in enumerate(self.parts))

    def inside(self) -> tuple[Node, ...]:
        """The parts in the loops around them, without the statements beside these loops."""
        return self._in_loops(tuple(node for nodes in self.parts for node in nodes), beside=False)

    def _in_loops(self, nodes: tuple[Node, ...], *, beside: bool) -> tuple[Node, ...]:
        for one in reversed(self.around):
            inside = replace(one.loop, body=nodes)
            nodes = (*one.before, inside, *one.behind) if beside else (inside,)
        return nodes

    def one_pass(self, values: Mapping[str, int]) -> tuple[tuple[Node, ...], tuple[tuple[Node, ...], ...]]:
        """(what is executed before a pass in the middle of the iterations, its parts).

        A pass is one execution of all parts. values: of the parameters. Raises ValueError if a loop has no iterations
        there.
        """
        known, before = dict(values), list[tuple[tuple[For, ...], tuple[Node, ...]]]()
        fixed: tuple[For, ...] = ()
        for one in self.around:
            loop = one.loop
            start, stop, step = (e.evaluate(known) for e in (loop.start, loop.stop, loop.step))
            count = len(range(start, stop, step))
            if not count:
                raise ValueError("no iterations")
            at = start + (count - 1) // 2 * step
            earlier = (replace(loop, start=Const(start), stop=Const(at)),) if at > start else ()
            before.append((fixed, (*one.before, *earlier)))
            fixed = (*fixed, replace(loop, start=Const(at), stop=Const(at + 1), step=Const(1), parallel=False))
            known[loop.var] = at
        first = tuple(node for loops, nodes in before for node in _within(loops, nodes))
        return first, tuple(_within(fixed, nodes) for nodes in self.parts)


def _within(loops: Sequence[For], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    for loop in reversed(loops):
        nodes = (replace(loop, body=nodes),) if nodes else ()
    return nodes


def successive_loops(body: Sequence[Node]) -> SuccessiveLoops | None:
    """The outermost inner loops of one loop nest that follow each other; None if it has none.

    There are none if the body has several nests, or if a local value or a condition is around the loops.
    """
    around = list[Around]()
    while True:
        parts = successive_nests(body)
        if len(parts) > 1:
            return SuccessiveLoops(tuple(around), parts) if around else None
        places = [k for k, node in enumerate(body) if isinstance(node, For)]
        if len(parts) != 1 or len(places) != 1:
            return None
        (at,) = places
        loop = body[at]
        assert isinstance(loop, For)
        around.append(Around(tuple(body[:at]), loop, tuple(body[at + 1 :])))
        body = loop.body
