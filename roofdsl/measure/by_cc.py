"""Generated C, compiled by the system's compiler into a shared library and called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from roofdsl.codegen.c_flags import WITHOUT, flags_for
from roofdsl.codegen.generated import Argument
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.system_c_compiler import compiler_version, find_compiler, load_functions
from roofdsl.loops.model import Kernel
from roofdsl.measure.by_numba import by_value, generate_for, runner_of
from roofdsl.measure.runner import Runner
from roofdsl.measure.timing import usable_cores


def c_runner(kernel: Kernel, variant: str, math: Math = "relaxed", threads: int | None = None) -> Runner:
    """The variants `loops`, `grouped` and `parallel` (OpenMP), the last one on `threads` threads.

    Raises CommandError if the kernel does not have the variant, or if there is no compiler or it fails.
    """
    generated = generate_for(kernel, "c", variant)
    compiler = find_compiler(WITHOUT)
    flags = (*flags_for(math), *(("-fopenmp",) if variant == "parallel" else ()))
    made_by = f"{compiler_version(compiler)}, {' '.join(flags)}"
    needed = (generated.function, *(_OPENMP if variant == "parallel" else ()))
    function, *openmp = load_functions(compiler, flags, generated.source, needed, WITHOUT)
    function.restype = None
    function.argtypes = [_type_of(a) for a in generated.arguments]
    if variant != "parallel":
        return runner_of(generated, function, _value, made_by, 1)
    most, set_number = openmp

    def use_threads(count: int) -> int:
        before = int(most())
        set_number(count)
        return before

    return runner_of(generated, function, _value, made_by, threads or len(usable_cores()), use_threads)


_OPENMP = ("omp_get_max_threads", "omp_set_num_threads")
"""Functions of OpenMP's library, which the compiler links."""


class _Complex128(ctypes.Structure):
    """`double complex` by value: two doubles, passed like such a structure in the C ABIs of x86-64 and AArch64."""

    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))


class _Complex64(ctypes.Structure):
    """`float complex` by value."""

    _fields_ = (("real", ctypes.c_float), ("imag", ctypes.c_float))


_BY_VALUE: dict[str, Any] = {
    "f64": ctypes.c_double, "c128": _Complex128, "c64": _Complex64, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
    "i16": ctypes.c_int32, "i8": ctypes.c_int32,
}  # fmt: skip


def _type_of(argument: Argument) -> Any:
    if argument.role == "parameter":
        return ctypes.c_int64
    if argument.role != "scalar_in":
        return ctypes.c_void_p
    assert argument.type is not None
    return _BY_VALUE.get(argument.type.name, ctypes.c_float)


def _value(argument: Argument, arrays: Mapping[str, NDArray[Any]], params: Mapping[str, int]) -> Any:
    if argument.role == "parameter":
        return params[argument.name]
    array = arrays[argument.name]
    if argument.role != "scalar_in":
        return array.ctypes.data
    value = by_value(argument, array)
    kind = _type_of(argument)
    if kind in (_Complex128, _Complex64):
        return kind(value.real, value.imag)
    return kind(value.item())
