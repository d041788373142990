"""A kernel with tiles over space and time as `.roof` text, which can be run and predicted."""

from __future__ import annotations

import os
from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.format import INDENT, format_source
from roofdsl.lang.format_text import simple
from roofdsl.lang.parse import parse
from roofdsl.lang.scope import tile_name
from roofdsl.lang.source import Source
from roofdsl.loops.affine import maximum, minimum
from roofdsl.loops.integers import Const, IntExpr, Sym, add, mul, sub
from roofdsl.loops.load import READERS
from roofdsl.loops.model import Kernel
from roofdsl.sol.sweeps import Sweep, Sweeps
from roofdsl.sol.time_tiles import Tile


def tiled_text(kernel: Kernel, sweeps: Sweeps, tiles: Sequence[Tile]) -> str:
    """The kernel with these tiles, given innermost first; empty for a kernel that is not from a `.roof` file."""
    name = kernel.source.name
    if os.path.splitext(name)[1] in READERS or not tiles:
        return ""
    found = [
        item for item in parse(kernel.source).items if isinstance(item, tree.Kernel) and item.name.text == kernel.name
    ]
    if len(found) != 1:
        return ""
    (own,) = found
    time = next(item for item in own.body if isinstance(item, tree.For))
    head = kernel.source.text.splitlines()[own.span.line - 1 : time.span.line - 1]
    phases = _bodies(time)
    taken = {p.name for p in kernel.parameters} | {a.name for a in kernel.arrays} | {n for n, _ in kernel.constants}
    taken |= {sweeps.time.var} | {loop.var for s in sweeps.sweeps for loop in s.loops} | _lets(phases)
    lines = _Nest(sweeps, tiles, taken).lines(phases)
    return format_source(Source(name, "\n".join([*head, *(INDENT + line for line in lines)]) + "\n"))


def _bodies(time: tree.For) -> list[tuple[tree.Item, ...]]:
    """The statements of each sweep, in the order of the text."""
    inner: tuple[tree.Item, ...] = time.body
    if len(time.clauses) > 1:
        inner = (tree.For(time.clauses[1:], time.parallel, time.body, time.span),)
    found = []
    for item in inner:
        body: tuple[tree.Item, ...] = (item,)
        while len(body) == 1 and isinstance(nest := body[0], tree.For):
            body = nest.body
        found.append(body)
    return found


def _lets(phases: Sequence[tuple[tree.Item, ...]]) -> set[str]:
    return {item.name.text for body in phases for item in body if isinstance(item, tree.Let)}


class _Nest:
    """Writes the loops over tiles, outermost first, and the sweeps inside them."""

    def __init__(self, sweeps: Sweeps, tiles: Sequence[Tile], taken: set[str]) -> None:
        self.sweeps, self.tiles, self.taken = sweeps, tiles[::-1], set(taken)
        self.names = [loop.var for loop in sweeps.sweeps[0].loops]

    def lines(self, phases: Sequence[tuple[tree.Item, ...]]) -> list[str]:
        """All loops and statements."""
        lines: list[str] = []
        time, places, first = self.sweeps.time.var, list(self.names), ""
        around: tuple[int, int] | None = None
        outer_time, outer_places = "", [""] * len(places)
        for tile in self.tiles:
            time = self._new(time)
            start, stop = self._time_range(outer_time, around)
            lines.append(_loop(len(lines), time, start, stop, tile.steps))
            first = first or time
            along = range(1, len(places)) if tile.stream else range(len(places))
            for d in along:
                places[d] = self._new(places[d])
                start, stop = self._place_range(d, outer_places[d], around)
                lines.append(_loop(len(lines), places[d], start, stop, tile.side))
            if tile.stream:  # inside the others, and around the time steps
                places[0] = self._new(places[0])
                start, stop = self._place_range(0, outer_places[0], around)
                lines.append(_loop(len(lines), places[0], start, stop, 1))
            outer_time, outer_places, around = time, list(places), (tile.side, tile.steps)
        start, stop = self._time_range(outer_time, around)
        depth = len(lines)
        lines.append(_loop(depth, self.sweeps.time.var, start, stop, 1))
        assert around is not None
        for k, (sweep, body) in enumerate(zip(self.sweeps.sweeps, phases, strict=True)):
            lines += self._sweep(k, sweep, body, (depth + 1, first, outer_places, around[0]))
        return lines

    def _new(self, name: str) -> str:
        own = tile_name(name[0] if set(name) == {name[0]} else name, self.taken)
        self.taken.add(own)
        return own

    def _time_range(self, outer: str, around: tuple[int, int] | None) -> tuple[IntExpr, IntExpr]:
        if around is None:
            return self.sweeps.time.start, self.sweeps.time.stop
        return Sym(outer), minimum(self.sweeps.time.stop, add(Sym(outer), Const(around[1])))

    def _place_range(self, d: int, outer: str, around: tuple[int, int] | None) -> tuple[IntExpr, IntExpr]:
        """The range of a loop over places, in coordinates that move with the skew.

        They coincide with the array's at the first time step of the outermost tile.
        """
        if around is not None:
            return Sym(outer), add(Sym(outer), Const(around[0]))
        own = [sweep.loops[d] for sweep in self.sweeps.sweeps]
        moves = self.sweeps.skew * (len(self.sweeps.sweeps) * self.tiles[0].steps - 1)
        start, stop = minimum(*(v.start for v in own)), maximum(*(v.stop for v in own))
        return start, add(stop, Const(moves))

    def _sweep(
        self, k: int, sweep: Sweep, body: tuple[tree.Item, ...], where: tuple[int, str, list[str], int]
    ) -> list[str]:
        depth, first, places, side = where
        lines = []
        since = sub(Sym(self.sweeps.time.var), Sym(first))
        moved = add(mul(Const(self.sweeps.skew * len(self.sweeps.sweeps)), since), Const(self.sweeps.skew * k))
        for d, loop in enumerate(sweep.loops):
            here = sub(Sym(places[d]), moved)
            own = 1 if d == 0 and self.tiles[-1].stream else side
            start, stop = maximum(loop.start, here), minimum(loop.stop, add(here, Const(own)))
            lines.append(_loop(depth + d, loop.var, start, stop, 1))
        return lines + [INDENT * (depth + len(sweep.loops)) + simple(item) for item in body]


def _loop(depth: int, name: str, start: IntExpr, stop: IntExpr, step: int) -> str:
    by = "" if step == 1 else f", {step}"
    return f"{INDENT * depth}for {name} in range({start}, {stop}{by}):"
