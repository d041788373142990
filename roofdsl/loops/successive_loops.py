"""The inner loops of a loop nest that follow each other in every iteration of the loops around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import For, Let, Node
from roofdsl.loops.parameter_values import with_numbers_in
from roofdsl.loops.successive_nests import loops_apart


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

    def passes(self, values: Mapping[str, int], earlier: int) -> list[tuple[tuple[Node, ...], ...]]:
        """A pass in the middle of the iterations, after up to `earlier` passes right before it: the parts of each.

        A pass is one execution of all parts. It has no loops around them; their variables are numbers. values: of the
        parameters. There are no passes if a loop has no iterations there.
        """
        known, at = dict(values), range(0)
        for one in self.around:
            loop = one.loop
            at = range(*(e.evaluate(known) for e in (loop.start, loop.stop, loop.step)))
            if not at:
                return []
            known[loop.var] = at[(len(at) - 1) // 2]
        middle, var = (len(at) - 1) // 2, self.around[-1].loop.var
        return [
            tuple(with_numbers_in(nodes, {**known, var: value}) for nodes in self.parts)
            for value in at[max(0, middle - earlier) : middle + 1]
        ]


def successive_loops(body: Sequence[Node]) -> SuccessiveLoops | None:
    """The outermost inner loops of one loop nest that follow each other; None if it has none.

    There are none if the body has several nests, or if a condition is around the loops. A local value belongs to each
    loop after it, which computes it anew.
    """
    around = list[Around]()
    while True:
        parts = loops_apart(body)
        if len(parts) > 1:
            return SuccessiveLoops(tuple(around), _with_values(parts)) if around else None
        places = [k for k, node in enumerate(body) if isinstance(node, For)]
        if len(parts) != 1 or len(places) != 1:
            return None
        (at,) = places
        loop = body[at]
        assert isinstance(loop, For)
        around.append(Around(tuple(body[:at]), loop, tuple(body[at + 1 :])))
        body = loop.body


def _with_values(parts: Sequence[tuple[Node, ...]]) -> tuple[tuple[Node, ...], ...]:
    """The parts, each with the local values of those before it."""
    found, values = list[tuple[Node, ...]](), tuple[Node, ...]()
    for nodes in parts:
        found.append((*values, *nodes))
        values = (*values, *(node for node in nodes if isinstance(node, Let)))
    return tuple(found)
