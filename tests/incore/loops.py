"""Innermost loops of small kernels, and made-up latencies."""

from __future__ import annotations

from roofdsl.incore.innermost_loops import Loop, loops_of
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.sized import Sized, sized
from tests.predict.machines import kernel_of

LATENCIES = {"add": 3.0, "mul": 5.0, "fma": 5.0, "div": 20.0, "min": 2.0, "sqrt": 21.0}


def latency(cls: str, type_name: str) -> float:
    return LATENCIES[cls]


HEAD = "kernel k(n):\n    inout A, B: f64[n, n], x, y, u: f64[3 * n], s, t: f64\n    in c: f64\n"


def loop_of(text: str, **sizes: int) -> Loop:
    """The only innermost loop of a kernel of these lines, over matrices A, B, vectors x, y, u and scalars s, t, k."""
    given = sized(kernel_of(HEAD + "".join(f"    {line}\n" for line in text.splitlines())), {"n": 40} | sizes)
    found = [loop for loop in loops_of(Sized(with_numbers(given.kernel, given.values), given.values)) if loop.loop]
    assert len(found) == 1
    return found[0]
