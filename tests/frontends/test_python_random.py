"""Random Python functions, read and executed both ways: bitwise identical, plain and fused."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from roofdsl.api import from_python
from roofdsl.codegen.generate import generate
from roofdsl.lang.diagnostics import InputError
from tests.codegen.running import Interpreted
from tests.frontends.random_python import ARRAYS, SHAPES, SIZES, Writer

PROGRAMS = int(os.environ.get("ROOFDSL_RANDOM_PYTHON", "60"))
BATCH = 10


def theirs(text: str, seed: int) -> tuple[dict[str, Any], list[Any]] | None:
    """What the user's function leaves behind; None where Python itself refuses it."""
    names: dict[str, Any] = {}
    exec(compile(text, "<random>", "exec"), names)
    arrays = data(seed)
    try:
        with np.errstate(all="ignore"):
            result = names["f"](**arrays, k=SIZES["k"])
    except (IndexError, ValueError, UnboundLocalError):
        return None
    if not all(np.isfinite(v).all() for v in arrays.values()):
        return None  # numpy and C choose differently between a number and NaN
    return arrays, list(result) if isinstance(result, tuple) else [] if result is None else [result]


def data(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {n: rng.uniform(-1, 1, (SIZES["n"],) * rank) for n, rank in ARRAYS.items()}


def compared(seed: int) -> str:
    """`read`, `refused` or `invalid`."""
    text = Writer(seed).function()
    expected = theirs(text, seed)
    if expected is None:
        return "invalid"
    shapes = dict(part.split("=") for part in SHAPES.split(";"))
    for fused in (False, True):
        try:
            kernel = from_python(text, "f", shapes, fused=fused)
        except InputError:
            return "refused"
        given = data(seed)
        own: dict[str, Any] = {}
        for array in kernel.arrays:
            shape = tuple(d.evaluate(SIZES) for d in array.dims) or (1,)
            own[array.name] = given[array.name] if array.name in given else np.full(shape, np.nan)
        sizes = {p.name: SIZES[p.name] for p in kernel.parameters}
        Interpreted()(generate(kernel, "python", "loops"), own, sizes)
        for name in ARRAYS:
            same = np.array_equal(given[name].view(np.uint8), expected[0][name].view(np.uint8))
            assert same, f"seed {seed}, fused {fused}: {name} differs\n{text}"
        results = [own[a.name] for a in kernel.arrays if a.intent == "out" and a.name not in ARRAYS]
        for value in expected[1]:
            alike = [r.reshape(np.shape(value)) for r in results if r.size == np.size(value)]
            same = any(np.array_equal(np.asarray(value), r) for r in alike)
            assert same, f"seed {seed}, fused {fused}: a result differs\n{text}"
    return "read"


@pytest.mark.spread(1)
@pytest.mark.parametrize("first", range(0, PROGRAMS, BATCH))
def test_computes_the_same(first: int) -> None:
    outcomes = [compared(seed) for seed in range(first, first + BATCH)]
    assert outcomes.count("read") >= BATCH // 4, outcomes
