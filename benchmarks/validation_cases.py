"""Which kernels a validation runs, and at which sizes: the shipped ones, PolyBench, or the blind set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.kernels import fresh, shipped
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine import find

BLIND = Path(__file__).parent / "blind"

POLYBENCH_SIZE = "medium"

MOST_ACCESSES = 300_000_000
"""Of one launch of a kernel whose sizes are chosen here: more would take too long to verify and to repeat."""

FIRST = (
    "triad", "vector_add", "copy", "scale", "daxpy", "dot_f64", "gemv", "jacobi2d", "matmul", "matmul_blocked",
    "minplus", "jacobi3d", "stencil27", "transpose", "trsv", "lu", "cholesky", "dot", "dot_bf16",
)  # fmt: skip
"""Shipped kernels that are run before the others, which may be left out for want of time."""


class Case(NamedTuple):
    """One kernel: `kernel` lowers it anew. sizes: those given with the set; None where the benchmark chooses them so
    that the data fit the caches and memory.
    """

    kernel: Callable[[], Kernel]
    sizes: tuple[Mapping[str, int], ...] | None = None


def shipped_cases() -> dict[str, Case]:
    """The shipped kernels, those of FIRST first."""
    every = shipped()
    names = [*(n for n in FIRST if n in every), *(n for n in every if n not in FIRST)]
    return {name: Case(lambda name=name: fresh(every[name], name)) for name in names}


def polybench_cases() -> dict[str, Case]:
    """PolyBench's kernels as written, at POLYBENCH_SIZE."""
    sizes = find.standard_sizes()
    found = {}
    for name, path in find.shipped("polybench").items():
        checked = load_file(path)
        found[name] = Case(lambda checked=checked, name=name: fresh(checked, name), (sizes[name][POLYBENCH_SIZE],))
    return found


def blind_cases(folder: Path = BLIND) -> dict[str, Case]:
    """The kernels of *.roof in the folder, at the sizes that its sizes.json lists for each: {"name": [{"n": 100}]}.

    Raises CommandError where the sizes cannot be read, or a kernel has none, or sizes have no kernel.
    """
    path = folder / "sizes.json"
    try:
        sizes = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"the sizes in `{path}` cannot be read: {error}") from None
    if not isinstance(sizes, dict) or not all(_is_sizes(own) for own in sizes.values()):
        raise CommandError(f"`{path}` does not list sizes", 'write {"kernel": [{"n": 100}, {"n": 1000}]}')
    found = {}
    for file in sorted(folder.glob("*.roof")):
        checked = load_file(file)
        for name in kernels(checked):
            if name not in sizes:
                raise CommandError(f"`{path}` has no sizes of `{name}`, which is in `{file.name}`")
            found[name] = Case(lambda checked=checked, name=name: fresh(checked, name), tuple(sizes[name]))
    if missing := [name for name in sizes if name not in found]:
        raise CommandError(f"`{path}` has sizes of `{missing[0]}`, which no file in the folder defines")
    return found


def _is_sizes(own: object) -> bool:
    return isinstance(own, list) and all(
        isinstance(sizes, dict) and all(type(value) is int and value > 0 for value in sizes.values()) for sizes in own
    )


SETS: Mapping[str, Callable[[], dict[str, Case]]] = {
    "shipped": shipped_cases,
    "polybench": polybench_cases,
    "blind": blind_cases,
}
"""The sets of kernels by name."""
