"""Quotients and sizes of complex numbers in generated Python, against exact arithmetic and numpy's special cases."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.generate import generate
from tests.oracle.loading import kernel_of

KERNEL = """
kernel both(n):
    in a, b: {type}[n], r: {real}[n]
    out q, s: {type}[n], m: {real}[n]
    for i in range(n):
        q[i] = a[i] / b[i]
        s[i] = a[i] / r[i]
        m[i] = abs(a[i])
"""
TYPES = {"c128": (np.complex128, np.float64), "c64": (np.complex64, np.float32)}
Pairs = np.ndarray[Any, Any]


def run(type_name: str, a: Pairs, b: Pairs, r: Pairs) -> tuple[Pairs, Pairs, Pairs]:
    """a / b, a / r and the sizes of a, as numba compiles them under strict math."""
    pair, real = TYPES[type_name]
    text = KERNEL.format(type=type_name, real="f64" if type_name == "c128" else "f32")
    space: dict[str, Any] = {}
    exec(generate(kernel_of(text), "python", math="strict").source, space)
    q, s, m = np.empty(a.size, pair), np.empty(a.size, pair), np.empty(a.size, real)
    space["both"](a, b, r, q, s, m, a.size)
    return q, s, m


def numbers(type_name: str) -> tuple[Pairs, Pairs, Pairs]:
    pair, real = TYPES[type_name]
    rng = np.random.default_rng(7)
    power = 200 if type_name == "c128" else 15
    parts = rng.uniform(-1, 1, (5, 400)) * 10.0 ** rng.integers(-power, power, (5, 400))
    re_a, im_a, re_b, im_b, r = parts.astype(real)
    return (re_a + 1j * im_a).astype(pair), (re_b + 1j * im_b).astype(pair), r


@pytest.mark.spread(1)
@pytest.mark.parametrize("type_name", TYPES)
def test_against_exact_arithmetic(type_name: str) -> None:
    a, b, r = numbers(type_name)
    q, s, m = run(type_name, a, b, r)
    unit = 2.0**-53 if type_name == "c128" else 2.0**-24
    real = TYPES[type_name][1]
    for k in range(a.size):
        x, y, u, v = (Fraction(float(p)) for p in (a[k].real, a[k].imag, b[k].real, b[k].imag))
        whole = u * u + v * v
        exact = ((x * u + y * v) / whole, (y * u - x * v) / whole)
        size = max(abs(part) for part in exact)
        if np.finfo(real).tiny * 1e20 < size < float(np.finfo(real).max) / 4:
            for got, part in zip((q[k].real, q[k].imag), exact, strict=True):
                assert abs(Fraction(float(got)) - part) <= 8 * unit * size, (a[k], b[k])
        square = x * x + y * y
        shift = 1 << 2 * max(0, 200 - (int(square).bit_length() if square >= 1 else -int(1 / square).bit_length()))
        root = Fraction(isqrt(int(square * shift)), isqrt(shift))
        assert abs(Fraction(float(m[k])) - root) <= 4 * unit * root, a[k]
    with np.errstate(over="ignore"):
        assert np.array_equal(s.real, a.real / r) and np.array_equal(s.imag, a.imag / r)


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("type_name", TYPES)
def test_special_sizes_and_a_divisor_of_zero(type_name: str) -> None:
    pair, real = TYPES[type_name]
    endless = complex(np.inf, -np.inf)
    a = np.array([0, endless, complex(np.inf, 2), complex(-3, np.inf), complex(np.nan, 1), -4j, 5], pair)
    q, _, m = run(type_name, a, np.zeros(a.size, pair), np.ones(a.size, real))
    assert np.array_equal(m[[0, 1, 2, 3, 5, 6]], [0, np.inf, np.inf, np.inf, 4, 5]) and np.isnan(m[4])
    assert not np.isfinite(q.real).any()
