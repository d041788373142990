"""The chains of values from iteration to iteration, by hand and against the time of each value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.incore.assumed_compiler import chain_words, in_core
from roofdsl.incore.chains import CLASSES, Step, _cycles, _slowest, chain
from roofdsl.loops.model import Assign, Binary, Element, Expr
from roofdsl.machine.find import load_machine
from tests.incore.loops import LATENCIES, latency, loop_of
from tests.predict.machines import kernel_of


@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        ("    y[i] = c * x[i] + s", None),
        ("    s += x[i]", 3),
        ("    s *= x[i]", 5),
        ("    s max= x[i]", 2),
        ("    s += x[i] * y[i]", 3),  # the product waits for nothing
        ("    s = c * (s + x[i])", 8),
        ("    s = s / c + x[i]", 23),
        ("    x[i] = c * x[i - 1] + y[i]", 8),
        ("    x[i] = c * x[i - 2] + y[i]", 4),  # two chains, each of every second iteration
        ("    x[i] = c * x[i + 1] + y[i]", None),  # the old value of a later element
        ("    x[i] = sqrt(x[i - 1])", 21),
        ("    let a = x[i - 1] + c\n    x[i] = a * a", 8),
        ("    t = s + x[i]\n    s = t * c", 8),
        ("    s += x[i]\n    t += s * y[i]", 3),  # t follows s at the same speed
        ("    t = x[i] + c\n    s = t * y[i]", None),  # written before it is read
        ("    x[2*i] = c * x[2*i - 2]\n    x[2*i + 1] = y[i]", 5),  # even elements follow each other, odd ones do not
        ("    x[2*i] = c * x[2*i - 1]\n    x[2*i + 1] = c * x[2*i]", 10),
        ("    x[i] = y[i]\n    x[i + 1] = c * x[i]", None),  # what the next iteration overwrites without reading it
        ("    x[i + 2] = y[i]\n    x[i] = c * x[i - 1]", 5),  # x[i - 1], last written as x[i] and not as x[i + 2]
    ],
)
def test_chains_by_hand(body: str, cycles: float | None) -> None:
    loop = loop_of("for i in range(2, n - 1):\n" + body)
    assert loop.loop is not None
    found = chain(loop.statements, loop.loop, latency)
    assert (None if found is None else found.cycles) == (cycles if cycles is None else pytest.approx(cycles))


def test_chains_against_the_time_of_each_value() -> None:
    """Random updates of two arrays: the cycles per iteration at which their elements get ready, one by one."""
    draw = random.Random(3)
    for _ in range(60):
        step = draw.choice((1, 1, 2, 3))

        def element(step: int = step) -> str:
            return f"{draw.choice('xy')}[{step}*i + {draw.randint(3, 9)}]"

        lines = []
        for _ in range(draw.randint(1, 3)):
            value = element()
            for _ in range(draw.randint(0, 2)):
                value = f"({value} {draw.choice('+*')} {draw.choice((element(), 'c'))})"
            lines.append(f"    {element()} {draw.choice(('=', '=', '+='))} {value}")
        loop = loop_of("for i in range(1, n - 20):\n" + "\n".join(lines))
        assert loop.loop is not None
        found = chain(loop.statements, loop.loop, latency)
        expected = _cycles_one_by_one([p.statement for p in loop.statements])
        assert (0.0 if found is None else found.cycles) == pytest.approx(expected, abs=0.15), lines


def _cycles_one_by_one(statements: Sequence[object], iterations: int = 160) -> float:
    ready: dict[tuple[str, int], float] = {}

    def place(e: Element, i: int) -> tuple[str, int]:
        return e.array.name, e.subscripts[0].evaluate({"i": i})

    def value(e: Expr, i: int) -> float:
        match e:
            case Element():
                return ready.get(place(e, i), 0.0)
            case Binary(op, left, right):
                return max(value(left, i), value(right, i)) + LATENCIES[CLASSES[op]]
        return 0.0

    latest = []
    for i in range(iterations):
        for node in statements:
            assert isinstance(node, Assign) and isinstance(node.target, Element)
            at = place(node.target, i)
            found = value(node.value, i)
            ready[at] = found if node.op == "=" else max(found, ready.get(at, 0.0)) + LATENCIES["add"]
        latest.append(max(ready.values()))
    half = iterations // 2
    return (latest[-1] - latest[half - 1]) / half


@pytest.mark.parametrize(
    ("body", "cycles", "operations"),
    [
        ("    x[i] = c * x[i - 1] + y[i]", 5, ("fma",)),
        ("    x[i] = y[i] - (-c * x[i - 1])", 5, ("fma",)),
        ("    s += x[i] * y[i]", 5, ("fma",)),
        ("    s = c * s + s * y[i]", 10, ("mul", "fma")),  # the left product is the fused one
        ("    s = c * (s + x[i])", 8, ("add", "mul")),
        ("    s = s + x[i]", 3, ("add",)),
    ],
)
def test_chains_of_fused_operations(body: str, cycles: float, operations: tuple[str, ...]) -> None:
    loop = loop_of("for i in range(2, n - 1):\n" + body)
    assert loop.loop is not None
    found = chain(loop.statements, loop.loop, latency, lambda type_name: type_name == "f64")
    assert found is not None and (found.cycles, found.operations) == (pytest.approx(cycles), operations)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(1, 130), st.integers(0, 9)), max_size=7))
def test_the_slowest_chain_is_that_of_all_closed_ones(drawn: list[tuple[int, int, int, int]]) -> None:
    """Against every order of every choice of places."""
    steps = [Step((start,), (end,), apart, float(cycles), ()) for start, end, apart, cycles in drawn]
    best = Fraction(0)
    for size in range(1, 5):
        for places in permutations(range(4), size):
            pairs = [((a,), (b,)) for a, b in zip(places, places[1:] + places[:1], strict=True)]
            for closed in product(*([s for s in steps if (s.start, s.end) == pair] for pair in pairs)):
                best = max(best, Fraction(int(sum(s.latency for s in closed)), sum(s.distance for s in closed)))
    found = _slowest(steps)
    assert (_cycles(found) if found else 0) == best
    assert all(after.start == before.end for before, after in zip(found, found[1:] + found[:1], strict=True))


@pytest.mark.parametrize("apart", [1, 2, 5, 7, 31, 95, 96, 100])
def test_a_chain_over_any_number_of_iterations(apart: int) -> None:
    """`x[i] = c * x[i - d] + y[i]` takes 8 cycles for d iterations, which vectors of at most d elements may hold."""
    loop = loop_of(f"for i in range({apart}, n):\n    x[i] = c * x[i - {apart}] + y[i]", n=200)
    assert loop.loop is not None
    found = chain(loop.statements, loop.loop, latency)
    assert found is not None
    assert (found.cycles, found.operations) == (8 / apart, ("mul", "add"))
    assert (found.iterations, found.shortest) == (apart, apart)
    kernel = kernel_of(
        "kernel k(n):\n    in c: f64, y: f64[n]\n    inout x: f64[n]\n"
        f"    for i in range({apart}, n):\n        x[i] = c * x[i - {apart}] + y[i]\n"
    )
    causes_ = {step.cause for step in in_core(kernel, {"n": 10_000}, load_machine("skylake_gold_6148")).steps}
    assert ("no SIMD: an iteration needs the one before" in causes_) == (apart < 8)  # 512 bits


def test_a_chain_names_its_own_operations() -> None:
    """x follows t by a division and two products, but nothing waits for x; t is a sum over every second iteration."""
    loop = loop_of("for i in range(2, n):\n    y[i] = y[i - 2] + c\n    x[i] = y[i - 1] / c * c * c")
    assert loop.loop is not None
    found = chain(loop.statements, loop.loop, latency)
    assert found is not None and (found.cycles, found.operations) == (1.5, ("add",))
    assert chain_words(found) == "chain of 1.5 cycles an iteration (add)"
