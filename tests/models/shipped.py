"""The shipped kernels at sizes small enough to execute."""

from __future__ import annotations

from functools import cache
from itertools import product

from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.find import shipped, shipped_names
from tests.oracle.enumerate import admissible

CONV = {"batch": 2, "h": 7, "w": 6, "c": 2, "f": 3}
SIZES: dict[str, dict[str, int]] = {
    "gpp": {"bands": 2, "ngpown": 2, "ncouls": 7, "nw": 4, "s": 2},
    **{f"gpp_{n}": {"bands": 4, "ngpown": 2, "ncouls": 3} for n in ("divides", "reciprocals", "squares")},
    "gpp_blocks": {"bands": 4, "ngpown": 2, "ncouls": 3, "b": 2},
    **{f"gsrb_{n}": {"boxes": 2, "dim": 4} for n in ("fp", "branch", "stride2")},
    "conv2d": {**CONV, "r": 3, "s": 2},
    "conv2d_f32": {**CONV, "r": 2, "s": 3},
    "conv2d_padded": {**CONV, "r": 3, "s": 2, "d": 1, "pad": 1},
    "conv2d_implicit_gemm": {"batch": 2, "c": 2, "f": 4, "h": 7, "w": 6, "r": 3, "s": 2, "bm": 3, "bo": 2},
    "im2col": {"batch": 2, "h": 7, "w": 6, "c": 2, "r": 3, "s": 2},
    **{f"conv2d_{n}": {**CONV, "r": 2, "s": 2, "d": 2} for n in (
        "forward", "bias_relu", "backward_data", "backward_filter",
    )},
    **{f"conv2d_backward_{n}_padded": {**CONV, "r": 3, "s": 2, "d": 1, "pad": 2} for n in ("data", "filter")},
}  # fmt: skip


@cache
def model(name: str, **constants: int) -> Kernel:
    """A shipped kernel by its name, its directives applied; `constants` are for its `const` parameters."""
    return apply(kernel(load_file(shipped_names("kernels")[name]), name, constants))


def kernel_names() -> list[str]:
    """Every shipped kernel whose accesses follow from its loops; those of some files need data."""
    files = {stem: path for stem, path in shipped("kernels").items() if stem not in ("sparse", "moe", "graph")}
    return [n for path in files.values() for n in load_file(path).own_kernels]


def small(name: str, **sizes: int) -> tuple[Kernel, dict[str, int]]:
    """The kernel, and small values of its parameters that its assumptions allow."""
    given = SIZES.get(name, {}) | sizes
    found = model(name, **{n: v for n, v in given.items() if n in _constants(name)})
    names = [p.name for p in found.parameters]
    choices = [[given[n]] if n in given else [3, 4, 2, 6, 1] for n in names]
    for values in product(*choices):
        if admissible(found, dict(zip(names, values, strict=True))):
            return found, dict(zip(names, values, strict=True))
    raise AssertionError(f"no small size of {name} is allowed: give one in SIZES")


def _constants(name: str) -> set[str]:
    checked = load_file(shipped_names("kernels")[name])
    return {p.name.text for p in checked.kernels[name].tree.parameters if p.const}
