"""One pair of uses answers for others only if they have the same answer: compared with looking at every pair."""

from __future__ import annotations

import pytest

from roofdsl.checks import dependence_pairs, legality
from roofdsl.checks.dependence_pairs import Pair, alike, pairs_of
from roofdsl.checks.legality import find_carried, find_reversal
from roofdsl.checks.parallel_loops import members_of_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

FOUND = {"carried": 0, "independent": 0}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--kernels") // 3))


def block(p: int, q: int, offsets: tuple[str, ...] = ("n // {}", "n // {}")) -> str:
    """A block of p x q results in scalars, an equal part of each extent apart."""
    points = [(i, j) for i in range(p) for j in range(q)]
    row, column = (text.format(f) for text, f in zip(offsets, (p, q), strict=True))
    at = {(i, j): f"C[i + {i} * ({row}), j + {j} * ({column})]" for i, j in points}
    lines = ["kernel k(n):", f"    assume n % {p} == 0, n % {q} == 0", "    in A: f64[n, n]", "    inout C: f64[n, n]"]
    lines += [f"    temp {', '.join(f'c{i}_{j}' for i, j in points)}: f64"]
    lines += [f"    for i in range({row}), j in range({column}):"]
    lines += [f"        c{i}_{j} = {at[i, j]}" for i, j in points]
    lines += ["        for k in range(n):", *(f"            c{i}_{j} += A[i, k] * A[k, j]" for i, j in points)]
    lines += [f"        {at[i, j]} = c{i}_{j}" for i, j in points]
    return "\n".join(lines) + "\n"


def every(pairs: list[Pair], *orders: tuple[PlacedStatement, ...], textual: bool = True) -> list[Pair]:
    """Every pair, instead of one for each answer."""
    found = list(pairs)
    return [p for p in found if not p.reduction] + [p for p in found if p.reduction]


def answers(kernel: Kernel) -> list[object]:
    """Whether a dependence is found or kept open, for the directives and for each loop at each depth."""
    found, unknown = find_reversal(kernel) if kernel.directives else (None, None)
    said: list[object] = [(found is None, unknown)]
    plain = apply(kernel)
    placed = tuple(statements(plain.body))
    for loop, members in members_of_loops(placed).items():
        for outside in range(len(loop)):
            carried, unknown = find_carried(plain, placed, members, len(loop) - 1, outside)
            said.append((loop, outside, carried is None, unknown))
            FOUND["carried" if carried is not None else "independent"] += 1
    return said


def check(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = answers(kernel)
    monkeypatch.setattr(legality, "distinct", every)
    assert answers(kernel) == grouped


@pytest.mark.spread(7)
def test_random_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        kernel = kernel_of(random_kernel(seed).text)
    except InputError:
        return
    check(kernel, monkeypatch)


OVERLAPPING = "kernel k(n):\n    inout C: f64[2 * n]\n    for i in range({}):\n        C[i + {}] = C[i + {}]\n"


@pytest.mark.parametrize("text", [
    block(2, 2), block(3, 2), block(2, 2, ("n // {}", "1")), block(2, 2, ("(n - 1) // {}", "n // {}")),
    OVERLAPPING.format("n // 2", "n // 2", "0"), OVERLAPPING.format("n // 2 + 1", "n // 2", "0"),
    OVERLAPPING.format("n - 1", "3 - 2", "0"), OVERLAPPING.format("n", "n", "0"),
    OVERLAPPING.format("n // 2", "2 * (n // 2)", "n // 2"),
])  # fmt: skip
def test_blocks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(kernel_of(text), monkeypatch)


def test_both_answers_occur() -> None:
    if FOUND["carried"] + FOUND["independent"] > 100:
        assert FOUND["carried"] > 20 and FOUND["independent"] > 20


def test_64_results_in_scalars_are_private_after_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """4096 pairs of elements are 225 distances, and all 64 scalars are used in one way."""
    asked = 0
    decide = legality.decide

    def counted(*args: object) -> object:
        nonlocal asked
        asked += 1
        return decide(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(legality, "decide", counted)
    kernel = kernel_of(block(8, 8))
    found = private_loops(kernel)
    assert {loop: (each.outside, len(each.copies)) for loop, each in found.items()} == {(0,): (0, 64), (0, 0): (0, 64)}
    assert asked < 4 * 225, asked  # two loops, and j also with different i
    placed = tuple(statements(kernel.body))
    members = list(range(len(placed)))
    distances = dependence_pairs.distinct(pairs_of(placed, members, {"C"}), placed, textual=False)
    assert len(distances) == 225
    names = [a.name for a in kernel.arrays if a.intent == "temp"]
    assert set(alike(placed, members, names).values()) == {"c0_0"}


def test_scalars_that_are_used_in_other_places_are_not_alike() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in x: f64[n]\n    inout y: f64[n]\n    temp a, b, c: f64\n    for i in range(n):\n"
        "        a = x[i]\n        b = x[i]\n        if i > 1:\n            c = x[i]\n            y[i] = c\n"
        "        y[i] += a + b\n"
    )
    placed = tuple(statements(kernel.body))
    assert alike(placed, list(range(len(placed))), ["a", "b", "c"]) == {"a": "a", "b": "a", "c": "c"}
