"""Bounds as numbers: next to the printed formulas, on disk, and for several memories next to executions on several."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import sympy

from roofdsl.bounds.bound import bound
from roofdsl.bounds.bound_at_sizes import root
from roofdsl.formulas.sympy_forms import parameter
from roofdsl.store.codec import read, write
from tests.bounds.belady import Task, loads, random_order, tasks, tiled_order
from tests.bounds.test_sound import POLYBENCH, bound_of, shipped, sizes
from tests.oracle.loading import kernel_of

PRODUCT = """\
kernel product(m, n, k):
    in A: f64[m, k]
    in B: f64[k, n]
    inout C: f64[m, n]
    for i in range(m), j in range(n), p in range(k):
        C[i, j] += A[i, p] * B[p, j]
"""
LINE = """\
kernel line(n, steps):
    inout a: f64[n]
    inout b: f64[n]
    for t in range(steps):
        for i in range(1, n - 1):
            b[i] = a[i - 1] + a[i] + a[i + 1]
        for i in range(1, n - 1):
            a[i] = b[i - 1] + b[i] + b[i + 1]
"""


@pytest.mark.spread(3)
@pytest.mark.parametrize("path", POLYBENCH[::4], ids=lambda p: p.stem)
def test_numbers_are_those_of_the_printed_formulas(path: Path) -> None:
    """By sympy, to 40 digits; and what was kept as text says the same."""
    found = bound_of(path)
    kept = read(json.loads(json.dumps(write(found.numbers))))
    draw = random.Random(str(path))
    for _ in range(6):
        params = sizes(shipped(path), draw)
        params = {name: value * draw.choice((1, 7, 100)) for name, value in params.items()}
        elements = draw.choice((1, 5, 300, 70_000))
        by = {parameter(name): value for name, value in params.items()} | {found.size: elements}
        exact = {name: sympy.N(value.subs(by), 40) for name, value in found.arguments}
        loaded, argument = found.at(params, elements)
        assert loaded == max(0, *(sympy.ceiling(value - sympy.Rational(1, 10**15)) for value in exact.values()))
        assert loaded == 0 or sympy.ceiling(exact[argument] - sympy.Rational(1, 10**15)) == loaded
        assert kept.at(params, elements) == (loaded, argument)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_roots_are_integer_parts(k: int) -> None:
    draw = random.Random(k)
    for n in (0, 1, 2, 7**k - 1, 7**k, *(draw.getrandbits(draw.randint(1, 300)) for _ in range(50))):
        assert root(n, k) ** k <= n < (root(n, k) + 1) ** k


def shared_out(order: Sequence[Task], memories: int, draw: random.Random) -> list[list[Task]]:
    """The tasks of each memory, in that order: by chance, in pieces of the order, or by a loop's variable."""
    found: list[list[Task]] = [[] for _ in range(memories)]
    way = draw.choice(("chance", "pieces", *order[0].at[1]))
    extent = 1 + max(task.at[1].get(way, 0) for task in order)
    for number, task in enumerate(order):
        if way == "chance":
            place = draw.randrange(memories)
        elif way == "pieces":
            place = number * memories // len(order)
        else:
            place = task.at[1][way] * memories // extent
        found[place].append(task)
    return found


@pytest.mark.parametrize(("text", "largest"), [(PRODUCT, 14), (LINE, 40)], ids=["product", "line"])
def test_several_memories_load_no_less_than_the_bound_for_each_alone(
    text: str, largest: int, pytestconfig: pytest.Config
) -> None:
    """Optimal replacement in each of them; what another memory made is loaded."""
    kernel = kernel_of(text)
    numbers, draw, above = bound(kernel).numbers, random.Random(text), 0
    for _ in range(60 if pytestconfig.getoption("--thorough") else 4):
        params = {p.name: draw.randint(largest // 2, largest) for p in kernel.parameters}
        memories, elements = draw.randint(2, 4), draw.randint(1, 9)
        value, argument = numbers.at(params, elements, memories)
        above += value > numbers.at(params, elements * memories)[0]
        every = tasks(kernel, params)
        for order in (every, random_order(every, draw, 8), tiled_order(every, draw)):
            least = sum(loads(own, elements) for own in shared_out(order, memories, draw))
            assert value <= least, f"{argument}: {value} > {least} at {params}, {memories} of {elements}"
    assert above  # than as one memory
