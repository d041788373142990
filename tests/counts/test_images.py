"""Windows of stencils with many references: what they touch, and the plateaus that follow, against enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.sets import reuse
from roofdsl.sets.images import Images
from roofdsl.sets.library import pieces
from roofdsl.sets.native_calls import on_all_cores
from tests.counts import test_exact_traffic as exact
from tests.oracle.loading import kernel_of

OFFSETS = [(di, dj) for di, dj in product(range(-1, 2), repeat=2) if abs(di) + abs(dj) < 2]
N = 7


def touch() -> isl.Map:
    """T[i, j] -> the elements of a star around it."""
    parts = (f"T[i, j] -> A[i + {di}, j + {dj}] : 1 <= i < n - 1 and 1 <= j < n - 1" for di, dj in OFFSETS)
    return isl.Map(f"[n] -> {{ {'; '.join(parts)} }}")


@pytest.mark.parametrize(("back", "least"), [((0, 1), (1, 2)), ((1, -1), (2, 1)), ((1, 0), (2, 1)), ((2, 1), (3, 2))])
def test_bytes_of_a_window(back: tuple[int, int], least: tuple[int, int]) -> None:
    """From `back` iterations before an access up to it: as many elements as a set of Python's has."""
    domain = f"{least[0]} <= i < n - 1 and {least[1]} <= j < n - 1 and j - ({back[1]}) < n - 1"
    windows = isl.Map(
        f"[n] -> {{ T[i, j] -> T[k, l] : {domain} and 1 <= k < n - 1 and 1 <= l < n - 1 and "
        f"(k > i - {back[0]} or (k = i - {back[0]} and l >= j - ({back[1]}))) and (k < i or (k = i and l < j)) }}"
    )
    count = Images(touch()).count(windows.apply_range(touch()))
    inside = range(1, N - 1)
    for i, j in product(range(least[0], N - 1), range(least[1], N - 1)):
        if j - back[1] >= N - 1:
            continue
        start = i - back[0], j - back[1]
        expected = {
            (k + di, m + dj) for k, m in product(inside, inside) if start <= (k, m) < (i, j) for di, dj in OFFSETS
        }
        here = isl.Set(f"[n] -> {{ T[i, j] : n = {N} and i = {i} and j = {j} }}")
        env = {"n": N, "d0": i, "d1": j}
        found = sum(int(v.evaluate(env)) for d, v in pieces(count) if not d.intersect(here).is_empty())
        assert found == len(expected), (i, j)


def shape(loops: str, array: str, floor: str = "") -> isl.Map:
    """From each iteration of `loops`, of the second statement, to two elements of the array."""
    i, j = loops
    inside = f"1 <= {i} < n and 1 <= {j} < n{floor}"
    access = f"T[1, {i}, {j}] -> {array}"
    return isl.Map(f"[n] -> {{ {access}[{i}, {j}] : {inside}; {access}[{i}, 0] : {inside} }}")


def same(first: isl.PwQPolynomial, second: isl.PwQPolynomial) -> bool:
    return first.domain().is_equal(second.domain()) and not any(value for _, value in pieces(first.sub(second)))


def test_loops_and_arrays_of_the_same_shape_ask_the_same() -> None:
    first, second = (Images(s).asked(s) for s in (shape("ij", "A"), shape("kl", "B")))
    assert first is not None and second is not None and first.text == second.text
    assert same(second.answer(first.count()), Images(shape("kl", "B")).count(shape("kl", "B")))


def test_shapes_with_floors_ask_for_themselves() -> None:
    odd = shape("ij", "A", " and (i + n) mod 2 = 1")
    asked = Images(odd).asked(odd)
    assert asked is not None and asked.floors == 1
    assert same(asked.answer(asked.count()), Images(odd).count(odd))


def test_windows_of_mirrored_loops_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time loop over two arrays asks for each of them what it asked for the other."""
    loops = "for i in range(1, n - 1), j in range(1, n - 1):"
    sums = (" + ".join(f"{a}[i + {di}, j + {dj}]" for di, dj in product(range(-1, 2), repeat=2)) for a in "AB")
    halves = (f"        {loops}\n            {b}[i, j] = {total}\n" for b, total in zip("BA", sums, strict=True))
    text = f"kernel twice(steps, n):\n    inout A, B: f64[n, n]\n    for t in range(steps):\n{''.join(halves)}"
    asked: list[int] = []

    def counted(tasks: Sequence[Callable[[], object]]) -> list[object]:
        asked.append(len(tasks))
        return on_all_cores(tasks)

    monkeypatch.setattr(reuse, "on_all_cores", counted)
    ClosedForms(kernel_of(text), {}, None).plateau_forms("once")
    first, second = (tasks for tasks in asked if tasks)
    assert 8 * second < first


MANY = (
    "kernel star(n):\n    in A: f64[n + 4, n + 4], B: f64[n + 4, n + 4]\n    out C: f64[n + 4, n + 4]\n"
    "    for i in range(2, n + 2), j in range(2, n + 2):\n        C[i, j] = "
    + " + ".join(f"{a}[i + {2 + di} - 2, j + {2 + dj} - 2]" for a in "AB" for di, dj in product(range(-1, 2), repeat=2))
    + "\n"
)


def test_plateaus_of_many_references() -> None:
    """Both arrays from memory once where two rows of each stay, and once for each row of the stencil below."""
    found = ClosedForms(kernel_of(MANY), {}, None).plateau_forms("load_store")
    n = 1 << 20
    per_point = [round(r.bytes.evaluate({"n": n}) / n**2) for r in found]
    assert per_point[-1] == 24
    assert 56 in per_point  # 3 rows of each of two arrays, and the store
    assert per_point == sorted(per_point, reverse=True)


def test_sizes_whose_order_decides_have_no_plateaus() -> None:
    """The filter may be as large as the image: the sizes are of one kind, and their order is not known."""
    text = (
        "kernel filtered(n, r):\n    in X: f64[n], G: f64[r]\n    out Y: f64[n - r + 1]\n"
        "    for i in range(n - r + 1):\n        Y[i] = 0\n"
        "        for p in range(r):\n            Y[i] += X[i + p] * G[p]\n"
    )
    with pytest.raises(NoClosedForm, match="which of its sizes is larger"):
        ClosedForms(kernel_of(text), {}, None).plateau_forms("once")
    assert ClosedForms(kernel_of(text), {"r": 3}, None).plateau_forms("once")


@pytest.mark.spread(1)
@pytest.mark.parametrize("kernel", range(5, 10))
def test_random_kernels_as_if_they_had_many_references(kernel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "MANY_REFERENCES", 0)
    exact.test_random_kernel(kernel)
