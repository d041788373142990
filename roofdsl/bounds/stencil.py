"""Lower bounds for stencils in a time loop: they follow from how far the reads of a slice reach beyond the slice.

The executions of one time step form a slice of Z^m. Slice u reads slice u - 1 at its own points moved by the offsets
K1, and itself at offsets K0. Let E be what a segment of the run computes, and e_u the size of its slice u. Everything
that is read but not computed in the segment is in fast memory at its beginning or arrives: at most X = S + T values.

- Without K0: sum over u of (|E_u + K1| - e_(u-1)) <= X. With |A + K1| >= |A| + c |A|^((m-1)/m) (`lattice_growth`), the
  potential k z^((m+1)/m), k = m / (c (m+1)), of z = e_u + what may still arrive falls by at least e_u from slice to
  slice: |E| <= k X^((m+1)/m). For three points in a row: |E| <= X^2 / 4, and loads >= |V| / S.
- With K0, both growing by c: slice u needs max(|E_u + K0|, |E_(u+1) + K1|) - e_u values of its own. That is the rise to
  the next slice, if any, and c e_u^((m-1)/m): X >= u + c |E| / u^(1/m) where u is the largest e, so that |E| <= m (X /
  (m+1))^((m+1)/m) / c.

If slices are linked through values of other statements (fdtd: a magnetic field by way of the electric ones), each of
those values stands for at most `shared` points of the slice before, and c is divided by that number. Reads at the
boundary (of values that no step computes) count as arrivals that cost nothing; `edge` is their number. Reads of the
initial values by the first step are not among them: there is one value for every point, as for later steps. Compare
Elango et al. 2015, Olivry et al. PLDI 2020 (chains of dependences; smaller constants) and Kwasniewski et al. SPAA 2021
(larger constants, for computations that are boxes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import islpy as isl
import sympy

from roofdsl.bounds.bound_at_sizes import Power, Segments, Share, rounded_up
from roofdsl.bounds.counting import at_large_sizes, count, top_terms
from roofdsl.bounds.flow import Flow, Read, Statement, sets
from roofdsl.bounds.lattice_growth import Point, growth
from roofdsl.bounds.time_steps import distance, initial, of_one_loop, origin
from roofdsl.formulas.sympy_forms import expression, polynomial
from roofdsl.sets.cases import Cases

Links = dict[tuple[int, Point], Any]
"""(slices back, offset) -> isl.Set of the executions that read there."""


@dataclass(frozen=True)
class Stencil:
    """loads >= value (sympy, in the parameters and S); |E| <= constant * X^power for a segment.

    offsets: K1 of the first phase; inside: its K0 and the point itself, or empty if reads within slices are not used.
    growth: c; shared: how many points one value between slices stands for.
    """

    names: tuple[str, ...]
    dimensions: int
    offsets: tuple[Point, ...]
    inside: tuple[Point, ...]
    growth: Any
    shared: int
    executions: Any
    edge: Any
    constant: Any
    power: Any
    value: Any
    leading: Any
    registers: int
    counts: tuple[Cases, ...]
    free: tuple[Cases, ...]

    def numbers(self) -> Segments:
        """The same in exact arithmetic, for given sizes, from the counts of executions and of reads at the edge."""
        m = self.dimensions
        allowed = Power(rounded_up(self.constant), 1 + Fraction(1, m))
        made = tuple((1, c) for c in self.free)
        return Segments((Share(self.counts, (allowed,)),), Fraction(m), False, self.registers, 0, made, apart=True)


def stencil(flow: Flow, size: Any) -> Stencil | None:
    """The best stencil bound of the statements of one time loop; `size` is the symbol of S."""
    found = []
    for phases in _groups(flow):
        for links, shared in _linked(flow, phases):
            made = _bound(flow, phases, links, shared, size)
            if made is not None:
                found.append(made)
    return max(found, key=lambda s: float(s.leading.subs(dict.fromkeys(s.leading.free_symbols, 1))), default=None)


def _groups(flow: Flow) -> Iterator[list[Statement]]:
    """Statements of full depth in one outer loop: all of them as phases of a step, and each of them alone."""
    for deepest in of_one_loop(flow):
        if len(deepest) > 1:
            yield deepest
        for s in deepest:
            yield [s]


def _linked(flow: Flow, phases: list[Statement]) -> Iterator[tuple[list[Links], int]]:
    """The links of each phase: direct ones; for a phase alone, also links through one other statement."""
    direct = [_direct(s, phases) for s in phases]
    if all(d is not None for d in direct):
        yield [d for d in direct if d is not None], 1
    if len(phases) == 1 and direct[0] is not None:
        through = _through(flow, phases[0], direct[0])
        if through is not None:
            yield through


def _direct(statement: Statement, phases: list[Statement]) -> Links | None:
    """The direct links of a statement; None if a link's distance is not the same everywhere."""
    place = {s.name: k for k, s in enumerate(phases)}
    links: Links = {}
    before: list[tuple[Read, Point]] = []
    for read in statement.reads:
        for relation in sets(read.values):
            source = relation.get_tuple_name(isl.dim_type.out)
            if source not in place:
                continue
            point = distance(relation)
            if point is None:
                return None
            back = len(phases) * point[0] + place[statement.name] - place[source]
            offset = tuple(-x for x in point[1:])
            _add(links, (back, offset), relation.domain())
            if back == 1:
                before.append((read, offset))
    if statement is phases[0] and len({origin(statement, read, offset) for read, offset in before} - {None}) == 1:
        for read, offset in before:
            if origin(statement, read, offset) is not None:
                _add(links, (1, offset), initial(statement, read))
    return links


def _add(links: Links, key: tuple[int, Point], where: Any) -> None:
    where = where.reset_tuple_id()
    links[key] = links[key].union(where) if key in links else where


def _through(flow: Flow, statement: Statement, direct: Links) -> tuple[list[Links], int] | None:
    """Links through one other statement. A point must also read itself one slice back, directly."""
    m = len(statement.loops) - 1
    if (1, (0,) * m) not in direct:
        return None
    links = dict(direct)
    shared = 1
    others = {s.name: s for s in flow.statements if s.name != statement.name}
    for read in statement.reads:
        for first in sets(read.values):
            other = others.get(first.get_tuple_name(isl.dim_type.out))
            if other is None:
                continue
            own = 0
            for inner in other.reads:
                for second in sets(inner.values):
                    if second.get_tuple_name(isl.dim_type.out) != statement.name:
                        continue
                    own += 1
                    chain = first.apply_range(second)
                    point = None if chain.is_empty() else distance(chain)
                    if point is not None:
                        _add(links, (point[0], tuple(-x for x in point[1:])), chain.domain())
            shared = max(shared, own)
    return [links], shared


def _bound(flow: Flow, phases: Sequence[Statement], links: Sequence[Links], shared: int, size: Any) -> Stencil | None:
    m = len(phases[0].loops) - 1
    # The argument compares a slice with itself and with the one before; values in between stand for links to the slice
    # before.
    if any(back not in (0, 1) for each in links for back, _ in each) or (
        shared > 1 and any(b == 0 for b, _ in links[0])
    ):
        return None
    before = [frozenset(p for back, p in each if back == 1) for each in links]
    within = [frozenset({(0,) * m, *(p for back, p in each if back == 0)}) for each in links]
    if not all(before):
        return None
    # Each phase of a step makes slices of its own: between slices, only the slowest growth of any phase is certain.
    c = min(growth(points, m) for points in before)
    power = 1 + sympy.Rational(1, m)
    inner = min(growth(points, m) for points in within) if all(len(w) > 1 for w in within) else sympy.Integer(0)
    if inner:
        c = min(c, inner)
    if not c:
        return None
    c = c / shared
    constant = m / c / (sympy.Integer(m + 1) ** power if inner else m + 1)
    counts, free = _sizes(flow, phases, links)
    total, edge = (sum(map(expression, own), sympy.Integer(0)) for own in (counts, free))
    room = size + flow.registers
    arrivals = m * room
    value = arrivals * (total / (constant * (room + arrivals) ** power) - 1) - edge
    main = sum(polynomial(at_large_sizes(flow, count(flow, s.domain))) for s in phases)
    leading = top_terms(main) * m * size / (constant * ((m + 1) * size) ** power)
    names = tuple(s.name for s in phases)
    offsets, inside = tuple(sorted(before[0])), tuple(sorted(within[0])) if inner else ()
    return Stencil(
        names, m, offsets, inside, c, shared, total, edge, constant, power, value, sympy.powsimp(leading),
        flow.registers, counts, free,
    )  # fmt: skip


def _sizes(
    flow: Flow, phases: Sequence[Statement], links: Sequence[Links]
) -> tuple[tuple[Cases, ...], tuple[Cases, ...]]:
    """The numbers of executions, and of (execution, offset) pairs that read values no step computes."""
    counts, free = [], []
    for statement, each in zip(phases, links, strict=True):
        domain = statement.domain.reset_tuple_id()
        counts.append(count(flow, domain))
        free += [count(flow, domain.subtract(where).coalesce()) for where in each.values()]
    return tuple(counts), tuple(free)
