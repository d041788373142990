"""The loops that characterize a processor, compiled by numba: arithmetic in registers, and streams.

Each arithmetic loop keeps enough independent accumulators to cover the latency of every pipe at the widest vectors. The
other operands are scalars that change from step to step, so that steps cannot be folded together. The flag `contract`
is set only if fused multiply-adds are wanted. Sums of streams may be regrouped (`reassoc`), because no compiler
vectorizes a reduction otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from roofdsl.lang.functions import FUNCTIONS, repeated
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.measure.bandwidth_curve import COPY, LOAD, LOADS, TRIAD, UPDATE, UPDATES, Pattern

Shape = tuple[int, int]
"""The number of accumulators, and the steps that each of them makes between a load and a store."""

SHAPES: tuple[Shape, ...] = ((64, 1), (32, 8), (64, 8), (128, 1))
"""The fastest of these shapes counts. If all accumulators fit into registers (8 or 16 vectors of 512 bits in f64),
single steps are fastest; if they do not (16 registers of 256 bits), loads and stores must be few compared to steps.
"""

BRIEF_SHAPES = SHAPES[:2]

DIVIDE_EVERY = 8
"""The number of multiplications per division, which together take about as long as the division."""

_OPERANDS = {"term": "c", "shift": "d", "factor": "c"}

# class -> (what one step does to accumulator a, or to a and a second one b; operations in it)
ARITHMETIC = {
    "fma": (("a = a * c + d",), 2),
    "add": (("a = a + c",), 1),
    "mul": (("a = a * c",), 1),
    "add and mul": (("a = a + c", "b = b * d"), 2),
    "mul and div": (("a = d / a", *("b = b * c",) * DIVIDE_EVERY), DIVIDE_EVERY + 1),
    "min": (("a = c if c < a else a", "a = d if d > a else a"), 2),
    "div": (("a = c / a",), 1),
    **{f: ((repeated(FUNCTIONS[f], "python", "one", _OPERANDS),), 1) for f in SPECIAL_FUNCTIONS},
}
"""Special functions are computed as in generated code; an additional addition or product costs little."""

_LIGHT = ("fma", "add", "mul", "add and mul", "min")
"""Classes whose steps take no longer than the load and the store of an accumulator."""

# Integer steps may be regrouped, (a + c) + e to a + (c + e), so they need steps that depend on each other.
INTEGER = {
    "add": (("a = a + b", "b = b + a"), 2),
    "mul": (("a = a * b", "b = b * a"), 2),
    "min": ARITHMETIC["min"],
}


def operands(name: str, dtype: str) -> tuple[Any, Any, Any, Any]:
    """c and d of even and of odd steps, random, such that no floating-point accumulator leaves the range of its type.

    A factor is followed by its inverse and a dividend by itself; sums grow slowly, and c < 1 bounds the rest.
    """
    import numpy as np

    dice = np.random.default_rng(7)
    kind = np.dtype(dtype).type
    if dtype.startswith("int"):
        c, d, e, f = (kind(x) for x in dice.integers(1, largest(dtype), 4))
        return c, d, e, f
    c, d, e, f = (float(x) for x in dice.uniform(0.5, 1.0, 4))
    if name in ("mul", "mul and div"):
        e = 1 / c
    if name == "div":
        e = c
    if name == "add and mul":
        f = 1 / d
    if name == "mul and div":
        f = d
    return kind(c), kind(d), kind(e), kind(f)


def largest(dtype: str) -> int:
    """The bound for the integers that loops begin with; all of them are smaller."""
    return 100 if dtype == "int8" else 1000


def shapes(name: str, integer: bool, brief: bool, size: int = 8) -> tuple[Shape, ...]:
    """The shapes to try for a class on elements of `size` bytes. Several steps between load and store only help if
    these slow down the loop; integer steps would be regrouped. Elements of less than 4 bytes get more accumulators,
    which fill as many vectors as those of 4 bytes.
    """
    wider = max(1, 4 // size)
    every = tuple((wider * lanes, chain) for lanes, chain in (BRIEF_SHAPES if brief else SHAPES))
    if name in SPECIAL_FUNCTIONS:
        return every[:1]
    return every if name in _LIGHT and not integer else tuple(s for s in every if s[1] == 1)


_LOOP = """
def loop(acc, c, d, e, f, steps):
    one = acc.dtype.type(1)
    for r in range(steps):
        for i in range({lanes}):
{body}
        c, e = e, c
        d, f = f, d
"""


@cache
def arithmetic(name: str, shape: Shape, integer: bool = False) -> Callable[..., None]:
    """`loop(acc, *operands, rounds)` of one class; each round makes as many steps as the shape says.

    acc has twice as many elements as the shape has accumulators; the second half may be unused.
    """
    lanes, chain = shape
    once, _ = (INTEGER if integer else ARITHMETIC)[name]
    steps = [step if k % 2 == 0 else _odd(step) for k in range(chain) for step in once]
    lines = ["a = acc[i]", *steps, "acc[i] = a"]
    if any("b" in step.split(" = ")[0] for step in steps):
        lines = ["a = acc[i]", f"b = acc[i + {lanes}]", *steps, "acc[i] = a", f"acc[i + {lanes}] = b"]
    body = "\n".join(" " * 12 + line for line in lines)
    return _compiled(_LOOP.format(lanes=lanes, body=body), {"contract"} if name == "fma" else set())


def _odd(step: str) -> str:
    """The step with the operands of odd steps."""
    return re.sub(r"\b[cd]\b", lambda name: {"c": "e", "d": "f"}[name[0]], step)


_STREAMS = {
    LOAD: ("s = a.dtype.type(0)", "s += a[i]", "total += s", {"reassoc", "contract"}),
    COPY: ("", "a[i] = q * b[i]", "", set()),  # with a factor, because a plain copy would become a call to memcpy
    TRIAD: ("", "a[i] = b[i] + q * c[i]", "", {"contract"}),
    UPDATE: ("", "a[i] += q * b[i]", "", {"contract"}),
    LOADS: ("s = a.dtype.type(0)", "s += a[i] + b[i] + c[i] + d[i]", "total += s", {"reassoc", "contract"}),
    UPDATES: ("", "a[i] += q; b[i] += q; c[i] += q", "", set()),
}

_STREAM = """
def loop({arrays}, q, sweeps):
    total = 0.0
    for r in range(sweeps):
        {before}
        for i in range(a.size):
            {body}
        {after}
    return total
"""


@cache
def stream(pattern: Pattern) -> Callable[..., float]:
    """`loop(a, ..., q, sweeps)` of a pattern: passes over arrays of equal length; `q` is a factor of their type."""
    before, body, after, flags = _STREAMS[pattern]
    arrays = ", ".join("abcd"[: pattern.arrays])
    text = _STREAM.format(arrays=arrays, before=before or "pass", body=body, after=after or "pass")
    return _compiled(text, flags)


_BESIDE = """
def loop(a, b, sweeps):
    total = 0.0
    for r in range(sweeps):
        for k in range(a.size // b.size):
            s = 0.0
            t = 0.0
            for i in range(b.size):
                s += a[k * b.size + i]
                t += b[i]
            total += s + t
    return total
"""


@cache
def beside() -> Callable[..., float]:
    """`loop(a, b, sweeps)`: passes over the array a while reading the shorter array b again and again.

    The length of a is a multiple of b's.
    """
    return _compiled(_BESIDE, {"reassoc", "contract"})


_POLYNOMIAL = """
def loop(a, q, d, sweeps):
    total = 0.0
    for r in range(sweeps):
        s = a.dtype.type(0)
        for i in range(a.size):
            x = a[i]
            {steps}
            s += x
        total += s
    return total
"""


@cache
def polynomial(pairs: int) -> Callable[..., float]:
    """`loop(a, q, d, sweeps)`: passes over an array with `pairs` fused multiply-adds, and an addition, per element."""
    steps = "\n            ".join(["x = x * q + d"] * pairs or ["pass"])
    return _compiled(_POLYNOMIAL.format(steps=steps), {"reassoc", "contract"})


@cache
def nothing() -> Callable[..., None]:
    """A compiled function of three arrays and a number that does nothing, to measure the cost of a call."""
    return _compiled("def loop(a, b, c, n):\n    pass\n", set())


def _compiled(text: str, flags: set[str]) -> Callable[..., Any]:
    """The compiled function `loop` from a text of this module; it runs without the interpreter's lock."""
    import math

    from numba import njit

    names: dict[str, Any] = {"math": math}
    exec(compile(text, "<microkernel>", "exec"), names)
    compiled: Callable[..., Any] = njit(names["loop"], fastmath=flags or False, nogil=True, error_model="numpy")
    return compiled
