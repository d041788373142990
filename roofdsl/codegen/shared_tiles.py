"""The loops of a kernel that are tiles for blocks of threads, and the elements that a tile reads into shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.emitter import chain_of
from roofdsl.codegen.identifiers import renamed
from roofdsl.codegen.threads import neighbours
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import LoopId, elements
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Const, IntExpr, Sym, add, mul
from roofdsl.loops.model import Array, Assign, Element, For, Kernel

THREADS = {1: (256,), 2: (16, 16), 3: (16, 4, 4)}
"""Threads of a block, x first: few enough that each of them keeps several sums of a large tile in registers."""

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a function may declare; more must be requested at launch."""

LARGEST_SHARED = 227 * 1024
"""Bytes of shared memory that a block can have on the largest devices."""

MOST_SUMS = 64
"""The most sums that a thread keeps in registers."""


class Axis(Record):
    """A loop over tiles and the loop over the `size` points of a tile; `dimension` 0, 1, 2 if blocks run over it."""

    tiles: For
    points: For
    size: int
    dimension: int | None

    def threads(self, total: int) -> int:
        """The number of threads along the axis in a block with `total` dimensions."""
        return 1 if self.dimension is None else min(self.size, THREADS[total][self.dimension])


class Staged(Record):
    """Elements of one array that are copied for a tile: a box of `extents` that begins at `corner`."""

    array: Array
    name: str
    corner: tuple[IntExpr, ...]
    extents: tuple[int, ...]
    uses: tuple[Element, ...]

    @property
    def bytes(self) -> int:
        return self.array.type.bytes * prod(self.extents)


def refused(kernel: Kernel, reason: str, help: str = "use the variant `naive`") -> CommandError:
    return CommandError(f"kernel {kernel.name} has no variant `tiled`: {reason}", help)


def tiled_nest(kernel: Kernel) -> tuple[list[For], Assign]:
    """The loops of the kernel's one perfect nest, and the one assignment in it. Raises CommandError for others."""
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], For):
        raise refused(kernel, "its body is not a single loop nest")
    chain = list(chain_of(kernel.body[0]))
    body = chain[-1].body
    if len(body) != 1 or not isinstance(body[0], Assign) or not isinstance(body[0].target, Element):
        raise refused(kernel, "its loops do not surround a single assignment to an array")
    return chain, body[0]


class Tile:
    """A kernel whose only nest is tiled completely. Raises CommandError with the reason if it has no such tiles."""

    def __init__(
        self, syntax: CLike, kernel: Kernel, chain: list[For], update: Assign, free: Mapping[LoopId, int]
    ) -> None:
        self.kernel = kernel
        self.update = update
        if not isinstance(update.target, Element):
            raise TypeError("checked before")
        self.target = update.target
        self.free = {loop.var for d, loop in enumerate(chain) if free.get((0,) * (d + 1), 1) == 0}
        self.axes = self._axes(chain)
        self.blocks = [a for a in self.axes if a.dimension is not None]
        self.turns = [a for a in self.axes if a.dimension is None]
        self._check()
        self.syntax = syntax
        self.names = renamed(kernel, self.syntax)
        self.staged = self._staged()
        self.shared = sum(s.bytes for s in self.staged)
        self.counts = [-(-a.size // a.threads(len(self.blocks))) for a in self.blocks]
        self._check_room()

    # ---- the tiled loops ----

    def _axes(self, chain: list[For]) -> list[Axis]:
        tiles = {loop.var: loop for loop in chain}
        pairs: list[tuple[For, For, int]] = []
        for loop in chain:
            if isinstance(loop.start, Sym) and loop.start.name in tiles and loop.step == Const(1):
                over = tiles[loop.start.name]
                size = self._size(over, loop)
                pairs.append((over, loop, size))
        done = {loop.var for pair in pairs for loop in pair[:2]}
        open_ = [loop.var for loop in chain if loop.var not in done]
        if not pairs:
            names = ", ".join(loop.var for loop in chain)
            raise refused(self.kernel, "it has no loops over tiles", f"tile its loops, as in `tile {names} by 16`")
        if open_:
            names = listed([f"`{v}`" for v in open_], "and")
            raise refused(self.kernel, f"{names} {'are' if len(open_) > 1 else 'is'} not tiled", "tile all its loops")
        spread = [(over, loop) for over, loop, _ in pairs if {over.var, loop.var} <= self.free]
        if not spread:
            raise refused(self.kernel, "no loop over tiles has independent iterations")
        if len(spread) > 3:
            raise refused(self.kernel, "it has more than three independent loops over tiles")
        # x is the loop along which most accesses are to neighbors: threads next to each other then load from one line.
        near = neighbours([self.update])
        fastest = max(reversed(spread), key=lambda pair: near.get(pair[1].var, 0))
        ordered = [fastest, *(pair for pair in reversed(spread) if pair is not fastest)]
        dimension = {pair[1].var: d for d, pair in enumerate(ordered)}
        return [Axis(over, loop, size, dimension.get(loop.var)) for over, loop, size in pairs]

    def _size(self, over: For, loop: For) -> int:
        ends = loop.stops
        if not isinstance(over.step, Const):
            raise TypeError("sizes of tiles are numbers here")
        whole = affine(add(Sym(over.var), over.step)).expression()
        if whole not in [affine(e).expression() for e in ends] or over.start != Const(0):
            raise refused(self.kernel, f"the loop `{loop.var}` is not that of a tile that starts at `{over.var}`")
        return over.step.value

    def _check(self) -> None:
        points = {a.points.var for a in self.axes}
        variables = points | {a.tiles.var for a in self.axes}
        owned = {a.points.var for a in self.blocks}
        for a in self.axes:
            bounds = a.tiles.start.symbols() | a.tiles.stop.symbols() | (a.points.stop.symbols() - {a.tiles.var})
            if bounds & variables:
                raise refused(self.kernel, f"the bounds of `{a.points.var}` depend on other loops")
        for s in self.target.subscripts:
            if s.symbols() & variables - owned:
                raise refused(self.kernel, f"`{self.target.array.name}` is written in tiles that depend on each other")
        if self.turns and self.update.op == "=":
            raise refused(self.kernel, "its assignment is not an update such as `+=`")
        if any(e.array.name == self.target.array.name for e in elements(self.update.value)):
            raise refused(self.kernel, f"it reads other elements of `{self.target.array.name}`, which it writes")

    def _staged(self) -> list[Staged]:
        """The elements to copy to shared memory: references that several threads of a block read."""
        owned = {a.points.var for a in self.blocks}
        groups: dict[tuple[object, ...], list[Element]] = {}
        # References that differ by numbers alone, such as x[i] and x[i + 1], share one box, which is as much wider.
        for e in elements(self.update.value):
            forms = [affine(s) for s in e.subscripts]
            key = (e.array.name, *(tuple((t, c) for t, c in form.terms) for form in forms))
            groups.setdefault(key, []).append(e)
        staged: list[Staged] = []
        for uses in groups.values():
            forms = [affine(s) for s in uses[0].subscripts]
            symbols = {name for form in forms for name in form.coefficients()}
            hidden = frozenset[str]().union(*(form.hidden() for form in forms))
            points = {a.points.var for a in self.axes}
            if not symbols & points or (owned <= symbols and len({u.subscripts for u in uses}) == 1):
                continue  # the same element for all threads, or a separate one for each thread
            if hidden & points or symbols & {a.tiles.var for a in self.axes}:
                raise refused(self.kernel, f"a subscript of `{uses[0].array.name}` is not affine")
            boxes_before = sum(s.array.name == uses[0].array.name for s in staged)
            staged.append(self._box(uses, boxes_before))
        if not staged:
            reason = "no array that it reads has some and not all of the independent loops in its subscripts"
            raise refused(self.kernel, reason)
        return staged

    def _box(self, uses: list[Element], number: int) -> Staged:
        corner: list[IntExpr] = []
        extents: list[int] = []
        axes = {a.points.var: a for a in self.axes}
        for d in range(len(uses[0].subscripts)):
            forms = [affine(u.subscripts[d]) for u in uses]
            low, high = min(f.constant for f in forms), max(f.constant for f in forms)
            rest = Affine(low, tuple((t, c) for t, c in forms[0].terms if not (isinstance(t, Sym) and t.name in axes)))
            first, extent = rest.expression(), high - low + 1
            for name, c in forms[0].coefficients().items():
                if name not in axes:
                    continue
                axis = axes[name]
                # x[n - i] is least at the last point of the tile
                at = Sym(axis.tiles.var) if c > 0 else add(Sym(axis.tiles.var), Const(axis.size - 1))
                first = add(first, mul(Const(c), at))
                extent += abs(c) * (axis.size - 1)
            corner.append(affine(first).expression())
            extents.append(extent)
        array = uses[0].array
        return Staged(
            array, f"tile_{array.name}{number + 1 if number else ''}", tuple(corner), tuple(extents), tuple(uses)
        )

    def _check_room(self) -> None:
        if self.shared > LARGEST_SHARED:
            message = (
                f"its tiles take {self.shared:,} bytes of shared memory, and a block has {LARGEST_SHARED:,} at most"
            )
            raise refused(self.kernel, message, "use smaller tiles")
        sums = prod(self.counts)
        if self.turns and sums > MOST_SUMS:
            message = f"each thread would keep {sums} sums in registers, but the limit is {MOST_SUMS}"
            raise refused(self.kernel, message, "use smaller tiles")
