"""Lower bounds from moments at which much must be alive: bottlenecks in the flow of values.

A value that was made (or was there) before a moment and is used after it is in fast memory at that moment, S of them
at most, or is loaded after it. Four kinds of moments:

- `turn`: an execution b whose value others use (a sum that then scales every term; the end of a recurrence from which
  another goes back). What these use besides, if b depends on it or on something that uses it, is alive at b. Where no
  value is alive so at two of the b, the loads are different ones: loads >= sum over b of (|L_b| - S).
- `rounds`: executions b_1, b_2, ... each of which depends on the one before, one for every round of a loop. What the
  executions between b_k and b_(k+1) use that was there before b_k is loaded in between, but for S of it.
- `meeting`: two chains that run towards each other (meeting.py).
- `sweep`: a statement that needs all of what another makes in a round (sweeps.py).

Loads of different values add up: several kinds with no value in common, and the first loads of inputs that have no part
in them, or are known to be loaded before. Sweeps, of which there are few moments with much alive at each, are an
argument of their own beside the others, which have many moments with less: those say more at small S, these up to a
larger S.

Elango et al. 2014 and Olivry et al. PLDI 2020 call such moments wavefronts; `turn` for Gram-Schmidt is the hourglass of
Olivry et al., SPAA 2024, in its simplest form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import islpy as isl
import sympy

from roofdsl.bounds.counting import count, degree, far, top_terms
from roofdsl.bounds.dependences import HOPS, Dependences, Moments, inputs_of
from roofdsl.bounds.flow import Flow, Statement, sets
from roofdsl.bounds.opposing_chains import meetings
from roofdsl.bounds.sweeps import sweeps
from roofdsl.formulas.expressions import expression, polynomial


@dataclass(frozen=True)
class Part:
    """Moments of one kind with how many values are alive at all of them, and how many moments there are (sympy)."""

    found: Moments
    alive: Any
    moments: Any


@dataclass(frozen=True)
class Bottleneck:
    """loads >= value (sympy): inputs + the sum over parts of max(0, alive - moments * (S + registers)).

    inputs: loads of values that are there from the beginning and are not counted among those of a part.
    """

    parts: tuple[Part, ...]
    inputs: Any
    value: Any
    leading: Any


def bottleneck(flow: Flow, size: Any) -> Bottleneck | None:
    """The best of the bottleneck bounds that are found, by its leading term; `size` is the symbol of S."""
    depends = Dependences(flow)
    return _added(flow, size, (*_turns(depends), *_rounds(depends), *meetings(depends)))


def sweep(flow: Flow, size: Any) -> Bottleneck | None:
    """As `bottleneck`, of sweeps."""
    return _added(flow, size, sweeps(flow, Dependences(flow)))


def _added(flow: Flow, size: Any, candidates: Iterable[Moments]) -> Bottleneck | None:
    """The sum of those with the largest leading terms that have no value in common."""
    found: list[tuple[tuple[int, float], Part, Any]] = []
    for moments in candidates:
        counts, often = [count(flow, part) for part in moments.alive], count(flow, moments.moments)
        # Where no more is alive than there are moments, S for each of them takes all of it off again.
        if max(degree(flow, c) for c in counts) <= max(degree(flow, often), 1):
            continue
        alive = sum((expression(c) for c in counts), sympy.Integer(0))
        lead = top_terms(sum((polynomial(far(flow, c)) for c in counts), sympy.Integer(0)))
        part = Part(moments, alive, expression(often))
        found.append((_weight(lead), part, lead))
    if not found:
        return None
    chosen: list[tuple[Part, Any]] = []
    values = isl.UnionSet("{ }")
    before = isl.UnionSet("{ }")
    for _, part, lead in sorted(found, key=lambda f: f[0], reverse=True):
        # Loads of different values add up. Of kinds with a value in common the one with more counts, since it comes
        # first.
        if part.found.values.is_disjoint(values):
            chosen.append((part, lead))
            values = values.union(part.found.values)
            before = before.union(part.found.before)
    others = isl.UnionSet("{ }")
    for each in flow.inputs().values():
        others = others.union(isl.UnionSet.from_set(each))
    inputs = count(flow, others.subtract(values).union(others.intersect(before)).coalesce())
    room = size + flow.registers
    terms = [p.alive - p.moments * room for p, _ in chosen]
    loaded = expression(inputs)
    value = loaded + (terms[0] if len(terms) == 1 else sympy.Add(*(sympy.Max(0, t) for t in terms)))
    leading = top_terms(sum((lead for _, lead in chosen), sympy.Integer(0)) + polynomial(far(flow, inputs)))
    return Bottleneck(tuple(p for p, _ in chosen), loaded, value, leading)


def _weight(leading: Any) -> tuple[int, float]:
    """To compare leading terms by: the total degree, and the sum of the coefficients."""
    degrees = sympy.Poly(leading, *leading.free_symbols).total_degree() if leading.free_symbols else 0
    return degrees, float(leading.subs(dict.fromkeys(leading.free_symbols, 1)))


def _turns(depends: Dependences) -> Iterator[Moments]:
    by_name = {s.name: s for s in depends.statements}
    behind: dict[str, Any] = {}
    for statement in depends.statements:
        own = isl.UnionMap.from_map(depends.own[statement.name].reverse())
        for read in statement.reads:
            for source in sets(read.values):
                maker = source.get_tuple_name(isl.dim_type.out)
                if maker not in by_name or maker == statement.name:
                    continue
                direct = isl.UnionMap.from_map(source.reverse())  # b -> executions that use it
                last = direct.intersect_domain(depends.ends[maker])
                if last.is_empty():
                    continue
                if maker not in behind:
                    behind[maker] = depends.behind(depends.ends[maker])
                closed = last.apply_range(own)
                for users in [last] if closed.is_subset(last) else [last, closed]:
                    found = _turn(statement, maker, users, behind[maker])
                    if found is not None:
                        yield found


def _turn(statement: Statement, maker: str, users: Any, behind: Any) -> Moments | None:
    """What is alive at executions of `maker`, each used by `users` (isl.UnionMap), of the values that are `behind`."""
    alive = isl.UnionMap("{ }")
    names = []
    for read in statement.reads:
        used = users.apply_range(read.values).intersect(behind).coalesce()
        if used.is_empty() or not used.is_injective():
            continue
        joined = alive.union(used)
        if joined.is_injective():
            alive = joined
            names.append(read.text)
    if alive.is_single_valued():
        return None  # one value at each moment: nothing to gain
    alive = alive.coalesce()
    values, before = alive.range(), inputs_of(alive).range()
    return Moments("turn", maker, tuple(names), alive.domain(), (alive.wrap(),), values, before)


def _rounds(depends: Dependences) -> Iterator[Moments]:
    for statement in depends.statements:
        if len(statement.loops) != 1:
            continue
        moments = isl.UnionSet.from_set(statement.domain)
        behind = depends.on(moments, HOPS)
        following = isl.UnionMap(f"{{ {statement.name}[k] -> {statement.name}[k + 1] }}")
        following = following.intersect_domain(moments).intersect_range(moments)
        if following.is_empty() or not following.reverse().is_subset(behind):
            continue
        # between: b_k -> executions that depend on b_k and that b_(k+1) depends on
        after = depends.everything().intersect_range(moments).reverse()
        between = after.intersect(following.apply_range(behind)).subtract(
            isl.UnionMap(f"{{ {statement.name}[k] -> {statement.name}[l] }}")
        )
        used = between.apply_range(depends.every)
        sure = used.intersect(behind).union(inputs_of(used)).coalesce()
        if not sure.is_empty():
            nothing = isl.UnionSet("{ }")
            yield Moments("rounds", statement.name, (), sure.domain(), (sure.wrap(),), sure.range(), nothing)
