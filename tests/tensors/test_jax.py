"""Functions of JAX as programs: the operators, W by hand, bytes, and what is not read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roofdsl.api import from_jax, predict
from roofdsl.codegen.reference import reference
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as lowered

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install roofdsl[jax]")
jnp = jax.numpy


def shape(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def test_a_perceptron() -> None:
    def mlp(x: Any, w: Any, b: Any, v: Any) -> Any:
        return jax.nn.softmax(jax.nn.relu(x @ w + b) @ v, axis=-1)

    program = from_jax(mlp, shape(64, 256), shape(256, 512), shape(512), shape(512, 10))
    assert program.unknown == () and program.name == "mlp"
    products = [n for n in program.launches if n.startswith("matmul")]
    total = sum(work_at(lowered(program.checked, n), {}).total for n in products)
    assert total == 2 * 64 * 512 * (256 + 10)
    fused = from_jax(mlp, shape(64, 256), shape(256, 512), shape(512), shape(512, 10), fused=True)
    assert len(fused.launches) < len(program.launches)
    assert predict(fused, "v100").work == predict(program, "v100").work


def test_convolution_in_another_order_of_dimensions() -> None:
    def f(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    program = from_jax(f, shape(2, 8, 9, 3), shape(3, 3, 3, 4))
    kernel = lowered(program.checked, program.launches[0])
    assert work_at(kernel, {}).total == 2 * 2 * 8 * 9 * 4 * 3 * 3 * 3
    rng = np.random.default_rng(1)
    x, w = rng.uniform(-1, 1, (2, 8, 9, 3)), rng.uniform(-1, 1, (3, 3, 3, 4))
    arrays = {"X": x.transpose(0, 3, 1, 2), "W": w.transpose(3, 2, 0, 1), "Y": np.zeros((2, 4, 8, 9)), "s": np.zeros(1)}
    found = reference(kernel, {}, arrays).values["Y"]
    want = np.asarray(f(jnp.asarray(x), jnp.asarray(w)))
    assert np.allclose(np.asarray(found, float).transpose(0, 2, 3, 1), want, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), ((2, 3, 4), (2, 4, 5))),
        (lambda a: jnp.sum(a * a, axis=1), ((5, 7),)),
        (lambda a: jnp.cumsum(a, axis=0), ((5, 7),)),
        (lambda a: jnp.max(a, axis=0), ((5, 7),)),
        (jax.nn.sigmoid, ((5, 7),)),
        (lambda a, b: jnp.where(a > b, a, -b), ((5, 7), (5, 7))),
        (lambda a, b: jnp.concatenate([a, b], axis=1), ((5, 7), (5, 2))),
    ],
)
def test_single_operators_compute_what_jax_computes(function: Any, arrays: tuple[tuple[int, ...], ...]) -> None:
    """Everything in one fused launch, or a single operator."""
    program = from_jax(function, *(shape(*a) for a in arrays), fused=True)
    assert program.unknown == ()
    rng = np.random.default_rng(2)
    given = [rng.uniform(-1, 1, a) for a in arrays]
    want = np.asarray(function(*(jnp.asarray(g) for g in given)))
    values = list(given)
    for launch in program.launches:
        kernel = lowered(program.checked, launch)
        data = {}
        for array in kernel.arrays:
            dims = tuple(d.evaluate({}) for d in array.dims) or (1,)
            data[array.name] = values.pop(0).reshape(dims) if array.intent == "in" else np.zeros(dims)
        outcome = reference(kernel, {}, data)
        values = [np.asarray(outcome.values[a.name], float) for a in kernel.arrays if a.intent == "out"]
    assert np.allclose(values[0].reshape(want.shape), want, 1e-5, 1e-5), program.text


def test_what_is_not_read() -> None:
    def f(x: Any) -> Any:
        return jax.lax.while_loop(lambda v: jnp.sum(v) < 100, lambda v: v * 2, x)

    program = from_jax(f, shape(8))
    assert program.unknown == ("while",)
    with pytest.raises(CommandError, match="JAX cannot trace"):
        from_jax(lambda x: x @ x, shape(3, 4))


def test_the_parts_of_complex_numbers_are_real_numbers() -> None:
    """A product of f32: no complex arithmetic; each part has 4 of the 8 bytes."""

    def f(x: Any) -> Any:
        return jnp.real(x) * jnp.imag(x)

    program = from_jax(f, jax.ShapeDtypeStruct((1000,), jnp.complex64))
    kernel = lowered(program.checked, program.launches[0])
    assert dict(work_at(kernel, {}).operations) == {("f32", "mul"): 1000}
    assert footprint_at(kernel, {}) == 3 * 4 * 1000
    doubled = from_jax(lambda x: jnp.real(x) * 2, jax.ShapeDtypeStruct((1000,), jnp.complex64))
    assert footprint_at(lowered(doubled.checked, doubled.launches[0]), {}) == 2 * 4 * 1000


def test_other_slices_are_other_elements() -> None:
    def f(x: Any) -> Any:
        return jax.lax.slice(x, (0,), (128,)) * jax.lax.slice(x, (128,), (256,))

    program = from_jax(f, shape(256))
    assert footprint_at(lowered(program.checked, program.launches[0]), {}) == 3 * 4 * 128


def test_a_split_array_is_read_once() -> None:
    def f(x: Any) -> Any:
        first, second, third = jnp.split(x, (64, 128))
        return first * second + jnp.sum(third)

    program = from_jax(f, shape(256), fused=True)
    assert not program.unknown
    kernels = [lowered(program.checked, name) for name in program.launches]
    assert sum(footprint_at(kernel, {}) for kernel in kernels) == 4 * (256 + 64 + 2)  # and the sum, stored and read


def test_repeated_elements_are_stored_once_until_a_copy_joins_them() -> None:
    program = from_jax(lambda x: jnp.repeat(x, 3, axis=0) * 2, shape(256))
    copy, product = (lowered(program.checked, name) for name in program.launches)
    assert footprint_at(copy, {}) == 4 * (256 + 768) and footprint_at(product, {}) == 4 * (768 + 768)


@pytest.mark.parametrize(
    ("function", "inputs", "elements"),
    [
        (lambda x, w: jnp.einsum("bmk,bkn->bmn", x, jnp.broadcast_to(w, (5, 6, 3))), ((5, 4, 6), (6, 3)), 198),
        (
            lambda q, k: jnp.einsum("hgqd,hgkd->hgqk", q, jnp.broadcast_to(k[:, None], (2, 4, 9, 16))),
            ((2, 4, 3, 16), (2, 9, 16)), 384 + 288 + 216,
        ),
        (lambda x, y: jnp.concatenate([jnp.broadcast_to(x, (5, 1, 6)), y], 1), ((1, 1, 6), (5, 3, 6)), 6 + 90 + 120),
        (lambda x: jnp.broadcast_to(x, (5, 4, 6)).sum(1), ((4, 6),), 24 + 30),
    ],
)  # fmt: skip
def test_a_broadcast_operand_counts_the_elements_that_it_has_in_memory(
    function: Any, inputs: tuple[tuple[int, ...], ...], elements: int
) -> None:
    program = from_jax(function, *(shape(*dims) for dims in inputs))
    (launch,) = program.launches
    assert footprint_at(lowered(program.checked, launch), {}) == 4 * elements


def test_a_conversion_to_the_same_type_is_no_launch() -> None:
    program = from_jax(lambda x: (x + jnp.arange(6) * 1.0).astype(jnp.float32), shape(4, 6))
    same = from_jax(lambda x: x + jnp.arange(6) * 1.0, shape(4, 6))
    assert program.launches == same.launches
