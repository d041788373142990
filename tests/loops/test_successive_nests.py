"""A kernel's body in parts that have one outermost loop each."""

from __future__ import annotations

import pytest

from roofdsl.loops.model import Assign, For, If
from roofdsl.loops.successive_nests import successive_nests
from tests.predict.machines import kernel_of

HEAD = "kernel k(n):\n    in x: f64[n]\n    inout y: f64[n], s: f64\n"
LOOP = "    for i in range(n):\n        y[i] = x[i]\n"
STORE = "    s = s + 1\n"
CHOSEN = "    if n > 5:\n        for i in range(n):\n            y[i] = x[i]\n    else:\n        s = 0\n"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (LOOP, [[For]]),
        (STORE + LOOP + STORE + STORE + LOOP + STORE, [[Assign, For], [Assign, Assign, For, Assign]]),
        (CHOSEN + LOOP, [[If], [For]]),
        (STORE, []),
        ("    let c = 2 * s\n" + LOOP + LOOP.replace("x[i]", "c * x[i]"), []),
    ],
)
def test_each_part_has_one_outermost_loop(body: str, parts: list[list[type]]) -> None:
    kernel = kernel_of(HEAD + body)
    found = successive_nests(kernel.body)
    assert [[type(node) for node in part] for part in found] == parts
    assert not found or tuple(node for part in found for node in part) == kernel.body
