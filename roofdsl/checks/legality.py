"""Whether dependences allow the `tile`, `order` and `parallel for` of a kernel, for all allowed sizes.

Two executions depend on each other if they touch the same element or scalar and one of them writes it. A directive is
legal if the order of each such pair stays as it was; that includes pairs of updates. Iterations of a parallel loop are
independent if no such pair is in different iterations of one execution of the loop.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import partial
from typing import Any

from roofdsl.checks.dependence_pairs import MOST, Pair, distinct, pairs_of
from roofdsl.checks.execution_order import (
    Earlier,
    Use,
    described,
    environment,
    executed,
    moment,
    ways_before,
)
from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Span
from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.model import For, Kernel, Order, Tile
from roofdsl.loops.transform import apply
from roofdsl.sets.instances import Encoder, decide, variable
from roofdsl.sets.sizes import NotAffine

REGROUPING = "error"
"""The severity of a directive that keeps every dependence but the order of updates like `s += ...` of one element."""


class Violation(Record):
    """A pair of executions that depend on each other, at given values; the earlier one is first."""

    pair: Pair
    earlier: dict[str, int]
    later: dict[str, int]


# ---- tile and order ----


def check_directives(kernel: Kernel, *, lines: bool = True) -> list[Diagnostic]:
    """An error at the directive that reverses a dependence; a warning if that is unknown.

    lines: whether the message names the lines of the accesses, for a reader who has the source. Raises InputError if a
    directive fits no loops.
    """
    if not kernel.directives:
        return []
    found, unknown = find_reversal(kernel)
    if found is not None:
        return [_illegal(kernel, _culprit(kernel, found.pair.reduction), found, lines=lines)]
    if unknown is not None:
        message = f"it is not known for all sizes whether the dependences allow it: {_reason(unknown)}"
        help = "at small sizes, no dependence is reversed"
        return [Diagnostic("unchecked", message, kernel.directives[-1].span, help, "warning")]
    return []


def find_reversal(kernel: Kernel, reductions: bool = True) -> tuple[Violation | None, tuple[str, ...] | None]:
    """A dependence that the directives reverse, or else the parameters that kept a pair from being decided; () if there
    are too many cases.

    (None, None) is a proof that every dependence keeps its order. Without `reductions`, updates that commute may change
    their order. Raises InputError if a directive fits no loops.
    """
    before = tuple(statements(kernel.body))
    after = tuple(statements(apply(kernel).body))
    changed = [i for i, (b, a) in enumerate(zip(before, after, strict=True)) if b.loops != a.loops]
    unknown: tuple[str, ...] | None = None
    conflicts = (pair for pair in pairs_of(before, changed, None) if reductions or not pair.reduction)
    pairs = distinct(conflicts, before, after)
    for pair in pairs[:MOST]:
        answer = decide(
            kernel,
            partial(_reversals, pair=pair, before=before, after=after),
            partial(_confirm_reversal, kernel=kernel, pair=pair, before=before, after=after),
        )
        if answer.found is not None:
            return answer.found, None
        if not answer.proven:
            unknown = answer.hard
    return None, () if len(pairs) > MOST else unknown


def _together(encoder: Encoder, pair: Pair, placed: tuple[PlacedStatement, ...]) -> tuple[list[str], list[str]]:
    """(dimensions, constraints): execution x of the first statement and y of the second touch one element."""
    a, b = placed[pair.a], placed[pair.b]
    names_x = {loop.var: variable("x", loop.var) for loop in a.loops}
    names_y = {loop.var: variable("y", loop.var) for loop in b.loops}
    constraints = encoder.domain(a, "x") + encoder.domain(b, "y")
    for s, t in zip(pair.first.subscripts, pair.second.subscripts, strict=True):
        try:
            constraints.append(f"{encoder.expression(s, names_x)} = {encoder.expression(t, names_y)}")
        except NotAffine:
            encoder.exact = False
    return [*names_x.values(), *names_y.values()], constraints


def _ordered(encoder: Encoder, way: Earlier, first: str, second: str) -> list[str]:
    """Text: execution `first` precedes `second` in this way."""
    text = [f"{variable(first, loop.var)} = {variable(second, loop.var)}" for loop in way.same]
    return [*text, encoder.before(way.loop, first, second)] if way.loop is not None else text


def _reversals(
    encoder: Encoder, pair: Pair, before: tuple[PlacedStatement, ...], after: tuple[PlacedStatement, ...]
) -> Iterator[Any]:
    ways = list(ways_before(before[pair.a], before[pair.b]))
    reverse = list(ways_before(after[pair.b], after[pair.a]))
    if not ways or not reverse:
        return
    dimensions, constraints = _together(encoder, pair, after)
    together = encoder.make(dimensions, constraints)
    for way in ways:
        dependent = together.intersect(encoder.order(dimensions, _ordered(encoder, way, "x", "y")))
        if dependent.is_empty():
            continue
        for back in reverse:
            yield dependent.intersect(encoder.order(dimensions, _ordered(encoder, back, "y", "x")))


def _confirm_reversal(
    point: dict[str, int],
    kernel: Kernel,
    pair: Pair,
    before: tuple[PlacedStatement, ...],
    after: tuple[PlacedStatement, ...],
) -> Violation | None:
    x = environment(point, kernel, after[pair.a], "x")
    y = environment(point, kernel, after[pair.b], "y")
    for placed in (before, after):
        if not executed(kernel, placed[pair.a], x) or not executed(kernel, placed[pair.b], y):
            return None
    if pair.first.index(x) != pair.second.index(y):
        return None
    if not moment(before[pair.a], x) < moment(before[pair.b], y):
        return None
    if not moment(after[pair.b], y) < moment(after[pair.a], x):
        return None
    return Violation(pair, x, y)


def _culprit(kernel: Kernel, reduction: bool) -> Tile | Order:
    """The directive that made the kernel illegal."""
    for count in range(len(kernel.directives) - 1, 0, -1):
        if find_reversal(replace(kernel, directives=kernel.directives[:count]), reduction)[0] is None:
            return kernel.directives[count]
    return kernel.directives[0]


def _illegal(kernel: Kernel, directive: Tile | Order, found: Violation, *, lines: bool) -> Diagnostic:
    before = tuple(statements(kernel.body))
    a, b = before[found.pair.a], before[found.pair.b]
    word = "tile" if isinstance(directive, Tile) else "order"
    line = f"`{word} {', '.join(directive.loops)}`"
    name = found.pair.first.array.name
    sizes = f" at {described(kernel, found.earlier)}" if kernel.parameters else ""
    first = _event(a, found.earlier, found.pair.first, lines=lines)
    pair = f"{first}, and then {_event(b, found.later, found.pair.second, lines=lines)}"
    common = [loop.var for loop, other in zip(a.loops, b.loops, strict=False) if loop == other]
    numbers = ", ".join(str(found.later[v] - found.earlier[v]) for v in common)
    distance = f"the distance in ({', '.join(common)}) is ({numbers})"
    if found.pair.reduction:
        message = f"{line} changes the order in which `{found.pair.first.text}` is updated{sizes}: {pair}; "
        message += "the new order runs the second one first"
        help = f"{distance}; rounding may change the result"
        return Diagnostic("reduction-order", message, directive.span, help, REGROUPING)
    message = f"{line} reverses {_kind(found.pair)} on `{name}`{sizes}: {pair}; the new order runs the second one first"
    help = f"{distance}: "
    if word == "tile":
        help += "loops can be tiled together if no dependence distance is negative in any of them"
    else:
        help += "the first nonzero distance must stay positive in the new order"
    return Diagnostic("dependence-reversed", message, directive.span, help)


def _kind(pair: Pair) -> str:
    first, second = pair.first, pair.second
    if first.is_write and (not second.is_write or second.op != "="):
        return "a flow dependence"
    return "an output dependence" if first.is_write else "an anti-dependence"


def _event(placed: PlacedStatement, env: dict[str, int], use: Use, *, lines: bool) -> str:
    """Text such as: iteration (i = 0, j = 1) writes `A[i, j]` in line 7."""
    values = ", ".join(f"{loop.var} = {env[loop.var]}" for loop in placed.loops)
    return f"iteration ({values}) {use.verb} `{use.text}`" + (f" on line {use.span.line}" if lines else "")


def _reason(hard: tuple[str, ...]) -> str:
    return f"it is not affine in {listed(hard, 'and')}" if hard else "it has too many cases"


# ---- parallel for ----


def check_parallel(kernel: Kernel, *, lines: bool = True) -> list[Diagnostic]:
    """An error for every parallel loop whose iterations depend on each other, as written or after the directives; a
    warning if that is unknown.

    lines: as for `check_directives`. Raises InputError if a directive fits no loops.
    """
    found = _parallel(kernel, None, lines=lines)
    if kernel.directives and not found and any(_parallel_loops(tuple(statements(kernel.body)))):
        found = _parallel(apply(kernel), kernel.directives[-1].span, lines=lines)
    return found


def _parallel_loops(placed: tuple[PlacedStatement, ...]) -> Iterator[tuple[int, For, list[int]]]:
    """(number of loops outside it, the loop, the statements in it) for every parallel loop."""
    inside: dict[tuple[int, ...], tuple[int, For, list[int]]] = {}
    for i, p in enumerate(placed):
        for depth, loop in enumerate(p.loops):
            if loop.parallel:
                inside.setdefault(p.position[: depth + 1], (depth, loop, []))[2].append(i)
    yield from inside.values()


def _parallel(kernel: Kernel, span: Span | None, *, lines: bool) -> list[Diagnostic]:
    placed = tuple(statements(kernel.body))
    found: list[Diagnostic] = []
    for depth, loop, members in _parallel_loops(placed):
        guilty, unknown = find_carried(kernel, placed, members, depth)
        if guilty is not None:
            found.append(_carries(kernel, placed, loop, guilty, span, lines=lines))
        elif unknown is not None:
            message = f"it is not known for all sizes whether the iterations of `{loop.var}` are independent"
            found.append(Diagnostic("unchecked", f"{message}: {_reason(unknown)}", span or loop.span, "", "warning"))
    return found


def find_carried(
    kernel: Kernel,
    placed: tuple[PlacedStatement, ...],
    members: list[int],
    depth: int,
    outside: int | None = None,
    *,
    among: Container[str] | None = None,
) -> tuple[Violation | None, tuple[str, ...] | None]:
    """A dependence among the statements `members` between different iterations of their common loop at `depth`.

    outside: how many outer loops are in the same iteration (all `depth` of them if None). among: the arrays and scalars
    to look at, all if None. The second value names the parameters that kept a pair from being decided, () if there are
    too many cases; (None, None) is a proof that there is no dependence.
    """
    same = depth if outside is None else outside
    unknown: tuple[str, ...] | None = None
    pairs = distinct(pairs_of(placed, members, among), placed, textual=False)
    for pair in pairs[:MOST]:
        loops = placed[pair.a].loops
        answer = decide(
            kernel,
            partial(_carried, pair=pair, placed=placed, way=Earlier(loops[:same], loops[depth])),
            partial(_confirm_carried, kernel=kernel, pair=pair, placed=placed, depth=depth, same=same),
        )
        if answer.found is not None:
            return answer.found, None
        if not answer.proven:
            unknown = answer.hard
    return None, () if len(pairs) > MOST else unknown


def _carried(encoder: Encoder, pair: Pair, placed: tuple[PlacedStatement, ...], way: Earlier) -> Iterator[Any]:
    dimensions, constraints = _together(encoder, pair, placed)
    yield encoder.make(dimensions, [*constraints, *_ordered(encoder, way, "x", "y")])


def _confirm_carried(
    point: dict[str, int], *, kernel: Kernel, pair: Pair, placed: tuple[PlacedStatement, ...], depth: int, same: int
) -> Violation | None:
    a, b = placed[pair.a], placed[pair.b]
    x, y = environment(point, kernel, a, "x"), environment(point, kernel, b, "y")
    if not executed(kernel, a, x) or not executed(kernel, b, y) or pair.first.index(x) != pair.second.index(y):
        return None
    outside = [loop.var for loop in a.loops[:same]]
    var = a.loops[depth].var
    return Violation(pair, x, y) if all(x[v] == y[v] for v in outside) and x[var] < y[var] else None


def _carries(
    kernel: Kernel, placed: tuple[PlacedStatement, ...], loop: For, found: Violation, span: Span | None, *, lines: bool
) -> Diagnostic:
    pair = found.pair
    a, b = placed[pair.a], placed[pair.b]
    sizes = f" at {described(kernel, found.earlier)}" if kernel.parameters else ""
    after = "with the directives applied, " if span is not None else ""
    message = f"{after}the iterations of `parallel for {loop.var}` are not independent{sizes}: "
    first, second = _event(a, found.earlier, pair.first, lines=lines), _event(b, found.later, pair.second, lines=lines)
    message += f"{first}, and {second}, the same element"
    help = f"write `for {loop.var}`"
    if pair.reduction:
        message += f": a reduction over `{loop.var}`"
        used = frozenset().union(*(s.symbols() for s in pair.first.subscripts))
        others = [f"`{other.var}`" for other in a.loops if other.var in used]
        help += f", and make the loop over {' or '.join(others)} parallel" if others else ""
    elif not pair.first.subscripts:
        help += f", or name the value of one iteration by `let` instead of `{pair.first.array.name}`"
    elif pair.first.array.intent == "temp":
        help += f", or give `{pair.first.array.name}` a dimension for `{loop.var}`"
    return Diagnostic("parallel-dependence", message, span or loop.span, help)
