"""The traffic between registers and L1 on a GPU, against the warps of the generated launch, taken thread by thread."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.generate import with_declared
from roofdsl.codegen.launch_grids import launches_of
from roofdsl.codegen.targets.cuda import Cuda
from roofdsl.loops.block_shape import filled, lanes
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import Options, predict
from tests.predict.machines import kernel_of

SECTOR, WARP = 32, 32


@dataclass(frozen=True)
class Reference:
    """`name[2 * i + 1, ...]`: for each dimension the loop, the stride and the offset."""

    name: str
    places: tuple[tuple[str, int, int], ...]

    def dims(self) -> str:
        return ", ".join(f"{s} * n{v} + {o}" for v, s, o in self.places)

    def text(self) -> str:
        return f"{self.name}[{', '.join(f'{s} * {v} + {o}' for v, s, o in self.places)}]"

    def flat(self, env: dict[str, int], trips: dict[str, int]) -> int:
        where = 0
        for v, s, o in self.places:
            where = where * (s * trips[v] + o) + s * env[v] + o
        return where


@dataclass(frozen=True)
class Case:
    """A nest over `loops` (outermost first) that assigns to `out`, or adds to it if it has a loop less."""

    loops: tuple[str, ...]
    out: Reference
    ins: tuple[Reference, Reference]
    trips: dict[str, int]
    type: str
    is_declared: bool

    @property
    def is_sum(self) -> bool:
        return len(self.out.places) < len(self.loops)

    def text(self) -> str:
        header = f"kernel q({', '.join(sorted(f'n{v}' for v in self.loops))}):\n"
        arrays = "".join(f"    in {r.name}: {self.type}[{r.dims()}]\n" for r in self.ins)
        arrays += f"    {'inout' if self.is_sum else 'out'} {self.out.name}: {self.type}[{self.out.dims()}]\n"
        nest = ", ".join(f"{v} in range(n{v})" for v in self.loops)
        op = "+=" if self.is_sum else "="
        body = f"        {self.out.text()} {op} {self.ins[0].text()} * {self.ins[1].text()}\n"
        return f"{header}{arrays}    {'parallel ' * self.is_declared}for {nest}:\n{body}"


def drawn(seed: int) -> Case:
    draw = random.Random(seed)
    loops = draw.sample("ijk", draw.choice((2, 2, 3)))
    many = (1, 5, 8, 31, 32, 33, 40, 64, 70) if len(loops) == 2 else (1, 3, 8, 31, 33, 40)
    left = len(loops) == 3 and draw.random() < 0.5

    def reference(name: str, of: list[str], strides: tuple[int, ...], offsets: tuple[int, ...]) -> Reference:
        return Reference(name, tuple((v, draw.choice(strides), draw.choice(offsets)) for v in of))

    out = reference("A", draw.sample(loops, len(loops) - left), (1,), (0,))
    first, second = (
        reference(name, draw.sample(loops, draw.randint(1, len(loops))), (1, 1, 1, 2), (0, 0, 0, 1, 2)) for name in "BC"
    )
    trips = {v: draw.choice(many) for v in loops}
    return Case(
        tuple(loops), out, (first, second), trips, draw.choice(("f64", "f32")), not left and draw.random() < 0.5
    )


def warps(grid: tuple[int, ...], block: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """The places (x, y, z) of the threads of each warp: consecutive threads of a block, x first."""
    for at in product(*(range(n) for n in grid)):
        threads = [
            tuple(b * n + k for b, n, k in zip(at, block, (x, y, z), strict=True))
            for z in range(block[2]) for y in range(block[1]) for x in range(block[0])
        ]  # fmt: skip
        for first in range(0, len(threads), WARP):
            yield threads[first : first + WARP]


def enumerated(case: Case, grid: tuple[int, ...], block: tuple[int, ...], along: tuple[str, ...]) -> int:
    """Bytes in sectors: each access of a warp moves every sector that one of its threads touches."""
    serial = [v for v in case.loops if v not in along]
    size = 8 if case.type == "f64" else 4
    total = 0
    for threads in warps(grid, block):
        envs = [dict(zip(along, t, strict=False)) for t in threads]
        own = [env for env in envs if all(n < case.trips[v] for v, n in env.items())]
        for step in product(*(range(case.trips[v]) for v in serial)):
            inner = dict(zip(serial, step, strict=True))
            for r in (*case.ins, case.out):
                touched = {r.flat(env | inner, case.trips) * size // SECTOR for env in own}
                total += SECTOR * len(touched) * (2 if case.is_sum and r is case.out else 1)
    return total


@pytest.mark.spread(24)
@pytest.mark.parametrize("seed", range(240))
def test_the_first_level_moves_the_sectors_of_warps(seed: int) -> None:
    case = drawn(seed)
    of = kernel_of(case.text())
    sizes = {f"n{v}": n for v, n in case.trips.items()}
    plain = apply(of)
    made = launched(Cuda(), plain, with_declared(parallel_loops(of), plain.body))
    (call,), (launch,) = list(made.calls()), list(launches_of(made.steps, sizes))
    found = predict(of, sizes, load_machine("v100"), Options())
    level = next(level for level in found.levels if level.name == "L1")
    assert level.bytes == enumerated(case, launch.grid, launch.block, call.parallel), case.text()


@pytest.mark.parametrize(
    ("usual", "trips", "shape"),
    [
        ((256,), (1000,), (256,)),
        ((256,), (100,), (128,)),
        ((32, 8), (1000, 1000), (32, 8)),
        ((32, 8), (3, 1000), (4, 64)),
        ((32, 8), (1000, 3), (64, 4)),
        ((32, 8), (5, 6), (8, 8)),
        ((32, 4, 2), (2, 1, 1000), (2, 1, 64)),  # no more than 64 along z
        ((32, 4, 2), (1000, 1, 1), (256, 1, 1)),
    ],
)
def test_blocks_are_filled_where_loops_are_short(
    usual: tuple[int, ...], trips: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    assert filled(usual, trips) == shape


def test_lanes_of_a_warp_follow_x_first() -> None:
    assert lanes((32, 8, 1), 32) == (32, 1, 1)
    assert lanes((4, 64, 1), 32) == (4, 8, 1)
    assert lanes((2, 1, 64), 32) == (2, 1, 16)
    assert lanes((8, 8, 4), 64) == (8, 8, 1)
