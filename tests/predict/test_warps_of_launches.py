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
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
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


def bytes_of(text: str, level: str = "L1", options: Options | None = None, **sizes: int) -> int:
    """The bytes at a level of a V100, of a kernel given by its lines."""
    found = predict(kernel_of(text), sizes, load_machine("v100"), options or Options())
    return next(at.bytes for at in found.levels if at.name == level)


CHAIN = (
    "kernel q(n):\n    in B: f64[n]\n    inout A: f64[n]\n    for i in range(1, n):\n        A[i] = A[i - 1] + B[i]\n"
)
LET = (
    "kernel q(n):\n    in B: f64[n], c: f64\n    out A: f64[n]\n    let a = 2 * c\n"
    "    parallel for i in range(n):\n        A[i] = a * B[i]\n"
)
TURNED = (
    "kernel q(n, m):\n    in B: f64[m, n]\n    out A: f64[n, m]\n"
    "    parallel for i in range(n), j in range(m):\n        A[i, j] = B[j, i]\n"
)


def test_a_single_thread_moves_a_sector_with_each_access() -> None:
    assert bytes_of(CHAIN, n=64) == 63 * 3 * SECTOR
    assert bytes_of(LET, n=64) == 64 * 2 * SECTOR, "a `let` beside the nest keeps both in one thread"


def test_what_is_kept_in_caches_does_not_change_the_warps() -> None:
    """Blocks of 4 x 64 threads, one of four without work: a warp has 8 rows of A in 6 sectors, and 3 x 2 of B."""
    moved = 2 * (37 * 6 + 3) * SECTOR  # the last of 38 warps has 4 rows
    assert bytes_of(TURNED, n=300, m=3) == moved
    assert bytes_of(TURNED, options=Options(warm=True), n=300, m=3) == moved
    assert bytes_of(TURNED + "    count more n\n", n=300, m=3) == moved


def test_warps_run_along_x_if_bounds_depend_on_other_loops() -> None:
    """Enumerated: x is j, and the loop over k inside the threads."""
    text = (
        "kernel q(n):\n    in A: f64[n, n]\n    inout C: f64[n, n]\n    for i in range(n), j in range(i + 1), "
        "k in range(n):\n        C[i, j] += A[i, k] * A[j, k]\n"
    )
    n, total = 40, 0
    for i in range(n):
        for first in range(0, i + 1, WARP):
            own = range(first, min(i + 1, first + WARP))
            for k in range(n):
                rows = len({(j * n + k) * 8 // SECTOR for j in own})
                sums = len({(i * n + j) * 8 // SECTOR for j in own})
                total += SECTOR * (1 + rows + 2 * sums)
    assert bytes_of(text, n=n) == total == 1_674_240


def test_threads_of_small_tiles_are_their_points() -> None:
    text = (
        "kernel q(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    for i in range(n), j in range(n), "
        "k in range(n):\n        C[i, j] += A[i, k] * B[j, k]\n    tile i, j by 16\n"
    )
    of = kernel_of(text)
    plain = apply(of)
    (launch,) = launches_of(launched(Cuda(), plain, with_declared(parallel_loops(of), plain.body)).steps, {"n": 32})
    assert (launch.grid, launch.block) == ((2, 2, 1), (16, 16, 1))
    # a warp is 2 rows of 16: 16 sectors of B, 2 of A, and 2 x 4 of C, loaded and stored, in each step of k
    assert bytes_of(text, n=32) == 32 * 32 * SECTOR * (16 + 2 + 2 * 8)


def test_only_three_of_the_declared_loops_are_dimensions_of_the_grid() -> None:
    """The fourth one is inside each thread, so that a block finds what it needs of B in its cache."""
    text = (
        "kernel q(n, m, l, k):\n    in B: f64[m, l, k]\n    inout A: f64[n, m, l, k]\n    parallel for a in range(n), "
        "b in range(m), c in range(l), d in range(k):\n        A[a, b, c, d] += B[b, c, d]\n"
    )
    sizes = {"n": 16, "m": 8, "l": 8, "k": 32}
    assert bytes_of(text, "L2", **sizes) == 8 * (2 * 16 + 1) * 8 * 8 * 32
    assert bytes_of(text.replace("parallel ", ""), "L2", **sizes) == 8 * (2 * 16 + 1) * 8 * 8 * 32


def test_a_row_whose_length_is_a_minimum_has_the_traffic_of_that_number() -> None:
    """A row of 33 elements is no whole number of sectors; threads' copies of `t` have a dimension of min(n, 64)."""
    text = """\
kernel rows(n, m):
    in A: f64[n, WIDE]
    out C: f64[n]
    temp t: f64[m]
    assume n >= 64
    for i in range(TOP):
        for j in range(m):
            t[j] = 2 * A[i, 0]
        for j in range(m):
            C[i] = t[j] + t[m - 1 - j]
"""
    sizes = {"n": 100, "m": 33}
    one, other = (
        predict(kernel_of(text.replace("WIDE", wide).replace("TOP", top)), sizes, load_machine("v100"))
        for wide, top in (("min(n, m)", "min(n, 64)"), ("33", "64"))
    )
    assert [level.bytes for level in one.levels] == [level.bytes for level in other.levels]
