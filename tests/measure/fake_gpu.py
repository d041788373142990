"""A GPU made up of Python: launches do what they should, and take the time that a known machine would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from roofdsl.codegen.storage import decode, encode
from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.bandwidth_curve import PATTERNS
from roofdsl.measure.gpu_blas import Gemm, Gemv, Matrix, Types
from roofdsl.measure.gpu_microkernels import ARITHMETIC, ILP, THREADS
from roofdsl.measure.gpu_probes import ROUND_BYTES, SHARED_BYTES

L2_BYTES, UNITS = 8 << 20, 100
RATES = {"stream": (3e12, 1e12), "launch": 2e-6, "replayed": 5e-7, "tensor": 5e14}
"""Bytes per second from L2 and from memory, whatever a stream does; seconds of a launch by itself and in a graph;
FLOP/s of a product.
"""


def peak_of(type_name: str, cls: str) -> float:
    """Operations per second of this machine: every type and class has its own."""
    return 1e12 * (1 + [f"{a.type} {a.cls}" for a in ARITHMETIC].index(f"{type_name} {cls}"))


def probe_seconds(name: str, grid: Sequence[int], block: Sequence[int], values: Sequence[Any]) -> float:
    """What the probes take on this machine: 30 and 20 TB/s of shared memory and L1, latencies by the size of the chain,
    and a memory that sustains 1 TB/s after a latency of 700 ns.
    """
    if name in ("l1", "shared"):
        return grid[0] * SHARED_BYTES * int(values[1]) / {"l1": 2e13, "shared": 3e13}[name]
    if name.startswith("chain"):
        size = values[0].nbytes
        return 1e-5 + int(values[1]) * (30e-9 if size <= 1 << 18 else 250e-9 if size <= L2_BYTES else 600e-9)
    moved = ROUND_BYTES[name] * int(values[2])
    flow, power = grid[0] * block[0] * ROUND_BYTES[name] / 700e-9, 2.0
    return moved / (flow**-power + 1e12**-power) ** (-1 / power)


class FakeGpu:
    """Implements gpu_driver.Driver. `effect(function, values)` is what a launch of other functions does."""

    def __init__(self, effect: Callable[[str, Sequence[Any]], None] | None = None) -> None:
        self.effect = effect
        self.clock = 0.0
        self.launched: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
        self.sources: list[str] = []
        self.modes: list[str] = []
        self.replaying = False

    def describe(self) -> dict[str, Any]:
        memory = {"memory_bytes": 512 << 20, "memory_bus_bits": 5120}
        unit = {"warp": 32, "warps": 64, "blocks": 32, "block_threads": 1024, "registers": 65536, "shared": 228 << 10}
        about = {"kind": "gpu", "name": "Made-up 100", "l2_bytes": L2_BYTES, "multiprocessors": UNITS, **memory}
        return about | {"multiprocessor": unit | {"schedulers": 4}}

    def software(self) -> dict[str, str]:
        return {"cupy": "0", "nvrtc": "13.0", "cupy_config": "several\nlines"}

    def compile(self, source: str) -> Callable[[str], Any]:
        self.sources.append(source)

        def function(name: str) -> str:
            assert re.search(rf"\b{name}\(", source)
            return name

        return function

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy(order="K")

    def filled(self, shape: tuple[int, ...], order: Any, numbers: NDArray[Any]) -> NDArray[Any]:
        count = int(np.prod(shape))
        if count > 1 << 22:  # nobody looks at the numbers
            return np.empty(shape, numbers.dtype, order=order)
        return np.resize(numbers, count).reshape(shape, order=order)

    def captured(self, calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
        kept = list(calls)

        def replay() -> None:
            self.replaying = True
            try:
                for call in kept:
                    call()
            finally:
                self.replaying = False

        return replay

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy(order="K")

    def copy(self, to: NDArray[Any], source: NDArray[Any]) -> None:
        np.copyto(to, source)

    def launch(
        self, function: str, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: Sequence[Any]
    ) -> None:
        self.launched.append((function, tuple(grid), tuple(block), shared_bytes))
        self.clock += RATES["replayed" if self.replaying else "launch"]
        kind, _, rest = function.partition("_")
        if kind == "peak":
            type_name, _, cls = rest.partition("_")
            step = next(a.operations for a in ARITHMETIC if a.function == function)
            self.clock += int(values[-1]) * ILP * step * grid[0] * THREADS / peak_of(type_name, cls)
        elif kind == "stream":
            pattern = next(p for p in PATTERNS if p.name == rest)
            moved = 16 * int(values[3]) * pattern.elements() * int(values[5])
            held = 16 * int(values[3]) * pattern.arrays
            self.clock += moved / RATES["stream"][held > L2_BYTES]
        elif kind == "probe":
            self.clock += probe_seconds(rest, grid, block, values) - RATES["launch"]
        elif self.effect is not None:
            self.effect(function, values)

    def elapsed(self, calls: Sequence[Callable[[], object]]) -> float:
        before = self.clock
        for call in calls:
            call()
        return self.clock - before

    def laps(self, calls: Sequence[Callable[[], object]]) -> list[float]:
        return [self.elapsed([call]) for call in calls]

    @contextmanager
    def profiled(self) -> Iterator[None]:
        yield

    def without_pool(self) -> None:
        pass

    @contextmanager
    def library(self, math_mode: str) -> Iterator[None]:
        self.modes.append(math_mode)
        yield

    def gemm(self, product: Gemm, types: Types, alpha: Any, beta: Any) -> None:
        """By the columns that cuBLAS knows: memory, leading dimensions and flags, nothing of the views' own order."""
        self.clock += 2.0 * product.batch * product.m * product.n * product.k / RATES["tensor"]
        if types.operand == 1 and product.m > 2000:
            raise CommandError("no f64 here")
        if product.m > 2000:
            return  # nobody looks at the result, and it would take long
        wide = {2: "f16", 14: "bf16"}
        for p in range(product.batch):
            one, two = (
                _columns(m, p, (product.k, rows) if turned else (rows, product.k))
                for m, rows, turned in (
                    (product.first, product.m, product.transposed[0]),
                    (product.second, product.n, not product.transposed[1]),
                )
            )
            if types.operand in wide:
                one, two = (decode(np.ascontiguousarray(x), wide[types.operand]) for x in (one, two))
            left, right = one.T if product.transposed[0] else one, two.T if product.transposed[1] else two
            to = _columns(product.target, p, (product.m, product.n))
            held = decode(np.ascontiguousarray(to), wide[types.target]) if types.target in wide else to
            found = alpha * (left @ right) + (beta * held if beta else 0)
            to[...] = encode(found, wide[types.target]) if types.target in wide else found

    def gemv(self, product: Gemv, types: Types, alpha: Any, beta: Any) -> None:
        matrix = _columns(product.matrix, 0, (product.m, product.n))
        matrix = matrix.T if product.transposed else matrix
        self.clock += 8.0 * matrix.size / RATES["stream"][1]
        product.y[...] = alpha * (matrix @ product.x) + (beta * product.y if beta else 0)

    def dot(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any) -> None:
        self.clock += 16.0 * x.size / RATES["stream"][1]
        out[...] = alpha * np.dot(x, y) + (beta * out if beta else 0)


def _columns(matrix: Matrix, number: int, shape: tuple[int, int]) -> NDArray[Any]:
    """The matrix of a batch as cuBLAS sees it: columns of `shape[0]` elements, `leading` apart."""
    assert matrix.leading >= shape[0], "cuBLAS refuses such a leading dimension"
    first = matrix.array
    step = first.itemsize
    start = first[number] if first.ndim == 3 else first
    if first.ndim == 3:
        assert (
            start.__array_interface__["data"][0] - first.__array_interface__["data"][0]
            == number * matrix.between * step
        )
    return as_strided(start, shape, (step, matrix.leading * step))
