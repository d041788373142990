"""Conversions of reduced floats in generated Python, bit for bit: as numpy converts, or to the nearest of all codes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest

from roofdsl.codegen.generate import generate
from roofdsl.codegen.python_functions import FUNCTIONS
from roofdsl.codegen.storage import STORAGE, decode
from roofdsl.incore.native import by_numba
from tests.oracle.loading import kernel_of

KERNEL = """
kernel both(n):
    in a: {type}[n], b: f32[n]
    out c: f32[n], d: {type}[n]
    for i in range(n):
        c[i] = a[i]
    for i in range(n):
        d[i] = b[i]
"""
TYPES = ("f16", "bf16", "f8")


@cache
def converters(type_name: str) -> tuple[Any, Any]:
    """From all elements of an array to f32 and back, as numba compiles the generated functions."""
    source = generate(kernel_of(KERNEL.format(type=type_name)), "python").source
    space: dict[str, Any] = {}
    exec(source, space)

    def narrowed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return run(values.astype(np.float32), np.zeros(1, STORAGE[type_name]))[1]

    def widened(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return run(np.zeros(1, np.float32), codes)[0]

    def run(b: np.ndarray[Any, Any], a: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        n = max(a.size, b.size)
        a, b = np.resize(a, n), np.resize(b, n)
        c, d = np.empty(n, np.float32), np.empty(n, STORAGE[type_name])
        space["both"](a, b, c, d, n)
        return c, d

    return widened, narrowed


def interesting() -> np.ndarray[Any, Any]:
    """Numbers of every size, ties, the numbers beside them, infinities and quiet NaNs with payloads."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    exponents = np.arange(256, dtype=np.uint32) << 23
    ties = [(exponents[:, None] | np.uint32(half << shift)) for shift in (12, 15, 19) for half in range(1, 16)]
    near = np.concatenate([t.ravel() + np.uint32(d) for t in ties for d in (-1 % 2**32, 0, 1)])
    small = np.arange(0, 4096, dtype=np.uint32)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    between = halves[1:0x7C00] - np.uint32(0x1000)  # halfway between two halves, also subnormal ones
    found = np.concatenate([bits, near.astype(np.uint32), small, halves, between])
    found = np.concatenate([found, found | np.uint32(0x80000000)]).view(np.float32)
    signalling = np.isnan(found) & (found.view(np.uint32) & 0x400000 == 0)
    return found[~signalling]


def nearest(values: np.ndarray[Any, Any], type_name: str) -> np.ndarray[Any, Any]:
    """The codes of the nearest numbers of a type, ties to even codes, by looking among all of them; not for NaN."""
    top = {"f16": 0x7C00, "bf16": 0x7F80, "f8": 0x7E}[type_name]
    sizes = decode(np.arange(top + 1, dtype=STORAGE[type_name]), type_name)
    if type_name != "f8":
        sizes[-1] = 2 * sizes[-2] - sizes[-3]  # infinity, where the next number would be
    size = np.abs(values.astype(np.float64))
    above = np.searchsorted(sizes, size).clip(1, top)
    below = above - 1
    up = size - sizes[below] > sizes[above] - size
    up |= (size - sizes[below] == sizes[above] - size) & (above % 2 == 0)
    codes = np.where(up, above, below)
    return codes | np.signbit(values) * (0x80 if type_name == "f8" else 0x8000)


@pytest.mark.spread(1)
@pytest.mark.parametrize("type_name", TYPES)
def test_every_element_is_widened_to_its_value(type_name: str) -> None:
    codes = np.arange(256 if type_name == "f8" else 65536).astype(STORAGE[type_name])
    got = converters(type_name)[0](codes)
    want = decode(codes, type_name)
    assert np.array_equal(got.astype(np.float64), want, equal_nan=True)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


def test_halves_are_widened_as_numpy_widens_them() -> None:
    codes = np.arange(65536).astype(np.uint16)
    want = codes.view(np.float16).astype(np.float32)
    quiet = ~np.isnan(want) | (codes & 0x200 != 0)
    got = converters("f16")[0](codes)
    assert np.array_equal(got.view(np.uint32)[quiet], want.view(np.uint32)[quiet])
    assert np.isnan(got[~quiet]).all()


def test_halves_are_rounded_as_numpy_rounds_them() -> None:
    values = interesting()
    with np.errstate(over="ignore"):
        want = values.astype(np.float16).view(np.uint16)
    assert np.array_equal(converters("f16")[1](values), want)


@pytest.mark.spread(1)
@pytest.mark.parametrize("type_name", TYPES)
def test_numbers_are_rounded_to_the_nearest(type_name: str) -> None:
    values = interesting()
    got = converters(type_name)[1](values)
    numbers = ~np.isnan(values)
    assert np.array_equal(got[numbers], nearest(values[numbers], type_name))
    back = decode(got, type_name)
    assert np.isnan(back[~numbers]).all()


def test_where_the_processor_does_not_convert_halves_the_results_are_the_same() -> None:
    space: dict[str, Any] = {"np": np}
    for name in ("f16_bits_to_f32", "f32_to_f16_bits"):
        exec(FUNCTIONS[name], space)
    widen, narrow = (numba.vectorize(space[name]) for name in ("f16_bits_to_f32", "f32_to_f16_bits"))
    codes, values = np.arange(65536).astype(np.uint16), interesting()
    got = widen(codes)
    assert np.array_equal(got.view(np.uint32), converters("f16")[0](codes).view(np.uint32))
    assert np.array_equal(narrow(values), converters("f16")[1](values))


def test_which_processors_convert_halves() -> None:
    space: dict[str, Any] = {}
    exec(FUNCTIONS["converts_f16"], space)

    class Codegen:
        def __init__(self, *described: str) -> None:
            self.described = described

        def codegen(self) -> Codegen:
            return self

        def magic_tuple(self) -> tuple[str, ...]:
            return self.described

    tested = space["converts_f16"]
    assert not tested(Codegen("x86_64-unknown-linux-gnu", "x86-64", "+sse2,-f16c"))
    assert tested(Codegen("x86_64-unknown-linux-gnu", "skylake", "+sse2,+f16c"))
    assert tested(Codegen("arm64-apple-darwin22.6.0", "apple-m1", ""))
    assert not tested(Codegen("powerpc64le-unknown-linux-gnu", "pwr8", ""))


def f16c() -> bool:
    import llvmlite.binding

    return bool(llvmlite.binding.get_host_cpu_features().get("f16c"))


@pytest.mark.skipif(not f16c(), reason="this processor has no instructions for half precision")
def test_halves_are_converted_in_vectors() -> None:
    text = by_numba(kernel_of(KERNEL.format(type="f16"))).text
    assert re.search(r"vcvtph2psx?\s.*%[yz]mm", text)
    assert re.search(r"vcvtps2ph\w*\s.*%[yz]mm|vcvtps2phxy", text)


@pytest.mark.spread(1)
@pytest.mark.parametrize("type_name", ["bf16", "f8"])
def test_loops_over_other_reduced_types_are_vectors(type_name: str) -> None:
    text = by_numba(kernel_of(KERNEL.format(type=type_name))).text
    wide = re.findall(r"\tvp(?:add|sll|srl)[dq]\s.*%[yz]mm", text)
    assert wide
    assert not re.search(r"\tvp(?:sllq|srlq|movqd|movzxdq)\s", text), "integers of 64 bits"
