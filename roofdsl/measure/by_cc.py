"""Generated C, compiled by the system's compiler into a shared object and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from roofdsl.codegen.generated import Argument
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.measure.by_numba import by_value, generate_for, runner_of
from roofdsl.measure.runner import Runner
from roofdsl.measure.timing import usable_cores

# What numba is told too: sums may be regrouped and products fused, zeros have no sign; nothing else is relaxed.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros",
    "-fno-trapping-math", "-fno-math-errno",
)  # fmt: skip


def find_compiler() -> str:
    """The compiler: `CC` of the environment, else gcc, clang or cc. Raises CommandError where there is none."""
    named = os.environ.get("CC")
    for name in (named,) if named else ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path is not None:
            return path
    what = f"the compiler `{named}` that CC names is not found" if named else "no C compiler is found"
    raise CommandError(what, "leave out `--compiler cc`: numba compiles without one")


def c_runner(kernel: Kernel, variant: str) -> Runner:
    """The variants `loops` and `parallel` (OpenMP). Raises CommandError where there is no compiler or it fails."""
    generated = generate_for(kernel, "c", variant)
    compiler = find_compiler()
    flags = (*FLAGS, *(("-fopenmp",) if variant == "parallel" else ()))
    function = _build(compiler, flags, generated.source, generated.function)
    function.restype = None
    function.argtypes = [_type_of(a) for a in generated.arguments]

    threads = len(usable_cores()) if variant == "parallel" else 1
    return runner_of(generated, function, _value, f"{_version(compiler)}, {' '.join(flags)}", threads)


def _build(compiler: str, flags: Sequence[str], text: str, function: str) -> Any:
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text, encoding="utf-8")
        command = [compiler, *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandError(f"the compiler `{compiler}` cannot be run: {error}") from None
        if done.returncode != 0:
            first = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
            raise CommandError(f"`{compiler}` does not compile the generated C: {first}")
        return ctypes.CDLL(str(library))[function]


def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False, timeout=60)
    return (done.stdout.strip().splitlines() or [compiler])[0]


class _Complex128(ctypes.Structure):
    """`double complex` by value: two doubles, passed as the C ABIs of x86-64 and AArch64 pass such a structure."""

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
