"""A made-up GPU that executes the generated CUDA: on the host, thread by thread, where anybody looks at the results.

Arrays that are compared (`put`) are computed on; launches on those that are only timed (`filled`, of which not a page
is touched) take the time that their bytes would take.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.codegen.running import CudaLibrary, _Checked, _Pair64, _Pair128
from tests.measure.fake_gpu import RATES, FakeGpu

_NUMBERS = {"float64": ctypes.c_double, "float32": ctypes.c_float, "int64": ctypes.c_longlong, "int32": ctypes.c_int}
_BUILT: dict[str, CudaLibrary] = {}


class Timed(np.ndarray[Any, Any]):
    """An array whose numbers nobody looks at."""


class HostGpu(FakeGpu):
    """Compiles with g++ and `host_cuda.h`. `executed`: the names of functions that were, each as often."""

    def __init__(self) -> None:
        super().__init__()
        self.executed: list[str] = []
        self.pool = True

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"memory_bytes": 140 << 30}

    def compile(self, source: str) -> Callable[[str], Any]:
        named = super().compile(source)
        if any(word in source for word in ("peak_", "stream_", "probe_", "_mark()")):
            return named
        if source not in _BUILT:
            with tempfile.TemporaryDirectory(prefix="host_gpu") as folder:  # what is loaded stays mapped
                _BUILT[source] = CudaLibrary([SimpleNamespace(source=source)], Path(folder))  # type: ignore[list-item]
        library = _BUILT[source]

        def function(name: str) -> Any:
            named(name)
            return SimpleNamespace(name=name, start=getattr(library.library, f"launch_{name}"))

        return function

    def filled(self, shape: tuple[int, ...], order: Any, numbers: NDArray[Any]) -> NDArray[Any]:
        return np.empty(shape, numbers.dtype, order=order).view(Timed)

    def copy(self, to: NDArray[Any], source: NDArray[Any]) -> None:
        if not isinstance(to, Timed):
            super().copy(to, source)

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: Sequence[Any]
    ) -> None:
        if isinstance(function, str):
            super().launch(function, grid, block, shared_bytes, values)
            return
        self.launched.append((function.name, tuple(grid), tuple(block), shared_bytes))
        arrays = [v for v in values if isinstance(v, np.ndarray) and v.ndim]
        self.clock += RATES["replayed" if self.replaying else "launch"] + sum(a.nbytes for a in arrays) / 1e12
        if any(isinstance(a, Timed) for a in arrays):
            return
        self.executed.append(function.name)
        fault = function.start(*map(ctypes.c_uint, (*grid, *block)), *map(_passed, values))
        assert fault == 0, f"{function.name} reads or writes outside of an array, or its threads part at a barrier"

    def gemm(self, product: Any, types: Any, alpha: Any, beta: Any) -> None:
        if isinstance(product.target.array, Timed):
            self.clock += 2.0 * product.batch * product.m * product.n * product.k / RATES["tensor"]
        else:
            super().gemm(product, types, alpha, beta)

    def gemv(self, product: Any, types: Any, alpha: Any, beta: Any) -> None:
        if isinstance(product.y, Timed):
            self.clock += 1e-6
        else:
            super().gemv(product, types, alpha, beta)

    def dot(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any) -> None:
        if isinstance(out, Timed):
            self.clock += 1e-6
        else:
            super().dot(x, y, out, alpha, beta)

    @contextmanager
    def profiled(self) -> Iterator[None]:
        before = len(self.launched)
        yield
        self.profile = self.launched[before:]

    def without_pool(self) -> None:
        self.pool = False


def _passed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return _Checked(value.ctypes.data, value.size)
    kind = np.asarray(value).dtype.name
    if kind.startswith("complex"):
        return (_Pair64 if kind == "complex64" else _Pair128)(value.real, value.imag)
    return _NUMBERS[kind](value.item() if hasattr(value, "item") else value)
