"""Positions of sliders drawn at random: what a page says there against what `predict` finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from roofdsl.cli.options import choose, kernels_of
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.machine.lower import lower
from roofdsl.machine.model import Machine
from roofdsl.page import content as content_module
from roofdsl.page.content import Asked, Content, content_of
from roofdsl.page.count_forms import TrafficForms
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from tests.page.javascript import evaluate
from tests.page.kernels import kernel_of, machine_of

TEXT = """
kernel wide(n, m):
    in A: f32[n, m], b: f32[m]
    out c: f32[n]
    for i in range(n):
        c[i] = 0
        for j in range(m):
            c[i] += A[i, j] * b[j]

kernel stencil(n, m):
    in A: f64[n + 2, m + 2]
    out B: f64[n, m]
    for i in range(n), j in range(m):
        B[i, j] = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2] - 4 * A[i + 1, j + 1]

kernel flip(n):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n), j in range(n):
        B[j, i] = 2 * A[i, j]

kernel factor(n):
    inout A: f64[n, n]
    for k in range(n), i in range(k + 1, n):
        A[i, k] = A[i, k] / A[k, k]
        for j in range(k + 1, n):
            A[i, j] -= A[i, k] * A[k, j]

kernel filtered(n, r = 3):
    in X: f64[n + r], G: f64[r]
    out Y: f64[n]
    for i in range(n):
        Y[i] = 0
        for p in range(r):
            Y[i] += X[i + p] * G[p]
"""

MACHINE_TEXT = """
machine sectored "lines of 128 B in sectors of 32 B":
    peak f64 fma 30 GFLOP/s
    peak f64 div 5 GFLOP/s
    peak f32 fma 60 GFLOP/s
    cache L2 32 KiB, 400 GB/s, line 128 B, sector 32 B
    memory DRAM 16 GiB, 40 GB/s
    launch 2 us

machine steep "launches, then arithmetic, then memory":
    peak f64 fma 30 GFLOP/s
    cache L2 64 KiB, 400 GB/s, line 64 B, write_allocate
    memory DRAM 16 GiB, 60 GB/s
    launch 2 us

machine ridged "lines, and each datum once":
    peak f64 fma 30 GFLOP/s
    cache L2 64 KiB, 400 GB/s, line 64 B
    memory DRAM 16 GiB, 60 GB/s

machine both "lines, and both directions at once":
    peak f64 fma 30 GFLOP/s
    peak f64 div 5 GFLOP/s
    peak f32 fma 60 GFLOP/s
    cache L2 16 KiB, 400 GB/s, line 64 B, write_allocate
    memory DRAM 16 GiB, 12 GB/s, duplex
    launch 1 us
"""

PAGES = (
    ("matmul", "lined"), ("gemv", "both"), ("triangle", "cached"), ("blocked", "lined"), ("matmul", "sectored"),
    ("wide", "lined"), ("stencil", "both"), ("flip", "lined"), ("factor", "duplex"), ("filtered", "both"),
)  # fmt: skip
POSITIONS = 50
MOST_ACCESSES = 300_000
"""What `predict` simulates in no time."""


@cache
def kernel(name: str) -> Kernel:
    own = kernels(load_file(Source("own.roof", TEXT)))
    return own[name] if name in own else kernel_of(name)


@cache
def machine(name: str) -> Machine:
    own = load_file(Source("own.roof", MACHINE_TEXT)).machines
    return lower(own[name]) if name in own else machine_of(name)


@cache
def page(kernel_name: str, machine_name: str) -> Content:
    return content_of(Asked("", ((kernel(kernel_name), {}),), (machine(machine_name),), types=()))


def with_cache(of: Machine, size: int) -> Machine:
    return replace(of, caches=(*of.caches[:-1], replace(of.caches[-1], size_bytes=size)))


def positions(name: str, of: Machine) -> Iterator[tuple[dict[str, int], int]]:
    """Sizes and caches, each drawn evenly on a logarithmic scale; half of the caches are the machine's own."""
    draw = random.Random(f"{name} {of.name}")
    own = of.caches[-1]
    least = max(own.line_bytes or 8, 16)
    depth = {"matmul": 3, "factor": 3, "filtered": 1}.get(name, 2)
    for _ in range(POSITIONS):
        most = (MOST_ACCESSES / 4) ** (1 / depth)
        values = {p.name: max(1, round(most ** draw.random())) for p in kernel(name).parameters}
        if name == "blocked":
            values["b"] = draw.choice([1, 2, 4, 8, 12, 16])
            values["n"] = max(1, values["n"] // values["b"]) * values["b"]
        if name == "filtered":
            values["r"] = draw.choice([1, 2, 3, 5, 8])
        size = own.size_bytes if draw.random() < 0.5 else least * round(2 ** draw.uniform(0, 10))
        yield values, size


SHOWN = (
    "ASKED.map(([values, cache]) => { const p = predictionAt(DATA.kernels[0], DATA.kernels[0].own, DATA.machines[0], "
    "'', values, BigInt(cache)); return p.problem ? p : {how: p.moved.how, exact: isExact(p.moved), bytes: "
    "[p.low.bytes, p.high.bytes].map((v) => Number.isFinite(v) ? v : null), memory: [p.low.memory, p.high.memory], "
    "time: [p.low.time, p.high.time], decided: p.decided, bounds: p.bounds, candidates: p.candidates, "
    "isOne: p.isOne}; })"
)


@pytest.mark.thorough
@pytest.mark.parametrize("where", PAGES, ids=" on ".join)
def test_a_page_agrees_with_predict_at_random_positions(where: tuple[str, str]) -> None:
    name, machine_name = where
    content, own = page(name, machine_name), machine(machine_name)
    asked = list(positions(name, own))
    shown = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=asked)
    decided = exact = 0
    for (values, size), found in zip(asked, shown, strict=True):
        expected = predict(kernel(name), values, with_cache(own, size), Options(levels="memory"))
        context = (name, machine_name, values, size, found, expected.memory.bytes)
        assert "problem" not in found, context
        agrees(found, expected, context)
        decided += found["decided"]
        exact += found["exact"]
    print(f"{name} on {machine_name}: {decided} decided, {exact} exact of {POSITIONS}")
    assert decided > POSITIONS / 2, "hardly anything is told"


def agrees(found: Mapping[str, Any], expected: Prediction, context: object) -> None:
    """One number where it is said to be exact, else within its ends; one verdict, or among those that are named."""
    least, most = found["bytes"]
    if found["exact"]:
        assert least == most == expected.memory.bytes, context
    assert least <= expected.memory.bytes, context
    assert most is None or expected.memory.bytes <= most, context
    for key, value in (("memory", expected.memory.time_s), ("time", expected.bound_s)):
        low, high = found[key]
        assert low * (1 - 1e-12) <= float(value) <= (high or float("inf")) * (1 + 1e-12), (key, context)
    if found["decided"]:
        assert set(found["bounds"]) == set(expected.bounds), context
    else:
        assert set(expected.bounds) <= set(found["candidates"]), context
        assert not found["isOne"], context


@pytest.mark.parametrize("text", [
    "for i in range(n):\n        s = s * s + 1",
    "for i in range(n), j in range(i):\n        s += A[i, j]",
])  # fmt: skip
def test_scalars_move_where_no_array_is_accessed(text: str) -> None:
    """The most that moves is never below the least: 16 B for the load and the store of the scalar."""
    declared = "in A: f64[n, n]\n    inout s: f64" if "A[" in text else "inout s: f64"
    sums = kernels(load_file(Source("own.roof", f"kernel sums(n):\n    {declared}\n    {text}\n")))["sums"]
    content, own = content_of(Asked("", ((sums, {}),), (machine("ridged"),), types=())), machine("ridged")
    asked = [({"n": 1}, 1 << 16), ({"n": 1}, 128)]
    shown = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=asked)
    for (values, size), found in zip(asked, shown, strict=True):
        expected = predict(sums, values, with_cache(own, size), Options(levels="memory"))
        assert expected.memory.bytes == 16
        agrees(found, expected, (text, size, found))


@pytest.mark.thorough
def test_changes_of_what_is_the_longest_are_those_of_predict() -> None:
    """The sentence beside the sliders: each change lies where `predict` has it, and the intervals of Q enclose it."""
    own = machine("steep")
    content = page("matmul", "steep")
    text = (
        "crossings(DATA.kernels[0], 'n', 512, {n: 64}, (v) => predictionAt(DATA.kernels[0], 'f64', DATA.machines[0], "
        "'', v, BigInt(DATA.machines[0].cache.size)))"
    )
    found = evaluate(content.functions, text, DATA=content.document)
    assert len(found) >= 3

    def longest(n: int) -> str:
        terms = predict(kernel("matmul"), {"n": n}, own, Options(levels="memory")).terms
        return max(terms, key=lambda term: term[1])[0]

    for before, change in pairwise(found):
        assert longest(change["from"]) == change["longest"]
        assert longest(change["after"]) == before["longest"]
        assert change["after"] < change["from"] <= 2 * change["after"]


@pytest.mark.thorough
def test_products_on_a_v100_are_bound_as_predict_says() -> None:
    """Between 730 and 881 the page once stood at 300 times the bytes; exact where rows are whole lines.

    The page counts in the order of the loops, as `predict` does without multiprocessors.
    """
    own = replace(load_machine("v100"), multiprocessor=None)
    matmul = kernels_of(choose("matmul"), {})[0][0]
    content = content_of(Asked("", ((matmul, {}),), (own,), types=()))
    sizes = [600, 736, 800, 872, 880, 888, 896, 1024]
    asked = [({"n": n}, 6 << 20) for n in [*sizes, *range(730, 872, 12), 871, 890, 905, 951]]
    shown = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=asked)
    for (values, _), found in zip(asked, shown, strict=True):
        n = values["n"]
        assert found["bounds"] == (["compute"] if n <= 881 else ["HBM"]), (n, found)
        if n in sizes:
            assert found["exact"]
            agrees(found, predict(matmul, values, own, Options(levels="memory")), values)


@pytest.mark.thorough
@pytest.mark.parametrize("where", [("matmul", "lined"), ("triangle", "cached")], ids=" on ".join)
def test_plateaus_say_nothing_wrong_at_small_sizes(where: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the form for every cache, what is told by plateaus holds at all sizes and caches, or there is less."""
    name, own = where[0], machine(where[1])
    for made in ("in_lines", "of_derivation"):
        monkeypatch.setattr(content_module, made, without_exact_form(getattr(content_module, made)))
    content = content_of(Asked("", ((kernel(name), {}),), (own,), types=()))
    line = own.caches[-1].line_bytes or 8
    sizes = [*range(1, 17), 20, *((32, 40) if line > 8 else ())]
    asked = [({"n": n}, line * k) for n in sizes for k in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96, 200)]
    told = set()
    shown = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=asked)
    for (values, size), found in zip(asked, shown, strict=True):
        expected = predict(kernel(name), values, with_cache(own, size), Options(levels="memory")).memory.bytes
        least, most = found["bytes"]
        assert least <= expected <= (most or expected), (values, size, found, expected)
        told.add(found["how"])
    assert {"plateau", "step"} <= told


def without_exact_form(make: Callable[..., TrafficForms]) -> Callable[..., TrafficForms]:
    return lambda *given: replace(make(*given), any_cache=None)
