"""The reference, the bounds on rounding, and whether a wrong result is told from a right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.compare_results import compare
from roofdsl.codegen.inputs import poisoned, random_inputs
from roofdsl.codegen.reference import reference
from roofdsl.codegen.storage import LARGEST, STORAGE, UNIT, decode, encode
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

MATMUL = shipped()["matmul"]


def outcome(kernel: Kernel, sizes: dict[str, int], **options: Any) -> tuple[Any, Any]:
    inputs = random_inputs(kernel, sizes, 3, **options)
    return inputs, reference(kernel, sizes, inputs)


def test_products_as_numpy() -> None:
    inputs, want = outcome(MATMUL, {"n": 40})
    a, b, c = (inputs[name].astype(np.longdouble) for name in "ABC")
    np.testing.assert_allclose(want.values["C"], c + a @ b, rtol=1e-17, atol=1e-17)
    bound = 42 * 2.0**-53 * (np.abs(c) + np.abs(a) @ np.abs(b)).astype(float)
    assert (want.errors["C"] <= bound).all()
    assert (want.errors["C"] > 0).all()


@pytest.mark.parametrize("name", ["matmul", "gemm_f16", "batched_gemm", "gemv", "gemm_tf32"])
def test_large_products_as_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short cut for large contractions gives the same, with a bound of the same size."""
    kernel = shipped()[name]
    sizes = {p.name: {"m": 17, "k": 31, "batch": 3}.get(p.name, 23) for p in kernel.parameters}
    inputs, loops = outcome(kernel, sizes)
    monkeypatch.setattr("roofdsl.codegen.matrix_products.WORTH", 1)
    product = reference(kernel, sizes, inputs)
    (result,) = product.values
    apart = np.abs(product.values[result] - loops.values[result]).astype(float)
    assert (apart <= 2.0**-53 * 32 * np.abs(loops.values[result]).max()).all()
    assert (product.errors[result] >= 0.3 * loops.errors[result]).all()
    assert product.errors[result].max() <= 10 * loops.errors[result].max()
    assert (product.written[result] == loops.written[result]).all()


def test_factorizations_as_numpy() -> None:
    inputs, want = outcome(shipped()["cholesky"], {"n": 12})
    a = np.tril(inputs["A"]) + np.tril(inputs["A"], -1).T
    np.testing.assert_allclose(np.tril(want.values["A"]).astype(float), np.linalg.cholesky(a), rtol=1e-12)
    inputs, want = outcome(shipped()["lu"], {"n": 9})
    f = want.values["A"].astype(float)
    np.testing.assert_allclose((np.tril(f, -1) + np.eye(9)) @ np.triu(f), inputs["A"], rtol=1e-12)


def test_stencil_and_solve_as_numpy() -> None:
    inputs, want = outcome(shipped()["jacobi2d"], {"n": 9})
    a = inputs["A"]
    inner = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    np.testing.assert_allclose(want.values["B"][1:-1, 1:-1].astype(float), inner, rtol=1e-14)
    assert want.written["B"].sum() == 49
    inputs, want = outcome(shipped()["trsv"], {"n": 15})
    np.testing.assert_allclose(
        np.tril(inputs["L"]) @ want.values["x"].astype(float), inputs["b"], rtol=1e-12, atol=1e-14
    )


def test_paths_in_order() -> None:
    """Every iteration may read what the one before wrote."""
    inputs, want = outcome(shipped()["floyd_warshall"], {"n": 17})
    path = inputs["path"].astype(int)
    for k in range(17):
        for i in range(17):
            for j in range(17):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])
    assert (want.values["path"] == path).all()


def test_float32_stays_within_its_bound() -> None:
    """The bound holds for arithmetic in the type itself, and is not a thousand times too large."""
    kernel = shipped()["batched_gemm"]
    inputs, want = outcome(kernel, {"batch": 2, "n": 30})
    c = inputs["C"].copy()
    for k in range(30):
        c += inputs["A"][:, :, k, None] * inputs["B"][:, k, None, :]
    error = np.abs(c - want.values["C"])
    assert (error <= want.errors["C"]).all()
    assert error.max() > want.errors["C"].max() / 1000


@pytest.mark.parametrize("change", ["term", "sign", "border", "nan", "last digit"])
def test_wrong_results_are_found(change: str) -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n], x: f64[n]\n    out y: f64[n + 2]\n"
        "    for i in range(n):\n        y[i + 1] = 0\n"
        "        for j in range(n):\n            y[i + 1] += A[i, j] * x[j]\n"
    )
    inputs, want = outcome(kernel, {"n": 50})
    given = poisoned(kernel, inputs)
    got = {name: a.copy() for name, a in given.items()}
    got["y"][1:-1] = inputs["A"] @ inputs["x"]
    assert compare(got, want, kernel, given).correct
    match change:
        case "term":
            got["y"][7] -= inputs["A"][6, 49] * inputs["x"][49]
        case "sign":
            got["y"][3] *= -1
        case "border":
            got["y"][0] = 0.0
        case "nan":
            got["y"][9] = np.nan
        case "last digit":
            got["y"][9] *= 1 + 1e-12
    result = compare(got, want, kernel, given)
    assert not result.correct
    assert "y[" in result.wrong


def test_a_missing_term_shows_in_reduced_types() -> None:
    """Few bits make sums of products exact, so that nothing is allowed for rounding."""
    kernel = shipped()["matmul_bf16"]
    inputs, want = outcome(kernel, {"n": 24})
    assert (want.errors["C"] == 0).all()
    given = poisoned(kernel, inputs)
    right = decode(inputs["A"], "bf16") @ decode(inputs["B"], "bf16")
    got = {**given, "C": encode(right, "bf16")}
    assert compare(got, want, kernel, given).correct
    right[5, 5] -= 0.25
    got["C"] = encode(right, "bf16")
    assert not compare(got, want, kernel, given).correct


def test_a_sum_that_is_rounded_in_higher_precision_too_is_not_exact() -> None:
    """0.5 is lost in 1e20 in any precision that numpy has; code that adds in another order keeps it."""
    kernel = kernel_of(
        "kernel k(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = x[i] + 1e20 - 1e20\n"
    )
    inputs, want = outcome(kernel, {"n": 8}, exact=True)
    assert (np.abs(want.values["y"] - inputs["x"]) <= want.errors["y"]).all()
    assert compare({**inputs, "y": inputs["x"]}, want, kernel, poisoned(kernel, inputs)).wrong == ""


def test_nothing_verified_is_not_correct() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in x: f64[n]\n    out y: f64[n]\n"
        "    for i in range(n):\n        y[i] = sqrt(0 - 1 - x[i] * x[i])\n"
    )
    inputs, want = outcome(kernel, {"n": 4})
    result = compare(poisoned(kernel, inputs), want, kernel, poisoned(kernel, inputs))
    assert not result.correct
    assert result.unverified == 1
    assert result.unverifiable == {"y": "the reference result is not a finite number there"}


def test_missing_sizes() -> None:
    with pytest.raises(CommandError, match="needs a number for n"):
        random_inputs(MATMUL, {})
    with pytest.raises(CommandError, match="assumes n % b == 0"):
        random_inputs(shipped()["matmul_blocked"], {"n": 10, "b": 3})


def test_inputs_are_reproducible_and_differ() -> None:
    first, again, other = (random_inputs(MATMUL, {"n": 8}, seed) for seed in (1, 1, 2))
    assert (first["A"] == again["A"]).all()
    assert (first["A"] != other["A"]).all()
    assert (first["A"] != 0).all()


# ---- storage ----


@pytest.mark.parametrize("name", ["f16", "bf16", "f8"])
def test_every_code_survives(name: str) -> None:
    codes = np.arange(256 if name == "f8" else 65536).astype(STORAGE[name])
    values = decode(codes, name)
    number = ~np.isnan(values)
    assert (encode(values[number], name) == codes[number]).all()
    assert np.isnan(decode(encode(np.array([np.nan]), name), name)).all()


@pytest.mark.parametrize("name", ["f16", "bf16", "f8"])
def test_rounds_to_the_nearest(name: str) -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 2000).astype(np.float32).astype(float) * 16
    near = decode(encode(values, name), name)
    assert (np.abs(near - values) <= UNIT[name] * np.abs(values) + 2.0**-10).all()
    codes = np.arange(256 if name == "f8" else 65536).astype(STORAGE[name])
    every = decode(codes, name)
    every = every[np.isfinite(every)]
    for value, chosen in zip(values[:50], near[:50], strict=True):
        assert abs(chosen - value) == np.abs(every - value).min()


def test_f8_saturates() -> None:
    assert (decode(encode(np.array([1e9, -1e9, 460.0]), "f8"), "f8") == [448, -448, 448]).all()
    assert LARGEST["f8"] == 448


@pytest.mark.parametrize("type_name", ["c64", "c128"])
def test_complex_outputs_and_temporaries_keep_their_imaginary_parts(type_name: str) -> None:
    text = f"""
kernel turned(n):
    in A: {type_name}[n]
    out B: {type_name}[n]
    temp T: {type_name}[n]
    for i in range(n):
        T[i] = A[i]
    for i in range(n):
        B[i] = T[i] * T[i]
"""
    own = kernel_of(text)
    a = np.array([1 + 2j, -3 + 0.5j, 1j], np.complex64 if type_name == "c64" else np.complex128)
    found = reference(own, {"n": 3}, {"A": a})
    np.testing.assert_allclose(found.values["B"].astype(complex), a.astype(complex) ** 2)
