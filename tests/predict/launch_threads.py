"""The threads of a generated CUDA launch, followed one by one: the loops as `codegen.cuda_kernels.header_of` writes
them, with the numbers of `launches_of`, apart from every prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.generate import with_declared
from roofdsl.codegen.launch_grids import Call, Launch, launches_of
from roofdsl.codegen.targets.cuda import Cuda
from roofdsl.loops.accesses import accesses
from roofdsl.loops.integers import IntExpr
from roofdsl.loops.model import Assign, For, If, Kernel, Let, Node
from roofdsl.loops.transform import apply

SECTOR, WARP = 32, 32

Three = tuple[int, int, int]


class Access(NamedTuple):
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


@dataclass(frozen=True)
class Reference:
    """What an access of a statement has in common each time the statement is executed; strides in bytes."""

    place: int
    array: str
    subscripts: tuple[IntExpr, ...]
    strides: tuple[int, ...]
    is_write: bool
    name: str
    size: int


def references(statement: Assign | Let, sizes: Mapping[str, int]) -> list[Reference]:
    found = []
    for k, access in enumerate(accesses(statement)):
        array, subscripts = access.element.array, access.element.subscripts
        strides = tuple(array.type.bytes * s for s in array.strides(sizes))
        place, name = 1000 * statement.span.line + k, f"{array.name} {subscripts}"
        found.append(Reference(place, array.name, subscripts, strides, access.is_write, name, array.type.bytes))
    return found


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
    walk = _Walk(axes, launch, dict(of.constants) | dict(sizes))
    for walk.block in product(*map(range, launch.grid)):  # type: ignore[assignment]
        for walk.thread in product(*map(range, launch.block)):  # type: ignore[assignment]
            walk.over((call.nest,), (), ())
    return walk.found


class _Walk:
    """One thread after another; `env` has the variables of the loops around, too."""

    def __init__(self, axes: Mapping[str, tuple[int, str]], launch: Launch, env: dict[str, int]) -> None:
        self.axes, self.launch, self.env, self.sizes = axes, launch, env, dict(env)
        self.block: Three = (0, 0, 0)
        self.thread: Three = (0, 0, 0)
        self.found: list[Access] = []
        self.known: dict[int, list[Reference]] = {}  # of each statement, by its identity

    def over(self, nodes: Sequence[Node], turn: tuple[int, ...], around: tuple[str, ...]) -> None:
        env = self.env
        for node in nodes:
            if isinstance(node, For):
                for k, value in enumerate(self.values(node, env)):
                    env[node.var] = value
                    self.over(node.body, (*turn, k), (*around, node.var))
            elif isinstance(node, If):
                self.over(node.then if node.condition.holds(env) else node.orelse, turn, around)
            elif isinstance(node, Assign | Let):
                own = self.known.get(id(node))
                if own is None:
                    own = self.known[id(node)] = references(node, self.sizes)
                for r in own:
                    address = sum(s.evaluate(env) * by for s, by in zip(r.subscripts, r.strides, strict=True))
                    sector = (r.array, address // SECTOR)
                    self.found.append(
                        Access(
                            self.block, self.thread, turn, r.place, sector, r.is_write, around, address, r.name, r.size
                        )
                    )

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
