"""The order of accesses of a statement, and where statements stand."""

from __future__ import annotations

import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Assign, Count, Kernel, Let


def lowered(*lines: str) -> Kernel:
    text = "kernel k(n):\n    in a, b, c: f64[n], s: f64\n    inout y: f64[n], t: f64\n"
    return kernel(load_file(Source("t", text + "".join(f"    {line}\n" for line in lines))), None, {})


@pytest.mark.parametrize(
    ("statement", "order"),
    [
        ("y[0] = a[1] * b[2] + c[3]", "a1 b2 c3 y0!"),
        ("y[0] += a[1] * s", "a1 y0 y0!"),
        ("y[0] min= a[1] + a[1]", "a1 a1 y0 y0!"),
        ("y[0] = (c[1] - a[2]) / -b[3]**2", "c1 a2 b3 y0!"),
        ("y[0] = select(a[1] < b[2], c[3], max(b[4], 1, a[5]))", "a1 b2 c3 b4 a5 y0!"),
        ("let u = y[1] * t", "y1"),
        ("t += a[1]", "a1"),
        ("y[0] = n", "y0!"),
    ],
)
def test_order(statement: str, order: str) -> None:
    (node,) = lowered(statement).body
    assert isinstance(node, Assign | Let)
    found = (f"{a.element.array.name}{a.element.subscripts[0]}{'!' * a.is_write}" for a in accesses(node))
    assert " ".join(found) == order


def test_places() -> None:
    k = lowered(
        "y[0] = 1",
        "for i in range(n):",
        "    if i > 2:",
        "        y[i] = 2",
        "        for j in range(i): count c j",
        "    elif i > 1:",
        "        let u = a[i]",
        "    else:",
        "        y[i] = 3",
        "    y[i] = 4",
        "t = 5",
    )
    found = [
        (p.position, [loop.var for loop in p.loops], [(depth, str(g)) for depth, g in p.guards])
        for p in statements(k.body)
    ]
    first, second = "i > 2", "i > 1"
    assert found == [
        ((0,), [], []),
        ((1, 0), ["i"], [(1, first)]),
        ((1, 1, 0), ["i", "j"], [(1, first)]),
        ((1, 2), ["i"], [(1, f"not ({first})"), (1, second)]),
        ((1, 3), ["i"], [(1, f"not ({first})"), (1, f"not ({second})")]),
        ((1, 4), ["i"], []),
        ((2,), [], []),
    ]
    assert isinstance(list(statements(k.body))[2].statement, Count)
