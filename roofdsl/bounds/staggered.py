"""Lower bounds for staggered grids in a time loop: one field on the vertices of a plane's grid, others on its edges.

This is Yee's scheme in the plane (fdtd-2d). A vertex q at time t is made from itself one step before and from the four
edges that touch it; an edge is made from itself one step before and from its two ends. Any set of N executions in a
segment of the run needs at least X values that it does not make, and

    N <= X^(3/2) / 3 + 4 X.

The proof is in docs/proofs.md. In short, let A be the vertices made at time t, a = |A| and c = sqrt(8). At least
c sqrt(a) vertices lie beside A (Wang, Wang 1977), and for each of them one value is needed, its own or that of an edge
to A. Each vertex and each edge needs its initial value when the segment begins to make it. One value may serve as both
only for an edge that begins where its vertex is reached. If u is the largest a,
X >= c (sum of a) / sqrt(u) + 3/2 u - 2 c sqrt(u).

The largest known sets, prisms over diamonds that grow up to their middle time step and shrink after it, have X^(3/2) /
sqrt(10) for large X: no argument of this kind proves a leading term more than sqrt(10) / 3 times as large. Kwasniewski
et al., SPAA 2021, give the same leading term for boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import islpy as isl
import sympy

from roofdsl.bounds.bound_at_sizes import Power, Segments, Share
from roofdsl.bounds.counting import at_large_sizes, count, top_terms
from roofdsl.bounds.flow import Flow, Read, Statement, sets
from roofdsl.bounds.lattice_growth import Point
from roofdsl.bounds.time_steps import distance, initial, of_one_loop, origin
from roofdsl.formulas.sympy_forms import expression, polynomial
from roofdsl.sets.cases import Cases


@dataclass(frozen=True)
class Staggered:
    """loads >= value (sympy, in the parameters and S).

    vertex, edges: names of the statements; executions: total of all of them; free: reads at the boundary of the loops
    that count as free.
    """

    vertex: str
    edges: tuple[str, str]
    executions: Any
    free: Any
    value: Any
    leading: Any
    registers: int
    counts: tuple[Cases, ...]
    at_edge: tuple[Cases, ...]

    def numbers(self) -> Segments:
        """The same in exact arithmetic, for given sizes, from the counts of executions and of free reads."""
        allowed = Power(Fraction(1, 3), Fraction(3, 2)), Power(Fraction(4), Fraction(1))
        made = tuple((1, c) for c in self.at_edge)
        return Segments((Share(self.counts, allowed),), Fraction(2), False, self.registers, 0, made, apart=True)


@dataclass
class _Link:
    """The reads of a field by a statement at one distance: where they happen, and which reads they are."""

    where: Any
    reads: list[Read]


_Links = Mapping[tuple[str, str, Point], _Link]
"""(reader, maker, distance) -> link."""


def most_executions(needed: Any) -> Any:
    """The largest N that the inequality above allows, for X = `needed` values (sympy)."""
    return needed ** sympy.Rational(3, 2) / 3 + 4 * needed


def staggered(flow: Flow, size: Any) -> Staggered | None:
    """The bound of the first three statements that form such a grid; `size` is the symbol of S."""
    for group in of_one_loop(flow):
        if any(len(s.loops) != 3 for s in group):
            continue
        for vertex in group:
            for first, second in combinations([s for s in group if s is not vertex], 2):
                links = _grid(vertex, (first, second))
                if links is not None:
                    return _bound(flow, vertex, (first, second), links, size)
    return None


def _grid(vertex: Statement, edges: tuple[Statement, Statement]) -> _Links | None:
    """The links of the three statements if they form a grid; other reads only add to what is needed."""
    found = _links((vertex, *edges))
    itself: Point = (1, 0, 0)  # one step of time before, at the same place of the plane
    kept = {(s.name, s.name, itself) for s in (vertex, *edges)}
    if not kept <= found.keys():
        return None
    sides = []
    for edge in edges:
        to_edge = {d for reader, maker, d in found if (reader, maker) == (vertex.name, edge.name)}
        to_end = {d for reader, maker, d in found if (reader, maker) == (edge.name, vertex.name)}
        # From a vertex to one of its edges, and from there back to this end, it is one step of time and none in the
        # plane. So the distances of the edge's two ends are what is left of this step.
        back = {(1 - t, -i, -j) for t, i, j in to_end}
        at_once = len({t for t, _, _ in to_edge}) == 1
        if len(to_edge) != 2 or back != to_edge or not at_once:
            return None
        # From the edge on one side of a vertex to that on the other, it is one step of the grid.
        (_, i, j), (_, k, m) = sorted(to_edge)
        sides.append((k - i, m - j))
        kept |= {(vertex.name, edge.name, d) for d in to_edge} | {(edge.name, vertex.name, d) for d in to_end}
    if sides[0][0] * sides[1][1] == sides[0][1] * sides[1][0]:
        return None  # both kinds of edges run in one direction: lines, and not the grid of a plane
    return {key: found[key] for key in kept}


def _links(statements: tuple[Statement, ...]) -> dict[tuple[str, str, Point], _Link]:
    """All links between the statements whose distance is the same everywhere."""
    names = {s.name for s in statements}
    found: dict[tuple[str, str, Point], _Link] = {}
    for statement in statements:
        for read in statement.reads:
            for relation in sets(read.values):
                maker = relation.get_tuple_name(isl.dim_type.out)
                apart = distance(relation) if maker in names else None
                if apart is None:
                    continue
                where = relation.domain().reset_tuple_id()
                link = found.setdefault((statement.name, maker, apart), _Link(where, []))
                link.where = link.where.union(where)
                link.reads.append(read)
    return found


def _bound(flow: Flow, vertex: Statement, edges: tuple[Statement, Statement], links: _Links, size: Any) -> Staggered:
    """Bound by segments of T = 2 S arrivals, which include the reads at the boundary."""
    statements = {s.name: s for s in (vertex, *edges)}
    counts = [count(flow, s.domain) for s in statements.values()]
    at_edge = tuple(_free(flow, statements, links))
    free = sum(map(expression, at_edge), sympy.Integer(0))
    total = sum((expression(c) for c in counts), sympy.Integer(0))
    room = size + flow.registers
    value = 2 * room * (total / most_executions(3 * room) - 1) - free
    main = sum((polynomial(at_large_sizes(flow, c)) for c in counts), sympy.Integer(0))
    leading = top_terms(main) * 2 * size / ((3 * size) ** sympy.Rational(3, 2) / 3)
    return Staggered(
        vertex.name, (edges[0].name, edges[1].name), total, free, value, sympy.powsimp(leading), flow.registers,
        tuple(counts), at_edge,
    )  # fmt: skip


def _free(flow: Flow, statements: Mapping[str, Statement], links: _Links) -> Iterator[Cases]:
    """Counts of (execution, link) pairs that read a value neither made by the statements nor there before the first
    step.

    The initial state counts as one value for each place of a field if all its readers find it at one place of an array,
    and each field has an array of its own.
    """
    places: dict[str, set[Any]] = {name: set() for name in statements}
    for (reader, maker, (back, i, j)), link in links.items():
        if back == 1:
            places[maker] |= {origin(statements[reader], read, (-i, -j)) for read in link.reads}
    arrays = [place[0] for found in places.values() for place in found if place is not None]
    own = {n for n, found in places.items() if len(found) == 1 and None not in found}
    own = {n for n in own if all(arrays.count(place[0]) == 1 for place in places[n])}
    for (reader, maker, (back, _, _)), link in links.items():
        statement = statements[reader]
        covered = link.where
        if back == 1 and maker in own:
            for read in link.reads:
                covered = covered.union(initial(statement, read, tuple(statements.values())))
        yield count(flow, statement.domain.reset_tuple_id().subtract(covered).coalesce())
