"""Published questions of courses and textbooks: our answer equals the published one, or the published one is wrong.

Each row states the answer as its source prints it. docs/course_questions.md has the sources and shows the arithmetic of
those that are wrong; a test compares it with the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest
import sympy

from roofdsl.api import derive, kernel, machine, predict
from roofdsl.loops.model import Kernel
from roofdsl.simulate.cache_levels import CacheLevel, Policy
from roofdsl.simulate.hierarchy import simulate

PAGE = (Path(__file__).parents[2] / "docs" / "course_questions.md").read_text(encoding="utf-8")


class Question(NamedTuple):
    """One answer. `printed` in plain units; `within` is half a unit of the last digit that is printed, relative, or a
    little more; is_wrong: the source's answer is not ours, which `right` then states."""

    id: str
    printed: float
    ours: Callable[[], float]
    within: float = 0.0
    right: float | None = None


# ---- How To Scale Your Model ----


def product(a: str, b: str, c: str, compute: str = "") -> str:
    """[B, D] times [D, F]; `out` needs no load."""
    return (
        f"kernel product(B, D, F):\n    in X: {a}[B, D], Y: {b}[D, F]\n    out Z: {c}[B, F]\n"
        "    for i in range(B), j in range(F):\n        Z[i, j] = 0\n        for k in range(D):\n"
        f"            Z[i, j] += X[i, k] * Y[k, j]\n{compute}"
    )


EACH_ITS_OWN = """
kernel each_its_own(B, D, F):
    in X: i8[B, D], Y: i8[B, D, F]
    out Z: i8[B, F]
    for i in range(B), j in range(F):
        Z[i, j] = 0
        for k in range(D):
            Z[i, j] += X[i, k] * Y[i, k, j]
"""


@cache
def of(text: str) -> Kernel:
    return kernel(text)


def chip(peak: str, type_: str, gigabytes: float) -> str:
    return f"machine chip:\n    peak {type_} fma {peak}\n    memory HBM 16 GB, {gigabytes:g} GB/s\n"


def first_compute_bound(text: str, on: str, d: int, f: int) -> int:
    """The smallest batch for which the arithmetic takes at least as long as the memory, by bisection."""

    def bound(batch: int) -> bool:
        found = predict(of(text), on, B=batch, D=d, F=f)
        return found.compute_s >= found.memory.time_s

    return 1 + bisect_left(range(1, 1 << 17), True, key=bound)


def large(text: str) -> sympy.Expr:
    """The intensity for D = F towards infinity, as an expression in B."""
    intensity = derive(of(text)).intensity.sympy()
    names = {s.name: s for s in intensity.free_symbols}
    return sympy.limit(intensity.subs(names["F"], names["D"]), names["D"], sympy.oo)


def slope(text: str) -> float:
    limit = large(text)
    (batch,) = limit.free_symbols
    return float(limit / batch)


INT8, MIXED, BF16 = product("i8", "i8", "i8"), product("bf16", "i8", "bf16"), product("bf16", "bf16", "bf16")
F16 = product("f16", "f16", "f16")
WIDE = 1 << 20
V5E, V5E_BF16 = chip("394 TOP/s", "i8", 820), chip("197 TFLOP/s", "bf16", 820)


def bytes_and_work(text: str, **sizes: int) -> tuple[float, float]:
    found = derive(of(text), **sizes)
    assert found.at_cache.bytes.value is not None and found.work.total.value is not None
    return float(found.at_cache.bytes.value), float(found.work.total.value)


def balance(name: str, type_: str, unit: str) -> float:
    on = machine(name)
    return float(on.rate(type_, unit).per_s / on.main_memory.bandwidth_bytes_per_s)


COPY = (
    "kernel copy(n):\n    traffic once\n    in x: {type}[n]\n    out s: f32\n    s = 0\n"
    "    for i in range(n):\n        s += x[i]\n"
)


def size_of(type_: str, numbers: int) -> float:
    """The bytes of an array."""
    return float(derive(of(COPY.format(type=type_)), n=numbers).by_array["x"].value or 0)


def seconds_to_read(type_: str, numbers: int, gigabytes: float) -> float:
    """The time in which so many numbers come from a memory of that bandwidth."""
    text = COPY.format(type=type_)
    return float(predict(of(text), chip("1 PFLOP/s", "f32", gigabytes), n=numbers).memory.time_s)


ADD = "kernel add(n):\n    in x, y: f32[n]\n    out z: f32[n]\n    for i in range(n):\n        z[i] = x[i] + y[i]\n"
SCALING_BOOK = [
    Question("book 1.1, bytes", 3 * 5 + 5 * 7 + 3 * 7, lambda: bytes_and_work(INT8, B=3, D=5, F=7)[0]),
    Question("book 1.1, operations", 2 * 3 * 5 * 7, lambda: bytes_and_work(INT8, B=3, D=5, F=7)[1]),
    Question("book 1.1, intensity over B", 2, partial(slope, INT8)),
    Question("book 1.1, batch", 240, lambda: first_compute_bound(INT8, V5E, WIDE, WIDE), 0.005),
    Question("book 1.2, batch", 120, lambda: first_compute_bound(MIXED, V5E_BF16, WIDE, WIDE), 0.01),
    Question("book 1.4, intensity", 2, lambda: float(large(EACH_ITS_OWN))),
    Question("book 1.5, batch", 295, lambda: balance("h100_sxm", "bf16", "tensor"), 0.002),
    Question("book 2.1, time", 10e-3, lambda: seconds_to_read("bf16", 200 * 10**9 // 32, 1230), 0.05),
    Question(
        "book 2.3, batch",
        61_000,
        lambda: first_compute_bound(BF16, chip("920 TFLOP/s", "bf16", 15), 1 << 26, 1 << 28),
        0.01,
    ),
    Question(
        "book 2.4, batch", 271, lambda: first_compute_bound(INT8, chip("394 TOP/s", "i8", 810), 4096, 16384), right=263
    ),
    Question(
        "book 2.4, batch from VMEM",
        11,
        lambda: first_compute_bound(INT8, chip("394 TOP/s", "i8", 22 * 810), 4096, 16384) - 1,
    ),
    Question("book 2.5, bytes", 1.7e10, lambda: size_of("bf16", 8 * 128 * 8192), right=1.678e7),
    Question("book 2.5, bytes, corrected", 1.7e7, lambda: size_of("bf16", 8 * 128 * 8192), 0.02),
    Question("book 2.5, time, corrected", 188e-6, lambda: seconds_to_read("bf16", 8 * 128 * 8192, 90), 0.01),
    Question("book 2.6, load", 19e-3, lambda: seconds_to_read("i8", (128 * 1024) ** 2, 810), right=21.2e-3),
    Question(
        "book 2.6, arithmetic",
        1.3e-3,
        lambda: bytes_and_work(BF16, B=8, D=128 * 1024, F=128 * 1024)[1] / 1.97e14,
        right=1.395e-3,
    ),
    Question("book 12.3, H100 in f16", 295, lambda: balance("h100_sxm", "f16", "tensor"), 0.002),
    Question("book 12.3, H100 in f8", 590, lambda: balance("h100_sxm", "f8", "tensor"), 0.002),
    Question(
        "book 12.4, batch of 64",
        8.6e-6,
        lambda: float(predict(of(F16), chip("2300 TFLOP/s", "f16", 8000), B=64, D=4096, F=8192).bound_s),
        0.006,
    ),
    Question(
        "book 12.4, batch of 512",
        15e-6,
        lambda: float(predict(of(F16), chip("2300 TFLOP/s", "f16", 8000), B=512, D=4096, F=8192).bound_s),
        0.03,
    ),
    Question("book 12.7, intensity", 1 / 12, lambda: float(derive(of(ADD), n=1024).intensity.value or 0)),
    Question("book 12.7, time", 3.84e-3, lambda: float(predict(of(ADD), "h100_sxm", n=1024**3).bound_s), 0.002),
]


# ---- other courses ----


def page_faults(pages: Sequence[int], frames: int, policy: Policy) -> int:
    """The misses of a reference string: one line for each page."""
    body = "".join(f"    s += x[{p}]\n" for p in pages)
    text = f"kernel pages(n = {max(pages) + 1}):\n    in x: f64[n]\n    inout s: f64\n{body}"
    level = CacheLevel("frames", 8 * frames, 8, None, policy)
    return simulate(of(text), {"n": max(pages) + 1}, [level]).levels[0].misses


WISCONSIN = (0, 1, 2, 0, 1, 3, 0, 3, 1, 2, 1)
BELADY = (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)

AXPY = (
    "kernel axpy(n):\n    traffic once\n    in a: f32, x: f32[n]\n    inout y: f32[n]\n"
    "    for i in range(n):\n        y[i] += a * x[i]\n"
)
QUIZ = chip("100 GFLOP/s", "f32", 25)

DURHAM = """
kernel durham(n):
    in b, c, d: f64[n]
    inout a: f64[n]
    for i in range(n):
        a[i] = b[i] * c[i] + d[i] * a[i]
"""
DURHAM_2D = """
kernel durham(n, m):
    in b, c, d: f64[n]
    inout a: f64[m]
    for i in range(n), j in range(m):
        a[j] = b[i] * c[i] + d[i] * a[j]
"""


def durham(cache_bytes: int | None, n: int, m: int) -> float:
    size = None if cache_bytes is None else f"{cache_bytes} B"
    return float(derive(of(DURHAM_2D), cache=size, n=n, m=m).at_cache.bytes.value or 0)


def durham_accesses(n: int, m: int) -> float:
    return float(simulate(of(DURHAM_2D), {"n": n, "m": m}, [CacheLevel("any", 64, 8)]).register_bytes)


def gemm_misses(n: int) -> float:
    """Misses a multiply-add, with four numbers a line and a cache of a few lines."""
    text = product("f64", "f64", "f64")
    level = CacheLevel("small", 8 * 32, 32)
    return simulate(of(text), {"B": n, "D": n, "F": n}, [level]).levels[0].misses / n**3


def core_peak(cycles_per_s: float) -> float:
    """Of a core of Zen 2, as the shipped machine states it for its own clock."""
    zen2 = machine("zen2_epyc_7452")
    assert zen2.clock_hz is not None and zen2.units is not None
    return float(zen2.rate("f64", "fma").per_s / zen2.units / zen2.clock_hz) * cycles_per_s


OTHERS = [
    Question(
        "NVIDIA, 8192 x 128 x 8192",
        124.1,
        lambda: float(derive(of(F16), B=8192, D=8192, F=128).intensity.value or 0),
        5e-4,
    ),
    Question(
        "NVIDIA, 8192 x 8192 x 8192",
        2730,
        lambda: float(derive(of(F16), B=8192, D=8192, F=8192).intensity.value or 0),
        5e-4,
    ),
    Question("NVIDIA, V100", 138.9, lambda: balance("v100", "f16", "tensor"), 5e-4),
    Question("CS 537, problem 1, optimal", 5, lambda: page_faults(WISCONSIN, 3, "opt")),
    Question("CS 537, problem 1, LRU", 5, lambda: page_faults(WISCONSIN, 3, "lru")),
    Question("CS 537, problem 1, FIFO", 7, lambda: page_faults(WISCONSIN, 3, "fifo")),
    Question("CS 537, problem 2, 3 pages", 9, lambda: page_faults(BELADY, 3, "fifo")),
    Question("CS 537, problem 2, 4 pages", 10, lambda: page_faults(BELADY, 4, "fifo")),
    Question("quiz q-01-03, intensity", 0.25, lambda: float(derive(of(AXPY), n=1000).intensity.value or 0)),
    Question("quiz q-01-03, ridge", 4, lambda: float(predict(of(AXPY), QUIZ, n=1000).ridge)),
    Question("quiz q-01-03, rate", 6.25e9, lambda: float(predict(of(AXPY), QUIZ, n=1000).rate_per_s or 0)),
    Question("Durham, one loop", 0.075, lambda: float(derive(of(DURHAM), n=1000).intensity.value or 0)),
    Question("Durham, perfect cache", 16 * 32000 + 24 * 1000, lambda: durham(None, 1000, 32000)),
    Question("Durham, pessimal cache", 40 * 50 * 70, lambda: durham_accesses(50, 70)),
    Question("Durham, between both", 16 * 1000 * 32000 + 24 * 1000, lambda: durham(64, 1000, 32000)),
    Question("Durham, peak of a core", 53.6e9, lambda: core_peak(3.35e9)),
    Question(
        "Durham, memory of EPYC 7702",
        190.7e9,
        lambda: float(machine("zen2_epyc_7452").main_memory.bandwidth_bytes_per_s),
        right=204.8e9,
    ),
    Question("GEMM without blocking", 1.25, lambda: gemm_misses(64), 0.005),
]

QUESTIONS = SCALING_BOOK + OTHERS


@pytest.mark.spread(14)
@pytest.mark.parametrize("question", QUESTIONS, ids=[q.id for q in QUESTIONS])
def test_published_answers(question: Question) -> None:
    ours = question.ours()
    if question.right is None:
        assert ours == pytest.approx(question.printed, rel=question.within or 1e-12), question.id
    else:
        assert ours == pytest.approx(question.right, rel=0.002)
        assert ours != pytest.approx(question.printed, rel=0.02)


def test_the_page_lists_them_all() -> None:
    """By id, each once, with its source, and those that are wrong as such."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    listed = [row[0] for row in rows if row[0] not in ("id", "---")]
    assert sorted(listed) == sorted(q.id for q in QUESTIONS)
    wrong = {row[0] for row in rows if "**wrong**" in row[2]}
    assert wrong == {q.id for q in QUESTIONS if q.right is not None}
    assert len(QUESTIONS) >= 20
