"""The iteration domains of statements: the loops and guards around them, as text for the integer-set library.

`surroundings` walks the loops for all integer sets. For `access_sets`, `LoopDims` turns them into dimensions: counters,
and digits of symbolic tile sizes. It refuses loops without an affine form. `instances` makes one dimension of every
loop variable and leaves out what it cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from roofdsl.loops.accesses import PlacedStatement, accesses
from roofdsl.loops.integers import And, Compare, Condition, Not, Or, Sym
from roofdsl.loops.model import Assign, Element, For, Let
from roofdsl.sets.sizes import DIGIT, Linear, NotAffine, Pair, Sizes

V = TypeVar("V")


def surroundings(
    placed: PlacedStatement,
    loop: Callable[[int, Mapping[str, V]], tuple[V, list[str]]],
    guard: Callable[[Condition, Mapping[str, V]], list[str]],
) -> tuple[dict[str, V], list[str]]:
    """The meaning of each loop variable around a statement, and the constraints on the statement's executions.

    loop: gives the variable of the loop at a depth and its constraints, in terms of the variables outside it.
    """
    variables: dict[str, V] = {}
    constraints: list[str] = []
    for depth, each in enumerate(placed.loops):
        value, own = loop(depth, variables)
        variables[each.var] = value
        constraints += own
    for _, condition in placed.guards:
        constraints += guard(condition, variables)
    return variables, constraints


def truth(condition: Condition, compare: Callable[[Compare], str]) -> str:
    """The text of a condition, with its comparisons written by `compare`."""
    match condition:
        case Compare():
            return compare(condition)
        case And(parts) | Or(parts):
            word = " and " if isinstance(condition, And) else " or "
            return f"({word.join(truth(p, compare) for p in parts)})"
        case Not(part):
            return f"(not {truth(part, compare)})"
    raise NotAffine(f"`{condition}`")


class LoopDim(NamedTuple):
    """The dimensions of one loop, the value of its variable in them, and constraints on them."""

    names: list[str]
    value: Pair
    constraints: list[str]


class LoopDims:
    """The dimensions of all loops of a kernel.

    worlds: the tile size in whose digits a loop variable runs, if any; dim_worlds: the same for (array name,
    dimension).
    """

    def __init__(self, sizes: Sizes, placed: tuple[PlacedStatement, ...]) -> None:
        self.sizes, self.placed = sizes, placed
        self.dims: dict[tuple[int, ...], LoopDim] = {}
        self.worlds, self.dim_worlds = self._worlds()

    def domain(self, placed: PlacedStatement) -> tuple[dict[str, Pair], list[str], list[LoopDim]]:
        """The loop variables around a statement, constraints, and the dimensions of each loop. Raises NotAffine."""
        dims: list[LoopDim] = []

        def loop(depth: int, outer: Mapping[str, Pair]) -> tuple[Pair, list[str]]:
            place = placed.position[: depth + 1]
            if place not in self.dims:
                self.dims[place] = self._make(placed.loops[depth], outer, f"t{len(self.dims)}")
            dims.append(self.dims[place])
            return dims[-1].value, dims[-1].constraints

        def guard(condition: Condition, variables: Mapping[str, Pair]) -> list[str]:
            world = next((self.worlds[v] for v in sorted(condition.symbols()) if v in self.worlds), None)
            return [self.condition(condition, variables, world)]

        return *surroundings(placed, loop, guard), dims

    def condition(self, condition: Condition, variables: Mapping[str, Pair], world: str | None) -> str:
        """Text of an affine condition. Raises NotAffine."""

        def compare(c: Compare) -> str:
            left, right = (self.sizes.value(e, variables, world) for e in (c.left, c.right))
            return self.sizes.compare(c.op, left, right)

        return truth(condition, compare)

    # ---- one loop ----

    def _make(self, loop: For, variables: Mapping[str, Pair], name: str) -> LoopDim:
        world = self.worlds.get(loop.var)
        starts = [self.sizes.value(e, variables, world) for e in loop.starts]
        stops = [self.sizes.value(e, variables, world) for e in loop.stops]
        step = self.sizes.value(loop.step, variables, world)
        if world is None:
            names, value, constraints = self._counter(loop, starts, step, name)
        elif step.tile is None:
            names, value, constraints = self._digits(loop, starts, stops, step, name)
        else:
            if len(starts) != 1 or starts[0].low.terms or step.low.terms or step.high != Linear.of({}, 1):
                raise NotAffine(f"loop {loop.var} does not start at a multiple of its step {loop.step} and a number")
            names, value, constraints = [name], Pair(starts[0].low, Linear.of({name: 1}), world), list[str]()
        constraints += [self.sizes.nonnegative(value + s.scaled(-1)) for s in starts]
        constraints += [self.sizes.nonnegative(s + value.scaled(-1) + Pair(Linear.of({}, -1))) for s in stops]
        return LoopDim(names, value, constraints)

    def _counter(self, loop: For, starts: list[Pair], step: Pair, name: str) -> LoopDim:
        """A dimension that counts iterations, or that is the variable itself if the step is 1 or the first value is the
        greatest of several.
        """
        if step.low.terms:
            needed = f"`assume ... % {loop.step} == 0`"
            raise NotAffine(f"the step {loop.step} of loop {loop.var} has no number and no {needed}")
        if step.low.constant == 1:
            return LoopDim([name], Pair(Linear.of({name: 1})), [])
        if len(starts) != 1:
            if any(s.tile is not None for s in starts):
                raise NotAffine(f"loop {loop.var} starts at a max(...) and has a step")
            cases = []
            for first in starts:
                is_first = [self.sizes.nonnegative(first + other.scaled(-1)) for other in starts]
                cases.append(" and ".join([f"({name} - ({first.low})) mod {step.low.constant} = 0", *is_first]))
            return LoopDim([name], Pair(Linear.of({name: 1})), [f"(({') or ('.join(cases)}))"])
        return LoopDim([name], starts[0] + Pair(Linear.of({name: step.low.constant})), [])

    def _digits(self, loop: For, starts: list[Pair], stops: list[Pair], step: Pair, name: str) -> LoopDim:
        """Two digits of a variable that takes every value; one if the loop runs over exactly one tile.

        The bounds that this already implies are removed from `starts` and `stops`.
        """
        world = self.worlds[loop.var]
        if step.low != Linear.of({}, 1):
            raise NotAffine(f"loop {loop.var} runs in tiles of unknown size with the step {loop.step}")
        low = f"{name}{DIGIT}"
        constraints = [f"0 <= {low} < P_{world}"]
        inner = next((s for s in starts if not s.low.terms and _is_next_tile(s, stops)), None)
        if inner is None:
            return LoopDim([name, low], Pair(Linear.of({low: 1}), Linear.of({name: 1}), world), constraints)
        starts[:] = [s for s in starts if s is not inner]
        stops[:] = [s for s in stops if not _is_next_tile(inner, [s])]
        return LoopDim([low], Pair(Linear.of({low: 1}) + inner.low, inner.high, world), constraints)

    # ---- the loops and array dimensions that are written in digits of a symbolic tile size ----

    def _worlds(self) -> tuple[dict[str, str], dict[tuple[str, int], str]]:
        worlds: dict[str, str] = {}
        dims: dict[tuple[str, int], str] = {}

        def join(old: str | None, new: str | None, what: str) -> str | None:
            if old and new and old != new:
                raise NotAffine(f"{what} runs in tiles of both {old} and {new}")
            return old or new

        # Digits spread until nothing changes: from a loop with a symbolic step to loops that it bounds, to array
        # dimensions that these subscript, and from there to all loops whose variables stand in such subscripts.
        changed = True
        symbolic_tiles = {b for _, b in self.sizes.tiled}
        while changed:
            changed = False
            for placed in self.placed:
                for loop in placed.loops:
                    world = worlds.get(loop.var)
                    if isinstance(loop.step, Sym) and loop.step.name not in self.sizes.numbers:
                        world = join(world, loop.step.name, f"loop {loop.var}")
                    bounds = loop.start.symbols() | loop.stop.symbols()
                    for name in sorted(bounds & (worlds.keys() | symbolic_tiles)):
                        # a loop variable brings the tile size in whose digits it runs; a tile size is one itself
                        world = join(world, worlds.get(name) or name, loop.var)
                    if world and worlds.get(loop.var) != world:
                        worlds[loop.var], changed = world, True
                for access in _touched(placed):
                    for d, subscript in enumerate(access.subscripts):
                        key = (access.array.name, d)
                        world = dims.get(key)
                        for name in sorted(subscript.symbols()):
                            world = join(world, worlds.get(name), f"{access.array.name}'s dimension {d + 1}")
                        if world is None:
                            continue
                        if dims.get(key) != world:
                            dims[key], changed = world, True
                        loop_vars = {loop.var for loop in placed.loops}
                        for name in subscript.symbols() & loop_vars:
                            if join(worlds.get(name), world, f"loop {name}") != worlds.get(name):
                                worlds[name], changed = world, True
        return worlds, dims


def _is_next_tile(start: Pair, stops: list[Pair]) -> bool:
    return any(
        s.tile is not None and s.low == start.low and s.high + start.high.scaled(-1) == Linear.of({}, 1) for s in stops
    )


def _touched(placed: PlacedStatement) -> list[Element]:
    statement = placed.statement
    if not isinstance(statement, (Assign, Let)):
        return []
    return [a.element for a in accesses(statement)]
