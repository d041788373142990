"""Whether every subscript stays within its array, for all sizes that the assumptions allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from roofdsl.checks.execution_order import Use, described, environment, executed, uses
from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.affine import affine, maximum, minimum
from roofdsl.loops.integers import Compare, Const, FloorDiv, IntExpr, Mod, Sum, Sym, sub
from roofdsl.loops.model import For, Kernel
from roofdsl.sets.instances import Answer, Encoder, decide, variable
from roofdsl.sets.sizes import NotAffine

MOST = 20
"""The most subscripts out of bounds that are reported; one mistake in a loop's bound can make many."""


class _Group(Record):
    """Uses under the same loops and guards."""

    placed: PlacedStatement
    uses: tuple[Use, ...]


class _Outside(Record):
    """A subscript that is outside its array at the values of `env`."""

    use: Use
    dimension: int
    below: bool
    env: dict[str, int]


def check_bounds(kernel: Kernel) -> list[Diagnostic]:
    """An error for every element outside its array, with small sizes at which that happens, and warnings for what is
    unknown; MOST findings at most.
    """
    found: list[Diagnostic] = []
    for group in _groups(kernel):
        whole = _ask(kernel, group.placed, group.uses)
        if whole.proven:
            continue
        undecided: dict[tuple[str, ...], list[Use]] = {}  # by what makes them hard; these share one warning
        for use in group.uses:
            answer = _ask(kernel, group.placed, (use,))
            if answer.found is not None:
                found.append(_error(kernel, group.placed, answer.found))
            elif not answer.proven:
                undecided.setdefault(answer.hard, []).append(use)
            if len(found) == MOST:
                return found
        found += [_unchecked(together, hard) for hard, together in undecided.items()]
    return found[:MOST]


def _groups(kernel: Kernel) -> list[_Group]:
    groups: dict[object, tuple[PlacedStatement, dict[Use, None]]] = {}
    for placed in statements(kernel.body):
        key = (tuple(id(loop) for loop in placed.loops), placed.guards)
        _, together = groups.setdefault(key, (placed, {}))
        seen = {u.place for u in together}
        for use in uses(placed.statement):
            if use.subscripts and use.place not in seen:
                together[use] = None
                seen.add(use.place)
    return [_Group(placed, tuple(together)) for placed, together in groups.values() if together]


def _ask(kernel: Kernel, placed: PlacedStatement, elements: tuple[Use, ...]) -> Answer[_Outside]:
    def suspects(encoder: Encoder) -> Iterator[Any]:
        names = {loop.var: variable("x", loop.var) for loop in placed.loops}
        domain = encoder.domain(placed, "x")
        leaving = []
        pairs = dict.fromkeys(p for u in elements for p in zip(u.subscripts, u.array.dims, strict=True))
        for subscript, extent in pairs:
            try:
                text = encoder.expression(subscript, names)
            except NotAffine:
                leaving.append("true")
                continue
            leaving += [f"{text} < 0", f"{text} >= {encoder.expression(extent, {})}"]
        yield encoder.make(list(names.values()), [*domain, f"({' or '.join(leaving)})"])

    def confirm(point: dict[str, int]) -> _Outside | None:
        env = environment(point, kernel, placed, "x")
        if not executed(kernel, placed, env):
            return None
        for use in elements:
            for d, (subscript, extent) in enumerate(zip(use.subscripts, use.array.dims, strict=True)):
                value = subscript.evaluate(env)
                if not 0 <= value < extent.evaluate(env):
                    return _Outside(use, d, value < 0, env)
        return None

    return decide(kernel, suspects, confirm)


# ---- what is said of it ----


def _error(kernel: Kernel, placed: PlacedStatement, outside: _Outside) -> Diagnostic:
    use, env = outside.use, outside.env
    subscript, extent = use.subscripts[outside.dimension], use.array.dims[outside.dimension]
    where = described(kernel, env, placed.loops)
    value, limit = subscript.evaluate(env), extent.evaluate(env)
    shape = " x ".join(f"({d})" if isinstance(d, Sum) and use.array.dims[1:] else str(d) for d in use.array.dims)
    which = f"subscript {outside.dimension + 1}" if use.array.dims[1:] else "the subscript"
    fault = f"{which} is {value}, outside 0..{limit - 1}"
    if limit <= 0:
        fault = f"dimension {outside.dimension + 1} is {limit} there"
    message = f"`{use.text}` leaves `{use.array.name}` ({shape}){f' at {where}' if where else ''}: {fault}"
    return Diagnostic("subscript-bounds", message, use.span, _help(subscript, extent, placed, outside.below))


def _help(subscript: IntExpr, extent: IntExpr, placed: PlacedStatement, below: bool) -> str:
    """What to write: an assumption if the subscript has no loop variables, another range if it is the variable of the
    innermost of its loops plus what is known outside that loop, otherwise a condition.
    """
    form = affine(subscript)
    loops = {loop.var: loop for loop in placed.loops}
    inside = [v for v in form.coefficients() if v in loops] + [v for v in form.hidden() if v in loops]
    condition = Compare(">=", subscript, Const(0)) if below else Compare("<", subscript, extent)
    if not inside:
        return f"write `assume {condition}`"
    # `for j in range(n)` with x[i + j] and i known outside: j may start at -i, or stop at the extent minus i.
    innermost = max(inside, key=lambda v: placed.loops.index(loops[v]))
    if form.coefficients().get(innermost) == 1 and innermost not in form.hidden():
        rest = affine(sub(subscript, Sym(innermost))).expression()
        loop = loops[innermost]
        if _known_outside(rest, placed, loop) and loop.step == Const(1):
            limit = affine(sub(Const(0) if below else extent, rest))
            if all(isinstance(term, Sym | FloorDiv | Mod) for term, _ in limit.terms):
                return _range(loop, "start" if below else "stop", limit.expression())
    larger = "" if below else ", or declare a larger dimension"
    return f"write `if {condition}:` around it{larger}"


def _range(loop: For, end: Literal["start", "stop"], limit: IntExpr) -> str:
    """`range(...)` with its `end` moved so that it respects `limit`."""
    old: IntExpr = getattr(loop, end)
    if affine(sub(old, limit)).terms:
        limit = maximum(old, limit) if end == "start" else minimum(old, limit)
    start, stop = (limit, loop.stop) if end == "start" else (loop.start, limit)
    both = f"{start}, {stop}" if start != Const(0) else str(stop)
    return f"let `{loop.var}` run over `range({both})`"


def _known_outside(e: IntExpr, placed: PlacedStatement, loop: For) -> bool:
    outer = {other.var for other in placed.loops[: placed.loops.index(loop)]}
    return e.symbols() & {other.var for other in placed.loops} <= outer


def _unchecked(together: list[Use], hard: tuple[str, ...]) -> Diagnostic:
    use, *others = together
    why = f"what they range over is not affine in {listed(hard, 'and')}" if hard else "there are too many cases"
    which = f"`{use.text}` and {len(others)} more elements" if len(others) > 1 else f"`{use.text}`"
    which += f" and `{others[0].text}`" if len(others) == 1 else ""
    message = f"the subscripts of {which} are not checked for all sizes: {why}"
    help = f"at small sizes, {'none leaves' if others else 'it does not leave'} its array"
    return Diagnostic("unchecked", message, use.span, help, "warning")
