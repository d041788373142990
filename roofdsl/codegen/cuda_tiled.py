"""CUDA with the kernel's own tiles in shared memory: one tile per block, staged by all its threads together.

The nest has loops over tiles and, in each tile, loops over its points. Tile loops that are independent become blocks.
The others (the sum of a product) run one tile after another: for each tile, the threads of a block copy what it reads
into shared memory, synchronize, and compute from there, with sums in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.computed_types import computed, kind_of
from roofdsl.codegen.cuda_kernels import Launched, scalars
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import load_scalars, name_extents, signature, wrapped
from roofdsl.codegen.launch_grids import Call, GridDimension
from roofdsl.codegen.shared_tiles import STATIC_SHARED, Tile, refused, tiled_nest
from roofdsl.codegen.syntax import SUM, Lines, Text
from roofdsl.lang.findings import listed
from roofdsl.loops.accesses import LoopId, elements
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import IntExpr, sub
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.parameter_values import with_numbers


def tiled(syntax: CLike, kernel: Kernel, free: Mapping[LoopId, int], sizes: Mapping[str, int]) -> Launched:
    """The variant `tiled` of a kernel with its directives applied.

    Raises CommandError with the reason if the kernel is not a single, completely tiled nest, or if `sizes` does not fix
    the size of a tile.
    """
    known = {p.name for p in kernel.parameters}
    chain, update = tiled_nest(kernel)
    needed = {s for loop in chain for s in loop.step.symbols()}
    missing = sorted(needed - sizes.keys())
    if missing:
        example = ",".join(f"{name}=32" for name in missing)
        raise refused(kernel, f"shared memory needs a number for {listed(missing, 'and')}", f"--set {example}")
    baked = {name: sizes[name] for name in needed & known}
    kernel = with_numbers(kernel, baked)
    chain, update = tiled_nest(kernel)
    return _Text(syntax, kernel, chain, update, free).launched(tuple(sorted(baked.items())))


class _Text(Tile):
    """Writes the text for a tile."""

    def launched(self, sizes: tuple[tuple[str, int], ...]) -> Launched:
        """The function, its launch, and a note on its shared memory."""
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
        what = f"{' x '.join(str(a.size) for a in self.axes)} tiles, {total} threads a block"
        ordered = sorted(self.blocks, key=lambda a: a.dimension or 0)
        dims = tuple(
            GridDimension(a.tiles.start, a.tiles.stop, a.tiles.step, a.threads(len(self.blocks)), tiles=True)
            for a in ordered
        )
        dynamic = self.shared if self.shared > STATIC_SHARED else 0
        call = Call(name, (), dims, tuple(a.points.var for a in self.blocks), dynamic)
        notes = (f"{self.shared} bytes of shared memory a block",)
        return Launched(kernel, (out.lines,), (call,), what, notes, sizes)

    def _declare_shared(self, out: Lines, emitter: Emitter) -> None:
        dynamic = self.shared > STATIC_SHARED
        if dynamic:
            out.add("extern __shared__ __align__(16) unsigned char shared[];  // asked for at the launch")
        offset = 0
        for s in sorted(self.staged, key=lambda s: -s.array.type.bytes):
            type_ = self.syntax.storage[s.array.type.name]
            extents = "".join(f"[{e}]" for e in s.extents)
            if dynamic:
                out.add(f"{type_} (&{s.name}){extents} = *({type_} (*){extents})(shared + {offset});")
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
            opened = self._owned(out, emitter, "")
            value = emitter.loaded(emitter.place(self.target), self.target.array)
            zero = syntax.zero(kind).text
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
            opened = self._owned(out, emitter, self._inside(emitter))
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

    def _owned(self, out: Lines, emitter: Emitter, inside: str) -> int:
        """Open the loops over this thread's points of the tile for which `inside` holds; returns the number of blocks
        opened.
        """
        for a, count in zip(self.blocks, self.counts, strict=True):
            axis, var = "xyz"[a.dimension or 0], emitter.name(a.points.var)
            out.add("#pragma unroll")
            self.syntax.open(out, f"for (int own_{var} = 0; own_{var} < {count}; ++own_{var})")
            threads = a.threads(len(self.blocks))
            offset = f"threadIdx.{axis}" + (f" + own_{var} * {threads}" if count > 1 else "")
            out.add(f"const index_t {var} = {emitter.name(a.tiles.var)} + {offset};")
        if inside:
            self.syntax.condition(out, inside)
        return len(self.blocks) + bool(inside)

    def _inside(self, emitter: Emitter) -> str:
        """The condition that a point belongs to the loops: tiles may exceed the bounds, and threads their tile.

        Empty if all points certainly do.
        """
        return " && ".join([*self._within_bounds(emitter), *self._within_tile(emitter)])

    def _within_bounds(self, emitter: Emitter) -> list[str]:
        """Conditions that the points of a tile belong to the loops."""
        ends = [(a, end) for a in self.blocks for end in a.points.stops if a.tiles.var not in end.symbols()]
        return [f"{emitter.name(a.points.var)} < {emitter.integer(end).at(SUM)}" for a, end in ends]

    def _within_tile(self, emitter: Emitter) -> list[str]:
        """Conditions that a thread's points belong to its tile, if the number of threads does not divide the tile.

        Threads beyond the tile would read shared memory after its rows, and compute for nothing.
        """
        over = [a for a, n in zip(self.blocks, self.counts, strict=True) if n * a.threads(len(self.blocks)) > a.size]
        ends = [(a, end) for a in over for end in a.points.stops if a.tiles.var in end.symbols()]
        return [f"{emitter.name(a.points.var)} < {emitter.integer(end).at(SUM)}" for a, end in ends]

    def _copy(self, out: Lines, emitter: Emitter, total: int) -> None:
        """Code in which all threads copy what the tile reads; elements outside the array become 0."""
        syntax = self.syntax
        out.add("__syncthreads();  // no thread reads the previous tiles any more")
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
            zero = syntax.stored(syntax.zero(computed(s.array.type)), computed(s.array.type), s.array)
            out.add(f"{into} = {' && '.join(inside)} ? {place.text} : {zero.text};")
            syntax.close(out)
        out.add("__syncthreads();  // the tiles are complete")

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
        # Points outside the loops may compute, since their sums are not stored, unless they read arrays directly,
        # compute with integers, or store at once.
        guarded = own or integers or not self.turns
        inside = self._inside(emitter) if guarded else " && ".join(self._within_tile(emitter))
        opened = self._owned(out, emitter, inside)
        if self.turns:
            emitter.quote(self.update.span)
            kind = computed(self.target.array.type)
            emitter.update_register(f"sum{self._register()}", kind, self.update.op, self.update.value)
        else:
            emitter.assign(self.update)
        self._close(out, opened + len(self.turns))
