"""Generated C, compiled by the system's compiler into a shared library and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from roofdsl.codegen.generated import Argument
from roofdsl.codegen.math_mode import Math
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.measure.by_numba import by_value, generate_for, runner_of
from roofdsl.measure.runner import Runner
from roofdsl.measure.timing import usable_cores

# The same freedom that numba gets: sums may be regrouped, products fused, and zeros have no sign; nothing else is
# relaxed.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros",
    "-fno-trapping-math", "-fno-math-errno",
)  # fmt: skip
STRICT_FLAGS = ("-std=c11", "-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno")


def find_compiler() -> tuple[str, ...]:
    """The compiler and its own options: `CC` from the environment (for example `gcc -m64`), else gcc, clang or cc.

    Raises CommandError if there is none.
    """
    named = os.environ.get("CC", "").strip()
    for name in (named,) if named else ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    if not named:
        raise CommandError("no C compiler was found", _WITHOUT)
    try:
        first, *options = shlex.split(named)
    except ValueError:
        raise CommandError(f"CC is `{named[:80]}`, which has an unclosed quote", _WITHOUT) from None
    path = shutil.which(first)
    if path is None:
        raise CommandError(f"the compiler `{first[:80]}` of the variable CC was not found", _WITHOUT)
    return (path, *options)


_WITHOUT = "omit `--compiler cc`: numba needs no C compiler"
_OTHER = f"name another compiler by CC, or {_WITHOUT}"


def c_runner(kernel: Kernel, variant: str, math: Math = "relaxed") -> Runner:
    """The variants `loops` and `parallel` (OpenMP). Raises CommandError if there is no compiler or it fails."""
    generated = generate_for(kernel, "c", variant)
    compiler = find_compiler()
    flags = (*(FLAGS if math == "relaxed" else STRICT_FLAGS), *(("-fopenmp",) if variant == "parallel" else ()))
    function = _build(compiler, flags, generated.source, generated.function)
    function.restype = None
    function.argtypes = [_type_of(a) for a in generated.arguments]

    threads = len(usable_cores()) if variant == "parallel" else 1
    return runner_of(generated, function, _value, f"{_version(compiler)}, {' '.join(flags)}", threads)


def _build(compiler: Sequence[str], flags: Sequence[str], text: str, function: str) -> Any:
    """The function, compiled and loaded. Raises CommandError if either step fails."""
    shown = " ".join(compiler)
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text, encoding="utf-8")
        command = [*compiler, *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        done = _run(command, shown, 300)
        if done.returncode != 0:
            raise CommandError(f"`{shown}` does not compile the generated C: {_fault(done)}", _OTHER)
        if not library.is_file() or library.stat().st_size == 0:
            raise CommandError(f"`{shown}` exited without an error but wrote no library", _OTHER)
        try:
            return ctypes.CDLL(str(library))[function]
        except OSError as error:
            why = printable(str(error).removeprefix(f"{library}: "))
            raise CommandError(f"the library from `{shown}` cannot be loaded: {why}", _OTHER) from None
        except AttributeError:
            raise CommandError(f"the library from `{shown}` lacks the function `{function}`", _OTHER) from None


def _run(command: Sequence[str], shown: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run the compiler; its output may be in any encoding. Raises CommandError if it cannot be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommandError(f"the compiler `{shown}` did not finish within {timeout_s:g} s", _OTHER) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"the compiler `{shown}` cannot be run: {error}", _OTHER) from None


def _fault(done: subprocess.CompletedProcess[str]) -> str:
    """The first error that a compiler reports."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line or "cannot" in line), *lines[:1] or [""])
    return printable(first) or f"exit status {done.returncode}"


def _version(compiler: Sequence[str]) -> str:
    """The first line of the compiler's version text; its name if that is of no use."""
    shown = " ".join(compiler)
    try:
        done = _run([*compiler, "--version"], shown, 60)
    except CommandError:
        return shown
    return printable(next((line for line in done.stdout.splitlines() if line.strip()), "")) or shown


def printable(text: str) -> str:
    """At most 200 characters of another program's output, without control characters for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text.strip()[:200]).strip()


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
