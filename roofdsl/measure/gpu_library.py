"""The variant `library` on a GPU: cuBLAS through cupy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.measure.gpu_blas import GPU_TYPES, gemm_of, gemv_of, types_of
from roofdsl.measure.gpu_code import GpuCode
from roofdsl.measure.gpu_driver import Call, Driver
from roofdsl.measure.library_kernels import Contraction, described, matrix_views, recognize, scale_of

_VECTORS = ("f32", "f64", "c64", "c128")
"""Types for which cuBLAS has products with vectors."""


def library_code(kernel: Kernel, math_mode: str, driver: Driver) -> GpuCode:
    """One call of cuBLAS, which adds to the target itself, for the kernels that library_kernels.recognize knows. (For a
    dot product, cupy adds.)

    Raises CommandError for others, for scaled additions, and for dot products in f16 or bf16: cupy has no call for
    these.
    """
    found = recognize(kernel, GPU_TYPES)
    operand, target = found.operands[0].array.type.name, found.target.array.type.name
    if found.kind == "axpy":
        message = f"kernel {kernel.name} is a scaled addition, for which cupy uses no library"
        raise CommandError(message, "use the variant `naive`")
    if found.kind == "dot" and operand not in _VECTORS:
        message = f"kernel {kernel.name} is a dot product in {operand}, for which cupy has no call of cuBLAS"
        raise CommandError(message, "use the variant `naive`")
    call, bound = _ROUTINES.get(found.kind if operand in _VECTORS else "", ("gemm", _gemm))
    types = types_of(operand, target, math_mode)

    def bind(arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Call:
        scale = _scale(found, arrays, driver)
        views = matrix_views(found, arrays, sizes)
        start = bound(driver, types, views, 1 if scale is None else scale, int(found.accumulate))

        def run() -> None:
            with driver.library(math_mode):
                start()

        return run

    known = {"operation": found.kind, "call": call, "as": described(found, work=False), "math_mode": math_mode}
    text = f"{found.kind}: {described(found, work=False)}"
    return GpuCode(text, f"cupy {driver.software().get('cupy', '')}".strip(), bind, lambda sizes: dict(known))


def _scale(found: Contraction, arrays: Mapping[str, Any], driver: Driver) -> Any:
    """The product of the scalar factors, as a number of the host."""
    from roofdsl.codegen.storage import decode

    host = {s.name: decode(driver.get(arrays[s.name]).reshape(-1), s.type.name) for s in found.scalars}
    return scale_of(found, host)


def _gemm(driver: Driver, types: Any, views: tuple[Any, Any, Any], alpha: Any, beta: int) -> Call:
    product = gemm_of(*views)
    return lambda: driver.gemm(product, types, alpha, beta)


def _gemv(driver: Driver, types: Any, views: tuple[Any, Any, Any], alpha: Any, beta: int) -> Call:
    a, b, target = views
    of_column = b.shape[-1] == 1  # otherwise a row times a matrix: the transposed matrix times a column
    product = gemv_of(a, b[:, 0], target[:, 0]) if of_column else gemv_of(b.T, a[0], target[0])
    return lambda: driver.gemv(product, types, alpha, beta)


def _dot(driver: Driver, types: Any, views: tuple[Any, Any, Any], alpha: Any, beta: int) -> Call:
    a, b, target = views
    return lambda: driver.dot(a[0], b[:, 0], target.reshape(-1), alpha, beta)


_ROUTINES: dict[str, tuple[str, Callable[..., Call]]] = {"dot": ("dot", _dot), "gemv": ("gemv", _gemv)}
