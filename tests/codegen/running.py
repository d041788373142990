"""Runs generated code on the host: C by gcc, CUDA by g++ and `host/host_cuda.h`, Python as it is or by numba."""

from __future__ import annotations

import builtins
import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from roofdsl.codegen.compare_results import Comparison, compare
from roofdsl.codegen.computed_types import computed
from roofdsl.codegen.generated import Argument, Generated
from roofdsl.codegen.inputs import all_parameters, poisoned, random_inputs, work_space
from roofdsl.codegen.reference import Outcome, reference
from roofdsl.codegen.storage import decode
from roofdsl.loops.model import Kernel

HOST = Path(__file__).parent / "host"
MARGIN = 64
"""Elements before and after every array that a kernel must not touch."""

Arrays = dict[str, np.ndarray[Any, Any]]


class Case:
    """A kernel at given sizes: its inputs and what has to come out."""

    def __init__(self, kernel: Kernel, params: Mapping[str, int], seed: int = 1) -> None:
        self.kernel = kernel
        self.params = all_parameters(kernel, params)
        self.inputs = random_inputs(kernel, self.params, seed)
        self.want: Outcome = reference(kernel, self.params, self.inputs)

    def check(self, call: Any, generated: Generated, *, told: bool = True) -> Comparison:
        """Runs the code on fresh arrays and compares. `call(generated, arrays, params)` runs it in place.

        told: whether the comparison has to tell something of each array, which random arithmetic may not allow.
        """
        given = poisoned(self.kernel, self.inputs)
        guarded = {name: _guarded(array) for name, array in given.items()}
        call(generated, {name: inner for name, (_, inner) in guarded.items()}, self.params)
        for name, (whole, inner) in guarded.items():
            edge = np.ones(whole.shape, bool)
            edge[MARGIN : MARGIN + inner.size] = False
            assert (whole[edge].view(np.uint8) == 0xA5).all(), f"{generated.function} wrote outside {name}"
        result = compare({name: inner for name, (_, inner) in guarded.items()}, self.want, self.kernel, given)
        subject = f"{generated.kernel} {generated.target} {generated.variant}"
        assert not result.wrong, f"{subject}: {result.wrong}"
        assert not (told and result.unverifiable), f"{subject}: {result.unverifiable}"
        return result


def _guarded(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    whole = np.empty(array.size + 2 * MARGIN, array.dtype)
    whole.view(np.uint8).fill(0xA5)
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    inner = whole[MARGIN : MARGIN + array.size].reshape(array.shape, order=order)
    inner[...] = array
    return whole, inner


# ---- calls ----


class _Pair64(ctypes.Structure):
    _fields_ = (("re", ctypes.c_float), ("im", ctypes.c_float))


class _Pair128(ctypes.Structure):
    _fields_ = (("re", ctypes.c_double), ("im", ctypes.c_double))


def _value(argument: Argument, arrays: Mapping[str, Any], params: Mapping[str, int]) -> Any:
    """An argument for ctypes."""
    if argument.role == "parameter":
        return ctypes.c_longlong(params[argument.name])
    array = arrays[argument.name]
    if argument.role != "scalar_in":
        return ctypes.c_void_p(array.ctypes.data)
    assert argument.type is not None
    kind = computed(argument.type)
    number = decode(array, argument.type.name)[0]
    if kind in ("c64", "c128"):
        return (_Pair64 if kind == "c64" else _Pair128)(number.real, number.imag)
    of = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_longlong, "i32": ctypes.c_int}[kind]
    return of(number.item())


class CLibrary:
    """Generated C, compiled together; functions have different names."""

    def __init__(
        self, generated: Sequence[Generated], folder: Path, flags: Sequence[str], compiler: str = "gcc"
    ) -> None:
        files = []
        for k, g in enumerate(generated):
            files.append(folder / f"kernel_{k}.c")
            files[-1].write_text(g.source, encoding="utf-8")
        library = folder / "kernels.so"
        command = [
            compiler,
            *flags,
            "-Wall",
            "-Wno-unused",
            "-Wno-unknown-pragmas",
            "-Wno-tautological-compare",
            "-Wno-maybe-uninitialized",  # that an iteration sets its own scalar first takes a proof
            "-Werror",
            "-shared",
            "-fPIC",
        ]
        _compile([*command, *map(str, files), "-o", str(library), "-lm"])
        self.library = ctypes.CDLL(str(library))

    def __call__(self, generated: Generated, arrays: Arrays, params: Mapping[str, int]) -> None:
        function = getattr(self.library, generated.function)
        function.restype = None
        function(*(_value(a, arrays, params) for a in generated.arguments))

    def use_threads(self, number: int) -> None:
        """How many threads run the loops of code compiled with -fopenmp."""
        self.library.omp_set_num_threads(number)


_HEADER = re.compile(r'extern "C" __global__ void(?: __launch_bounds__\(\d+\)\n)?\s*(\w+)\(([^)]*)\)')


_POINTER = re.compile(r"((?:const )?(?:signed char|long long|\w+)) \*__restrict__ (\w+)")


_SHARED = re.compile(r"__shared__ ([\w ]+?) (\w+)((?:\[\d+\])+);")
_DYNAMIC = re.compile(r"([\w ]+?) \(&(\w+)\)((?:\[\d+\])+) = \*\([^;]*?\)(\(shared \+ \d+\));")


def _with_extents(source: str) -> str:
    """The text with arrays in shared memory that note a subscript outside of them."""

    def type_of(found: re.Match[str]) -> str:
        extents = ", ".join(re.findall(r"\d+", found[3]))
        return f"shared_array<{found[1].strip()}, {extents}>"

    source = _SHARED.sub(lambda found: f"static {type_of(found)} {found[2]};", source)
    return _DYNAMIC.sub(lambda found: f"{type_of(found)} &{found[2]} = *({type_of(found)} *){found[4]};", source)


class _Checked(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_longlong))


class CudaLibrary:
    """Generated CUDA, compiled for the host together; functions have different names.

    Arrays are passed with their sizes, so that a read outside of one is found too.
    """

    def __init__(self, generated: Sequence[Generated], folder: Path) -> None:
        parts = ['#include "host_cuda.h"', *(f'#include "cuda_{t}.h"' for t in ("fp16", "bf16", "fp8"))]
        for k, g in enumerate(generated):
            parts.append(f"namespace kernel_{k} {{")
            source = _POINTER.sub(r"checked<\1> \2", g.source.replace("extern __shared__", "extern"))
            source = _with_extents(source)
            assert "[" not in "".join(re.findall(r"__shared__.*", source)), "shared memory that is not checked"
            parts.append(source)
            for name, parameters in _HEADER.findall(source):
                names = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
                grid = "unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz"
                parts.append(f'extern "C" int launch_{name}({grid}, {parameters}) {{')
                parts.append(f"    auto body = [=] {{ {name}({names}); }};")
                parts.append("    return run_on_host(uint3{gx, gy, gz}, uint3{bx, by, bz}, body);\n}")
            parts.append("}")
        source, library = folder / "kernels.cpp", folder / "kernels_cuda.so"
        source.write_text("\n".join(parts), encoding="utf-8")
        flags = [
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Wno-unused",
            "-Wno-unknown-pragmas",
            "-Wno-tautological-compare",
            "-Werror",
            "-Wno-sign-compare",
            "-Wno-maybe-uninitialized",  # that a thread's own array is written first takes a proof
        ]
        _compile(["g++", *flags, f"-I{HOST}", "-shared", "-fPIC", "-pthread", str(source), "-o", str(library)])
        self.library = ctypes.CDLL(str(library))

    def __call__(self, generated: Generated, arrays: Arrays, params: Mapping[str, int]) -> None:
        extra = {a.name: work_space(a, params) for a in generated.arguments if a.work_bytes is not None}
        arrays = {**arrays, **extra}
        values = [_value(a, arrays, params) for a in generated.arguments]
        for k, a in enumerate(generated.arguments):
            if a.role in ("array", "scalar_out"):
                values[k] = _Checked(values[k].value, arrays[a.name].size)
        for launch in generated.launches(params):
            numbers = [ctypes.c_longlong(v) for v in launch.values]
            shape = [ctypes.c_uint(v) for v in (*launch.grid, *launch.block)]
            fault = getattr(self.library, f"launch_{launch.function}")(*shape, *values, *numbers)
            assert fault != 1, f"threads of {launch.function} passed different numbers of barriers"
            assert fault == 0, f"{launch.function} reads or writes outside an array"


def _compile(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


class Interpreted:
    """Generated Python without numba: the same text, loops run by Python."""

    def __init__(self, compiled: bool = False) -> None:
        self.compiled = compiled

    def __call__(self, generated: Generated, arrays: Arrays, params: Mapping[str, int]) -> None:
        namespace: dict[str, Any] = {}
        if not self.compiled:
            namespace["__builtins__"] = {**vars(builtins), "__import__": _without_numba}
        exec(compile(generated.source, f"<{generated.kernel}>", "exec"), namespace)
        values = []
        for a in generated.arguments:
            if a.role == "parameter":
                values.append(params[a.name])
            elif a.role == "scalar_in" and a.type is not None:
                number = arrays[a.name]
                reduced = a.type.name in ("f16", "bf16", "f8")
                values.append(np.float32(decode(number, a.type.name)[0]) if reduced else number[0])
            else:
                values.append(arrays[a.name])
        with np.errstate(all="ignore"):
            namespace[generated.function](*values)


def _without_numba(name: str, *rest: Any) -> Any:
    if name == "numba":
        return SimpleNamespace(njit=lambda *args, **options: lambda function: function, prange=range, types=None)
    if name == "numba.extending":
        return SimpleNamespace(intrinsic=lambda function: _BY_NUMPY[function.__name__])
    return SimpleNamespace(ir=None) if name == "llvmlite" else builtins.__import__(name, *rest)


_BY_NUMPY = {
    "f16_to_f32": lambda h: np.float32(np.uint16(h).view(np.float16)),
    "f32_to_f16": lambda x: np.float16(np.float32(x)).view(np.uint16),
}
"""What numba compiles to an instruction of the processor."""
