"""A user's C function and the code that roofdsl generates of the kernel read from it, on the same data."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roofdsl.codegen.generate import generate
from roofdsl.codegen.storage import STORAGE
from roofdsl.frontends.c.read import read
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Array, Kernel
from tests.codegen.running import CLibrary

EXACT = ("-std=gnu11", "-O1", "-ffp-contract=off", "-w")
"""What keeps the order of operations and the rounding of each."""

Arrays = dict[str, np.ndarray[Any, Any]]


def kernel_of(path: Path, name: str | None = None) -> Kernel:
    """The kernel that a file is read as."""
    return lowered(read(str(path), name), None)


def data(arrays: Sequence[Array], sizes: Mapping[str, int], seed: int = 1) -> Arrays:
    """Random data for every array and scalar, written ones too: what a kernel leaves alone stays as it is.

    Whole numbers of f32 and f64 lie between -2 and 2; those of integers, between -9 and 9.
    """
    rng = np.random.default_rng(seed)
    found: Arrays = {}
    for a in arrays:
        shape = tuple(d.evaluate(sizes) for d in a.dims) or (1,)
        numbers = rng.integers(-9, 10, shape) if a.type.kind == "int" else rng.uniform(-2, 2, shape)
        if a.type.kind == "complex":
            numbers = numbers + 1j * rng.uniform(-2, 2, shape)
        found[a.name] = np.ascontiguousarray(numbers.astype(STORAGE[a.type.name]))
    return found


def library(text: str, folder: Path, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """A user's C, compiled and loaded."""
    source, built = folder / "user.c", folder / "user.so"
    source.write_text(text, encoding="utf-8")
    command = ["cc", *EXACT, *flags, "-shared", "-fPIC", str(source), "-o", str(built), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(built))


def run_generated(kernel: Kernel, arrays: Arrays, sizes: Mapping[str, int], folder: Path) -> None:
    """Runs roofdsl's own C of the kernel on the arrays."""
    compiled(kernel, folder)(arrays, sizes)


def compiled(kernel: Kernel, folder: Path) -> Callable[[Arrays, Mapping[str, int]], None]:
    """Roofdsl's own C of the kernel, to be run on arrays at sizes."""
    generated = generate(kernel, "c", "loops")
    library = CLibrary([generated], folder, (*EXACT, "-Wno-error"))
    return lambda arrays, sizes: library(generated, arrays, sizes)


def differences(kernel: Kernel, ours: Arrays, theirs: Arrays) -> list[str]:
    """The names of what a kernel leaves behind that is not the same, bit for bit."""
    kept = [a.name for a in kernel.arrays if a.intent != "temp" and a.name in theirs]
    return [n for n in kept if not np.array_equal(ours[n].view(np.uint8), theirs[n].view(np.uint8))]


def call(function: Any, signature: Sequence[tuple[str, str]], arrays: Arrays, sizes: Mapping[str, int]) -> Any:
    """Calls a user's function. signature: (name, C type) of its parameters; that of arrays and pointers ends in `*`."""
    types = {"int": ctypes.c_int, "long": ctypes.c_long, "size_t": ctypes.c_size_t, "double": ctypes.c_double,
             "float": ctypes.c_float}  # fmt: skip
    given: list[Any] = []
    for name, type_ in signature:
        if type_.endswith("*"):
            given.append(ctypes.c_void_p(arrays[name].ctypes.data))
        elif name in arrays:
            given.append(types[type_](arrays[name][0].item()))
        else:
            given.append(types[type_](sizes.get(name, 1)))
    return function(*given)


def unfolded(items: tuple[tree.Item, ...]) -> tuple[tree.Item, ...]:
    """Each loop on a line of its own, as in texts with long lines."""
    found: list[tree.Item] = []
    for item in items:
        if isinstance(item, tree.For):
            body = unfolded(item.body)
            for clause in reversed(item.clauses):
                body = (replace(item, clauses=(clause,), body=body),)
            found += body
        else:
            found.append(item)
    return tuple(found)
