"""A kernel as CUDA functions, one for each nest, and the steps of the host that launch them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from roofdsl.codegen.block_sums import (
    BLOCK,
    MOST_PARTS,
    Sums,
    add_whole,
    can_follow,
    join_parts,
    leave_parts,
    may_be_spread,
    parts_of,
    start_parts,
    sums_of,
)
from roofdsl.codegen.clike import CLike
from roofdsl.codegen.data_threads import DataThreads, data_threads, updated_together
from roofdsl.codegen.emitter import Emitter, LoopHeader, chain_of
from roofdsl.codegen.function_parts import load_scalars, name_extents, positions, signature, store_scalars, wrapped
from roofdsl.codegen.identifiers import renamed
from roofdsl.codegen.independent_loops import mentioned
from roofdsl.codegen.launch_grids import Call, HostIf, HostLoop, Step
from roofdsl.codegen.private_copies import Copies, private_copies
from roofdsl.codegen.syntax import PRODUCT, SUM, Lines, Text
from roofdsl.codegen.threads import Nest, Spread, loops_of_threads, plan_nest
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.integers import all_of
from roofdsl.loops.model import Array, Assign, Count, For, If, Kernel, Let, Node, ScalarRef
from roofdsl.loops.private_loops import PrivateLoop

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Launched(Record):
    """The functions of a kernel and the steps that launch them: the parts of a text in CUDA.

    what: a description for the heading comment. sizes: parameters that are numbers in the text.
    """

    kernel: Kernel
    functions: tuple[Sequence[str], ...]
    steps: tuple[Step, ...]
    what: str
    notes: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...] = ()

    def calls(self) -> list[Call]:
        """The launches, each once, in the order of the text."""
        return list(calls_of(self.steps))


def launched(
    syntax: CLike, kernel: Kernel, free: Mapping[LoopId, int], private: Mapping[LoopId, PrivateLoop] = NOTHING
) -> Launched:
    """The variant `naive` of a kernel with its directives applied."""
    draft = _Builder(syntax, kernel, free, private)
    draft.steps(kernel.body, ())
    builder = _Builder(syntax, kernel, free, private, draft)
    steps = builder.steps(kernel.body, ())
    kernel = builder.kernel
    count = len(list(calls_of(steps)))
    what = f"{count} launch{'' if count == 1 else 'es'}"
    if any(isinstance(s, HostLoop) for s in steps):
        what += " in each iteration of what the host loops over"
    if any(isinstance(s, HostIf) for s in steps):
        what += "; the host chooses which of them run"
    return Launched(kernel, tuple(builder.functions), steps, what, tuple(builder.notes))


def calls_of(steps: Sequence[Step]) -> Iterator[Call]:
    """The launches in these steps, each once, in the order of the text."""
    for step in steps:
        match step:
            case Call():
                yield step
            case HostLoop(body=body):
                yield from calls_of(body)
            case HostIf(_, then, orelse):
                yield from calls_of(then)
                yield from calls_of(orelse)


def header_of(spread: Spread, syntax: CLike, once: bool = True) -> LoopHeader:
    """How to open a loop whose iterations are distributed over all threads, over blocks, or over the threads of one
    block.

    once: whether the grid is as large as the loop, so that a thread has one iteration.
    """
    axis = "xyz"[spread.dimension]
    rank, size = {
        "grid": (f"thread_{axis}", f"threads_{axis}"),
        "blocks": (f"blockIdx.{axis}", f"gridDim.{axis}"),
        "threads": (f"threadIdx.{axis}", f"blockDim.{axis}"),
    }[spread.level]

    def opened(out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        mine, stride = rank, size
        if step.text != "1":
            whole = "" if spread.level == "grid" else "(index_t)"
            factor = step.at(PRODUCT + 1)
            mine, stride = f"{whole}{rank} * {factor}", f"{whole}{size} * {factor}"
        first = mine if start.text == "0" else f"{start.at(SUM)} + {mine}"
        if once and spread.level == "grid":
            why = "most threads run one iteration; unrolling would need a trip count, which costs a division"
            out.add(f"#pragma unroll 1  // {why}")
        syntax.open(out, f"for (index_t {var} = {first}; {var} < {stop.at(SUM)}; {var} += {stride})")

    return opened


class Around(Record):
    """The frame of a function's statements.

    comments: lines above it. headers: of the loops that are spread, by identity. ranks: declarations of a thread's
    number in each dimension. makes: scalars of which it stores parts; joins: the function that stored parts, and the
    scalars. atomic: the updates, by identity, with which several threads may change the same element. own: arrays that
    each thread declares; scalars: those that each thread has for itself.
    """

    comments: Sequence[str] = ()
    headers: Mapping[int, LoopHeader] = NOTHING
    ranks: Sequence[str] = ()
    makes: Sums = NOTHING
    joins: tuple[str, Sums] | None = None
    atomic: frozenset[int] = frozenset()
    own: Sequence[Array] = ()
    scalars: frozenset[str] = frozenset()


class _Builder:
    """Splits a kernel into functions and the host's steps between them.

    draft: a builder that has split the kernel before. It tells how many functions there are, and which buffers they
    need.
    """

    def __init__(
        self,
        syntax: CLike,
        kernel: Kernel,
        free: Mapping[LoopId, int],
        private: Mapping[LoopId, PrivateLoop],
        draft: _Builder | None = None,
    ) -> None:
        self.plain, self.private_loops = kernel, private
        self.several = draft is None or len(draft.functions) > 1
        self.kernel = kernel if draft is None else replace(kernel, arrays=(*kernel.arrays, *draft.buffers))
        self.by_data = is_indirect(kernel)
        threads = data_threads(kernel, free) if self.by_data else DataThreads(free, frozenset())
        self.free, self.private = threads.free, threads.private
        self.place_of = {id(loop): position for position, loop in positions(kernel.body)}
        self.syntax = syntax
        self.names = renamed(kernel, self.syntax)
        self.functions: list[list[str]] = []
        self.notes: list[str] = []
        self.buffers: list[Array] = []
        self.copies: dict[int, Copies | None] = {}
        self.taken: set[str] = set()
        self.without: set[int] = set()

    def steps(self, nodes: Sequence[Node], variables: tuple[str, ...]) -> tuple[Step, ...]:
        """The host's steps for a block; `variables` are those of the host's loops around it."""
        steps: list[Step] = []
        pending: list[Node] = []

        def flush() -> None:
            if any(not _is_nothing(node) for node in pending):
                steps.append(self._alone(tuple(pending), variables))
            pending.clear()

        for node in nodes:
            if not self._is_launched(nodes, node):
                pending.append(node)
                continue
            if isinstance(node, For) and not self._is_free(node) and (sums := sums_of(node)):
                before = tuple(pending)
                if _has_loop(before) or not can_follow(before, node, sums):
                    flush()
                    before = ()
                pending.clear()
                steps += self._summed(node, sums, before, variables)
                continue
            flush()
            if isinstance(node, If):
                then, orelse = self.steps(node.then, variables), self.steps(node.orelse, variables)
                steps.append(HostIf(node.condition, then, orelse))
            elif isinstance(node, For):
                nest = plan_nest(self.kernel, node, self.place_of[id(node)], self.free)
                if nest is not None:
                    steps.append(self._spread(nest, node, variables))
                elif (copies := self._copies(node)) is not None:
                    steps.append(self._copied(copies, node, variables))
                else:
                    steps.append(self._host_loop(node, variables))
        flush()
        return tuple(steps)

    def _host_loop(self, node: For, variables: tuple[str, ...]) -> HostLoop:
        body = self.steps(node.body, (*variables, node.var))
        return HostLoop(node.var, node.start, node.stop, node.step, body)

    def _is_launched(self, block: Sequence[Node], node: Node) -> bool:
        """Whether a node is more than work for one thread. A `let` in the same block keeps the whole block in one
        thread.
        """
        if any(isinstance(other, Let) for other in block):
            return False
        if isinstance(node, For):
            alone = self._is_free(node) or sums_of(node) is not None or self._copies(node) is not None
            return alone or self._is_launched_inside(node)
        if isinstance(node, If):
            return any(self._is_launched(part, inner) for part in (node.then, node.orelse) for inner in part)
        return False

    def _is_free(self, node: For) -> bool:
        return plan_nest(self.kernel, node, self.place_of[id(node)], self.free) is not None

    def _is_launched_inside(self, node: For) -> bool:
        return any(self._is_launched(node.body, inner) for inner in node.body)

    def _copies(self, node: For) -> Copies | None:
        """The nest with a copy of `temp` arrays and scalars per thread; None if that spreads no loop or is excluded."""
        if not self.private_loops or id(node) in self.without:
            return None
        if id(node) not in self.copies:
            place = self.place_of[id(node)]
            copies = private_copies(self.plain, node, place, self.free, self.private_loops, taken=self.taken)
            self.copies[id(node)] = copies
            self.taken |= {buffer.name for _, buffer in copies.buffers} if copies else set()
        return self.copies[id(node)]

    def _function(self) -> str:
        name = self.names.get(self.kernel.name, self.kernel.name)
        return f"{name}_{len(self.functions) + 1}" if self.several else name

    def _alone(self, nodes: tuple[Node, ...], variables: tuple[str, ...]) -> Call:
        """A function for one thread."""
        name = self._function()
        lines = ["// One thread: the iterations of these loops depend on each other."] if _has_loop(nodes) else []
        self._write(name, variables, nodes, Around(lines))
        if _has_loop(nodes):
            self.notes.append(f"{name} runs on one thread")
        return Call(name, variables, (), (), nodes=nodes)

    def _spread(self, nest: Nest, root: For, variables: tuple[str, ...]) -> Call:
        name = self._function()
        headers = {id(s.loop): header_of(s, self.syntax) for s in nest.spread}
        spread = tuple(s.loop.var for s in nest.spread)
        atomic = updated_together(nest.root, spread) if self.by_data else frozenset[int]()
        self._write(name, variables, (nest.root,), Around((), headers, self._ranks(nest), atomic=atomic))
        return Call(name, variables, nest.dims, spread, nodes=(root,), nest=loops_of_threads(nest))

    def _copied(self, copies: Copies, root: For, variables: tuple[str, ...]) -> Step:
        """One launch with copies; if that is not always better, the host chooses between it and launches without."""
        name = self._function()
        comments = [f"// Each thread has its own {_listed(copies.names)}."]
        comments += [f"// {buffer.name} holds the {name} of every thread." for name, buffer in copies.buffers]
        headers = {id(s.loop): header_of(s, self.syntax) for s in copies.nest.spread}
        spread = tuple(s.loop.var for s in copies.nest.spread)
        around = Around(comments, headers, self._ranks(copies.nest), own=copies.own, scalars=copies.scalars)
        self.buffers += [buffer for _, buffer in copies.buffers]
        self._write(name, variables, (copies.nest.root,), around)
        seen = copies.counted
        call = Call(name, variables, copies.nest.dims, spread, copied=copies.names, nodes=(seen,), nest=seen)
        written = len(self.functions)
        self.without |= {id(loop) for loop in chain_of(root)}  # copies for fewer of these loops are not better
        inside = self._is_launched_inside(root)
        otherwise = self._host_loop(root, variables) if inside else self._alone((root,), variables)
        limits = copies.limits((otherwise,))
        if not limits:
            del self.functions[written:]
            return call
        condition = all_of([condition for condition, _ in limits])
        assert condition is not None
        return HostIf(condition, (call,), (otherwise,), limits)

    @staticmethod
    def _ranks(nest: Nest) -> list[str]:
        """Declarations of a thread's number in each dimension of the grid, and of the number of threads."""
        ranks = []
        for s in sorted(nest.spread, key=lambda s: s.dimension):
            if s.level == "grid":
                a = "xyz"[s.dimension]
                ranks.append(f"const index_t thread_{a} = (index_t)blockIdx.{a} * blockDim.{a} + threadIdx.{a};")
                ranks.append(f"const index_t threads_{a} = (index_t)gridDim.{a} * blockDim.{a};")
        return ranks

    def _summed(self, root: For, sums: Sums, before: tuple[Node, ...], variables: tuple[str, ...]) -> list[Step]:
        """Two functions for a nest that only updates scalars: one makes parts, the other combines them after the
        statements `before` the nest.
        """
        position = self.place_of[id(root)]
        nest = plan_nest(self.kernel, root, position, may_be_spread(position, root))
        if nest is None:  # no bounds for a grid: the bounds of its loops depend on each other
            return [self._alone((*before, root), variables)]
        name = self._function()
        headers = {id(s.loop): header_of(s, self.syntax, once=False) for s in nest.spread}
        comments = [
            *parts_of(name, self.syntax, sums),
            "// Every block leaves one part of the sums.",
            f"// Launch at most {MOST_PARTS} blocks, each of a power of two of at most {BLOCK} threads.",
        ]
        made = Around(comments, headers, self._ranks(nest), makes=sums)
        self._write(name, variables, (nest.root,), made)
        spread = tuple(s.loop.var for s in nest.spread)
        run = loops_of_threads(nest)
        parts = Call(name, variables, nest.dims, spread, most_blocks=MOST_PARTS, nodes=(root,), nest=run)
        whole = self._function()
        self._write(
            whole, variables, before, Around([f"// One block of {BLOCK} threads joins the parts."], joins=(name, sums))
        )
        return [parts, Call(whole, variables, (), (), threads=BLOCK, parts=parts, nodes=before)]

    def _write(self, name: str, variables: tuple[str, ...], nodes: tuple[Node, ...], around: Around) -> None:
        out = Lines(list(around.comments))
        parameters = [p.name for p in self.kernel.parameters]
        emitter = Emitter(self.syntax, out, self.names, self.kernel.source, parameters)
        emitter.headers, emitter.atomic = dict(around.headers), around.atomic
        private = self.private | around.scalars
        extra = [f"index_t {emitter.name(v)}" for v in variables]
        extra += ["index_t parts"] if around.joins else []
        parameters = [*signature(self.kernel, self.syntax, self.names, temp=True), *extra]
        for line in wrapped(f'extern "C" __global__ void {name}', parameters):
            out.add(line)
        out.add("{")
        out.depth += 1
        for rank in around.ranks:
            out.add(rank)
        name_extents(emitter, nodes, self.syntax.integer_type)
        wholes: Mapping[str, str] = NOTHING
        if around.joins:
            wholes = join_parts(self.syntax, emitter, *around.joins)
            self.syntax.condition(out, "thread == 0")
        used, assigned = scalars(nodes)
        summed = around.joins[1] if around.joins else NOTHING
        load_scalars(self.kernel, emitter, "", used & private)  # each thread has its own
        for array in around.own:
            out.add(f"{self.syntax.storage[array.type.name]} {array.name}[{' * '.join(map(str, array.dims))}];")
        kept = around.makes.keys() | private
        load_scalars(self.kernel, emitter, "*{}", (used | summed.keys()) - kept, temp=True)
        start_parts(emitter, around.makes)
        emitter.block(nodes)
        leave_parts(self.syntax, emitter, name, around.makes)
        add_whole(emitter, summed, wholes)
        store_scalars(self.kernel, emitter, "*{}", (assigned | summed.keys()) - kept, temp=True)
        if around.joins:
            self.syntax.close(out)
        out.depth -= 1
        out.add("}")
        self.functions.append(out.lines)


def scalars(nodes: Sequence[Node]) -> tuple[set[str], set[str]]:
    """(used, assigned): the declared scalars of a block."""

    used, assigned = set(mentioned(tuple(nodes))), set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        match node:
            case For(body=body):
                pending += body
            case If(_, then, orelse):
                pending += [*then, *orelse]
            case Assign(ScalarRef(array)):
                assigned.add(array.name)
    return used | assigned, assigned


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _is_nothing(node: Node) -> bool:
    """Whether the node is a `count`, which needs no code."""
    return isinstance(node, Count)


def _has_loop(nodes: Sequence[Node]) -> bool:
    return any(isinstance(n, For) or (isinstance(n, If) and (_has_loop(n.then) or _has_loop(n.orelse))) for n in nodes)
