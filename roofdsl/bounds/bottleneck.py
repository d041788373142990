"""Lower bounds from bottlenecks in the flow of values: moments at which many values must be live.

A value that exists before a moment and is used after it is either in fast memory at that moment (at most S values are)
or loaded after it. There are four kinds of moments:

- `turn`: an execution b whose value others use (a sum that then scales every term, or the end of a recurrence from
  which another one runs back). The other operands of these users are live at b if b depends on them or on something
  that uses them. If no value is live in this way at two of the b, their loads are distinct: loads >= sum over b of
  (|L_b| - S), where L_b is the set of values live at b.
- `rounds`: executions b_1, b_2, ..., one for every iteration of a loop, each of which depends on the one before. Of the
  values that existed before b_k and are used by the executions between b_k and b_(k+1), all but S are loaded in
  between.
- `meeting`: two chains that run towards each other (opposing_chains.py).
- `sweep`: a statement that needs everything another one makes in an iteration of the outer loop (sweeps.py).

Loads of different values add up: the loads of several kinds without a common value, and the first loads of inputs that
take no part in them or are known to be loaded before. Sweeps have few moments with many values live at each; the other
kinds have many moments with fewer values. So sweeps form an argument of their own: the others say more at small S,
sweeps hold up to a larger S.

Elango et al. 2014 and Olivry et al. PLDI 2020 call such moments wavefronts. `turn` for Gram-Schmidt is the hourglass of
Olivry et al., SPAA 2024, in its simplest form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import islpy as isl
import sympy

from roofdsl.bounds.bound_at_sizes import Live
from roofdsl.bounds.counting import at_large_sizes, count, degree, top_terms, total_degree
from roofdsl.bounds.flow import Flow, Statement, sets
from roofdsl.bounds.flow_relations import HOPS, Dependences, Moments, inputs_of
from roofdsl.bounds.opposing_chains import meetings
from roofdsl.bounds.sweeps import sweeps
from roofdsl.formulas.sympy_forms import expression, polynomial
from roofdsl.sets.cases import Cases


@dataclass(frozen=True)
class Part:
    """Moments of one kind, how many values are live at all of them together, and how many there are (sympy). counts:
    the same two as Cases, the first one as a sum.
    """

    found: Moments
    live: Any
    moments: Any
    counts: tuple[tuple[Cases, ...], Cases]


@dataclass(frozen=True)
class Bottleneck:
    """loads >= value (sympy): inputs + the sum over parts of max(0, live - moments * (S + registers)); of one part,
    without the max.

    inputs: loads of input values that are not counted among those of a part. loaded: their number, as Cases.
    """

    parts: tuple[Part, ...]
    inputs: Any
    value: Any
    leading: Any
    registers: int
    loaded: Cases

    def numbers(self) -> Live:
        """The same in exact arithmetic, for given sizes."""
        return Live(self.loaded, tuple(p.counts for p in self.parts), self.registers)


def bottleneck(flow: Flow, size: Any) -> Bottleneck | None:
    """The best bottleneck bound found, by its leading term; `size` is the symbol of S."""
    depends = Dependences(flow)
    return _added(flow, size, (*_turns(depends), *_rounds(depends), *meetings(depends)))


def sweep_bottleneck(flow: Flow, size: Any) -> Bottleneck | None:
    """Like `bottleneck`, for the moments of `sweeps.py`."""
    return _added(flow, size, sweeps(flow, Dependences(flow)))


def _added(flow: Flow, size: Any, candidates: Iterable[Moments]) -> Bottleneck | None:
    """The sum of the candidates with the largest leading terms, chosen so that no two share a value."""
    found: list[tuple[tuple[int, float], Part, Any]] = []
    for moments in candidates:
        counts, often = [count(flow, part) for part in moments.live], count(flow, moments.moments)
        # If the live values grow no faster than the moments, subtracting S for each moment leaves nothing.
        if max(degree(flow, c) for c in counts) <= max(degree(flow, often), 1):
            continue
        live = sum((expression(c) for c in counts), sympy.Integer(0))
        lead = top_terms(sum((polynomial(at_large_sizes(flow, c)) for c in counts), sympy.Integer(0)))
        part = Part(moments, live, expression(often), (tuple(counts), often))
        found.append((_weight(lead), part, lead))
    if not found:
        return None
    chosen: list[tuple[Part, Any]] = []
    values = isl.UnionSet("{ }")
    already_loaded = isl.UnionSet("{ }")
    for _, part, lead in sorted(found, key=lambda f: f[0], reverse=True):
        # Loads of different values add up. Of kinds that share a value, the larger one counts; it comes first.
        if part.found.values.is_disjoint(values):
            chosen.append((part, lead))
            values = values.union(part.found.values)
            already_loaded = already_loaded.union(part.found.already_loaded)
    others = isl.UnionSet("{ }")
    for each in flow.inputs().values():
        others = others.union(isl.UnionSet.from_set(each))
    inputs = count(flow, others.subtract(values).union(others.intersect(already_loaded)).coalesce())
    room = size + flow.registers
    terms = [p.live - p.moments * room for p, _ in chosen]
    loaded = expression(inputs)
    value = loaded + (terms[0] if len(terms) == 1 else sympy.Add(*(sympy.Max(0, t) for t in terms)))
    leading = top_terms(sum((lead for _, lead in chosen), sympy.Integer(0)) + polynomial(at_large_sizes(flow, inputs)))
    return Bottleneck(tuple(p for p, _ in chosen), loaded, value, leading, flow.registers, inputs)


def _weight(leading: Any) -> tuple[int, float]:
    """A key to compare leading terms: the total degree, then the sum of the coefficients. A floor counts as what it
    rounds.
    """
    whole = leading.replace(sympy.floor, lambda rounded: rounded)
    return total_degree(sympy.Add.make_args(leading)[0]), float(whole.subs(dict.fromkeys(whole.free_symbols, 1)))


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
    """The values, out of `behind`, that are live at executions of `maker`, each used by `users` (isl.UnionMap)."""
    live = isl.UnionMap("{ }")
    names = []
    for read in statement.reads:
        used = users.apply_range(read.values).intersect(behind).coalesce()
        if used.is_empty() or not used.is_injective():
            continue
        joined = live.union(used)
        if joined.is_injective():
            live = joined
            names.append(read.text)
    if live.is_single_valued():
        return None  # with one value at each moment, there is nothing to gain
    live = live.coalesce()
    values, before = live.range(), inputs_of(live).range()
    return Moments("turn", maker, tuple(names), live.domain(), (live.wrap(),), values, before)


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
