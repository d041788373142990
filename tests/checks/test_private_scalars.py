"""Loops whose iterations are independent once each has its own scalars, by enumeration of all accesses."""

from __future__ import annotations

import re
from random import Random

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_scalar_loops
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.accesses import statements
from roofdsl.loops.model import Assign, Kernel, ScalarRef
from roofdsl.loops.transform import apply
from tests.checks.test_parallel_loops import conflict
from tests.checks.test_private_copies import SIZES, is_private
from tests.oracle.loading import kernel_of

FOUND = {"shared": 0, "a value passes": 0, "elements meet": 0}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--kernels") // 2))


def random_scalars(seed: int, *, data: bool = False) -> Kernel:
    """A kernel that sets, updates and reads scalars before, inside and after its loops, some of which run zero times,
    and under conditions. data: whether an index array chooses what it reads.
    """
    draw = Random(seed)
    while True:
        try:
            text = _text(draw)
            if data:
                text = re.sub(r"\bA\[(\w+)\]", r"A[col[\1]]", text)
                text = text.replace("    inout", "    in col: i32[n + m + 3] index(n + m + 3)\n    inout", 1)
            return kernel_of(text)
        except InputError:  # a scalar that it never reads, or a loop that never runs
            continue


def _text(draw: Random) -> str:
    loops = 0

    def value(at: str) -> str:
        return draw.choice((f"A[{at}]", f"A[{at}] - 0.5", "s", "r", f"0.5 * s + A[{at}]", "r - s", "B[i]"))

    def statement(at: str) -> str:
        name = draw.choice("ssssrr")
        kind = draw.random()
        if kind < 0.25:
            return f"{name} = {draw.choice((f'A[{at}]', '0', value(at)))}"
        if kind < 0.55:
            return f"{name} {draw.choice(('+=', '-=', 'max='))} A[{at}]"
        if kind < 0.62 and at != "i":
            return f"C[i, {at}] = {value(at)}"
        place = draw.choice(("i", "i", "i", "i", "i", "i", "i", "i + 1", "0"))
        return f"B[{place}] {draw.choice(('=', '=', '+='))} {value(at)}"

    def block(pad: str, at: str, depth: int) -> list[str]:
        nonlocal loops
        kind = draw.random()
        if kind < 0.45 or depth == 3:
            return [f"{pad}{statement(at)}"]
        body = [line for _ in range(draw.randint(1, 2)) for line in block(pad + "    ", at, depth + 1)]
        if kind < 0.6:
            condition = draw.choice((f"{at} < m", "i < 2", "i < m", f"{at} < n", "2 * i < n"))
            orelse = [f"{pad}else:", *block(pad + "    ", at, 3)] if draw.random() < 0.5 else []
            return [f"{pad}if {condition}:", *body, *orelse]
        loops += 1
        var = f"j{loops}"
        bound = draw.choice(("n", "m", "m", "m", "i", "2", "m - 1", "i + 1", "min(m, i)"))
        body = [line for _ in range(draw.randint(1, 2)) for line in block(pad + "    ", var, depth + 1)]
        return [f"{pad}for {var} in range({bound}):", *body]

    around = draw.choice(("for i in range(n):", "for i in range(n):", "for t in range(m), i in range(n):"))
    first = draw.choice(("s = 0", "s = A[i]", "s = 0", "r = A[i] + s", "s += 1"))
    second = draw.choice(("r = 0", "r = A[i]", "r = s", f"for j in range({draw.choice('nmi')}):"))
    second = f"{second}\n            r = A[j]" if second.startswith("for") else second
    body = [line for _ in range(draw.randint(1, 4)) for line in block("        ", "i", 1)]
    after = draw.choice(("", "", "", "    last = s", "    for e in range(n):\n        B[e] = r + A[e]"))
    after = draw.choice((after, after, f"    s = 1\n    r = 2\n{after}")) if after else ""
    lines = [
        "kernel k(n, m):",
        "    in A: f64[n + m + 3]",
        "    inout B: f64[n + m + 3], C: f64[n, n + m + 3], last: f64",
        "    temp s, r: f64",
        "    s = A[0]",
        "    r = 0.25",
        f"    {around}",
        *(f"        {line}" for line in (first, second)),
        *body,
        "        B[i] += s + r",
        after or "    last = 1",
    ]
    return "\n".join(lines) + "\n"


def check(kernel: Kernel) -> None:
    plain = apply(kernel)
    free, found = parallel_loops(kernel), private_scalar_loops(kernel)
    placed = tuple(statements(plain.body))
    loops = sorted({p.position[: d + 1] for p in placed for d in range(len(p.loops))}, key=len)
    outer: list[tuple[int, ...]] = []
    for loop in loops:
        if any(loop[: len(o)] == o for o in outer):
            assert loop not in found
            continue
        inside = [p.statement for p in placed if p.position[: len(loop)] == loop]
        own = {s.target.array.name for s in inside if isinstance(s, Assign) and isinstance(s.target, ScalarRef)}
        depth = len(loop) - 1
        if not own:
            assert loop not in found
            outer += [loop] if loop in free else []
        elif "last" in own or not all(is_private(plain, at, loop, name) for at in SIZES for name in own):
            FOUND["a value passes"] += 1
            assert loop not in found
        elif any(conflict(plain, at, loop, depth, but=own) for at in SIZES):
            FOUND["elements meet"] += 1
            assert loop not in found
        else:
            FOUND["shared"] += 1
            assert loop in found, loop
            assert set(found[loop].copied) == own and found[loop].outside == depth
            outer.append(loop)


def test_random_scalars(seed: int) -> None:
    check(random_scalars(seed))


def test_all_answers_occur() -> None:
    if sum(FOUND.values()) > 200:
        assert all(count > 0.05 * sum(FOUND.values()) for count in FOUND.values()), FOUND


SHARED = "shared"
CASES = {
    "set in each iteration": (
        SHARED, "        s = 0\n        for j in range(m):\n            s += A[j]\n        B[i] = s\n"),
    "set in both branches": (
        SHARED, "        if i < m:\n            s = 1\n        else:\n            s = 2\n        B[i] = s\n",
    ),
    "set in a loop that always runs": (
        SHARED, "        for j in range(i + 1):\n            s = A[j]\n        B[i] = s\n"),
    "set in a loop that may not run": ("", "        for j in range(i):\n            s = A[j]\n        B[i] = s\n"),
    "set under a condition": ("", "        if i < m:\n            s = 1\n        B[i] = s\n"),
    "set and read under one condition": (
        SHARED, "        if i < m:\n            s = A[i]\n        if i < m:\n            B[i] = s\n",
    ),
    "read before it is set": ("", "        B[i] = s\n        s = A[i]\n"),
    "a running sum": ("", "        s += A[i]\n        B[i] = s\n"),
    "needed after the loop": ("", "        s = A[i]\n        B[i] = s\n    B[0] = s\n"),
    "set again before it is needed after the loop": (
        SHARED, "        s = A[i]\n        B[i] = s\n    s = 3\n    B[0] = s\n",
    ),
    "a result": ("", "        last = A[i]\n        B[i] = last\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_where_a_scalar_is_set(name: str) -> None:
    expected, body = CASES[name]
    head = "kernel k(n, m):\n    in A: f64[n + m]\n    inout B: f64[n + m], last: f64\n    temp s: f64\n"
    kernel = kernel_of(f"{head}    s = 5\n    last = s\n    for i in range(n):\n{body}")
    found = {loop: own.copied for loop, own in private_scalar_loops(kernel).items()}
    assert found == ({(2,): ("s",)} if expected == SHARED else {})
