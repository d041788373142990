"""The GPU operations that measurements need: compile, copy, launch, and time between two events, through cupy.

gpu.py and characterize_gpu.py use only `Driver`, so that tests can run them without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any, Protocol

from numpy.typing import NDArray

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.energy_counter import EnergyCounter, Nvml
from roofdsl.measure.gpu_blas import Gemm, Gemv, Types

Call = Callable[[], object]
MATH_MODES = ("default", "tf32", "pedantic")


class Driver(Protocol):
    """The operations of a GPU. Arrays on the device are opaque to callers, except that they take views of them."""

    def describe(self) -> dict[str, Any]:
        """Plain values for a result file: name, compute capability, memory, L2 cache, multiprocessors, clocks."""
        ...

    def software(self) -> dict[str, str]:
        """Versions of driver, runtime, compiler and cupy."""
        ...

    def compile(self, source: str) -> Callable[[str], Any]:
        """Compile CUDA C++; returns a lookup of functions by name. Raises CommandError if the compiler refuses."""
        ...

    def put(self, array: NDArray[Any]) -> Any:
        """A copy on the device, in the same order of elements."""
        ...

    def get(self, array: Any) -> NDArray[Any]:
        """A copy on the host."""
        ...

    def copy(self, to: Any, source: Any) -> None:
        """Copies between two arrays on the device."""
        ...

    def filled(self, shape: tuple[int, ...], order: str, numbers: NDArray[Any]) -> Any:
        """An array made on the device from `numbers`, which are repeated in the order of its elements in memory."""
        ...

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: Sequence[Any]
    ) -> None:
        """Start a function; it may still run when this returns."""
        ...

    def captured(self, calls: Sequence[Call]) -> Call | None:
        """The launches of `calls` as one graph: a call that replays it. None if one of them cannot be captured."""
        ...

    def elapsed(self, calls: Sequence[Call]) -> float:
        """Seconds on the device from before the first call to after the last, measured by events around them."""
        ...

    def laps(self, calls: Sequence[Call]) -> list[float]:
        """Seconds on the device for each call of a sequence in one stream, by an event between every two of them."""
        ...

    def profiled(self) -> AbstractContextManager[Any]:
        """A context that marks a part of the run, for a profiler that was told to examine only marked parts."""
        ...

    def energy_counter(self) -> EnergyCounter:
        """The counter of the device's energy. Raises NoCounter."""
        ...

    def without_pool(self) -> None:
        """From now on, every array gets its own memory, which a checker of accesses needs."""
        ...

    def library(self, math_mode: str) -> AbstractContextManager[Any]:
        """A context in which the BLAS has that math mode."""
        ...

    def gemm(self, product: Gemm, types: Types, alpha: Any, beta: Any) -> None:
        """Start a matrix product, or a batch of them. Raises CommandError if the library refuses it."""
        ...

    def gemv(self, product: Gemv, types: Types, alpha: Any, beta: Any) -> None:
        """Start a product of a matrix and a vector, in f32, f64 or their complex types."""
        ...

    def dot(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any) -> None:
        """Start out = alpha * sum(x * y) + beta * out, in f32, f64 or their complex types; out has one element."""
        ...


_HELD = {
    "blocks": "MaxBlocksPerMultiprocessor", "block_threads": "MaxThreadsPerBlock",
    "registers": "MaxRegistersPerMultiprocessor", "shared": "MaxSharedMemoryPerMultiprocessor",
}  # fmt: skip


MOST_REGISTERS = 255
"""Of one thread on every device with compute capability 3.5 or more (CUDA C++ Programming Guide, technical
specifications per compute capability).
"""


FEW_LOAD_UNITS = ("75", "86", "87", "89")
"""Compute capabilities of Turing, of Ampere without fast f64, and of Ada, whose multiprocessors have four load/store
units per scheduler, half as many as the others (NVIDIA's whitepapers).
"""


def _multiprocessor(attributes: Any, capability: str) -> dict[str, int] | None:
    """The limits of a multiprocessor, by the options of a machine file; None if the device does not report one."""
    warp, threads = (int(attributes.get(name, 0)) for name in ("WarpSize", "MaxThreadsPerMultiProcessor"))
    held = {name: int(attributes.get(known, 0)) for name, known in _HELD.items()}
    if not warp or not threads or not all(held.values()):
        return None
    schedulers = 2 if capability == "60" else 4  # CUDA's programming guide: 4 on all others since 5.0
    held["thread_registers"] = MOST_REGISTERS
    units = 16 if capability in FEW_LOAD_UNITS else 32
    return {"warp": warp, "warps": threads // warp, **held, "schedulers": schedulers, "load_units": units}


def find_driver() -> Driver:
    """The first CUDA device through cupy. Raises CommandError if there is no cupy, no device or no driver."""
    try:
        cupy = import_module("cupy")
    except ImportError:
        help = "install it with `pip install cupy-cuda12x` or `cupy-cuda13x`, or use `--backend cpu`"
        raise CommandError("measuring on a GPU needs cupy, which is not installed", help) from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise CommandError(f"no GPU can be used: {error}", "use `--backend cpu`") from None
    if count == 0:
        raise CommandError("there is no GPU on this machine", "use `--backend cpu`")
    return CupyDriver(cupy)


class CupyDriver:
    """cupy's current device. Timed work runs in a separate stream, which waits for nothing else."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.device = cupy.cuda.Device()
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def describe(self) -> dict[str, Any]:
        properties = self.cupy.cuda.runtime.getDeviceProperties(self.device.id)
        attributes = self.device.attributes
        return {
            "kind": "gpu",
            "name": properties["name"].decode(),
            "compute_capability": self.device.compute_capability,
            "memory_bytes": int(properties["totalGlobalMem"]),
            "l2_bytes": int(properties["l2CacheSize"]),
            "multiprocessors": int(properties["multiProcessorCount"]),
            "clock_hz": 1000 * int(attributes.get("ClockRate", 0)) or None,
            "memory_clock_hz": 1000 * int(attributes.get("MemoryClockRate", 0)) or None,
            "memory_bus_bits": int(attributes.get("GlobalMemoryBusWidth", 0)) or None,
            "shared_bytes_per_block": int(attributes.get("MaxSharedMemoryPerBlockOptin", 0)) or None,
            "ecc": bool(properties.get("ECCEnabled", 0)),
            "multiprocessor": _multiprocessor(attributes, str(self.device.compute_capability)),
        }

    def software(self) -> dict[str, str]:
        import contextlib
        import io

        runtime = self.cupy.cuda.runtime
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            self.cupy.show_config()
        return {
            "cupy": str(self.cupy.__version__),
            "cuda_driver": str(runtime.driverGetVersion()),
            "cuda_runtime": str(runtime.runtimeGetVersion()),
            "nvrtc": ".".join(map(str, self.cupy.cuda.nvrtc.getVersion())),
            "cupy_config": shown.getvalue(),
        }

    def compile(self, source: str) -> Callable[[str], Any]:
        try:
            module = self.cupy.RawModule(code=source, options=("--std=c++17",), backend="nvrtc")
            module.compile()
        except self.cupy.cuda.compiler.CompileException as error:
            first = next((line for line in str(error).splitlines() if "error" in line), str(error)[:200])
            raise CommandError(f"NVRTC does not compile the generated CUDA: {first}") from None

        def function(name: str) -> Any:
            return module.get_function(name)

        return function

    def put(self, array: NDArray[Any]) -> Any:
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        try:
            return self.cupy.asarray(array, order=order)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise CommandError(f"the arrays do not fit into the GPU's memory: {error}", "use smaller sizes") from None

    def filled(self, shape: tuple[int, ...], order: str, numbers: NDArray[Any]) -> Any:
        count = prod(shape)
        try:
            flat = self.cupy.empty(count, numbers.dtype)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise CommandError(f"the arrays do not fit into the GPU's memory: {error}", "use smaller sizes") from None
        done = min(numbers.size, count)
        flat[:done] = self.cupy.asarray(numbers[:done])
        while done < count:  # whole repetitions are copied, so that their number doubles
            more = min(done, count - done)
            flat[done : done + more] = flat[:more]
            done += more
        return flat.reshape(shape, order=order)

    def get(self, array: Any) -> NDArray[Any]:
        copied: NDArray[Any] = self.cupy.asnumpy(array, order="A")
        return copied

    def copy(self, to: Any, source: Any) -> None:
        self.cupy.copyto(to, source)

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: Sequence[Any]
    ) -> None:
        if shared_bytes > 48 << 10:  # more than a function gets by default
            function.max_dynamic_shared_size_bytes = shared_bytes
        function(tuple(grid), tuple(block), tuple(values), shared_mem=shared_bytes)

    def elapsed(self, calls: Sequence[Call]) -> float:
        def together() -> None:
            for call in calls:
                call()

        return self.laps([together])[0]

    def laps(self, calls: Sequence[Call]) -> list[float]:
        events = [self.cupy.cuda.Event() for _ in range(len(calls) + 1)]
        self.cupy.cuda.runtime.deviceSynchronize()  # copies made before ran in another stream
        with self.stream:
            events[0].record(self.stream)
            for call, event in zip(calls, events[1:], strict=True):
                call()
                event.record(self.stream)
            events[-1].synchronize()
        return [float(self.cupy.cuda.get_elapsed_time(a, b)) / 1e3 for a, b in pairwise(events)]

    def captured(self, calls: Sequence[Call]) -> Call | None:
        self.cupy.cuda.runtime.deviceSynchronize()
        with self.stream as stream:
            stream.begin_capture()
            try:
                for call in calls:
                    call()
            except Exception:  # whatever the error is: outside a graph, the call runs, or gives the reason
                with suppress(Exception):
                    stream.end_capture()
                return None
            try:
                graph = stream.end_capture()
            except self.cupy.cuda.runtime.CUDARuntimeError:
                return None

        def replay() -> None:
            graph.launch(stream=stream)

        return replay

    @contextmanager
    def profiled(self) -> Iterator[None]:
        self.cupy.cuda.profiler.start()
        try:
            yield
        finally:
            self.cupy.cuda.runtime.deviceSynchronize()
            self.cupy.cuda.profiler.stop()

    def energy_counter(self) -> EnergyCounter:
        return Nvml(str(self.cupy.cuda.runtime.deviceGetPCIBusId(self.device.id)))

    def without_pool(self) -> None:
        self.cupy.cuda.set_allocator(None)

    @contextmanager
    def library(self, math_mode: str) -> Iterator[None]:
        cublas = self.cupy.cuda.cublas
        handle = self.device.cublas_handle
        before = cublas.getMathMode(handle)
        modes = {
            "default": cublas.CUBLAS_DEFAULT_MATH,
            "tf32": cublas.CUBLAS_TF32_TENSOR_OP_MATH,
            "pedantic": getattr(cublas, "CUBLAS_PEDANTIC_MATH", 2),  # 2 in cublas_api.h
        }
        cublas.setMathMode(handle, modes[math_mode])
        try:
            yield
        finally:
            cublas.setMathMode(handle, before)

    def gemm(self, product: Gemm, types: Types, alpha: Any, beta: Any) -> None:
        import numpy as np

        cublas = self.cupy.cuda.cublas
        one, two, to = product.first, product.second, product.target
        operations = [cublas.CUBLAS_OP_T if turned else cublas.CUBLAS_OP_N for turned in product.transposed]
        factors = np.array([alpha, beta], types.factor)  # on the host: read when the call is made
        at = factors.ctypes.data
        shape = (product.m, product.n, product.k)
        handle = self.device.cublas_handle
        first, second, target = (
            [m.array.data.ptr, number, m.leading]
            for m, number in ((one, types.operand), (two, types.operand), (to, types.target))
        )
        algorithm = (types.compute, cublas.CUBLAS_GEMM_DEFAULT)
        try:
            if product.batch == 1:
                cublas.gemmEx(
                    handle, *operations, *shape, at, *first, *second, at + factors.itemsize, *target, *algorithm
                )
                return
            cublas.gemmStridedBatchedEx(
                handle, *operations, *shape, at, *first, one.between, *second, two.between, at + factors.itemsize,
                *target, to.between, product.batch, *algorithm,
            )  # fmt: skip
        except cublas.CUBLASError as error:
            raise CommandError(f"cuBLAS does not multiply these matrices: {error}", "use the variant `naive`") from None

    def gemv(self, product: Gemv, types: Types, alpha: Any, beta: Any) -> None:
        import numpy as np

        cublas = self.cupy.cuda.cublas
        letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[types.factor]
        operation = cublas.CUBLAS_OP_T if product.transposed else cublas.CUBLAS_OP_N
        factors = np.array([alpha, beta], types.factor)
        at, matrix = factors.ctypes.data, product.matrix
        getattr(cublas, f"{letter}gemv")(
            self.device.cublas_handle, operation, product.m, product.n, at, matrix.array.data.ptr, matrix.leading,
            product.x.data.ptr, product.step_x, at + factors.itemsize, product.y.data.ptr, product.step_y,
        )  # fmt: skip

    def dot(self, x: Any, y: Any, out: Any, alpha: Any, beta: Any) -> None:
        found = self.cupy.cublas.dotu(x, y)
        if alpha != 1:
            found = found * alpha
        if beta:
            out += found
        else:
            out[...] = found
