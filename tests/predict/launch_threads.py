"""The threads of a generated CUDA launch, followed one by one: the loops as `codegen.cuda_kernels.header_of` writes
them, with the numbers of `launches_of`, apart from every prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.generate import with_declared
from roofdsl.codegen.launch_grids import Call, Launch, launches_of
from roofdsl.codegen.targets.cuda import Cuda
from roofdsl.loops.accesses import accesses
from roofdsl.loops.model import Assign, For, If, Kernel, Let, Node
from roofdsl.loops.transform import apply

SECTOR, WARP = 32, 32

Three = tuple[int, int, int]


@dataclass(frozen=True)
class Access:
    """An access of one thread: its block and place, what it counts in the loops `around`, and the sector it touches.

    address: in bytes from the first element of its array. name: the element as the kernel writes it.
    """

    block: Three
    thread: Three
    turn: tuple[int, ...]
    reference: int
    sector: tuple[str, int]
    is_write: bool
    around: tuple[str, ...]
    address: int
    name: str
    size: int


def the_call(of: Kernel, sizes: Mapping[str, int]) -> tuple[Call, Launch]:
    """The launch of the generated code that runs many threads, and its grid and block at these sizes."""
    plain = apply(of)
    made = launched(Cuda(), plain, with_declared(parallel_loops(of), plain.body), private_loops(of))
    found = list(launches_of(made.steps, dict(sizes)))
    names = [launch.function for launch in found]
    (call,) = (call for call in made.calls() if call.parts is None and call.function in names)
    return call, found[names.index(call.function)]


def followed(of: Kernel, sizes: Mapping[str, int]) -> list[Access]:
    """All accesses of the launch; each execution of a statement is made by exactly one thread."""
    call, launch = the_call(of, sizes)
    axes: dict[str, tuple[int, str]] = {}
    names = iter(call.parallel)
    for d, dim in enumerate(call.dims):
        if dim.tiles:
            axes |= {next(names): (d, "blocks"), next(names): (d, "threads")}
        else:
            axes[next(names)] = (d, "grid")
    assert call.nest is not None
    found: list[Access] = []
    for block in product(*map(range, launch.grid)):
        for thread in product(*map(range, launch.block)):
            walk = _Thread(axes, launch, block, thread)  # type: ignore[arg-type]
            found += walk.over((call.nest,), dict(of.constants) | dict(sizes), (), ())
    return found


class _Thread:
    def __init__(self, axes: Mapping[str, tuple[int, str]], launch: Launch, block: Three, thread: Three) -> None:
        self.axes, self.launch, self.block, self.thread = axes, launch, block, thread

    def over(
        self, nodes: Sequence[Node], env: dict[str, int], turn: tuple[int, ...], around: tuple[str, ...]
    ) -> Iterator[Access]:
        for node in nodes:
            if isinstance(node, For):
                for k, value in enumerate(self.values(node, env)):
                    yield from self.over(node.body, {**env, node.var: value}, (*turn, k), (*around, node.var))
            elif isinstance(node, If):
                yield from self.over(node.then if node.condition.holds(env) else node.orelse, env, turn, around)
            elif isinstance(node, Assign | Let):
                for k, access in enumerate(accesses(node)):
                    array = access.element.array
                    places = [s.evaluate(env) for s in access.element.subscripts]
                    flat = sum(p * s for p, s in zip(places, array.strides(env), strict=True))
                    address, text = flat * array.type.bytes, str(access.element.subscripts)
                    sector, name = (array.name, address // SECTOR), f"{array.name} {text}"
                    place = 1000 * node.span.line + k
                    yield Access(
                        self.block, self.thread, turn, place, sector, access.is_write, around, address, name,
                        array.type.bytes,
                    )  # fmt: skip

    def values(self, loop: For, env: dict[str, int]) -> range:
        start, stop, step = (e.evaluate(env) for e in (loop.start, loop.stop, loop.step))
        if not loop.parallel:
            return range(start, stop, step)
        d, level = self.axes[loop.var]
        block, threads = self.block[d], self.launch.block[d]
        rank, of = {
            "grid": (block * threads + self.thread[d], self.launch.grid[d] * threads),
            "blocks": (block, self.launch.grid[d]),
            "threads": (self.thread[d], threads),
        }[level]
        return range(start + rank * step, stop, of * step)


def from_registers(every: Sequence[Access], block: Three) -> int:
    """Bytes between the registers and L1: every sector that a warp's threads touch together, once."""
    x, y, _ = block
    together = {
        (a.block, (a.thread[0] + x * (a.thread[1] + y * a.thread[2])) // WARP, a.turn, a.reference, a.sector)
        for a in every
    }
    return SECTOR * len(together)


def behind_blocks(every: Sequence[Access]) -> int:
    """Bytes behind an L1 that holds what a block touches: each sector that is read, and each that is written, once.

    For kernels that read what they update, so that nothing is written before it is read.
    """
    return SECTOR * len({(a.block, a.sector, a.is_write) for a in every})
