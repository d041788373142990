"""Random C: read back, and executed both ways, with the same numbers in every digit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from roofdsl.codegen.generate import generate
from roofdsl.frontends.c.read import read
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Kernel
from tests.codegen.running import CLibrary
from tests.frontends.random_c import SIGNATURE, Writer
from tests.frontends.running import EXACT, Arrays, call, data, library

BATCH = 20
SIZES = ({"n": 5, "m": 4}, {"n": 1, "m": 1}, {"n": 9, "m": 11})
SHAPES = {"a": "2 * n + 64", "b": "2 * n + 64", "P": "(n + 32) ** 2", "F": "n * m", "q": "(2 * n + 64) * 4"}
SHAPES |= dict.fromkeys(("g", "h", "k", "c"), "2 * n + 64")
TYPES = {"g": np.float32, "h": np.float32, "k": np.int32, "c": np.int8}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_random_programs_compute_the_same(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count = request.config.option.c_programs
    read_back = sum(_batch(first, min(BATCH, count - first), tmp_path) for first in range(0, count, BATCH))
    assert read_back >= 0.8 * count


def _batch(first: int, count: int, folder: Path) -> int:
    """Compares some programs, compiled together; how many of them could be read."""
    folder = folder / str(first)  # a library that is loaded already is not loaded again
    folder.mkdir()
    texts = {seed: Writer(seed).function(f"f{seed}") for seed in range(first, first + count)}
    kernels: dict[int, Kernel] = {}
    for seed, text in texts.items():
        path = folder / f"f{seed}.c"
        path.write_text(text)
        try:
            kernels[seed] = lowered(read(str(path), f"f{seed}"), None)
        except InputError as refused:
            assert refused.diagnostics[0].code.startswith("c-"), f"{refused}\n{text}"
    heads = {text.split("void f", 1)[0] for text in texts.values()}
    bodies = ["void f" + text.split("void f", 1)[1] for text in texts.values()]
    user = library("\n".join([*heads, *bodies]), folder)
    generated = {seed: generate(kernel, "c", "loops") for seed, kernel in kernels.items()}
    ours = CLibrary(list(generated.values()), folder, (*EXACT, "-Wno-error"))
    for seed, kernel in kernels.items():
        for sizes in SIZES:
            _compare(
                kernel, getattr(user, f"f{seed}"), lambda a, s, g=generated[seed]: ours(g, a, s), sizes, texts[seed]
            )
    return len(kernels)


def _compare(kernel: Kernel, function: object, run: object, sizes: dict[str, int], text: str) -> None:
    """Runs both on the same data; arrays that the kernel does not have are the user's alone."""
    rng = np.random.default_rng(3)
    whole: Arrays = {n: rng.uniform(-2, 2, eval(shape, dict(sizes))) for n, shape in SHAPES.items()}
    for name, type_ in TYPES.items():
        numbers = rng.integers(-3, 4, whole[name].shape) if np.issubdtype(type_, np.integer) else whole[name]
        whole[name] = numbers.astype(type_)
    own = data(kernel.arrays, sizes)
    for name in own:
        if name in whole:
            flat = own[name].reshape(-1)
            flat[:] = whole[name][: flat.size]
    theirs = {n: v.copy() for n, v in whole.items()}
    call(function, SIGNATURE, theirs, sizes)
    run(own, {p.name: sizes[p.name] for p in kernel.parameters})  # type: ignore[operator]
    for name, shown in theirs.items():
        if name not in own:
            assert np.array_equal(shown, whole[name]), f"{name} is not in the kernel\n{text}"
            continue
        flat = own[name].reshape(-1)
        rest = np.array_equal(shown[flat.size :], whole[name][flat.size :])
        same = np.array_equal(flat, shown[: flat.size], equal_nan=True)  # whole numbers have no negative zero
        # numbers that have left their range end in NaNs, which C's fmin and fmax pass over
        lost = any(np.issubdtype(v.dtype, np.floating) and not np.isfinite(v).all() for v in theirs.values())
        assert (same and rest) or lost, f"{name} differs at {sizes}\n{text}"
