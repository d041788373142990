"""Programs: counting_and_time.md, rule 18."""

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.predict.kernel import predict
from roofdsl.predict.program import predict_program
from tests.predict.machines import kernel_of, machine

KERNELS = """
kernel add(n):
    in B, C: f64[n]
    out A: f64[n]
    for i in range(n):
        A[i] = B[i] + C[i]

kernel square(n):
    inout C: f64[n, n]
    in A: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * A[k, j]
"""
PROGRAM = """
program steps(n = 8, t):
    run add(n * n)
    repeat t:
        run square(n)
        repeat 2:
            run add(n)
"""
FILE = load_file(Source("p.roof", KERNELS + PROGRAM))
M = machine("peak f64 fma 1 TFLOP/s", "launch 2 us")


def test_a_program_is_the_sum_of_its_launches() -> None:
    p = predict_program(FILE, "steps", {"t": 5}, M)
    add, square = (kernel_of(KERNELS, name) for name in ("add", "square"))
    parts = [(predict(add, {"n": 64}, M), 1), (predict(square, {"n": 8}, M), 5), (predict(add, {"n": 8}, M), 10)]
    assert p.launches == 16
    assert p.work == sum(q.work * times for q, times in parts) == 64 + 5 * 2 * 8**3 + 10 * 8
    assert p.memory.bytes == sum(q.memory.bytes * times for q, times in parts)
    assert p.expected_s == sum(q.expected_s * times for q, times in parts)
    assert p.no_overlap_s == sum(q.no_overlap_s * times for q, times in parts)
    assert p.launch_s == Fraction(32, 10**6)
    assert (p.kernel, p.parameters, p.bound) == ("steps", (("n", 8), ("t", 5)), "launch")


def test_parameters_of_programs() -> None:
    with pytest.raises(CommandError, match="program steps needs a number for t"):
        predict_program(FILE, "steps", {}, M)
    with pytest.raises(CommandError, match="program steps has no parameter `m`") as error:
        predict_program(FILE, "steps", {"t": 1, "m": 2}, M)
    assert error.value.help == "its parameters are n, t"
