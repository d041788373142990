"""What is measured on a GPU: kernels, variants and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.sizes import accesses_at, is_legal, sizes_for
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel

MOST_ACCESSES = 300_000_000
"""Of a launch of a kernel that is not named in SIZES: its exact traffic is then had in seconds."""

TARGETS = (64 << 20, 1 << 30)
"""Bytes of data of kernels not named in SIZES."""

SIZES: Mapping[str, tuple[dict[str, int], ...]] = {
    "copy": ({"n": 1 << 27},),
    "vector_add": ({"n": 1 << 20}, {"n": 1 << 27}),
    "triad": ({"n": 1 << 16}, {"n": 1 << 22}, {"n": 1 << 27}),
    "dot": ({"n": 1 << 27},),
    "gemv": ({"n": 4096}, {"n": 16384}, {"n": 32768}),
    "jacobi2d": ({"n": 16384},),
    "matmul": ({"n": 1024}, {"n": 2048}, {"n": 4096}),
    "minplus": ({"n": 1024}, {"n": 2048}),
    "matmul_tiled": ({"n": 2048, "b": 8}, {"n": 2048, "b": 16}, {"n": 2048, "b": 32}),
}
"""The deck's questions, the streams, and the tile sizes of the blocked product."""

VARIANTS = ("naive", "tiled", "library")


@dataclass(frozen=True)
class Job:
    """One kernel and all sizes it is measured at; `refused` says which sizes are not, and why."""

    kernel: Kernel
    sizes: tuple[dict[str, int], ...]
    refused: tuple[str, ...]


def job(kernel: Kernel) -> Job:
    """The sizes of a kernel: those of SIZES, or two by the bytes of its data. Raises what the analyses raise."""
    if kernel.name in SIZES:
        return Job(kernel, SIZES[kernel.name], ())
    found: list[dict[str, int]] = []
    refused = []
    for target in TARGETS:
        try:
            sizes = sizes_for(kernel, target)
        except CommandError as error:
            refused.append(f"{target >> 20} MiB: {error.message}")
            continue
        if sizes is None or sizes in found:
            continue
        if not is_legal(kernel, sizes):
            refused.append(f"{_text(sizes)}: its assumptions do not allow such sizes")
        elif (count := accesses_at(kernel, sizes)) > MOST_ACCESSES:
            refused.append(f"{_text(sizes)}: {count:,} accesses")
        else:
            found.append(sizes)
    return Job(kernel, tuple(found), tuple(refused))


def _text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in sizes.items())
