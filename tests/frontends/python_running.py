"""A user's Python function and the code that roofdsl generates of the kernel read from it, on the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roofdsl.codegen.storage import STORAGE
from roofdsl.frontends.python.read import _chosen, module_of, read_function
from roofdsl.frontends.python.signature import shape_option
from roofdsl.frontends.python.user_functions import Reading, function_of, run_user
from roofdsl.lang.checked import CheckedKernel
from roofdsl.loops.load import read_source
from roofdsl.loops.lower import lower
from roofdsl.loops.model import Kernel
from tests.frontends.running import Arrays, compiled, data


def reading_of(path: Path, name: str | None, shapes: str, fuse: bool = False) -> tuple[Reading, Kernel, str]:
    """How a function is read, its kernel, and its name."""
    module = module_of(read_source(path))
    given = dict(shape_option(part) for part in shapes.split(";") if part.strip())
    (function,) = _chosen(module, name, given)
    reading, _ = read_function(module, function, given, fuse=fuse)
    return reading, lower(CheckedKernel(reading.tree, module.source, None, ()), {}), function.name


def both(
    path: Path,
    name: str | None,
    shapes: str,
    sizes: Mapping[str, int],
    folder: Path,
    *,
    prepare: Any = None,
    seeds: Sequence[int] = (1,),
    fuse: bool = False,
) -> Iterator[tuple[Arrays, dict[str, Any], Kernel]]:
    """For each seed: what our code leaves behind and what the user's function does, by the kernel's names.

    prepare: changes the random data before both use them, such as to make a matrix well-conditioned.
    """
    reading, kernel, own = reading_of(path, name, shapes, fuse)
    used = {p.name: sizes[p.name] for p in kernel.parameters}
    run = compiled(kernel, folder)
    for seed in seeds:
        ours = data(kernel.arrays, used, seed)
        if prepare is not None:
            prepare(ours)
        with np.errstate(all="ignore"):
            theirs = run_user(function_of(str(path), own), reading.arguments, reading.returned, ours, sizes)
        run(ours, used)
        yield ours, theirs, kernel


def wrong(ours: Arrays, theirs: Mapping[str, Any], kernel: Kernel, *, exact: bool = False) -> list[str]:
    """The names of what differs: in any bit, or by more than rounding may do."""
    found = []
    for array in kernel.arrays:
        if array.intent in ("temp", "in"):
            continue
        if array.name not in theirs:
            found.append(f"{array.name} is missing")
            continue
        a = ours[array.name].reshape(-1)
        b = np.asarray(theirs[array.name]).astype(STORAGE[array.type.name]).reshape(-1)
        if exact:
            if not np.array_equal(a.view(np.uint8), b.view(np.uint8)):
                found.append(array.name)
            continue
        close = 1e-3 if array.type.name in ("f32", "c64", "f16") else 1e-9
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0) or 1
        same = np.isfinite(b) & np.isfinite(a) & (np.abs(a - b) <= close * (np.abs(b) + 1e-3 * scale))
        if not (same | ((a == b) | (np.isnan(a) & np.isnan(b)))).all() or not np.isfinite(b).any():
            found.append(array.name)
    return found
