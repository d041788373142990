"""CUDA with the kernel's own tiles in shared memory: a tile for each block, staged by all its threads together.

The nest has loops over tiles and, in each tile, loops over its points. Tiles whose loops are independent become
blocks; the others (the sum of a product) are run through in turn: at each, the threads of a block copy what it reads
into shared memory, wait for each other, and compute from there, sums in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from roofdsl.codegen.compute import Computed, component, computed, kind_of
from roofdsl.codegen.cuda import CudaSyntax, finish, scalars
from roofdsl.codegen.emitter import Emitter, chain_of
from roofdsl.codegen.generated import Call, Generated, Grid
from roofdsl.codegen.kernels import arguments, load_scalars, name_extents, signature, wrapped
from roofdsl.codegen.names import renamed
from roofdsl.codegen.syntax import SUM, Lines, Text
from roofdsl.codegen.threads import LoopId, neighbours
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.report import listed
from roofdsl.loops.accesses import elements
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Const, IntExpr, Min, Sym, add, mul, sub
from roofdsl.loops.model import Array, Assign, Element, For, Kernel
from roofdsl.loops.numbers import with_numbers

THREADS = {1: (256,), 2: (16, 16), 3: (16, 4, 4)}
"""Threads of a block, x first: few enough that each of them has several sums of a large tile in its registers."""

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a function may declare; more is asked for at the launch."""

LARGEST_SHARED = 227 * 1024
"""Bytes of shared memory that a block can have on the largest devices."""

MOST_SUMS = 64
"""Sums that a thread can keep in registers."""


class Axis(Record):
    """A loop over tiles and the loop in its tile, of `size` points; `dimension` 0, 1, 2 where blocks run over it."""

    tiles: For
    points: For
    size: int
    dimension: int | None

    def threads(self, total: int) -> int:
        """Threads along it, where a block has `total` dimensions of them."""
        return 1 if self.dimension is None else min(self.size, THREADS[total][self.dimension])


class Staged(Record):
    """Elements of one array that are copied for a tile: from `corner` on, `extents` of them in each dimension."""

    array: Array
    name: str
    corner: tuple[IntExpr, ...]
    extents: tuple[int, ...]
    uses: tuple[Element, ...]

    @property
    def bytes(self) -> int:
        return self.array.type.bytes * prod(self.extents)


def generate_tiled(kernel: Kernel, free: Mapping[LoopId, int], sizes: Mapping[str, int]) -> Generated:
    """The variant `tiled` of a kernel whose directives are applied.

    Raises CommandError with the reason where the kernel is no such tile, or `sizes` leaves a tile's size open.
    """
    known = {p.name for p in kernel.parameters}
    chain, update = _nest(kernel)
    needed = {s for loop in chain for s in loop.step.symbols()}
    missing = sorted(needed - sizes.keys())
    if missing:
        example = ",".join(f"{name}=32" for name in missing)
        raise _refused(kernel, f"shared memory needs a number for {listed(missing, 'and')}", f"--set {example}")
    baked = {name: sizes[name] for name in needed & known}
    kernel = with_numbers(kernel, baked)
    chain, update = _nest(kernel)
    tile = _Tile(kernel, chain, update, free)
    return tile.generated(tuple(sorted(baked.items())))


def _refused(kernel: Kernel, reason: str, help: str = "take the variant `naive`") -> CommandError:
    return CommandError(f"kernel {kernel.name} has no variant `tiled`: {reason}", help)


def _nest(kernel: Kernel) -> tuple[list[For], Assign]:
    """The loops of the kernel's one perfect nest, and the one assignment in it."""
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], For):
        raise _refused(kernel, "it is not one nest of loops")
    chain = list(chain_of(kernel.body[0]))
    body = chain[-1].body
    if len(body) != 1 or not isinstance(body[0], Assign) or not isinstance(body[0].target, Element):
        raise _refused(kernel, "its innermost loop holds more than one assignment to an array")
    return chain, body[0]


class _Tile:
    def __init__(self, kernel: Kernel, chain: list[For], update: Assign, free: Mapping[LoopId, int]) -> None:
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
        self.syntax = CudaSyntax()
        self.names = renamed(kernel, self.syntax)
        self.staged = self._staged()
        self.shared = sum(s.bytes for s in self.staged)
        self.counts = [-(-a.size // a.threads(len(self.blocks))) for a in self.blocks]
        self._check_room()

    # ---- what is tiled ----

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
            raise _refused(self.kernel, "it has no loops over tiles", "write `tile i, j, k by b`")
        if open_:
            names = listed([f"`{v}`" for v in open_], "and")
            raise _refused(self.kernel, f"{names} {'are' if len(open_) > 1 else 'is'} not tiled", "tile all its loops")
        spread = [(over, loop) for over, loop, _ in pairs if {over.var, loop.var} <= self.free]
        if not spread:
            raise _refused(self.kernel, "no loop over tiles has independent iterations")
        if len(spread) > 3:
            raise _refused(self.kernel, "it has more than three independent loops over tiles")
        near = neighbours([self.update])
        fastest = max(reversed(spread), key=lambda pair: near.get(pair[1].var, 0))
        ordered = [fastest, *(pair for pair in reversed(spread) if pair is not fastest)]
        dimension = {pair[1].var: d for d, pair in enumerate(ordered)}
        return [Axis(over, loop, size, dimension.get(loop.var)) for over, loop, size in pairs]

    def _size(self, over: For, loop: For) -> int:
        ends = loop.stop.terms if isinstance(loop.stop, Min) else (loop.stop,)
        if not isinstance(over.step, Const):
            raise TypeError("sizes of tiles are numbers here")
        whole = affine(add(Sym(over.var), over.step)).expression()
        if whole not in [affine(e).expression() for e in ends] or over.start != Const(0):
            raise _refused(self.kernel, f"the loop `{loop.var}` is not that of a tile that starts at `{over.var}`")
        return over.step.value

    def _check(self) -> None:
        points = {a.points.var for a in self.axes}
        variables = points | {a.tiles.var for a in self.axes}
        owned = {a.points.var for a in self.blocks}
        for a in self.axes:
            bounds = a.tiles.start.symbols() | a.tiles.stop.symbols() | (a.points.stop.symbols() - {a.tiles.var})
            if bounds & variables:
                raise _refused(self.kernel, f"the bounds of `{a.points.var}` depend on other loops")
        for s in self.target.subscripts:
            if s.symbols() & variables - owned:
                raise _refused(self.kernel, f"`{self.target.array.name}` is written in tiles that depend on each other")
        if self.turns and self.update.op == "=":
            raise _refused(self.kernel, "its assignment is no update such as `+=`")
        if any(e.array.name == self.target.array.name for e in elements(self.update.value)):
            raise _refused(self.kernel, f"it reads other elements of `{self.target.array.name}`, which it writes")

    def _staged(self) -> list[Staged]:
        """What is copied to shared memory: references that several threads of a block read."""
        owned = {a.points.var for a in self.blocks}
        groups: dict[tuple[object, ...], list[Element]] = {}
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
                continue  # the same for all threads, or each thread's own
            if hidden & points or symbols & {a.tiles.var for a in self.axes}:
                raise _refused(self.kernel, f"a subscript of `{uses[0].array.name}` is not affine")
            staged.append(self._box(uses, len([s for s in staged if s.array.name == uses[0].array.name])))
        if not staged:
            raise _refused(self.kernel, "no two threads of a tile read the same element")
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
            raise _refused(self.kernel, message, "take smaller tiles")
        sums = prod(self.counts)
        if self.turns and sums > MOST_SUMS:
            message = f"each thread would keep {sums} sums in registers, and {MOST_SUMS} is the most"
            raise _refused(self.kernel, message, "take smaller tiles")

    # ---- text ----

    def generated(self, sizes: tuple[tuple[str, int], ...]) -> Generated:
        """The function, its launch and how the elements it needs were staged."""
        kernel = self.kernel
        name = self.names.get(kernel.name, kernel.name)
        out = Lines()
        emitter = Emitter(self.syntax, out, self.names, kernel.source, [p.name for p in kernel.parameters])
        threads = [a.threads(len(self.blocks)) for a in self.blocks]
        total = prod(threads)
        out.add(f'extern "C" __global__ void __launch_bounds__({total})')
        for line in wrapped(name, signature(kernel, self.syntax, self.names, temp=True)):
            out.add(line)
        out.add("{")
        out.depth += 1
        name_extents(emitter, [self.update], self.syntax.integer_type)
        self._declare_shared(out, emitter)
        used, _ = scalars((self.update,))
        load_scalars(kernel, emitter, "*{}", used, temp=True)
        self._blocks(out, emitter, total)
        self.syntax.close(out)
        what = f"CUDA, variant tiled, {' x '.join(str(a.size) for a in self.axes)} tiles, {total} threads a block"
        source = finish(kernel, self.syntax, what, [out.lines])
        ordered = sorted(self.blocks, key=lambda a: a.dimension or 0)
        dims = tuple(
            Grid(a.tiles.start, a.tiles.stop, a.tiles.step, a.threads(len(self.blocks)), tiles=True) for a in ordered
        )
        dynamic = self.shared if self.shared > STATIC_SHARED else 0
        call = Call(name, (), dims, tuple(a.points.var for a in self.blocks), dynamic)
        notes = (f"{self.shared} bytes of shared memory a block",)
        spread = call.parallel
        return Generated(
            kernel.name, "cuda", "tiled", source, name, arguments(kernel, temp=True), spread, (call,), sizes, notes
        )

    def _declare_shared(self, out: Lines, emitter: Emitter) -> None:
        dynamic = self.shared > STATIC_SHARED
        if dynamic:
            out.add("extern __shared__ __align__(16) unsigned char shared[];  // asked for at the launch")
        offset = 0
        for s in sorted(self.staged, key=lambda s: -s.array.type.bytes):
            type_ = self.syntax.storage[s.array.type.name]
            extents = "".join(f"[{e}]" for e in s.extents)
            if dynamic:
                inner = "".join(f"[{e}]" for e in s.extents[1:])
                pointer = f"({type_} (*){inner})" if inner else f"({type_} *)"
                left = f"{type_} (*{s.name}){inner}" if inner else f"{type_} *{s.name}"
                out.add(f"{left} = {pointer}(shared + {offset});")
                offset += s.bytes
            else:
                out.add(f"__shared__ {type_} {s.name}{extents};")
        lanes = ["threadIdx.x", "blockDim.x * threadIdx.y", "blockDim.x * blockDim.y * threadIdx.z"]
        out.add(f"const int thread = {' + '.join(lanes[: len(self.blocks)])};")

    def _blocks(self, out: Lines, emitter: Emitter, total: int) -> None:
        syntax = self.syntax
        for a in self.blocks:
            axis = "xyz"[a.dimension or 0]
            emitter.quote(a.points.span)
            step, var = a.size, emitter.name(a.tiles.var)
            stop = emitter.integer(a.tiles.stop).at(SUM)
            mine = f"(index_t)blockIdx.{axis} * {step}"
            syntax.open(out, f"for (index_t {var} = {mine}; {var} < {stop}; {var} += (index_t)gridDim.{axis} * {step})")
        kind = computed(self.target.array.type)
        if self.turns:
            counts = "".join(f"[{c}]" for c in self.counts)
            out.add(f"{syntax.names[kind]} sum{counts};")
            opened = self._owned(out, emitter, guard=False)
            value = emitter.loaded(emitter.place(self.target), self.target.array)
            zero = _zero(syntax, kind).text
            inside = self._inside(emitter)
            first = f"{inside} ? {value.text} : {zero}" if inside else value.text
            out.add(f"sum{self._register()} = {first};")
            self._close(out, opened)
        for a in self.turns:
            syntax.loop(out, emitter.name(a.tiles.var), *(emitter.integer(e) for e in self._range(a.tiles)))
        self._copy(out, emitter, total)
        self._compute(out, emitter)
        self._close(out, len(self.turns))
        if self.turns:
            opened = self._owned(out, emitter, guard=True)
            value = syntax.stored(Text(f"sum{self._register()}"), kind, self.target.array)
            out.add(f"{emitter.place(self.target).text} = {value.text};")
            self._close(out, opened)
        self._close(out, len(self.blocks))

    @staticmethod
    def _range(loop: For) -> tuple[IntExpr, IntExpr, IntExpr]:
        return loop.start, loop.stop, loop.step

    def _close(self, out: Lines, blocks: int) -> None:
        for _ in range(blocks):
            self.syntax.close(out)

    def _register(self) -> str:
        return "".join(f"[own_{self.names.get(a.points.var, a.points.var)}]" for a in self.blocks)

    def _owned(self, out: Lines, emitter: Emitter, guard: bool) -> int:
        """Opens the loops over the points of the tile that are this thread's; how many blocks it opened."""
        for a, count in zip(self.blocks, self.counts, strict=True):
            axis, var = "xyz"[a.dimension or 0], emitter.name(a.points.var)
            out.add("#pragma unroll")
            self.syntax.open(out, f"for (int own_{var} = 0; own_{var} < {count}; ++own_{var})")
            threads = a.threads(len(self.blocks))
            offset = f"threadIdx.{axis}" + (f" + own_{var} * {threads}" if count > 1 else "")
            out.add(f"const index_t {var} = {emitter.name(a.tiles.var)} + {offset};")
        inside = self._inside(emitter) if guard else ""
        if inside:
            self.syntax.condition(out, inside)
        return len(self.blocks) + bool(inside)

    def _inside(self, emitter: Emitter) -> str:
        """Whether the point is one of the loops': tiles may reach over the ends, threads over their tile.

        Empty where all points surely are.
        """
        parts = []
        for a, count in zip(self.blocks, self.counts, strict=True):
            ends = a.points.stop.terms if isinstance(a.points.stop, Min) else (a.points.stop,)
            over = count * a.threads(len(self.blocks)) > a.size
            for end in ends:
                if over or Sym(a.tiles.var).name not in end.symbols():
                    parts.append(f"{emitter.name(a.points.var)} < {emitter.integer(end).at(SUM)}")
        return " && ".join(parts)

    def _copy(self, out: Lines, emitter: Emitter, total: int) -> None:
        """All threads copy what the tile reads; what lies outside the array is 0."""
        syntax = self.syntax
        out.add("__syncthreads();  // nobody still reads the tiles before")
        for s in self.staged:
            syntax.open(out, f"for (int p = thread; p < {prod(s.extents)}; p += {total})")
            order = list(range(len(s.extents)))
            if not s.array.column_major:
                order.reverse()
            left = "p"
            places: dict[int, str] = {}
            for k, d in enumerate(order):
                last = k == len(order) - 1
                places[d] = left if last else f"{left} % {s.extents[d]}"
                left = f"p / {prod(s.extents[e] for e in order[: k + 1])}"
            for d, corner in enumerate(s.corner):
                out.add(f"const int at_{d} = {places[d]};")
                out.add(f"const index_t from_{d} = {emitter.integer(corner).at(SUM)} + at_{d};")
            dims = [emitter.dimension(d) for d in s.array.dims]
            inside = []
            for d, dim in enumerate(dims):
                inside += [f"from_{d} >= 0"] if self._may_be_negative(s.corner[d]) else []
                inside.append(f"from_{d} < {dim.at(SUM)}")
            subscripts = [Text(f"from_{d}") for d in range(len(dims))]
            place = syntax.element(s.array, emitter.name(s.array.name), subscripts, dims)
            into = f"{s.name}{''.join(f'[at_{d}]' for d in range(len(dims)))}"
            zero = syntax.stored(_zero(syntax, computed(s.array.type)), computed(s.array.type), s.array)
            out.add(f"{into} = {' && '.join(inside)} ? {place.text} : {zero.text};")
            syntax.close(out)
        out.add("__syncthreads();  // the tiles are whole")

    def _may_be_negative(self, corner: IntExpr) -> bool:
        form = affine(corner)
        return form.constant < 0 or any(c < 0 for _, c in form.terms)

    def _compute(self, out: Lines, emitter: Emitter) -> None:
        for s in self.staged:
            for use in s.uses:
                places = "".join(
                    f"[{emitter.integer(affine(sub(index, corner)).expression()).text}]"
                    for index, corner in zip(use.subscripts, s.corner, strict=True)
                )
                emitter.staged[id(use)] = emitter.loaded(Text(f"{s.name}{places}"), s.array)
        for a in self.turns:
            self.syntax.loop(out, emitter.name(a.points.var), *(emitter.integer(e) for e in self._range(a.points)))
        own = any(id(e) not in emitter.staged for e in elements(self.update.value))
        integers = computed(self.target.array.type) in ("i32", "i64") or kind_of(self.update.value) in ("i32", "i64")
        guard = own or integers or not self.turns
        opened = self._owned(out, emitter, guard)
        if self.turns:
            emitter.quote(self.update.span)
            kind = computed(self.target.array.type)
            emitter.update_register(f"sum{self._register()}", kind, self.update.op, self.update.value)
        else:
            emitter.assign(self.update)
        self._close(out, opened + len(self.turns))


def _zero(syntax: CudaSyntax, kind: Computed) -> Text:
    real = component(kind)
    return syntax.convert(syntax.literal(0, real), real, kind)
