"""The first and last sizes that assumptions allow, near and far, against the sets they are meant to be."""

from __future__ import annotations

import random

from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, shipped
from roofdsl.predict.allowed_sizes import first_allowed, last_allowed
from roofdsl.predict.options import Options
from roofdsl.predict.threshold import Question, kernel_bounds, program_bounds
from tests.predict.machines import kernel_of, machine

FAR = """\
kernel far(n):
    assume n >= 50_000, n % 64 == 0
    in x: f64[n]
    inout y: f64[n]
    for i in range(n):
        y[i] += x[i]
"""


def test_first_and_last_of_random_ranges() -> None:
    random_number = random.Random(3)
    for _ in range(300):
        low = random_number.choice([1, random_number.randint(1, 200), random_number.randint(1, 300_000)])
        high = low + random_number.randint(40_000, 200_000)
        step = random_number.choice([1, 2, 64, 100])
        rest = random_number.randrange(step)
        first = random_number.choice([1, random_number.randint(1, 400_000)])
        last = first + random_number.choice([0, 5, random_number.randint(0, 400_000)])

        def allowed(n: int, low: int = low, high: int = high, step: int = step, rest: int = rest) -> bool:
            return low <= n <= high and n % step == rest

        inside = [n for n in range(max(low, first), min(high, last) + 1) if n % step == rest]
        if (first <= low and high <= last) or not inside:
            assert first_allowed(allowed, first, last) == (inside[0] if inside else None)
        if inside:
            assert last_allowed(allowed, inside[0], last) == inside[-1]


def test_sizes_that_begin_far_out() -> None:
    slow = machine("peak f64 1 GFLOP/s", "memory M 1 GiB, 1 GB/s")
    (only,) = kernel_bounds(kernel_of(FAR), {}, slow, Question("n")).intervals
    assert (only.first, only.last) == (50_048, None)


def test_a_bound_that_ends_long_after_the_last_allowed_size() -> None:
    """W grows as n - n**2 / ..., so compute would stop being the bound, but only far above new = context."""
    sizes = {"batch": 3, "d": 10_400, "kv": 3, "group": 4, "dh": 1600, "ffn": 5600, "context": 400}
    question = Question("new", Options(unit="tensor"))
    checked = load_file(shipped("kernels")["transformer"])
    whole, _ = program_bounds(checked, "layer_f8", sizes, load_machine("h100_sxm"), question)
    assert [(i.first, i.last, i.names) for i in whole.intervals] == [(1, 123, ("HBM",)), (124, 400, ("compute",))]
