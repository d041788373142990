"""`@roofdsl.kernel`: functions stay callable and tell their counts, times and measurements."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roofdsl
from roofdsl import f32, f64
from roofdsl.api import derive
from roofdsl.lang.diagnostics import CommandError, InputError

FACTOR = 2.0
# ruff: noqa: F821, UP037


def helper(x: Any) -> Any:
    return FACTOR * x


@roofdsl.kernel
def gemv(A: f64["n", "m"], x: f64["m"], y: f64["n"]) -> None:
    """A matrix times a vector."""
    y += helper(A @ x)


@roofdsl.kernel
def plain(A: Any, x: Any, alpha: Any = 2.0) -> Any:
    return alpha * np.dot(A, x)


@roofdsl.kernel(x="n:f32")
def stated(x):  # type: ignore[no-untyped-def]
    x *= 2


def test_it_stays_callable() -> None:
    A, x, y = np.arange(12.0).reshape(3, 4), np.ones(4), np.zeros(3)
    gemv(A, x, y)
    assert np.array_equal(y, 2 * A.sum(axis=1))
    assert gemv.__name__ == "gemv" and gemv.__doc__ == "A matrix times a vector."


def test_counts_and_times() -> None:
    found = gemv.derive(n=100, m=50)
    assert found.work.total.value == 2 * 100 * 50 + 100 + 100
    assert derive(gemv.kernel, n=100, m=50).work.total.value == found.work.total.value
    assert gemv.predict("v100", n=4096, m=4096).bound.startswith("HBM")
    assert gemv.source.startswith("kernel gemv(n, m):\n    in A: f64[n, m], x: f64[m]\n    inout y: f64[n]\n")


def test_example_arguments() -> None:
    A, x = np.ones((30, 20), np.float32), np.ones(20, np.float32)
    found = plain.derive(A, x, 0.5)
    assert found.work.total.value == 2 * 30 * 20 + 30
    assert "in alpha: f32, A: f32[n, m], x: f32[m]" in plain.like(A, x).source.replace(
        "A: f32[n, m], x: f32[m], alpha: f32", "alpha: f32, A: f32[n, m], x: f32[m]"
    )
    assert plain.predict("v100", A, x).bound_s == plain.predict("v100", A, x, sizes={"n": 30, "m": 20}).bound_s
    with pytest.raises(CommandError, match="`m` is 20 and, in `x`, 21"):
        plain.derive(A, np.ones(21, np.float32))
    with pytest.raises(CommandError, match="not an example of an argument"):
        plain.derive(A, "x")
    with pytest.raises(CommandError, match="not the arguments of `plain`"):
        plain.derive(A)


def test_shapes_of_the_decorator() -> None:
    assert stated.source == "kernel stated(n):\n    inout x: f32[n]\n    for i in range(n):\n        x[i] *= 2\n"


def test_errors_come_with_the_first_question_and_quote_the_line() -> None:
    @roofdsl.kernel
    def endless(x: f32["n"]) -> None:
        while True:
            x[0] += 1

    with pytest.raises(InputError) as caught:
        endless.derive()
    found = caught.value.diagnostics[0]
    assert caught.value.source.line(found.span.line).strip() == "while True:"
    assert caught.value.source.name == __file__


def test_cells_of_a_notebook() -> None:
    """Modules, functions of numpy and numbers may come from other cells."""
    names: dict[str, Any] = {"roofdsl": roofdsl, "f64": f64, "np": np, "exp": np.exp, "SCALE": 4}
    text = '@roofdsl.kernel\ndef cell(x: f64["n"]):\n    x[:] = exp(SCALE * np.sqrt(x))\n'
    name = "<cell 3>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)
    assert "x[i] = exp(4 * sqrt(x[i]))" in names["cell"].source
    exec('lost = roofdsl.kernel(eval("lambda x: x"))', names)
    with pytest.raises(CommandError, match="is not known"):
        names["lost"].derive()


def test_variables_of_a_function_around() -> None:
    FACTOR = 3.0

    @roofdsl.kernel
    def inner(x: f64["n"]) -> None:
        x *= FACTOR

    with pytest.raises(InputError, match="what `FACTOR` means here"):
        inner.derive()


def test_the_example_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/python.md").read_text(encoding="utf-8")
    found = re.search(r"### In a program or notebook\n\n```python\n(.*?)```", page, re.S)
    assert found is not None
    text = "".join(line for line in found[1].splitlines(keepends=True) if ".measure(" not in line)
    name = "<page>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), {})


def test_measured() -> None:
    measured = gemv.measure(n=64, m=64)
    assert measured.kernel == "gemv" and measured.verified
