"""The driver on cupy's interface without a GPU: a stand-in whose cuBLAS reads memory by addresses, as the real one."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.gpu_blas import gemm_of, gemv_of, types_of
from roofdsl.measure.gpu_driver import CupyDriver, _multiprocessor

REAL = {0: np.float32, 1: np.float64}


class Array(np.ndarray[Any, Any]):
    """Memory with an address, as cupy has it."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def of(values: Any) -> Array:
    return np.array(values).view(Array)


class Stream:
    """Notes what it is asked for; between begin and end of a capture nothing else may be asked."""

    def __init__(self, non_blocking: bool = False) -> None:
        self.non_blocking, self.said, self.refuses = non_blocking, [], False

    def __enter__(self) -> Stream:
        self.said.append("enter")
        return self

    def __exit__(self, *_: object) -> None:
        self.said.append("exit")

    def begin_capture(self) -> None:
        self.said.append("begin")

    def end_capture(self) -> Any:
        self.said.append("end")
        if self.refuses:
            raise CudaError("cudaErrorStreamCaptureInvalidated")
        return SimpleNamespace(launch=lambda stream: self.said.append(f"replay {stream is self}"))


class CudaError(Exception):
    """cupy's CUDARuntimeError."""


class Event:
    def record(self, stream: Stream) -> None:
        stream.said.append("event")

    def synchronize(self) -> None:
        pass


def _matrix(ptr: int, kind: Any, rows: int, columns: int, leading: int) -> Any:
    assert leading >= rows
    count = leading * (columns - 1) + rows
    flat = np.frombuffer((ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(ptr), kind)
    return as_strided(flat, (rows, columns), (flat.itemsize, leading * flat.itemsize))


class Cublas:
    CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_GEMM_DEFAULT, CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH = 0, 1, -1, 0, 3
    CUBLASError = ValueError

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def gemmEx(self, handle: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, *rest: int) -> None:  # noqa: PLR0917
        a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm = rest
        kind = REAL[a_type]
        assert b_type == a_type
        left = _matrix(a, kind, *((k, m) if ta else (m, k)), lda)
        right = _matrix(b, kind, *((n, k) if tb else (k, n)), ldb)
        to = _matrix(c, REAL[c_type], m, n, ldc)
        of_factors = np.float64 if compute == 70 else np.float32
        x, y = (_matrix(p, of_factors, 1, 1, 1)[0, 0] for p in (alpha, beta))
        to[...] = x * ((left.T if ta else left) @ (right.T if tb else right)) + y * to
        self.asked.append((compute, algorithm))

    def gemmStridedBatchedEx(self, handle: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, *r: int) -> None:  # noqa: PLR0917
        a, a_type, lda, sa, b, b_type, ldb, sb, beta, c, c_type, ldc, sc, batch, compute, algorithm = r
        size = np.dtype(REAL[a_type]).itemsize
        for p in range(batch):
            at = [x + p * s * size for x, s in ((a, sa), (b, sb), (c, sc))]
            self.gemmEx(
                handle, ta, tb, m, n, k, alpha, at[0], a_type, lda, at[1], b_type, ldb, beta, at[2], c_type, ldc,
                compute, algorithm,
            )  # fmt: skip

    def dgemv(self, handle: int, t: int, m: int, n: int, alpha: int, *rest: int) -> None:
        a, lda, x, step_x, beta, y, step_y = rest
        matrix = _matrix(a, np.float64, m, n, lda)
        matrix = matrix.T if t else matrix
        vector = _matrix(x, np.float64, 1, matrix.shape[1], step_x)[0]
        to = _matrix(y, np.float64, 1, matrix.shape[0], step_y)[0]
        one, two = (_matrix(p, np.float64, 1, 1, 1)[0, 0] for p in (alpha, beta))
        to[...] = one * (matrix @ vector) + two * to


@pytest.fixture
def driver() -> CupyDriver:
    memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    runtime = SimpleNamespace(deviceSynchronize=lambda: None, CUDARuntimeError=CudaError)
    cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(cublas_handle=7), Stream=Stream, Event=Event, runtime=runtime, memory=memory,
        cublas=Cublas(), get_elapsed_time=lambda a, b: 2.0,
    )  # fmt: skip
    return CupyDriver(SimpleNamespace(cuda=cuda, empty=np.empty, asarray=np.asarray))


def test_times_are_taken_in_a_stream_of_its_own(driver: CupyDriver) -> None:
    assert driver.stream.non_blocking
    assert driver.laps([lambda: driver.stream.said.append("call")] * 2) == [2e-3, 2e-3]
    assert driver.stream.said == ["enter", "event", "call", "event", "call", "event", "exit"]


def test_launches_are_captured_and_replayed(driver: CupyDriver) -> None:
    replay = driver.captured([lambda: driver.stream.said.append("call")] * 2)
    assert replay is not None
    replay()
    assert driver.stream.said == ["enter", "begin", "call", "call", "end", "exit", "replay True"]

    def fails() -> None:
        raise MemoryError

    driver.stream.said.clear()
    assert driver.captured([fails]) is None, "what cannot be captured is run without"
    assert driver.stream.said == ["enter", "begin", "end", "exit"], "the stream is not left in a capture"
    driver.stream.refuses = True
    assert driver.captured([lambda: None]) is None


@pytest.mark.parametrize(("shape", "order"), [((7, 5), "C"), ((7, 5), "F"), ((3,), "C"), ((4, 1000), "C")])
def test_arrays_are_filled_by_repetition(driver: CupyDriver, shape: tuple[int, ...], order: str) -> None:
    numbers = np.arange(13.0)
    want = np.resize(numbers, int(np.prod(shape))).reshape(shape, order=order)  # type: ignore[call-overload]
    assert (driver.filled(shape, order, numbers) == want).all()


@pytest.mark.parametrize("order", ["CCC", "CCF", "CFC", "FCC", "FFC", "CFF", "FCF", "FFF"])
@pytest.mark.parametrize("kind", ["f64", "f32"])
def test_products_by_addresses(driver: CupyDriver, order: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (
        np.asarray(rng.uniform(-1, 1, shape), "f8" if kind == "f64" else "f4", order=o).view(Array)  # type: ignore[call-overload]
        for o, shape in zip(order, ((5, 3), (3, 4), (5, 4)), strict=True)
    )
    want = 2 * (np.asarray(a) @ np.asarray(b)) + np.asarray(c)
    driver.gemm(gemm_of(a, b, c), types_of(kind, kind, "default"), 2, 1)
    assert np.asarray(c) == pytest.approx(want, rel=1e-5)
    assert driver.cupy.cuda.cublas.asked == [(70 if kind == "f64" else 68, -1)]


def test_batches_and_vectors_by_addresses(driver: CupyDriver) -> None:
    rng = np.random.default_rng(2)
    a, b, c = (of(rng.uniform(-1, 1, shape)) for shape in ((3, 4, 5), (3, 5, 2), (3, 4, 2)))
    driver.gemm(gemm_of(a, b, c), types_of("f64", "f64", "default"), 1, 0)
    assert np.asarray(c) == pytest.approx(np.asarray(a) @ np.asarray(b))
    x, y = of(rng.uniform(-1, 1, 5)), of(rng.uniform(-1, 1, 4))
    want = 3 * (np.asarray(a[1]) @ np.asarray(x)) + np.asarray(y)
    driver.gemv(gemv_of(a[1], x, y), types_of("f64", "f64", "default"), 3, 1)
    assert np.asarray(y) == pytest.approx(want)


def test_what_cublas_refuses_is_an_error_for_people(driver: CupyDriver) -> None:
    def refuses(*values: int) -> None:
        raise ValueError("CUBLAS_STATUS_NOT_SUPPORTED")

    driver.cupy.cuda.cublas.gemmEx = refuses
    a = of(np.ones((2, 2)))
    with pytest.raises(CommandError, match="cuBLAS does not multiply these matrices"):
        driver.gemm(gemm_of(a, a, of(np.ones((2, 2)))), types_of("f64", "f64", "default"), 1, 0)


def test_what_a_multiprocessor_holds() -> None:
    reported = {
        "WarpSize": 32, "MaxThreadsPerMultiProcessor": 2048, "MaxBlocksPerMultiprocessor": 32,
        "MaxThreadsPerBlock": 1024, "MaxRegistersPerMultiprocessor": 65536, "MaxSharedMemoryPerMultiprocessor": 233472,
    }  # fmt: skip
    held = _multiprocessor(reported, "90")
    assert held == {
        "warp": 32, "warps": 64, "blocks": 32, "block_threads": 1024, "registers": 65536, "shared": 228 << 10,
        "schedulers": 4, "load_units": 32, "thread_registers": 255,
    }  # fmt: skip
    assert (_multiprocessor(reported, "89") or {})["load_units"] == 16
    assert _multiprocessor({"WarpSize": 32}, "90") is None
