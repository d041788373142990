"""Volumes of two stencils on an A100 that Ernst's warpspeed publishes, beside ours and beside enumerated sectors.

The README of te42kyfo/warpspeed (Ernst and others, JPDC 173, 2023) prints what its sample programs compute. Those
programs, as they stand in its history, load other elements than their titles say: the 5-point stencil is without its
center, and the "25-point star" loops over `range(4)`, which is a star of range 3 that loads its center seven times.
Their count of a block's loads leaves out the access listed last. Enumerating exactly that gives every printed figure,
and enumerating all accesses gives ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pytest

from roofdsl.counts.traffic_at import convention_totals
from roofdsl.counts.working_set_traffic import lines_by_working_sets
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized
from roofdsl.loops.thread_blocks import block_by_block, in_waves, launch_of

Offset = tuple[int, int, int]

FIVE: list[Offset] = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]
STAR: list[Offset] = [(0, 0, 0)]
for k in range(4):
    STAR += [(k, 0, 0), (-k, 0, 0), (0, k, 0), (0, -k, 0), (0, 0, k), (0, 0, -k)]


class Sample:
    """A sample program: accesses, threads of a block (x, y, z), the array's dimensions, its first element's place."""

    def __init__(self, accesses: Sequence[Offset], block: Offset, dims: tuple[int, int]) -> None:
        self.accesses, self.block, self.dims = accesses, block, dims

    def addresses(self, accesses: Iterable[Offset], x: Iterable[int]) -> set[int]:
        """Bytes at which the elements begin that the block's threads with these x touch; the array begins at 8."""
        _, ny, nz = self.block
        pitch = self.dims[0], self.dims[0] * self.dims[1]
        return {
            8 * (1 + i + dx + (j + dy) * pitch[0] + (z + dz) * pitch[1])
            for i, j, z in product(x, range(ny), range(nz))
            for dx, dy, dz in accesses
        }

    def per_point(self, unit: int, accesses: Iterable[Offset]) -> float:
        """Bytes of the distinct units that a block touches, for each of its threads."""
        touched = {a // unit for a in self.addresses(accesses, range(self.block[0]))}
        return len(touched) * unit / (self.block[0] * self.block[1] * self.block[2])

    def by_warps(self) -> float:
        """Bytes of the sectors of all accesses of a warp, for each of its threads."""
        row = Sample(self.accesses, (32, 1, 1), self.dims)
        return sum(row.per_point(32, [access]) for access in self.accesses)


FIVE_SAMPLE = Sample(FIVE, (256, 2, 1), (15_000, 15_000))
STAR_SAMPLE = Sample(STAR, (256, 1, 2), (640, 512))


@pytest.mark.parametrize(
    ("sample", "l1", "l2", "allocated_kib"), [(FIVE_SAMPLE, 35.0, 12.2, 6.4), (STAR_SAMPLE, 223, 77, 40.6)]
)
def test_the_printed_figures_are_those_of_the_sample_programs(
    sample: Sample, l1: float, l2: float, allocated_kib: float
) -> None:
    """Printed: `L1Load`, `L2LoadV1` (B/Lup) and `blockL1LoadAlloc` (kB, in lines of 128 B)."""
    assert sample.by_warps() == pytest.approx(l1, abs=0.05)
    counted = sample.accesses[:-1]
    assert sample.per_point(32, counted) == pytest.approx(l2, abs=0.5 if l2 == 77 else 0.05)
    assert sample.per_point(128, counted) * 512 / 1024 == pytest.approx(allocated_kib, abs=0.05)


def test_what_all_accesses_load() -> None:
    """A row of 257 elements that begins in the middle of a sector takes 65 sectors: 4 and 20 rows for 512 threads."""
    assert FIVE_SAMPLE.per_point(32, FIVE) == 4 * 65 * 32 / 512
    assert STAR_SAMPLE.per_point(32, STAR) == pytest.approx(20 * 65 * 32 / 512, rel=0.002)


def stencil(offsets: Sequence[tuple[int, int, int]], reach: int) -> Kernel:
    """A kernel over z, y and x in blocks of 2 x 1 x 256 that adds up elements at these offsets (x, y, z)."""

    def place(name: str, by: int) -> str:
        return name if not by else f"{name} {'+' if by > 0 else '-'} {abs(by)}"

    terms = " + ".join(f"a[{place('z', dz)}, {place('y', dy)}, {place('x', dx)}]" for dx, dy, dz in offsets)
    ranges = ", ".join(f"{v} in range({reach}, n{v} - {reach})" for v in "zyx")
    text = (
        f"kernel k(nz, ny, nx):\n    assume nx >= 10, ny >= 10, nz >= 10\n    in a: f64[nz, ny, nx]\n"
        f"    out b: f64[nz, ny, nx]\n    tile z, y, x by 2, 1, 256\n"
        f"    parallel for {ranges}:\n        b[z, y, x] = {terms}\n"
    )
    return kernel(load_file(Source("k.roof", text)), "k")


def star(reach: int) -> list[Offset]:
    along = [k for k in range(-reach, reach + 1) if k]
    return [(0, 0, 0), *((k, 0, 0) for k in along), *((0, k, 0) for k in along), *((0, 0, k) for k in along)]


@pytest.mark.parametrize(("reach", "published"), [(3, 81), (4, None)])
def test_our_loads_of_a_block_are_the_enumerated_ones(reach: int, published: int | None) -> None:
    """Of the star that was published (81 B with evictions, 77 without the last access), and of one of range 4."""
    sizes = {"nz": 512 + 2 * reach, "ny": 512 + 2 * reach, "nx": 640 + 2 * reach}
    at = launch_of(stencil(star(reach), reach), sizes, 512)
    assert at is not None
    blocks = Sized(block_by_block(at), sizes)
    lines = lines_by_working_sets(blocks, 192 * 1024 // 4, 128, 32, cold=len(at.blocks))
    loads = convention_totals(blocks, lines, "load_store")[0]
    assert loads is not None
    # blocks begin `reach` elements into a row of nx; those at the end of a row have 128 threads along x
    elements = [
        {8 * (x + dx + (y + dy) * sizes["nx"] + (z + dz) * sizes["nx"] * sizes["ny"]) // 32
         for x in range(first, min(first + 256, 640)) for y in range(1) for z in range(2) for dx, dy, dz in star(reach)}
        for first in (0, 256, 512)
    ]  # fmt: skip
    each = sum(len(block) * 32 for block in elements) / (640 * 2)
    assert loads / (512 * 512 * 640) == pytest.approx(each, rel=0.02)
    if published is not None:
        assert loads / (512 * 512 * 640) == pytest.approx(published, rel=0.05)


def test_our_loads_of_a_wave_are_the_printed_ones() -> None:
    """`memLoadV1`, 32.4 B/Lup: each wave of 4 blocks on 108 multiprocessors finds nothing of the layer below."""
    sizes = {"nz": 518, "ny": 518, "nx": 646}
    at = launch_of(stencil(star(3), 3), sizes, 512)
    assert at is not None
    wave = Sized(in_waves(at, 4 * 108), sizes)
    lines = lines_by_working_sets(wave, 20 << 20, 128, 32)
    loads, stores, _ = convention_totals(wave, lines, "load_store")
    assert loads is not None and stores is not None
    assert loads / (512 * 512 * 640) == pytest.approx(32.4, rel=0.02)
    assert stores / (512 * 512 * 640) == pytest.approx(8.0, rel=0.02)
